#!/usr/bin/env python3
"""How long tests take, which decides what ./test runs (cmake/test_tiers.cmake).

  tools/test_times.py [BUILD]     writes tests/times.txt from what ctest measured in BUILD (build), tests that did not run keep theirs
  tools/test_times.py --tiers     the processor's share of each tier, from tests/times.txt"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TIMES = ROOT / "tests/times.txt"
HEAD = "# Seconds of each test on two cores of a Zen 4 at 2.6 GHz, by tools/test_times.py.\n"


def known():
    if not TIMES.exists():
        return {}
    return {name: int(s) for name, s in re.findall(r"^([^ #]+) (\d+)$", TIMES.read_text(), re.M)}


def measured(build):
    """Of ctest's record: name, runs, seconds a line, until a line of dashes."""
    lines = (build / "Testing/Temporary/CTestCostData.txt").read_text().split("---")[0].splitlines()
    return {name: round(float(seconds)) for name, runs, seconds in map(str.split, lines) if int(runs) > 0 and float(seconds) > 0}


def main():
    if "--tiers" in sys.argv:
        times = known()
        for name, low, high in (("fast", 0, 3), ("full", 3, 26), ("slow", 26, 10**9)):
            some = [s for s in times.values() if low <= s < high]
            print("%s: %d tests, %d s" % (name, len(some), sum(some)))
        return
    times = dict(known(), **measured(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build")))
    TIMES.write_text(HEAD + "".join("%s %d\n" % t for t in sorted(times.items())))
    print("%d tests in %s" % (len(times), TIMES.relative_to(ROOT)))


if __name__ == "__main__":
    main()
