#!/usr/bin/env python3
"""Writes tests/goldens/narrow.txt: a linear layer in few bits, as PyTorch 2.15 rounds its operands.

    python3 tools/make_narrow_goldens.py

A case is x [m, k], w [n, k] and y [m, n], computed in f64 from the rounded operands. Codes are those of
torch.quantize_per_channel and quantize_per_tensor (the observers of torch.ao: symmetric, the largest |value| / 127); groups
are rows of the same function whose scales are rounded to f16 before. tests/lowering/int8_test.cpp and half_model_test.cpp
build the cases with the library.
"""
import os
import warnings

import torch

warnings.simplefilter("ignore")
torch.manual_seed(5)
out = []


def line(kind, t):
    out.append("%s f32 [%s] %s" % (kind, " ".join(map(str, t.shape)), " ".join("%.7g" % v for v in t.flatten())))


def case(name, x, w, y):
    out.append("case " + name)
    line("in", x), line("in", w), line("out", y.float())


def per_channel(w, scale):
    q = torch.quantize_per_channel(w, scale.double(), torch.zeros(len(w), dtype=torch.int64), 0, torch.qint8)
    return q.int_repr().double() * scale.double()[:, None]


def largest(w):
    return w.abs().amax(1) / 127


def static(x):
    scale = x.abs().amax() / 127
    return torch.quantize_per_tensor(x, float(scale), 0, torch.qint8).int_repr().double() * scale.double()


for m, n, k in ((3, 5, 64), (2, 9, 128)):
    x, w = torch.randn(m, k).round(decimals=3), (torch.randn(n, k) * torch.rand(n, 1) ** 2).round(decimals=3)
    w[1] = 0  # a channel of zeros
    case("f16", x, w, x.half().double() @ w.half().double().T)
    case("bf16", x, w, x.bfloat16().double() @ w.bfloat16().double().T)
    case("int8", x, w, x.double() @ per_channel(w, largest(w)).T)
    for group in (32, 64):
        rows = w.reshape(-1, group)
        case("int8 in groups of %d" % group, x, w,
             x.double() @ per_channel(rows, largest(rows).half().float().clamp(min=1e-30)).reshape(n, k).T)
    case("int8 by int8", x, w, static(x) @ per_channel(w, largest(w)).T)
with open(os.path.join(os.path.dirname(__file__), "../tests/goldens/narrow.txt"), "w") as f:
    f.write("\n".join(out) + "\n")
