#!/usr/bin/env python3
"""Writes tests/goldens/losses.txt and tests/goldens/optim.txt: what PyTorch (2.15) answers for losses, optimisers and
schedules, in f64. Same seed, same files.

    python3 tools/make_optim_goldens.py

losses.txt: a case is a name, the inputs, and as outputs the loss and the gradients of its sum(y * c) with respect to
each floating input; element k of c is ((7 k + 3) mod 11 - 5) / 4. Gradients that PyTorch does not have are left out at the end.

optim.txt: the case "problem" holds the beginnings, curvatures a, targets t and noises n[20] of the parameters w, b and m: in
step k the gradient of p is a (p - t) + n[k]. A case names an optimiser and its options; "out" are the trajectories of its
parameters, [20, ...], "state NAME" what its state_dict holds at the end. Where PyTorch lacks an algorithm or a convention it is
written here, from the source that lightcone/optim/optim.h names. "schedule ..." are the rates of 60 steps.
"""
import math
import os

import torch
import torch.nn.functional as F
from torch.optim import lr_scheduler as S
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.manual_seed(11)
torch.set_default_dtype(torch.float64)
INF, NAN = float("inf"), float("nan")
I = torch.tensor
out = []


def number(v):
    text = repr(v)
    return text[:-2] if text.endswith(".0") else text


def line(kind, t):
    t = torch.as_tensor(t).detach()
    names = {torch.float64: "f64", torch.int64: "i64", torch.int32: "i32"}
    out.append("%s %s [%s] %s" % (kind, names[t.dtype], " ".join(map(str, t.shape)), " ".join(map(number, t.flatten().tolist()))))


def write(name):
    path = os.path.join(os.path.dirname(__file__), "..", "tests", "goldens", name)
    with open(path, "w") as f:
        f.write("\n".join(out) + "\n")
    out.clear()


def x(*shape):
    return torch.randn(shape).mul(2).mul(256).round().div(256)  # short decimals


# ---- losses --------------------------------------------------------------------------------------
def cotangent(t):
    k = torch.arange(t.numel())
    return (((7 * k + 3) % 11 - 5) / 4).reshape(t.shape).to(t.dtype)


def loss(name, f, *inputs, differentiable=None):
    """`differentiable`: how many of the first floating inputs PyTorch has gradients for; all."""
    out.append("case " + name)
    inputs = [t.clone() for t in inputs]
    wrt = [t for t in inputs if t.dtype.is_floating_point][:differentiable]
    for t in wrt:
        t.requires_grad_()
    for t in inputs:
        line("in", t)
    y = f(*inputs)
    line("out", y)
    if wrt:
        for d in torch.autograd.grad((y * cotangent(y)).sum(), wrt):
            line("out", d)


REDUCTIONS = ("none", "mean", "sum")
A, B = x(4, 5), x(4, 5)
B[0, 0] = A[0, 0]
for r in REDUCTIONS:
    loss("mse_loss " + r, lambda a, b: F.mse_loss(a, b, reduction=r), A, B)
    loss("l1_loss " + r, lambda a, b: F.l1_loss(a, b, reduction=r), A, B)
    loss("huber_loss " + r, lambda a, b: F.huber_loss(a, b, reduction=r, delta=1.5), A, B)
    loss("smooth_l1_loss " + r, lambda a, b: F.smooth_l1_loss(a, b, reduction=r, beta=0.5), A, B)
loss("huber_loss", F.huber_loss, A, B)
loss("smooth_l1_loss", F.smooth_l1_loss, A, B)
loss("smooth_l1_loss beta 0", lambda a, b: F.smooth_l1_loss(a, b, beta=0.0), A, B)
loss("mse_loss scalar", F.mse_loss, x(), x())
loss("mse_loss odd", lambda a, b: F.mse_loss(a, b, reduction="none"), I([NAN, INF, -INF, 1e200, 0.0]), I([0.0, 0.0, INF, 0.0, -0.0]), differentiable=0)
loss("huber_loss odd", lambda a, b: F.huber_loss(a, b, reduction="none"), I([NAN, INF, -INF, 1e200, 1.0]), I([0.0, 0.0, INF, 0.0, 0.0]), differentiable=0)
loss("mse_loss empty mean", F.mse_loss, x(0, 3), x(0, 3))
loss("mse_loss empty sum", lambda a, b: F.mse_loss(a, b, reduction="sum"), x(0, 3), x(0, 3))

LOGITS, CLASSES, WEIGHT = x(5, 4), I([3, 0, -100, 2, 2]), I([0.5, 1.5, 1.0, 2.0])
DENSE, DENSE_CLASSES = x(2, 4, 3, 2), I([[[0, 1], [2, 3], [-100, 1]], [[3, 3], [1, 0], [2, -100]]])
for r in REDUCTIONS:
    loss("cross_entropy " + r, lambda a, t: F.cross_entropy(a, t, reduction=r), LOGITS, CLASSES)
    loss("cross_entropy weight " + r, lambda a, t, w: F.cross_entropy(a, t, w, reduction=r), LOGITS, CLASSES, WEIGHT, differentiable=1)
    loss("cross_entropy smoothing " + r, lambda a, t: F.cross_entropy(a, t, reduction=r, label_smoothing=0.2), LOGITS, CLASSES)
    loss("cross_entropy weight smoothing " + r, lambda a, t, w: F.cross_entropy(a, t, w, reduction=r, label_smoothing=0.2), LOGITS, CLASSES, WEIGHT, differentiable=1)
    loss("cross_entropy dense " + r, lambda a, t, w: F.cross_entropy(a, t, w, reduction=r, label_smoothing=0.1), DENSE, DENSE_CLASSES, WEIGHT, differentiable=1)
    loss("cross_entropy probabilities " + r, lambda a, t: F.cross_entropy(a, t, reduction=r), LOGITS, x(5, 4).softmax(1))
    loss("cross_entropy probabilities weight smoothing " + r, lambda a, t, w: F.cross_entropy(a, t, w, reduction=r, label_smoothing=0.3), LOGITS, x(5, 4).softmax(1), WEIGHT, differentiable=2)
    loss("nll_loss " + r, lambda a, t: F.nll_loss(a, t, reduction=r), LOGITS.log_softmax(1), CLASSES)
    loss("nll_loss weight dense " + r, lambda a, t, w: F.nll_loss(a, t, w, reduction=r), DENSE, DENSE_CLASSES, WEIGHT, differentiable=1)
loss("cross_entropy ignore 2", lambda a, t: F.cross_entropy(a, t, ignore_index=2), LOGITS, I([3, 0, 1, 2, 2]))
loss("cross_entropy all ignored", lambda a, t: F.cross_entropy(a, t), LOGITS, I([-100] * 5), differentiable=0)
loss("cross_entropy one", F.cross_entropy, x(4), I(2))
loss("cross_entropy one probabilities", F.cross_entropy, x(4), x(4).softmax(0))
loss("cross_entropy dense probabilities", F.cross_entropy, DENSE, x(2, 4, 3, 2).softmax(1))
loss("cross_entropy large", lambda a, t: F.cross_entropy(a, t, reduction="none"), I([[1000.0, 0.0, -1000.0], [60.0, 0.0, 0.0], [0.0, 0.0, -INF], [1e300, 0.0, 1.0]]), I([0, 0, 2, 1]))
loss("nll_loss one", F.nll_loss, x(4), I(1))
loss("nll_loss infinite", lambda a, t: F.nll_loss(a, t, reduction="none"), I([[0.0, -INF], [0.0, -INF]]), I([0, 1]))

P, T = x(4, 5).sigmoid(), x(4, 5).sigmoid()
P[0, :4], T[0, :4] = I([0.0, 1.0, 0.0, 1.0]), I([0.0, 1.0, 1.0, 0.0])
T[1, :2] = I([0.0, 1.0])
Z = x(4, 5)
Z[0] = I([0.0, 40.0, -40.0, 200.0, -200.0])
for r in REDUCTIONS:
    loss("binary_cross_entropy " + r, lambda a, t: F.binary_cross_entropy(a, t, reduction=r), P, T, differentiable=1)
    loss("binary_cross_entropy weight " + r, lambda a, t, w: F.binary_cross_entropy(a, t, w, reduction=r), P, T, x(5).abs(), differentiable=1)
    loss("binary_cross_entropy_with_logits " + r, lambda a, t: F.binary_cross_entropy_with_logits(a, t, reduction=r), Z, T)
    loss("binary_cross_entropy_with_logits weights " + r, lambda a, t, w, p: F.binary_cross_entropy_with_logits(a, t, w, reduction=r, pos_weight=p), Z, T, x(4, 1).abs(), x(5).abs(), differentiable=2)
# Where a logarithm is bounded PyTorch's gradient of the target is infinite; ours is that of the bounded formula.
loss("binary_cross_entropy inside", lambda a, t, w: F.binary_cross_entropy(a, t, w), P[1:], T[1:], x(5).abs(), differentiable=2)
LOGP, Q = x(4, 5).log_softmax(1), x(4, 5).softmax(1)
Q0 = Q.clone()
Q0[0, 0] = 0
for r in REDUCTIONS + ("batchmean",):
    loss("kl_div " + r, lambda a, t: F.kl_div(a, t, reduction=r), LOGP, Q)
    loss("kl_div zero " + r, lambda a, t: F.kl_div(a, t, reduction=r), LOGP, Q0, differentiable=1)
    loss("kl_div log " + r, lambda a, t: F.kl_div(a, t, reduction=r, log_target=True), LOGP, Q.log())
SIGNS, PAIR = I([1.0, -1.0, 1.0, -1.0]), (x(4, 5), x(4, 5))
PAIR[1][3] = PAIR[0][3] + 0.25
for r in REDUCTIONS:
    loss("cosine_embedding_loss " + r, lambda a, b, t: F.cosine_embedding_loss(a, b, t, margin=0.1, reduction=r), *PAIR, SIGNS.long())
    loss("hinge_embedding_loss " + r, lambda a, t: F.hinge_embedding_loss(a, t, margin=1.5, reduction=r), x(2, 4), SIGNS.long().repeat(2, 1))
    loss("margin_ranking_loss " + r, lambda a, b, t: F.margin_ranking_loss(a, b, t, margin=0.5, reduction=r), x(4), x(4), SIGNS.long())
    loss("soft_margin_loss " + r, lambda a, t: F.soft_margin_loss(a, t, reduction=r), x(2, 4), SIGNS.long().repeat(2, 1))
    loss("triplet_margin_loss " + r, lambda a, p, n: F.triplet_margin_loss(a, p, n, reduction=r), x(6, 5), x(6, 5), x(6, 5))
    loss("triplet_margin_loss swap " + r, lambda a, p, n: F.triplet_margin_loss(a, p, n, margin=2.0, p=1.0, swap=True, reduction=r), x(6, 5), x(6, 5), x(6, 5))
    loss("gaussian_nll_loss " + r, lambda a, t, v: F.gaussian_nll_loss(a, t, v, reduction=r), A, B, x(4, 5).abs())
    loss("poisson_nll_loss " + r, lambda a, t: F.poisson_nll_loss(a, t, reduction=r), A, B.abs())
loss("cosine_embedding_loss one", F.cosine_embedding_loss, x(5), x(5), I(1))
loss("triplet_margin_loss one", F.triplet_margin_loss, x(5), x(5), x(5))
loss("gaussian_nll_loss full", lambda a, t, v: F.gaussian_nll_loss(a, t, v, full=True, eps=0.5), A, B, x(4).abs())
loss("gaussian_nll_loss shared", lambda a, t, v: F.gaussian_nll_loss(a, t, v), A, B, x(4, 1).abs())
loss("poisson_nll_loss full", lambda a, t: F.poisson_nll_loss(a, t, full=True, reduction="none"), A, B.abs(), differentiable=1)
loss("poisson_nll_loss plain", lambda a, t: F.poisson_nll_loss(a, t, log_input=False, eps=1e-3), A.abs(), B.abs())

# log_softmax is part of the case: PyTorch's gradient of ctc_loss is right behind it alone.
SAID, TIMES, LENGTHS = I([[1, 2, 2, 3], [3, 1, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0]]), I([8, 5, 6, 8]), I([4, 2, 4, 0])
for r in REDUCTIONS:
    for z in (False, True):
        loss("ctc_loss %s%s" % (r, " zero_infinity" if z else ""), lambda a, t, i, l: F.ctc_loss(a.log_softmax(2), t, i, l, reduction=r, zero_infinity=z), x(8, 4, 5), SAID, TIMES, LENGTHS, differentiable=None if z else 0)
FEASIBLE = I([8, 5, 8, 0])
for r in REDUCTIONS:
    loss("ctc_loss feasible " + r, lambda a, t, i, l: F.ctc_loss(a.log_softmax(2), t, i, l, reduction=r), x(8, 4, 5), SAID, FEASIBLE, LENGTHS)
loss("ctc_loss blank 4", lambda a, t, i, l: F.ctc_loss(a.log_softmax(2), t, i, l, blank=4), x(9, 2, 5), I([[0, 1, 0], [2, 2, 3]]), I([9, 7]), I([3, 3]))
loss("ctc_loss one", lambda a, t, i, l: F.ctc_loss(a.log_softmax(1), t, i, l), x(7, 5), I([1, 3, 3]), I(7), I(3))
with torch.random.fork_rng():  # what follows draws the numbers it always drew
    CLASSES, LISTS = I([2, 0, 4, 1]), I([[1, 3, -1, 0, 2], [-1, 2, 2, 2, 2], [4, 0, 1, 2, 3], [2, 2, 0, -1, 4]])
    for r in REDUCTIONS:
        loss("multi_margin_loss " + r, lambda a, t: F.multi_margin_loss(a, t, reduction=r), x(4, 5), CLASSES)
        loss("multi_margin_loss weight " + r, lambda a, t, w: F.multi_margin_loss(a, t, p=2, margin=0.5, weight=w, reduction=r), x(4, 5), CLASSES, x(5).abs(), differentiable=1)
        loss("multilabel_margin_loss " + r, lambda a, t: F.multilabel_margin_loss(a, t, reduction=r), x(4, 5), LISTS)
        loss("multilabel_soft_margin_loss " + r, lambda a, t: F.multilabel_soft_margin_loss(a, t, reduction=r), x(4, 5), x(4, 5).sigmoid().round())
        loss("multilabel_soft_margin_loss weight " + r, lambda a, t, w: F.multilabel_soft_margin_loss(a, t, w, reduction=r), x(4, 5), x(4, 5).sigmoid(), x(5).abs(), differentiable=2)
    loss("multi_margin_loss one", F.multi_margin_loss, x(5), I(3))
    loss("multilabel_margin_loss one", F.multilabel_margin_loss, x(5), LISTS[0])
write("losses.txt")

# ---- optimisers ----------------------------------------------------------------------------------
STEPS = 20
SHAPES = {"w": (3, 4), "b": (5,), "m": (5, 2)}
problem = {}
out.append("case problem")
for name, shape in SHAPES.items():
    problem[name] = (x(*shape), x(*shape).abs() + 0.25, x(*shape), x(STEPS, *shape) / 8)
    for t in problem[name]:
        line("in", t)


def gradient(name, p, k):
    _, a, t, n = problem[name]
    return a * (p - t) + n[k]


def trajectory(name, make, names=("w", "b"), after=None, prepare=None, schedule=None):
    """`after` sees the parameters behind each step, `prepare` the gradients before it."""
    params = {n: torch.nn.Parameter(problem[n][0].clone()) for n in names}
    opt = make(list(params.values()))
    sched = schedule(opt) if schedule else None
    seen = {n: [] for n in names}
    for k in range(STEPS):
        for n, p in params.items():
            p.grad = gradient(n, p.detach(), k)
        if prepare:
            prepare(list(params.values()))
        opt.step()
        if sched:
            sched.step()
        for n, p in params.items():
            seen[n].append(p.detach().clone())
        if after:
            after(params)
    out.append("case " + name)
    for n in names:
        line("out", torch.stack(seen[n]))
    for n, p in params.items():
        for key, value in sorted(opt.state[p].items()):
            if torch.is_tensor(value) and value.shape == p.shape:
                line("state %s.%s" % (n, key), value)


class Written(torch.optim.Optimizer):
    """An algorithm that PyTorch lacks: update(p, g, state, t) changes p and its state, which begins at zero."""

    def __init__(self, params, update):
        super().__init__(params, {})
        self.update = update

    @torch.no_grad()
    def step(self):
        for p in self.param_groups[0]["params"]:
            s = self.state[p]
            s["t"] = s.get("t", 0) + 1
            self.update(p, p.grad, s, s["t"])


def held(s, name, p):
    return s.setdefault(name, torch.zeros_like(p))


def lion(lr=1e-4, b1=0.9, b2=0.99, wd=0.0, maximize=False):
    def update(p, g, s, t):
        g = -g if maximize else g
        m = held(s, "exp_avg", p)
        c = b1 * m + (1 - b1) * g
        p -= lr * (c.sign() + wd * p)
        s["exp_avg"] = b2 * m + (1 - b2) * g
    return lambda params: Written(params, update)


def lamb(lr=1e-3, b1=0.9, b2=0.999, eps=1e-6, wd=0.0):
    def update(p, g, s, t):
        m = s["exp_avg"] = b1 * held(s, "exp_avg", p) + (1 - b1) * g
        v = s["exp_avg_sq"] = b2 * held(s, "exp_avg_sq", p) + (1 - b2) * g * g
        u = m / (1 - b1 ** t) / ((v / (1 - b2 ** t)).sqrt() + eps) + wd * p
        trust = p.norm() / u.norm() if p.norm() > 0 and u.norm() > 0 else 1.0
        p -= lr * trust * u
    return lambda params: Written(params, update)


def keras_rmsprop(lr, rho, eps, momentum=0.0, centered=False):
    """keras/src/optimizers/rmsprop.py, update_step"""
    def update(p, g, s, t):
        v = s["square_avg"] = rho * held(s, "square_avg", p) + (1 - rho) * g * g
        if centered:
            a = s["grad_avg"] = rho * held(s, "grad_avg", p) + (1 - rho) * g
            v = v - a * a
        d = lr * g * (v + eps).rsqrt()
        if momentum > 0:
            d = s["momentum_buffer"] = momentum * held(s, "momentum_buffer", p) + d
        p -= d
    return lambda params: Written(params, update)


O = torch.optim
trajectory("SGD", lambda p: O.SGD(p, lr=0.1))
trajectory("SGD momentum", lambda p: O.SGD(p, lr=0.05, momentum=0.9))
trajectory("SGD dampening", lambda p: O.SGD(p, lr=0.05, momentum=0.8, dampening=0.3, weight_decay=0.1))
trajectory("SGD nesterov", lambda p: O.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01))
trajectory("SGD maximize", lambda p: O.SGD(p, lr=0.01, momentum=0.5, maximize=True))
trajectory("Adam", lambda p: O.Adam(p))
trajectory("Adam options", lambda p: O.Adam(p, lr=0.1, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1, maximize=True))
trajectory("Adam amsgrad", lambda p: O.Adam(p, lr=0.1, betas=(0.7, 0.9), amsgrad=True))
trajectory("AdamW", lambda p: O.AdamW(p))
trajectory("AdamW options", lambda p: O.AdamW(p, lr=0.1, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.2))
trajectory("AdamW amsgrad", lambda p: O.AdamW(p, lr=0.1, betas=(0.7, 0.9), amsgrad=True, maximize=True))
trajectory("RMSprop", lambda p: O.RMSprop(p))
trajectory("RMSprop centered", lambda p: O.RMSprop(p, lr=0.05, alpha=0.9, eps=1e-4, centered=True, weight_decay=0.05))
trajectory("RMSprop momentum", lambda p: O.RMSprop(p, lr=0.02, alpha=0.9, momentum=0.8, centered=True, maximize=True))
trajectory("RMSprop tensorflow", keras_rmsprop(0.05, 0.9, 1e-3))
trajectory("RMSprop tensorflow momentum", keras_rmsprop(0.02, 0.9, 1e-7, momentum=0.8, centered=True))
trajectory("Adagrad", lambda p: O.Adagrad(p))
trajectory("Adagrad options", lambda p: O.Adagrad(p, lr=0.3, lr_decay=0.1, weight_decay=0.05, initial_accumulator_value=0.5, eps=1e-6))
trajectory("Adadelta", lambda p: O.Adadelta(p))
trajectory("Adadelta options", lambda p: O.Adadelta(p, lr=0.7, rho=0.8, eps=1e-3, weight_decay=0.05, maximize=True))
trajectory("NAdam", lambda p: O.NAdam(p))
trajectory("NAdam options", lambda p: O.NAdam(p, lr=0.1, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1, momentum_decay=0.01))
trajectory("NAdam decoupled", lambda p: O.NAdam(p, lr=0.1, weight_decay=0.1, decoupled_weight_decay=True))
trajectory("RAdam", lambda p: O.RAdam(p))
trajectory("RAdam options", lambda p: O.RAdam(p, lr=0.1, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1))
trajectory("RAdam decoupled", lambda p: O.RAdam(p, lr=0.1, weight_decay=0.1, decoupled_weight_decay=True, maximize=True))
trajectory("Lion", lion())
trajectory("Lion options", lion(lr=0.05, b1=0.8, b2=0.95, wd=0.1, maximize=True))
trajectory("LAMB", lamb())
trajectory("LAMB options", lamb(lr=0.1, b1=0.8, b2=0.95, eps=1e-3, wd=0.1))


def newton_schulz(grad, coefficients, steps, eps):
    """torch.optim._muon's, without the conversion to bf16."""
    a, b, c = coefficients
    tall = grad.size(0) > grad.size(1)
    z = grad.T if tall else grad
    z = z / z.norm().clamp(min=eps)
    for _ in range(steps):
        gram = z @ z.T
        z = a * z + (b * gram + c * gram @ gram) @ z
    return z.T if tall else z


torch.optim._muon._zeropower_via_newtonschulz = newton_schulz
trajectory("Muon", lambda p: O.Muon(p), names=("w", "m"))
trajectory("Muon options", lambda p: O.Muon(p, lr=0.1, weight_decay=0.05, momentum=0.8, nesterov=False, ns_steps=3, adjust_lr_fn="match_rms_adamw"), names=("w", "m"))

trajectory("groups", lambda p: O.AdamW([{"params": p[:1], "lr": 0.1}, {"params": p[1:], "lr": 0.02, "weight_decay": 0.0}]))
trajectory("scheduled", lambda p: O.AdamW(p, lr=0.1), schedule=lambda o: S.CosineAnnealingLR(o, 15, 0.01))
for kind in (1.0, 2.0, 3.0, INF):
    trajectory("clip norm %s" % number(kind), lambda p: O.SGD(p, lr=0.1), prepare=lambda p: torch.nn.utils.clip_grad_norm_(p, 1.5, kind))
trajectory("clip value", lambda p: O.SGD(p, lr=0.1), prepare=lambda p: torch.nn.utils.clip_grad_value_(p, 0.5))


class Accumulating:
    """Steps in every third run, with what backward() has added up."""

    def __init__(self, params, mean):
        self.opt, self.params, self.mean, self.runs, self.total = O.AdamW(params, lr=0.1), params, mean, 0, None
        self.state = self.opt.state

    def step(self):
        grads = [p.grad for p in self.params]
        self.total = [a + b for a, b in zip(self.total, grads)] if self.total else grads
        self.runs += 1
        if self.runs % 3 == 0:
            for p, g in zip(self.params, self.total):
                p.grad = g / 3 if self.mean else g
            self.opt.step()
            self.total = None


trajectory("accumulate sum", lambda p: Accumulating(p, False))
trajectory("accumulate mean", lambda p: Accumulating(p, True))


def averaged(name, make_average, due=lambda k: True):
    """The trajectory of the averages themselves."""
    model = torch.nn.ParameterDict({n: torch.nn.Parameter(problem[n][0].clone()) for n in ("w", "b")})
    average, opt, seen = make_average(model), O.SGD(model.parameters(), lr=0.1), {"w": [], "b": []}
    for k in range(STEPS):
        for n in seen:
            model[n].grad = gradient(n, model[n].detach(), k)
        opt.step()
        if due(k):
            average.update_parameters(model)
        for n in seen:
            none = average.n_averaged == 0
            seen[n].append(torch.zeros_like(model[n]) if none else average.module[n].detach().clone())
    out.append("case " + name)
    for n in seen:
        line("out", torch.stack(seen[n]))


averaged("ema", lambda m: AveragedModel(m, multi_avg_fn=get_ema_multi_avg_fn(0.9)))
averaged("swa", AveragedModel)
averaged("swa start", AveragedModel, lambda k: k >= 5 and (k - 5) % 3 == 0)


# ---- schedules -----------------------------------------------------------------------------------
def schedule(name, make, lr=0.3, steps=60):
    opt = O.SGD([torch.nn.Parameter(torch.zeros(1))], lr=lr)
    sched, rates = make(opt), []
    for _ in range(steps):
        rates.append(opt.param_groups[0]["lr"])
        opt.step()
        sched.step()
    out.append("case schedule " + name)
    line("out", I(rates))


schedule("step_lr", lambda o: S.StepLR(o, 7))
schedule("step_lr gamma", lambda o: S.StepLR(o, 10, 0.5))
schedule("multi_step", lambda o: S.MultiStepLR(o, [5, 20, 20, 41], 0.3))
schedule("exponential", lambda o: S.ExponentialLR(o, 0.93))
schedule("linear", S.LinearLR)
schedule("linear options", lambda o: S.LinearLR(o, 0.1, 0.7, 23))
schedule("polynomial", S.PolynomialLR)
schedule("polynomial power", lambda o: S.PolynomialLR(o, 37, 2.5))
schedule("cosine_annealing", lambda o: S.CosineAnnealingLR(o, 50))
schedule("cosine_annealing min", lambda o: S.CosineAnnealingLR(o, 20, 0.05))
schedule("cosine_annealing_warm_restarts", lambda o: S.CosineAnnealingWarmRestarts(o, 11))
schedule("cosine_annealing_warm_restarts mult", lambda o: S.CosineAnnealingWarmRestarts(o, 4, 2, 0.01))
schedule("cosine_annealing_warm_restarts three", lambda o: S.CosineAnnealingWarmRestarts(o, 5, 3))
schedule("one_cycle", lambda o: S.OneCycleLR(o, 0.3, 60, cycle_momentum=False))
schedule("one_cycle linear", lambda o: S.OneCycleLR(o, 0.3, 60, pct_start=0.4, anneal_strategy="linear", div_factor=10, final_div_factor=100, cycle_momentum=False))
schedule("one_cycle three", lambda o: S.OneCycleLR(o, 0.3, 60, three_phase=True, cycle_momentum=False))
schedule("one_cycle three linear", lambda o: S.OneCycleLR(o, 0.3, 61, pct_start=0.25, three_phase=True, anneal_strategy="linear", cycle_momentum=False))
schedule("sequential", lambda o: S.SequentialLR(o, [S.ConstantLR(o, 1.0, 1), S.ExponentialLR(o, 0.9), S.StepLR(o, 4, 0.5)], [10, 30]))
schedule("warm_up cosine", lambda o: S.SequentialLR(o, [S.LinearLR(o, 0.05, 1.0, 12), S.CosineAnnealingLR(o, 48)], [12]))


def plateau(name, **options):
    opt, metrics, rates = O.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.3), [], []
    sched = S.ReduceLROnPlateau(opt, **options)
    generator = torch.Generator().manual_seed(5)
    for k in range(60):
        sign = -1 if options.get("mode") == "max" else 1
        metrics.append(sign * (2 / (1 + k / 4) + 0.05 * torch.rand(1, generator=generator).item()))
        sched.step(metrics[-1])
        rates.append(opt.param_groups[0]["lr"])
    out.append("case plateau " + name)
    line("in", I(metrics))
    line("out", I(rates))


plateau("plain", patience=2)
plateau("options", mode="max", factor=0.5, patience=1, threshold=0.01, threshold_mode="abs", cooldown=3, min_lr=0.01)
plateau("relative", mode="max", factor=0.7, patience=0, threshold=0.02, cooldown=1)
write("optim.txt")
