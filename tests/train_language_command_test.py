#!/usr/bin/env python3
"""`lightcone train` trains language models, from nothing and from checkpoints, whole and by adapters, on texts, answers and conversations.

    train_language_command_test.py PATH/TO/lightcone SOURCE_DIRECTORY
"""
import json
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import unittest

from train_case import LIGHTCONE, SOURCE, Case, example, run, tensors

FOLDER = SOURCE.parent / "shared/data/llm/stories260K/hf"  # a small checkpoint of Hugging Face's kind


class Train(Case):
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


unittest.main(argv=[sys.argv[0]], verbosity=1)
