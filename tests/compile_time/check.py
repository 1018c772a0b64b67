#!/usr/bin/env python3
"""Including lightcone.h costs under 1 s of compile time, and a typed transformer of 24 blocks under 5 s.

    check.py COMPILER INCLUDE_DIRECTORY

The best of three runs, in processor time: other work on the machine does not count. The budgets are
those of the machine they were set on, which compiles five standard headers in 0.36 s; a slower machine
gets as much more as it takes longer for those.
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


STANDARD = "#include <vector>\n#include <string>\n#include <memory>\n#include <map>\n#include <functional>\n"
slower = max(1.0, seconds(STANDARD, "-fsyntax-only") / 0.36)
print("this machine takes %.2f times as long for the standard library" % slower)

budgets = [("#include <lightcone/lightcone.h>, checked", '#include <lightcone/lightcone.h>\n', ["-fsyntax-only"], 1.0),
           ("#include <lightcone/lightcone.h>, compiled", '#include <lightcone/lightcone.h>\n', ["-c"], 1.0),
           ("a 24-block transformer, -O0", (folder / "transformer.cpp").read_text(), ["-c"], 5.0),
           ("a 24-block transformer, -O2", (folder / "transformer.cpp").read_text(), ["-c", "-O2"], 5.0)]
bad = False
for name, source, flags, budget in budgets:
    t = seconds(source, *flags)
    budget *= slower
    bad = bad or t > budget
    print("%-45s %.2f s of %.1f s%s" % (name, t, budget, "  TOO SLOW" if t > budget else ""))
sys.exit(bad)
