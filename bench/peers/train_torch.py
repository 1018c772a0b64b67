"""Whole training steps in PyTorch: the models of bench/runner/train_models.h, with the same names."""
import math
import os
import tempfile

import torch
import torch.nn.functional as F
from torch import nn

import data
import nets_torch


def split(qkv, heads):
    b, t, width = qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3
    return (part.view(b, t, heads, width // heads).transpose(1, 2) for part in qkv.split(width, dim=2))


def joined(x):
    b, heads, t, size = x.shape
    return x.transpose(1, 2).reshape(b, t, heads * size)


class GptBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.attention_norm, self.mlp_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        q, k, v = split(self.qkv(self.attention_norm(x)), self.heads)
        x = x + self.out(joined(F.scaled_dot_product_attention(q, k, v, is_causal=True)))
        return x + self.down(F.gelu(self.up(self.mlp_norm(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, layers=6, heads=6, width=384, context=256, vocabulary=65):
        super().__init__()
        self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(GptBlock(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids):
        x = self.token(ids) + self.position.weight
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.heads = heads
        linear = lambda i, o: nn.Linear(i, o, bias=False)
        self.attention_norm, self.mlp_norm = nn.RMSNorm(width, 1e-5), nn.RMSNorm(width, 1e-5)
        self.qkv, self.out = linear(width, 3 * width), linear(width, width)
        self.gate, self.up, self.down = linear(width, hidden), linear(width, hidden), linear(hidden, width)

    def forward(self, x, cos, sin):
        q, k, v = split(self.qkv(self.attention_norm(x)), self.heads)
        y = F.scaled_dot_product_attention(rotate(q, cos, sin), rotate(k, cos, sin), v, is_causal=True)
        x = x + self.out(joined(y))
        h = self.mlp_norm(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    def __init__(self, layers=6, heads=6, width=288, hidden=768, context=256, vocabulary=32000):
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(LlamaBlock(width, heads, hidden) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(width, 1e-5), nn.Linear(width, vocabulary, bias=False)
        pairs = width // heads // 2
        speed = 10000.0 ** (-torch.arange(pairs, dtype=torch.float64) / pairs)
        angle = torch.arange(context, dtype=torch.float64)[:, None] * speed
        self.register_buffer("cos", torch.sin(angle + 0.5 * math.pi).float())
        self.register_buffer("sin", torch.sin(angle).float())

    def forward(self, ids):
        x = self.token(ids)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        return self.head(self.norm(x))


class BasicBlock(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.a, self.b = nets_torch.ConvNorm(i, o, 3, stride), nets_torch.ConvNorm(o, o, 3, 1)
        self.down = nets_torch.ConvNorm(i, o, 1, stride) if stride != 1 or i != o else None

    def forward(self, x):
        y = self.b(F.relu(self.a(x)))
        return F.relu(y + (self.down(x) if self.down is not None else x))


class Resnet18(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.blocks, i = nets_torch.ConvNorm(3, 64, 3, 1), nn.ModuleList(), 64
        for o in (64, 128, 256, 512):
            for k in range(2):
                self.blocks.append(BasicBlock(i, o, 2 if k == 0 and o != 64 else 1))
                i = o
        self.fc = nn.Linear(512, 10)

    def forward(self, x):
        x = F.relu(self.stem(x))
        for block in self.blocks:
            x = block(x)
        return self.fc(x.mean((2, 3)))


def numbers(shape, classes):
    return torch.from_numpy(data.inputs("x", shape)), torch.from_numpy(data.classes("y", shape[:1], classes))


def tokens(batch, context, vocabulary):
    text = torch.from_numpy(data.classes("tokens", (batch, context + 1), vocabulary))
    return text[:, :-1].contiguous(), text[:, 1:].flatten()


def build(w):
    """The module, what it reads, its labels, the optimiser, and the norm that gradients are clipped to (0: none)."""
    batch = w["batch"]
    adamw = lambda p: torch.optim.AdamW(p, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1, fused=True)
    if w["net"] == "mlp":
        return nets_torch.Mlp(), *numbers((batch, 784), 10), lambda p: torch.optim.Adam(p, lr=1e-3, fused=True), 0
    if w["net"] == "resnet18":
        sgd = lambda p: torch.optim.SGD(p, lr=1e-3, momentum=0.9, weight_decay=5e-4, fused=True)
        x, y = numbers((batch, 3, 32, 32), 10)
        last = torch.channels_last  # what PyTorch recommends for convolutions on CPUs
        return Resnet18().to(memory_format=last), x.to(memory_format=last), y, sgd, 0
    if w["net"] == "gpt":
        return Gpt(), *tokens(batch, 256, 65), adamw, 1.0
    if w["net"] == "llama":
        return Llama(), *tokens(batch, 256, 32000), adamw, 1.0
    raise data.Missing("no runner for training " + w["net"])


STEPS = 3  # behind which the loss is compared


def make(w, compiled):
    """One step a call; the first one compiles, with nothing cached."""
    cache = tempfile.TemporaryDirectory(prefix="lightcone-bench-")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache.name
    torch.set_grad_enabled(True)
    start = data.peak_rss()
    module, x, y, optimizer, max_norm = build(w)
    for key, p in module.named_parameters():
        p.data.copy_(torch.from_numpy(data.parameter(key, tuple(p.shape))))
    module.train()
    optimizer = optimizer(module.parameters())

    narrow = torch.autocast("cpu", torch.bfloat16, enabled=w.get("dtype") == "bf16")

    def loss_of(x, y):
        with narrow:
            return F.cross_entropy(module(x).flatten(0, -2), y)

    if compiled:
        import torch._inductor.config as config

        config.freezing = False  # what is trained is no constant
        loss_of = torch.compile(loss_of, dynamic=False)
    losses = []

    def step():
        optimizer.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        if max_norm:
            nn.utils.clip_grad_norm_(module.parameters(), max_norm)
        optimizer.step()
        if len(losses) <= STEPS:
            losses.append(loss.item())

    def answer():
        while len(losses) <= STEPS:
            step()
        return losses[-1:]

    facts = {"parameters": sum(p.numel() for p in module.parameters()), "losses": losses, "rss_before": start}
    return {"call": step, "answer": answer, "facts": facts, "cache": cache}
