#!/usr/bin/env python3
"""`lightcone predict` reaches the accuracy that `lightcone train` printed, from the model's file alone, on tables, pictures and
arrays.

    predict_command_test.py PATH/TO/lightcone SOURCE_DIRECTORY
"""
import csv
import gzip
import io
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile
import zlib

LIGHTCONE, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
MNIST = SOURCE.parent / "shared/data/datasets/mnist"
KINDS = (("Adelie", 38.8, 18.3, 190, 3700), ("Chinstrap, the", 48.8, 18.4, 196, 3733), ("Gentoo", 47.5, 15.0, 217, 5076))
FEATURES = ["bill_length", "bill_depth", "flipper", "mass"]


def run(*args):
    return subprocess.run([LIGHTCONE, *map(os.fsencode, args)], capture_output=True, timeout=300)


def png(width, height, values):
    """A picture in RGB, its pixels' colours side by side."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes(values[3 * width * y:3 * width * (y + 1)]) for y in range(height))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def idx(shape, values):
    return struct.pack(">BBBB", 0, 0, 8, len(shape)) + struct.pack(">%dI" % len(shape), *shape) + bytes(values)


def npy(kind, shape, data):
    head = repr({"descr": kind, "fortran_order": False, "shape": tuple(shape)})
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data


class Predict(unittest.TestCase):
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
        for w in words:
            self.assertIn(w, err)

    def train(self, config, *flags, name="c"):
        path = self.d / (name + ".json")
        path.write_text(json.dumps(config))
        return run("train", path, "--overwrite", *flags)

    def trained(self, config, name="c"):
        """What train said; its model lies alone in another folder."""
        r = self.train(config, name=name)
        self.assertEqual(r.returncode, 0, r.stderr)
        (self.d / "alone").mkdir(exist_ok=True)
        model = self.d / "alone" / (name + ".safetensors")
        shutil.copy(self.d / (name + ".run") / "best.safetensors", model)
        shutil.rmtree(self.d / (name + ".run"))
        (self.d / (name + ".json")).unlink()
        return r.stdout.decode(), model

    def answers(self, model, *inputs, form="csv", **more):
        flags = [w for key, value in more.items() for w in ("--" + key, str(value))]
        r = run("predict", model, *inputs, "--format", form, *flags)
        self.assertEqual(r.returncode, 0, r.stderr)
        self.said = r.stderr.decode()
        out = r.stdout.decode()
        return list(csv.DictReader(io.StringIO(out))) if form == "csv" else json.loads(out) if form == "json" else out.splitlines()

    def measured(self, out, what="accuracy"):
        """Of the best model, as train printed it."""
        return float(re.findall(what + r" ([-\d.]+)( %)?  \(best so far\)", out)[-1][0])

    def penguins(self, name, count, header="species,island,bill_length,bill_depth,flipper,mass", missing=True, row=None):
        """Deterministic, with words, and with cells that are missing in each of three ways."""
        rows = []
        for k in range(count):
            kind = KINDS[k % 3]
            v = ["%.1f" % self.random.gauss(kind[1], 2.7), "%.1f" % self.random.gauss(kind[2], 1.1), "%d" % self.random.gauss(kind[3], 6.5), "%d" % self.random.gauss(kind[4], 450)]
            if missing and k % 17 == 3:
                v[k % 4] = ["", "NA", "nan"][k % 3]
            rows.append([kind[0], "Dream", *v])
        if row:
            rows[row[0]][row[1]] = row[2]
        with open(self.d / name, "w", newline="") as f:
            f.write(header + "\n")
            csv.writer(f, lineterminator="\n").writerows(rows)
        return rows

    def table(self, **more):
        data = {"format": "csv", "train": "train.csv", "test": "test.csv", "label": "species", "features": FEATURES, "classes": 3, "missing": "mean", "standardize": True}
        data.update(more)
        return {"model": {"kind": "mlp", "hidden": [16]}, "data": {k: v for k, v in data.items() if v is not None},
                "train": {"steps": 60, "batch": 16, "lr": 0.01}, "evaluate": {"every": 60}, "log": {"every": 60}}

    def test_words_missing_cells_and_columns_by_name(self):
        self.penguins("train.csv", 240)
        rows = self.penguins("test.csv", 90)
        out, model = self.trained(self.table())
        self.assertIn("240 samples of [4] in 3 classes (Adelie, Chinstrap, the, Gentoo) to learn from, 90 held out\n", out)
        (self.d / "train.csv").unlink()
        got = self.answers(model, self.d / "test.csv")
        self.assertEqual([g["row"] for g in got], [str(k) for k in range(90)])
        self.assertEqual({g["rank"] for g in got}, {"1"})
        right = sum(g["class"] == r[0] for g, r in zip(got, rows, strict=True))
        accuracy = self.measured(out)
        self.assertGreater(accuracy, 85)
        self.assertAlmostEqual(100 * right / 90, accuracy, delta=0.01)
        # without the label, in another order, with a column more
        with open(self.d / "bare.csv", "w") as f:
            f.write("mass,name,flipper,bill_length,bill_depth\n")
            f.writelines(",".join([r[5], "x", r[4], r[2], r[3]]) + "\n" for r in rows)
        bare = self.answers(model, self.d / "bare.csv")
        self.assertEqual([(g["class"], g["probability"]) for g in bare], [(g["class"], g["probability"]) for g in got])
        # the same answers in each format
        first = self.answers(model, self.d / "test.csv", self.d / "bare.csv", form="json", top=9)
        self.assertEqual(len(first), 180)
        for g, j in zip(got + bare, first, strict=True):
            self.assertEqual((g["input"], int(g["row"]), g["class"]), (j["input"], j["row"], j["class"]))
            self.assertEqual(float(g["probability"]), j["probability"])
            self.assertEqual({t["class"] for t in j["top"]}, {k[0] for k in KINDS})
            self.assertEqual(j["top"][0], {"class": j["class"], "probability": j["probability"]})
            self.assertEqual(sorted((t["probability"] for t in j["top"]), reverse=True), [t["probability"] for t in j["top"]])
            self.assertAlmostEqual(sum(t["probability"] for t in j["top"]), 1, delta=1e-5)
        two = self.answers(model, self.d / "test.csv", top=2)
        self.assertEqual([(g["row"], g["rank"]) for g in two[:4]], [("0", "1"), ("0", "2"), ("1", "1"), ("1", "2")])
        text = self.answers(model, self.d / "test.csv", form="text", top=2)
        for line, j in zip(text, first):
            self.assertEqual(line, "%s[%d]  %s" % (j["input"], j["row"], ", ".join("%s %.2f %%" % (t["class"], 100 * t["probability"]) for t in j["top"][:2])))
        r = run("predict", model, self.d / "test.csv", "-o", self.d / "answers.txt", "--top", "2")
        self.assertEqual((r.returncode, r.stdout), (0, b""), r.stderr)
        self.assertEqual((self.d / "answers.txt").read_text().splitlines(), text)
        # what stands in the file, for other programs
        b = model.read_bytes()
        said = json.loads(json.loads(b[8:8 + struct.unpack("<Q", b[:8])[0]])["__metadata__"]["lightcone.model"])
        self.assertEqual(said["inputs"]["features"], FEATURES)
        self.assertEqual(said["outputs"], {"classes": [k[0] for k in KINDS], "label": "species", "task": "classification"})
        self.assertNotIn(str(self.d), json.dumps(said))

    def test_rows_that_are_skipped_and_numbers_for_what_is_missing(self):
        self.penguins("train.csv", 120)
        self.penguins("test.csv", 60, missing=False, row=(7, 4, ""))
        out, model = self.trained(self.table(missing="skip"))
        self.assertIn("113 samples of [4]", out)
        self.assertIn("59 held out; 8 rows with missing cells left out\n", out)
        got = self.answers(model, self.d / "test.csv")
        self.assertEqual([int(g["row"]) for g in got], [k for k in range(60) if k != 7])
        self.assertIn("1 row with missing cells left out", self.said)
        _, model = self.trained(self.table(missing=200, na_values=["?"]))
        self.penguins("test.csv", 60, missing=False, row=(7, 4, "?"))
        filled = self.answers(model, self.d / "test.csv")[7]
        rows = (self.d / "test.csv").read_text().splitlines()
        cells = list(csv.reader([rows[8]]))[0]
        for cell in ("", "NA", "200"):
            cells[4] = cell
            (self.d / "one.csv").write_text(rows[0] + "\n" + ",".join('"%s"' % c for c in cells) + "\n")
            one = self.answers(model, self.d / "one.csv")[0]
            self.assertEqual((one["class"], one["probability"]), (filled["class"], filled["probability"]))

    def test_numbers_are_labels_as_before(self):
        with open(self.d / "train.csv", "w") as f:
            f.writelines("%.3f,%.3f,%d\n" % (self.random.gauss(k % 2 * 3, 0.5), self.random.gauss(0, 1), k % 2) for k in range(80))
        out, model = self.trained(self.table(test=None, label=None, features=None, header=False, shape=[2], classes=2, missing=None, standardize=None))
        (self.d / "new.csv").write_text("0,0\n3,0\n")
        self.assertEqual([g["class"] for g in self.answers(model, self.d / "new.csv")], ["0", "1"])
        (self.d / "new.csv").write_text("0,0,1\n3,0,0\n")
        self.assertEqual([g["class"] for g in self.answers(model, self.d / "new.csv")], ["0", "1"])
        (self.d / "new.npy").write_bytes(npy("<f8", [2, 2], struct.pack("<4d", 0, 0, 3, 0)))
        self.assertEqual([g["class"] for g in self.answers(model, self.d / "new.npy")], ["0", "1"])
        (self.d / "new.csv").write_text("0\n3\n")
        self.refuses(run("predict", model, self.d / "new.csv"), "there is no column '1': the first row has 1 cells")

    def test_a_regression(self):
        def values(name, count):
            wanted = []
            with open(self.d / name, "w") as f:
                f.write("rooms,price,size\n")
                for _ in range(count):
                    rooms, size = self.random.randint(1, 6), self.random.uniform(30, 200)
                    wanted.append(20000 * rooms + 1500 * size + self.random.gauss(0, 9000))
                    f.write("%d,%.2f,%.1f\n" % (rooms, wanted[-1], size))
            return wanted
        values("train.csv", 300)
        wanted = values("test.csv", 100)
        c = self.table(label="price", features=None, classes=None, shape=[2], task="regression")
        c["train"]["steps"] = 150
        out, model = self.trained(c)
        self.assertIn("300 samples of [2] to learn from, 100 held out", out)
        got = [float(g["value"]) for g in self.answers(model, self.d / "test.csv")]
        mean = sum(wanted) / 100
        r2 = 1 - sum((g - w) ** 2 for g, w in zip(got, wanted, strict=True)) / sum((w - mean) ** 2 for w in wanted)
        self.assertGreater(r2, 0.9)
        self.assertAlmostEqual(r2, self.measured(out, "r2"), delta=2e-4)
        self.assertEqual([j["value"] for j in self.answers(model, self.d / "test.csv", form="json")], got)
        self.assertRegex(self.answers(model, self.d / "test.csv", form="text")[0], r"test.csv\[0\]  [\d.]+$")

    @unittest.skipUnless(MNIST.exists(), "../shared/data is not here")
    def test_real_digits_from_arrays_and_pictures(self):
        pixels = gzip.open(MNIST / "t10k-images-idx3-ubyte.gz").read()[16:]
        labels = gzip.open(MNIST / "t10k-labels-idx1-ubyte.gz").read()[8:]
        part = lambda a, b: pixels[784 * a:784 * b]
        for name, a, b in (("train", 0, 3000), ("test", 3000, 3400)):
            (self.d / (name + ".x")).write_bytes(idx([b - a, 28, 28], part(a, b)))
            (self.d / (name + ".y")).write_bytes(idx([b - a], labels[a:b]))
        c = self.table()
        c["data"] = {"format": "idx", "train": ["train.x", "train.y"], "test": ["test.x", "test.y"], "mean": [0.1307], "std": [0.3081]}
        c["model"]["hidden"], c["train"] = [64], {"steps": 300, "batch": 32, "lr": 0.003}
        out, model = self.trained(c)
        got = self.answers(model, self.d / "test.x")
        right = sum(int(g["class"]) == y for g, y in zip(got, labels[3000:3400], strict=True))
        self.assertGreater(right, 340)
        self.assertAlmostEqual(right / 4, self.measured(out), delta=0.26)
        (self.d / "test.npy").write_bytes(npy("|u1", [400, 28, 28], part(3000, 3400)))
        same = [(g["class"], g["probability"]) for g in got]
        self.assertEqual([(g["class"], g["probability"]) for g in self.answers(model, self.d / "test.npy")], same)
        (self.d / "digits/more").mkdir(parents=True)
        for k in range(20):
            one = part(3000 + k, 3001 + k)
            (self.d / "digits" / ("more/" if k > 9 else "") / ("%02d.png" % k)).write_bytes(png(28, 28, [v for v in one for _ in range(3)]))
        (self.d / "digits/notes.txt").write_text("no picture")
        r = run("predict", model, self.d / "digits")
        if b"no decoders" in r.stderr:
            self.skipTest("this build has no decoders of pictures")
        self.assertIn("1 file is no picture and left out", r.stderr.decode())
        of_pictures = self.answers(model, self.d / "digits")
        self.assertEqual([pathlib.Path(g["input"]).name for g in of_pictures], ["%02d.png" % k for k in range(20)])
        self.assertEqual([(g["class"], g["row"]) for g in of_pictures], [(c, "") for c, _ in same[:20]])
        for g, (_, p) in zip(of_pictures, same):
            self.assertAlmostEqual(float(g["probability"]), float(p), delta=1e-5)
        # colours become grey as Pillow's convert("L") makes them
        colours = [(v, v // 2, 255 - v) for v in part(3000, 3001)]
        (self.d / "colours.png").write_bytes(png(28, 28, [v for c in colours for v in c]))
        (self.d / "grey.npy").write_bytes(npy("|u1", [1, 28, 28], bytes((19595 * r + 38470 * g + 7471 * b + 0x8000) >> 16 for r, g, b in colours)))
        both = [self.answers(model, self.d / name, top=10) for name in ("colours.png", "grey.npy")]
        for g, h in zip(*both, strict=True):
            self.assertEqual(g["class"], h["class"])
            self.assertAlmostEqual(float(g["probability"]), float(h["probability"]), delta=1e-5)
        (self.d / "few.npy").write_bytes(npy("|u1", [1, 27, 28], bytes(27 * 28)))
        self.refuses(run("predict", model, self.d / "few.npy"), "a sample is [27, 28], the model was trained on [28, 28]")
        (self.d / "few.npy").write_bytes(npy("<f4", [1, 28, 28], bytes(4 * 28 * 28)))
        self.refuses(run("predict", model, self.d / "few.npy"), "it holds numbers, the model was trained on bytes")

    def test_channels_first_and_last(self):
        size, count = 6, 60
        pixel = lambda y, c: min(255, max(0, int(self.random.gauss(170 if c == y else 90, 15))))
        last = [[[pixel(k % 3, c) for c in range(3)] for _ in range(size * size)] for k in range(count)]
        flat = lambda pictures: bytes(v for p in pictures for colours in p for v in colours)
        with zipfile.ZipFile(self.d / "train.npz", "w") as z:
            z.writestr("x.npy", npy("|u1", [count, size, size, 3], flat(last)))
            z.writestr("y.npy", npy("<i8", [count], struct.pack("<%dq" % count, *(k % 3 for k in range(count)))))
        c = self.table()
        c["data"] = {"format": "npz", "train": "train.npz", "shape": [3, size, size], "classes": 3, "held_out": 0.2, "mean": [0.5, 0.4, 0.3], "std": [0.2, 0.3, 0.4]}
        out, model = self.trained(c)
        (self.d / "last.npy").write_bytes(npy("|u1", [count, size, size, 3], flat(last)))
        (self.d / "first.npy").write_bytes(npy("|u1", [count, 3, size, size], bytes(colours[c] for p in last for c in range(3) for colours in p)))
        answers = [[(g["class"], g["probability"]) for g in self.answers(model, self.d / name)] for name in ("last.npy", "first.npy")]
        self.assertEqual(*answers)
        self.assertGreater(sum(int(c) == k % 3 for k, (c, _) in enumerate(answers[0])), 50)
        (self.d / "one.png").write_bytes(png(size, size, flat(last[:1])))
        r = run("predict", model, self.d / "one.png", "--format", "json")
        if b"no decoders" not in r.stderr:
            of_picture = json.loads(r.stdout)[0]
            self.assertEqual(of_picture["class"], answers[0][0][0])
            self.assertAlmostEqual(of_picture["probability"], float(answers[0][0][1]), delta=1e-5)

    def photos(self, folder, classes, count, size=40):
        """Pictures of one colour each, a folder for a class."""
        for channel, name in enumerate(classes):
            (self.d / folder / name).mkdir(parents=True)
            for k in range(count):
                noise = self.random.randbytes(3 * size * (size - 8))
                values = [(150 if at % 3 == channel else 60) + byte // 4 for at, byte in enumerate(noise)]
                (self.d / folder / name / ("%d.png" % k)).write_bytes(png(size, size - 8, values))

    def test_folders_of_pictures(self):
        self.photos("photos", ["blue", "green", "red"], 12)
        self.photos("others", ["blue", "green", "red"], 4, 48)
        (self.d / "photos/readme").write_text("x")
        (self.d / "photos/blue/notes.txt").write_text("x")
        (self.d / "photos/red/.hidden").write_text("x")
        (self.d / "others/red/Thumbs.db").write_text("x")
        c = {"model": {"kind": "resnet", "depth": 8, "width": 4},
             "data": {"format": "images", "train": "photos", "test": "others", "shape": [3, 24, 24], "resize": 28, "classes": 3, "mean": [0.4, 0.4, 0.4], "std": [0.2, 0.2, 0.2]},
             "train": {"steps": 30, "batch": 12, "optimizer": "adam", "lr": 0.01}, "evaluate": {"every": 30}, "log": {"every": 30}}
        r = self.train(c)
        if b"no decoders" in r.stderr:
            self.skipTest("this build has no decoders of pictures")
        out, model = self.trained(c)
        self.assertRegex(out, r"\nskipped     4 files in the folders: \S*readme \(beside the folders of the classes\), \S*notes.txt "
                              r"\(not .jpg, .jpeg or .png\), \S*.hidden \(not .jpg, .jpeg or .png\) and 1 more\n")
        got = self.answers(model, self.d / "others")
        right = sum(pathlib.Path(g["input"]).parent.name == g["class"] for g in got)
        self.assertEqual(len(got), 12)
        self.assertAlmostEqual(100 * right / 12, self.measured(out), delta=0.01)
        self.assertGreater(right, 9)
        # one alone is what it is among others
        one = self.answers(model, self.d / "others/red/2.png", form="json", top=3)[0]
        self.assertNotIn("row", one)
        beside = [g for g in got if g["input"].endswith("red/2.png")][0]
        self.assertEqual(one["class"], beside["class"])
        self.assertAlmostEqual(one["probability"], float(beside["probability"]), delta=1e-5)
        # what cannot be read
        (self.d / "photos/blue/torn.png").write_bytes(b"no picture")
        self.refuses(run("predict", model, self.d / "photos/blue/torn.png"), "torn.png: neither a JPEG nor a PNG")
        self.refuses(run("predict", model, self.d / "photos/blue/1.png", self.d / "photos/blue/notes.txt"), "notes.txt: neither a JPEG nor a PNG")
        self.refuses(self.train(c), "torn.png: neither a JPEG nor a PNG")
        c["data"]["unreadable"] = "skip"
        out, _ = self.trained(c)
        self.assertIn("36 samples", out)
        self.assertIn("skipped     5 files in the folders: ", out)
        c["data"]["unreadable"] = "ignore"
        self.refuses(self.train(c), 'data.unreadable is "ignore", it must be one of error, skip')
        (self.d / "empty").mkdir()
        self.refuses(run("predict", model, self.d / "empty"), "no .jpg, .jpeg or .png is in this folder")

    def test_wrong_inputs_and_models_are_one_sentence(self):
        self.penguins("train.csv", 60, missing=False)
        self.penguins("test.csv", 30, missing=False)
        _, model = self.trained(self.table(missing=None))
        bad = lambda text, *words: ((self.d / "in.csv").write_text(text), self.refuses(run("predict", model, self.d / "in.csv"), *words))
        bad("bill_length,bill_depth,mass\n1,2,3\n", "in.csv: there is no column 'flipper'; it has 'bill_length', 'bill_depth', 'mass'")
        bad("bill_length,bill_depth,mass,flipper,mass\n1,2,3,4,5\n", "several columns are called 'mass'")
        bad("bill_length,bill_depth,mass,flipper\n1,2,3,4\n1,2,3,wide\n", "line 3, column 4: 'wide' is not a number")
        bad("bill_length,bill_depth,mass,flipper\n1,2,3,NA\n", "line 2, column 'flipper': the cell is missing")
        bad("bill_length,bill_depth,mass,flipper\n1,2,3,inf\n", "line 2, column 'flipper': inf is no finite number")
        bad("bill_length,bill_depth,mass,flipper\n1,2,3\n", "line 2, column 3: the last cell of its row, the first row has 4")
        self.refuses(run("predict", model, self.d / "none.csv"), "none.csv: there is no such file")
        self.refuses(run("predict", model, self.d), "a folder, and the model was trained on rows of 4 numbers")
        (self.d / "x.png").write_bytes(png(1, 1, [0, 0, 0]))
        self.refuses(run("predict", model, self.d / "x.png"), "a picture, and the model was trained on rows of 4 numbers")
        # nothing is written where something is wrong
        self.refuses(run("predict", model, self.d / "test.csv", self.d / "in.csv", "-o", self.d / "out.txt"), "line 2")
        self.assertFalse((self.d / "out.txt").exists())
        self.refuses(run("predict", model, self.d / "test.csv", "--format", "xml"), "'xml' is none of text, csv, json")
        self.refuses(run("predict", model, self.d / "test.csv", "--top", "0"), "--top")
        self.refuses(run("predict", model), "INPUT is required")
        # models
        b = model.read_bytes()
        n = struct.unpack("<Q", b[:8])[0]
        head = json.loads(b[8:8 + n])

        def changed(change, *words, of="test.csv"):
            other = json.loads(json.dumps(head))
            said = json.loads(other["__metadata__"]["lightcone.model"])
            change(said)
            other["__metadata__"]["lightcone.model"] = json.dumps(said)
            self.written(other, b[8 + n:])
            self.refuses(run("predict", self.d / "m.safetensors", self.d / of), *words)
        (self.d / "large.csv").write_text("bill_length,bill_depth,mass,flipper\n1e30,1e30,1e30,1e30\n")
        changed(lambda s: s["inputs"].update(std=[1e-30] * 4), "large.csv: row 0: what the model says is no number", of="large.csv")
        changed(lambda s: s.update(version=2), "m.safetensors", "are not of version 1")
        changed(lambda s: s["model"].update(kind="cnn"), 'model.kind is "cnn", it must be one of')
        changed(lambda s: s["model"].update(hidden=[8]), "'layers.0.bias', which is f32 [8]")
        changed(lambda s: s["model"].update(kind="llama", hidden=None), "model.")
        changed(lambda s: s["model"].update(speed=1), "there is no model.speed")
        changed(lambda s: s["inputs"].update(shape=[5]), "inputs.mean is ", "a list of 5 numbers")
        changed(lambda s: s["inputs"].update(shape=[10 ** 6, 10 ** 6]), "more than a billion")
        changed(lambda s: s["inputs"].update(std=[0, 1, 1, 1]), "inputs.std is ")
        changed(lambda s: s["inputs"].pop("scale"), "inputs.scale is missing")
        changed(lambda s: s["inputs"].update(missing="fill"), "inputs.fill goes with")
        changed(lambda s: s["inputs"].update(features=["a"]), "inputs.features must name as many columns")
        changed(lambda s: s["outputs"].update(classes=["a"]), "names fewer than two classes")
        changed(lambda s: s["outputs"].update(classes=["a", "b"]), "'layers.1.")
        changed(lambda s: s.pop("outputs"), 'the section "outputs" is missing')
        for text, words in (("{", "are no JSON"), ("[1]", "are not of version 1"), ('{"version": 1, "model": {"kind": ' + "[" * 200000 + "]" * 200000 + "}}", "nest too deeply")):
            head["__metadata__"]["lightcone.model"] = text
            self.written(head, b[8 + n:])
            self.refuses(run("predict", self.d / "m.safetensors", self.d / "test.csv"), words)
        del head["__metadata__"]
        self.written(head, b[8 + n:])
        self.refuses(run("predict", self.d / "m.safetensors", self.d / "test.csv"), "it does not say what it was trained on", "lightcone generate")
        self.refuses(run("predict", SOURCE / "models/story/story.gguf", self.d / "test.csv"), "it does not say what it was trained on")

    def written(self, head, rest):
        text = json.dumps(head).encode()
        text += b" " * (-len(text) % 8)
        (self.d / "m.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + rest)

    def test_wrong_tables_are_one_sentence(self):
        def bad(row, *words, **more):
            self.penguins("train.csv", 60, missing=False, row=row)
            self.penguins("test.csv", 30, missing=False)
            self.refuses(self.train(self.table(**{"missing": None, **more})), *words)
        bad((4, 3, "deep"), "train.csv: line 6, column 4: 'deep' is not a number")
        bad((4, 3, ""), "line 6, column 'bill_depth': the cell is missing; data.missing says what becomes of it")
        bad((4, 3, "NULL"), "line 6, column 'bill_depth': the cell is missing")
        bad((4, 3, "-inf"), "line 6, column 'bill_depth': -inf is no finite number")
        bad((4, 0, ""), "line 6, column 'species': the label is missing", missing="mean")
        bad((4, 0, "Emperor"), "the column 'species' has 4 different labels ('Adelie', 'Chinstrap, the', 'Emperor', 'Gentoo'), data.classes says 3")
        bad(None, "there is no column 'kind'; it has 'species', 'island'", label="kind")
        bad(None, "there is no column 'wings'", features=["mass", "wings"])
        bad(None, "data.features names the label, 'species'", features=["mass", "species"])
        bad(None, "data.shape must be [features] for csv, and data.features names 4 columns", shape=[5])
        bad(None, "line 2, column 2: 'Dream' is not a number", features=None, shape=[5])
        bad(None, 'data.missing is "median", it must be one of error, skip, mean, or a number', missing="median")
        bad(None, "line 2, column 'species': 'Adelie' is not a number, which a regression learns", task="regression", classes=None)
        self.penguins("train.csv", 60, missing=False)
        self.penguins("test.csv", 30, missing=False, row=(2, 0, "Emperor"))
        self.refuses(self.train(self.table()), "test.csv: line 4, column 'species': 'Emperor' is none of the classes to learn from: 'Adelie', 'Chinstrap, the', 'Gentoo'")
        (self.d / "train.csv").write_text("a,b,label\n" + "NA,1,x\nNA,2,y\n" * 20)
        self.refuses(self.train(self.table(label="label", features=None, shape=[2], classes=2, test=None)), "the column 'a' has no number in any row to learn from")

    def test_the_help_teaches(self):
        r = run("predict", "--help")
        self.assertEqual(r.returncode, 0)
        for words in ("lightcone predict mlp.run flowers.csv", "--top", "--format", "input, row, rank, class, probability", "best.safetensors", "CSV", "folders"):
            self.assertIn(words, r.stdout.decode())


unittest.main(argv=[sys.argv[0]], verbosity=1)
