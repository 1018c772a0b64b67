"""PyTorch: eager, or torch.compile with frozen weights ("compile" as the first argument)."""
import os
import sys

MODE = sys.argv[1] if len(sys.argv) > 1 else "eager"
if MODE == "compile":
    os.environ["TORCHINDUCTOR_FREEZING"] = "1"

import torch

import data
import hf_torch
import nets_torch
import train_torch


def make(w):
    torch.set_num_threads(w["threads"])
    torch.set_grad_enabled(False)
    kind, dtype = w["kind"], w.get("dtype", "f32")
    compiled = MODE == "compile"
    if kind == "gemm":
        return gemm(w.get("m", w["n"]), w["n"], dtype, compiled)
    if kind == "compile-llama":
        return nets_torch.compile_llama(w, compiled)
    if kind == "train":
        return train_torch.make(w, compiled)
    if kind == "model":
        return published(w, compiled)
    f, args = nets_torch.build(w)
    if compiled:
        f = torch.compile(f, dynamic=False)
    with torch.inference_mode():
        y = f(*args)

    def call():
        with torch.inference_mode():
            return f(*args)

    return {"call": call, "answer": lambda: y.float().contiguous().numpy()}


def published(w, compiled):
    before = data.peak_rss()
    model, run = hf_torch.build(w)
    f = torch.compile(model, dynamic=False) if compiled else model

    def call():
        with torch.inference_mode():
            return run(f)

    y = call()
    return {"call": call, "answer": lambda: y.float().contiguous().numpy(), "facts": {"rss_before": before}}


def gemm(m, n, dtype, compiled):
    if dtype == "int8":
        if compiled:
            raise data.Missing("torch.compile calls the same int8 product as eager")
        x = torch.from_numpy(data.int8s("x", (m, n)))
        wt = torch.from_numpy(data.int8s("w", (n, n))).t()
        y = torch._int_mm(x, wt)
        return {"call": lambda: torch._int_mm(x, wt), "answer": y.numpy()}
    kind = {"f32": torch.float32, "bf16": torch.bfloat16}[dtype]
    x = torch.from_numpy(data.inputs("x", (m, n))).to(kind)
    layer = torch.nn.Linear(n, n, bias=False)
    layer.weight.data = torch.from_numpy(data.parameter("w", (n, n))).to(kind)
    layer.eval()
    f = torch.compile(layer, dynamic=False) if compiled else layer  # frozen: the weight is packed once
    with torch.inference_mode():
        y = f(x)

    def call():
        with torch.inference_mode():
            return f(x)

    return {"call": call, "answer": y.float().numpy()}


data.serve(make, lambda: "torch " + torch.__version__)
