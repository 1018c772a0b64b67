#!/usr/bin/env python3
"""`lightcone embed` answers each line with a vector in its order, writes arrays that numpy reads, and prints cosines.

    embed_command_test.py PATH/TO/lightcone SOURCE_DIRECTORY
"""
import ast
import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

LIGHTCONE, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
WORDS = "[PAD] [UNK] [CLS] [SEP] a cat sat on the mat dog ran far query : . ##s".split()
LINES = ["the cats sat on the mat.", "a dog", "", "a cat ran far", "a dog"]


def write_model(folder):
    """A small BERT with weights by a formula, as tools/make_encoder_goldens.py has them, and a tokenizer."""
    cases = json.loads((SOURCE / "tests/goldens/encoders.json").read_text())
    case = next(c for c in cases if c["config"]["architectures"] == ["BertForTokenClassification"])
    (folder / "config.json").write_text(json.dumps(case["config"]))
    header, data = {}, b""
    for i, (name, shape) in enumerate(case["tensors"]):
        norm = name.endswith("LayerNorm.weight")
        values = [0.4 * math.sin(1.3 * i + 0.7 * k + 0.1) + norm for k in range(math.prod(shape))]
        bits = struct.pack("<%df" % len(values), *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(bits)]}
        data += bits
    head = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + data)
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}, "decoder": None,
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                  "vocab": {w: i for i, w in enumerate(WORDS)}}}))


class Embed(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.d = pathlib.Path(kept.name)
        write_model(self.d)

    def run_embed(self, *args, lines=LINES, code=0):
        text = "".join(line + "\n" for line in lines).encode()
        r = subprocess.run([LIGHTCONE, "embed", self.d, *args], input=text, capture_output=True, timeout=120)
        self.assertEqual(r.returncode, code, r.stderr)
        return r

    def vectors(self, *args, **more):
        r = self.run_embed(*args, **more)
        self.assertEqual(r.stderr, b"")
        return [json.loads(line) for line in r.stdout.decode().splitlines()]

    def near(self, a, b, most=1e-5):
        self.assertEqual(len(a), len(b))
        for x, y in zip(a, b):
            self.assertLess(abs(x - y), most)

    def test_lines_keep_their_order_whatever_the_batches(self):
        all_at_once = self.vectors()
        self.assertEqual([len(v) for v in all_at_once], [8] * len(LINES))
        self.assertEqual(all_at_once[1], all_at_once[4])
        for size in ("1", "2", "3"):
            for a, b in zip(all_at_once, self.vectors("--batch", size)):
                self.near(a, b)
        for line, v in zip(LINES, all_at_once):
            self.near(self.vectors(lines=[line])[0], v)
        self.assertEqual(self.vectors(lines=[]), [])

    def test_arrays_and_cosines(self):
        vectors = self.vectors("--normalize")
        for v in vectors:
            self.assertAlmostEqual(sum(x * x for x in v), 1, 5)
        out = self.d / "v.npy"
        self.assertEqual(self.run_embed("--normalize", "-o", out).stdout, b"")
        raw = out.read_bytes()
        size = struct.unpack("<H", raw[8:10])[0]
        self.assertEqual(raw[:8], b"\x93NUMPY\x01\x00")
        self.assertEqual((10 + size) % 64, 0)
        self.assertEqual(ast.literal_eval(raw[10:10 + size].decode()), {"descr": "<f4", "fortran_order": False, "shape": (5, 8)})
        self.near(struct.unpack("<40f", raw[10 + size:]), [x for v in vectors for x in v], 1e-7)
        matrix = [[float(x) for x in row.split()] for row in self.run_embed("--similarity").stdout.decode().splitlines()]
        for a, row in zip(vectors, matrix):
            self.near(row, [sum(x * y for x, y in zip(a, b)) for b in vectors], 6e-5)

    def test_prompts_and_lengths(self):
        self.near(self.vectors("--prompt", "query: ", lines=["a dog"])[0], self.vectors(lines=["query: a dog"])[0], 1e-7)
        self.near(self.vectors("--max-length", "4", lines=["a dog ran far"])[0], self.vectors(lines=["a dog"])[0])
        (self.d / "lines.txt").write_bytes(b"a dog\r\nthe mat")
        self.assertEqual(len(self.vectors(self.d / "lines.txt")), 2)

    def test_mistakes(self):
        for args, words in (((self.d / "none.txt",), "none.txt: it cannot be read"), (("-o", "v.txt"), "does not end in .npy"),
                            (("--pooling", "meen"), "meen"), (("--prompt-name", "q"), "the model has no prompt 'q'"),
                            (("--max-length", "2"), "has no room for a text")):
            err = self.run_embed(*args, code=1).stderr.decode()
            self.assertTrue(err.startswith("lightcone: "), err)
            self.assertEqual(err.count("\n"), 1, err)
            self.assertIn(words, err)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
