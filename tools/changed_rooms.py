#!/usr/bin/env python3
"""The folders of tests that a change concerns, for ./test --changed: "|folder|folder" of what differs from the branch main, or from
HEAD where that is main, files that git does not know among it."""
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Where the tests of a folder of the library have another name.
TESTED_IN = {"backends/gpu": ["gpu", "cuda"], "backends/cuda": ["cuda", "gpu"], "backends/metal": ["metal"], "backends/opencl": ["opencl"],
             "backends/pjrt": ["pjrt"], "backends/cpu": ["cpu"], "device": ["runtime"], "cache": ["cpu", "cuda"], "passes": ["core", "verify"],
             "random": ["ops"], "base": ["core"], "composites": ["composites", "ops", "reference"], "llm": ["llm", "models"]}
# The tests of a simulator, and those that run on it.
SIMULATED_IN = {"cuda": ["simulators", "cuda", "gpu"], "metal": ["simulators", "metal", "gpu"], "opencl": ["opencl"],
                "amx": ["simulators", "cpu"]}


def git(*command):
    return subprocess.run(["git", "-C", str(ROOT), *command], capture_output=True, text=True).stdout.split("\n")


def folders(path):
    parts = path.split("/")
    if parts[0] == "tests" and len(parts) > 2:
        return [parts[1]]
    if parts[0] == "simulators":
        return SIMULATED_IN.get(parts[1], ["simulators"])
    if parts[0] != "lightcone" or len(parts) < 3:
        return []
    for room, tested in TESTED_IN.items():
        if path.startswith("lightcone/%s/" % room):
            return tested
    return [parts[1]]


def main():
    base = git("merge-base", "HEAD", "main")[0] or "HEAD"
    changed = git("diff", "--name-only", base) + git("ls-files", "--others", "--exclude-standard")
    there = {p.name for p in (ROOT / "tests").iterdir() if p.is_dir()}
    print("".join("|" + f for f in sorted({f for c in changed for f in folders(c)} & there)))


if __name__ == "__main__":
    main()
