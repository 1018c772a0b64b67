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
import math
import os
import random
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(7)
NAN, INF = float("nan"), float("inf")
out = []


def number(v):
    v = v if v.dtype == torch.float64 else v.float()
    text = str(v.numpy()[()])  # the shortest that reads back
    return text[:-2] if text.endswith(".0") else text


def line(kind, t):
    names = {torch.float32: "f32", torch.float64: "f64", torch.int64: "i64", torch.int32: "i32", torch.bool: "bool", torch.uint8: "u8", torch.float16: "f16", torch.bfloat16: "bf16"}
    values = " ".join(map(number, t.flatten())) if t.dtype.is_floating_point else " ".join(str(int(v)) for v in t.flatten().tolist())
    out.append("%s %s [%s] %s" % (kind, names[t.dtype], " ".join(map(str, t.shape)), values))


ASKED_AGAIN = "--wild" in sys.argv


def wild(t, choose):
    """t with some elements that no formula may forget, one in eight or so."""
    if not t.dtype.is_floating_point or t.numel() == 0:
        return t
    t = t.clone().contiguous()
    flat = t.view(-1)
    for at in choose.sample(range(flat.numel()), (flat.numel() + 7) // 8):
        flat[at] = choose.choice([NAN, INF, -INF, INF, -INF, -0.0, 1e-40])
    return t


def cotangent(t):
    return ((torch.arange(t.numel(), dtype=torch.float64) * 7 + 3) % 11 - 5).div(4).reshape(t.shape)


def gradient_case(name, f, inputs):
    if any(t.dtype in (torch.float16, torch.bfloat16) or t.numel() > 400 for t in inputs):
        return
    inputs = [t.double().nan_to_num(0.75, 0.75, -0.75).requires_grad_() if t.dtype.is_floating_point else t for t in inputs]
    wrt = [t for t in inputs if t.requires_grad]
    try:
        r = f(*inputs) if wrt else []
    except RuntimeError:  # has no derivative there
        return
    r = [t for t in (r if isinstance(r, (list, tuple)) else [r]) if t.requires_grad]
    if not r or any(t.dtype != torch.float64 for t in r):
        return
    try:
        grads = torch.autograd.grad(sum((t * cotangent(t)).sum() for t in r), wrt, allow_unused=True)
    except RuntimeError:  # scatter's needs a source no longer than the index
        return
    out.append("case " + name)
    for t in inputs:
        line("in", t.detach())
    for t, d in zip(wrt, grads):
        line("out", torch.zeros_like(t) if d is None else d)


def case(name, f, *inputs):
    if "--gradients" in sys.argv:
        return gradient_case(name, f, inputs)
    if ASKED_AGAIN:
        choose = random.Random(name)
        inputs = [wild(t, choose) for t in inputs]
        if all(a.numel() > 400 or not a.dtype.is_floating_point for a in inputs):
            return
        name += " wild"
    out.append("case " + name)
    for t in inputs:
        line("in", t)
    r = f(*inputs)
    for t in r if isinstance(r, (list, tuple)) else [r]:
        line("out", t)


def x(*shape):
    return torch.randn(shape).mul(2).mul(256).round().div(256)  # short decimals


ODD = torch.tensor([NAN, INF, -INF, 0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1.0, -1.0, 3.25, -7.75, 1e-20, -1e-20, 1e20, 100.0, -100.0, 1e-6])
I = torch.tensor

# ---- unary ---------------------------------------------------------------------------------------
for name in "abs sign square exp exp2 expm1 log log2 log1p sqrt rsqrt reciprocal tanh erf floor ceil trunc round isnan isinf isfinite logical_not sigmoid".split():
    case(name, getattr(torch, name), ODD)
TRIG = torch.cat([x(12), I([0.0, -0.0, NAN, INF, 100.0, -1000.0, 31415.9])])
for name in "sin cos tan".split():
    case(name, getattr(torch, name), TRIG)
for name in "logsigmoid relu relu6 selu gelu silu mish softplus softsign hardtanh hardsigmoid hardswish".split():
    case(name, getattr(F, name), torch.cat([x(12), I([0.0, -0.0, NAN, INF, -INF, 30.0, -30.0, 100.0, -100.0])]))
SMALL = torch.cat([x(12), I([0.0, NAN, INF, -INF, 30.0, -30.0])])
case("leaky_relu", F.leaky_relu, SMALL)
case("elu", F.elu, SMALL)
case("elu alpha", lambda a: F.elu(a, 0.5), SMALL)
case("celu", lambda a: F.celu(a, 1.5), SMALL)
case("gelu_tanh", lambda a: F.gelu(a, approximate="tanh"), torch.cat([x(12), I([0.0, NAN, 30.0, -30.0])]))
case("softplus beta", lambda a: F.softplus(a, 2.0, 5.0), x(12))
case("neg", torch.neg, ODD)
for name in "abs sign square exp sqrt sin floor".split():
    case(name + " i64", getattr(torch, name), I([0, 1, -3, 7]) if name not in ("sqrt",) else I([0, 1, 9, 7]))
case("cast to i64", lambda a: a.to(torch.int64), I([1.9, -1.9, 0.0, 100.5]))
case("cast to bool", lambda a: a.to(torch.bool), I([1.9, 0.0, -0.0, NAN]))

# ---- binary, broadcasting, promotion -------------------------------------------------------------
A, B = x(3, 1, 4), x(2, 1)
for name in "add sub mul div remainder fmod pow maximum minimum lt gt le ge eq ne".split():
    a, b = (A.abs(), B) if name == "pow" else (A, B)
    case(name, getattr(torch, name), a, b)
P, Q = torch.meshgrid(I([NAN, INF, -INF, 0.0, -0.0, 1.0, -2.0, 3.0]), I([NAN, INF, -INF, 0.0, -0.0, 1.0, -3.0, 0.5]), indexing="ij")
P, Q = P.flatten(), Q.flatten()
for name in "add mul div fmod pow maximum minimum lt eq".split():
    case(name + " odd", getattr(torch, name), P, Q)
U, V = I([7, -7, 7, -7, 0, 5]), I([2, 2, -2, -2, 3, 5])
for name in "add mul div remainder fmod maximum lt eq".split():
    case(name + " i64", getattr(torch, name), U, V)
case("floor_divide i64", lambda a, b: torch.div(a, b, rounding_mode="floor"), U, V)
case("floor_divide", lambda a, b: torch.div(a, b, rounding_mode="floor"), A, B)
case("add i64 f32", torch.add, I([1, 2, 3]), x(3))
case("add f32 f64", torch.add, x(3), x(3).double())
case("add bool i32", torch.add, I([True, False]), I([3, 4], dtype=torch.int32))
case("add scalar", lambda a: a + 2.5, x(4))
case("scalar sub", lambda a: 2.5 - a, x(4))
case("scalar div", lambda a: 2.5 / a, x(4))
case("pow scalar", lambda a: a ** 3, x(4))
case("i64 div scalar", lambda a: a / 2, U)
case("clamp", lambda a: torch.clamp(a, -1, 1.5), ODD)
case("logical_and", torch.logical_and, I([True, True, False, False]), I([True, False, True, False]))
case("logical_or", torch.logical_or, I([True, True, False, False]), I([True, False, True, False]))
case("logical_xor", torch.logical_xor, I([True, True, False, False]), I([True, False, True, False]))
case("where", torch.where, I([[True], [False]]), x(2, 3), I([NAN, INF, 0.0]))
case("where scalar", lambda c, a: a.masked_fill(~c, -INF), I([True, False, True]), x(3))
case("masked_fill", lambda a, m: a.masked_fill(m, 5.0), x(2, 3), I([True, False, True]))

# ---- reductions ----------------------------------------------------------------------------------
R = x(3, 4, 5)
case("sum all", torch.sum, R)
case("sum 1", lambda a: a.sum(1), R)
case("sum 0 2 keep", lambda a: a.sum((0, 2), True), R)
case("sum bool", lambda a: a.sum(0), I([[True, False], [True, True]]))
case("sum empty", lambda a: a.sum(0), torch.zeros(0, 3))
case("mean -1", lambda a: a.mean(-1), R)
case("amax 1", lambda a: a.amax(1), R)
case("amin 0 1", lambda a: a.amin((0, 1)), R)
case("amax nan", lambda a: a.amax(-1), I([[1.0, NAN, 3.0], [-INF, -INF, -INF]]))
case("var 1", lambda a: a.var(1), R)
case("var 0 correction", lambda a: torch.var(a, dim=(0, 2), unbiased=False, keepdim=True), R)
case("std all", lambda a: a.std(), R)
case("prod 1", lambda a: a.prod(1), R)
case("logsumexp", lambda a: a.logsumexp(-1), torch.cat([R[0], I([[-INF] * 5, [1000.0, 1000, 0, 0, 0]])]))
case("argmax ties", lambda a: a.argmax(1), I([[1.0, 3, 3], [2, 2, 1], [NAN, 1, NAN]]))
case("argmin", lambda a: a.argmin(0), R)
case("any", lambda a: a.any(1), I([[True, False], [False, False]]))
case("all", lambda a: a.all(1), I([[True, False], [True, True]]))
case("softmax", lambda a: a.softmax(1), torch.cat([R, I([[[-INF, 0.0, 1, 1000, -1000]] * 4])]))
case("log_softmax", lambda a: a.log_softmax(-1), R)
case("cumsum", lambda a: a.cumsum(1), R)
case("cumprod", lambda a: a.cumprod(-1), R)
case("cummax", lambda a: a.cummax(0)[0], R)

# ---- shapes --------------------------------------------------------------------------------------
S = x(2, 3, 4)
case("flatten", lambda a: a.flatten(1), S)
case("concat", lambda a, b: torch.cat([a, b], 1), S, x(2, 1, 4))
case("stack", lambda a, b: torch.stack([a, b], 1), S, x(2, 3, 4))
case("split", lambda a: a.split([1, 2], 1), S)
case("chunk", lambda a: a.chunk(3, 2), S)
case("slice", lambda a: a[:, 1:], S)
case("slice step", lambda a: a[..., 0:4:2], S)
case("slice negative", lambda a: a[..., -3:-1], S)
case("flip", lambda a: a.flip(2), S)
case("pad", lambda a: F.pad(a, (1, 2), value=1.5), S)
case("pad reflect", lambda a: F.pad(a, (2, 3), mode="reflect"), S)
case("pad replicate", lambda a: F.pad(a, (2, 3), mode="replicate"), S)
case("roll", lambda a: a.roll(3, 2), S)
case("roll negative", lambda a: a.roll(-1, 1), S)
case("repeat", lambda a: a.repeat(2, 1, 3), S)
case("repeat_interleave", lambda a: a.repeat_interleave(2, 1), S)
case("tril", lambda a: a.tril(1), S)
case("triu", lambda a: a.triu(-1), S)
case("unfold", lambda a: a.unfold(2, 3, 1), S)
case("arange", lambda: torch.arange(6))
case("linspace", lambda: torch.linspace(-1, 2, 7))

# ---- indexing ------------------------------------------------------------------------------------
case("gather", lambda a, i: a.gather(1, i), S, torch.randint(0, 3, (2, 5, 4)))
case("index_select", lambda a, i: a.index_select(2, i), S, I([3, 0, 0]))
case("embedding", lambda w, i: F.embedding(i, w), x(7, 3), I([[1, 6], [0, 1]]))
case("one_hot", lambda i: F.one_hot(i, 4), I([0, 3, 1]))
case("scatter", lambda a, i, s: a.scatter(1, i, s), S, I([[[2, 0, 1, 2]], [[0, 1, 1, 0]]]), x(2, 1, 4))
case("scatter_add", lambda a, i, s: a.scatter_add(0, i, s), x(3, 2), I([[0, 2], [0, 2], [1, 2]]), x(3, 2))
case("sort", lambda a: a.sort(1), I([[3.0, 1, 2, 1], [NAN, -INF, INF, 0]]))
case("sort descending", lambda a: torch.sort(a, dim=1, descending=True, stable=True), I([[3.0, 1, 2, 1], [5, -INF, INF, 0]]))
case("argsort", lambda a: torch.sort(a, dim=0, stable=True)[1], x(5, 2))
case("topk", lambda a: a.topk(2, 1), x(3, 6))

# ---- linear algebra ------------------------------------------------------------------------------
for name, a, b in [("2x2", x(3, 4), x(4, 5)), ("1x1", x(4), x(4)), ("1x2", x(4), x(4, 5)), ("2x1", x(3, 4), x(4)), ("3x3", x(2, 3, 4), x(2, 4, 5)),
                   ("4x3", x(2, 1, 3, 4), x(5, 4, 2)), ("3x1", x(2, 3, 4), x(4)), ("empty", torch.zeros(3, 0), torch.zeros(0, 2))]:
    case("matmul " + name, torch.matmul, a, b)
case("linear", F.linear, x(2, 3, 4), x(5, 4), x(5))
for spec, shapes in [("ij,jk->ik", [(2, 3), (3, 4)]), ("bij,bjk->bik", [(2, 2, 3), (2, 3, 4)]), ("ij->ji", [(2, 3)]), ("ii->i", [(3, 3)]), ("ii", [(3, 3)]),
                     ("i,j->ij", [(2,), (3,)]), ("ijk->j", [(2, 3, 4)]), ("bhqd,bhkd->bhqk", [(2, 2, 3, 4), (2, 2, 5, 4)]), ("ij,ij->", [(2, 3), (2, 3)]), ("ij,jk,kl->il", [(2, 3), (3, 2), (2, 4)])]:
    case("einsum " + spec, lambda *t: torch.einsum(spec, *t), *[x(*s) for s in shapes])

# ---- convolution and pooling ---------------------------------------------------------------------
case("conv1d", lambda a, w, b: F.conv1d(a, w, b, stride=2, padding=1), x(2, 3, 9), x(4, 3, 3), x(4))
case("conv2d", lambda a, w: F.conv2d(a, w), x(1, 3, 6, 5), x(2, 3, 3, 2))
case("conv2d all", lambda a, w, b: F.conv2d(a, w, b, stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=2), x(2, 4, 7, 8), x(6, 2, 3, 3), x(6))
case("conv2d depthwise", lambda a, w: F.conv2d(a, w, padding=1, groups=3), x(1, 3, 5, 5), x(3, 1, 3, 3))
case("conv3d", lambda a, w: F.conv3d(a, w, padding=1), x(1, 2, 3, 4, 4), x(3, 2, 2, 3, 3))
case("conv_transpose1d", lambda a, w: F.conv_transpose1d(a, w, stride=2, padding=1, output_padding=1), x(1, 2, 4), x(2, 3, 3))
case("conv_transpose2d", lambda a, w, b: F.conv_transpose2d(a, w, b, stride=2, padding=1), x(1, 4, 3, 3), x(4, 2, 4, 4), x(2))
case("conv_transpose2d groups", lambda a, w: F.conv_transpose2d(a, w, stride=2, groups=2), x(1, 4, 3, 3), x(4, 1, 2, 2))
case("max_pool2d", lambda a: F.max_pool2d(a, 3, 2, 1), x(2, 2, 7, 6))
case("avg_pool2d", lambda a: F.avg_pool2d(a, 2), x(1, 2, 4, 6))
case("avg_pool2d padding", lambda a: F.avg_pool2d(a, 3, 2, 1), x(1, 1, 5, 5))
case("max_pool1d", lambda a: F.max_pool1d(a, 2), x(1, 2, 6))
case("adaptive_avg_pool2d", lambda a: F.adaptive_avg_pool2d(a, (3, 2)), x(1, 2, 7, 5))
case("adaptive_max_pool2d", lambda a: F.adaptive_max_pool2d(a, (2, 3)), x(1, 2, 5, 7))
case("interpolate nearest", lambda a: F.interpolate(a, size=(6, 5), mode="nearest"), x(1, 2, 3, 4))
case("interpolate bilinear", lambda a: F.interpolate(a, size=(6, 5), mode="bilinear", align_corners=False), x(1, 2, 3, 4))
case("interpolate bilinear corners", lambda a: F.interpolate(a, size=(6, 5), mode="bilinear", align_corners=True), x(1, 2, 3, 4))

# ---- norms and attention -------------------------------------------------------------------------
case("layer_norm", lambda a: F.layer_norm(a, (4,)), x(2, 3, 4))
case("layer_norm 2", lambda a: F.layer_norm(a, (3, 4)), x(2, 3, 4))
case("rms_norm", lambda a: a * torch.rsqrt((a * a).mean(-1, keepdim=True) + 1e-5), x(3, 8))
case("group_norm", lambda a: F.group_norm(a, 2), x(2, 4, 3))
case("batch_norm", lambda a, m, v, w, b: F.batch_norm(a, m, v, w, b), x(2, 3, 4), x(3), x(3).abs() + 0.5, x(3), x(3))


def attention(q, k, v, mask=None):
    if q.dim() > 2:
        k, v = (t.repeat_interleave(q.shape[-3] // t.shape[-3], -3) for t in (k, v))
    s = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if mask is not None:
        s = s.masked_fill(~mask, -INF)
    return s.softmax(-1) @ v


case("attention", attention, x(1, 2, 3, 4), x(1, 2, 5, 4), x(1, 2, 5, 6))
case("attention causal grouped", attention, x(1, 4, 3, 4), x(1, 2, 3, 4), x(1, 2, 3, 4), torch.ones(3, 3, dtype=torch.bool).tril())


def rope(a, cos, sin, interleaved):
    if interleaved:
        p, q = a[..., 0::2], a[..., 1::2]
        return torch.stack([p * cos - q * sin, p * sin + q * cos], -1).flatten(-2)
    p, q = a.chunk(2, -1)
    return torch.cat([p * cos - q * sin, p * sin + q * cos], -1)


case("rope", lambda a, c, s: rope(a, c, s, False), x(2, 3, 4), x(3, 2), x(3, 2))
case("rope interleaved", lambda a, c, s: rope(a, c, s, True), x(2, 3, 4), x(3, 2), x(3, 2))

# ---- every unary once more: f64, integers, halves ---------------------------------------------------
for name in "abs sign square exp exp2 expm1 log log2 log1p sqrt rsqrt reciprocal tanh erf floor ceil trunc round sigmoid sin cos tan".split():
    wide = torch.cat([ODD, I([0.05, -0.09, 0.11, 0.3, -0.49, 0.51, 2.2, -4.1, 6.5, 20.0, -30.0])]).double()
    if name in ("sin", "cos", "tan"):
        wide = wide[~(wide.abs() > 1e6)]
    case(name + " f64", getattr(torch, name), wide)
for name in "logsigmoid relu relu6 selu gelu silu mish softplus softsign hardtanh hardsigmoid hardswish leaky_relu elu celu".split():
    case(name + " f64", getattr(F, name), torch.cat([x(6), I([0.0, NAN, INF, -INF, 30.0, -30.0])]).double())
case("gelu_tanh f64", lambda a: F.gelu(a, approximate="tanh"), x(6).double())
for name in "exp log tanh sigmoid floor sin".split():
    case(name + " bf16", getattr(torch, name), x(6).abs().bfloat16())
for name in "exp2 log2 log1p expm1 rsqrt reciprocal cos tan tanh erf sigmoid".split():
    case(name + " i64", getattr(torch, name), I([1, 2, 3, 7]))
for name in "ceil trunc round".split():
    case(name + " i64", lambda a: a.clone(), I([0, 1, -3, 7]))
case("sqrt u8", torch.sqrt, I([0, 1, 9, 255], dtype=torch.uint8))
case("exp bool", torch.exp, I([True, False]))
for name in "isnan isinf isfinite".split():
    case(name + " i64", getattr(torch, name), I([0, 1, -3]))
case("neg i64", torch.neg, I([0, 1, -3, 7]))
case("neg u8", torch.neg, I([0, 1, 255], dtype=torch.uint8))
case("relu i64", F.relu, I([0, 1, -3, 7]))
case("logical_not i64", torch.logical_not, I([0, 1, -3]))
case("square bool", lambda a: a * a, I([True, False]))
WILD = I([NAN, INF, -INF, 3e9, -3e9, 1e20, -1.5, 255.9, 0.99])
TYPES = [("f32", torch.float32), ("f64", torch.float64), ("f16", torch.float16), ("bf16", torch.bfloat16), ("i32", torch.int32), ("i64", torch.int64), ("u8", torch.uint8), ("bool", torch.bool)]
for p, tp in TYPES:
    for q, tq in TYPES:
        case("cast %s %s" % (p, q), lambda a: a.to(tq), I([0, 1, 2, 100]).to(tp))
case("cast f32 f16 odd", lambda a: a.to(torch.float16), I([NAN, INF, -INF, 65504.0, 65519.0, 65520.0, 1e-8, 6e-8, -0.0, 1.0004883, 1.0014648]))
case("cast f32 bf16 odd", lambda a: a.to(torch.bfloat16), I([NAN, INF, -INF, 3.4e38, 1e-40, -0.0, 1.00390625, 1.01171875]))

# ---- promotion: every pair of types, and 0-d tensors ------------------------------------------------
for p, tp in TYPES:
    for q, tq in TYPES:
        case("promote %s %s" % (p, q), lambda a, b: a + b, I([1, 0]).to(tp), I([1, 1]).to(tq))
        case("promote scalar %s %s" % (p, q), lambda a, b: a + b, I([1, 0]).to(tp), I(1).to(tq))
for p, tp in TYPES:
    case("number int %s" % p, lambda a: a + 2, I([1, 0]).to(tp))
    case("number float %s" % p, lambda a: a * 2.5, I([1, 0]).to(tp))
    case("number div %s" % p, lambda a: a / 2, I([1, 0]).to(tp))
case("u8 sub", lambda a, b: a - b, I([1, 200, 3], dtype=torch.uint8), I([2, 1, 255], dtype=torch.uint8))
case("u8 sub number", lambda a: a - 2, I([1, 200, 3], dtype=torch.uint8))
case("u8 number sub", lambda a: 2 - a, I([1, 200, 3], dtype=torch.uint8))
case("i32 mul wraps", lambda a: a * a, I([2 ** 30, 65536, -7], dtype=torch.int32))
case("mul broadcast", torch.mul, x(3, 1, 1), x(1, 4))
case("add empty", torch.add, x(0, 3), x(1, 3))
case("add 0-d", torch.add, I(1.5), I(2.5))
for name in "sub remainder floor_divide".split():
    f = (lambda a, b: torch.div(a, b, rounding_mode="floor")) if name == "floor_divide" else getattr(torch, name)
    case(name + " odd", f, P, Q)
for name in "gt ge le ne".split():
    case(name + " odd", getattr(torch, name), P, Q)
    case(name + " i64", getattr(torch, name), U, V)
case("lt mixed", lambda a, b: a < b, I([1, 2, 3]), I([1.5, 1.5, 3.0]))
case("eq mixed", torch.eq, I([True, False]), I([1, 0]))
case("minimum i64", torch.minimum, U, V)
case("maximum bool", torch.maximum, I([True, False]), I([False, False]))
case("sub i64", torch.sub, U, V)
case("pow i64", torch.pow, I([0, 1, -1, 2, -3, 10]), I([0, 5, 3, 10, 3, 2]))
case("pow i64 2", lambda a: a ** 2, I([0, 3, -4]))
case("pow bool 2", lambda a: a ** 2, I([True, False]))
for n in (0.0, 0.5, 2.0, -1.0, 1.0, -0.5, 2.5):
    case("pow number %g" % n, lambda a: a ** n, ODD[:16])
case("pow i64 number 0.5", lambda a: a ** 0.5, I([0, 4, 9]))
case("remainder number", lambda a: a % 3, x(6))
case("remainder number i64", lambda a: a % -3, U)
case("remainder by zero", lambda a: a % 0.0, x(3))
case("lt number", lambda a: a < 0.5, ODD)
case("gt number", lambda a: a > 0.5, ODD)
case("le number", lambda a: a <= 0.5, ODD)
case("ge number", lambda a: a >= 0.5, ODD)
case("eq number", lambda a: a == 0.5, ODD)
case("le number i64", lambda a: a <= 2.5, U)
case("number mul", lambda a: 2.5 * a, ODD)
case("number add i64", lambda a: 2 + a, U)
case("clamp low", lambda a: a.clamp(min=-1), ODD)
case("clamp high", lambda a: a.clamp(max=1.5), ODD)
case("clamp i64", lambda a: a.clamp(-2, 6), U)
case("clamp i64 float", lambda a: a.clamp(-1.5, 1.5), U)
case("clamp crossed", lambda a: a.clamp(2, 1), x(4))
case("logical_and f32", torch.logical_and, I([NAN, 0.0, -0.0, 2.0]), I([1.0]))
case("logical_or i64", torch.logical_or, I([0, 0, 2, -1]), I([0, 1, 0, 1]))
case("logical_xor f32", torch.logical_xor, I([NAN, 0.0, -0.0, 2.0]), I([1.0, 1.0, 0.0, 3.0]))
case("where i64", torch.where, I([True, False]), I([1, 2]), I([3, 4]))
case("where bool", torch.where, I([True, False]), I([False, True]), I([True, False]))
case("where mixed", torch.where, I([True, False]), I([1, 2]), I([3.5, 4.5]))
case("masked_fill inf", lambda a, m: a.masked_fill(m, -INF), I([NAN, INF, 1.0]), I([True, True, False]))

# ---- more reductions ---------------------------------------------------------------------------------
case("sum -1 -3", lambda a: a.sum((-1, -3)), R)
case("sum i32", lambda a: a.sum(0), I([[2 ** 31 - 1], [5]], dtype=torch.int32))
case("sum u8", lambda a: a.sum(), I([255, 255], dtype=torch.uint8))
case("sum odd", lambda a: a.sum(1), I([[INF, -INF], [INF, 1], [NAN, 1], [1e20, -1e20]]))
case("sum 0-d", lambda a: a.sum(), I(2.5))
case("sum f64", lambda a: a.sum(1), R.double())
case("mean all", lambda a: a.mean(), R)
case("mean 0 1 keep", lambda a: a.mean((0, 1), True), R)
case("mean empty", lambda a: a.mean(0), torch.zeros(0, 3))
case("amax all", lambda a: a.amax(), R)
case("amax i64", lambda a: a.amax(0), I([[-5, 3], [-7, 2]]))
case("amax u8", lambda a: a.amax(0), I([[5, 3], [7, 0]], dtype=torch.uint8))
case("amax bool", lambda a: a.amax(0), I([[True, False], [False, False]]))
case("amin keep", lambda a: a.amin(-1, True), R)
case("amin nan", lambda a: a.amin(-1), I([[1.0, NAN, 3.0], [INF, INF, INF]]))
case("amin i64", lambda a: a.amin(0), I([[-5, 3], [-2 ** 62, 2]]))
case("amin i32", lambda a: a.amin(0), I([[-5, -2 ** 31], [-7, 2]], dtype=torch.int32))
case("amin u8", lambda a: a.amin(0), I([[5, 3], [7, 0]], dtype=torch.uint8))
case("amin bool", lambda a: a.amin(0), I([[True, False], [True, True]]))
case("var one", lambda a: a.var(0), x(1, 2))
case("var far", lambda a: a.var(0), x(6, 2) + 1000)
case("var all keep", lambda a: torch.var(a, dim=(0, 1, 2), unbiased=True, keepdim=True), R)
case("std 1 keep", lambda a: a.std(1, keepdim=True), R)
case("std population", lambda a: torch.std(a, dim=(0, 2), unbiased=False), R)
case("prod keep", lambda a: a.prod(-1, keepdim=True), R)
case("prod i64", lambda a: a.prod(0), I([[2, -3], [4, 5], [7, 1]]))
case("prod bool", lambda a: a.prod(0), I([[True, False], [True, True]]))
case("prod i32", lambda a: a.prod(0), I([[2, 3], [4, 5]], dtype=torch.int32))
case("prod empty", lambda a: a.prod(0), torch.zeros(0, 2))
case("prod odd", lambda a: a.prod(1), I([[0.0, INF], [NAN, 1], [-2, INF]]))
case("logsumexp all", lambda a: a.logsumexp((0, 1, 2)), R)
case("logsumexp keep", lambda a: a.logsumexp((0, 2), True), R)
case("logsumexp odd", lambda a: a.logsumexp(1), I([[INF, 1.0], [NAN, 1.0], [-INF, -INF], [INF, -INF], [-1000.0, -1001.0]]))
case("argmax keep", lambda a: a.argmax(0, True), R)
case("argmax i64", lambda a: a.argmax(1), I([[-5, -3, -3], [2, 1, 2]]))
case("argmax odd", lambda a: a.argmax(1), I([[-INF, -INF, -INF], [0.0, -0.0, 0.0], [INF, NAN, INF], [-0.0, 0.0, 0.0]]))
case("argmin odd", lambda a: a.argmin(1), I([[INF, INF, INF], [0.0, -0.0, 0.0], [-INF, NAN, -INF], [1, 2, 1]]))
case("argmin i64", lambda a: a.argmin(1), I([[-5, -3, -5], [2, 1, 1]]))
case("argmin u8", lambda a: a.argmin(1), I([[5, 3, 5], [2, 0, 0]], dtype=torch.uint8))
case("any all axes", lambda a: a.any(), I([[0.0, -0.0], [0.0, NAN]]))
case("any empty", lambda a: a.any(0), torch.zeros(0, 2))
case("all empty", lambda a: a.all(0), torch.zeros(0, 2))
case("all f32 keep", lambda a: a.all(0, True), I([[NAN, 1.0, 0.0], [1.0, INF, 1.0]]))
case("any i64", lambda a: a.any(1), I([[0, 0], [0, 5]]))
case("softmax odd", lambda a: a.softmax(1), I([[NAN, 0.0, 1.0], [-INF, -INF, -INF], [INF, 0.0, 1.0], [-INF, 2.0, 2.0], [3e38, -3e38, 0.0]]))
case("softmax 0", lambda a: a.softmax(0), R)
case("softmax one", lambda a: a.softmax(1), x(3, 1))
case("softmax empty", lambda a: a.softmax(1), x(0, 3))
case("softmax f64", lambda a: a.softmax(-1), R.double())
case("softmax bf16", lambda a: a.softmax(-1), R.bfloat16())
case("log_softmax odd", lambda a: a.log_softmax(1), I([[NAN, 0.0, 1.0], [-INF, -INF, -INF], [INF, 0.0, 1.0], [-INF, 2.0, 2.0], [1000.0, 0.0, -1000.0]]))
case("log_softmax f64", lambda a: a.log_softmax(0), R.double())
case("cumsum 0", lambda a: a.cumsum(0), R)
case("cumsum long", lambda a: a.cumsum(0), x(37))
case("cumsum i64", lambda a: a.cumsum(0), I([1, 2, -3, 4]))
case("cumsum bool", lambda a: a.cumsum(0), I([True, False, True]))
case("cumsum odd", lambda a: a.cumsum(0), I([1.0, INF, 2.0, -INF, 3.0]))
case("cumsum one", lambda a: a.cumsum(1), x(2, 1))
case("cumsum empty", lambda a: a.cumsum(0), x(0, 2))
case("cumprod i64", lambda a: a.cumprod(0), I([1, 2, -3, 4]))
case("cumprod odd", lambda a: a.cumprod(0), I([2.0, 0.0, INF, 3.0]))
case("cummax odd", lambda a: a.cummax(0)[0], I([-INF, 1.0, 0.5, NAN, 3.0]))
case("cummax i64", lambda a: a.cummax(1)[0], I([[-7, -9, -3], [4, 5, 1]]))

# ---- more shapes -------------------------------------------------------------------------------------
O = I([NAN, INF, -INF, 0.0, -0.0, 1.0])
case("concat three", lambda *t: torch.cat(t, 0), x(1, 2), x(0, 2), x(3, 2))
case("concat types", lambda *t: torch.cat(t, -1), x(2, 1), I([[1], [2]]))
case("concat odd", lambda *t: torch.cat(t, 0), O, O)
case("concat bool", lambda *t: torch.cat(t, 0), I([True]), I([False, True]))
case("concat one", lambda *t: torch.cat(t, 0), O)
case("stack 0", lambda *t: torch.stack(t, 0), x(2), x(2), x(2))
case("stack last", lambda *t: torch.stack(t, -1), x(2, 3), x(2, 3))
case("split 0", lambda a: a.split([3, 0, 2], 0), x(5, 2))
case("chunk uneven", lambda a: a.chunk(4, 0), x(6, 2))
case("chunk even", lambda a: a.chunk(2, -1), x(2, 6))
W = torch.arange(7).float()
SLICES = [(None, None, 1), (2, 5, 1), (-3, None, 1), (None, -5, 1), (-100, 100, 1), (5, 2, 1), (1, 6, 2), (0, 7, 3), (6, 7, 5), (9, 12, 1)]
for n, (b, e, s) in enumerate(SLICES):
    case("slice %d" % n, lambda a: a[b:e:s].clone(), W)
BACK = [(6, -8, -1), (5, 1, -2), (-1, 2, -3), (100, -100, -4), (1, 5, -1), (3, 2, -1)]
for n, (b, e, s) in enumerate(BACK):
    case("slice back %d" % n, lambda a: torch.tensor(a.tolist()[b:e:s]), W)
case("flip odd", lambda a: a.flip(0), O)
case("broadcast_to", lambda a: a.expand(2, 3, 4), x(3, 1))
case("flatten all", lambda a: a.flatten(), S)
case("flatten 0 1", lambda a: a.flatten(0, 1), S)
case("flatten -2", lambda a: a.flatten(-2, -1), S)
case("pad i64", lambda a: F.pad(a, (2, 1), value=-7), I([[1, 2]]))
case("pad bool", lambda a: F.pad(a, (2, 1), value=True), I([[False, True]]))
case("pad inf", lambda a: F.pad(a, (1, 1), value=-INF), O)
case("pad zero", lambda a: F.pad(a, (0, 0, 2, 1)), S)
case("pad reflect left", lambda a: F.pad(a, (3, 0), mode="reflect"), S)
case("pad replicate odd", lambda a: F.pad(a, (4, 5), mode="replicate"), O.reshape(1, 6))
case("pad replicate one", lambda a: F.pad(a, (2, 3), mode="replicate"), x(2, 1))
case("roll far", lambda a: a.roll(-9, 0), x(4, 2))
case("repeat zero", lambda a: a.repeat(2, 0), x(2, 2))
case("repeat i64", lambda a: a.repeat(3), I([1, 2]))
case("repeat_interleave last", lambda a: a.repeat_interleave(3, -1), S)
for d in (-2, 0, 3):
    case("tril %d" % d, lambda a: a.tril(d), x(3, 4))
    case("triu %d" % d, lambda a: a.triu(d), x(4, 3))
case("tril odd", lambda a: a.tril(), O.reshape(2, 3))
case("triu bool", lambda a: a.triu(1), torch.ones(3, 3, dtype=torch.bool))
case("unfold stride", lambda a: a.unfold(0, 3, 2), x(8, 2))
case("arange i32", lambda: torch.arange(4, dtype=torch.int32))
case("arange f32", lambda: torch.arange(4, dtype=torch.float32))
case("linspace one", lambda: torch.linspace(3, 9, 1))
case("linspace down", lambda: torch.linspace(5, -5, 11))

# ---- more indexing -----------------------------------------------------------------------------------
case("gather 0", lambda a, i: a.gather(0, i), x(4, 3), I([[0, 3, 1]]))
case("gather small", lambda a, i: a.gather(-1, i), x(4, 3), I([[0, 2, 1, 1], [2, 2, 0, 0]]))
case("gather odd", lambda a, i: a.gather(0, i), O, I([5, 4, 3, 2, 1, 0, 0, 1]))
case("gather bool", lambda a, i: a.gather(0, i), I([True, False]), I([1, 0, 0]))
case("index_select 0", lambda a, i: a.index_select(0, i), x(4, 3), I([3, 3, 1]))
case("index_select empty", lambda a, i: a.index_select(0, i), x(4, 3), torch.zeros(0, dtype=torch.int64))
case("embedding one", lambda w, i: F.embedding(i, w), x(7, 3), I(5))
case("embedding i32", lambda w, i: F.embedding(i, w), x(7, 3), I([1, 6, 0], dtype=torch.int32))
case("one_hot 2", lambda i: F.one_hot(i, 3), I([[0, 2], [1, 1]]))
case("scatter 0", lambda a, i, s: a.scatter(0, i, s), x(4, 3), I([[3, 1, 0], [0, 0, 2]]), x(2, 3))
case("scatter small", lambda a, i, s: a.scatter(1, i, s), x(4, 3), I([[2, 0]]), x(2, 3))
case("scatter i64", lambda a, i, s: a.scatter(-1, i, s), I([1, 2, 3]), I([2]), I([9]))
case("scatter_add duplicates", lambda a, i, s: a.scatter_add(-1, i, s), x(2, 3), I([[0, 0, 0, 2], [1, 1, 0, 1]]), x(2, 4))
case("scatter_add small", lambda a, i, s: a.scatter_add(0, i, s), x(4, 3), I([[2, 0]]), x(2, 3))
K = I([[3.0, 1, 2, 1, 1, 2], [NAN, -INF, INF, 0.0, NAN, -0.0]])
case("sort stable", lambda a: torch.sort(a, dim=1, stable=True), K)
case("sort stable descending", lambda a: torch.sort(a, dim=1, descending=True, stable=True), K)
case("sort i64", lambda a: torch.sort(a, dim=0, stable=True), I([[5, -2], [-2 ** 40, 3], [5, -2]]))
case("sort long", lambda a: torch.sort(a, dim=0, stable=True), x(45))
case("sort empty", lambda a: torch.sort(a, dim=1, stable=True), x(2, 0))
case("argsort descending", lambda a: torch.sort(a, dim=-1, descending=True, stable=True)[1], x(3, 7))
case("topk all", lambda a: a.topk(4, 0), x(4, 2))

# ---- more linear algebra -----------------------------------------------------------------------------
for name, a, b in [("1x3", x(4), x(2, 4, 5)), ("5x2", x(2, 1, 2, 3, 4), x(4, 2)), ("2x4", x(3, 4), x(2, 1, 4, 2)), ("4x4", x(2, 1, 2, 3), x(1, 3, 3, 2)), ("inner one", x(3, 1), x(1, 4)),
                   ("big", x(37, 33), x(33, 41)), ("f64", x(3, 4).double(), x(4, 2).double()), ("i64", I([[1, 2], [3, 4]]), I([[5, 6], [7, 8]])),
                   ("odd", I([[INF, 0.0], [NAN, 1.0]]), I([[0.0, 1.0], [1.0, -1.0]])), ("no rows", x(0, 3), x(3, 2)), ("bf16", x(3, 4).bfloat16(), x(4, 2).bfloat16())]:
    case("matmul " + name, torch.matmul, a, b)
case("linear vector", F.linear, x(4), x(5, 4), x(5))
case("linear plain", F.linear, x(2, 4), x(5, 4))
for spec, shapes in [("...ij,...jk->...ik", [(2, 1, 2, 3), (4, 3, 2)]), ("...i->...", [(2, 3, 4)]), ("...", [(2, 3)]), ("i...->...i", [(2, 3, 4)]), ("...ij,...jk", [(2, 2, 3), (2, 3, 2)]), ("bi,...bj->...bij", [(2, 3), (4, 2, 2)]),
                     ("ba", [(2, 3)]), ("ij,jk", [(2, 3), (3, 4)]), ("bi,bi->b", [(2, 3), (2, 3)]), ("ijk,jil->kl", [(2, 3, 4), (3, 2, 2)]), ("a,b,c->abc", [(2,), (3,), (2,)]), ("i->", [(3,)]), ("ijj->i", [(2, 3, 3)]), ("iji->j", [(2, 3, 2)]), ("iijj->ij", [(2, 2, 3, 3)]),
                     ("iii->i", [(3, 3, 3)]), ("Ab,bA->A", [(2, 3), (3, 2)]), ("aB", [(2, 3)]), ("ij,kj->ik", [(2, 3), (4, 3)]), ("i j , j k -> k i", [(2, 3), (3, 4)]), ("bnd,bmd,bm->bn", [(2, 3, 4), (2, 5, 4), (2, 5)]),
                     ("ab,cd,ad->bc", [(2, 3), (4, 2), (2, 2)]), ("ij,ij->ij", [(2, 3), (2, 3)]), ("ii,jj->", [(2, 2), (3, 3)]), ("ik,jk->ij", [(2, 1), (3, 4)]), (",i->i", [(), (3,)]), ("bchw,ocij->bo", [(1, 2, 3, 3), (3, 2, 2, 2)])]:
    case("einsum " + spec, lambda *t: torch.einsum(spec, *t), *[x(*s) for s in shapes])
case("einsum ij,jk->ki", lambda *t: torch.einsum("ij,jk->ki", *t), I([[1, 2], [3, 4]]), I([[5, 6], [7, 8]]))

# ---- more convolution and pooling --------------------------------------------------------------------
case("conv1d plain", lambda a, w: F.conv1d(a, w), x(1, 2, 5), x(3, 2, 2))
case("conv1d dilated groups", lambda a, w, b: F.conv1d(a, w, b, padding=2, dilation=2, groups=2), x(2, 4, 7), x(4, 2, 3), x(4))
case("conv1d f64", lambda a, w: F.conv1d(a, w), x(1, 2, 5).double(), x(3, 2, 2).double())
case("conv2d 1x1", lambda a, w: F.conv2d(a, w), x(2, 3, 4, 4), x(5, 3, 1, 1))
case("conv2d stride", lambda a, w: F.conv2d(a, w, stride=3), x(1, 2, 8, 9), x(2, 2, 3, 3))
case("conv2d big", lambda a, w: F.conv2d(a, w, padding=1), x(1, 6, 10, 9), x(8, 6, 3, 3))
case("conv2d multiplier", lambda a, w: F.conv2d(a, w, groups=2), x(1, 2, 4, 4), x(6, 1, 2, 2))
case("conv2d no batch", lambda a, w: F.conv2d(a, w), torch.zeros(0, 2, 4, 4), x(3, 2, 2, 2))
case("conv3d all", lambda a, w, b: F.conv3d(a, w, b, stride=(1, 2, 1), padding=(0, 1, 1), dilation=(1, 1, 2), groups=2), x(1, 2, 3, 5, 5), x(2, 1, 2, 2, 2), x(2))
case("conv_transpose1d plain", lambda a, w: F.conv_transpose1d(a, w), x(2, 2, 4), x(2, 3, 3))
case("conv_transpose1d padded", lambda a, w: F.conv_transpose1d(a, w, padding=3), x(1, 2, 9), x(2, 3, 3))
case("conv_transpose2d all", lambda a, w, b: F.conv_transpose2d(a, w, b, stride=(2, 3), padding=(1, 2), output_padding=(1, 0), dilation=(2, 1), groups=2), x(1, 4, 3, 4), x(4, 3, 3, 2), x(6))
case("conv_transpose3d", lambda a, w: F.conv_transpose3d(a, w, stride=2, padding=1), x(1, 2, 2, 3, 2), x(2, 2, 3, 3, 3))
case("max_pool2d tuple", lambda a: F.max_pool2d(a, (3, 2), (1, 2), (1, 0)), x(2, 2, 5, 6))
case("max_pool2d odd", lambda a: F.max_pool2d(a, 2, 1, 1), torch.cat([O, x(10)]).reshape(1, 1, 4, 4))
case("max_pool3d", lambda a: F.max_pool3d(a, 2), x(1, 2, 4, 4, 2))
case("avg_pool1d", lambda a: F.avg_pool1d(a, 3, 1, 1), x(1, 2, 6))
case("avg_pool2d tuple", lambda a: F.avg_pool2d(a, (3, 2), (1, 2), (1, 0)), x(2, 2, 5, 6))
case("avg_pool3d", lambda a: F.avg_pool3d(a, 2), x(1, 2, 4, 4, 2))
case("adaptive_avg_pool1d", lambda a: F.adaptive_avg_pool1d(a, 3), x(1, 2, 7))
case("adaptive_avg_pool2d grow", lambda a: F.adaptive_avg_pool2d(a, (5, 1)), x(1, 2, 3, 4))
case("adaptive_avg_pool3d", lambda a: F.adaptive_avg_pool3d(a, (2, 1, 3)), x(1, 1, 3, 4, 5))
case("adaptive_max_pool1d", lambda a: F.adaptive_max_pool1d(a, 4), x(1, 2, 6))
case("adaptive_max_pool2d odd", lambda a: F.adaptive_max_pool2d(a, 2), torch.cat([O, x(10)]).reshape(1, 1, 4, 4))
for name, size, shape in [("1d", (7,), (1, 2, 4)), ("down", (2, 3), (1, 2, 5, 7)), ("3d", (3, 5, 2), (1, 1, 2, 3, 4)), ("one", (1, 1), (1, 1, 3, 3)), ("same", (3, 4), (1, 1, 3, 4))]:
    mode = {1: "linear", 2: "bilinear", 3: "trilinear"}[len(size)]
    t = x(*shape)
    case("interpolate nearest " + name, lambda a: F.interpolate(a, size=size, mode="nearest"), t)
    case("interpolate bilinear " + name, lambda a: F.interpolate(a, size=size, mode=mode, align_corners=False), t)
    case("interpolate bilinear corners " + name, lambda a: F.interpolate(a, size=size, mode=mode, align_corners=True), t)

# ---- more norms and attention ------------------------------------------------------------------------
case("layer_norm f64", lambda a: F.layer_norm(a, (4,)), x(2, 4).double())
case("layer_norm far", lambda a: F.layer_norm(a, (6,)), x(2, 6) + 20)
case("layer_norm constant", lambda a: F.layer_norm(a, (4,)), torch.full((2, 4), 3.0))
case("layer_norm vector", lambda a: F.layer_norm(a, (8,)), x(8))
case("group_norm 4d", lambda a: F.group_norm(a, 3), x(2, 6, 2, 3))
case("group_norm one", lambda a: F.group_norm(a, 1), x(2, 4))
case("batch_norm 2d", lambda a, m, v, w, b: F.batch_norm(a, m, v, w, b), x(4, 3), x(3), x(3).abs() + 0.5, x(3), x(3))
case("batch_norm 4d", lambda a, m, v, w, b: F.batch_norm(a, m, v, w, b, eps=1e-3), x(2, 3, 2, 2), x(3), x(3).abs() + 0.5, x(3), x(3))
case("attention scale", lambda q, k, v: (q @ k.transpose(-1, -2) * 0.3).softmax(-1) @ v, x(2, 3, 4), x(2, 5, 4), x(2, 5, 4))
case("attention multi-query", attention, x(2, 4, 3, 4), x(2, 1, 6, 4), x(2, 1, 6, 4))
case("attention mask heads", attention, x(2, 2, 3, 4), x(2, 2, 4, 4), x(2, 2, 4, 4), torch.tensor([True, False, True, True]).reshape(1, 1, 1, 4))
case("rope batch", lambda a, c, s: rope(a, c, s, False), x(2, 2, 3, 6), x(3, 3), x(3, 3))
case("rope interleaved f64", lambda a, c, s: rope(a, c, s, True), x(2, 3, 6).double(), x(3, 3).double(), x(3, 3).double())

# ---- the rest of the vocabulary -----------------------------------------------------------------------
ARC = I([NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 0.999, -0.999, 1e-6, 0.66, 0.67, 2.4, 2.5, -3.0, 50.0, -1e4, 1e10, -1e30])
for name in "asin acos atan sinh cosh asinh acosh atanh log10 erfc frac".split():
    case(name, getattr(torch, name), ARC)
    case(name + " f64", getattr(torch, name), torch.cat([ARC, x(8)]).double())
case("atan i64", torch.atan, I([0, 1, -5]))
case("logit", torch.logit, I([0.0, 1.0, 0.5, 0.25, 2.0, NAN]))
case("nan_to_num", torch.nan_to_num, ODD)
case("nan_to_num f64", torch.nan_to_num, ODD.double())
case("nan_to_num 7", lambda a: torch.nan_to_num(a, 7.0), ODD)
Y, Z = torch.meshgrid(I([NAN, INF, -INF, 0.0, -0.0, 1.0, -2.0]), I([NAN, INF, -INF, 0.0, -0.0, 1.0, -3.0]), indexing="ij")
for name in "atan2 hypot logaddexp xlogy".split():
    case(name, getattr(torch, name), x(3, 1), x(4))
    case(name + " odd", getattr(torch, name), Y.flatten(), Z.flatten())
PEAKS = I([[1.0, 3, 3, 2], [NAN, 5, NAN, -INF], [-INF, -INF, INF, 0]])
case("max", lambda a: a.max(1), PEAKS)
case("max keep", lambda a: a.max(-1, True), PEAKS)
case("min", lambda a: a.min(1), PEAKS)
case("lerp", lambda a, b: torch.lerp(a, b, 0.25), x(3, 4), x(3, 4))
case("lerp ends", lambda a, b: torch.lerp(a, b, 1.0), I([1e20, 1.0]), I([1.0, 3.0]))
SHRINK = torch.cat([x(6), I([0.5, -0.5, 0.0, NAN, INF, -INF])])
for name in "hardshrink softshrink tanhshrink".split():
    case(name, getattr(F, name), SHRINK[~SHRINK.isnan()] if name == "softshrink" else SHRINK)  # 1.13 loses NaN there
case("threshold", lambda a: F.threshold(a, 0.5, 20.0), SHRINK)
case("prelu", F.prelu, x(2, 3, 2), x(3))
case("prelu one", F.prelu, x(2, 3, 2), x(1))
case("glu", lambda a: F.glu(a), x(2, 6))
case("glu 0", lambda a: F.glu(a, 0), x(4, 3))
case("prod all", lambda a: a.prod(), x(2, 3, 2))
for p in (0, 1, 2, 3, 0.5, INF, -INF):
    case("norm %g" % p, lambda a: torch.linalg.vector_norm(a, p, (0, 2)), R)
case("norm all keep", lambda a: torch.linalg.vector_norm(a, keepdim=True), R)
case("count_nonzero", lambda a: a.count_nonzero(0), I([[0.0, NAN], [-0.0, 2.0]]))
case("argmax all", lambda a: a.argmax(), R)
case("argmin all", lambda a: a.argmin(), R)
case("cummin", lambda a: a.cummin(1)[0], R)
case("cummin odd", lambda a: a.cummin(0)[0], I([INF, 1.0, 2.5, NAN, 0.0]))
case("cummin i64", lambda a: a.cummin(0)[0], I([5, 7, -2 ** 40, 3]))
case("cummin u8", lambda a: a.cummin(0)[0], I([255, 7, 9], dtype=torch.uint8))
case("logcumsumexp", lambda a: a.logcumsumexp(1), R)
case("logcumsumexp odd", lambda a: a.logcumsumexp(0), I([-INF, -INF, 1.0, 1000.0, INF, 2.0]))
case("softmin", lambda a: F.softmin(a, 1), R)
case("flip two", lambda a: a.flip((0, -1)), S)
case("movedim", lambda a: a.movedim(0, -1), S)
case("movedim back", lambda a: a.movedim(2, 0), S)
case("unbind", lambda a: a.unbind(1), S)
case("diff", lambda a: a.diff(), S)
case("diff i64", lambda a: a.diff(dim=0), I([1, 5, -2]))
case("diff bool", lambda a: a.diff(), I([True, False, False]))
for o in (0, 1, -2, 5):
    case("diagonal %d" % o, lambda a: a.diagonal(o).clone(), x(4, 5))
case("diagonal axes", lambda a: a.diagonal(-1, 2, 0).clone(), x(3, 2, 4))
case("arange range", lambda: torch.arange(3, 12, 4))
case("arange back", lambda: torch.arange(5, -2, -3))
case("eye", lambda: torch.eye(3))
case("pad circular", lambda a: F.pad(a, (3, 4), mode="circular"), S)
case("pad negative", lambda a: F.pad(a, (-1, 2)), S)
case("pad negative both", lambda a: F.pad(a, (-1, -2), value=3.0), S)
case("scatter number", lambda a, i: a.scatter(1, i, 5.5), x(2, 4), I([[3], [0]]))
case("index_add", lambda a, i, s: a.index_add(1, i, s), x(2, 4), I([3, 0, 3]), x(2, 3))
case("index_copy", lambda a, i, s: a.index_copy(0, i, s), x(4, 2), I([3, 0]), x(2, 2))
case("topk smallest", lambda a: a.topk(3, -1, largest=False), x(3, 6))
case("outer", torch.outer, x(3), x(4))
case("trace", torch.trace, x(3, 4))
case("max_pool2d dilation", lambda a: F.max_pool2d(a, 2, 1, 1, 2), x(1, 2, 6, 5))
case("max_pool2d ceil", lambda a: F.max_pool2d(a, 3, 2, 1, ceil_mode=True), x(1, 2, 6, 7))
case("max_pool1d ceil", lambda a: F.max_pool1d(a, 2, 3, 1, ceil_mode=True), x(1, 1, 8))
case("avg_pool2d ceil", lambda a: F.avg_pool2d(a, 3, 2, 1, ceil_mode=True), x(1, 2, 6, 7))
case("avg_pool2d inside", lambda a: F.avg_pool2d(a, 3, 2, 1, count_include_pad=False), x(1, 2, 6, 7))
case("avg_pool2d ceil inside", lambda a: F.avg_pool2d(a, (3, 2), (2, 3), (1, 0), ceil_mode=True, count_include_pad=False), x(1, 2, 6, 7))
case("pixel_shuffle", lambda a: F.pixel_shuffle(a, 2), x(2, 8, 2, 3))
case("pixel_unshuffle", lambda a: F.pixel_unshuffle(a, 3), x(1, 2, 3, 6))
case("layer_norm affine", lambda a, w, b: F.layer_norm(a, (3, 4), w, b), x(2, 3, 4), x(3, 4), x(3, 4))
case("rms_norm affine", lambda a, w: a * torch.rsqrt((a * a).mean(-1, keepdim=True) + 1e-6) * w, x(3, 8), x(8))
case("group_norm affine", lambda a, w, b: F.group_norm(a, 2, w, b), x(2, 4, 3), x(4), x(4))
case("instance_norm", F.instance_norm, x(2, 3, 4, 2))
case("normalize", F.normalize, x(2, 3, 4))
case("normalize l1 zero", lambda a: F.normalize(a, 1.0, 0), torch.cat([x(2, 2), torch.zeros(2, 1)], 1))
case("cosine_similarity", F.cosine_similarity, x(2, 5, 3), x(2, 5, 3))
case("attention float mask", lambda q, k, v, m: (q @ k.transpose(-1, -2) / 2 + m).softmax(-1) @ v, x(2, 3, 4), x(2, 5, 4), x(2, 5, 4), torch.cat([x(3, 4), torch.full((3, 1), -INF)], 1))
case("attention causal", lambda q, k, v: attention(q, k, v, torch.ones(3, 5, dtype=torch.bool).tril()), x(1, 2, 3, 4), x(1, 2, 5, 4), x(1, 2, 5, 4))
case("attention no heads", attention, x(3, 4), x(5, 4), x(5, 4))

path = os.path.join(os.path.dirname(__file__), "..", "tests", "goldens", "wild.txt" if ASKED_AGAIN else "gradients.txt" if "--gradients" in sys.argv else "ops.txt")
with open(path, "w") as f:
    f.write("\n".join(out) + "\n")
print("%d cases" % sum(s.startswith("case") for s in out))
