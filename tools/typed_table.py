#!/usr/bin/env python3
"""Every public function of tensors has a typed form (lightcone/ops/typed), except for those that this file lists with a reason.

    tools/typed_table.py            # what is missing
    tools/typed_table.py --list     # and every name that was looked for
"""
import pathlib
import re
import sys

OPS = pathlib.Path(__file__).resolve().parent.parent / "lightcone/ops"
PUBLIC = ["ops.h", "creation.h", "shape.h", "conv.h", "loss.h", "loop.h", "random.h", "functional/functional.h", "indexing/indexing.h",
          "linalg/linalg.h", "special/special.h"]
BY_RANK = "the typed ones say the number of spatial axes: %s1d to %s3d"
WITHOUT = {
    "conv": BY_RANK % ("conv", "conv"),
    "conv_transpose": BY_RANK % ("conv_transpose", "conv_transpose"),
    "max_pool": BY_RANK % ("max_pool", "max_pool"),
    "avg_pool": BY_RANK % ("avg_pool", "avg_pool"),
    "adaptive_avg_pool": BY_RANK % ("adaptive_avg_pool", "adaptive_avg_pool"),
    "adaptive_max_pool": BY_RANK % ("adaptive_max_pool", "adaptive_max_pool"),
    "index": "what stands in the brackets is an argument; x[i], select(), narrow() and slice() are typed",
    "scan": "states and slices are lists of tensors; what comes out has the shapes that went in",
    "while_loop": "the state is a list of tensors; what comes out has the shapes that went in",
    "call_loop": "for autograd and devices",
    "instantiate": "for autograd and devices",
    "trace_loop": "for readers of programs",
    "random_bits": "what class Random draws from; its draws are typed",
}


def code(path):
    return re.sub(r"//[^\n]*", "", path.read_text())


def untyped():
    """Functions of namespace lc, `linalg.` before those of lc::linalg, and what class Random draws."""
    names = set()
    for header in PUBLIC:
        space = ""
        for line in (OPS / header).read_text().split("\n"):
            if m := re.match(r"namespace (?:lc::)?(\w+) \{", line):
                space = "" if m[1] == "lc" else m[1] + "."
            elif line.startswith("}  // namespace") or line == "}":
                space = "" if "namespace" in line or space == "detail." else space
            elif m := re.match(r"using lc::(\w+);", line):
                names.add(space + m[1])
            m = re.match(r"(?:inline )?(?:(?:std::)?[A-Za-z]\w*(?:<.*?>+)?&?) (\w+)\((?=[A-Z]|const |std::|int |double |bool )", line)
            if m and space != "detail.":
                names.add(space + m[1])
    drawn = code(OPS / "random.h").split(" public:")[1].split(" private:")[0]
    return names | set(re.findall(r"^  Tensor (\w+)\(", drawn, re.M))


def typed():
    names = set()
    for path in sorted((OPS / "typed").glob("*.h")):
        text = code(path)
        names |= set(re.findall(r"^LC_[A-Z_]+\(\s*(\w+)", text, re.M))  # a macro that makes it
        names |= set(re.findall(r"^(?:auto|(?:std::)?[A-Za-z]\w*<.*>) (\w+)\(", text, re.M))
        names |= set(re.findall(r"^  auto (\w+)\(.*\\$", text, re.M))  # in a macro
    linalg = code(OPS / "typed/linalg.h").split("namespace lc::linalg {")[1]
    names |= {"linalg." + n for n in re.findall(r"using typed::(\w+);", linalg) if n in names}
    names |= {"linalg." + n for n in re.findall(r"^auto (\w+)\(", linalg, re.M)}
    return names


want, have = untyped(), typed()
missing = sorted(n for n in want - have if n not in WITHOUT)
wrong = ["%s() has no typed form, and no reason in tools/typed_table.py" % n for n in missing]
wrong += ["%s is said to have no typed form, and has one" % n for n in sorted(WITHOUT) if n in have]
wrong += ["%s is said to have no typed form, and is no function" % n for n in sorted(WITHOUT) if n not in want]
if "--list" in sys.argv:
    print(" ".join(sorted(want)))
print("%d functions, %d without a typed form for a reason" % (len(want), len(WITHOUT)))
print("\n".join(wrong))
sys.exit(bool(wrong) or len(want) < 300)
