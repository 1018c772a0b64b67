#!/usr/bin/env python3
"""Writes tests/goldens/integers.txt: what PyTorch 2.15 answers for integers of every type, and NumPy where PyTorch has no kernel.

    python3 tools/make_integer_goldens.py

"promote A B C" says the type that torch.promote_types gives, "promote A B none" that it refuses. Otherwise a case is a
name, its inputs and its output, as in ops.txt. Where both answer, both have to say the same. tests/ops/integers_test.cpp
builds the cases with the library.
"""
import os
import warnings

import numpy as np
import torch

warnings.simplefilter("ignore")
NAMES = {"f32": "float32", "f64": "float64", "f16": "float16", "bf16": "bfloat16", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "bool": "bool", "f8_e4m3fn": "float8_e4m3fn", "f8_e5m2": "float8_e5m2"}
SHORT = {v: k for k, v in NAMES.items()}
INTEGERS = [n for n in NAMES if n[0] in "iu"]
out = []


def line(kind, a):
    values = [repr(float(v)) if a.dtype.kind == "f" else str(int(v)) for v in a.flatten()]
    out.append("%s %s [%s] %s" % (kind, SHORT[a.dtype.name], " ".join(map(str, a.shape)), " ".join(values)))


def case(name, by_numpy, *inputs, by_torch=None):
    result = np.asarray(by_numpy(*inputs))
    if by_torch:
        try:
            other = by_torch(*[torch.from_numpy(a.copy()) for a in inputs]).numpy()
        except (RuntimeError, NotImplementedError):
            other = None
        if other is not None:
            assert other.dtype == result.dtype or name.startswith(("sum", "cumsum")), (name, other.dtype, result.dtype)
            assert np.array_equal(other, result.astype(other.dtype)), (name, other, result)
            result = other
    out.append("case " + name)
    for a in inputs:
        line("in", a)
    line("out", result)


for p, tp in NAMES.items():
    for q, tq in NAMES.items():
        try:
            both = SHORT[str(torch.promote_types(getattr(torch, tp), getattr(torch, tq)))[6:]]
        except RuntimeError:
            both = "none"
        out.append("promote %s %s %s" % (p, q, both))

for short in INTEGERS:
    t = np.dtype(NAMES[short])
    bits, low, high = 8 * t.itemsize, int(np.iinfo(t).min), int(np.iinfo(t).max)
    some = [0, 1, 3, high, high - 1, high // 3, high // 2 + 1] + ([-1, -7, low] if low else [])
    a, b = (np.array(x, dtype=t).flatten() for x in np.meshgrid(np.array(some, dtype=t), np.array(some, dtype=t), indexing="ij"))
    of = lambda name: name + " " + short
    case(of("add"), np.add, a, b, by_torch=torch.add)
    case(of("sub"), np.subtract, a, b, by_torch=torch.sub)
    case(of("mul"), np.multiply, a, b, by_torch=torch.mul)
    fits = (b != 0) & ~((a == low) & (b == t.type(-1) if low else False))
    case(of("floor_divide"), np.floor_divide, a[fits], b[fits], by_torch=torch.floor_divide)
    case(of("remainder"), np.remainder, a[fits], b[fits], by_torch=torch.remainder)
    case(of("fmod"), np.fmod, a[fits], b[fits], by_torch=torch.fmod)
    case(of("pow"), np.power, a, np.abs(b % 13).astype(t), by_torch=torch.pow)
    for name in "maximum minimum bitwise_and bitwise_or bitwise_xor".split():
        case(of(name), getattr(np, name), a, b, by_torch=getattr(torch, name))
    case(of("lt"), np.less, a, b, by_torch=torch.lt)
    case(of("eq"), np.equal, a, b, by_torch=torch.eq)
    case(of("bitwise_not"), np.invert, a, by_torch=torch.bitwise_not)
    places = (np.arange(a.size) * 5 % bits).astype(t)
    case(of("bitwise_left_shift"), np.left_shift, a, places, by_torch=torch.bitwise_left_shift)
    case(of("bitwise_right_shift"), np.right_shift, a, places, by_torch=torch.bitwise_right_shift)
    case(of("amax"), np.max, a, by_torch=torch.amax)
    case(of("amin"), np.min, a, by_torch=torch.amin)
    case(of("argmin"), lambda x: np.argmin(x).astype(np.int64), a[1:], by_torch=torch.argmin)
    case(of("sum"), lambda x: np.sum(x, dtype=np.int64), a, by_torch=torch.sum)
    case(of("cumsum"), lambda x: np.cumsum(x, dtype=np.int64), a, by_torch=lambda x: torch.cumsum(x, 0))
    case(of("cummin"), np.minimum.accumulate, a[::-1].copy(), by_torch=lambda x: torch.cummin(x, 0).values)
    case(of("sort"), np.sort, a[::-1].copy(), by_torch=lambda x: torch.sort(x).values)
    case(of("argsort"), lambda x: np.argsort(x, kind="stable"), a[::-1].copy(), by_torch=lambda x: torch.argsort(x, stable=True))
    case(of("population_count"), lambda x: np.array([bin(int(v) & (2**bits - 1)).count("1") for v in x], dtype=t), a)
    case(of("count_leading_zeros"), lambda x: np.array([bits - (int(v) & (2**bits - 1)).bit_length() for v in x], dtype=t), a)
    for other in INTEGERS + ["f32", "f64", "bool"]:
        to = NAMES[other]
        case("cast %s %s" % (short, other), lambda x: x.astype(to), np.array(some, dtype=t), by_torch=lambda x: x.to(getattr(torch, to)))
        if np.dtype(to).itemsize == t.itemsize and other != "bool":
            case("bitcast %s %s" % (short, other), lambda x: x.view(to), np.array(some, dtype=t) if other[0] != "f" else (np.arange(30) * (high // 31)).astype(t), by_torch=lambda x: x.view(getattr(torch, to)))
for short, width in (("f32", 4), ("f64", 8)):
    numbers = np.array([0.0, -0.0, 1.0, -1.5, 3.1415926, 1e30, -1e-30, 1e-40, np.inf, -np.inf], dtype=NAMES[short])
    for other in INTEGERS:
        if np.dtype(NAMES[other]).itemsize == width:
            case("bitcast %s %s" % (short, other), lambda x: x.view(NAMES[other]), numbers, by_torch=lambda x: x.view(getattr(torch, NAMES[other])))

here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "..", "tests", "goldens", "integers.txt"), "w") as f:
    f.write("\n".join(out) + "\n")
