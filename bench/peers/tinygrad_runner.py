"""tinygrad on its CPU back end, each function captured by TinyJit (its documentation's way to run a function again)."""
import numpy as np
from tinygrad import Tensor, TinyJit, dtypes

import data

try:
    from importlib.metadata import version as package_version
except ImportError:
    package_version = lambda name: "?"


def build(w):
    kind = w["kind"]
    given = lambda v: Tensor(np.ascontiguousarray(v)).realize()
    if kind == "scalar":
        return (lambda a, b: a + b), [given(data.inputs(n, (1,))) for n in "ab"]
    if kind == "gemm":
        n = w["n"]
        if w["dtype"] != "f32":
            raise data.Missing("f32 products only")
        wt = given(data.parameter("w", (n, n)))
        return (lambda x: x @ wt.T), [given(data.inputs("x", (n, n)))]
    if kind == "mlp":
        sizes = (784, 512, 512, 10)
        p = [
            (given(data.parameter("fc%d.weight" % (i + 1), (sizes[i + 1], sizes[i]))),
             given(data.parameter("fc%d.bias" % (i + 1), (sizes[i + 1],)))) for i in range(3)]

        def mlp(x):
            for i, (weight, bias) in enumerate(p):
                x = x.linear(weight.T, bias)
                x = x.relu() if i < 2 else x
            return x

        return mlp, [given(data.inputs("x", (w["batch"], 784)))]
    if kind == "fused":
        return fused(w, given)
    raise data.Missing("no runner for " + kind)


def fused(w, given):
    columns, op = w["columns"], w["op"]
    v = {n: given(data.parameter(n, (columns,))) for n in ("w", "b", "norm.weight", "norm.bias")}
    gelu = lambda x: x * 0.5 * (1 + (x * 2**-0.5).erf())
    layernorm = lambda x: x.layernorm(eps=1e-5) * v["norm.weight"] + v["norm.bias"]
    f = {
        "gelu": gelu,
        "softmax": lambda x: x.softmax(-1),
        "chain": lambda x: (x * v["w"] + v["b"]).relu() * 2 + x,
        "layernorm": layernorm,
        "ln_gelu_softmax": lambda x: gelu(layernorm(x)).softmax(-1),
    }[op]
    return f, [given(data.inputs("x", (w["rows"], columns), 3))]


def make(w):
    f, args = build(w)
    jitted = TinyJit(lambda *a: f(*a).realize())
    for _ in range(3):  # traced, captured, replayed
        y = jitted(*args)

    def call():
        out = jitted(*args)
        out.device and Tensor.realize(out)
        synchronize()

    synchronize()
    return {"call": call, "answer": lambda: y.numpy()}


def synchronize():
    from tinygrad import Device

    Device[Device.DEFAULT].synchronize()


data.serve(make, lambda: "tinygrad " + package_version("tinygrad"))
