#!/usr/bin/env python3
"""`lightcone train` refuses wrong data, weights and configurations in one sentence before the first step, and a loss that is no number after it.

    train_refusals_command_test.py PATH/TO/lightcone SOURCE_DIRECTORY
"""
import sys
import unittest

from train_case import Case, idx, run


class Train(Case):
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


unittest.main(argv=[sys.argv[0]], verbosity=1)
