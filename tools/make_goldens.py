#!/usr/bin/env python3
"""Writes tests/goldens/ops.txt: what PyTorch answers for every operation.

    /usr/bin/python3 tools/make_goldens.py           # ops.txt, made with Debian's python3-torch, 1.13
    python3 tools/make_goldens.py --wild             # wild.txt, made with PyTorch 2.15
    python3 tools/make_goldens.py --gradients        # gradients.txt, made with PyTorch 2.15

A case is a name, its inputs and its outputs; tests/ops/ops_test.cpp builds the same case with the library and compares.
Same seed, same file. With --wild every case is asked again with NaN, infinities, -0 and denormals among its inputs, with
--gradients for the gradients of sum(y * c) over its floating results y, in f64 and at finite inputs; element k of c is
((7 k + 3) mod 11 - 5) / 4.
"""
import os
import sys

# Each part asks its cases when it is imported. All draw from one generator, so that their order is part of the files.
import op_cases  # noqa: F401
import op_cases_again  # noqa: F401
import op_cases_vocabulary  # noqa: F401
from op_goldens import ASKED_AGAIN, out

path = os.path.join(os.path.dirname(__file__), "..", "tests", "goldens", "wild.txt" if ASKED_AGAIN else "gradients.txt" if "--gradients" in sys.argv else "ops.txt")
with open(path, "w") as f:
    f.write("\n".join(out) + "\n")
print("%d cases" % sum(s.startswith("case") for s in out))
