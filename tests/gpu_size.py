#!/usr/bin/env python3
"""The GPU back ends add at most 1 MB of text and data to a program that links all of them.

  gpu_size.py OBJECT..."""
import shutil
import subprocess
import sys

MOST = 1_000_000

if not shutil.which("size"):
    print("SKIPPED: no size (binutils)")
    sys.exit(77)
said = subprocess.run(["size"] + sys.argv[1:], capture_output=True, text=True, check=True).stdout.splitlines()[1:]
total = sum(int(text) + int(data) for text, data, *_ in map(str.split, said))
print("%d bytes of %d in %d objects" % (total, MOST, len(said)))
sys.exit(not said or total > MOST)
