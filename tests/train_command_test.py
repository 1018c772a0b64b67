#!/usr/bin/env python3
"""`lightcone train` trains classifiers on tables, arrays and pictures, stops early, logs what it does, and its examples are whole.

    train_command_test.py PATH/TO/lightcone SOURCE_DIRECTORY
"""
import csv
import os
import subprocess
import sys
import unittest
import xml.etree.ElementTree

from train_case import LIGHTCONE, Case, idx, npy, run, tensors


class Train(Case):
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

    def test_early_stop(self):
        self.flowers()
        c = self.mlp(steps=100000, evaluate={"every": 5, "patience": 2})
        c["train"]["lr"] = 0  # nothing gets better
        r = run("train", self.write(c))
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn("stopped early: no better for 2 evaluations, after 15 steps", r.stdout.decode())

    def test_examples_are_whole(self):
        for name in ("mlp", "vgg", "resnet", "llama", "stories"):
            path = self.d / (name + ".json")
            path.write_bytes(run("train", "--example", name).stdout)
            r = run("train", path, "--plan")
            self.assertEqual(r.returncode, 0, r.stderr)
            self.assertRegex(r.stdout.decode(), r"parameters  \d+\nmemory      .*\narithmetic  [\d.]+ GFLOP")
            self.assertFalse((self.d / (name + ".run")).exists())
        self.assertIn("parameters  1771200\n", run("train", "--plan").stdout.decode())

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
