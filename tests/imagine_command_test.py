#!/usr/bin/env python3
"""`lightcone imagine` writes the picture that diffusers makes of the same folder and noise, as numbers and as a picture, and names
mistakes in one sentence.

    imagine_command_test.py PATH/TO/lightcone SOURCE_DIRECTORY
"""
import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

LIGHTCONE, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
LETTERS = "abcdefghijklmnopqrstuvwxyz!"
PIECES = ["at</w>", "cat</w>", "th", "the</w>", "<|startoftext|>", "<|endoftext|>"]


def write_weights(folder, part):
    """Weights by the formula of tools/make_diffusion_goldens.py."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(part["config"]))
    header, data = {}, b""
    for i, (name, shape) in enumerate(part["tensors"]):
        norm = name.endswith("weight") and "layer_norm" in name
        bits = struct.pack("<%df" % math.prod(shape), *(0.4 * math.sin(1.3 * i + 0.7 * k + 0.1) + norm for k in range(math.prod(shape))))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(bits)]}
        data += bits
    head = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + data)


def write_npy(path, shape, values):
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % (shape,)
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack("<%df" % len(values), *values))


class Imagine(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.kept.cleanup)
        cls.d = pathlib.Path(cls.kept.name)
        cls.case = json.loads((SOURCE / "tests/goldens/diffusion.json").read_text())["pipelines"][0]
        for name, part in cls.case["parts"].items():
            write_weights(cls.d / name, part)
        (cls.d / "model_index.json").write_text(json.dumps({"_class_name": "StableDiffusionPipeline"}))
        (cls.d / "scheduler").mkdir()
        (cls.d / "scheduler/scheduler_config.json").write_text(json.dumps(cls.case["scheduler"]))
        names = list(LETTERS) + [c + "</w>" for c in LETTERS] + PIECES
        (cls.d / "tokenizer").mkdir()
        (cls.d / "tokenizer/vocab.json").write_text(json.dumps({n: i for i, n in enumerate(names)}))
        (cls.d / "tokenizer/merges.txt").write_text("#version: 0.2\na t</w>\nc at</w>\nt h\nth e</w>\n")
        write_npy(cls.d / "noise.npy", (4, 4, 4), [math.sin(0.9 * k) for k in range(64)])

    def imagine(self, *args, code=0):
        r = subprocess.run([LIGHTCONE, "imagine", self.d, *args], capture_output=True, timeout=300)
        self.assertEqual(r.returncode, code, r.stderr)
        self.assertEqual(r.stdout, b"")
        return r.stderr.decode()

    def test_numbers_are_those_of_diffusers(self):
        out = self.d / "p.npy"
        err = self.imagine("A cat, the red zebra!", "--negative", "fog", "--steps", "4", "--guidance", "3", "--noise", self.d / "noise.npy", "-o", out)
        self.assertIn("longer than the 12 tokens", err)
        raw = out.read_bytes()
        values = struct.unpack("<192f", raw[-4 * 192:])
        for got, want in zip(values, self.case["runs"]["text"]):
            self.assertLess(abs(min(max(got, -1), 1) - want), 1e-4)

    def test_a_seed_gives_the_same_picture(self):
        paths = [self.d / n for n in ("1.png", "2.png", "3.png")]
        for path, more in zip(paths, (("--threads", "1"), ("--threads", "2"), ("--seed", "3"))):
            self.imagine("the cat", "--steps", "2", "--scheduler", "dpm++_karras", *more, "-o", path)
        self.assertTrue(paths[0].read_bytes().startswith(b"\x89PNG"))
        self.assertEqual(paths[0].read_bytes(), paths[1].read_bytes())
        self.assertNotEqual(paths[0].read_bytes(), paths[2].read_bytes())
        self.imagine("the cat", "--steps", "2", "--size", "16x8", "--init", paths[0], "-o", self.d / "4.jpg")

    def test_mistakes(self):
        out = self.d / "p.png"
        for args, words in ((("a", "-o", "p.gif"), "ends in none of .png, .jpg and .npy"), (("a", "--size", "7x", "-o", out), "WIDTHxHEIGHT"),
                            (("a", "--scheduler", "eular", "-o", out), "eular"), (("a", "--size", "9", "-o", out), "not a multiple of 2"),
                            (("a", "--lora", "none.safetensors", "-o", out), "none.safetensors")):
            err = self.imagine(*args, code=1)
            self.assertTrue(err.startswith("lightcone: "), err)
            self.assertEqual(err.count("\n"), 1, err)
            self.assertIn(words, err)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
