#!/usr/bin/env python3
"""A run of `lightcone train` that was killed or stopped goes on with the same bits, is not lost by mistake, and shares its folder with no other.

    train_resume_command_test.py PATH/TO/lightcone SOURCE_DIRECTORY
"""
import os
import signal
import subprocess
import sys
import time
import unittest

from train_case import LIGHTCONE, Case, run, tensors


class Train(Case):
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


unittest.main(argv=[sys.argv[0]], verbosity=1)
