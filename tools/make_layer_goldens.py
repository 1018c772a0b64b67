#!/usr/bin/env python3
"""Writes tests/goldens/layers.txt: what layers of torch.nn give for parameters and inputs that are listed, in f64.

    python3 tools/make_layer_goldens.py   # made with PyTorch 2.15

A case is a name and lines of a kind, a name or a number where there are several, a shape and values:
    param NAME   a parameter, with its name in the state_dict
    first NAME   how torch began it, where that was seen: uniform LOW HIGH, normal MEAN STD, fill VALUE; no shape
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


def remember_first(method):
    """Parameters remember what torch.nn.init called on them."""
    call = getattr(torch.Tensor, method + "_")

    def remembering(self, *args, **named):
        self.first = "fill 0" if method == "zero" else " ".join([method] + ["%.10g" % a for a in args if isinstance(a, (int, float))])
        return call(self, *args, **named)

    setattr(torch.Tensor, method + "_", remembering)


for method in ("uniform", "normal", "fill", "zero"):
    remember_first(method)


def line(kind, t):
    out.append("%s [%s] %s" % (kind, " ".join(map(str, t.shape)), " ".join("%.10g" % v for v in t.detach().flatten())))


def flat(y):
    """A tensor as it is; of several, nested or not, all elements."""
    if isinstance(y, torch.Tensor):
        return y
    return torch.cat([flat(t).flatten() for t in y if t is not None])


def case(name, layer, *inputs, call=None, train=False):
    """Inputs are shapes, of normal numbers, or integer tensors."""
    firsts = [(n, p.first) for n, p in layer.named_parameters() if hasattr(p, "first")]
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
    for n, first in firsts:
        out.append("first %s %s" % (n, first))
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
case("RMSNorm", nn.RMSNorm(6, eps=torch.finfo(torch.float32).eps), (2, 3, 6))
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

# ---- everything else ------------------------------------------------------------------------------------------------
case("ConvTranspose1d", nn.ConvTranspose1d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2), (2, 4, 5))
case("ConvTranspose2d", nn.ConvTranspose2d(3, 2, (3, 2), stride=(2, 1), dilation=(1, 2), bias=False), (2, 3, 3, 4))
case("ConvTranspose3d", nn.ConvTranspose3d(2, 2, 2, stride=2), (1, 2, 2, 3, 2))
case("Conv1d", nn.Conv1d(4, 3, 3, padding=2, dilation=2, padding_mode="circular"), (2, 4, 6))
case("Conv2d reflect", nn.Conv2d(2, 3, (3, 2), padding=(1, 0), padding_mode="reflect", bias=False), (2, 2, 4, 5))
case("Conv3d", nn.Conv3d(2, 3, 2, padding=1, padding_mode="replicate"), (1, 2, 2, 3, 2))
case("Bilinear", nn.Bilinear(3, 4, 2), (2, 3, 3), (2, 3, 4))
case("Embedding", nn.Embedding(5, 3, padding_idx=1), torch.tensor([[0, 1, 4], [2, 1, 0]]))
bags = torch.tensor([[0, 1, 4], [2, 1, 0], [1, 1, 1]])
for mode in ("sum", "mean", "max"):
    case("EmbeddingBag " + mode, nn.EmbeddingBag(5, 3, mode=mode), bags)
    case("EmbeddingBag %s padded" % mode, nn.EmbeddingBag(5, 3, mode=mode, padding_idx=1), bags)
case("EmbeddingBag weighted", nn.EmbeddingBag(5, 3, mode="sum"), bags, (3, 3), call=lambda l, ids, w: l(ids, per_sample_weights=w))
for mode in ("sum", "mean"):
    case("EmbeddingBag %s offsets" % mode, nn.EmbeddingBag(5, 3, mode=mode), torch.tensor([0, 1, 4, 2, 0]), torch.tensor([0, 2, 2]))
case("EmbeddingBag offsets padded", nn.EmbeddingBag(5, 3, padding_idx=1), torch.tensor([0, 1, 4, 2, 0]), torch.tensor([0, 2, 4]))
case("CosineSimilarity", nn.CosineSimilarity(), (2, 3, 2), (2, 3, 2))
case("PairwiseDistance", nn.PairwiseDistance(p=3, keepdim=True), (2, 3), (2, 3))

case("LayerNorm axes", nn.LayerNorm([2, 3], bias=False), (2, 2, 3))
case("LayerNorm plain", nn.LayerNorm(3, eps=1e-3, elementwise_affine=False), (2, 3))
case("GroupNorm plain", nn.GroupNorm(3, 6, affine=False), (2, 6, 3))
case("BatchNorm", nn.BatchNorm2d(3), (2, 3, 2, 2))
case("BatchNorm training", nn.BatchNorm2d(3, eps=1e-3, momentum=0.3), (2, 3, 2, 2), train=True)
case("BatchNorm cumulative", nn.BatchNorm1d(3, momentum=None, affine=False), (4, 3), train=True)
case("BatchNorm untracked", nn.BatchNorm1d(3, track_running_stats=False), (4, 3, 2))
case("InstanceNorm", nn.InstanceNorm1d(3), (2, 3, 4))
case("InstanceNorm affine", nn.InstanceNorm2d(3, affine=True), (2, 3, 2, 3), train=True)
case("InstanceNorm tracked", nn.InstanceNorm3d(2, affine=True, track_running_stats=True), (2, 2, 2, 2, 1), train=True)
case("InstanceNorm inference", nn.InstanceNorm1d(3, track_running_stats=True), (2, 3, 4))
case("LocalResponseNorm", nn.LocalResponseNorm(3, alpha=0.5, k=2), (2, 5, 2))
case("LocalResponseNorm even", nn.LocalResponseNorm(2), (2, 3, 2))

case("MaxPool1d", nn.MaxPool1d(3, stride=2, padding=1, dilation=2), (2, 2, 8))
case("MaxPool2d", nn.MaxPool2d((3, 2), stride=(2, 1), ceil_mode=True), (1, 2, 6, 3))
case("MaxPool3d", nn.MaxPool3d(2), (1, 2, 4, 2, 3))
case("AvgPool1d", nn.AvgPool1d(3, stride=2, padding=1), (2, 2, 6))
case("AvgPool2d", nn.AvgPool2d((2, 3), padding=(1, 1), count_include_pad=False), (1, 2, 4, 5))
case("AvgPool3d", nn.AvgPool3d(2, stride=1, ceil_mode=True), (1, 1, 3, 2, 3))
case("LPPool2d", nn.LPPool2d(2, 2, stride=1), (1, 2, 3, 3))
case("AdaptiveAvgPool1d", nn.AdaptiveAvgPool1d(3), (2, 2, 5))
case("AdaptiveAvgPool2d", nn.AdaptiveAvgPool2d((2, 3)), (1, 2, 5, 4))
case("AdaptiveAvgPool3d", nn.AdaptiveAvgPool3d(2), (1, 1, 3, 2, 4))
case("AdaptiveMaxPool2d", nn.AdaptiveMaxPool2d((2, 3)), (1, 2, 5, 4))
case("MaxPoolGlobal", nn.Sequential(nn.AdaptiveMaxPool2d(1), nn.Flatten()), (2, 3, 2, 3))
case("AvgPoolGlobal", nn.Sequential(nn.AdaptiveAvgPool1d(1), nn.Flatten()), (2, 3, 4))

case("Upsample", nn.Upsample(scale_factor=2), (1, 2, 3, 2))
case("Upsample bilinear", nn.Upsample(size=(5, 3), mode="bilinear"), (1, 2, 3, 2))
case("Upsample linear corners", nn.Upsample(scale_factor=3, mode="linear", align_corners=True), (2, 2, 3))
case("Upsample trilinear", nn.Upsample(scale_factor=2, mode="trilinear"), (1, 1, 2, 2, 3))
case("PixelShuffle", nn.PixelShuffle(2), (1, 8, 2, 3))
case("PixelUnshuffle", nn.PixelUnshuffle(2), (1, 2, 4, 6))
case("ChannelShuffle", nn.ChannelShuffle(2), (1, 6, 2))
case("Unflatten", nn.Unflatten(1, (2, -1)), (2, 6, 2))
case("ConstantPad1d", nn.ConstantPad1d((2, -1), 3.5), (2, 2, 4))
case("ZeroPad2d", nn.ZeroPad2d((1, 2, 0, 3)), (1, 2, 2, 3))
case("ReflectionPad2d", nn.ReflectionPad2d((1, 2, 0, 1)), (1, 2, 3, 4))
case("ReplicationPad3d", nn.ReplicationPad3d(1), (1, 1, 2, 2, 2))
case("CircularPad1d", nn.CircularPad1d((1, 2)), (2, 2, 3))

case("PReLU", nn.PReLU(), (2, 3))
case("PReLU channels", nn.PReLU(3), (2, 3, 2))
for name, layer in {
    "Tanh": nn.Tanh(), "Sigmoid": nn.Sigmoid(), "LogSigmoid": nn.LogSigmoid(), "SiLU": nn.SiLU(), "Mish": nn.Mish(), "SELU": nn.SELU(),
    "Softsign": nn.Softsign(), "Tanhshrink": nn.Tanhshrink(), "Hardswish": nn.Hardswish(), "Hardsigmoid": nn.Hardsigmoid(), "ReLU": nn.ReLU(),
    "ReLU6": nn.ReLU6(), "GELU": nn.GELU(), "GELU tanh": nn.GELU(approximate="tanh"), "LeakyReLU": nn.LeakyReLU(0.2), "ELU": nn.ELU(1.5),
    "CELU": nn.CELU(0.5), "Softplus": nn.Softplus(2, 1.5), "Hardtanh": nn.Hardtanh(-0.5, 2), "Hardshrink": nn.Hardshrink(0.3),
    "Softshrink": nn.Softshrink(0.3), "Threshold": nn.Threshold(0.1, 20), "Softmax": nn.Softmax(1), "Softmin": nn.Softmin(1),
    "LogSoftmax": nn.LogSoftmax(-1), "GLU": nn.GLU(1), "RReLU": nn.RReLU(),
}.items():
    case(name, layer, (2, 4, 3))
case("Softmax2d", nn.Softmax2d(), (2, 3, 1, 2))

# ---- attention with masks, and the whole Transformer ----------------------------------------------------------------
padding = torch.tensor([[0, 0, 0, 1], [0, 1, 0, 0]])
lower = torch.tril(torch.ones(3, 4)).long()
case("MultiheadAttention padding", nn.MultiheadAttention(4, 2, batch_first=True), (2, 3, 4), (2, 4, 4), padding,
     call=lambda l, q, k, m: l(q, k, k, key_padding_mask=m.bool(), need_weights=False)[0])
case("MultiheadAttention masks", nn.MultiheadAttention(4, 2, batch_first=True), (2, 3, 4), (2, 4, 4), (3, 4), padding,
     call=lambda l, q, k, a, m: l(q, k, k, attn_mask=a, key_padding_mask=torch.zeros(2, 4).double().masked_fill(m.bool(), -torch.inf), need_weights=False)[0])
case("MultiheadAttention each head", nn.MultiheadAttention(4, 2, batch_first=True), (2, 3, 4), (2, 4, 4), torch.stack([1 - lower, lower * 0, lower.flip(1) * 0, 1 - lower]),
     call=lambda l, q, k, m: l(q, k, k, attn_mask=m.bool(), need_weights=False)[0])
case("MultiheadAttention widths", nn.MultiheadAttention(4, 2, kdim=3, vdim=5, batch_first=True), (2, 3, 4), (2, 4, 3), (2, 4, 5),
     call=lambda l, q, k, v: l(q, k, v, need_weights=False)[0])
case("MultiheadAttention unbatched", nn.MultiheadAttention(4, 2, batch_first=True), (3, 4), call=attend)
case("MultiheadAttention weights", nn.MultiheadAttention(4, 2, batch_first=True), (2, 3, 4), (2, 4, 4), padding,
     call=lambda l, q, k, m: l(q, k, k, key_padding_mask=m.bool()))


class GroupedQueries(nn.MultiheadAttention):
    """Four heads of queries, two of keys and values: torch has the function alone."""

    def __init__(self):
        super().__init__(8, 4, batch_first=True)
        self.in_proj_weight = nn.Parameter(torch.empty(16, 8))
        self.in_proj_bias = nn.Parameter(torch.empty(16))

    def forward(self, x):
        parts = nn.functional.linear(x, self.in_proj_weight, self.in_proj_bias).split([8, 4, 4], -1)
        q, k, v = (t.unflatten(-1, (-1, 2)).transpose(1, 2) for t in parts)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.out_proj(y.transpose(1, 2).flatten(2))


case("MultiheadAttention grouped", GroupedQueries(), (2, 3, 8))
small = dict(d_model=4, nhead=2, dim_feedforward=6, dropout=0, batch_first=True)
case("TransformerEncoder norm", nn.TransformerEncoder(nn.TransformerEncoderLayer(**small, bias=False, norm_first=True), 2, nn.LayerNorm(4), enable_nested_tensor=False), (2, 4, 4), padding,
     call=lambda l, x, m: l(x, src_key_padding_mask=m.bool()))
case("TransformerDecoderLayer", nn.TransformerDecoderLayer(**small), (2, 3, 4), (2, 4, 4))
case("TransformerDecoderLayer norm first", nn.TransformerDecoderLayer(**small, norm_first=True, activation="gelu", layer_norm_eps=1e-3), (2, 3, 4), (2, 4, 4), padding,
     call=lambda l, x, m, p: l(x, m, tgt_mask=causal(3), memory_key_padding_mask=p.bool()))
case("TransformerDecoder", nn.TransformerDecoder(nn.TransformerDecoderLayer(**small), 2, nn.LayerNorm(4)), (2, 3, 4), (2, 4, 4))
case("Transformer", nn.Transformer(**small, num_encoder_layers=1, num_decoder_layers=2), (2, 4, 4), (2, 3, 4), padding,
     call=lambda l, s, t, p: l(s, t, tgt_mask=causal(3), src_key_padding_mask=p.bool(), memory_key_padding_mask=p.bool()))

def padded(layer, x, n):
    """As sequences of n elements, behind which x is padding."""
    y, last = layer(nn.utils.rnn.pack_padded_sequence(x, n, enforce_sorted=False))
    return nn.utils.rnn.pad_packed_sequence(y, total_length=x.shape[0])[0], last


LENGTHS = torch.tensor([2, 4, 1])
case("LSTM padded", nn.LSTM(3, 2, num_layers=2, bidirectional=True), (4, 3, 3), LENGTHS, call=padded)
case("GRU padded", nn.GRU(3, 2), (4, 3, 3), LENGTHS, call=padded)

path = os.path.join(os.path.dirname(__file__), "..", "tests", "goldens", "layers.txt")
with open(path, "w") as f:
    f.write("\n".join(out) + "\n")
print("%d cases" % sum(s.startswith("case") for s in out))
