"""What the parts of make_goldens.py's cases share: a case is asked of PyTorch and written down as that script says."""
import random
import sys

import torch

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
