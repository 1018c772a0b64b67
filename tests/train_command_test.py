#!/usr/bin/env python3
"""`lightcone train` trains every kind of model, resumes a killed run with the same bits, and refuses wrong data and configurations.

    train_command_test.py PATH/TO/lightcone SOURCE_DIRECTORY
"""
import csv
import json
import os
import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree
import zlib

LIGHTCONE, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
FOLDER = SOURCE.parent / "shared/data/llm/stories260K/hf"  # a small checkpoint of Hugging Face's kind


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
    """Of a safetensors file, by name."""
    b = pathlib.Path(path).read_bytes()
    n = struct.unpack("<Q", b[:8])[0]
    head = json.loads(b[8:8 + n])
    head.pop("__metadata__", None)
    return {k: b[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]] for k, v in head.items()}


class Train(unittest.TestCase):
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

    def test_folders_of_pictures_and_weights_from_another_run(self):
        self.photos("photos", ["blue", "green", "red"])
        r = run("train", self.write(self.images(), "first"))
        if b"no decoders" in r.stderr:
            self.skipTest("this build has no decoders of pictures")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn("28 samples of [3, 32, 32] in 3 classes (blue, green, red) to learn from, 8 held out", r.stdout.decode())
        self.learns("first.run", 0.6)
        self.photos("pair", ["day", "night"])
        c = self.images(2, 1, weights="first.run/best.safetensors", reinitialize=["fc"])
        c["data"]["train"], c["train"]["lr"] = "pair", 0
        r = run("train", self.write(c, "second"))
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertRegex(r.stdout.decode(), r"weights     from '.*best.safetensors', but new ones for fc\n")
        before, after = tensors(self.d / "first.run/best.safetensors"), tensors(self.d / "second.run/best.safetensors")
        kept = [k for k in before if k.endswith(".weight") and not k.startswith("fc.")]
        self.assertGreater(len(kept), 30)
        for k in kept:
            self.assertEqual(before[k], after[k], k)  # with a rate of 0
        self.assertEqual((len(before["fc.weight"]), len(after["fc.weight"])), (3 * 64 * 4, 2 * 64 * 4))

    def test_wrong_pictures_and_weights(self):
        self.photos("photos", ["blue", "green", "red"], 6)
        self.photos("others", ["blue", "green", "yellow"], 2)
        if b"no decoders" in run("train", self.write(self.images(2))).stderr:
            self.skipTest("this build has no decoders of pictures")
        self.refuses(run("train", self.write(self.images(2))), "it has 3 folders, a class each, data.classes says 2")
        c = self.images()
        c["data"]["test"] = "others"
        del c["data"]["held_out"]
        self.refuses(run("train", self.write(c)), "the folder 'yellow' stands where data.train has 'red'")
        c = self.images()
        c["data"]["shape"] = [32, 32]
        self.refuses(run("train", self.write(c)), "data.shape must be [3, height, width]")
        c = self.images()
        c["data"]["mean"] = [0.5, 0.5]
        self.refuses(run("train", self.write(c)), "data.mean", "a list of 3 numbers")
        (self.d / "photos/blue/0.png").write_bytes(b"no picture")
        self.refuses(run("train", self.write(self.images())), "0.png")
        (self.d / "photos/blue/0.png").unlink()
        self.refuses(run("train", self.write(self.images(reinitialize=["fc"]))), "model.weights, which is missing")
        self.refuses(run("train", self.write(self.images(weights="none.safetensors"))), "none.safetensors")
        self.flowers()
        self.assertEqual(run("train", self.write(self.mlp(1), "flowers")).returncode, 0)
        self.refuses(run("train", self.write(self.images(weights="flowers.run/best.safetensors"))), "has no ", "model.reinitialize")
        c = self.mlp(1)
        c["model"].update(hidden=[8], weights="flowers.run/best.safetensors")
        self.refuses(run("train", self.write(c)), "'layers.0.weight' is F32 [16, 4]", "the model has f32 [8, 4]", "model.reinitialize")
        c["model"]["reinitialize"] = ["layer"]
        self.refuses(run("train", self.write(c)), "no layer and no parameter is called 'layer'")

    def test_a_classifier_on_csv(self):
        self.flowers()
        r = run("train", self.write(self.mlp()))
        self.assertEqual(r.returncode, 0, r.stderr)
        out = r.stdout.decode()
        self.assertEqual(r.stderr, b"")  # no terminal, no bar
        known = out.index("arithmetic"), out.index("data  "), out.index("step 5/60")
        self.assertEqual(sorted(known), list(known))
        self.assertRegex(out, r"parameters  131\n")
        self.assertRegex(out, r"step 60/60  held out: loss [\d.]+, accuracy [\d.]+ %")
        self.learns("c.run", 0.7)
        files = {p.name for p in (self.d / "c.run").iterdir()}
        self.assertEqual(files, {"best.safetensors", "run.safetensors", "log.jsonl", "log.csv", "loss.html"})
        self.assertEqual(set(tensors(self.d / "c.run/best.safetensors")), {"layers.%d.%s" % (k, n) for k in (0, 1) for n in ("weight", "bias")})

    def test_logs_and_the_page_can_be_read(self):
        self.flowers()
        self.assertEqual(run("train", self.write(self.mlp(), "a<b&c")).returncode, 0)
        lines = self.lines("a<b&c.run")
        self.assertEqual([l["step"] for l in lines], list(range(5, 61, 5)))
        self.assertEqual([l["step"] for l in lines if "held_out_loss" in l], [20, 40, 60])
        with open(self.d / "a<b&c.run/log.csv") as f:
            rows = list(csv.DictReader(f))
        for row, line in zip(rows, lines, strict=True):
            self.assertEqual(float(row["loss"]), line["loss"])
            self.assertEqual(row["held_out_accuracy"], "" if "accuracy" not in line else "%.9g" % line["accuracy"])
        page = (self.d / "a<b&c.run/loss.html").read_text()
        tree = xml.etree.ElementTree.fromstring(page)
        svg = "{http://www.w3.org/2000/svg}"
        curves = {p.get("class"): p.get("points").split() for p in tree.iter(svg + "polyline")}
        self.assertEqual({k: len(v) for k, v in curves.items()}, {"raw": 12, "line": 12, "held": 3})
        self.assertEqual(len(list(tree.iter(svg + "circle"))), 3)
        self.assertIn("a&lt;b&amp;c", page)
        self.assertNotIn("src=", page)
        self.assertNotIn("href=", page)

    def test_resumed_is_the_same_as_not_stopped(self):
        self.flowers()
        config = self.write(self.mlp())
        self.assertEqual(run("train", config, "-o", self.d / "whole").returncode, 0)
        # killed at any moment, again and again
        r = None
        for k in range(30):
            p = subprocess.Popen([LIGHTCONE, "train", config, "-o", self.d / "parts", "--resume"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            try:
                r = p.communicate(timeout=0.25 + 0.05 * k)
                if p.returncode == 0:
                    break
            except subprocess.TimeoutExpired:
                p.kill()
                p.communicate()
        self.assertEqual(p.returncode, 0, r)
        self.assertEqual(tensors(self.d / "whole/run.safetensors"), tensors(self.d / "parts/run.safetensors"))
        self.assertEqual(tensors(self.d / "whole/best.safetensors"), tensors(self.d / "parts/best.safetensors"))
        without_time = lambda folder: [{k: v for k, v in l.items() if k not in ("seconds", "rate")} for l in self.lines(folder)]
        self.assertEqual(without_time("whole"), without_time("parts"))

    def test_a_run_killed_before_its_first_line_of_the_log(self):
        self.flowers()
        config = self.write(self.mlp(steps=1000000, evaluate={"every": 1000000}, save={"every": 1}, log={"every": 1000000}))
        for resumed in (False, True):
            p = subprocess.Popen([LIGHTCONE, "train", config, "--resume"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.addCleanup(p.kill)
            said = p.stdout.readline()
            while b"data  " not in said or (resumed and b"resumed " not in said):
                line = p.stdout.readline()
                self.assertTrue(line or p.poll() is None, said)
                said += line
            while not (self.d / "c.run/run.safetensors").exists():
                self.assertIsNone(p.poll())
                time.sleep(0.01)
            p.kill()
            p.communicate()
            self.assertEqual((self.d / "c.run/log.jsonl").read_bytes(), b"")

    def test_ctrl_c_saves(self):
        self.flowers()
        config = self.write(self.mlp(steps=1000000, save={"every": 1000000}))
        p = subprocess.Popen([LIGHTCONE, "train", config], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while b"step 25/" not in p.stdout.readline():
            pass
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=60)
        self.assertEqual((p.returncode, err), (130, b""))
        self.assertRegex(out.decode(), r"stopped and saved after step \d+; --resume goes on")
        step = int(out.decode().split("after step ")[1].split(";")[0])
        p = subprocess.Popen([LIGHTCONE, "train", config, "--resume"], stdout=subprocess.PIPE)
        said = b""
        while b"\nstep " not in said:
            said += p.stdout.readline()
        p.terminate()
        p.communicate()
        self.assertEqual(p.returncode, 143)
        self.assertIn(b"resumed     at step %d\n" % step, said)

    def test_a_run_is_not_lost_by_mistake(self):
        self.flowers()
        config = self.write(self.mlp(steps=10))
        self.assertEqual(run("train", config).returncode, 0)
        self.refuses(run("train", config), "holds a run already", "--resume", "--overwrite")
        self.assertEqual(run("train", config, "--overwrite").returncode, 0)
        kept = (self.d / "c.run/run.safetensors").read_bytes()
        self.flowers(cell="nan")
        self.refuses(run("train", config, "--overwrite"), "the cell is missing")
        self.assertEqual((self.d / "c.run/run.safetensors").read_bytes(), kept)
        self.flowers()
        anew = self.mlp(steps=1000000, save={"every": 1000000, "folder": "c.run"})
        p = subprocess.Popen([LIGHTCONE, "train", self.write(anew, "anew"), "--overwrite"], stdout=subprocess.PIPE)
        while b"step 5/" not in p.stdout.readline():
            pass
        p.kill()
        p.communicate()
        self.assertFalse((self.d / "c.run/run.safetensors").exists())
        self.assertEqual(run("train", config).returncode, 0)
        other = self.mlp(steps=10)
        other["train"]["lr"] = 0.02
        self.refuses(run("train", self.write(other), "--resume"), "another configuration", "train.lr = 0.01")
        other["train"].update(lr=0.01, steps=20)
        r = run("train", self.write(other), "--resume")
        self.assertIn(b"resumed     at step 10\n", r.stdout)
        self.assertEqual(r.returncode, 0, r.stderr)

    def test_one_run_at_a_time_works_in_a_folder(self):
        self.flowers()
        config, folder = self.write(self.mlp(steps=1000000, save={"every": 1000000})), self.d / "c.run"
        first = subprocess.Popen([LIGHTCONE, "train", config], stdout=subprocess.PIPE)
        while b"step 5/" not in first.stdout.readline():
            pass
        before = set(os.listdir(folder))
        for flags in ([], ["--overwrite"], ["--resume"]):
            self.refuses(run("train", config, *flags), "another process is at work in this folder")
        after = set(os.listdir(folder))  # nothing was removed, and no file says that it is locked
        self.assertTrue(before <= after <= {"log.csv", "log.jsonl", "best.safetensors"}, after)
        self.assertIsNone(first.poll())
        first.kill()  # which leaves no lock behind
        first.wait()
        first.stdout.close()
        short = self.write(self.mlp(steps=2), "short")
        self.assertEqual(run("train", short, "-o", folder, "--overwrite").returncode, 0)

    def test_what_links_lead_to_is_left_alone(self):
        self.flowers()
        config, folder, other = self.write(self.mlp(steps=4)), self.d / "c.run", self.d / "other"
        names = ["run.safetensors", "best.safetensors", "model.gguf", "log.jsonl", "log.csv", "loss.html"]
        folder.mkdir()
        other.mkdir()
        for name in names:
            (other / name).write_text("mine")
            (folder / name).symlink_to(other / name)
        for name in ("model", "adapter"):
            (other / name).mkdir()
            (other / name / "model.safetensors").write_text("mine")
            (other / name / "adapter_model.safetensors").write_text("mine")
            (folder / name).symlink_to(other / name)
        (folder / ".lightcone-1-2.tmp").write_text("of a run that was killed")
        r = run("train", config, "--overwrite")
        self.assertEqual(r.returncode, 0, r.stderr)
        for path in other.rglob("*"):
            if path.is_file():
                self.assertEqual(path.read_text(), "mine", path)
        for path in folder.rglob("*"):
            self.assertFalse(path.is_symlink(), path)
        self.assertFalse((folder / ".lightcone-1-2.tmp").exists())
        (self.d / "link").symlink_to(folder)
        self.refuses(run("train", config, "-o", self.d / "link", "--overwrite"), "is a link to a folder")
        self.assertEqual(run("train", config, "-o", self.d / "link", "--resume").returncode, 0)

    def test_early_stop(self):
        self.flowers()
        c = self.mlp(steps=100000, evaluate={"every": 5, "patience": 2})
        c["train"]["lr"] = 0  # nothing gets better
        r = run("train", self.write(c))
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn("stopped early: no better for 2 evaluations, after 15 steps", r.stdout.decode())

    def test_pictures(self):
        labels, pixels = self.pictures()
        (self.d / "x.idx").write_bytes(idx([96, 8, 8], pixels))
        (self.d / "y.idx").write_bytes(idx([96], labels))
        for model in ({"kind": "vgg", "depth": 2, "width": 4}, {"kind": "resnet", "depth": 8, "width": 4}, {"kind": "mlp", "hidden": [8]}):
            c = {"model": model, "data": {"format": "idx", "train": ["x.idx", "y.idx"], "shape": [8, 8], "classes": 2},
                 "train": {"steps": 20, "batch": 16, "optimizer": "adam", "lr": 0.02}, "save": {"folder": model["kind"]}, "log": {"every": 2}}
            r = run("train", self.write(c))
            self.assertEqual(r.returncode, 0, r.stderr)
            self.learns(model["kind"], 0.7)

    def test_cifar_and_npy(self):
        rows = b"".join(bytes([k % 10]) + bytes([25 * (k % 10)] * 3072) for k in range(40))
        (self.d / "batch.bin").write_bytes(rows)
        c = {"model": {"kind": "vgg", "depth": 1, "width": 4}, "data": {"format": "cifar10", "train": "batch.bin", "augment": True},
             "train": {"steps": 6, "batch": 8, "optimizer": "sgd", "lr": 0.05}}
        r = run("train", self.write(c))
        self.assertEqual(r.returncode, 0, r.stderr)
        x = [self.random.gauss(k % 2, 0.3) for k in range(64) for _ in range(3)]
        (self.d / "x.npy").write_bytes(npy("<f4", [64, 3], x))
        (self.d / "y.npy").write_bytes(npy("<i8", [64], [k % 2 for k in range(64)]))
        c = self.mlp(steps=30, data={"format": "npy", "train": ["x.npy", "y.npy"], "shape": [3], "classes": 2})
        r = run("train", self.write(c, "n"))
        self.assertEqual(r.returncode, 0, r.stderr)
        self.learns("n.run", 0.8)

    def language(self, **more):
        c = {"model": {"kind": "llama", "layers": 1, "width": 32, "heads": 2, "kv_heads": 1, "context": 16, "vocabulary": 300},
             "data": {"format": "text", "train": "t.txt"},
             "train": {"steps": 60, "batch": 8, "lr": 0.01, "clip": 1}, "evaluate": {"every": 30}, "log": {"every": 5}}
        for key, value in more.items():
            c[key].update(value)
        return c

    def test_language_models_can_speak(self):
        (self.d / "t.txt").write_text("the cat sat on the mat and the dog sat on the rug. " * 80)
        for kind in ("bpe", "char"):
            c = self.language(model={"tokenizer": kind, "vocabulary": 300 if kind == "bpe" else 40})
            r = run("train", self.write(c, kind))
            self.assertEqual(r.returncode, 0, r.stderr)
            self.assertIn("perplexity", r.stdout.decode())
            self.learns(kind + ".run", 0.5)
            r = run("generate", self.d / (kind + ".run") / "model.gguf", "the cat", "-t", "0", "-n", "8", "-q")
            self.assertEqual(r.returncode, 0, r.stderr)
            said = r.stdout.decode().split()
            self.assertEqual(said[:2], ["the", "cat"])
            self.assertLessEqual(set(said[:-1]), set("the cat sat on the mat and the dog sat on the rug.".split()), said)

    def test_a_language_model_resumes(self):
        (self.d / "t.txt").write_text("a rose is a rose is a rose. " * 60)
        config = self.write(self.language(train={"steps": 20}))
        self.assertEqual(run("train", config, "-o", self.d / "whole", "--threads", "1").returncode, 0)
        half = self.write(self.language(train={"steps": 20}), "half")
        p = subprocess.Popen([LIGHTCONE, "train", half, "-o", self.d / "parts"], stdout=subprocess.PIPE)
        while b"step 5/" not in p.stdout.readline():
            pass
        p.send_signal(signal.SIGTERM)
        p.communicate()
        self.assertEqual(run("train", half, "-o", self.d / "parts", "--resume").returncode, 0)
        for name in ("run.safetensors", "best.safetensors"):
            self.assertEqual(tensors(self.d / "whole" / name), tensors(self.d / "parts" / name))
        (self.d / "t.txt").write_text("a nose is a nose is a nose. " * 60)
        self.refuses(run("train", half, "-o", self.d / "parts", "--resume"), "another vocabulary")

    def test_a_checkpoint_goes_on_learning(self):
        (self.d / "t.txt").write_text("The owl said: boats are for ponds, kites are for hills.\n\n" * 60)
        c = example("finetune")
        c["model"].update(weights=str(SOURCE / "models/story/story.gguf"), context=32)
        c["data"]["train"] = "t.txt"
        c["train"].update(steps=30, lr=1e-3, warmup=3)
        c["evaluate"] = {"every": 10, "samples": 8}
        r = run("train", self.write(c, "tuned"))
        self.assertEqual(r.returncode, 0, r.stderr)
        log = [json.loads(line) for line in (self.d / "finetune.run/log.jsonl").read_text().splitlines()]
        held = [line["held_out_loss"] for line in log if line.get("held_out_loss") is not None]
        self.assertEqual(log[0]["step"], 0)
        self.assertLess(held[-1], held[0] / 2)
        r = run("generate", self.d / "finetune.run/model.gguf", "The owl said:", "-t", "0", "-n", "20", "-q")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn("boats are for ponds", r.stdout.decode())
        # its own stories it knows: of 1,024 tokens that are all alike the loss would be 6.93
        stories = [run("generate", "builtin", "Once upon a time", "-n", "100", "--seed", str(k), "-q").stdout.decode() for k in range(4)]
        (self.d / "t.txt").write_text("\n\n".join(stories))
        c["train"].update(steps=1, warmup=0)
        c["save"] = {"folder": "known.run"}
        r = run("train", self.write(c, "known"))
        self.assertEqual(r.returncode, 0, r.stderr)
        known = json.loads((self.d / "known.run/log.jsonl").read_text().splitlines()[0])
        self.assertLess(known["held_out_loss"], 3)
        c["model"]["layers"] = 2
        self.refuses(run("train", self.write(c, "wrong")), "there is no model.layers; here \"model\" has context, kind, lora_alpha, lora_rank, lora_targets, weights")
        del c["model"]["layers"]
        c["train"]["stpes"] = 3
        self.refuses(run("train", self.write(c, "wrong")), "there is no train.stpes; did you mean steps?; here \"train\" has")
        del c["train"]["stpes"]
        c["evalaute"] = {}
        self.refuses(run("train", self.write(c, "wrong")), "there is no section \"evalaute\"; did you mean evaluate?; sections")
        del c["evalaute"]
        c["model"]["context"] = 100000
        self.refuses(run("train", self.write(c, "wrong")), "model.context is 100000", "was made for")
        c["model"]["weights"] = "none.gguf"
        self.refuses(run("train", self.write(c, "wrong")), "none.gguf")

    def test_adapters_go_on_learning(self):
        (self.d / "t.txt").write_text("The owl said: boats are for ponds, kites are for hills.\n\n" * 60)
        c = example("finetune")
        c["model"].update(weights=str(SOURCE / "models/story/story.gguf"), context=32, lora_rank=8, lora_targets=["q_proj", "v_proj", "down_proj"])
        c["data"]["train"] = "t.txt"
        c["train"].update(steps=60, lr=1e-2, warmup=3)
        c["evaluate"] = {"every": 30, "samples": 8}
        r = run("train", self.write(c, "adapted"))
        self.assertEqual(r.returncode, 0, r.stderr)
        log = [json.loads(line) for line in (self.d / "finetune.run/log.jsonl").read_text().splitlines()]
        held = [line["held_out_loss"] for line in log if line.get("held_out_loss") is not None]
        self.assertLess(held[-1], held[0] / 2)
        made = tensors(self.d / "finetune.run/adapter/adapter_model.safetensors")
        layers = {name.split("layers.")[1].split(".")[0] for name in made}
        self.assertEqual(len(made), len(layers) * 3 * 2)
        config = json.loads((self.d / "finetune.run/adapter/adapter_config.json").read_text())
        self.assertEqual((config["peft_type"], config["r"], config["lora_alpha"]), ("LORA", 8, 16))
        self.assertEqual(config["target_modules"], ["down_proj", "q_proj", "v_proj"])
        self.assertEqual(config["base_model_name_or_path"], str(SOURCE / "models/story/story.gguf"))
        # the model has them added
        r = run("generate", self.d / "finetune.run/model.gguf", "The owl said:", "-t", "0", "-n", "20", "-q")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn("boats are for ponds", r.stdout.decode())
        c["model"]["lora_targets"] = ["query"]
        self.refuses(run("train", self.write(c, "wrong"), "--overwrite"), "no layer is called 'query'")
        del c["model"]["lora_rank"]
        self.refuses(run("train", self.write(c, "wrong"), "--overwrite"), "model.lora_rank is missing")

    def test_answers_are_learned(self):
        c = example("finetune")
        c["model"].update(weights=str(SOURCE / "models/story/story.gguf"), context=48)
        c["data"] = {"format": "jsonl", "train": "t.jsonl", "held_out": 0.2}
        c["train"].update(steps=40, lr=1e-3, warmup=3)
        c["evaluate"] = {"every": 20, "samples": 8}
        question = "Tell me, dear owl, and tell me well, for I have to know it now: what are boats for?"
        line = {"prompt": question, "completion": " Boats are for ponds."}
        (self.d / "t.jsonl").write_text((json.dumps(line) + "\n") * 40 + "\n")
        r = run("train", self.write(c, "answers"))
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn("32 examples to learn from, 8 held out", r.stdout.decode())
        r = run("generate", self.d / "finetune.run/model.gguf", question, "-t", "0", "-n", "20", "-q")
        self.assertIn("Boats are for ponds.", r.stdout.decode())
        # the answer's tokens are learned, and not those of the question, which alone are more
        answers = int(re.search(r"(\d+) tokens of answers", (self.d / "finetune.run/loss.html").read_text())[1])
        self.assertEqual(answers % 40, 0)
        self.assertLess(answers // 40, 20)
        for text, words in (('{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}', "chat_template.jinja beside its safetensors"),
                            ('{"messages": [{"role": "usr", "content": "a"}, {"role": "assistant", "content": "b"}]}', "the role 'usr' is none of system, user, assistant and tool"),
                            ('{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": ""}]}', 'its "content" is empty'),
                            ('{"prompt": "a", "completion": ""}', 'its "completion" is empty'), ('{"text": ""}', 'its "text" is empty'),
                            ("[1]", "it is no object"), ("{", "it is no JSON"), ('{"prompt": "a"}', 'its "completion" is no text'),
                            ('{"q": "a"}', 'none of "messages", "prompt" and "text"'), ('{"messages": [{"role": "user", "content": "a"}]}', "nothing to learn")):
            (self.d / "t.jsonl").write_text(json.dumps(line) + "\n" + text + "\n")
            self.refuses(run("train", self.write(c, "wrong"), "--overwrite"), "line 2: ", words)
        (self.d / "t.jsonl").write_text("\n")
        self.refuses(run("train", self.write(c, "wrong"), "--overwrite"), "no example to learn from: ", "t.jsonl' has no line of JSON")
        (self.d / "t.jsonl").write_text((json.dumps(line) + "\n") * 2)
        self.refuses(run("train", self.write(c, "wrong"), "--overwrite"), "no example to hold out: of 2 data.held_out = 0.2 leaves none")
        (self.d / "t.jsonl").write_text((json.dumps(line) + "\n") * 20)
        c["model"]["context"] = 4
        self.refuses(run("train", self.write(c, "wrong"), "--overwrite"), "no example to learn from: the answers of all 16 begin behind 4 tokens: raise model.context")

    def test_examples_are_packed(self):
        c = example("finetune")
        c["model"].update(weights=str(SOURCE / "models/story/story.gguf"), context=64)
        c["data"] = {"format": "jsonl", "train": "t.jsonl", "held_out": 0.25}
        c["train"].update(steps=30, lr=1e-3, warmup=3)
        c["evaluate"] = {"every": 10, "samples": 0}
        lines = [{"prompt": "What are %s for?" % thing, "completion": " They are for %s." % place}
                 for thing, place in (("boats", "ponds"), ("kites", "hills and for the wind"))]
        (self.d / "t.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) * 20)
        first = {}
        for packing in (False, True):
            c["data"]["packing"], c["save"] = packing, {"folder": "packed.run" if packing else "alone.run"}
            r = run("train", self.write(c, "packing"))
            self.assertEqual(r.returncode, 0, r.stderr)
            said = re.search(r"30 examples to learn from, 10 held out; (\d+) tokens of answers; (\d+) rows to learn from, (\d+) % of all rows are tokens", r.stdout.decode())
            self.assertTrue(said, r.stdout.decode())
            first[packing] = [int(n) for n in said.groups()]
            self.assertEqual("data.packing puts several" in r.stdout.decode(), not packing)
        alone, packed = first[False], first[True]
        self.assertEqual(alone[:2], [packed[0], 30])
        self.assertLess(packed[1], 15)
        self.assertGreater(packed[2], 75)
        # what stands beside an example in its row changes nothing: the loss before the first step is the same
        held = [json.loads((self.d / f / "log.jsonl").read_text().splitlines()[0])["held_out_loss"] for f in ("alone.run", "packed.run")]
        self.assertAlmostEqual(held[0], held[1], delta=1e-4 * held[0])
        r = run("generate", self.d / "packed.run/model.gguf", "What are boats for?", "-t", "0", "-n", "20", "-q")
        self.assertIn("They are for ponds.", r.stdout.decode())
        # a run goes on as it was begun
        c["data"]["packing"] = False
        self.refuses(run("train", self.write(c, "packing"), "-o", self.d / "packed.run", "--resume"), "data.packing")

    @unittest.skipUnless(FOLDER.exists(), "../shared/data is not here")
    def test_conversations_are_written_as_the_checkpoint_says(self):
        shutil.copytree(FOLDER, self.d / "base")
        shutil.copy(FOLDER.parent / "tokenizer.bin", self.d / "base")
        (self.d / "base/chat_template.jinja").write_text(
            "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}")
        c = example("finetune")
        c["model"].update(weights="base", context=64)
        c["data"] = {"format": "jsonl", "train": "t.jsonl", "held_out": 0.2}
        c["train"].update(steps=60, lr=3e-3, warmup=3)
        c["evaluate"] = {"every": 30, "samples": 8}
        turns = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello Tom"}, {"role": "user", "content": "bye"}, {"role": "assistant", "content": "see you"}]
        (self.d / "t.jsonl").write_text((json.dumps({"messages": turns}) + "\n") * 30)
        r = run("train", self.write(c, "chats"))
        self.assertEqual(r.returncode, 0, r.stderr)
        r = run("generate", self.d / "finetune.run/model", "user: hi\nassistant:", "-t", "0", "-n", "12", "-q")
        self.assertIn("hello Tom", r.stdout.decode())
        (self.d / "base/chat_template.jinja").write_text("{# nothing #}")
        self.refuses(run("train", self.write(c, "chats"), "--overwrite"), "the answers of all 24 have no tokens: does the chat template write them?")

    def test_stories(self):
        c = example("stories")
        c["model"].update(layers=1, width=32, heads=2, kv_heads=1, intermediate=64, context=32)
        c["train"].update(steps=12, batch=4, warmup=2)
        c["evaluate"] = {"every": 6, "samples": 5}
        r = run("train", self.write(c))
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn("stories without end; 5 samples of 32 tokens held out", r.stdout.decode())
        # the model inside the command was trained on these stories
        def tokens(path):
            b = pathlib.Path(path).read_bytes()
            return b[b.index(b"tokenizer.ggml.tokens"):b.index(b"tokenizer.ggml.token_type")]
        self.assertEqual(tokens(self.d / "stories.run/model.gguf"), tokens(SOURCE / "models/story/story.gguf"))

    def test_bad_data_is_one_sentence(self):
        bad = lambda *words, **flowers: (self.flowers(**flowers), self.refuses(run("train", self.write(self.mlp())), *words))
        bad("label of sample 5", "is 3", "0 to 2", label="3")
        bad("label of sample 5", "is 0.5", "no whole number", label="0.5")
        bad("line 9, column 'd': the cell is missing", cell="nan")
        bad("line 9, column 'd'", "-inf is no finite number", cell="-inf")
        bad("line 9, column 5", cell="x")
        bad("too few", rows=1)
        bad("no samples", rows=0)
        self.flowers()
        c = self.mlp(data={"format": "csv", "train": "train.csv", "shape": [5], "classes": 3})
        self.refuses(run("train", self.write(c)), "4 columns beside the label", "says 5")
        self.refuses(run("train", self.write(self.mlp(data={"format": "csv", "train": "none.csv", "shape": [4], "classes": 3}))), "none.csv")
        self.refuses(run("train", self.write(self.mlp(train={"steps": 5, "batch": 500}))), "a batch of 500", "180 samples")

    def test_bad_pictures_are_one_sentence(self):
        labels, pixels = self.pictures(32)
        good = {"x.idx": idx([32, 8, 8], pixels), "y.idx": idx([32], labels)}
        c = {"model": {"kind": "vgg", "depth": 1, "width": 2}, "data": {"format": "idx", "train": ["x.idx", "y.idx"], "shape": [8, 8], "classes": 2},
             "train": {"steps": 2, "batch": 4}}
        for name, content, words in (("x.idx", b"PNG!" + pixels[0:20].__str__().encode(), ["x.idx"]), ("x.idx", good["x.idx"][:-5], ["x.idx", "only 2043 follow"]),
                                     ("y.idx", idx([32], [2] + labels[1:]), ["y.idx", "2"]), ("y.idx", idx([31], labels[1:]), ["31", "32"])):
            for n, b in {**good, name: content}.items():
                (self.d / n).write_bytes(b)
            self.refuses(run("train", self.write(c)), *words)
        for n, b in good.items():
            (self.d / n).write_bytes(b)
        c["data"]["shape"] = [9, 9]
        self.refuses(run("train", self.write(c)), "a sample is [8, 8], data.shape says [9, 9]")

    def test_bad_texts_are_one_sentence(self):
        (self.d / "t.txt").write_text("abc " * 200)
        (self.d / "other.txt").write_text("abc xyz " * 50)
        (self.d / "short.txt").write_text("abc")
        (self.d / "bytes.txt").write_bytes(b"abc\xff" * 100)
        char = {"tokenizer": "char", "vocabulary": 20}
        for more, words in (({"data": {"train": "bytes.txt"}}, ["UTF-8"]), ({"data": {"train": "short.txt"}}, ["less than one sample of 17"]),
                            ({"model": char, "data": {"test": "other.txt"}}, ["characters that the text to learn from has not"]),
                            ({"model": {"vocabulary": 20}}, ["a vocabulary of 20 pieces has no room"])):
            self.refuses(run("train", self.write(self.language(**more))), *words)

    def test_bad_configurations_are_one_sentence(self):
        self.flowers()
        c = self.mlp()
        c["train"]["learning_rate"] = 1
        self.refuses(run("train", self.write(c)), "there is no train.learning_rate", "lr")
        for section, key, value, word in (("train", "steps", 0, "at least 1"), ("train", "optimizer", "adamx", "sgd, adam"), ("model", "hidden", 3, "list"),
                                          ("train", "lr", "fast", "number"), ("model", "kind", "cnn", "resnet"), ("data", "format", "xls", "csv")):
            c = self.mlp()
            c[section][key] = value
            self.refuses(run("train", self.write(c)), section + "." + key, word)
        (self.d / "j.json").write_text("{\n  \"model\": }")
        self.refuses(run("train", self.d / "j.json"), "line 2")
        self.refuses(run("train", self.d / "none.json"), "none.json")
        self.refuses(run("train", "--example", "none"), "mlp, vgg, resnet, images, texts, pictures, llama, finetune, stories")
        c = self.mlp(model={"kind": "vgg", "depth": 3}, data={"format": "idx", "train": ["x", "y"], "shape": [7, 30], "classes": 2})
        self.refuses(run("train", self.write(c)), "model.depth is 3", "to nothing")
        c = self.mlp()
        c["speed"] = {}
        self.refuses(run("train", self.write(c)), "no section \"speed\"")

    def test_examples_are_whole(self):
        for name in ("mlp", "vgg", "resnet", "llama", "stories"):
            path = self.d / (name + ".json")
            path.write_bytes(run("train", "--example", name).stdout)
            r = run("train", path, "--plan")
            self.assertEqual(r.returncode, 0, r.stderr)
            self.assertRegex(r.stdout.decode(), r"parameters  \d+\nmemory      .*\narithmetic  [\d.]+ GFLOP")
            self.assertFalse((self.d / (name + ".run")).exists())
        self.assertIn("parameters  1771200\n", run("train", "--plan").stdout.decode())

    def test_a_step_that_gives_no_number(self):
        self.flowers()
        c = self.mlp()
        c["train"].update(optimizer="sgd", lr=1000)
        r = run("train", self.write(c, "large"))
        self.assertEqual(r.returncode, 1, r.stdout)
        self.assertIn("--resume --checked", r.stderr.decode())
        c["data"]["scale"] = 1e-25
        r = run("train", self.write(c, "larger"), "--checked")
        self.assertEqual(r.returncode, 1, r.stdout)
        self.assertRegex(r.stderr.decode(), r"holds NaN: it first appears in \w+ .*which reads .layers.0.weight.")

    def test_a_terminal_sees_a_bar(self):
        self.flowers()
        near, far = os.openpty()
        r = subprocess.Popen([LIGHTCONE, "train", self.write(self.mlp())], stdout=subprocess.DEVNULL, stderr=far)
        os.close(far)
        shown = b""
        try:
            while more := os.read(near, 65536):
                shown += more
        except OSError:  # the other end was closed
            pass
        os.close(near)
        self.assertEqual(r.wait(), 0)
        self.assertRegex(shown.decode(), r"step \d+/60 +\[#*\.*\] +\d+ %  loss [\d.]+  [\d.e+]+ samples/s  \d+:\d\d left")


unittest.main(argv=[sys.argv[0]], verbosity=1)
