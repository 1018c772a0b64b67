#!/usr/bin/env python3
"""`lightcone train` continues published networks of pictures as classifiers, and `lightcone predict` answers with the folders that it writes.

    picture_classifier_command_test.py PATH/TO/lightcone SOURCE_DIRECTORY

The networks are small ones of tests/goldens/picture_models.json, whose weights are a formula or drawn here.
"""
import json
import math
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
CASES = {}
for _case in json.loads((SOURCE / "tests/goldens/picture_models.json").read_text()):
    if "ForImageClassification" in _case["config"]["architectures"][0]:
        CASES.setdefault(_case["config"]["model_type"], _case)
FAMILIES = ("vit", "dinov2", "swin", "segformer", "convnext", "resnet", "efficientnet")
SIDE, STEPS, RATE = 32, 4, 0.05
COLOURS = {"blue": (40, 60, 220), "green": (30, 200, 60), "red": (220, 50, 40)}
# transformers' losses in f64 of steps on one batch: picture_classifier_peers_check.py prints and checks them
LOSSES = {
    "vit": [1.1183047173067282, 1.1160497941877057, 1.1139919286932036, 1.1121076588637606],
    "dinov2": [1.1099287085239675, 1.063524385906162, 1.0213646114522248, 0.9834212923194746],
    "swin": [1.2643880552211841, 1.2457876313926672, 1.2295444608897155, 1.2152899422673131],
    "segformer": [1.1168208671504882, 0.9395949497819096, 0.7412361775509116, 0.6757373243816077],
    "convnext": [1.282637575162183, 1.259591270567338, 1.2396680046470365, 1.2222644114056362],
    "resnet": [1.2895147912712235, 1.2567072962760937, 1.2301014163623731, 1.2082735628755028],
    "efficientnet": [12.531477690327113, 11.223753582190339, 9.956162952200138, 8.654201890683098],
}


def run(*args, **kw):
    return subprocess.run([LIGHTCONE, *map(os.fsencode, args)], capture_output=True, timeout=300, **kw)


def tensors(path):
    """Of a safetensors file: shape and bytes by name."""
    b = pathlib.Path(path).read_bytes()
    n = struct.unpack("<Q", b[:8])[0]
    head = json.loads(b[8:8 + n])
    head.pop("__metadata__", None)
    return {k: (v["shape"], b[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]]) for k, v in head.items()}


def write_tensors(path, all):
    head, data = {}, b""
    for name, (shape, bits) in all.items():
        head[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(bits)]}
        data += bits
    text = json.dumps(head).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_model(folder, family, by_formula=False, bare=False, width=None):
    """A network for three classes without names: with the weights of the goldens, or drawn; `bare`: without a head."""
    case = CASES[family]
    folder.mkdir(parents=True)
    settings = dict(case["config"])
    draw, all = random.Random(5), {}
    for i, (name, shape) in enumerate(case["tensors"]):
        count = math.prod(shape)
        is_norm = name.endswith("running_var") or (name.endswith("weight") and ("LayerNorm" in name or "layer_norm" in name))
        values = [0.4 * math.sin(1.3 * i + 0.7 * k + 0.1) + is_norm for k in range(count)]
        if not by_formula:
            one = len(shape) == 1 and name.endswith(("weight", "running_var", "lambda1", "layer_scale_parameter"))
            spread = 0.02 if one or len(shape) == 1 else 1 / math.sqrt(count / shape[0])
            values = [draw.gauss(1 if one else 0, spread) for _ in range(count)]
            if name.endswith("running_var"):
                values = [abs(v) for v in values]
        if bare and "classifier" in name:
            continue
        name = name.split(".", 1)[1] if bare else name  # as the class without a head writes them
        all[name] = (shape, struct.pack("<%df" % count, *values))
    if bare:
        settings["architectures"] = [settings["architectures"][0].split("For")[0] + "Model"]
    (folder / "config.json").write_text(json.dumps(settings))
    (folder / "preprocessor_config.json").write_text(json.dumps({
        "image_processor_type": "ViTImageProcessor", "size": {"height": case["size"][0], "width": case["size"][1]}, "resample": 2,
        "image_mean": [0.5, 0.45, 0.4], "image_std": [0.25, 0.3, 0.35]}))
    write_tensors(folder / "model.safetensors", all)


def picture(colour, draw, height=SIDE, width=SIDE):
    """A PNG of one colour with noise and a darker stripe somewhere."""
    at, rows = draw.randrange(height), b""
    for y in range(height):
        rows += b"\0"
        for _ in range(width):
            rows += bytes(min(255, max(0, c + draw.randrange(-40, 40) - 60 * (abs(y - at) < 3))) for c in colour)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


class PictureClassifier(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.d = pathlib.Path(kept.name)

    def pictures(self, name="train", each=16, colours=COLOURS, seed=1, size=(SIDE, SIDE)):
        draw = random.Random(seed)
        for word in colours:
            (self.d / name / word).mkdir(parents=True)
            for k in range(each):
                (self.d / name / word / ("%02d.png" % k)).write_bytes(picture(COLOURS.get(word, (90, 90, 90)), draw, *size))

    def config(self, steps=40, model={}, data={}, **more):
        c = {"model": {"kind": "vision", "weights": "base", **model},
             "data": {"format": "images", "train": "train", "held_out": 0.25, **data},
             "train": {"steps": steps, "batch": 12, "lr": 0.01, "weight_decay": 0}, "evaluate": {"every": 20}, "save": {"every": 20}}
        c.update(more)
        return c

    def write(self, c, name="c"):
        path = self.d / (name + ".json")
        path.write_text(json.dumps(c))
        return path

    def trained(self, *args, **kw):
        r = run("train", *args, **kw)
        self.assertEqual(r.returncode, 0, r.stderr)
        return r.stdout.decode()

    def refuses(self, r, *words):
        err = r.stderr.decode(errors="replace")
        self.assertEqual(r.returncode, 1, err)
        self.assertEqual(err.count("\n"), 1, err)
        for w in words:
            self.assertIn(w, err)

    def accuracy(self, model, folder="test"):
        r = run("predict", model, self.d / folder, "--format", "json")
        self.assertEqual(r.returncode, 0, r.stderr)
        said = json.loads(r.stdout)
        return sum(a["class"] == pathlib.Path(a["input"]).parent.name for a in said) / len(said)

    def formula(self, family):
        """The configuration of steps of SGD on six pictures of the network's size, which are one batch."""
        write_model(self.d / family, family, by_formula=True)
        six = "six of " + family
        self.pictures(six, 2, size=CASES[family]["size"])
        for k, word in enumerate(sorted(COLOURS)):  # the head of the file is one for classes without names
            (self.d / six / word).rename(self.d / six / str(k))
        c = self.config(STEPS, {"weights": family}, {"train": six, "test": six}, log={"every": 1})
        del c["data"]["held_out"]
        c["train"] = {"steps": STEPS, "batch": 6, "optimizer": "sgd", "momentum": 0, "lr": RATE, "schedule": "constant"}
        return self.write(c, family)

    def losses(self, family):
        lines = [json.loads(line) for line in (self.d / (family + ".run/log.jsonl")).read_text().splitlines()]
        return [line["loss"] for line in lines if "loss" in line]

    def test_steps_are_those_of_pytorch(self):
        """Each loss depends on all gradients before it."""
        self.assertEqual(sorted(LOSSES), sorted(FAMILIES))
        for family, wanted in LOSSES.items():
            with self.subTest(family):
                self.assertNotIn("new ones", self.trained(self.formula(family)))
                for ours, theirs in zip(self.losses(family), wanted, strict=True):
                    self.assertAlmostEqual(ours, theirs, delta=1e-5 * max(1, theirs))

    def test_families_learn_and_keep_their_names(self):
        self.pictures()
        self.pictures("test", 8, seed=2)
        for family in ("vit", "convnext", "resnet", "swin", "dinov2"):
            with self.subTest(family):
                write_model(self.d / family, family, bare=True)
                out = self.trained(self.write(self.config(model={"weights": family}), family))
                self.assertIn("in 3 classes (blue, green, red) to learn from, 12 held out", out)
                self.assertIn("but new ones for classifier", out)
                model = self.d / (family + ".run/model")
                said = json.loads((model / "config.json").read_text())
                self.assertEqual(said["architectures"], CASES[family]["config"]["architectures"])
                self.assertEqual(said["id2label"], {"0": "blue", "1": "green", "2": "red"})
                self.assertEqual({name: shape for name, (shape, _) in tensors(model / "model.safetensors").items()},
                                 dict((name, shape) for name, shape in CASES[family]["tensors"] if not name.endswith("mask_token")))
                self.assertEqual((model / "preprocessor_config.json").read_bytes(), (self.d / family / "preprocessor_config.json").read_bytes())
                self.assertEqual(self.accuracy(self.d / (family + ".run")), 1.0)
                self.assertEqual(self.accuracy(model), 1.0)

    def test_adapters(self):
        self.pictures()
        self.pictures("test", 8, seed=2)
        for family, layers in (("vit", ("query.weight", "value.weight")), ("convnext", ("pwconv1.weight", "pwconv2.weight"))):
            with self.subTest(family):
                write_model(self.d / family, family)
                c = self.config(60, {"weights": family, "lora_rank": 2, "lora_alpha": 4})
                c["train"]["lr"] = 0.02
                self.assertIn("but new ones for classifier", self.trained(self.write(c, family)))
                base, merged = tensors(self.d / family / "model.safetensors"), tensors(self.d / (family + ".run/model/model.safetensors"))
                changed = {name for name in merged if merged[name] != base[name]}
                self.assertEqual({name for name in changed if not name.startswith("classifier")},
                                 {name for name in base if name.endswith(layers)})
                peft = tensors(self.d / (family + ".run/adapter/adapter_model.safetensors"))
                said = json.loads((self.d / (family + ".run/adapter/adapter_config.json")).read_text())
                self.assertEqual((said["task_type"], said["r"], said["lora_alpha"], said["modules_to_save"]), (None, 2, 4, ["classifier"]))
                self.assertEqual(peft["base_model.model.classifier.weight"], merged["classifier.weight"])
                self.assertEqual(self.accuracy(self.d / (family + ".run")), 1.0)
        self.refuses(run("train", self.write(self.config(model={"weights": "vit", "lora_rank": 2, "lora_targets": ["qery"]}))),
                     "no layer with a matrix is called 'qery'", "query")
        write_model(self.d / "resnet", "resnet")
        self.refuses(run("train", self.write(self.config(model={"weights": "resnet", "lora_rank": 2}))), "no layers with matrices")

    def test_a_run_continues_with_the_same_bits(self):
        write_model(self.d / "base", "vit")
        self.pictures()
        part, whole = self.config(10, data={"augment": True}), self.config(20, data={"augment": True})
        for c in (part, whole):
            c["train"]["schedule"] = "constant"
        self.trained(self.write(part, "parts"), "--threads", "2")
        self.trained(self.write(whole, "parts"), "--resume", "--threads", "2")
        self.trained(self.write(whole, "once"), "--threads", "1")
        self.assertEqual(tensors(self.d / "once.run/run.safetensors"), tensors(self.d / "parts.run/run.safetensors"))

    def test_a_head_for_the_same_classes_is_kept(self):
        write_model(self.d / "base", "vit")
        self.pictures()
        self.trained(self.write(self.config(), "first"))
        again = self.config(1, {"weights": "first.run/model"})
        again["train"]["lr"] = 0
        self.assertNotIn("new ones", self.trained(self.write(again, "again")))
        self.assertEqual(tensors(self.d / "first.run/model/model.safetensors"), tensors(self.d / "again.run/model/model.safetensors"))

    def test_mistakes(self):
        write_model(self.d / "base", "vit")
        self.pictures(each=4)
        self.refuses(run("train", self.write(self.config(data={"shape": [3, 16, 16]}))), "there is no data.shape")
        self.refuses(run("train", self.write(self.config(data={"format": "csv"}))), "must be one of images")
        self.refuses(run("train", self.write(self.config(model={"lora_alpha": 3}))), "model.lora_rank is missing")
        self.pictures("test", 2, colours=["blue", "pink"])
        c = self.config(data={"test": "test"})
        del c["data"]["held_out"]
        self.refuses(run("train", self.write(c)), "must have the same classes")
        (self.d / "base/preprocessor_config.json").unlink()
        self.refuses(run("train", self.write(self.config())), "preprocessor_config.json")
        c = json.loads((self.d / "base/config.json").read_text())
        (self.d / "base/config.json").write_text(json.dumps({**c, "model_type": "detr"}))
        (self.d / "base/preprocessor_config.json").write_text(json.dumps({"size": 16, "resample": 2, "do_normalize": False}))
        self.refuses(run("train", self.write(self.config())), "'detr' is no classifier of pictures that can go on learning", "swin")

    def test_damaged_pictures(self):
        write_model(self.d / "base", "vit")
        self.pictures()
        (self.d / "train/red/broken.png").write_bytes(b"\x89PNG\r\n\x1a\n")
        self.refuses(run("train", self.write(self.config(2))), "broken.png")
        self.assertIn("1 file in the folders", self.trained(self.write(self.config(2, data={"unreadable": "skip"}))))

    def test_the_example_is_whole(self):
        text = run("train", "--example", "pictures").stdout.decode()
        c = json.loads("\n".join(line.split("//")[0] for line in text.split("\n")))
        write_model(self.d / "base", "vit")
        self.pictures()
        c["model"]["weights"] = "base"
        c["train"].update(steps=2, warmup=1, batch=8)
        self.trained(self.write(c))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
