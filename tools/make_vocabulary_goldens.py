#!/usr/bin/env python3
"""Writes tests/goldens/linalg.txt, special.txt, functional.txt and indexing.txt: what torch answers.

    python3 tools/make_vocabulary_goldens.py          # made with PyTorch 2.15

A case is a name, its inputs ("in"), its outputs ("out") and, where torch has a derivative, the gradients ("d") of
sum(y * c) over its floating outputs y, one for each floating input; element k of c is ((7 k + 3) mod 11 - 5) / 4.
A case "name @ variant" is built by the test as "name" is. Same seeds, same files. tests/ops/ compares.
"""
import os

import torch
import torch.nn.functional as F

NAN, INF = float("nan"), float("inf")
NAMES = {torch.float32: "f32", torch.float64: "f64", torch.int64: "i64", torch.int32: "i32", torch.int8: "i8", torch.bool: "bool", torch.uint8: "u8", torch.float16: "f16", torch.bfloat16: "bf16"}
I = torch.tensor
D = torch.float64


def number(v):
    text = str(v)  # the shortest that reads back, or 14 digits
    return text[:-2] if text.endswith(".0") else text if len(text) < 16 else "%.14g" % v


class Goldens:
    def __init__(self, file, seed):
        self.file, self.lines = file, []
        torch.manual_seed(seed)

    def line(self, kind, t):
        t = t.detach()
        if t.dtype.is_floating_point:
            v = t if t.dtype == D else t.float()
            values = [number(x) for x in v.flatten().numpy()]
        else:
            values = [str(int(x)) for x in t.flatten().tolist()]
        self.lines.append("%s %s [%s] %s" % (kind, NAMES[t.dtype], " ".join(map(str, t.shape)), " ".join(values)))

    def case(self, name, f, *inputs, grad=None):
        """grad: whether to differentiate; by default where an input is f64."""
        floats = [t for t in inputs if t.dtype.is_floating_point]
        if grad is None:
            grad = any(t.dtype == D for t in floats)
        if grad:
            inputs = [t.detach().clone().requires_grad_() if t.dtype.is_floating_point else t for t in inputs]
        out = f(*inputs)
        out = list(out) if isinstance(out, (list, tuple)) else [out]
        self.lines.append("case " + name)
        for t in inputs:
            self.line("in", t)
        for t in out:
            self.line("out", t)
        if not grad or not any(y.requires_grad for y in out):
            return
        wrt = [t for t in inputs if t.dtype.is_floating_point]
        ys = [y for y in out if y.requires_grad]
        total = sum((y * ((torch.arange(y.numel(), dtype=y.dtype) * 7 + 3) % 11 - 5).div(4).reshape(y.shape)).sum() for y in ys)
        for t, d in zip(wrt, torch.autograd.grad(total, wrt, allow_unused=True)):
            self.line("d", torch.zeros_like(t) if d is None else d)

    def write(self):
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "goldens", self.file)
        with open(path, "w") as f:
            f.write("\n".join(self.lines) + "\n")


def x(*shape, dtype=D):
    return torch.randn(shape, dtype=D).mul(2 * 256).round().div(256).to(dtype)  # short decimals


def linalg():
    g = Goldens("linalg.txt", 31)
    L = torch.linalg
    for t, note in ((D, ""), (torch.float32, " @ f32"), (torch.bfloat16, " @ bf16")):
        g.case("mm" + note, torch.mm, x(4, 5, dtype=t), x(5, 3, dtype=t))
        g.case("addmm" + note, lambda i, a, b: torch.addmm(i, a, b, beta=0.5, alpha=-2), x(4, 3, dtype=t), x(4, 5, dtype=t), x(5, 3, dtype=t))
    g.case("mm @ i64", torch.mm, I([[1, 2], [3, 4]]), I([[5, 6], [7, 8]]))
    g.case("mm @ empty", torch.mm, x(3, 0), x(0, 2))
    g.case("bmm", torch.bmm, x(2, 4, 5), x(2, 5, 3))
    g.case("mv", torch.mv, x(4, 5), x(5))
    g.case("dot", torch.dot, x(5), x(5))
    g.case("dot @ wild", torch.dot, I([1.0, INF, 2.0]), I([0.5, 1.0, -1.0]))
    g.case("vdot", torch.vdot, x(5), x(5))
    g.case("inner", torch.inner, x(2, 3, 5), x(4, 5))
    g.case("inner @ vectors", torch.inner, x(5), x(5))
    g.case("inner @ scalar", torch.inner, x(), x(3))
    g.case("addmm row", lambda i, a, b: torch.addmm(i, a, b), x(3), x(4, 5), x(5, 3))
    g.case("addmm beta 0", lambda i, a, b: torch.addmm(i, a, b, beta=0), torch.full((4, 3), NAN, dtype=D), x(4, 5), x(5, 3), grad=False)
    g.case("addmm whole", lambda i, a, b: torch.addmm(i, a, b, beta=3, alpha=2), I([[1, 2]]), I([[1, 2]]), I([[1, 3], [2, 4]]))
    g.case("addmv", lambda i, a, v: torch.addmv(i, a, v, beta=0.5, alpha=3), x(4), x(4, 5), x(5))
    g.case("addr", lambda i, a, b: torch.addr(i, a, b, beta=2, alpha=0.5), x(4, 3), x(4), x(3))
    g.case("baddbmm", lambda i, a, b: torch.baddbmm(i, a, b, beta=2, alpha=0.5), x(2, 1, 3), x(2, 4, 5), x(2, 5, 3))
    g.case("addbmm", lambda i, a, b: torch.addbmm(i, a, b, beta=2, alpha=0.5), x(4, 3), x(2, 4, 5), x(2, 5, 3))
    g.case("chain_matmul", lambda *m: L.multi_dot(m), x(2, 7), x(7, 3), x(3, 5), x(5, 4))
    g.case("multi_dot", lambda *m: L.multi_dot(m), x(7), x(7, 3), x(3))
    g.case("tensordot", lambda a, b: torch.tensordot(a, b, 2), x(3, 4, 5), x(4, 5, 2))
    g.case("tensordot 0", lambda a, b: torch.tensordot(a, b, 0), x(2, 3), x(2))
    g.case("tensordot axes", lambda a, b: torch.tensordot(a, b, ([1, 0], [0, 2])), x(3, 4, 5), x(4, 2, 3))
    g.case("kron", torch.kron, x(2, 3), x(3, 2))
    g.case("kron @ ranks", torch.kron, x(2), x(2, 3, 2))
    g.case("cross", lambda a, b: torch.cross(a, b, dim=1), x(2, 3, 4), x(2, 3, 4))
    g.case("linalg cross", lambda a, b: L.cross(a, b), x(2, 3), x(1, 3))
    g.case("cross 0", lambda a, b: L.cross(a, b, dim=0), x(3, 3), x(3, 3))
    g.case("vecdot", lambda a, b: L.vecdot(a, b, dim=0), x(3, 4), x(3, 4))
    a, b = x(2, 4, 3), x(2, 5, 3)
    b[0, 1] = a[0, 2]
    for p in (0.0, 0.5, 1.0, 2.0, 3.0, INF):
        g.case("cdist %g" % p, lambda u, v: torch.cdist(u, v, p=p, compute_mode="donot_use_mm_for_euclid_dist"), a, b, grad=p in (1.0, 2.0, 3.0))
    g.case("cdist 2 @ broadcast", lambda u, v: torch.cdist(u, v), x(4, 3), x(2, 5, 3))
    g.case("cdist 3 @ empty", lambda u, v: torch.cdist(u, v, p=3.0), x(4, 0), x(5, 0), grad=False)
    for n in (0, 1, 2, 5, -2):
        g.case("matrix_power %d" % n, lambda a: L.matrix_power(a, n), x(2, 3, 3) + 3 * torch.eye(3, dtype=D), grad=n != 0)
    z = x(3, 4)
    z[1] = 0
    for p in (0.0, 0.5, 1.0, 2.0, 3.0, INF, -INF, -1.0, -2.5):
        g.case("vector_norm %g" % p, lambda a: L.vector_norm(a, p, dim=1), x(3, 4), grad=p != 0)
    g.case("vector_norm 3 @ zero", lambda a: L.vector_norm(a, 3.0, dim=1), z)
    g.case("vector_norm 3 @ wild", lambda a: L.vector_norm(a, 3.0, dim=1), I([[1.0, INF], [NAN, 1.0], [-INF, 0.0]]))
    g.case("vector_norm all", lambda a: L.vector_norm(a, 2.5, keepdim=True), x(3, 4))
    for p in (1.0, -1.0, INF, -INF):
        g.case("matrix_norm %g" % p, lambda a: L.matrix_norm(a, p), x(2, 3, 4))
    g.case("matrix_norm fro", lambda a: L.matrix_norm(a, dim=(0, 2), keepdim=True), x(2, 3, 4))
    g.case("matrix_norm axes", lambda a: L.matrix_norm(a, 1, dim=(2, 0), keepdim=True), x(2, 3, 4))

    def spd(*s):
        m = x(*s)
        return m @ m.mT + torch.eye(s[-1], dtype=D)

    def well(*s):
        return x(*s) + 4 * torch.eye(s[-1], dtype=D)
    for n in (1, 5, 33):
        g.case("cholesky @ %d" % n, L.cholesky, spd(n, n))
        g.case("solve @ %d" % n, L.solve, x(n, n), x(n, 2))
        g.case("inv @ %d" % n, L.inv, well(n, n) if n < 33 else well(n, n) * 0.25)
        g.case("slogdet @ %d" % n, L.slogdet, x(n, n))
        g.case("qr @ %d" % n, L.qr, x(n, n), grad=n < 33)
    g.case("cholesky @ batch", L.cholesky, spd(2, 3, 4, 4))
    g.case("cholesky @ f32", L.cholesky, spd(34, 34).float())
    g.case("cholesky @ one triangle", lambda a: L.cholesky(a.tril() + a.tril(-1).mT), spd(3, 3).tril(), grad=False)
    g.case("cholesky @ empty", L.cholesky, x(2, 0, 0))
    g.case("cholesky upper", lambda a: L.cholesky(a, upper=True), spd(2, 5, 5))
    for upper in (False, True):
        for left in (True, False):
            for unit in (False, True):
                for n in ((3, 37) if left and upper == unit else (3,)):
                    a = (x(n, n) * (1 if n == 3 else 0.125)) + 4 * torch.eye(n, dtype=D)
                    g.case("solve_triangular %d%d%d @ %d" % (upper, left, unit, n), lambda a, b: L.solve_triangular(a, b, upper=upper, left=left, unitriangular=unit), a, x(n, 2) if left else x(2, n))
    g.case("solve_triangular 010 @ broadcast", lambda a, b: L.solve_triangular(a, b, upper=False), well(3, 3), x(2, 3, 2))
    g.case("solve @ batch", L.solve, x(2, 3, 4, 4), x(3, 4, 2))
    g.case("solve @ vectors", L.solve, x(3, 4, 4), x(3, 4))
    g.case("solve @ vector", L.solve, x(4, 4), x(4))
    g.case("solve @ f32", L.solve, well(36, 36).float(), x(36, 3).float())
    g.case("solve @ empty", L.solve, x(0, 0), x(0, 2))
    g.case("solve @ swapped", L.solve, I([[0.0, 2, 0], [0, 0, 3], [1, 0, 0]]).double(), x(3, 1))
    g.case("solve right", lambda a, b: L.solve(a, b, left=False), x(4, 4), x(2, 4))
    g.case("inv @ batch", L.inv, well(2, 3, 3))
    g.case("det", L.det, x(3, 3))
    g.case("det @ batch", L.det, x(2, 2, 4, 4))
    g.case("det @ 35", L.det, x(35, 35) / 4, grad=False)
    g.case("det @ empty", L.det, x(2, 0, 0), grad=False)
    g.case("det @ singular", L.det, I([[1.0, 2], [2, 4]]).double(), grad=False)
    g.case("det @ zeros", L.det, torch.zeros(3, 3, dtype=D), grad=False)
    g.case("slogdet @ zeros", L.slogdet, torch.zeros(2, 3, 3, dtype=D), grad=False)
    g.case("slogdet @ batch", L.slogdet, x(2, 3, 3))
    g.case("logdet", torch.logdet, I([[2.0, 1], [0.5, 3]]).double())
    g.case("logdet @ negative", torch.logdet, I([[0.0, 1], [1, 0]]).double(), grad=False)
    for n in (3, 35):
        g.case("lu_factor @ %d" % n, L.lu_factor, x(2, 3, 3) if n == 3 else x(n, n), grad=n == 3)
        lu, p = L.lu_factor(x(n, n))
        g.case("lu_solve @ %d" % n, lambda lu, p, b: L.lu_solve(lu, p, b), lu, p, x(n, 2), grad=False)
    for s in ((5, 3), (3, 5), (34, 33), (2, 35, 3), (0, 3), (3, 0)):
        g.case("qr @ %s" % " ".join(map(str, s)), L.qr, x(*s), grad=0 not in s)
    g.case("qr @ zero column", L.qr, I([[1.0, 0, 2], [0, 0, 3], [0, 0, -4]]).double(), grad=False)
    for s in ((6, 3), (3, 5), (2, 5, 2)):
        g.case("lstsq @ %s" % " ".join(map(str, s)), lambda a, b: L.lstsq(a, b, driver="gels").solution, x(*s), x(*s[:-1], 2))
    lower = L.cholesky(spd(2, 4, 4))
    g.case("cholesky_solve", lambda b, l: torch.cholesky_solve(b, l.tril()), x(2, 4, 3), lower)
    g.case("cholesky_solve upper", lambda b, l: torch.cholesky_solve(b, l.triu(), upper=True), x(2, 4, 3), lower.mT.contiguous())
    g.case("cholesky_inverse", lambda l: torch.cholesky_inverse(l.tril()), lower)
    def spectrum(a, uplo="L"):
        w, v = L.eigh(a, uplo)
        return v @ torch.diag_embed(torch.exp(w / 4)) @ v.mT

    def roots(a):
        u, w, v = L.svd(a, full_matrices=False)
        return u @ torch.diag_embed(w.sqrt()) @ v
    for n in (1, 2, 5, 12):
        a = x(n, n)
        g.case("eigvalsh @ %d" % n, L.eigvalsh, a + a.mT)
        g.case("eigh function @ %d" % n, spectrum, a + a.mT)
    a = x(2, 3, 4, 4)
    g.case("eigvalsh @ batch", L.eigvalsh, a + a.mT)
    g.case("eigvalsh @ f32", L.eigvalsh, (a + a.mT).float())
    g.case("eigvalsh @ equal", L.eigvalsh, torch.diag(I([2.0, 3.0, 2.0, 2.0, -1.0]).double()), grad=False)
    g.case("eigvalsh @ zero", L.eigvalsh, torch.zeros(3, 3, dtype=D), grad=False)
    g.case("eigvalsh @ large", L.eigvalsh, ((x(5, 5) + 4 * torch.eye(5, dtype=D)).tril() * 1e30).float(), grad=False)
    g.case("eigvalsh @ one triangle", L.eigvalsh, x(5, 5), grad=False)
    g.case("eigvalsh upper", lambda a: L.eigvalsh(a, "U"), x(5, 5), grad=False)
    g.case("eigvalsh @ empty", L.eigvalsh, x(2, 0, 0))
    for shape in ((1, 1), (2, 2), (5, 3), (3, 5), (12, 12), (7, 2), (2, 6, 6), (4, 1)):
        note = " @ " + " ".join(map(str, shape))
        g.case("svdvals" + note, L.svdvals, x(*shape))
        g.case("svd function" + note, roots, x(*shape))
        g.case("pinv" + note, L.pinv, x(*shape))
        g.case("cond" + note, L.cond, x(*shape))
    low = x(6, 2).round() @ x(2, 5).round()
    g.case("svdvals @ low rank", L.svdvals, low, grad=False)
    g.case("svdvals @ zero", L.svdvals, torch.zeros(3, 2, dtype=D), grad=False)
    g.case("svdvals @ f32", L.svdvals, x(8, 5).float())
    g.case("svdvals @ empty", L.svdvals, x(2, 0, 3))
    g.case("pinv @ low rank", L.pinv, low, grad=False)
    g.case("pinv rtol", lambda a: L.pinv(a, rtol=0.3), x(5, 4), grad=False)
    g.case("matrix_rank", L.matrix_rank, torch.stack([low, x(6, 5), torch.zeros(6, 5, dtype=D)]))
    for p in (2, -2, "nuc"):
        g.case("matrix_norm %s" % p, lambda a: L.matrix_norm(a, p), x(2, 3, 4))
    g.case("matrix_norm nuc axes", lambda a: L.matrix_norm(a, "nuc", dim=(2, 0), keepdim=True), x(3, 2, 4))
    g.write()


def indexing():
    g = Goldens("indexing.txt", 32)
    wild = I([[1.0, NAN, INF, -2.0], [-INF, 0.5, NAN, 0.0], [3.0, -0.0, 1.0, 2.0]])
    i, j = I([[0, -1, 2], [1, 1, -3]]), I([3, 0, -2])
    g.case("index", lambda a, i, j: a[i, j], x(3, 4, 2), i, j)
    g.case("index one", lambda a, i: a[i], x(3, 4), I([2, -1, 0, 2]))
    g.case("index @ i64", lambda a, i, j: a[i, j], torch.arange(12).reshape(3, 4), i, j)
    v = x(2, 3, 2)
    g.case("index_put accumulate", lambda a, i, j, v: torch.index_put(a, (i, j), v, True), x(3, 4, 2), i, j, v)
    g.case("index_put", lambda a, i, j, v: torch.index_put(a, (i, j), v), x(3, 4, 2), I([[0, -1, 2], [1, -2, -3]]), I([3, 0, -2]), x(3, 1))
    g.case("index_put one", lambda a, i, v: torch.index_put(a, (i,), v), wild, I([-1, 0]), I(7.0))
    g.case("index_fill", lambda a, i: torch.index_fill(a, 1, i, -2.5), x(3, 4), I([0, -1]))
    g.case("index_fill @ i64", lambda a, i: torch.index_fill(a, 1, i, -2.0), torch.arange(12).reshape(3, 4), I([0, -1]))
    g.case("take", torch.take, x(3, 4), I([[0, -1], [5, 5]]))
    g.case("put", torch.Tensor.put, x(3, 4), I([[0, -1], [5, 4]]), x(2, 2))
    g.case("put accumulate", lambda a, i, s: a.put(i, s, True), x(3, 4), I([[0, -1], [5, 5]]), x(2, 2))
    g.case("take_along_dim", lambda a, i: torch.take_along_dim(a, i, 1), x(3, 4, 2), I([[[0], [-1]]]))
    g.case("take_along_dim flat", lambda a, i: torch.take_along_dim(a, i), x(3, 4), I([0, 11, 5]))
    at, src = I([[0, 1, -1], [2, 2, 0], [0, 0, 0], [2, 1, 0]]), x(5, 4)
    for name in "sum prod mean amax amin".split():
        for own in (True, False):
            note = name + ("" if own else " alone")
            f = lambda a, i, s: torch.scatter_reduce(a, 0, i % 3, s, name, include_self=own)
            # torch takes no negative indices here: the test's are counted from the start by it
            g.case("scatter_reduce " + note, f, x(3, 3), at % 3, src[:4, :3])
            g.case("scatter_reduce %s @ small index" % note, f, x(3, 4), at % 3, src, grad=False)
            g.case("scatter_reduce %s @ i64" % note, f, I([[1, 2, 3], [-4, 5, 6], [7, 8, 9]]), at % 3, torch.arange(-6, 6).reshape(4, 3))
            g.case("scatter_reduce %s @ wild" % note, f, wild[:, :3].clone(), at % 3, torch.cat([wild[:, 1:], wild[:1, 1:]]), grad=False)
            g.case("scatter_reduce %s @ ties" % note, f, torch.ones(3, 3, dtype=D), at % 3, I([[1.0, 0, 2], [1, 1, 1], [0, 0, 1], [1, 2, 2]]).double())
            g.case("scatter_reduce %s @ empty" % note, f, x(3, 3), torch.zeros(0, 3, dtype=torch.int64), x(0, 3), grad=False)
            if name != "sum":
                g.case("index_reduce " + note, lambda a, i, s: torch.index_reduce(a, 1, i, s, name, include_self=own), x(2, 4), I([0, 2, 0, 0, 3]), x(2, 5))
    mask = I([[True, False, True], [False, True, True]])
    g.case("masked_scatter", torch.masked_scatter, x(2, 3), mask, x(5))
    g.case("masked_scatter @ broadcast", lambda a, m, s: a.masked_scatter(m, s), x(2, 3), I([True, False, True]), x(4))
    for k in (0, 1, -2):
        g.case("diag %d" % k, lambda a: torch.diag(a, k), x(3))
        g.case("diag %d @ matrix" % k, lambda a: torch.diag(a, k), x(3, 4))
        g.case("diag_embed %d" % k, lambda a: torch.diag_embed(a, k), x(2, 3))
        g.case("diagonal_scatter %d" % k, lambda a, s: torch.diagonal_scatter(a, s, k), x(3, 4), x({0: 3, 1: 3, -2: 1}[k]))
    g.case("diag 0 @ wild", torch.diag, I([NAN, INF, 1.0]))
    g.case("diag_embed axes", lambda a: torch.diag_embed(a, 1, 0, 2), x(2, 3))
    g.case("diag_embed swapped", lambda a: torch.diag_embed(a, 1, 2, 0), x(2, 3))
    g.case("diagonal_scatter axes", lambda a, s: torch.diagonal_scatter(a, s, -1, 2, 0), x(3, 2, 4), x(2, 3))
    g.case("select_scatter", lambda a, s: torch.select_scatter(a, s, 1, -2), x(2, 4, 3), x(2, 3))
    g.case("slice_scatter", lambda a, s: torch.slice_scatter(a, s, 1, 1, -1), x(2, 5), x(2, 3))
    g.case("slice_scatter step", lambda a, s: torch.slice_scatter(a, s, 0, -4, 100, 3), x(5, 2), x(2, 2))
    g.case("slice_scatter none", lambda a, s: torch.slice_scatter(a, s, 0, 4, 2), x(5, 2), x(0, 2), grad=False)
    for k in (0, 1, -2):
        g.case("tril_indices %d" % k, lambda: torch.tril_indices(3, 4, k))
        g.case("triu_indices %d" % k, lambda: torch.triu_indices(4, 3, k))

    def padded(t, n, by):
        t = t[:n]
        return torch.cat([t, torch.as_tensor(by, dtype=t.dtype).expand(n - t.shape[0], *t.shape[1:])])
    for a, note in ((I([[0.0, 2, NAN], [0, -0.0, INF]]), ""), (mask, " @ bool"), (torch.zeros(2, 3, dtype=torch.int64), " @ none")):
        z = torch.nonzero(a)
        g.case("nonzero" + note, lambda a: (padded(z, 6, [2, 3]), I(z.shape[0])), a)
        g.case("nonzero 2" + note, lambda a: (padded(z, 2, [2, 3]), I(z.shape[0])), a)
    g.case("nonzero @ empty", lambda a: (torch.zeros(0, 2, dtype=torch.int64), I(0)), x(0, 3))
    g.case("masked_select", lambda a, m: (padded(torch.masked_select(a, m), 5, 0), I(4)), x(2, 3), mask)
    g.case("masked_select 2", lambda a, m: (torch.masked_select(a, m)[:2], I(4)), x(2, 3), mask)

    def unique(f, n):
        def call(a):
            v, inverse, counts = f(a, return_inverse=True, return_counts=True)
            return padded(v, n, 0), inverse, padded(counts, n, 0), I(v.shape[0])
        return call
    for a, note in ((I([[3, 1, 3], [2, 1, 1]]), ""), (I([[0.5, NAN, -0.0], [0.0, INF, NAN]]), " @ wild"), (mask, " @ bool")):
        g.case("unique" + note, unique(torch.unique, 6), a)
        if note != " @ wild":
            g.case("unique_consecutive" + note, unique(torch.unique_consecutive, 6), a)
    g.case("unique 2", lambda a: (I([1, 2]), I([2, 0, 2, 1, 0, 0]), I([3, 1]), I(3)), I([3, 1, 3, 2, 1, 1]))
    g.write()


def special():
    g = Goldens("special.txt", 33)
    real = torch.cat([x(24), I([1.0, 2.0, 0.5, 10.0, 30.0, -0.25, -7.5, 1e-3, 1e-8, 100.0]).double()])
    odd = I([NAN, INF, -INF, 0.0, -0.0, -1.0, -2.0, 1e-30, -1e-30, 1e20, -1e20, 3.5, -3.5])
    functions = dict(lgamma=torch.lgamma, digamma=torch.digamma, erfinv=torch.erfinv, i0=torch.i0, sinc=torch.sinc, deg2rad=torch.deg2rad, rad2deg=torch.rad2deg)
    for name, f in functions.items():
        a = real / 64 if name == "erfinv" else real
        g.case(name, f, a if name != "sinc" else a[a.abs() > 1e-5])  # torch's derivative cancels
        g.case(name + " @ f32", f, a.float())
        g.case(name + " @ odd", f, I([NAN, 1.0, -1.0, 2.0, -INF, INF, 0.0, 1e-20, 0.9999999]) if name == "erfinv" else odd[:9] if name == "sinc" else odd[odd.isinf().logical_not()] if name == "i0" else odd, grad=False)
        g.case(name + " @ i64", f, I([1, 2, 5]) if name != "erfinv" else I([0, 1, -1]))
        g.case(name + " @ bf16", f, (x(8) / 8).bfloat16())
    g.case("i0 @ large", torch.i0, I([19.0, 19.99, 20.0, 20.01, 50.0, 300.0, 700.0, -25.0]).double())
    g.case("erfinv @ ends", torch.erfinv, I([1 - 2.0**-40, -1 + 2.0**-50, 0.85, 0.8499, 1e-200]).double())
    # torch's trigamma has eight digits, zeta(2, x) all
    g.case("polygamma 1", lambda a: torch.special.zeta(2, a), torch.cat([real[real > 0], I([NAN, 0.0, 1e20, 300.0]).double()]), grad=False)
    for n in (2, 3, 6):
        a = real if n < 6 else real[(real.abs() > 0.1) & (real != -7.5)]  # torch loses digits there
        g.case("polygamma %d" % n, lambda a: torch.polygamma(n, a), a)
        g.case("polygamma %d @ f32" % n, lambda a: torch.polygamma(n, a.double()).float(), a.float())
        g.case("polygamma %d @ odd" % n, lambda a: torch.polygamma(n, a), I([NAN, 0.0, 1e20, 1e-3, 300.0]).double(), grad=False)
    g.case("polygamma 3 @ i64", lambda a: torch.polygamma(3, a), I([1, 2, 5]))
    g.case("polygamma 0", lambda a: torch.polygamma(0, a), real)
    frexp = lambda a: tuple(torch.frexp(a))
    for t in (D, torch.float32, torch.float16, torch.bfloat16):
        g.case("frexp @ " + NAMES[t], frexp, real.to(t))
        g.case("frexp @ odd " + NAMES[t], frexp, I([NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 0.5, 1.9990234375, -5e4, torch.finfo(t).tiny, -torch.finfo(t).tiny / 2, torch.finfo(t).max]).to(t), grad=False)
    g.case("frexp @ smallest", frexp, I([5e-324, -2.0**-1050, 2.0**-1022]).double(), grad=False)
    p = I([[1.0, 2.0, NAN], [INF, -0.0, 7.0]])
    for note, t in (("", I([0.0, 2.0, NAN, INF])), (" @ one", I([7.0])), (" @ empty", torch.zeros(0)), (" @ i64", I([2, 7, 2]))):
        g.case("isin" + note, torch.isin, p, t)
        g.case("isin not" + note, lambda a, b: torch.isin(a, b, invert=True), p, t)
    g.case("ldexp", torch.ldexp, x(6), I([0, 1, -3, 10, -20, 4]))
    g.case("ldexp @ whole", torch.ldexp, I([1, 2, 3]), I([0, 1, -3]))
    for t, note in ((D, ""), (torch.float32, " @ f32"), (torch.float16, " @ f16")):
        g.case("addcmul" + note, lambda a, b, c: torch.addcmul(a, b, c, value=-0.5), x(3, dtype=t), x(2, 3, dtype=t), x(2, 1, dtype=t))
        g.case("addcdiv" + note, lambda a, b, c: torch.addcdiv(a, b, c, value=2), x(3, dtype=t), x(2, 3, dtype=t), x(2, 1, dtype=t) + 9)
    g.case("addcmul whole", lambda a, b, c: torch.addcmul(a, b, c, value=3), I([1, 2]), I([3, 4]), I([5, -6]))
    p, q = torch.meshgrid(odd[:8], odd[:8], indexing="ij")
    p, q = p.flatten(), q.flatten()
    for name in "copysign heaviside fmax fmin".split():
        f = getattr(torch, name)
        if name != "heaviside":
            g.case(name, f, x(8), x(8))
        g.case(name + " @ odd", f, p, q)
    near = I([0.0, 1.0, -1.0, 2.0**-126, 2.0**-125, -(2.0**-125), 2.0**-149, 3.4028234663852886e38, INF, -INF, NAN, 1.5, -3e-39, 65504.0])
    for t in (torch.float32, D, torch.bfloat16):
        f, b = torch.meshgrid(near.to(t), I([-INF, 0.0, 1.0, INF, NAN]).to(t), indexing="ij")
        g.case("nextafter @ " + NAMES[t], torch.nextafter, f.flatten(), b.flatten(), grad=False)
    g.case("nextafter @ small", torch.nextafter, I([2.0**-1022, -(2.0**-1021), 5e-324, 0.1, 1.7976931348623157e308]).double(), I([0.0, 0.0, 1.0, -1.0, INF]).double(), grad=False)
    g.case("fmax @ ties", torch.fmax, I([1.0, 2, 3]).double(), I([1.0, 3, 2]).double())
    g.case("fmin @ i64", torch.fmin, I([1, 5]), I([3, 2]))
    g.case("copysign @ i64", torch.copysign, I([1, -5, 0]), I([-3, 2, -1]))
    g.case("copysign number", lambda a: torch.copysign(a, -0.0), odd)
    g.case("isclose", torch.isclose, p, q)
    g.case("isclose @ i64", torch.isclose, I([100000, 5]), I([100001, 6]))
    g.case("isclose nan", lambda a, b: torch.isclose(a, b, rtol=0.1, atol=0.5, equal_nan=True), p, q)
    g.case("allclose", lambda a, b: I(torch.allclose(a, b)), I([1.0, INF]), I([1.000001, INF]))
    g.case("allclose @ not", lambda a, b: I(torch.allclose(a, b)), I([1.0, NAN]), I([1.000001, NAN]))
    for t in (torch.int8, torch.int32, torch.int64, torch.uint8, torch.bool):
        top = {torch.int8: 127, torch.int32: 2**31 - 1, torch.int64: 2**63 - 1, torch.uint8: 255, torch.bool: 1}[t]
        low = 0 if t in (torch.uint8, torch.bool) else -top - 1
        a, b = torch.meshgrid(I([0, 1, 5, 100, top, top - 1, low, low + 1, (low + top) // 3, -3 if low else 3]).to(t), I([0, 1, 6, 77, top, low, (low + top) // 5, -7 if low else 7]).to(t), indexing="ij")
        note = " @ " + NAMES[t]
        for name in "and or xor".split():
            g.case("bitwise_%s%s" % (name, note), getattr(torch, "bitwise_" + name), a, b)
        g.case("bitwise_not" + note, torch.bitwise_not, a)
        if t == torch.bool:
            continue
        places = I([0, 1, 3, 6]).to(t)
        bits = 8 * a.element_size()
        g.case("bitwise_left_shift" + note, torch.bitwise_left_shift, a[:, :1], torch.cat([places, I([bits - 1]).to(t)]))
        g.case("bitwise_right_shift" + note, torch.bitwise_right_shift, a[:, :1], torch.cat([places, I([bits - 2, bits - 1, bits, bits + 3]).to(t)]))
        ok = a != low if low else torch.ones_like(a, dtype=torch.bool)
        ok &= (b != low) if low else ok
        g.case("gcd" + note, torch.gcd, a[ok], b[ok])
    g.case("gcd @ fibonacci", torch.gcd, I([7540113804746346429, 12]), I([4660046610375530309, -18]))
    g.case("lcm", torch.lcm, I([0, 4, -6, 21, 0]), I([0, 6, 9, 6, 3]))
    g.case("bitwise_and @ promotes", torch.bitwise_and, I([200, 7]).to(torch.uint8), I([-1, 3]).to(torch.int32))

    nan = x(4, 6)
    nan[0, 2] = nan[1, 1] = nan[1, 4] = NAN
    nan[3] = NAN
    g.case("nansum", lambda a: torch.nansum(a, 1), nan)
    g.case("nansum @ i64", lambda a: torch.nansum(a, 1), I([[1, 2], [3, 4]]))
    g.case("nanmean", lambda a: torch.nanmean(a, 1, keepdim=True), nan[:3])
    g.case("nanmean @ none", lambda a: torch.nanmean(a, 1, keepdim=True), nan, grad=False)
    g.case("median all", torch.median, x(3, 4))
    g.case("median all @ odd", torch.median, I([5, 1, 4]))
    g.case("median all @ ties", torch.median, I([1.0, 2.0, 2.0, 2.0, 3.0]).double())
    g.case("median all @ nan", torch.median, nan, grad=False)
    g.case("nanmedian all", torch.nanmedian, nan)
    g.case("median", lambda a: torch.median(a, 1), x(3, 5))
    g.case("median @ even", lambda a: torch.median(a, 1), x(3, 4))
    g.case("median @ nan", lambda a: torch.median(a, 1), nan[:2])
    g.case("median @ i64", lambda a: torch.median(a, 1), torch.randperm(12).reshape(3, 4))
    g.case("nanmedian", lambda a: torch.nanmedian(a, 1, keepdim=True), nan[:3])
    g.case("kthvalue", lambda a: torch.kthvalue(a, 2, 0), x(4, 3))
    g.case("kthvalue @ nan", lambda a: torch.kthvalue(a, 2, 0), I([[NAN, 1.0], [2.0, NAN], [INF, 3.0], [5.0, -INF]]))
    g.case("kthvalue keep", lambda a: torch.kthvalue(a, 4, -1, keepdim=True), x(2, 5))
    g.case("mode", lambda a: torch.mode(a, 1), I([[3, 1, 1, 3, 2], [4, 4, 4, 0, 0], [5, 2, 4, 1, 3]]))
    g.case("mode @ f64", lambda a: torch.mode(a, 1), I([[0.5, 0.5, 2, 1], [3, 1, 1, 3]]).double())
    a = x(3, 4)
    for how in "linear lower higher nearest midpoint".split():
        g.case("quantile " + how, lambda a: torch.quantile(a, I([0.0, 0.3, 0.5, 0.81, 1.0], dtype=a.dtype), 1, interpolation=how), a)
        g.case("nanquantile " + how, lambda a: torch.nanquantile(a, I([0.0, 0.3, 0.5, 0.81, 1.0], dtype=a.dtype), 1, interpolation=how), nan[:3])
    g.case("quantile linear @ wild", lambda a: torch.quantile(a, I([0.0, 0.3, 0.5, 0.81, 1.0]), 1), I([[1.0, NAN, 2.0], [0.0, 1.0, INF], [-INF, 0.0, 1.0]]))
    g.case("quantile one", lambda a: torch.quantile(a, 0.35, 0, keepdim=True), a)
    g.case("quantile all", lambda a: torch.quantile(a, 0.35), a)
    g.case("quantile all keep", lambda a, q: torch.quantile(a, q, keepdim=True), a, I([0.25, 0.5]).double(), grad=False)
    for name in ("cummax", "cummin"):
        f = getattr(torch, name)
        g.case(name, lambda a: f(a, 1), x(3, 5))
        g.case(name + " @ wild", lambda a: f(a, 1), I([[1.0, 1.0, NAN, 2.0, NAN], [-INF, -INF, 0.0, INF, INF]]))
        g.case(name + " @ i64", lambda a: f(a, 1), I([[1, 3, 3, 2], [5, 1, 1, 0]]))
    edges = I([-1.0, 0.0, 0.0, 2.0, INF])
    for right in (False, True):
        note = " right" if right else ""
        g.case("searchsorted" + note, lambda s, v: torch.searchsorted(s, v, right=right), torch.stack([edges, edges + 1]), I([[0.0, 3.0, NAN, -INF], [1.0, 0.5, INF, 9.0]]))
        g.case("bucketize" + note, lambda v, s: torch.bucketize(v, s, right=right), I([[0.0, 3.0, NAN], [-INF, INF, 2.0]]), edges)
        g.case("bucketize%s @ i64" % note, lambda v, s: torch.bucketize(v, s, right=right), I([1, 5, 7, 9]), I([1, 3, 5, 7]))
        g.case("bucketize%s @ empty" % note, lambda v, s: torch.bucketize(v, s, right=right), I([1.0, 2.0]), torch.zeros(0))
    g.case("histc", lambda a: torch.histc(a, 4, -1, 3), I([-2.0, -1.0, 0.0, 0.5, 2.99, 3.0, 3.01, NAN, 1.0]))
    g.case("histc range", lambda a: torch.histc(a, 5), x(40).float())
    g.case("histc range @ one", lambda a: torch.histc(a, 5), I([2.0, 2.0]))
    g.case("bincount", lambda a: torch.bincount(a, minlength=6), I([0, 2, 2, 5, 1]))
    g.case("bincount @ u8", lambda a: torch.bincount(a, minlength=6), I([0, 2, 2, 5, 1]).to(torch.uint8))
    g.case("bincount weights", lambda a, w: torch.bincount(a, w, minlength=6), I([0, 2, 2, 5, 1]), x(5), grad=False)
    g.case("bincount weights @ f32", lambda a, w: torch.bincount(a, w, minlength=6), I([0, 2, 2, 5, 1]), x(5).float())
    g.case("cov", torch.cov, x(3, 5))
    g.case("cov @ vector", torch.cov, x(5))
    g.case("cov 0", lambda a: torch.cov(a, correction=0), x(3, 5))
    g.case("corrcoef", torch.corrcoef, x(3, 5))
    g.case("trapezoid", lambda y: torch.trapezoid(y, dx=0.5, dim=0), x(4, 3))
    g.case("trapezoid x", lambda y, t: torch.trapezoid(y, t), x(3, 4), x(4))
    g.case("trapezoid x @ broadcast", lambda y, t: torch.trapezoid(y, t), x(2, 3, 4), x(3, 4))
    g.case("trapezoid @ one", lambda y: torch.trapezoid(y, dx=0.5, dim=0), x(1, 3))
    g.case("cumulative_trapezoid", lambda y: torch.cumulative_trapezoid(y, dx=0.5, dim=0), x(4, 3))
    g.case("cumulative_trapezoid x", lambda y, t: torch.cumulative_trapezoid(y, t), x(3, 4), x(4))
    g.case("logspace", lambda: torch.logspace(-2, 2, 5))
    g.case("logspace 2", lambda: torch.logspace(0, 4, 4, base=2, dtype=D))
    g.case("meshgrid", lambda *v: torch.meshgrid(*v, indexing="ij"), x(2), x(3), x(1))
    g.case("meshgrid xy", lambda *v: torch.meshgrid(*v, indexing="xy"), x(2), x(3), x())
    g.write()


def functional():
    g = Goldens("functional.txt", 34)
    g.case("unfold", lambda a: F.unfold(a, (2, 3), (2, 1), (1, 0), (1, 2)), x(2, 3, 5, 6))
    g.case("unfold @ no batch", lambda a: F.unfold(a, (2, 3), (2, 1), (1, 0), (1, 2)), x(3, 5, 6))
    g.case("unfold @ wild", lambda a: F.unfold(a, (2, 3), (2, 1), (1, 0), (1, 2)), I([NAN, INF, 1.0, -INF]).repeat(10)[:35].reshape(1, 1, 5, 7))
    g.case("fold", lambda a: F.fold(a, (5, 6), (2, 3), (2, 1), (1, 0), (1, 2)), x(2, 18, 10))
    g.case("fold plain", lambda a: F.fold(a, (4, 4), 2, stride=2), x(1, 4, 4))
    g.case("lp_pool 2", lambda a: F.lp_pool2d(a, 2.0, (2, 3), (1, 2)), x(2, 2, 4, 6))
    g.case("lp_pool 3", lambda a: F.lp_pool1d(a, 3.0, 2, ceil_mode=True), x(2, 2, 5).abs() + 0.5)
    for note, a in (("", x(2, 2, 5, 6)), (" @ f32", x(2, 2, 5, 6).float()), (" @ low", torch.full((1, 1, 4, 4), -INF))):
        g.case("max_pool_with_indices" + note, lambda a: F.max_pool2d(a, (3, 2), (2, 1), (1, 0), return_indices=True), a)
    g.case("max_pool_with_indices dilated", lambda a: F.max_pool1d(a, 2, 1, 1, 2, return_indices=True), x(2, 3, 7))
    g.case("max_pool_with_indices dilated @ 3d", lambda a: F.max_pool3d(a, 2, 1, 1, 2, return_indices=True), x(1, 2, 4, 3, 5))
    v, at = F.max_pool2d(x(2, 2, 4, 6), 2, return_indices=True)
    g.case("max_unpool", lambda v, at: F.max_unpool2d(v, at, 2), v, at)
    g.case("max_unpool size", lambda v, at: F.max_unpool2d(v, at, 2, output_size=(5, 7)), v, at)
    g.case("local_response_norm", lambda a: F.local_response_norm(a, 3, 0.1, 0.5, 2.0), x(2, 5, 3))
    g.case("local_response_norm even", lambda a: F.local_response_norm(a, 4), x(2, 5, 2, 3))
    g.case("channel_shuffle", lambda a: F.channel_shuffle(a, 3), x(2, 6, 2, 2))

    flat, image, block = x(2, 2, 5), x(1, 2, 4, 5), x(1, 1, 3, 4, 2)
    for mode, a in (("nearest", image), ("nearest-exact", image), ("linear", flat), ("bilinear", image), ("trilinear", block), ("bicubic", image), ("area", image)):
        size = {3: (7,), 4: (7, 3), 5: (2, 5, 4)}[a.dim()]
        g.case("interpolate %s" % mode, lambda a: F.interpolate(a, size=size, mode=mode), a)
        g.case("interpolate %s scale" % mode, lambda a: F.interpolate(a, scale_factor=1.5, mode=mode), a)
        if mode in ("linear", "bilinear", "trilinear", "bicubic"):
            g.case("interpolate %s corners" % mode, lambda a: F.interpolate(a, size=size, mode=mode, align_corners=True), a)
            g.case("interpolate %s again" % mode, lambda a: F.interpolate(a, scale_factor=2.3, mode=mode, recompute_scale_factor=True), a)
    g.case("interpolate nearest @ i64", lambda a: F.interpolate(a.float(), size=(7, 3)).to(torch.uint8), torch.arange(20).reshape(1, 1, 4, 5).to(torch.uint8))
    g.case("interpolate bilinear @ f32", lambda a: F.interpolate(a, size=(7, 3), mode="bilinear"), image.float())
    g.case("interpolate factors", lambda a: F.interpolate(a, scale_factor=(0.5, 1.7), mode="bilinear"), image)

    grid = x(2, 3, 4, 2) / 1.5
    for mode in ("bilinear", "nearest"):
        for outside in ("zeros", "border", "reflection"):
            for align in (False, True):
                f = lambda a, at: F.grid_sample(a, at, mode, outside, align)
                g.case("grid_sample %s %s %d" % (mode, outside, align), f, x(2, 3, 4, 5), grid)
                g.case("grid_sample %s %s %d @ 3d" % (mode, outside, align), f, x(1, 2, 3, 2, 4), x(1, 2, 2, 3, 3) / 1.5)
                g.case("grid_sample %s %s %d @ f32" % (mode, outside, align), f, x(1, 1, 3, 3).float(), I([[[[0.0, 0.0], [-1, -1], [1, 1], [0.99, -2]]]]))
    g.case("grid_sample bilinear zeros 0 @ wild", lambda a, at: F.grid_sample(a, at, align_corners=False), I([[[[NAN, 1.0, INF], [2, 3, -INF], [0, 5, 1]]]]), I([[[[0.1, 0.2], [-0.9, -0.8], [3.0, 0.0]]]]))
    for align in (False, True):
        g.case("affine_grid %d" % align, lambda t: F.affine_grid(t, (2, 3, 3, 4), align), x(2, 2, 3))
        g.case("affine_grid %d @ 3d" % align, lambda t: F.affine_grid(t, (1, 1, 2, 3, 1), align), x(1, 3, 4))

    g.case("pairwise_distance", F.pairwise_distance, x(3, 4), x(3, 4))
    g.case("pairwise_distance 3", lambda a, b: F.pairwise_distance(a, b, 3, 1e-3, True), x(3, 4), x(4))

    ids, cut, w = I([1, 4, 0, 2, 2, 3, 4]), I([0, 2, 2, 5]), x(5, 3)
    for mode in ("sum", "mean", "max"):
        g.case("embedding_bag " + mode, lambda i, w: F.embedding_bag(i, w, mode=mode), I([[1, 4, 0], [2, 2, 3]]), w)
        g.case("embedding_bag offsets " + mode, lambda i, w, c: F.embedding_bag(i, w, c, mode=mode), ids, w, cut)
        g.case("embedding_bag last " + mode, lambda i, w, c: F.embedding_bag(i, w, c, mode=mode, include_last_offset=True, padding_idx=2), ids, w, I([0, 2, 2, 5, 7]))
    g.case("embedding_bag_weighted", lambda i, w, p: F.embedding_bag(i, w, per_sample_weights=p, mode="sum"), I([[1, 4, 0], [2, 2, 3]]), w, x(2, 3))
    g.case("embedding_bag_weighted offsets", lambda i, w, c, p: F.embedding_bag(i, w, c, per_sample_weights=p, mode="sum"), ids, w, cut, x(7))

    def attend(q, k, v, wi, bi, wo, bo, heads=2, **o):
        return F.multi_head_attention_forward(q, k, v, q.shape[-1], heads, wi, bi, o.pop("bias_k", None), o.pop("bias_v", None), o.pop("zero", False), 0.0, wo, bo, training=False, **o)
    parts = lambda: (x(24, 8) / 4, x(24), x(8, 8) / 4, x(8))
    q, k, v = x(3, 2, 8), x(5, 2, 8), x(5, 2, 8)
    g.case("attend", attend, q, k, v, *parts())
    g.case("attend heads", lambda *t: attend(*t, average_attn_weights=False), q, k, v, *parts())
    pad = I([[False, False, True, False, True], [False, False, False, False, True]])
    g.case("attend masks", lambda q, k, v, wi, bi, wo, bo, m, p: attend(q, k, v, wi, bi, wo, bo, attn_mask=m, key_padding_mask=p), q, k, v, *parts(), I([[0, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0, 0]]).bool(), pad)
    g.case("attend bias", lambda q, k, v, wi, bi, wo, bo, bk, bv, m: attend(q, k, v, wi, bi, wo, bo, bias_k=bk, bias_v=bv, zero=True, attn_mask=m), q, k, v, *parts(), x(1, 1, 8), x(1, 1, 8), x(4, 3, 5))
    g.case("attend no batch", lambda q, k, v, wi, bi, wo, bo, m: attend(q, k, v, wi, bi, wo, bo, attn_mask=m), x(3, 8), x(5, 8), x(5, 8), *parts(), x(3, 5))
    g.case("attend widths", lambda q, k, v, wq, wk, wv, wo: F.multi_head_attention_forward(q, k, v, 8, 4, None, None, None, None, False, 0.0, wo, None, training=False, use_separate_proj_weight=True, q_proj_weight=wq, k_proj_weight=wk, v_proj_weight=wv), q, x(5, 2, 6), x(5, 2, 4), x(8, 8), x(8, 6), x(8, 4), x(8, 8))
    g.write()


if __name__ == "__main__":
    linalg()
    functional()
    special()
    indexing()
