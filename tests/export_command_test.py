#!/usr/bin/env python3
"""`lightcone export` writes any checkpoint as an ONNX model that gives transformers' answers: in `lightcone run`, and in onnxruntime where it is.

The checkpoints are the tiny ones of the reference data, and the answers transformers' in f64. Language models are exported as a whole and
with a cache, which takes a text in parts.

    export_command_test.py PATH/TO/lightcone DATA_DIRECTORY
"""
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

LIGHTCONE, TINY = sys.argv[1], pathlib.Path(sys.argv[2]) / "models/tiny"
TOLERANCE = 1e-4  # relative to the largest answer, and at least this much
try:
    import numpy
    import onnxruntime
except ImportError:
    onnxruntime = None

DECODERS = ["deepseek_v2", "falcon_mq", "gemma", "gemma3", "gptj", "gptneox", "granite", "granitemoe", "llama", "mamba", "mistral", "mixtral",
            "olmo2", "opt", "phi", "phi3", "qwen2", "qwen3", "smollm2", "starcoder2"]
ENCODERS = ["bert", "bert_seqcls", "distilbert", "distilbert_seqcls", "xlmroberta", "gpt2_seqcls"]
TRANSLATORS = ["bart", "t5v10", "flan_t5"]
PICTURES = ["convnext", "efficientnet", "mobilenetv3", "resnet18", "resnet50", "vgg16", "vit"]
PAIRS = ["clip", "siglip"]
# The reference data's names of inputs and outputs, and the exported model's.
INPUTS = {"sequences": "input_ids", "token_types": "token_type_ids", "enc_sequences": "input_ids", "dec_sequences": "decoder_input_ids",
          "pixels": "pixel_values", "text_sequences": "input_ids"}
OUTPUTS = {"hidden": "hidden", "pooler": "pooled", "logits": "logits", "enc_hidden": "encoder_hidden", "text_embeds": "text_features",
           "image_embeds": "image_features", "logits_per_image": "logits_per_image"}


def shape(a):
    return [len(a)] + shape(a[0]) if isinstance(a, list) else []


def flat(a):
    return [x for each in a for x in flat(each)] if isinstance(a, list) else [a]


def npy(a, kind):
    """The bytes of an .npy file: kind is f (f32) or q (i64)."""
    header = str({"descr": {"f": "<f4", "q": "<i8"}[kind], "fortran_order": False, "shape": tuple(shape(a))}).encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    values = flat(a)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack("<%d%s" % (len(values), kind), *values)


def answers(name):
    """The reference's inputs and outputs, by the exported model's names."""
    for suffix in ("logits", "hidden", "embeds"):
        path = TINY / ("tiny_%s_%s.json" % (name, suffix))
        if path.exists():
            d = json.loads(path.read_text())
            break
    inputs = {ours: d[theirs] for theirs, ours in INPUTS.items() if theirs in d}
    outputs = {ours: d[theirs] for theirs, ours in OUTPUTS.items() if theirs in d}
    if "pixel_values" in inputs:
        inputs["pixel_values"] = [inputs["pixel_values"]]
    return inputs, outputs


@unittest.skipUnless(TINY.is_dir(), "the reference data are not here")
class Exported(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.d = pathlib.Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def export(self, name, *options):
        """Exports a tiny checkpoint, which is put into a folder as Hugging Face's are."""
        folder = self.d / name
        folder.mkdir(exist_ok=True)
        shutil.copy(TINY / ("tiny_%s_config.json" % name), folder / "config.json")
        shutil.copy(TINY / ("tiny_%s.safetensors" % name), folder / "model.safetensors")
        model = self.d / (name + ".onnx")
        r = subprocess.run([LIGHTCONE, "export", folder, *options, "-o", model], capture_output=True, text=True)
        self.assertEqual(r.returncode, 0, r.stderr)
        return model

    def compare(self, got, want, what):
        want = numpy.array(want)
        self.assertEqual(got.shape, want.shape, what)
        self.assertLessEqual(abs(got - want).max(), TOLERANCE * max(1, abs(want).max()), what)

    def session(self, model):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])

    def answers_whole(self, name, *options):
        """The model gives the reference's outputs for its inputs."""
        inputs, outputs = answers(name)
        model = self.export(name, *options)
        if "input_ids" in inputs and ("hidden" in outputs or "logits" in outputs or "logits_per_image" in outputs):
            inputs["attention_mask"] = [[1] * len(row) for row in inputs["input_ids"]]
        self.assertTrue(inputs and outputs)
        for path, arrays in (("in.npz", inputs), ("out.npz", outputs)):
            with zipfile.ZipFile(self.d / path, "w") as z:
                for key, a in arrays.items():
                    z.writestr(key + ".npy", npy(a, "f" if path == "out.npz" or key == "pixel_values" else "q"))
        r = subprocess.run([LIGHTCONE, "run", model, "-i", self.d / "in.npz", "--compare", self.d / "out.npz", "--tolerance", str(TOLERANCE)],
                           capture_output=True, text=True)
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        if onnxruntime:
            s = self.session(model)
            feed = {i.name: numpy.array(inputs[i.name], "f4" if i.type == "tensor(float)" else "i8") for i in s.get_inputs()}
            for key, got in zip(outputs, s.run(list(outputs), feed)):
                self.compare(got, outputs[key], "%s: %s in onnxruntime" % (name, key))

    def test_language_models_as_a_whole(self):
        for name in DECODERS:
            with self.subTest(name):
                self.answers_whole(name, "--whole")

    @unittest.skipUnless(onnxruntime, "onnxruntime is not here")
    def test_language_models_with_a_cache(self):
        """A text of which the first five tokens come together and the others one by one has the logits of the whole text."""
        for name in DECODERS:
            with self.subTest(name):
                inputs, outputs = answers(name)
                s = self.session(self.export(name))
                ids, want = inputs["input_ids"][0], outputs["logits"][0]
                kinds = {"tensor(float)": "f4", "tensor(int64)": "i8", "tensor(double)": "f8"}
                states = {i.name: numpy.zeros([int(n) for n in i.shape], kinds[i.type]) for i in s.get_inputs() if i.name not in ("tokens", "past")}
                has_past = any(i.name == "past" for i in s.get_inputs())
                past = 0
                while past < len(ids):
                    tokens = ids[past:past + (5 if past == 0 else 1)]
                    feed = dict(states, tokens=numpy.array(tokens, "i8"), **({"past": numpy.array(past, "i8")} if has_past else {}))
                    given = dict(zip([o.name for o in s.get_outputs()], s.run(None, feed)))
                    past += len(tokens)
                    self.compare(given["logits"], want[past - 1], "%s: token %d" % (name, past))
                    states = {key: given[key + ".next"] for key in states}

    def test_encoders(self):
        for name in ENCODERS:
            with self.subTest(name):
                self.answers_whole(name)

    def test_encoder_decoders(self):
        for name in TRANSLATORS:
            with self.subTest(name):
                self.answers_whole(name)

    def test_models_of_pictures(self):
        for name in PICTURES:
            with self.subTest(name):
                self.answers_whole(name)

    def test_models_of_texts_and_pictures(self):
        for name in PAIRS:
            with self.subTest(name):
                self.answers_whole(name)

    def test_choices(self):
        """Sizes become numbers, outputs can be chosen, and what cannot be is refused by name."""
        inputs = {"batch": 3, "length": 16}
        self.answers_whole("bert", "--outputs", "hidden", "pooled", "--bind", *("%s=%d" % size for size in inputs.items()))
        text = subprocess.run([LIGHTCONE, "inspect", self.d / "bert.onnx"], capture_output=True, text=True).stdout
        self.assertIn("input_ids: int64 [3, 16]", text)
        self.export("vit", "--batch", "2", "--outputs", "logits")
        text = subprocess.run([LIGHTCONE, "inspect", self.d / "vit.onnx"], capture_output=True, text=True).stdout
        self.assertIn("pixel_values: float [2, 3,", text)
        self.assertNotIn("hidden", text)
        for options, words in ((["--outputs", "logit"], "logits"), (["--train"], "--train is for the networks of torchvision")):
            r = subprocess.run([LIGHTCONE, "export", self.d / "vit", *options], capture_output=True, text=True)
            self.assertEqual(r.returncode, 1, options)
            self.assertIn(words, r.stderr)

    def test_other_forms(self):
        """The same graph as one StableHLO module and as a page of pictures."""
        self.export("vit")
        r = subprocess.run([LIGHTCONE, "export", self.d / "vit", "--bind", "batch=1"], capture_output=True, text=True)
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn("@main", r.stdout)
        r = subprocess.run([LIGHTCONE, "view", self.d / "vit", "-o", self.d / "vit.html"], capture_output=True, text=True)
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn("pixel_values", (self.d / "vit.html").read_text())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
