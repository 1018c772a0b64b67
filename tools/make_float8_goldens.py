#!/usr/bin/env python3
"""Writes tests/goldens/float8.txt: what PyTorch 2.15 makes of floats of 8 bits.

    python3 tools/make_float8_goldens.py

Every number of both types as its bits and as wider floats, and what numbers on, beside and beyond the middles between
neighbours are rounded to. NaN is left to tests/ops/float8_test.cpp, which builds the cases with the library.
"""
import pathlib

import torch

TYPES = {"f8_e4m3fn": torch.float8_e4m3fn, "f8_e5m2": torch.float8_e5m2}
OTHERS = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16, "i32": torch.int32, "u8": torch.uint8, "i8": torch.int8, "bool": torch.bool}
SHORT = {v: k for k, v in (TYPES | OTHERS).items()}
out = []


def line(kind, t):
    floats = t.dtype.is_floating_point
    values = [repr(float(v)) if floats else str(int(v)) for v in t.to(torch.float64 if floats else torch.int64).tolist()]
    out.append("%s %s [%d] %s" % (kind, SHORT[t.dtype], len(values), " ".join(values)))


def case(function, x, y):
    out.append("case %s %s %s" % (function, SHORT[x.dtype], SHORT[y.dtype]))
    line("in", x)
    line("out", y)


for dtype in TYPES.values():
    bits = torch.arange(256, dtype=torch.uint8)
    bits = bits[~bits.view(dtype).float().isnan()]
    numbers = bits.view(dtype)
    case("bitcast", bits, numbers)
    case("bitcast", numbers, bits)
    for wide in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.bool):
        case("cast", numbers, numbers.to(wide))
    finite = numbers[numbers.float().isfinite()]
    whole = finite.float().trunc()
    case("cast", finite, whole.to(torch.int32))
    other = next(t for t in TYPES.values() if t is not dtype)
    case("cast", numbers, numbers.float().to(other))

    sorted_numbers = finite.double().unique()
    middles = (sorted_numbers[1:] + sorted_numbers[:-1]) / 2
    beyond = torch.tensor([sorted_numbers[-1] + (sorted_numbers[-1] - sorted_numbers[-2]) * k / 2 for k in (0.5, 1, 1.25, 2, 5)], dtype=torch.float64)
    at = torch.cat([middles, beyond, -beyond, torch.tensor([1e30, -1e30, float("inf"), 0.0, -0.0, 1e-30])]).float()
    near = torch.cat([at, at.nextafter(torch.tensor(float("inf"))), at.nextafter(torch.tensor(-float("inf")))])
    case("cast", near, near.to(dtype))
    halves = near.to(torch.float16).unique()
    case("cast", halves, halves.to(dtype))
    halves = near.to(torch.bfloat16).float().unique().to(torch.bfloat16)
    case("cast", halves, halves.to(dtype))
    exact = at.double()  # PyTorch rounds what f32 does not hold twice
    case("cast", exact, exact.to(dtype))
    integers = torch.tensor([0, 1, -1, 2, 17, 18, 19, 100, -100, 449, 464, 465, 1000, 57344, 60000, 61440, -61440, 1 << 30], dtype=torch.int32)
    case("cast", integers, integers.to(dtype))
    case("cast", torch.arange(256, dtype=torch.uint8), torch.arange(256).to(dtype))
    case("cast", torch.arange(-128, 128).to(torch.int8), torch.arange(-128, 128).to(dtype))

(pathlib.Path(__file__).resolve().parent.parent / "tests/goldens/float8.txt").write_text("\n".join(out) + "\n")
