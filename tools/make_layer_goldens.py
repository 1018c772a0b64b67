#!/usr/bin/env python3
"""Writes tests/goldens/layers.txt: what layers of torch.nn give for parameters and inputs that are listed, in f64.

    python3 tools/make_layer_goldens.py   # made with PyTorch 2.15

A case is a name and lines of a kind, a name or a number where there are several, a shape and values:
    param NAME   a parameter, with its name in the state_dict
    buffer NAME  the same of a running statistic, before
    after NAME   and after the call, where the layer trains
    in           an input; ids: of whole numbers
    out          the output; several of them are flattened and joined
    grad NAME    the gradient of sum(out * c), c as in make_goldens.py, with respect to a parameter
    din K        and to input K
Same seed, same file. tests/nn/ builds the same layers and compares.
"""
import os

import torch
from torch import nn

torch.manual_seed(11)
out = []


def line(kind, t):
    out.append("%s [%s] %s" % (kind, " ".join(map(str, t.shape)), " ".join("%.10g" % v for v in t.detach().flatten())))


def flat(y):
    """A tensor as it is; of several, nested or not, all elements."""
    if isinstance(y, torch.Tensor):
        return y
    return torch.cat([flat(t).flatten() for t in y if t is not None])


def case(name, layer, *inputs, call=None, train=False):
    """Inputs are shapes, of normal numbers, or integer tensors."""
    layer = layer.double().train(train)
    for p in layer.parameters():
        p.data = torch.randn(p.shape, dtype=torch.float64).mul(0.4 * 256).round().div(256)
    for n, b in layer.named_buffers():
        if b.is_floating_point():
            b.data = torch.rand(b.shape, dtype=torch.float64).mul(256).round().div(256) + 0.5
    inputs = [x if isinstance(x, torch.Tensor) else torch.randn(x, dtype=torch.float64).mul(256).round().div(256).requires_grad_() for x in inputs]
    out.append("case " + name)
    for n, p in layer.named_parameters():
        line("param " + n, p)
    for n, b in layer.named_buffers():
        line("buffer " + n, b)
    y = flat((call or (lambda l, *x: l(*x)))(layer, *inputs))
    c = ((torch.arange(y.numel(), dtype=torch.float64) * 7 + 3) % 11 - 5).div(4).reshape(y.shape)
    if y.requires_grad:
        (y * c).sum().backward()
    for x in inputs:
        line("in" if x.is_floating_point() else "ids", x)
    line("out", y)
    for n, p in layer.named_parameters():
        line("grad " + n, p.grad)
    for k, x in enumerate(inputs):
        if x.grad is not None:
            line("din %d" % k, x.grad)
    for n, b in layer.named_buffers() if train else ():
        line("after " + n, b)


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

# ---- recurrent layers; outputs are output, h_n, c_n ----------------------------------------------------------------
case("RNN", nn.RNN(3, 4), (5, 2, 3))
case("RNN relu", nn.RNN(3, 4, nonlinearity="relu", bias=False, num_layers=2), (3, 2, 3))
case("LSTM", nn.LSTM(3, 4), (4, 2, 3))
case("LSTM deep", nn.LSTM(3, 2, num_layers=2, bidirectional=True, batch_first=True), (2, 4, 3))
case("LSTM projected", nn.LSTM(3, 4, num_layers=2, bidirectional=True, proj_size=2), (3, 2, 3))
case("LSTM states", nn.LSTM(3, 2, num_layers=2), (3, 2, 3), (2, 2, 2), (2, 2, 2), call=lambda l, x, h, c: l(x, (h, c)))
case("GRU", nn.GRU(3, 4), (4, 2, 3))
case("GRU deep", nn.GRU(3, 2, num_layers=2, bidirectional=True, bias=False), (4, 2, 3), (4, 2, 2))
case("GRU unbatched", nn.GRU(3, 4), (4, 3), (1, 4))
case("RNNCell", nn.RNNCell(3, 4, nonlinearity="relu"), (2, 3), (2, 4))
case("LSTMCell", nn.LSTMCell(3, 4), (2, 3), (2, 4), (2, 4), call=lambda l, x, h, c: l(x, (h, c)))
case("LSTMCell zeros", nn.LSTMCell(3, 4, bias=False), (3,))
case("GRUCell", nn.GRUCell(3, 4), (2, 3), (2, 4))

path = os.path.join(os.path.dirname(__file__), "..", "tests", "goldens", "layers.txt")
with open(path, "w") as f:
    f.write("\n".join(out) + "\n")
print("%d cases" % sum(s.startswith("case") for s in out))
