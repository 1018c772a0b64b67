#!/usr/bin/env python3
"""`lightcone devices` lists every device, and `--device` gives the same story and the same losses on each of them.

The devices are the simulated CUDA and Metal and, where a driver is installed, OpenCL.

    device_command_test.py PATH/TO/lightcone SOURCE_DIRECTORY FAKE_CUDA FAKE_METAL
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

LIGHTCONE, SOURCE, CUDA, METAL = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3], sys.argv[4]
STORY = json.loads((SOURCE / "models/story/reference.json").read_text())["text"]
# kept for all of this file, so that a kernel is compiled once
CACHE = tempfile.TemporaryDirectory()
HERE = dict(os.environ, LIGHTCONE_CUDA_DRIVER=CUDA, LIGHTCONE_NVRTC=CUDA, LIGHTCONE_METAL=METAL, LIGHTCONE_CACHE=CACHE.name)
NOWHERE = dict(HERE, LIGHTCONE_CUDA_DRIVER="/nowhere/a.so", LIGHTCONE_OPENCL="/nowhere/b.so", LIGHTCONE_METAL="/nowhere/c.so")


def run(*args, env=HERE, **kw):
    return subprocess.run([LIGHTCONE, *map(os.fsencode, args)], capture_output=True, timeout=300, env=env, **kw)


def listed(env=HERE):
    r = run("devices", "--json", env=env)
    assert r.returncode == 0 and r.stderr == b"", r.stderr
    return json.loads(r.stdout)


USABLE = [d["device"] for d in listed()["devices"] if d["device"] != "cpu" and "unusable" not in d]


class Devices(unittest.TestCase):
    def refuses(self, r, *words):
        err = r.stderr.decode(errors="replace")
        self.assertEqual(r.returncode, 1, err)
        self.assertTrue(err.startswith("lightcone: "), err)
        self.assertEqual(err.count("\n"), 1, err)
        for w in words:
            self.assertIn(w, err)

    def test_what_is_there(self):
        r = run("devices")
        self.assertEqual((r.returncode, r.stderr), (0, b""))
        lines = r.stdout.decode().splitlines()
        self.assertRegex(lines[0], r"^cpu       .+, \d+ cores, \S+, [\d.]+ [GT]B")
        self.assertRegex(lines[1], r"^cuda:0    Fake CUDA device on the CPU, sm_90, [\d.]+ GB, \d+ processors, groups of 1024 threads with [\d.]+ kB, f64, driver: CUDA 13.0$")
        self.assertTrue(any(l.startswith("metal:0   Fake Metal device, applegpu_fake, ") and ", no f64, " in l for l in lines), lines)
        all = listed()
        self.assertEqual(all["devices"][0]["cores"], len(os.sched_getaffinity(0)))
        cuda = all["devices"][1]
        self.assertEqual((cuda["device"], cuda["name"], cuda["f64"]), ("cuda:0", "Fake CUDA device on the CPU", True))
        self.assertGreater(cuda["memory_bytes"], 1 << 30)
        self.assertEqual(len(lines), len(all["devices"]) + len(all["missing"]))

    def test_why_the_others_are_not(self):
        r = run("devices", env=NOWHERE)
        self.assertEqual((r.returncode, r.stderr), (0, b""))
        lines = r.stdout.decode().splitlines()
        self.assertEqual(len(lines), 4)
        for line, words in zip(lines[1:], [["cuda      none: ", "/nowhere/a.so", "install NVIDIA's driver"],
                                           ["opencl    none: ", "/nowhere/b.so", "install the driver"],
                                           ["metal     none: ", "/nowhere/c.so", "LIGHTCONE_METAL"]]):
            self.assertTrue(line.startswith(words[0]), line)
            for w in words:
                self.assertIn(w, line)
        self.assertEqual([m["api"] for m in listed(NOWHERE)["missing"]], ["cuda", "opencl", "metal"])

    def test_a_driver_without_its_compiler(self):
        env = dict(HERE, LIGHTCONE_NVRTC="/nowhere/nvrtc.so")
        cuda = listed(env)["devices"][1]
        self.assertIn("/nowhere/nvrtc.so", cuda["unusable"])
        self.assertIn("cannot be used: NVRTC", run("devices", env=env).stdout.decode())
        self.refuses(run("generate", "builtin", "Once", "--device", "cuda", env=env), "cuda: NVRTC", "LIGHTCONE_NVRTC")

    def test_the_same_story_everywhere(self):
        for device in USABLE:
            r = run("generate", "builtin", "Once upon a time", "-t", "0", "-n", "10", "--context", "64", "--device", device)
            self.assertEqual(r.returncode, 0, r.stderr)
            self.assertTrue(STORY.startswith(r.stdout.decode().rstrip("\n")), (device, r.stdout))
            *notes, line = r.stderr.decode().splitlines()
            # no share of a limit: that is measured on the CPU alone
            self.assertRegex(line, r"^prompt 5 tokens, [\d.]+ tok/s \| decode 9 tokens, [\d.]+ tok/s \| on .+: plan [\d.]+ MB \| here: peak [\d.]+ MB \| seed \d+$")
            if device.startswith("metal"):  # positions are f64
                self.assertEqual(len(notes), 1)
                self.assertRegex(notes[0], r"^lightcone: note: \d+ kernels run on the CPU, because Fake Metal device has no f64$")
            elif device.startswith("cuda"):
                self.assertEqual(notes, [])
        self.assertIn("cuda:0", USABLE)
        self.assertIn("metal:0", USABLE)

    def test_words_that_are_wrong(self):
        generate = lambda device, **kw: run("generate", "builtin", "Once", "--device", device, **kw)
        for device, words in [("cude", "'cude' is none of cpu, cuda, opencl, metal; did you mean cuda? ("),
                              ("vulkan", "'vulkan' is none of cpu, cuda, opencl, metal ("), ("", "is none of cpu"), ("cuda:", "no number behind the colon, as in cuda:1"),
                              ("metal:-1", "no number behind the colon, as in metal:1"), ("opencl:1x", "no number"),
                              ("cuda:99999999999", "no number"), ("cpu:1", "there is one CPU; --threads"),
                              ("cuda:3", "there is no CUDA device 3: this machine has 1"), ("metal:9", "there is no device 9")]:
            self.refuses(generate(device), words)
        self.refuses(generate("cuda", env=NOWHERE), "/nowhere/a.so", "install NVIDIA's driver")
        self.assertEqual(run("generate", "builtin", "Once", "-n", "1", "-q", "--device", "cpu:0").returncode, 0)

    def test_a_device_without_memory(self):
        env = dict(HERE, FAKE_CUDA_MEMORY=str(2 << 20))
        self.refuses(run("generate", "builtin", "Once", "--device", "cuda", env=env), "there are 2 MB")

    def test_help(self):
        for command in ["generate", "chat", "bench", "view", "train"]:
            text = " ".join(run(command, "--help").stdout.decode().split())
            self.assertIn("cpu (default), cuda, opencl or metal; cuda:1 is the second of its kind. 'lightcone devices' lists them", text)
        self.assertIn("lightcone devices", run("--help").stdout.decode())
        text = run("devices", "--help").stdout.decode()
        for variable in ["LIGHTCONE_CUDA_DRIVER", "LIGHTCONE_NVRTC", "LIGHTCONE_OPENCL", "LIGHTCONE_METAL", "--json"]:
            self.assertIn(variable, text)

    def test_chat_and_profile_and_view(self):
        with tempfile.TemporaryDirectory() as d:
            d = pathlib.Path(d)
            (d / "t.jinja").write_text("<s>{% for m in messages %}{{ m.content }}{% endfor %}")
            chat = lambda *args: run("chat", "builtin", "--template", d / "t.jinja", "-t", "0", "-q", "-n", "6", "--context", "64", *args, input=b"Once upon a time\n")
            there = chat("--device", "cuda")
            self.assertEqual(there.returncode, 0, there.stderr)
            self.assertEqual(there.stdout, chat().stdout)
            r = run("generate", "builtin", "Once", "-t", "0", "-n", "3", "--context", "64", "--device", "cuda", "--profile", d / "trace.json")
            self.assertEqual(r.returncode, 0, r.stderr)
            self.assertRegex(r.stderr.decode().splitlines()[0], r"^\d+ runs, [\d.]+ ms each$")  # and no limits
            self.assertTrue(json.loads((d / "trace.json").read_text())["traceEvents"])
            r = run("view", "builtin", "--layers", "1", "--device", "cuda", "-o", d / "g.html")
            self.assertEqual(r.returncode, 0, r.stderr)
            self.assertIn("gpu", r.stderr.decode())

    def test_training(self):
        with tempfile.TemporaryDirectory() as d:
            d = pathlib.Path(d)
            rows = ["%d,%d,%d" % (k % 7 - 3, k % 5 - 2, int(k % 7 > 3)) for k in range(70)]
            (d / "train.csv").write_text("\n".join(["a,b,label", *rows]) + "\n")
            config = {"model": {"kind": "mlp", "hidden": [8]}, "data": {"format": "csv", "train": "train.csv", "shape": [2], "classes": 2},
                      "train": {"steps": 12, "batch": 16, "lr": 0.02}, "evaluate": {"every": 6}, "log": {"every": 3}}
            losses = {}
            for device in ["cpu", "cuda", "metal"]:
                (d / (device + ".json")).write_text(json.dumps(config))
                r = run("train", d / (device + ".json"), "--device", device)
                self.assertEqual(r.returncode, 0, r.stderr)
                lines = [json.loads(l) for l in (d / (device + ".run") / "log.jsonl").read_text().splitlines()]
                losses[device] = [l["loss"] for l in lines if "loss" in l]
            self.assertLess(losses["cpu"][-1], losses["cpu"][0])
            for device in ["cuda", "metal"]:
                self.assertEqual(len(losses[device]), len(losses["cpu"]))
                for got, want in zip(losses[device], losses["cpu"]):
                    self.assertAlmostEqual(got, want, delta=1e-4 * want)

    def test_bench_measures_no_limits_of_gpus(self):
        r = run("bench", "compile", "--nodes", "300", "--device", "cuda", "--json")
        self.assertEqual(r.returncode, 0, r.stderr)
        j = json.loads(r.stdout)
        self.assertEqual(j["machine"], "Fake CUDA device on the CPU")
        self.assertGreater(j["compile"][0]["kernels"], 0)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
