"""A build that leaves micro-kernels out has an empty table for each of them.

    kernels_absent.py COMPILER SOURCE
"""
import pathlib
import re
import subprocess
import sys

compiler, source = sys.argv[1], pathlib.Path(sys.argv[2])
kernels = source / "lightcone/backends/cpu/kernels"
optional = sorted(f.stem for f in kernels.rglob("*.cpp") if re.search("_(avx|amx|neon)", f.stem))
named = re.findall(r"LC_ABSENT_(\w+)\)", (kernels / "abi/absent.cpp").read_text())
if sorted(named) != optional:
    sys.exit("absent.cpp has no table for, or one too many for: %s" % sorted(set(named) ^ set(optional)))

# Every table that the others declare, once each.
command = [compiler, "-std=c++20", "-O1", "-I", source, "-x", "c++", "-S", "-o", "-", kernels / "abi/absent.cpp"]
text = subprocess.run(command + ["-DLC_ABSENT_" + name for name in named], check=True, capture_output=True, text=True).stdout
defined = set(re.findall(r"^_ZN2lc8backends3cpu\d+(k\w+)E:", text, re.M))
headers = " ".join(f.read_text() for f in (source / "lightcone/backends/cpu").rglob("*.h"))
declared = set()
for names in re.findall(r"extern const \w+ ([^;]*);", headers):
    declared |= {n for n in re.findall(r"\bk\w+", re.sub(r"\[.*?\]", "", names)) if re.search("Avx|Amx|Neon", n)}
if defined != declared:
    sys.exit("declared and not defined, or the other way round: %s" % sorted(defined ^ declared))
print("%d tables for %d files" % (len(defined), len(named)))
