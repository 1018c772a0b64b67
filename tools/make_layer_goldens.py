#!/usr/bin/env python3
"""Writes tests/goldens/layers.txt: what layers of torch.nn give for parameters and inputs that are listed, in f64.

    python3 tools/make_layer_goldens.py   # made with PyTorch 2.15

A case is a name, its parameters (param NAME [shape] values), its inputs and its output; the gradients of sum(y * c), c as in
make_goldens.py, follow as "grad NAME". Same seed, same file. tests/nn/layers_test.cpp builds the same layers and compares.
"""
import os

import torch
from torch import nn

torch.manual_seed(11)
out = []


def line(kind, t):
    out.append("%s [%s] %s" % (kind, " ".join(map(str, t.shape)), " ".join(repr(float(v)) for v in t.detach().flatten())))


def case(name, layer, *inputs, call=None):
    layer = layer.double()
    for p in layer.parameters():
        p.data = torch.randn(p.shape, dtype=torch.float64).mul(0.4 * 256).round().div(256)
    inputs = [torch.randn(s, dtype=torch.float64).mul(256).round().div(256) for s in inputs]
    y = (call or (lambda l, *x: l(*x)))(layer, *inputs)
    c = ((torch.arange(y.numel(), dtype=torch.float64) * 7 + 3) % 11 - 5).div(4).reshape(y.shape)
    (y * c).sum().backward()
    out.append("case " + name)
    for n, p in layer.named_parameters():
        line("param " + n, p)
    for x in inputs:
        line("in", x)
    line("out", y)
    for n, p in layer.named_parameters():
        line("grad " + n, p.grad)


def causal(n):
    return nn.Transformer.generate_square_subsequent_mask(n).double()


attend = lambda l, *x: l(*(x if len(x) == 3 else x * 3), need_weights=False)[0]
case("MultiheadAttention", nn.MultiheadAttention(8, 2, batch_first=True), (2, 5, 8), call=attend)
case("MultiheadAttention cross", nn.MultiheadAttention(8, 4, batch_first=True), (2, 3, 8), (2, 5, 8), (2, 5, 8), call=attend)
case("MultiheadAttention causal", nn.MultiheadAttention(8, 2, bias=False, batch_first=True), (2, 5, 8), call=lambda l, x: l(x, x, x, attn_mask=causal(5), need_weights=False)[0])
encoder = dict(d_model=8, nhead=2, dim_feedforward=12, batch_first=True)
case("TransformerEncoderLayer", nn.TransformerEncoderLayer(**encoder, dropout=0), (2, 4, 8))
case("TransformerEncoderLayer norm first", nn.TransformerEncoderLayer(**encoder, dropout=0, norm_first=True, activation="gelu"), (2, 4, 8))
case("TransformerEncoderLayer causal", nn.TransformerEncoderLayer(**encoder, dropout=0), (2, 4, 8), call=lambda l, x: l(x, src_mask=causal(4)))
case("TransformerEncoder", nn.TransformerEncoder(nn.TransformerEncoderLayer(**encoder, dropout=0), 2), (2, 4, 8))
case("GroupNorm", nn.GroupNorm(2, 6), (2, 6, 3, 2))
case("LayerNorm", nn.LayerNorm(6), (2, 3, 6))
case("RMSNorm", nn.RMSNorm(6, eps=1e-6), (2, 3, 6))
case("Conv2d", nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2), (2, 4, 7, 6))
case("Linear", nn.Linear(5, 3), (2, 5))

path = os.path.join(os.path.dirname(__file__), "..", "tests", "goldens", "layers.txt")
with open(path, "w") as f:
    f.write("\n".join(out) + "\n")
print("%d cases" % sum(s.startswith("case") for s in out))
