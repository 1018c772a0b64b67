#!/usr/bin/env python3
"""Keeps the compile-time budgets: lightcone.h under 1 s, a 24-block transformer under 5 s.

    check.py COMPILER INCLUDE_DIRECTORY

The best of three runs, in processor time: other work on the machine does not count.
"""
import os
import pathlib
import resource
import subprocess
import sys

compiler, include = sys.argv[1:3]
folder = pathlib.Path(__file__).parent


def seconds(source, *flags):
    best = 1e9
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([compiler, "-std=c++20", "-I", include, *flags, "-x", "c++", "-o", os.devnull, "-"], input=source.encode(), check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


budgets = [("#include <lightcone/lightcone.h>, checked", '#include <lightcone/lightcone.h>\n', ["-fsyntax-only"], 1.0),
           ("#include <lightcone/lightcone.h>, compiled", '#include <lightcone/lightcone.h>\n', ["-c"], 1.0),
           ("a 24-block transformer, -O0", (folder / "transformer.cpp").read_text(), ["-c"], 5.0),
           ("a 24-block transformer, -O2", (folder / "transformer.cpp").read_text(), ["-c", "-O2"], 5.0)]
bad = False
for name, source, flags, budget in budgets:
    t = seconds(source, *flags)
    bad = bad or t > budget
    print("%-45s %.2f s of %.0f s%s" % (name, t, budget, "  TOO SLOW" if t > budget else ""))
sys.exit(bad)
