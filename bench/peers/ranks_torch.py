"""One of several ranks of PyTorch over gloo, each started with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT and told the same:
DistributedDataParallel ("ddp") or fully_shard ("fsdp"), as the second argument "compile" with torch.compile."""
import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

import data
import train_torch

WRAPPER = sys.argv[1]
COMPILED = "compile" in sys.argv[2:]


def part(x):
    """This rank's part of a batch."""
    each = x.shape[0] // dist.get_world_size()
    return x[dist.get_rank() * each:(dist.get_rank() + 1) * each].contiguous()


def model(w):
    module = train_torch.Gpt(w["layers"], w["heads"], w["width"], w["context"], w["vocabulary"])
    for key, p in module.named_parameters():
        p.data.copy_(torch.from_numpy(data.parameter(key, tuple(p.shape))))
    return module.train()


def ddp(module):
    return nn.parallel.DistributedDataParallel(module, gradient_as_bucket_view=True)


def fsdp(module):
    """A group of parameters for each block, and one for the rest, as its documentation advises."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for block in module.blocks:
        fully_shard(block, mesh=mesh)
    return fully_shard(module, mesh=mesh)


class Training:
    """Steps of a module, wrapped or alone."""

    def __init__(self, w, wrap):
        module = model(w)
        by_block = wrap is fsdp  # blocks are compiled before they are wrapped
        if COMPILED and by_block:
            for block in module.blocks:
                block.compile(dynamic=False)
        self.module = wrap(module) if wrap else module
        self.optimizer = torch.optim.AdamW(self.module.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1, fused=True)
        x, y = train_torch.tokens(w["batch"], w["context"], w["vocabulary"])
        self.x, self.y = part(x), part(y)
        self.loss_of = lambda x, y: F.cross_entropy(self.module(x).flatten(0, -2), y)
        if COMPILED and not by_block:
            self.loss_of = torch.compile(self.loss_of, dynamic=False)

    def step(self):
        self.optimizer.zero_grad()
        loss = self.loss_of(self.x, self.y)
        loss.backward()
        nn.utils.clip_grad_norm_(self.module.parameters(), 1.0)
        self.optimizer.step()
        return loss


def exchanged(training):
    """What a step exchanges: functions that begin one exchange each, and their names and elements."""
    if WRAPPER == "ddp":
        logged = training.module._get_ddp_logging_data()
        sizes = logged.get("rebuilt_bucket_sizes") or logged["bucket_sizes"]
        sizes = [int(n) // 4 for n in str(sizes).split(",")]
        buckets = [torch.zeros(n) for n in sizes]
        return [lambda b=b: dist.all_reduce(b, async_op=True) for b in buckets], [("all_reduce", n) for n in sizes]
    calls, begun = [], []

    def recorded(name):
        function = getattr(dist, name)

        def call(*a, **k):
            tensors = [t for t in (*a, *k.values()) if torch.is_tensor(t)]
            calls.append((name, [t.numel() for t in tensors]))
            return function(*a, **k)

        return function, call

    names = [n for n in ("all_gather_single", "reduce_scatter_single", "all_gather_into_tensor", "reduce_scatter_tensor") if hasattr(dist, n)]
    before = {n: recorded(n) for n in names}
    for n, (_, call) in before.items():
        setattr(dist, n, call)
    training.step()
    for n, (function, _) in before.items():
        setattr(dist, n, function)
    for name, sizes in calls:
        out, mine = (torch.zeros(n) for n in sizes[:2])
        begun.append(lambda f=before[name][0], out=out, mine=mine: f(out, mine, async_op=True))
    return begun, [(name, min(sizes[:2])) for name, sizes in calls]


def barrier():
    dist.all_reduce(torch.zeros(1))


def clocked(call):
    barrier()
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def train(w):
    cache = tempfile.TemporaryDirectory(prefix="lightcone-bench-")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache.name
    start = data.peak_rss()
    together, alone = Training(w, {"ddp": ddp, "fsdp": fsdp}[WRAPPER]), Training(w, None)
    losses = []

    def step():
        loss = together.step()
        if len(losses) <= train_torch.STEPS:
            whole = loss.detach().clone()
            dist.all_reduce(whole)
            losses.append(whole.item() / dist.get_world_size())

    step()
    while len(losses) <= train_torch.STEPS:
        step()
    alone.step()
    begin_all, what = exchanged(together)

    def exchanges():
        for work in [begin() for begin in begin_all]:
            work.wait()

    def measure(calls):
        cpu = time.process_time()
        reply = {"s": clocked(lambda: [together.step() for _ in range(calls)]) / calls, "calls": calls}
        reply["cpu_s"] = (time.process_time() - cpu) / calls
        reply["alone_s"] = clocked(lambda: [alone.step() for _ in range(calls)]) / calls
        cpu = time.process_time()
        reply["exchange_s"] = clocked(lambda: [exchanges() for _ in range(calls)]) / calls
        reply["exchange_cpu_s"] = (time.process_time() - cpu) / calls
        return reply

    totals = {}
    for name, n in what:
        one = totals.setdefault(name, {"calls": 0, "bytes": 0})
        one["calls"] += 1
        one["bytes"] += 4 * n
    facts = {"parameters": sum(p.numel() for p in alone.module.parameters()), "losses": losses, "rss_before": start, "exchanged": totals}
    return {"call": lambda: None, "measure": measure, "answer": losses[-1:], "facts": facts, "cache": cache}


def all_reduce(w):
    x = torch.from_numpy(data.inputs("rank%d" % dist.get_rank(), (w["bytes"] // 4,)))
    out = x.clone()
    dist.all_reduce(out)
    answer = out.numpy().copy()

    def measure(calls):
        cpu = time.process_time()
        seconds = clocked(lambda: [dist.all_reduce(out) for _ in range(calls)]) / calls
        out.zero_()  # else they overflow
        return {"s": seconds, "cpu_s": (time.process_time() - cpu) / calls, "calls": calls}

    return {"call": lambda: None, "measure": measure, "answer": answer}


def make(w):
    torch.set_num_threads(w["threads"])
    torch.set_grad_enabled(True)
    dist.init_process_group("gloo")
    return all_reduce(w) if w["kind"] == "all-reduce" else train(w)


data.serve(make, lambda: "torch %s, gloo" % torch.__version__)
