#!/usr/bin/env python3
"""Predictions of `lightcone plan` beside what happens: steps of trainings on 2, 4 and 8 ranks of this machine, with its own links
and with slowed ones.

    predictions.py LIGHTCONE [--mpiexec MPIEXEC] [--rounds N] [--steps N] [--only WORD] [--markdown]

Links and sums are measured first, by two ranks. Each configuration is then predicted and run in turn, several times: the
prediction has the times of one rank's kernels, measured without exchanges, and the links; the run has all ranks. The table shows
medians. Figures of a machine that does other things at the same time mean little: the script says when rounds differ much.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1",
                   OMPI_MCA_hwloc_base_binding_policy="none", OMPI_MCA_plm_rsh_agent="false", OMPI_MCA_mpi_yield_when_idle="0",
                   OMPI_MCA_btl_vader_single_copy_mechanism="none")
DATA = {"format": "npy", "train": ["x.npy", "y.npy"], "shape": [784], "classes": 16}
TRAIN = {"steps": 10, "batch": 64, "optimizer": "adamw", "clip": 1.0}
MODELS = {
    "mlp": {"model": {"kind": "mlp", "hidden": [1024, 1024, 1024]}, "data": DATA, "train": dict(TRAIN, batch=64)},
    "gpt": {"model": {"kind": "llama", "layers": 4, "width": 256, "heads": 8, "intermediate": 768, "context": 64, "vocabulary": 1024},
            "data": {"format": "text", "train": "input.txt"}, "train": dict(TRAIN, batch=8)},
    "resnet": {"model": {"kind": "resnet", "depth": 8, "width": 16},
               "data": {"format": "cifar10", "train": ["cifar"]}, "train": dict(TRAIN, batch=16)},
}
SLOW = "1ms,125MB/s,50us"  # 1 Gbit/s
CASES = [  # model, mesh, what is divided besides, slowed links
    ("mlp", "data=2", "none", False),
    ("mlp", "data=2", "full", False),
    ("mlp", "model=2", "none", False),
    ("mlp", "data=2", "none", True),
    ("gpt", "data=2", "none", False),
    ("gpt", "data=2", "optimizer", False),
    ("gpt", "model=2", "none", False),
    ("gpt", "data=2", "none", True),
    ("resnet", "data=2", "none", False),
    ("mlp", "data=4", "none", False),
    ("gpt", "data=2,model=2", "none", False),
    ("gpt", "data=4", "full", True),
    ("resnet", "data=4", "none", False),
    ("mlp", "data=8", "optimizer", False),
    ("gpt", "data=4,model=2", "none", False),
    ("gpt", "data=8", "none", True),
]


def ranks_of(mesh):
    n = 1
    for axis in mesh.split(","):
        n *= int(axis.split("=")[1])
    return n


def json_of(command, limit=300):
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=limit)
    if done.returncode:
        sys.exit("%s\n%s%s" % (" ".join(command), done.stdout, done.stderr))
    return json.loads(done.stdout)


class Links:
    """This machine's, and the options that say them."""

    def __init__(self, o):
        found = [json_of([o.mpiexec, "-n", "2", o.lightcone, "plan", "--measure-links", "--json"]) for _ in range(3)]
        middle = {key: statistics.median(f[key] for f in found) for key in found[0]}
        self.sums = "%gB/s" % middle["sums"]
        self.own = "%.6gs,%.6gB/s,%.6gs" % (middle["latency"], middle["bandwidth"], middle["seconds_per_message"])

    def options(self, slowed):
        links = SLOW + ";" + self.own if slowed else self.own
        return ["--links", links, "--sums", self.sums] + (["--slowed", "--ranks-per-machine", "1"] if slowed else [])


def compare(o, links, folder, model, mesh, sharding, slowed):
    config = str(folder / (model + ".json"))
    plan = [o.lightcone, "plan", config, "--mesh", mesh, "--sharding", sharding, "--json", *links.options(slowed)]
    predicted, ran, parts = [], [], None
    for _ in range(o.rounds):
        parts = json_of(plan + ["--measure"])
        predicted.append(parts["seconds"]["step"])
        run = json_of([o.mpiexec, "-n", str(ranks_of(mesh)), *plan, "--run", str(o.steps)])
        if run["memory"]["program"] != parts["memory"]["program"]:
            sys.exit("%s: other memory than planned" % model)
        ran.append(run["ran"]["seconds"])
    return predicted, ran, parts


def main():
    p = argparse.ArgumentParser()
    p.add_argument("lightcone")
    p.add_argument("--mpiexec", default="mpiexec")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--steps", type=int, default=15)
    p.add_argument("--only", default="")
    p.add_argument("--markdown", action="store_true")
    o = p.parse_args()
    links = Links(o)
    print("links %s, sums %s; slowed ones %s" % (links.own, links.sums, SLOW))
    row = "| %s | %s | %s | %s | %s | %s | %s | %s |" if o.markdown else "%-7s %5s  %-15s %-9s %-6s %10s %10s %7s"
    print(row % ("model", "ranks", "mesh", "divided", "links", "planned ms", "ran ms", "error"))
    if o.markdown:
        print("|---" * 8 + "|")
    errors = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for model, config in MODELS.items():
            (folder / (model + ".json")).write_text(json.dumps(config))
        for case in CASES:
            if o.only not in " ".join(map(str, case)):
                continue
            predicted, ran, _ = compare(o, links, folder, *case)
            error = statistics.median(predicted) / statistics.median(ran) - 1
            errors.append(abs(error))
            model, mesh, sharding, slowed = case
            spread = max(max(v) / min(v) for v in (predicted, ran))
            print(row % (model, ranks_of(mesh), mesh, sharding, "slowed" if slowed else "own", "%.2f" % (1e3 * statistics.median(predicted)),
                         "%.2f" % (1e3 * statistics.median(ran)), "%+.0f %%" % (100 * error)),
                  " disturbed: rounds differ by %.1f" % spread if spread > 1.3 else "", flush=True)
    print("%d of %d within 15 %%" % (sum(e <= 0.15 for e in errors), len(errors)))


if __name__ == "__main__":
    main()
