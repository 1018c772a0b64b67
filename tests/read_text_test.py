#!/usr/bin/env python3
"""The example read_text reads a picture with PaddleOCR's published networks.

    read_text_test.py PATH/TO/read_text REFERENCE_DATA

The networks are in the folder that bench/setup-models fills: $LIGHTCONE_MODELS, by default ../peers/packages."""
import os
import pathlib
import subprocess
import sys

PROGRAM, DATA = sys.argv[1], pathlib.Path(sys.argv[2])
SOURCE = pathlib.Path(__file__).resolve().parent.parent
MODELS = pathlib.Path(os.environ.get("LIGHTCONE_MODELS") or SOURCE.parent / "peers/packages")
picture = DATA / "models/ocr/ocr.png"
networks = [next(iter(sorted(MODELS.rglob(name))), None) if MODELS.exists() else None for name in ("PP-OCRv6_det_small.onnx", "PP-OCRv6_rec_small.onnx")]
if not picture.exists() or None in networks:
    print("skipped: the reference data or the networks (bench/setup-models rapidocr) are not here")
    sys.exit(77)
done = subprocess.run([PROGRAM, *networks, picture], capture_output=True, timeout=300)
print(done.stdout.decode(), done.stderr.decode())
sys.exit(0 if done.returncode == 0 and done.stdout == b"Lightcone reads ONNX 2026\n" else 1)
