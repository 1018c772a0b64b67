#!/usr/bin/env python3
"""The command `lightcone` prints, reads and refuses what its help says, on a terminal and from a pipe.

    command_test.py PATH/TO/lightcone SOURCE_DIRECTORY [REFERENCE_DATA]
"""
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

LIGHTCONE, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
DATA = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else pathlib.Path("/nowhere")
STORY = json.loads((SOURCE / "models/story/reference.json").read_text())


def run(*args, **kw):
    return subprocess.run([LIGHTCONE, *map(os.fsencode, args)], capture_output=True, timeout=120, **kw)


class Command(unittest.TestCase):
    def refuses(self, r, *words):
        """One sentence on the standard error, exit code 1, nothing else."""
        err = r.stderr.decode(errors="replace")
        self.assertEqual(r.returncode, 1, err)
        self.assertTrue(err.startswith("lightcone: "), err)
        self.assertEqual(err.count("\n"), 1, err)
        for w in words:
            self.assertIn(w, err)

    def test_greedy_story_is_the_reference(self):
        r = run("generate", "builtin", "Once upon a time", "--temperature", "0")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertEqual(r.stdout.decode(), STORY["text"] + "\n")
        line = r.stderr.decode()
        self.assertEqual(line.count("\n"), 1)
        self.assertRegex(line, r"^prompt 5 tokens, [\d.]+ tok/s \| decode \d+ tokens, [\d.]+ tok/s, \d+ % of [\d.]+ GB/s \| peak [\d.]+ MB, plan [\d.]+ MB, program with its model and libraries [\d.]+ MB \| seed \d+\n$")

    def test_a_seed_repeats_and_threads_change_nothing(self):
        args = ["generate", "builtin", "The", "--seed", "5", "-n", "40", "-q"]
        first = run(*args, "--threads", "1")
        self.assertEqual(first.returncode, 0)
        self.assertEqual(first.stderr, b"")
        self.assertEqual(first.stdout, run(*args, "--threads", "2").stdout)
        self.assertNotEqual(first.stdout, run("generate", "builtin", "The", "--seed", "6", "-n", "40", "-q").stdout)

    def test_narrow_caches_tell_the_same_story(self):
        for kind in ("f16", "bf16", "i8"):
            r = run("generate", "builtin", "Once upon a time", "--temperature", "0", "--kv-cache", kind, "-q")
            self.assertEqual(r.stdout.decode(), STORY["text"] + "\n", kind)
        r = run("generate", "builtin", "Once upon a time", "--kv-cache", "f64")
        self.assertNotEqual(r.returncode, 0)
        self.assertIn("--kv-cache", r.stderr.decode())

    def test_prompt_from_standard_input_and_token_limit(self):
        r = run("generate", "builtin", "-", "-n", "3", "-q", "-t", "0", input=b"Once upon a time")
        self.assertEqual(r.stdout.decode().split(), STORY["text"].split()[:6])

    def test_weights_that_are_no_numbers_tell_no_story(self):
        story = (SOURCE / "models/story/story.gguf").read_bytes()
        with tempfile.TemporaryDirectory() as d:
            bad = pathlib.Path(d) / "bad.gguf"
            bad.write_bytes(story[:-4096] + b"\xff" * 4096)  # of the last tensor, whatever its format: NaN
            r = run("generate", bad, "Once upon a time", "-n", "5", "-q")
            self.refuses(r, "NaN", "model.")
            self.assertEqual(r.stdout, b"")

    def test_bad_input_gives_one_sentence(self):
        with tempfile.TemporaryDirectory() as d:
            d = pathlib.Path(d)
            story = (SOURCE / "models/story/story.gguf").read_bytes()
            (d / "cut.gguf").write_bytes(story[: len(story) // 2])
            (d / "empty").write_bytes(b"")
            (d / "noise").write_bytes(os.urandom(5000))
            (d / "bert.gguf").write_bytes(story.replace(b"llama", b"gptxx"))
            self.refuses(run("generate", d / "none.gguf", "x"), "there is no file")
            self.refuses(run("generate", d / "cut.gguf", "x"), "truncated")
            self.refuses(run("generate", d / "empty", "x"), "empty")
            self.refuses(run("generate", d / "noise", "x"))
            self.refuses(run("generate", d / "bert.gguf", "x"), "gptxx")
            self.refuses(run("generate", d, "x"), "several checkpoints")
            self.refuses(run("inspect", d / "none"), "there is no file")
            self.refuses(run("view", "builtin", "-o", d / "no" / "folder.html"), "cannot open the folder")
        self.refuses(run("generate", "builtin", b"abc\xff"), "not UTF-8", "0xff", "offset 3")
        self.refuses(run("generate", "builtin", "x", "--top-p", "2"), "top_p")
        self.refuses(run("generate", "builtin", "x " * 2000), "the prompt is", "do not fit the context of 384", "--context")
        self.refuses(run("generate", "builtin", "x", "--tokenizer", "/nowhere/t.bin"), "/nowhere/t.bin")

    def test_export(self):
        with tempfile.TemporaryDirectory() as folder:
            d = pathlib.Path(folder)
            ok = run("export", "vgg11", "--size", "32", "-o", d / "vgg.mlir", "--arguments", d / "vgg.txt")
            self.assertEqual(ok.returncode, 0, ok.stderr)
            text, table = (d / "vgg.mlir").read_text(), (d / "vgg.txt").read_text()
            self.assertEqual(text.count("stablehlo.convolution"), 8)
            self.assertEqual(text.count("stablehlo.dot_general"), 3)
            self.assertIn("22 input f32[1, 3, 32, 32] pictures -\n", table)
            self.assertIn("0 output f32[1, 1000] logits\n", table)
        whole = run("export", "resnet18", "--size", "64", "--train", "--explain")
        self.assertRegex(whole.stdout.decode(), r"stablehlo.convolution +\d\d ")
        said = run("export", "vgg19", "--explain").stdout.decode()
        self.assertRegex(said, r"stablehlo.convolution +16 +16 +16 +16")
        self.assertIn("183 in the entry computation", said)
        self.refuses(run("export", "builtin"), "seq in [1, ", "as in --bind ", "--open")
        pictures = run("export", "resnet18", "--size", "64", "--open", "--batch", "8", "--bounds").stdout.decode()
        self.assertIn("%pictures: tensor<?x3x64x64xf32, #stablehlo.bounds<8, ?, ?, ?>>", pictures)
        story = run("export", "builtin", "--open").stdout.decode()
        self.assertIn("tensor<?xi64>", story)
        self.assertNotIn("bounds", story)
        self.refuses(run("export", "vgg20"), "vgg")

    def test_export_onnx(self):
        with tempfile.TemporaryDirectory() as folder:
            d = pathlib.Path(folder)
            ok = run("export", "resnet18", "--size", "64", "--open", "--batch", "8", "-o", d / "resnet.onnx")
            self.assertEqual(ok.returncode, 0, ok.stderr)
            self.assertIn(b"first values for training", ok.stderr)
            said = run("inspect", d / "resnet.onnx").stdout.decode()
            self.assertRegex(said, r"pictures.*\[batch, 3, 64, 64\]")
            self.assertRegex(said, r"Conv +20|20 Conv|Conv 20|Conv x 20|20 x Conv")
            ok = run("export", "builtin", "-o", d / "story.onnx")
            self.assertEqual(ok.returncode, 0, ok.stderr)
            self.assertIn("cache.0.key.next", run("inspect", d / "story.onnx").stdout.decode())
            self.refuses(run("export", "resnet18", "--train", "-o", d / "t.onnx"), "--train is for StableHLO")
            self.refuses(run("export", "resnet18", "--weights", d / "none"), "-o FILE.onnx")

    def test_full_disk(self):
        with open("/dev/full", "wb") as full:
            for args in [["generate", "builtin", "Once"], ["--help"], ["--version"], ["generate", "--help"]]:
                r = subprocess.run([LIGHTCONE, *args], stdout=full, stderr=subprocess.PIPE, timeout=60)
                self.refuses(r, "No space left")

    def test_wrong_usage(self):
        for args in [["generate"], ["nonsense"], ["generate", "builtin", "x", "--nonsense"]]:
            self.refuses(run(*args), "--help")
        self.assertEqual(run(*args).stdout, b"")
        bare = run()
        self.assertEqual((bare.returncode, bare.stderr), (0, b""))
        self.assertEqual(bare.stdout, run("--help").stdout)

    def test_what_was_meant(self):
        for args, words in [(["genrate", "builtin", "x"], "genrate: no such command; did you mean generate? ("),
                            (["trian", "x.json"], "trian: no such command; did you mean train? ("),
                            (["nonsense"], "nonsense: no such command ("),
                            (["--verson"], "--verson: no such option; did you mean --version? (lightcone --help says more)"),
                            (["generate", "builtin", "x", "--temprature", "0"], "--temprature: no such option of generate; did you mean --temperature? (lightcone generate --help says more)"),
                            (["generate", "builtin", "x", "--temprature=0"], "did you mean --temperature? ("),
                            (["generate", "builtin", "x", "--nonsense"], "--nonsense: no such option of generate ("),
                            (["inspect", "builtin", "one", "two"], "inspect does not take 'one two'"),
                            (["view", "builtin", "--", "one", "two"], "view does not take 'one two'"),
                            (["generate", "builtin", "x", "--precision", "medum"], "'medum' is none of highest, high, medium; did you mean medium? ("),
                            (["inspect", "builtin", "--kv-cache", "f64"], "'f64' is none of f32, f16, bf16, i8 ("),
                            (["bench", "matmuls"], "; did you mean matmul? (")]:
            self.refuses(run(*args), words)

    def test_words_of_a_prompt_need_no_quotes(self):
        args = ["-t", "0", "-n", "3", "-q"]
        whole = run("generate", "builtin", "Once upon a time", *args).stdout
        self.assertTrue(whole.startswith(b"Once upon a time"))
        self.assertEqual(run("generate", "builtin", "Once", "upon", "a", "time", *args).stdout, whole)
        self.assertEqual(run("generate", "builtin", "-t", "0", "Once", "upon", "-n", "3", "a", "time", "-q").stdout, whole)
        for ending in [b"", b"\n", b"\r\n"]:
            self.assertEqual(run("generate", "builtin", "-", *args, input=b"Once upon a time" + ending).stdout, whole)
        self.assertTrue(run("generate", "builtin", "-", *args, input=b"Once\n\n").stdout.startswith(b"Once\n"))

    def test_a_model_without_a_tokenizer(self):
        story = (SOURCE / "models/story/story.gguf").read_bytes()
        with tempfile.TemporaryDirectory() as d:
            (pathlib.Path(d) / "x.gguf").write_bytes(story.replace(b"tokenizer.ggml.tokens", b"tokenizer.ggml.tokenz"))
            self.refuses(run("generate", pathlib.Path(d) / "x.gguf", "Once"), "no tokenizer", "--tokenizer FILE")
            self.refuses(run("chat", pathlib.Path(d) / "x.gguf", input=b"Once"), "no tokenizer", "--tokenizer FILE")

    def test_a_context_beyond_the_trained_one_is_said(self):
        r = run("generate", "builtin", "Once upon a time", "--context", "400", "-n", "2", "-q")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn("--context 400 is beyond the 384 positions", r.stderr.decode())

    def test_the_end_of_the_context_is_said(self):
        r = run("generate", "builtin", "Once upon a time", "--context", "12", "-n", "50", "-q")
        self.assertEqual(r.returncode, 0)
        self.assertIn("the end of the context of 12 positions", r.stderr.decode())
        r = run("generate", "builtin", "Once upon a time", "--context", "12", "-n", "8", "-q")
        self.assertEqual((r.returncode, r.stderr), (0, b""))  # these are as many as were asked for

    def test_ctrl_c_finishes_the_line_and_prints_the_figures(self):
        # a story without an end: the token that ends a text is another
        key = b"tokenizer.ggml.eos_token_id" + struct.pack("<I", 4)
        story = (SOURCE / "models/story/story.gguf").read_bytes()
        self.assertEqual(story.count(key + struct.pack("<I", 2)), 1)
        with tempfile.TemporaryDirectory() as d, open(pathlib.Path(d) / "endless.gguf", "wb") as f:
            f.write(story.replace(key + struct.pack("<I", 2), key + struct.pack("<I", 0)))
            f.flush()
            p = subprocess.Popen([LIGHTCONE, "generate", f.name, "Once upon a time", "--context", "100000", "-n", "90000", "--threads", "1"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            said = p.stdout.read(200)
            p.send_signal(signal.SIGINT)
            rest, err = p.communicate(timeout=60)
            p.stdout.close(), p.stderr.close()
        self.assertEqual(p.returncode, 130, err)
        self.assertTrue((said + rest).endswith(b"\n"))
        self.assertRegex(err.decode(), r"^lightcone: note: --context 100000 .*\nprompt 5 tokens, .* \| decode \d+ tokens, .*\n$")

    def test_numbers_that_make_no_sense(self):
        generate = lambda *args: run("generate", "builtin", "x", *args)
        for seed in ["-1", "99999999999999999999", "18446744073709551616", "1.5", "x"]:
            self.refuses(generate("--seed", seed), "whole number")
        self.assertEqual(generate("--seed", "18446744073709551615", "-n", "1").returncode, 0)
        for threads in ["-3", "4096", "x"]:
            self.refuses(generate("--threads", threads), "4 for each core")
        self.refuses(run("bench", "fused", "--threads", "4096"), "4 for each core")
        most = 4 * len(os.sched_getaffinity(0))
        self.assertEqual(generate("--threads", str(most), "-n", "2").returncode, 0)
        self.refuses(generate("--context", "16777216"), "16777216 positions", "smaller context")

    def test_wrong_surroundings(self):
        def with_env(**env):
            return run("generate", "builtin", "Once", "-n", "2", "-q", env=dict(os.environ, **env))
        self.refuses(with_env(LIGHTCONE_ISA="bogus"), "LIGHTCONE_ISA", "bogus", "generic", "avx2", "avx512")
        self.refuses(with_env(LIGHTCONE_CC="/nonexistent"), "LIGHTCONE_CC", "/nonexistent", "none")
        self.refuses(with_env(LIGHTCONE_CC="/bin/false", LIGHTCONE_CACHE="off"), "/bin/false", "exit status 1")
        with tempfile.TemporaryDirectory() as d:
            d = pathlib.Path(d)
            unset = {k: "" for k in ["LIGHTCONE_CACHE", "XDG_CACHE_HOME"]}
            self.assertEqual(with_env(HOME=str(d / "nobody"), **unset).returncode, 0)
            self.assertFalse((d / "nobody").exists())
            self.assertEqual(with_env(HOME=str(d), **unset).returncode, 0)
            self.assertTrue(list((d / ".cache/lightcone").glob("*.so")))
            self.assertEqual(with_env(LIGHTCONE_CACHE=str(d / "a/b")).returncode, 0)
            self.assertTrue(list((d / "a/b").glob("*.so")))

    def test_a_model_that_ends_every_text_goes_on(self):
        with tempfile.TemporaryDirectory() as d:
            story = (SOURCE / "models/story/story.gguf").read_bytes()
            text = lambda s: struct.pack("<Q", len(s)) + s
            # two more values in the header, 64 bytes, so that the tensors stay aligned
            more = text(b"tokenizer.ggml.add_eos_token") + struct.pack("<IB", 7, 1) + text(b"x") + struct.pack("<I", 8) + text(b"yy")
            self.assertEqual(len(more), 64)
            count = struct.unpack("<Q", story[16:24])[0]
            (pathlib.Path(d) / "x.gguf").write_bytes(story[:16] + struct.pack("<Q", count + 2) + more + story[24:])
            r = run("generate", pathlib.Path(d) / "x.gguf", "Once upon a time", "-t", "0", "-n", "20", "-q")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertTrue(STORY["text"].startswith(r.stdout.decode().rstrip("\n")), r.stdout)

    TEMPLATE = "<s>{% for m in messages %}{{ m.content }}{{ ' ' if not loop.last }}{% endfor %}{{ mood }}"

    def chat(self, *args, **kw):
        with tempfile.TemporaryDirectory() as d:
            t = pathlib.Path(d) / "t.jinja"
            t.write_text(self.TEMPLATE)
            return run("chat", "builtin", "--template", t, "-t", "0", *args, **kw)

    def test_chat_from_a_pipe(self):
        r = self.chat("-n", "12", input=b"Once upon a time\n\n   \nThe end.\n/clear\nOnce upon a time")
        self.assertEqual(r.returncode, 0, r.stderr)
        said = r.stdout.decode().split("\n")
        self.assertEqual(len(said), 4)  # three answers, each with its line
        self.assertEqual(said[0], said[2])
        self.assertTrue(all(said[:3]))
        self.assertEqual(r.stderr.decode().count("the answer ends after 12 tokens (--max-tokens)"), 3)
        self.assertRegex(r.stderr.decode().split("\n")[-2], r"^prompt \d+ tokens, .* \| decode \d+ tokens, .* \| seed \d+$")
        self.assertNotIn(">", r.stderr.decode())
        quiet = self.chat("-q", input=b"Once upon a time\r\n")
        self.assertEqual((quiet.returncode, quiet.stderr), (0, b""))  # it ends its turn itself
        self.assertTrue(quiet.stdout.decode().startswith(said[0]))
        self.assertEqual(self.chat(input=b"").stdout, b"")

    def test_chat_system_and_variables(self):
        plain = self.chat("-q", "-n", "8", input=b"Lily was sad. Then\n").stdout
        self.assertEqual(self.chat("-q", "-n", "8", "-s", "Lily was sad.", input=b"Then\n").stdout, plain)
        mood = self.chat("-q", "-n", "8", "--set", "mood= she", input=b"Then\n").stdout
        self.assertEqual(self.chat("-q", "-n", "8", input=b"Then she").stdout, mood)
        self.refuses(self.chat("--set", "mood", input=b""), "'mood' is not NAME=VALUE")

    def test_chat_says_what_is_wrong(self):
        self.refuses(run("chat", "builtin", input=b"Hi\n"), "no chat template", "--template FILE", "generate")
        self.refuses(run("chat", "builtin", "--template", "/nowhere/t.jinja", input=b""), "/nowhere/t.jinja")
        self.refuses(run("chat", "builtin", "--template", SOURCE / "README.md", input=b""), "README.md: line ")
        self.refuses(self.chat(input=b"x " * 2000), "do not fit the context of 384", "--context")
        r = self.chat("--context", "10", "-q", input=b"Once upon a time")
        self.assertEqual(r.returncode, 0)
        self.assertIn("the answer ends with the context of 10 positions", r.stderr.decode())

    def test_chat_template_of_the_checkpoint(self):
        story = (SOURCE / "models/story/story.gguf").read_bytes()
        text = lambda s: struct.pack("<Q", len(s)) + s
        with tempfile.TemporaryDirectory() as d:
            template = self.TEMPLATE.encode()
            more = text(b"tokenizer.chat_template") + struct.pack("<I", 8) + text(template)
            fill = text(b"x") + struct.pack("<I", 8)  # so that the tensors stay aligned
            more += fill + text(b"y" * (-(len(more) + len(fill) + 8) % 32))
            self.assertEqual(len(more) % 32, 0)
            count = struct.unpack("<Q", story[16:24])[0]
            (pathlib.Path(d) / "x.gguf").write_bytes(story[:16] + struct.pack("<Q", count + 2) + more + story[24:])
            r = run("chat", pathlib.Path(d) / "x.gguf", "-t", "0", "-q", input=b"Once upon a time\n")
            self.assertTrue(json.loads(run("inspect", pathlib.Path(d) / "x.gguf", "--json").stdout)["model"]["chat_template"])
        self.assertEqual(r.stdout, self.chat("-q", input=b"Once upon a time\n").stdout, r.stderr)

    def test_chat_on_a_terminal(self):
        key = b"tokenizer.ggml.eos_token_id" + struct.pack("<I", 4)
        story = (SOURCE / "models/story/story.gguf").read_bytes()
        with tempfile.TemporaryDirectory() as d:
            d = pathlib.Path(d)
            (d / "endless.gguf").write_bytes(story.replace(key + struct.pack("<I", 2), key + struct.pack("<I", 0)))
            (d / "t.jinja").write_text(self.TEMPLATE)
            pid, terminal = pty.fork()
            if pid == 0:
                os.execv(LIGHTCONE, [LIGHTCONE, "chat", str(d / "endless.gguf"), "--template", str(d / "t.jinja"), "--context", "100000", "--threads", "1"])
            seen = b""

            def until(what):
                nonlocal seen
                end = time.time() + 60
                while what not in seen and time.time() < end:
                    if select.select([terminal], [], [], 1)[0]:
                        try:
                            seen += os.read(terminal, 65536)
                        except OSError:  # it has ended
                            break
                self.assertTrue(what in seen, (what, seen[-300:]))
                before, seen = seen.split(what, 1)
                return before

            def send(what):
                os.write(terminal, what)

            until(b"Ctrl-D ends.")
            until(b"> ")
            send(b"half a line\x03")  # Ctrl-C
            until(b"(Ctrl-D ends the chat)")
            until(b"> ")
            send(b"/claer\n")
            until(b"there is no such command")
            until(b"> ")
            send(b"Once upon \\\n")
            until(b"\n. ")
            send(b"a time\n")
            until(b"a time\r\n")
            time.sleep(0.3)
            send(b"\x03")
            answer = until(b"\r\n\r\n> ")  # the answer has stopped, and not the chat
            self.assertGreater(len(answer), 20)
            send(b"/clear\n")
            until(b"(a new conversation)")
            until(b"> ")
            send(b"\x04")  # Ctrl-D
            until(b"| decode ")
            while True:
                try:
                    if not os.read(terminal, 65536):
                        break
                except OSError:
                    break
            os.close(terminal)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)

    def test_help_teaches(self):
        r = run("--help")
        self.assertEqual(r.returncode, 0)
        for word in ["generate", "chat", "inspect", "convert", "view", "bench", "Once upon a time"]:
            self.assertIn(word, r.stdout.decode())
        text = " ".join(run("generate", "--help").stdout.decode().split())
        for word in ["--repetition-penalty", "at most 4 for each", "above 0, at most 1", "0 to 1"]:
            self.assertIn(word, text)
        self.assertIn("16777216]=0", run("inspect", "--help").stdout.decode())

    def test_inspect(self):
        j = json.loads(run("inspect", "builtin", "--json").stdout)
        self.assertEqual(j["parameters"], 1771200)
        self.assertEqual(j["model"]["layers"], 4)
        n = j["needs"]
        self.assertEqual(n["total"], n["weights"] + n["kv_cache"] + n["working"])
        self.assertEqual(n["kv_cache"], 2 * 4 * 2 * 384 * 32 * 4)
        numbers = 2 * 4 * 2 * 384 * 32
        for kind, size in (("f32", 4 * numbers), ("f16", 2 * numbers), ("bf16", 2 * numbers), ("i8", numbers + 4 * numbers // 32)):
            n = json.loads(run("inspect", "builtin", "--kv-cache", kind, "--json").stdout)["needs"]
            self.assertEqual((n["kv_cache_type"], n["kv_cache"]), (kind, size))
            self.assertEqual(n["total"], n["weights"] + n["kv_cache"] + n["working"])
        self.assertIn("384 positions, i8", run("inspect", "builtin", "--kv-cache", "I8").stdout.decode())
        self.assertIn("memory to run", run("inspect", "builtin").stdout.decode())

    def test_inspect_a_file_without_tensors(self):
        with tempfile.TemporaryDirectory() as d:
            d = pathlib.Path(d)
            (d / "x.gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 0))
            (d / "x.safetensors").write_bytes(struct.pack("<Q", 2) + b"{}")
            for name in ["x.gguf", "x.safetensors"]:
                r = run("inspect", d / name)
                self.assertEqual(r.returncode, 0, r.stderr)
                self.assertIn("0 in 0 tensors, 0 B", r.stdout.decode())
                self.assertIn("cannot run", r.stdout.decode())
                self.assertEqual(json.loads(run("inspect", d / name, "--json").stdout)["types"], {})

    def tensors_of(self, path):
        """The header of a safetensors file, and each tensor's bytes."""
        raw = path.read_bytes()
        size = struct.unpack("<Q", raw[:8])[0]
        header = json.loads(raw[8:8 + size])
        metadata = header.pop("__metadata__", {})
        data = raw[8 + size:]
        return metadata, {k: (t["dtype"], t["shape"], data[slice(*t["data_offsets"])].hex()) for k, t in header.items()}

    def test_convert_keeps_names_shapes_and_bits(self):
        goldens = SOURCE / "tests/goldens/torch"
        wanted = {}
        for line in (goldens / "expected.txt").read_text().splitlines():
            file, name, kind, shape, data = line.split("\t")
            wanted.setdefault(file, {})[name] = (kind, [int(n) for n in shape.split(",") if n], data)
        with tempfile.TemporaryDirectory() as d:
            d = pathlib.Path(d)
            for file in ("zip_checkpoint.pt", "old_checkpoint.pt", "old_views.pt", "script.pt", "zip_module_4.pt"):
                r = run("convert", goldens / file, d / "a.safetensors")
                self.assertEqual(r.returncode, 0, r.stderr)
                self.assertIn("%d tensors" % len(wanted[file]), r.stdout.decode())
                metadata, tensors = self.tensors_of(d / "a.safetensors")
                self.assertEqual(tensors, wanted[file], file)
            run("convert", goldens / "zip_checkpoint.pt", d / "a.safetensors")
            metadata, tensors = self.tensors_of(d / "a.safetensors")
            self.assertEqual(metadata["epoch"], "3")
            # through the other formats and back
            self.assertEqual(run("convert", goldens / "zip_checkpoint.pt", d / "a.npz").returncode, 0)
            self.assertEqual(run("convert", d / "a.npz", d / "b.safetensors").returncode, 0)
            self.assertEqual(self.tensors_of(d / "b.safetensors")[1], tensors)
            self.assertEqual(run("convert", d / "a.safetensors", d / "a.gguf").returncode, 0)
            self.assertEqual(run("convert", d / "a.gguf", d / "c.safetensors").returncode, 0)
            self.assertEqual({k: t[2] for k, t in self.tensors_of(d / "c.safetensors")[1].items()}, {k: t[2] for k, t in tensors.items()})
            # halves of every floating tensor, and of them alone
            self.assertEqual(run("convert", goldens / "zip_views.pt", d / "h.safetensors", "--type", "bf16").returncode, 0)
            halves = self.tensors_of(d / "h.safetensors")[1]
            self.assertEqual({t[0] for t in halves.values()}, {"BF16"})
            self.assertEqual(halves["slice"][2][:8], "e0400041")  # 7 and 8
            for words, args in ((["ends in none of .safetensors, .npz and .gguf"], [goldens / "zip_views.pt", d / "x.pt"]),
                                (["is stored as C128, which cannot be converted"], [goldens / "zip_dtypes.pt", d / "x.npz"]),
                                (["there is no file"], [d / "none.pt", d / "x.npz"]),
                                (["'f64' is none of f32, f16, bf16"], [goldens / "zip_views.pt", d / "x.npz", "--type", "f64"])):
                self.refuses(run("convert", *args), *words)
            self.assertEqual(sorted(p.name for p in d.iterdir()), ["a.gguf", "a.npz", "a.safetensors", "b.safetensors", "c.safetensors", "h.safetensors"])
            r = run("inspect", goldens / "zip_checkpoint.pt", "--tensors")
            self.assertEqual(r.returncode, 0, r.stderr)
            for words in ("PyTorch", "epoch = 3", "conv.weight F32 [3,2,2,2]", "optimizer.state.0.exp_avg F32", "cannot run"):
                self.assertIn(words, r.stdout.decode())

    def test_a_terminal_obeys_no_file(self):
        evil = b"\x1b]0;gone\x07\x1b[2J\r\xc2\x9b31m\xe2\x80\xae\xff" + b"y" * 20000
        text = lambda s: struct.pack("<Q", len(s)) + s
        tensor = lambda name: text(name) + struct.pack("<IQIQ", 1, 0, 0, 0)
        values = [text(b"general.architecture") + struct.pack("<I", 8) + text(evil), text(evil) + struct.pack("<I", 8) + text(evil)]
        head = b"GGUF" + struct.pack("<IQQ", 3, 1, len(values)) + b"".join(values) + tensor(evil)
        name, value = json.dumps("\u001b[2J\u009b\u202e" + "y" * 20000), json.dumps("\u001b[2J\u202e")
        plain = ('{"__metadata__":{%s:%s},%s:{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}' % (name, value, name)).encode()
        with tempfile.TemporaryDirectory() as d:
            d = pathlib.Path(d)
            (d / "x.gguf").write_bytes(head + bytes(-len(head) % 32))
            (d / "x.safetensors").write_bytes(struct.pack("<Q", len(plain)) + plain)
            (d / "\x1b[2J.gguf").write_bytes(b"GGUF")
            for args in [["inspect", d / "x.gguf"], ["inspect", d / "x.gguf", "--tensors"], ["inspect", d / "x.gguf", "--json", "--tensors"],
                         ["inspect", d / "x.safetensors", "--tensors"], ["inspect", d / "x.safetensors", "--json"],
                         ["generate", d / "x.gguf", "x"], ["view", d / "x.gguf"], ["inspect", d / "\x1b[2J.gguf"], ["\x1b[2J"]]:
                r = run(*args)
                for out in [r.stdout, r.stderr]:
                    words = out.decode()  # it is UTF-8
                    self.assertIsNone(re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]", words), (args, words[:300]))
                    if "--json" not in args:
                        self.assertLess(max(map(len, words.split("\n"))), 3000, args)
            self.assertIn("\\x1b]0;gone\\x07", run("inspect", d / "x.gguf").stdout.decode())

    def test_what_a_model_says(self):
        # its word for "there" clears the screen: in a pipe that is what the model said, on a terminal it is spelled out
        word = "\u2581there".encode()
        evil = b"\x1b[2J\x9b\r\x07\n"
        self.assertEqual(len(word), len(evil))
        story = (SOURCE / "models/story/story.gguf").read_bytes()
        length = struct.pack("<Q", len(word))
        self.assertEqual(story.count(length + word), 1)
        with tempfile.TemporaryDirectory() as d:
            model = pathlib.Path(d) / "x.gguf"
            model.write_bytes(story.replace(length + word, length + evil))
            args = ["generate", model, "Long ago, near the hill,", "-t", "0", "-n", "3", "-q"]
            self.assertIn(evil, run(*args).stdout)
            near, far = os.openpty()
            r = subprocess.run([LIGHTCONE, *map(os.fsencode, args)], stdout=far, stderr=subprocess.PIPE, timeout=120)
            os.close(far)
            shown = os.read(near, 4096)
            os.close(near)
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn(b"\\x1b[2J\\x9b\\x0d\\x07\r\n", shown)
        self.assertNotIn(b"\x1b", shown)

    def test_view_is_one_page_that_needs_no_network(self):
        with tempfile.TemporaryDirectory() as d:
            out = pathlib.Path(d) / "graph.html"
            r = run("view", "builtin", "-o", out)
            self.assertEqual(r.returncode, 0)
            self.assertNotIn(b"\n\n", r.stderr)
            page = out.read_text()
        # as written, and after every pass that changed something
        for title in ("as written", "after fuse-attention", "after cpu"):
            self.assertTrue(title in page, title)
        self.assertFalse("after unroll windows" in page)
        self.assertGreaterEqual(page.count('class="picture"'), 3)
        self.assertTrue("matmul_bf16" in page)
        self.assertTrue("linear [seq, 512] x [512, 192]" in page)
        self.assertIsNone(re.search(r'(src|href)=', page))
        self.assertTrue(run("view", "builtin", "--dot").stdout.startswith(b"digraph"))

    def test_view_of_a_training_step(self):
        with tempfile.TemporaryDirectory() as d:
            config = pathlib.Path(d) / "mlp.json"
            config.write_bytes(run("train", "--example", "mlp").stdout)
            page = run("view", config).stdout.decode()
            for word in ("as written", "compiled", "backward", "optim.step", "layers.2.weight"):
                self.assertIn(word, page)
            self.assertEqual(page.count('class="picture"'), 2)
            self.assertIn(b"most in use", run("view", config, "--memory", "--text").stdout)
            self.refuses(run("view", pathlib.Path(d) / "none.json"), "none.json")

    def test_profiles(self):
        with tempfile.TemporaryDirectory() as d:
            trace, page = pathlib.Path(d) / "trace.json", pathlib.Path(d) / "memory.html"
            r = run("generate", "builtin", "Once", "-t", "0", "-n", "12", "--profile", trace)
            self.assertEqual(r.returncode, 0, r.stderr)
            self.assertIn("llama_graph.cpp:", r.stderr.decode())
            self.assertIn("of limit", r.stderr.decode())
            events = json.loads(trace.read_text())["traceEvents"]
            self.assertTrue(any("scaled_dot_product_attention" in e["name"] for e in events))
            self.assertEqual(run("view", "builtin", "--memory", "-o", page).returncode, 0)
            self.assertEqual(page.read_text().count("<svg"), 1)
        self.assertIn("most in use", run("view", "builtin", "--memory", "--text").stdout.decode())
        self.refuses(run("generate", "builtin", "Once", "-n", "2", "-q", "--profile", "/nowhere/t.json"), "cannot open the folder")

    def test_bench_explains(self):
        r = run("bench", "fused", "--explain", "--json")
        self.assertEqual(r.returncode, 0, r.stderr)
        kernel = json.loads(r.stdout)["fused"][0]["explain"]["kernels"][0]
        self.assertTrue(kernel["what"].startswith("softmax ("), kernel)
        self.assertEqual(kernel["bytes_read"], 5 * 4 * 4096 * 4096)
        text = run("bench", "fused", "--explain", "--source", kernel["name"]).stdout.decode()
        self.assertIn(kernel["name"] + "(const void* const* in", text)

    def test_without_a_c_compiler(self):
        # an empty cache stays empty: kernels were interpreted, neither compiled nor taken from elsewhere
        with tempfile.TemporaryDirectory() as cache:
            env = dict(os.environ, LIGHTCONE_CC="none", LIGHTCONE_CACHE=cache)
            r = run("generate", "builtin", "Once upon a time", "-t", "0", "-n", "20", "-q", env=env)
            self.assertEqual(r.returncode, 0, r.stderr)
            self.assertTrue(STORY["text"].startswith(r.stdout.decode().rstrip("\n")))
            self.assertEqual(os.listdir(cache), [])
            env["LIGHTCONE_CC"] = "cc"
            self.assertEqual(run("generate", "builtin", "Once", "-n", "2", "-q", env=env).returncode, 0)
            self.assertNotEqual(os.listdir(cache), [])

    def test_a_compiler_that_does_not_work(self):
        with tempfile.TemporaryDirectory() as d:
            cc = pathlib.Path(d) / "cc"
            cc.write_text("#!/bin/sh\necho \"cc: fatal error: cannot execute 'ld'\" >&2; exit 1\n")
            cc.chmod(0o755)
            env = dict(os.environ, PATH=d, LIGHTCONE_CACHE="off", LIGHTCONE_LLVM="/nonexistent")
            env.pop("LIGHTCONE_CC", None)
            r = run("generate", "builtin", "Once upon a time", "-t", "0", "-n", "20", "-q", env=env)
            self.assertEqual(r.returncode, 0, r.stderr)
            self.assertTrue(STORY["text"].startswith(r.stdout.decode().rstrip("\n")))
            said = r.stderr.decode()
            self.assertEqual(said.count("note:"), 1, said)
            self.assertIn("cannot execute 'ld'", said)
            self.assertIn("interpreted", said)

    @unittest.skipUnless((DATA / "llm").exists(), "the reference data is not here")
    def test_a_real_checkpoint(self):
        r = run("generate", DATA / "llm/stories260K/hf", "Once upon a time", "-t", "0", "-n", "40", "-q", "--tokenizer", DATA / "llm/stories260K/tokenizer.bin")
        want = json.loads((DATA / "llm/stories260K/expected/expected.json").read_text())["cases"][1]["greedy_text"]
        self.assertTrue(want.startswith(r.stdout.decode().rstrip("\n")), r.stdout)


unittest.main(argv=[sys.argv[0]], verbosity=1)
