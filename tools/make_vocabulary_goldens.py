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


if __name__ == "__main__":
    linalg()
    indexing()
