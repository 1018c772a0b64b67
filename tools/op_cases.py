"""Every operation once, or in each of its forms: the first part of make_goldens.py's cases."""
import math

import torch
import torch.nn.functional as F

from op_goldens import I, INF, NAN, ODD, case, x

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
