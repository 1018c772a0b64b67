#!/usr/bin/env python3
"""Writes tests/goldens/edges.txt: what PyTorch 2.15 answers at ends that are easily missed: numbers beside integers of 64
bits, axes of a number, derivatives of norms at zero, products whose parts overflow; and integers as floats, rounded once,
by exact arithmetic (PyTorch rounds those twice that are narrower than f32).

    python3 tools/make_edges_goldens.py

A case is a name, its inputs and its outputs, as in ops.txt; tests/ops/edges_test.cpp builds the cases with the library.
"""
import os
from fractions import Fraction

import torch
import torch.nn.functional as F

out = []
NAMES = {torch.float32: "f32", torch.float64: "f64", torch.int64: "i64", torch.int32: "i32", torch.bool: "bool"}


def number(v):
    return str(int(v)) if isinstance(v, (bool, int)) else repr(float(v))


def line(kind, t, name=None):
    out.append("%s %s [%s] %s" % (kind, name or NAMES[t.dtype], " ".join(map(str, t.shape)), " ".join(map(number, t.flatten().tolist()))))


def case(name, f, *inputs):
    out.append("case " + name)
    for t in inputs:
        line("in", t.detach())
    r = f(*inputs)
    for t in r if isinstance(r, (list, tuple)) else [r]:
        line("out", t.detach())


# ---- numbers beside i64 ----
B = 2**53
big = torch.tensor([-2**63, -B - 3, -B - 1, -5, 0, 7, B - 1, B, B + 1, B + 2, B + 3, 2**62 + 1, 2**63 - 2, 2**63 - 1])
for low, high in ((B + 1, B + 3), (-B - 1, B + 1), (2**62 + 1, 2**63 - 2), (-2**63, 2**63 - 1), (-B - 3, -B - 1)):
    case("clamp %d %d" % (low, high), lambda t: t.clamp(low, high), big)
    case("hardtanh %d %d" % (low, high), lambda t: t.clamp(low, high), big)
    for v in (low, high) if low in (B + 1, -2**63) else ():
        case("clamp_min %d" % v, lambda t: t.clamp_min(v), big)
        case("clamp_max %d" % v, lambda t: t.clamp_max(v), big)
        case("threshold %d %d" % (v, v + 1 if v < 2**63 - 1 else v), lambda t: torch.where(t <= v, v + 1 if v < 2**63 - 1 else v, t), big)
        case("index_fill %d" % v, lambda t: t.index_fill(0, torch.tensor([1, 3]), v), big)
        case("scatter %d" % v, lambda t: t.scatter(0, torch.tensor([1, 3]), v), big)
        case("masked_fill %d" % v, lambda t: t.masked_fill(t > 7, v), big)
        case("pad %d" % v, lambda t: F.pad(t, (1, 2), value=v) if abs(v) < B else torch.cat([torch.tensor([v]), t, torch.tensor([v, v])]), big)
        case("where %d" % v, lambda t: torch.where(t > 7, t, v), big)
        for op in ("lt", "le", "gt", "ge", "eq", "ne", "add", "sub", "mul", "floor_divide", "remainder", "fmod"):
            fits = big if v != -1 else big[1:]
            case("%s %d" % (op, v), lambda t: getattr(torch, op)(t, v), fits)
for op in ("amax", "amin", "argmax", "argmin", "sort", "argsort", "cummax", "cummin", "median", "abs", "sign", "neg", "square"):
    f = {"sort": lambda t: t.sort().values, "cummax": lambda t: t.cummax(0).values, "cummin": lambda t: t.cummin(0).values}.get(op, lambda t: getattr(torch, op)(t))
    case(op, f, big[1:].flip(0).contiguous())


# ---- integers as floats ----
def rounded(v, digits, most, least=0):
    """The nearest number of so many digits, ties to even; infinite beyond the largest."""
    if v == 0:
        return 0.0
    size, shift = abs(v), max(abs(v).bit_length() - digits, 0)
    q, r = size >> shift, size & ((1 << shift) - 1)
    q += 2 * r > 1 << shift or (2 * r == 1 << shift and q & 1) if shift else 0
    y = q << shift
    return (float("inf") if y > most else float(y)) * (1 if v > 0 else -1)


FLOATS = {"f32": (24, (2**24 - 1) << 104), "bf16": (8, 255 << 120), "f16": (11, 65504), "f64": (53, 2**1000)}
for source, low, high in (("i32", -2**31, 2**31 - 1), ("u32", 0, 2**32 - 1), ("i64", -2**63, 2**63 - 1), ("u64", 0, 2**64 - 1)):
    some = {0, 1, low, high, high - 1}
    for digits in (8, 11, 24, 53):
        for top in range(digits + 2, 65, 3):
            for odd in (2**digits + 1, 2**(digits + 1) - 1, 2**digits + 3):  # between two numbers, at the middle and beside it
                for beside in (-1, 0, 1):
                    v = (odd << (top - digits - 1)) + beside
                    some |= {s for s in (v, -v) if low <= s <= high}
    some = sorted(some)
    for to, (digits, most) in FLOATS.items():
        out.append("case cast %s %s" % (source, to))
        out.append("in %s [%d] %s" % (source, len(some), " ".join(map(str, some))))
        out.append("out %s [%d] %s" % (to, len(some), " ".join(repr(rounded(v, digits, most)) for v in some)))

# ---- axes of a number ----
x, at, one = torch.tensor(2.5), torch.tensor(0), torch.tensor([0])
two = lambda r: [r.values, r.indices]
AXES = {
    "sum": lambda d: x.sum(d), "mean": lambda d: x.mean(d), "prod": lambda d: x.prod(d), "amax": lambda d: x.amax(d), "amin": lambda d: x.amin(d),
    "max": lambda d: two(x.max(d)), "min": lambda d: two(x.min(d)), "argmax": lambda d: x.argmax(d), "argmin": lambda d: x.argmin(d, True),
    "any": lambda d: x.any(d), "all": lambda d: x.all(d), "var": lambda d: x.var(d, correction=0), "std": lambda d: x.std(d, correction=0),
    "norm": lambda d: torch.linalg.vector_norm(x, 3, d), "logsumexp": lambda d: x.logsumexp(d), "softmax": lambda d: x.softmax(d), "log_softmax": lambda d: x.log_softmax(d),
    "softmin": lambda d: F.softmin(x, d), "cumsum": lambda d: x.cumsum(d), "cumprod": lambda d: x.cumprod(d), "cummax": lambda d: two(x.cummax(d)), "cummin": lambda d: two(x.cummin(d)),
    "logcumsumexp": lambda d: x.logcumsumexp(d), "gather": lambda d: x.gather(d, at), "gather_row": lambda d: x.gather(d, one), "index_select": lambda d: x.index_select(d, one),
    "index_select_number": lambda d: x.index_select(d, at), "scatter": lambda d: x.scatter(d, at, x + 1), "scatter_value": lambda d: x.scatter(d, at, 5.), "scatter_add": lambda d: x.scatter_add(d, at, x),
    "scatter_reduce": lambda d: x.scatter_reduce(d, at, x + 1, "amax"), "index_add": lambda d: x.index_add(d, one, x), "index_copy": lambda d: x.index_copy(d, one, x + 1),
    "index_fill": lambda d: x.index_fill(d, one, 7.), "index_reduce": lambda d: x.index_reduce(d, one, x + 1, "amax"), "sort": lambda d: two(x.sort(d)), "argsort": lambda d: x.argsort(d),
    "topk": lambda d: two(x.topk(1, d)), "kthvalue": lambda d: two(x.kthvalue(1, d)), "mode": lambda d: two(x.mode(d)), "median": lambda d: two(x.median(d)), "nanmedian": lambda d: two(x.nanmedian(d)),
    "quantile": lambda d: x.quantile(.5, d), "nanquantile": lambda d: x.nanquantile(.25, d), "flatten": lambda d: x.flatten(d, d), "movedim": lambda d: x.movedim(d, d), "stack": lambda d: torch.stack([x, x], d),
    "transpose": lambda d: x.transpose(d, d), "unsqueeze": lambda d: x.unsqueeze(d), "squeeze": lambda d: x.squeeze(d), "flip": lambda d: x.flip(d), "unfold": lambda d: x.unfold(d, 1, 1),
    "normalize": lambda d: F.normalize(x, dim=d), "cosine_similarity": lambda d: F.cosine_similarity(x, x + 1, d), "vecdot": lambda d: torch.linalg.vecdot(x, x, dim=d),
    "count_nonzero": lambda d: x.count_nonzero(d), "nansum": lambda d: x.nansum(d), "nanmean": lambda d: x.nanmean(d), "aminmax": lambda d: list(torch.aminmax(x, dim=d)),
}
for name, f in AXES.items():
    for d in (0, -1):
        case("axis_%s %d" % (name, d), lambda t: f(d), x)
case("square_bool", torch.square, torch.tensor([True, False]))
case("cov_row", torch.cov, torch.tensor([[1., 2., 4., 7.]]))
case("cov_rows", torch.cov, torch.tensor([[1., 2., 4., 7.], [0., 3., 1., 1.]]))
case("corrcoef_row", torch.corrcoef, torch.tensor([[1., 2., 4., 7.]]))


# ---- norms at zero ----
def gradient(f, t):
    t = t.clone().requires_grad_()
    y = f(t)
    if not y.requires_grad:
        return torch.zeros_like(t)
    (y * torch.arange(1, y.numel() + 1, dtype=t.dtype).reshape(y.shape)).sum().backward()
    return torch.zeros_like(t) if t.grad is None else t.grad


rows = torch.tensor([[0., 0., 0.], [0., 3., -4.], [1., -2., 0.5], [0., 0., -2.]], dtype=torch.float64)
for p in (0.5, 1, 1.5, 2, 2.5, 3, 4, 7, -1, -2, float("inf"), float("-inf")):
    case("norm_slope %s" % p, lambda t: gradient(lambda u: torch.linalg.vector_norm(u, p, 1), t), rows)
    if p > 0:
        case("normalize_slope %s" % p, lambda t: gradient(lambda u: F.normalize(u, p, 1), t), rows)
        case("cdist_slope %s" % p, lambda t: gradient(lambda u: torch.cdist(u, rows[:2], p), t), rows)

# ---- products in order ----
for name, v in (("ends", [1e30, 1e-30, 1e30, 1e-30, 1e30]), ("later", [1e-38, 1., 1e30, 1e30, 2., 1e-25]), ("small", [1e38, 1., 1e-30, 1e-30, 1e20]), ("zero", [1e-30, 1e30, 1e30, 0., 1e30]),
                ("many", [1.25, 1e-20, 1e25, 1e-20, 1e30] * 2), ("subnormal", [1e-42, 1e30, 1e-25, 3.]), ("infinite", [1e-10, float("inf"), 2.]), ("negative", [-1e-30, -1e30, -1e10, 1e28, -1e-38])):
    for t in (torch.tensor(v), torch.tensor(v, dtype=torch.float64)) if name in ("ends", "later", "zero") else (torch.tensor(v),):
        case("prod %s" % name, lambda u: u.double().prod().to(u.dtype), t)
        case("cumprod %s" % name, lambda u: u.cumprod(0), t)
        if name in ("ends", "later", "zero") and t.dtype == torch.float64:  # in f32 slopes overflow, and torch divides by elements
            case("prod_slope %s" % name, lambda u: gradient(lambda w: w.prod(0), u.double()).to(u.dtype), t)

here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "..", "tests", "goldens", "edges.txt"), "w") as f:
    f.write("\n".join(out) + "\n")
