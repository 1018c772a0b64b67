#!/usr/bin/env python3
"""`lightcone train` continues encoders of texts as classifiers, and `lightcone predict` answers with the folders that it writes.

    text_classifier_command_test.py PATH/TO/lightcone
"""
import csv
import io
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

LIGHTCONE = sys.argv[1]
GOOD, BAD = "good great lovely bright".split(), "bad awful poor dull".split()
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"the film was a and play day it".split(), *GOOD, *BAD, "##s", "."]
WIDTH, LAYERS, INNER = 16, 2, 32
STEPS, RATE = 5, 0.05
LOSSES = {
    "bert": [0.6889182833136661, 0.6853466040225185, 0.6820744234436545, 0.6784629701317291, 0.674040269531298],
    "roberta": [0.6978255033731433, 0.6720716948502894, 0.6492432739113236, 0.6269568510477603, 0.6036763168428355],
    "distilbert": [0.9095614394811385, 0.7056772000419502, 0.6778104166777631, 0.6699370721314527, 0.6621063023134384],
}


def run(*args, **kw):
    return subprocess.run([LIGHTCONE, *map(os.fsencode, args)], capture_output=True, timeout=300, **kw)


def tensors(path):
    """Of a safetensors file: shape and bytes by name, and the metadata."""
    b = pathlib.Path(path).read_bytes()
    n = struct.unpack("<Q", b[:8])[0]
    head = json.loads(b[8:8 + n])
    said = head.pop("__metadata__", {})
    return {k: (v["shape"], b[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]]) for k, v in head.items()}, said


def shapes(family):
    """The weights of transformers' bare encoder, in its own names."""
    def dense(name, out, width):
        return {name + ".weight": [out, width], name + ".bias": [out]}

    def norm(name):
        return {name + ".weight": [WIDTH], name + ".bias": [WIDTH]}
    distil = family == "distilbert"
    all = {"embeddings.word_embeddings.weight": [len(WORDS), WIDTH], "embeddings.position_embeddings.weight": [40, WIDTH], **norm("embeddings.LayerNorm")}
    if not distil:
        all["embeddings.token_type_embeddings.weight"] = [2 if family == "bert" else 1, WIDTH]
    for k in range(LAYERS):
        at = ("transformer.layer.%d." if distil else "encoder.layer.%d.") % k
        names = ["attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin"] if distil else \
            ["attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"]
        for name in names:
            all.update(dense(at + name, WIDTH, WIDTH))
        all.update(dense(at + ("ffn.lin1" if distil else "intermediate.dense"), INNER, WIDTH))
        all.update(dense(at + ("ffn.lin2" if distil else "output.dense"), WIDTH, INNER))
        all.update(norm(at + ("sa_layer_norm" if distil else "attention.output.LayerNorm")))
        all.update(norm(at + ("output_layer_norm" if distil else "output.LayerNorm")))
    if family == "bert":
        all.update(dense("pooler.dense", WIDTH, WIDTH))
    return all


def config(family):
    if family == "distilbert":
        return {"model_type": family, "architectures": ["DistilBertModel"], "vocab_size": len(WORDS), "dim": WIDTH, "n_layers": LAYERS, "n_heads": 2,
                "hidden_dim": INNER, "max_position_embeddings": 40, "initializer_range": 0.2}
    return {"model_type": family, "architectures": [{"bert": "BertModel", "roberta": "RobertaModel"}[family]], "vocab_size": len(WORDS), "hidden_size": WIDTH,
            "num_hidden_layers": LAYERS, "num_attention_heads": 2, "intermediate_size": INNER, "max_position_embeddings": 40,
            "type_vocab_size": 2 if family == "bert" else 1, "pad_token_id": 0, "initializer_range": 0.2}


def classifier(family):
    """The weights of transformers' classifier of sequences with two classes, and its class."""
    head = {"bert": {"classifier": 2}, "roberta": {"classifier.dense": WIDTH, "classifier.out_proj": 2}, "distilbert": {"pre_classifier": WIDTH, "classifier": 2}}[family]
    all = {family + "." + name: shape for name, shape in shapes(family).items()}
    for name, out in head.items():
        all.update({name + ".weight": [out, WIDTH], name + ".bias": [out]})
    return all, {"bert": "Bert", "roberta": "Roberta", "distilbert": "DistilBert"}[family] + "ForSequenceClassification"


def write_model(folder, family="bert", without=(), by_formula=False):
    """A small encoder with random weights, or a classifier whose weights are a formula, and a WordPiece tokenizer."""
    folder.mkdir(parents=True)
    draw = random.Random(3)
    settings = config(family)
    weights = {name: shape for name, shape in shapes(family).items() if not name.startswith(without)}
    if by_formula:
        weights, name = classifier(family)
        settings.update(architectures=[name], id2label={"0": "positive", "1": "negative"}, label2id={"positive": 0, "negative": 1})
    (folder / "config.json").write_text(json.dumps(settings))
    header, data = {}, b""
    for i, (name, shape) in enumerate(weights.items()):
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        is_norm = "norm" in name.lower() and name.endswith("weight")
        values = [draw.gauss(1 if is_norm else 0, 0.05 if is_norm else 0.25) for _ in range(count)]
        if by_formula:
            values = [0.4 * math.sin(1.3 * i + 0.7 * k + 0.1) + is_norm for k in range(count)]
        bits = struct.pack("<%df" % count, *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(bits)]}
        data += bits
    head = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + data)
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer"}))
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "TemplateProcessing",
                           "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
                           "pair": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
                                    {"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "[SEP]", "type_id": 1}}],
                           "special_tokens": {w: {"id": w, "ids": [WORDS.index(w)], "tokens": [w]} for w in ("[CLS]", "[SEP]")}},
        "decoder": None,
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                  "vocab": {w: i for i, w in enumerate(WORDS)}}}))


class TextClassifier(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.d = pathlib.Path(kept.name)
        self.random = random.Random(7)

    def sentence(self, words):
        plain = "the film was a and play day it".split()
        all = [self.random.choice(words) for _ in range(3)] + [self.random.choice(plain) for _ in range(self.random.randint(0, 3))]
        self.random.shuffle(all)
        return " ".join(all)

    def reviews(self, rows=240, name="train.csv", labels=("positive", "negative")):
        with open(self.d / name, "w", newline="") as f:
            out = csv.writer(f)
            out.writerow(["id", "review", "mood"])
            for k in range(rows):
                out.writerow(["row %d" % k, self.sentence(BAD if k % 2 else GOOD), labels[k % 2]])

    def config(self, steps=120, model={}, data={}, **more):
        c = {"model": {"kind": "encoder", "weights": "base", "length": 32, "dropout": 0, **model},
             "data": {"format": "csv", "train": "train.csv", "text": "review", "label": "mood", "held_out": 0.25, **data},
             "train": {"steps": steps, "batch": 16, "lr": 0.005, "warmup": 5, "clip": 1.0}, "evaluate": {"every": 20}, "save": {"every": 20}}
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

    def accuracy(self, model, *options):
        """Of a model's answers for train.csv."""
        r = run("predict", model, self.d / "train.csv", "--format", "json", *options)
        self.assertEqual(r.returncode, 0, r.stderr)
        with open(self.d / "train.csv", newline="") as f:
            wanted = [row["mood"] for row in csv.DictReader(f)]
        said = json.loads(r.stdout)
        self.assertEqual([a["row"] for a in said], list(range(len(wanted))))
        return sum(a["class"] == w for a, w in zip(said, wanted, strict=True)) / len(wanted)

    def formula(self, family):
        """The configuration of steps of SGD on four sentences, which are one batch."""
        write_model(self.d / family, family, by_formula=True)
        (self.d / "four.csv").write_text("review,mood\nthe film was good,positive\nit was bad .,negative\nlovely play a great day and it,positive\npoor,negative\n")
        c = self.config(STEPS, {"weights": family}, {"train": "four.csv", "test": "four.csv"}, log={"every": 1})
        del c["data"]["held_out"]
        c["train"] = {"steps": STEPS, "batch": 4, "optimizer": "sgd", "momentum": 0, "lr": RATE, "schedule": "constant", "clip": 0}
        return self.write(c, family)

    def losses(self, family):
        lines = [json.loads(line) for line in (self.d / (family + ".run/log.jsonl")).read_text().splitlines()]
        return [line["loss"] for line in lines if "loss" in line]

    def test_steps_are_those_of_pytorch(self):
        """Each loss depends on all gradients before it. The numbers are transformers' in f64: text_classifier_peers_check.py."""
        for family, wanted in LOSSES.items():
            with self.subTest(family):
                self.assertNotIn("new ones", self.trained(self.formula(family)))
                for ours, theirs in zip(self.losses(family), wanted, strict=True):
                    self.assertAlmostEqual(ours, theirs, delta=2e-6)

    def test_families_learn_and_keep_their_names(self):
        self.reviews()
        for family in ("bert", "roberta", "distilbert"):
            with self.subTest(family):
                write_model(self.d / family, family)
                out = self.trained(self.write(self.config(model={"weights": family}), family))
                self.assertIn("in 2 classes (negative, positive) to learn from, 60 held out", out)
                self.assertIn("but new ones for " + {"bert": "classifier", "roberta": "classifier.dense, classifier.out_proj", "distilbert": "pre_classifier, classifier"}[family], out)
                self.assertIn("accuracy 100 %", out)
                model = self.d / (family + ".run/model")
                said = json.loads((model / "config.json").read_text())
                wanted, name = classifier(family)
                self.assertEqual(said["architectures"], [name])
                self.assertEqual((said["id2label"], said["label2id"]), ({"0": "negative", "1": "positive"}, {"negative": 0, "positive": 1}))
                self.assertEqual({name: shape for name, (shape, _) in tensors(model / "model.safetensors")[0].items()}, wanted)
                for name in ("tokenizer.json", "vocab.txt", "tokenizer_config.json"):
                    self.assertEqual((model / name).read_bytes(), (self.d / family / name).read_bytes())
                self.assertEqual(self.accuracy(self.d / (family + ".run")), 1.0)  # the columns are those of the training
                self.assertEqual(self.accuracy(model, "--text", "review"), 1.0)

    def test_a_run_continues_with_the_same_bits_on_any_threads(self):
        write_model(self.d / "base")
        self.reviews()
        part, whole = self.config(20, {"dropout": 0.1}), self.config(40, {"dropout": 0.1})
        for c in (part, whole):
            c["train"]["schedule"] = "constant"
        self.trained(self.write(part, "parts"), "--threads", "2")
        self.trained(self.write(whole, "parts"), "--resume", "--threads", "2")
        self.trained(self.write(whole, "once"), "--threads", "1")
        for name in ("run.safetensors", "best.safetensors", "model/model.safetensors"):
            self.assertEqual(tensors(self.d / "once.run" / name)[0], tensors(self.d / "parts.run" / name)[0], name)
        self.reviews(labels=("yes", "no"))
        self.refuses(run("train", self.d / "parts.json", "--resume"), "begun with another configuration (class positive)")

    def test_adapters(self):
        self.reviews()
        for family, module in (("bert", "encoder.layer.%d.attention.self.query"), ("distilbert", "transformer.layer.%d.attention.q_lin")):
            with self.subTest(family):
                write_model(self.d / family, family)
                c = self.config(160, {"weights": family, "lora_rank": 4, "lora_alpha": 8})
                c["train"]["lr"] = 0.01
                self.trained(self.write(c, family))
                base, merged = tensors(self.d / family / "model.safetensors")[0], tensors(self.d / (family + ".run/model/model.safetensors"))[0]
                changed = {name for name in base if merged[family + "." + name] != base[name]}
                target = {"bert": ("query.weight", "value.weight"), "distilbert": ("q_lin.weight", "v_lin.weight")}[family]
                self.assertEqual(changed, {name for name in base if name.endswith(target)})
                peft = tensors(self.d / (family + ".run/adapter/adapter_model.safetensors"))[0]
                said = json.loads((self.d / (family + ".run/adapter/adapter_config.json")).read_text())
                self.assertEqual((said["task_type"], said["r"], said["lora_alpha"]), ("SEQ_CLS", 4, 8))
                for k in range(LAYERS):
                    name = "base_model.model.%s.%s.lora_A.weight" % (family, module % k)
                    self.assertEqual(peft[name][0], [4, WIDTH])
                self.assertIn("classifier", said["modules_to_save"])
                self.assertEqual(peft["base_model.model.classifier.weight"], merged["classifier.weight"])
                self.assertGreater(self.accuracy(self.d / (family + ".run")), 0.9)
        self.refuses(run("train", self.write(self.config(model={"weights": "bert", "lora_rank": 4, "lora_targets": ["q_proj"]}))), "no layer is called 'q_proj'", "attention.self.query")

    def test_a_head_for_the_same_classes_is_kept(self):
        write_model(self.d / "base")
        self.reviews()
        self.trained(self.write(self.config(), "first"))
        again = self.config(1, {"weights": "first.run/model"})
        again["train"]["lr"], again["train"]["warmup"] = 0, 0
        out = self.trained(self.write(again, "again"))
        self.assertNotIn("new ones", out)
        self.assertEqual(tensors(self.d / "first.run/model/model.safetensors")[0], tensors(self.d / "again.run/model/model.safetensors")[0])
        self.reviews(labels=("1", "0"), name="numbers.csv")
        out = self.trained(self.write({**again, "data": {**again["data"], "train": "numbers.csv"}}, "numbers"))
        self.assertIn("but new ones for classifier", out)
        # classes without names take numbers as they are
        said = json.loads((self.d / "first.run/model/config.json").read_text())
        said["id2label"], said["label2id"] = {"0": "LABEL_0", "1": "LABEL_1"}, {"LABEL_0": 0, "LABEL_1": 1}
        (self.d / "first.run/model/config.json").write_text(json.dumps(said))
        out = self.trained(self.write({**again, "data": {**again["data"], "train": "numbers.csv"}}, "unnamed"))
        self.assertNotIn("new ones", out)
        self.assertRegex(out, r"accuracy (9\d.*|100) %")

    def test_pairs_lines_of_json_and_the_standard_input(self):
        write_model(self.d / "base", without=("pooler",))
        with open(self.d / "pairs.jsonl", "w") as f:
            for k in range(128):  # both texts have the same mood, or not
                first, second = self.random.choice((GOOD, BAD)), self.random.choice((GOOD, BAD))
                f.write(json.dumps({"sentence1": self.random.choice(first), "sentence2": self.random.choice(second), "label": second is GOOD}) + "\n")
        c = self.config(60, data={"format": "jsonl", "train": "pairs.jsonl", "text": "sentence1", "text_pair": "sentence2", "label": "label"})
        out = self.trained(self.write(c, "pairs"))
        self.assertIn("but new ones for bert.pooler.dense, classifier", out)
        self.assertIn("2 classes (false, true)", out)
        self.assertRegex(out, r"accuracy (9\d.*|100) %")
        r = run("predict", self.d / "pairs.run", self.d / "pairs.jsonl", "--top", "2")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertRegex(r.stdout.decode().splitlines()[0], r"pairs.jsonl\[0\]  (true|false) \d+\.\d\d %, (true|false) \d+\.\d\d %")
        self.refuses(run("predict", self.d / "pairs.run", input=b"a line\n"), "the model takes two texts")
        self.reviews()
        self.trained(self.write(self.config(model={"weights": "base"}), "one"))
        r = run("predict", self.d / "one.run", "--format", "csv", input=b"a great day\nit was awful .\n\n")
        self.assertEqual(r.returncode, 0, r.stderr)
        rows = list(csv.DictReader(io.StringIO(r.stdout.decode())))
        self.assertEqual([row["class"] for row in rows[:2]], ["positive", "negative"])
        self.assertEqual(len(rows), 3)

    def test_long_texts_are_cut(self):
        write_model(self.d / "base")
        self.reviews()
        with open(self.d / "train.csv", "a", newline="") as f:
            f.write("x," + "film " * 100 + ",positive\n")
        self.assertIn("1 cut at model.length", self.trained(self.write(self.config(1, {"length": 16}, train={"steps": 1, "batch": 4}))))
        self.refuses(run("train", self.write(self.config(model={"length": 41}), "long")), "model.length is 41", "was made for 40 tokens")

    def test_wrong_input_is_one_sentence(self):
        write_model(self.d / "base")
        self.reviews(8)
        for change, *words in (({"data": {"text": "text"}}, "there is no column 'text'", "'review'"),
                               ({"data": {"label": "id2"}}, "there is no column 'id2'"),
                               ({"data": {"text": "mood"}}, "must name different columns"),
                               ({"data": {"shape": [4]}}, "there is no data.shape"),
                               ({"model": {"lora_alpha": 4}}, "model.lora_rank is missing"),
                               ({"model": {"reinitialize": ["fc"]}}, "there is no model.reinitialize"),
                               ({"model": {"weights": "none"}}, "none")):
            with self.subTest(str(change)):
                self.refuses(run("train", self.write(self.config(**change), "wrong"), "--overwrite"), *words)
        for text, word in (("id,review,mood\n1,a,\n", "line 2, column 'mood': the label is missing"), ("id,review,mood\n1,a,b\n2,c,b\n", "has 1 class"),
                           ("id,review,mood\n", "has 0 classes")):
            (self.d / "train.csv").write_text(text)
            self.refuses(run("train", self.write(self.config(), "wrong"), "--overwrite"), word)
        (self.d / "train.csv").write_bytes(b"id,review,mood\n1,a\xff,b\n2,c,d\n")
        self.refuses(run("train", self.write(self.config(), "wrong"), "--overwrite"), "line 2", "UTF-8")
        (self.d / "lines.jsonl").write_text('{"review": "a", "mood": 1}\n{"review": 3, "mood": 2}\n')
        self.refuses(run("train", self.write(self.config(data={"format": "jsonl", "train": "lines.jsonl"}), "wrong"), "--overwrite"), "line 2", "'review' is no text")
        (self.d / "train.csv").write_text("id,review,mood\n" + "1,a,b\n2,c,d\n" * 4)
        (self.d / "test.csv").write_text("id,review,mood\n1,a,e\n")
        c = self.config(data={"test": "test.csv"})
        del c["data"]["held_out"]
        self.refuses(run("train", self.write(c, "wrong"), "--overwrite"), "test.csv", "line 2", "'e' is none of the classes")

    def test_the_example_is_whole(self):
        text = run("train", "--example", "texts").stdout.decode()
        c = json.loads("\n".join(line.split("//")[0] for line in text.split("\n")))
        write_model(self.d / "base")
        self.reviews()
        c["model"].update(weights="base", length=16)
        c["train"].update(steps=2, warmup=1)
        c["data"].update(train="train.csv", text="review", label="mood")
        c["data"].pop("test", None)
        self.trained(self.write({**c, "train": {**c["train"], "batch": 8}}))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
