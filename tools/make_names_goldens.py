#!/usr/bin/env python3
"""Writes tests/goldens/names.txt: what torch answers for the plainest names, as people write them.

    python3 tools/make_names_goldens.py          # made with PyTorch 2.15

Cases as in make_vocabulary_goldens.py; tests/ops/names_test.cpp compares. The name of a case says what is called.
"""
import torch
import torch.nn.functional as F

from make_vocabulary_goldens import D, I, INF, NAN, Goldens, x

g = Goldens("names.txt", 47)
case = g.case
i64, f32, u8 = torch.int64, torch.float32, torch.uint8
L = torch.arange(-4, 8).reshape(3, 4)

# numbers: the kind in which they are written counts, not their value
for name, t in (("i64", L), ("f32", x(3, 4, dtype=f32)), ("bf16", x(3, 4, dtype=torch.bfloat16)), ("u8", I([[1, 2], [250, 255]], dtype=u8)), ("bool", I([True, False]))):
    case("x * 2.0 @ " + name, lambda a: a * 2.0, t, grad=False)
    case("x * 2 @ " + name, lambda a: a * 2, t, grad=False)
    case("x + true @ " + name, lambda a: a + True, t, grad=False)
    case("2.0 - x @ " + name, lambda a: 2.0 - (a if a.dtype != torch.bool else a.long()), t if t.dtype != torch.bool else t.long(), grad=False)
    case("x / 2 @ " + name, lambda a: a / 2, t, grad=False)
    case("x < 1.5 @ " + name, lambda a: a < 1.5, t, grad=False)
    case("x == 2 @ " + name, lambda a: a == 2, t, grad=False)
    case("x != 0.0 @ " + name, lambda a: a != 0.0, t, grad=False)
    case("where(c, 1.0, x) @ " + name, lambda a: torch.where(a > 0, 1.0, a), t, grad=False)
    case("where(c, x, 1) @ " + name, lambda a: torch.where(a > 0, a, 1), t, grad=False)
case("where(c, 1, 0)", lambda a: torch.where(a > 0, 1, 0), x(5), grad=False)
case("where(c, 1.0, 0)", lambda a: torch.where(a > 0, 1.0, 0), x(5), grad=False)
case("pow(2.0, x)", lambda a: torch.pow(2.0, a), x(3, 4))
case("pow(3.0, x)", lambda a: torch.pow(3.0, a), x(3, 4))
case("pow(2, x) @ i64", lambda a: torch.pow(2, a), I([0, 1, 5]))
case("x % 3 @ i64", lambda a: a % 3, L)
case("7 % x", lambda a: 7 % a, I([3, -3, 5]))
case("floor_divide(x, 3) @ i64", lambda a: torch.floor_divide(a, 3), L)
case("fmod(x, 3) @ i64", lambda a: torch.fmod(a, 3), L)
case("add alpha", lambda a, b: torch.add(a, b, alpha=2.5), x(3, 4), x(4))
case("add number alpha @ i64", lambda a: torch.add(a, 3, alpha=2), L)
case("sub alpha", lambda a, b: torch.sub(a, b, alpha=-2), x(3, 4), x(4))
case("div floor", lambda a, b: torch.div(a, b, rounding_mode="floor"), x(12) * 3, x(12).abs() + 0.5, grad=False)
case("div trunc", lambda a, b: torch.div(a, b, rounding_mode="trunc"), x(12) * 3, x(12).abs() + 0.5, grad=False)
case("div trunc @ i64", lambda a, b: torch.div(a, b, rounding_mode="trunc"), I([7, -7, 8]), I([2, 2, -3]))
case("div floor @ i64", lambda a, b: torch.div(a, b, rounding_mode="floor"), I([7, -7, 8]), I([2, 2, -3]))
for v in ("0, 1", "low 0", "high 0.5", "0, 1.5"):
    bounds = {"0, 1": (0, 1), "low 0": (0, None), "high 0.5": (None, 0.5), "0, 1.5": (0, 1.5)}[v]
    case("clamp " + v, lambda a: torch.clamp(a, *bounds), I([-1.0, 0.0, 0.25, 0.5, 1.0, 1.5, 2.0], dtype=D))
    case("clamp %s @ i64" % v, lambda a: torch.clamp(a, *bounds), L)
case("clamp tensors", lambda a, lo, hi: torch.clamp(a, lo, hi), x(3, 4), x(4) - 1, x(3, 1) + 1, grad=False)
case("clamp_min", lambda a: torch.clamp_min(a, 0.5), x(7))
case("clamp_max", lambda a: torch.clamp_max(a, 0.5), x(7))
case("lerp tensor", lambda a, b, w: torch.lerp(a, b, w), x(3, 4), x(3, 4), x(3, 4).abs())
case("logaddexp2", torch.logaddexp2, x(5), x(5))
case("masked_fill", lambda a: a.masked_fill(a > 0, -1), x(3, 4))
case("nan_to_num", lambda a: torch.nan_to_num(a, 1, 2, -3), I([NAN, INF, -INF, 0.5]), grad=False)
case("round 2", lambda a: torch.round(a, decimals=2), I([1.2345, -0.675, 100.5], dtype=D), grad=False)
case("round -1", lambda a: torch.round(a, decimals=-1), I([123.0, -15.5, 5.0], dtype=D), grad=False)
case("logit eps", lambda a: torch.logit(a, 0.1), I([0.0, 0.05, 0.3, 0.95], dtype=D))
case("signbit", torch.signbit, I([0.0, -0.0, 1.0, -2.0, INF, -INF]), grad=False)
case("isposinf", torch.isposinf, I([INF, -INF, NAN, 1.0]), grad=False)
case("isneginf", torch.isneginf, I([INF, -INF, NAN, 1.0]), grad=False)
case("gelu tanh", lambda a: F.gelu(a, approximate="tanh"), x(5))

# reductions
case("sum(x, 1)", lambda a: torch.sum(a, 1), x(3, 4))
case("sum dtype", lambda a: torch.sum(a, 1, dtype=D), L)
case("mean dtype", lambda a: torch.mean(a, 0, dtype=D), L)
case("std(x, 1)", lambda a: torch.std(a, 1), x(3, 4))
case("var_mean", lambda a: torch.var_mean(a, 1), x(3, 4))
case("std_mean", lambda a: torch.std_mean(a, 1, correction=0), x(3, 4))
case("max(x)", torch.max, x(3, 4))
case("max(x, y)", torch.max, x(3, 4), x(4))
case("max(x, 1)", lambda a: torch.max(a, 1), x(3, 4))
case("min(x, 0)", lambda a: torch.min(a, 0), L)
case("aminmax", lambda a: torch.aminmax(a, dim=1), x(3, 4))
for kind in ("cummax", "cummin"):
    f = getattr(torch, kind)
    case(kind, lambda a: f(a, 1), x(3, 5))
    case(kind + " @ i64", lambda a: f(a, 0), I([3, 1, 3, 2, 5, 5, 0]))
    case(kind + " @ odd", lambda a: f(a, 0), I([-INF, 1.0, NAN, 3.0, NAN, INF]), grad=False)
case("diff 2", lambda a: torch.diff(a, 2), x(3, 5))
case("diff 1 0", lambda a: torch.diff(a, 1, 0), x(3, 5))

# shapes
V = x(2, 3, 4)
for name, f in {
    "reshape -1": lambda a: a.reshape(-1, 4), "view": lambda a: a.view(6, -1), "t": lambda a: a[0].t(), "x[1]": lambda a: a[1], "x[-1]": lambda a: a[-1],
    "expand -1": lambda a: a[:, :1].expand(-1, 5, -1), "swapaxes": lambda a: a.swapaxes(0, 2), "squeeze": lambda a: a[:1, :, :1].squeeze(),
    "squeeze 0": lambda a: a[:1].squeeze(0), "squeeze 1": lambda a: a.squeeze(1), "unflatten": lambda a: a.unflatten(2, (2, -1)), "ravel": lambda a: a.ravel(),
    "movedim": lambda a: a.movedim((0, 1), (-1, 0)), "narrow": lambda a: a.narrow(2, 1, 2), "narrow -3": lambda a: a.narrow(2, -3, 2), "select": lambda a: a.select(1, -1),
    "slice -1": lambda a: a[..., 1:-1], "atleast_3d": lambda a: torch.atleast_3d(a[0]), "atleast_2d": lambda a: torch.atleast_2d(a[0, 0]),
    "cat": lambda a: torch.cat([a, a]), "cat 1": lambda a: torch.cat([a, a], 1), "stack": lambda a: torch.stack([a, a]), "hstack": lambda a: torch.hstack([a, a]),
    "hstack vectors": lambda a: torch.hstack([a[0, 0], a[0, 1]]), "vstack": lambda a: torch.vstack([a[0, 0], a[0, 1]]), "dstack": lambda a: torch.dstack([a[0], a[1]]),
    "column_stack": lambda a: torch.column_stack([a[0], a[0, :, 0], a[1]]), "tensor_split": lambda a: torch.tensor_split(a, 3, 2)[1], "tensor_split at": lambda a: torch.tensor_split(a, (1, -1, 9), -1)[1], "tensor_split empty": lambda a: torch.tensor_split(a, (2, 1), 1)[1],
    "split 2": lambda a: a.split(2, 1), "split sizes": lambda a: a.split([1, 3], -1), "chunk": lambda a: a.chunk(2, 2), "unbind": lambda a: a.unbind(1),
    "tile": lambda a: a.tile(2, 3), "repeat": lambda a: a.repeat(2, 1, 1, 3), "repeat_interleave": lambda a: a.repeat_interleave(2), "repeat_interleave 1": lambda a: a.repeat_interleave(3, 1),
    "flip": lambda a: a.flip(1), "fliplr": lambda a: a.fliplr(), "flipud": lambda a: a.flipud(), "rot90": lambda a: a.rot90(), "rot90 -1": lambda a: a.rot90(-1, (1, 2)), "rot90 2": lambda a: a.rot90(2, (2, 0)),
    "roll": lambda a: a.roll(5), "roll axes": lambda a: a.roll((1, -1), (0, 2)), "pad": lambda a: F.pad(a, (1, 2, 0, 3), value=1.5), "pad reflect": lambda a: F.pad(a, (2, 1), mode="reflect"),
    "broadcast_tensors": lambda a: torch.broadcast_tensors(a[0], a[:, :1, :1]), "view_as": lambda a: a.view_as(a.reshape(4, 6)), "expand_as": lambda a: a[:, :1].expand_as(a),
    "permute": lambda a: a.permute(2, 0, 1), "diagonal": lambda a: a.diagonal(1, 0, 2),
}.items():
    case(name, f, V)
A, B = I([[0, -1], [1, 2]]), I([2, 0])
for name, f in {
    "index numbers": lambda a, i, j: a[1, -1], "index slices": lambda a, i, j: a[:, 1:-1, ::2], "index back": lambda a, i, j: a.flip(2)[..., 1], "index ellipsis": lambda a, i, j: a[..., None, 0],
    "index tensor": lambda a, i, j: a[:, i], "index two": lambda a, i, j: a[:, i, j], "index apart": lambda a, i, j: a[j - 1, :, i], "index mixed": lambda a, i, j: a[0, i, 1:3], "index numbers and tensors": lambda a, i, j: a[:, :, j],
}.items():
    case(name, f, V, A, B)

# creation
S = x(2)
for name, f in {
    "zeros_like": lambda a: torch.zeros_like(a), "ones_like dtype": lambda a: torch.ones_like(a, dtype=i64), "full_like": lambda a: torch.full_like(a, 2.5), "arange 5": lambda a: torch.arange(5), "arange 2 9 3": lambda a: torch.arange(2, 9, 3),
    "arange down": lambda a: torch.arange(5, -2, -3), "arange real": lambda a: torch.arange(0.5, 3.0, 0.75), "arange mixed": lambda a: torch.arange(1, 2.5), "linspace": lambda a: torch.linspace(-1, 2, 7), "linspace 1": lambda a: torch.linspace(3, 5, 1), "eye": lambda a: torch.eye(2, 4),
}.items():
    case(name, f, S, grad=False)

# layers
X, W1 = x(2, 4, 6), x(3, 2, 3)
case("conv1d", lambda a, w, b: F.conv1d(a, w, b, 2, 1, 1, 2), X, x(6, 2, 3), x(6))
case("conv2d", lambda a, w: F.conv2d(a, w, None, (2, 1), (0, 1), (1, 2)), x(2, 2, 5, 6), x(3, 2, 2, 3))
case("conv3d", lambda a, w: F.conv3d(a, w), x(1, 1, 3, 3, 4), x(2, 1, 2, 2, 2))
case("conv_transpose1d", lambda a, w: F.conv_transpose1d(a, w, None, 2, 1, 1), X, x(4, 3, 3))
case("conv_transpose2d", lambda a, w, b: F.conv_transpose2d(a, w, b, 2, 0, 0, 2, 2), x(1, 4, 3, 3), x(4, 2, 2, 2), x(4))
case("max_pool2d", lambda a: F.max_pool2d(a, (2, 3), (1, 2), 1), x(1, 2, 5, 6))
case("avg_pool1d", lambda a: F.avg_pool1d(a, 3, 2, 1, True, False), X)
case("adaptive_avg_pool2d", lambda a: F.adaptive_avg_pool2d(a, (2, 3)), x(1, 2, 5, 6))
case("embedding", lambda i, w: F.embedding(i, w), I([[0, 2], [1, 1]]), x(4, 3))
case("embedding padding", lambda i, w: F.embedding(i, w, padding_idx=1), I([[0, 2], [1, 1]]), x(4, 3))
case("layer_norm", lambda a, w, b: F.layer_norm(a, (4, 6), w, b, 1e-4), X, x(4, 6), x(4, 6))
case("layer_norm weight", lambda a, w: F.layer_norm(a, (6,), w), X, x(6))
case("rms_norm", lambda a, w: F.rms_norm(a, (6,), w), X, x(6))
case("rms_norm two", lambda a: F.rms_norm(a, (4, 6), eps=1e-3), X)
case("group_norm", lambda a, w, b: F.group_norm(a, 2, w, b), X, x(4), x(4))
case("batch_norm", lambda a, m, v: F.batch_norm(a, m, v), X, x(4), x(4).abs() + 0.5, grad=False)
case("batch_norm training", lambda a, w, b: F.batch_norm(a, None, None, w, b, True), X, x(4), x(4))
case("instance_norm", lambda a, w, b: F.instance_norm(a, None, None, w, b), X, x(4), x(4))
Q, K = x(2, 2, 3, 4), x(2, 2, 5, 4)
case("attention causal", lambda q: F.scaled_dot_product_attention(q, q, q, None, 0.0, True), Q)
case("attention scale", lambda q, k: F.scaled_dot_product_attention(q, k, k, scale=0.3), Q, K)
case("attention mask", lambda q, k, m: F.scaled_dot_product_attention(q, k, k, m), Q, K, x(3, 5))
case("attention mask and causal", lambda q, m: F.scaled_dot_product_attention(q, q, q, m.masked_fill(torch.ones(3, 3).triu(1).bool(), -INF)), Q, x(3, 3))
case("einsum", lambda a, b: torch.einsum("bij,bkj->bik", a, b), X, x(2, 5, 6))
g.write()
