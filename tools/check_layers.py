#!/usr/bin/env python3
"""Fails when a file includes upward. The rooms, bottom to top, and what each may include:"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROOMS = {
    "core": [],
    "reference": ["core"],
    "ops": ["core"],
    "runtime": ["core", "reference"],
    "passes": ["core", "reference", "runtime"],
    "codegen": ["core"],
    "backends": ["core", "reference", "runtime", "ops", "passes", "codegen"],
    "nn": ["core", "runtime", "ops"],
    "io": ["core", "ops"],
    "models": ["core", "runtime", "ops", "passes", "backends", "nn", "io"],
}
THIRD_PARTY = {"nlohmann": ["io", "models"], "pcre2.h": ["io"], "utf8proc.h": ["io"]}

wrong = []
for path in sorted((ROOT / "lightcone").rglob("*")):
    if path.suffix not in (".h", ".cpp") or path.parent.name == "lightcone":
        continue
    room = path.relative_to(ROOT / "lightcone").parts[0]
    for n, line in enumerate(path.read_text().splitlines(), 1):
        if m := re.match(r'#include "lightcone/(\w+)/', line):
            if m[1] != room and m[1] not in ROOMS[room]:
                wrong.append("%s:%d: %s may not include %s" % (path.relative_to(ROOT), n, room, m[1]))
        if m := re.match(r"#include <([\w./]+)>", line):
            for name, rooms in THIRD_PARTY.items():
                if m[1].startswith(name) and room not in rooms:
                    wrong.append("%s:%d: third-party code at the edges only" % (path.relative_to(ROOT), n))
print("\n".join(wrong) or "no room includes upward")
sys.exit(bool(wrong))
