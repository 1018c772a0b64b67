#!/usr/bin/env python3
"""No file of the library exceeds 600 lines, and lightcone/core stays within its budget of lines of code."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# 110 more than at first: a Tensor knows when its graph is gone, views have all of their names in PyTorch, indices can be checked.
# 170 more: integers of all sizes with an unsigned order, bitwise operations and bitcast with their definitions; the body
# of a loop, which the reader and the writer of StableHLO know, too.
# 20 more: two floats of 8 bits, and what the table of element types says of each float.
# 100 more: expressions of sizes and views have bounds, whatever a program's chain of them is.
# 190 more: numbers as text and back whatever the locale is, whole numbers as floats rounded once, axes of a number,
# names that others define.
CORE, FILE = 3090, 600


def code_lines(path):
    return sum(1 for l in path.read_text().splitlines() if l.strip() and not l.strip().startswith("//"))


files = [p for p in sorted((ROOT / "lightcone").rglob("*")) if p.suffix in (".h", ".cpp")]
core = sum(code_lines(p) for p in files if p.relative_to(ROOT / "lightcone").parts[0] == "core")
long = ["%s has %d lines" % (p.relative_to(ROOT), n) for p in files if (n := len(p.read_text().splitlines())) > FILE]
print("core: %d of %d lines" % (core, CORE))
print("\n".join(long))
sys.exit(core > CORE or bool(long))
