#!/usr/bin/env python3
"""`lightcone plan` predicts one mesh, compares all of them, says why others do not fit, and refuses what it cannot plan.

    plan_command_test.py PATH/TO/lightcone
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

LIGHTCONE = sys.argv[1]
MLP = {"model": {"kind": "mlp", "hidden": [64, 64]},
       "data": {"format": "npy", "train": ["x.npy", "y.npy"], "shape": [32], "classes": 8},
       "train": {"steps": 10, "batch": 16, "optimizer": "adamw", "clip": 1.0}}
MACHINE = ["--links", "10us,1GB/s;1us,10GB/s", "--flops", "10GFLOP/s", "--bandwidth", "10GB/s"]


def plan(*args, compiler=None, **sections):
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder, "mlp.json")
        config.write_text(json.dumps(dict(MLP, **sections)))
        return subprocess.run([LIGHTCONE, "plan", config, *args], capture_output=True, timeout=300, text=True,
                              env=dict(os.environ, LIGHTCONE_CC=compiler) if compiler else None)


class Plan(unittest.TestCase):
    def test_one_mesh(self):
        done = plan("--mesh", "data=4", "--memory", "1GB", "--ranks-per-machine", "2", *MACHINE)
        self.assertEqual(done.returncode, 0, done.stderr)
        for words in ["4 ranks (data=4), which are alike", "of 1.0 GB: it fits", "all_reduce", "bound by"]:
            self.assertIn(words, done.stdout)

    def test_numbers(self):
        one = json.loads(plan("--mesh", "data=4", "--json", *MACHINE).stdout)
        parameters = (32 * 64 + 64) + (64 * 64 + 64) + (64 * 8 + 8)
        self.assertEqual(one["memory"]["parameters"], 4 * parameters)
        self.assertEqual(one["bytes_between"], 0)
        self.assertEqual(one["bytes_within"], sum(e["bytes_within"] * e["times"] for e in one["exchanges"]))
        # An all_reduce among four ranks sends 6/4 of an array, or three times one that is small.
        self.assertGreaterEqual(one["bytes_within"], 4 * parameters * 6 / 4)
        self.assertLessEqual(one["bytes_within"], 4 * parameters * 3 + 1000)
        self.assertLessEqual(one["seconds"]["exposed"], one["seconds"]["exchanges"] + 1e-9)
        full = json.loads(plan("--mesh", "data=4", "--sharding", "full", "--json", *MACHINE).stdout)
        self.assertLess(full["memory"]["parameters"], 0.3 * one["memory"]["parameters"])
        hidden = json.loads(plan("--mesh", "data=4", "--overlap", "--json", *MACHINE).stdout)
        self.assertLessEqual(hidden["seconds"]["step"], one["seconds"]["step"])

    def test_the_mesh_of_the_configuration(self):
        given = plan("--mesh", "data=2,model=2", "--sharding", "full", "--json", *MACHINE)
        own = plan("--json", *MACHINE, mesh={"data": 2, "model": 2}, distributed={"shard": "full"})
        self.assertEqual(own.returncode, 0, own.stderr)
        self.assertEqual(json.loads(own.stdout), json.loads(given.stdout))

    def test_thousands_of_ranks(self):
        many = json.loads(plan("--mesh", "data=16,model=64", "--sharding", "full", "--ranks-per-machine", "8", "--json", *MACHINE).stdout)
        self.assertEqual(many["ranks"], 1024)
        self.assertGreater(many["bytes_between"], 0)

    def test_all_meshes(self):
        done = plan("--mesh", "auto", "--ranks", "4", *MACHINE)
        self.assertEqual(done.returncode, 0, done.stderr)
        for words in ["data=4, model=1", "data=2, model=2", "data=1, model=4", "the quickest that fits"]:
            self.assertIn(words, done.stdout)
        small = plan("--mesh", "auto", "--ranks", "4", "--memory", "10kB", *MACHINE)
        self.assertEqual(small.returncode, 1)
        self.assertIn("parameters and states alone are", small.stdout)
        self.assertIn("no mesh of 4 ranks fits", small.stderr)
        odd = plan("--mesh", "auto", "--ranks", "3", "--json", *MACHINE)
        self.assertTrue(all("why_not" in c for c in json.loads(odd.stdout)), odd.stdout)

    def test_every_mesh_has_the_plan_that_it_has_alone(self):
        for c in json.loads(plan("--mesh", "auto", "--ranks", "4", "--json", *MACHINE).stdout):
            alone = plan("--mesh", c["mesh"], "--sharding", c["sharding"], "--json", *MACHINE)
            self.assertEqual(json.loads(alone.stdout), c)

    def test_a_plan_makes_no_machine_code(self):
        done = plan("--mesh", "data=4", *MACHINE, compiler="no-such-compiler")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")

    def test_pipelines(self):
        model = {"kind": "mlp", "hidden": [64, 64, 64, 64]}
        whole = json.loads(plan("--mesh", "data=1", "--json", *MACHINE, model=model).stdout)
        pipe = json.loads(plan("--mesh", "pipe=2,data=2", "--microbatches", "4", "--json", *MACHINE, model=model).stdout)
        stages = pipe["stages"]
        self.assertEqual(len(stages), 2)
        self.assertEqual(sum(s["memory"]["parameters"] for s in stages), whole["memory"]["parameters"])
        self.assertEqual(pipe["memory"]["total"], max(s["memory"]["total"] for s in stages))
        for s in stages:
            self.assertAlmostEqual(s["computing"] + s["exposed"] + s["waiting"], pipe["seconds"]["step"], delta=1e-9)
        sent = [e for e in pipe["exchanges"] if e["operation"] == "send"]
        self.assertTrue(sent and all(e["along"] == "pipe" for e in sent), pipe["exchanges"])
        text = plan("--mesh", "pipe=2,data=2", "--microbatches", "4", *MACHINE, model=model)
        for words in ["alike within a stage; a batch in 4 parts", "the fullest", "waiting for stages"]:
            self.assertIn(words, text.stdout)

    def test_a_batch_in_parts_needs_less_memory(self):
        whole, parts = (json.loads(plan("--mesh", "data=2", "--microbatches", str(n), "--json", *MACHINE,
                                        train=dict(MLP["train"], batch=1024)).stdout)["memory"] for n in (1, 8))
        self.assertEqual(parts["parameters"], whole["parameters"])
        self.assertLess(parts["values"], 0.5 * whole["values"])

    def test_all_meshes_with_pipelines(self):
        found = json.loads(plan("--mesh", "auto", "--ranks", "4", "--stages", "2", "--microbatches", "4", "--json", *MACHINE).stdout)
        meshes = {c["mesh"] for c in found}
        self.assertIn("pipe=2, data=2, model=1", meshes)
        self.assertIn("data=2, model=2", meshes)
        self.assertFalse(any("pipe=4" in m for m in meshes))

    def test_mistakes(self):
        for args, words in [((), "--mesh is missing"), (("--mesh", "data=2"), "--links is missing"),
                            (("--mesh", "rows=2", *MACHINE), "'rows' is none of data, model and pipe"),
                            (("--mesh", "data=7", *MACHINE), "is no multiple of 7 ranks (data)"),
                            (("--mesh", "model=7", *MACHINE), "no parameter of this model is divided by 7 ranks"),
                            (("--mesh", "data=2", "--links", "fast"), "'fast' is no link"),
                            (("--mesh", "data=2", "--links", "1us,1GB/s", "--flops", "fast"), "is no positive number of FLOP/s"),
                            (("--mesh", "data=2", "--links", "1us,1GB/s", "--flops", "1GFLOP/s"), "--bandwidth is not"),
                            (("--mesh", "pipe=2", "--overlap", *MACHINE), "is not planned for the stages of a pipeline"),
                            (("--mesh", "pipe=64", *MACHINE), "a pipeline of 64 stages needs more than"),
                            (("--mesh", "data=2", "--microbatches", "5", *MACHINE), "is no multiple of 10 ranks (data+micro)"),
                            (("--mesh", "auto", *MACHINE), "needs the number of ranks")]:
            done = plan(*args)
            self.assertEqual(done.returncode, 1, args)
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
