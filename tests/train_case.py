"""What the tests of `lightcone train` share: the command, files of data, small configurations, and how a refusal looks.

A test is called with PATH/TO/lightcone SOURCE_DIRECTORY.
"""
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

LIGHTCONE, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])


def run(*args, **kw):
    return subprocess.run([LIGHTCONE, *map(os.fsencode, args)], capture_output=True, timeout=300, **kw)


def example(name):
    """An example's configuration, without its comments."""
    text = run("train", "--example", name).stdout.decode()
    return json.loads("\n".join(line.split("//")[0] for line in text.split("\n")))


def idx(shape, values):
    return struct.pack(">BBBB", 0, 0, 8, len(shape)) + struct.pack(">%dI" % len(shape), *shape) + bytes(values)


def npy(kind, shape, values):
    head = repr({"descr": kind, "fortran_order": False, "shape": tuple(shape)})
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack("<%d%s" % (len(values), kind[1] if kind[1] == "f" else "q"), *values)


def png(size, values):
    """A picture of size x size pixels in RGB."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes(values[3 * size * y:3 * size * (y + 1)]) for y in range(size))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def tensors(path):
    """The tensors of a safetensors file, by name."""
    b = pathlib.Path(path).read_bytes()
    n = struct.unpack("<Q", b[:8])[0]
    head = json.loads(b[8:8 + n])
    head.pop("__metadata__", None)
    return {k: b[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]] for k, v in head.items()}


class Case(unittest.TestCase):
    def setUp(self):
        self.kept = tempfile.TemporaryDirectory()
        self.addCleanup(self.kept.cleanup)
        self.d = pathlib.Path(self.kept.name)
        self.random = random.Random(7)

    def refuses(self, r, *words):
        err = r.stderr.decode(errors="replace")
        self.assertEqual(r.returncode, 1, err)
        self.assertTrue(err.startswith("lightcone: "), err)
        self.assertEqual(err.count("\n"), 1, err)
        self.assertNotIn("step 1", r.stdout.decode())
        for w in words:
            self.assertIn(w, err)

    def write(self, config, name="c"):
        path = self.d / (name + ".json")
        path.write_text(json.dumps(config))
        return path

    def lines(self, folder):
        return [json.loads(line) for line in (self.d / folder / "log.jsonl").read_text().splitlines()]

    def learns(self, folder, factor):
        losses = [l["loss"] for l in self.lines(folder) if "loss" in l]
        self.assertLess(losses[-1], factor * losses[0], losses)

    def flowers(self, rows=200, name="train.csv", label=None, cell=None):
        """Three classes of four numbers each."""
        with open(self.d / name, "w") as f:
            f.write("a,b,label,c,d\n")
            for k in range(rows):
                y = k % 3
                x = [self.random.gauss(2 * (y == i), 0.7) for i in range(4)]
                cells = ["%.4f" % x[0], "%.4f" % x[1], str(y), "%.4f" % x[2], "%.4f" % x[3]]
                if label is not None and k == 5:
                    cells[2] = label
                if cell is not None and k == 7:
                    cells[4] = cell
                f.write(",".join(cells) + "\n")

    def mlp(self, steps=60, **more):
        c = {"model": {"kind": "mlp", "hidden": [16], "dropout": 0.1},
             "data": {"format": "csv", "train": "train.csv", "shape": [4], "classes": 3},
             "train": {"steps": steps, "batch": 16, "lr": 0.01},
             "evaluate": {"every": 20}, "save": {"every": 10}, "log": {"every": 5}}
        c.update(more)
        return c

    def pictures(self, count=96):
        """Bright at the left or at the right: u8 [n, 8, 8]."""
        labels = [k % 2 for k in range(count)]
        return labels, [min(255, max(0, int(self.random.gauss(160 if (x < 4) == (y == 0) else 60, 30)))) for y in labels for _ in range(8) for x in range(8)]

    def photos(self, folder, classes, count=12):
        """Folders of pictures of 40 x 40 pixels that are bright in one channel, a class each."""
        for channel, name in enumerate(classes):
            (self.d / folder / name).mkdir(parents=True)
            for k in range(count):
                values = [min(255, max(0, int(self.random.gauss(180 if c == channel else 80, 20)))) for _ in range(1600) for c in range(3)]
                (self.d / folder / name / ("%d.png" % k)).write_bytes(png(40, values))

    def images(self, classes=3, steps=30, **more):
        return {"model": {"kind": "resnet18", "width_divisor": 8, **more},
                "data": {"format": "images", "train": "photos", "shape": [3, 32, 32], "classes": classes, "held_out": 0.2},
                "train": {"steps": steps, "batch": 8, "optimizer": "sgd", "lr": 0.01, "momentum": 0.9},
                "evaluate": {"every": steps}, "log": {"every": 5}}

    def language(self, **more):
        c = {"model": {"kind": "llama", "layers": 1, "width": 32, "heads": 2, "kv_heads": 1, "context": 16, "vocabulary": 300},
             "data": {"format": "text", "train": "t.txt"},
             "train": {"steps": 60, "batch": 8, "lr": 0.01, "clip": 1}, "evaluate": {"every": 30}, "log": {"every": 5}}
        for key, value in more.items():
            c[key].update(value)
        return c
