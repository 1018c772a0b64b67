#!/usr/bin/env python3
"""No source file exceeds 600 lines, and lightcone/core stays within its budget of lines of code."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CORE, FILE = 2500, 600


def code_lines(path):
    return sum(1 for l in path.read_text().splitlines() if l.strip() and not l.strip().startswith("//"))


files = [p for folder in ("lightcone", "bench", "examples", "simulators", "tests", "tools")
         for p in sorted((ROOT / folder).rglob("*")) if p.suffix in (".h", ".cpp", ".py")]
core = sum(code_lines(p) for p in files if p.relative_to(ROOT).parts[:2] == ("lightcone", "core"))
long = ["%s has %d lines" % (p.relative_to(ROOT), n) for p in files if (n := len(p.read_text().splitlines())) > FILE]
print("core: %d of %d lines" % (core, CORE))
print("\n".join(long))
sys.exit(core > CORE or bool(long))
