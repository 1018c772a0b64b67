"""The networks of bench/runner/nets.cpp and fused.cpp in PyTorch."""
import time

import torch
import torch.nn.functional as F
from torch import nn

import data


def tensor(v, w):
    return torch.from_numpy(v).to(torch.bfloat16 if w.get("dtype") == "bf16" else torch.float32)


def fill(module, name):
    """Parameters and buffers by the rule, under the names the runner of Lightcone gives them."""
    for key, p in list(module.named_parameters()) + list(module.named_buffers()):
        if p.is_floating_point():
            p.data.copy_(torch.from_numpy(data.parameter(name + key, tuple(p.shape))))
    return module


class Fused(nn.Module):
    def __init__(self, op, columns):
        super().__init__()
        self.op = op
        if op == "chain":
            self.w = nn.Parameter(torch.from_numpy(data.parameter("w", (columns,))))
            self.b = nn.Parameter(torch.from_numpy(data.parameter("b", (columns,))))
        self.norm = fill(nn.LayerNorm(columns), "norm.")

    def forward(self, x):
        if self.op == "gelu":
            return F.gelu(x)
        if self.op == "softmax":
            return F.softmax(x, -1)
        if self.op == "chain":
            return (x * self.w + self.b).relu() * 2 + x
        y = self.norm(x)
        return y if self.op == "layernorm" else F.softmax(F.gelu(y), -1)


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(784, 512), nn.Linear(512, 512), nn.Linear(512, 10)

    def forward(self, x):
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


class Vgg19(nn.Module):
    WIDTHS = (64, 64, 0, 128, 128, 0, 256, 256, 256, 256, 0, 512, 512, 512, 512, 0, 512, 512, 512, 512, 0)

    def __init__(self):
        super().__init__()
        channels, n = 3, 0
        for width in self.WIDTHS:
            if width:
                setattr(self, "conv%d" % n, nn.Conv2d(channels, width, 3, padding=1))
                channels, n = width, n + 1
        self.fc1, self.fc2, self.fc3 = nn.Linear(25088, 4096), nn.Linear(4096, 4096), nn.Linear(4096, 1000)

    def forward(self, x):
        n = 0
        for width in self.WIDTHS:
            if width:
                x = F.relu(getattr(self, "conv%d" % n)(x))
                n += 1
            else:
                x = F.max_pool2d(x, 2)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x.flatten(1))))))


class ConvNorm(nn.Module):
    def __init__(self, i, o, kernel, stride):
        super().__init__()
        self.conv = nn.Conv2d(i, o, kernel, stride, kernel // 2, bias=False)
        self.norm = nn.BatchNorm2d(o)

    def forward(self, x):
        return self.norm(self.conv(x))


class Bottleneck(nn.Module):
    def __init__(self, i, width, stride, down):
        super().__init__()
        self.a, self.b = ConvNorm(i, width, 1, 1), ConvNorm(width, width, 3, stride)
        self.c = ConvNorm(width, width * 4, 1, 1)
        self.down = ConvNorm(i, width * 4, 1, stride) if down else None

    def forward(self, x):
        y = self.c(F.relu(self.b(F.relu(self.a(x)))))
        return F.relu(y + (self.down(x) if self.down is not None else x))


class Resnet50(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = ConvNorm(3, 64, 7, 2)
        i = 64
        for stage, blocks in enumerate((3, 4, 6, 3)):
            parts = []
            for b in range(blocks):
                parts.append(Bottleneck(i, 64 << stage, 2 if stage and not b else 1, b == 0))
                i = (64 << stage) * 4
            setattr(self, "layer%d" % stage, nn.Sequential(*parts))
        self.fc = nn.Linear(2048, 1000)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.stem(x)), 3, 2, 1)
        for stage in range(4):
            x = getattr(self, "layer%d" % stage)(x)
        return self.fc(x.mean((2, 3)))


class Block(nn.Module):
    """BERT's block (norms behind) or GPT's (norms before, causal)."""

    def __init__(self, width, heads, gpt):
        super().__init__()
        self.heads, self.gpt = heads, gpt
        for name in ("query", "key", "value", "out"):
            setattr(self, name, nn.Linear(width, width))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.attention_norm = nn.LayerNorm(width)
        setattr(self, "mlp_norm" if gpt else "output_norm", nn.LayerNorm(width))

    def attend(self, x):
        b, s, width = x.shape
        q, k, v = (f(x).view(b, s, self.heads, -1).transpose(1, 2) for f in (self.query, self.key, self.value))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.gpt)
        return self.out(y.transpose(1, 2).reshape(b, s, width))

    def forward(self, x):
        if self.gpt:
            x = x + self.attend(self.attention_norm(x))
            return x + self.down(F.gelu(self.up(self.mlp_norm(x))))
        x = self.attention_norm(x + self.attend(x))
        return self.output_norm(x + self.down(F.gelu(self.up(x))))


def build(w):
    """The module, filled, and its arguments."""
    kind = w["kind"]
    if kind == "scalar":
        return torch.add, [torch.from_numpy(data.inputs(n, (1,))) for n in "ab"]
    if kind == "fused":
        return Fused(w["op"], w["columns"]).eval(), [tensor(data.inputs("x", (w["rows"], w["columns"]), 3), w)]
    if kind == "mlp":
        module, shape = Mlp(), (w["batch"], 784)
    elif kind in ("vgg19", "resnet50"):
        module, shape = (Vgg19() if kind == "vgg19" else Resnet50()), (w["batch"], 3, 224, 224)
    elif kind == "bert":
        module, shape = Block(768, 12, False), (w["batch"], w["tokens"], 768)
    elif kind == "gpt":
        module, shape = Block(384, 6, True), (w["batch"], w["tokens"], 384)
    else:
        raise data.Missing("no runner for " + kind)
    module = fill(module, "").eval()
    x = tensor(data.inputs("x", shape), w)
    if w.get("dtype") == "bf16":
        module = module.to(torch.bfloat16)
    if len(shape) == 4:  # what PyTorch recommends for convolutions on CPUs
        module, x = module.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    return module, [x]


# ---- compiling a Llama of 1.1B ------------------------------------------------------------------------------
class LlamaLayer(nn.Module):
    def __init__(self, hidden=2048, ffn=5632, heads=32, kv=4):
        super().__init__()
        self.heads, self.kv, self.size = heads, kv, hidden // heads
        linear = lambda i, o: nn.Linear(i, o, bias=False)
        self.q, self.k, self.v = linear(hidden, hidden), linear(hidden, kv * self.size), linear(hidden, kv * self.size)
        self.o, self.gate, self.up, self.down = (
            linear(hidden, hidden), linear(hidden, ffn), linear(hidden, ffn), linear(ffn, hidden))
        self.norm1, self.norm2 = nn.RMSNorm(hidden, 1e-5), nn.RMSNorm(hidden, 1e-5)

    def rotate(self, x, cos, sin):
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    def forward(self, x, cos, sin, keys, values, past):
        s = x.shape[1]
        h = self.norm1(x)
        q = self.rotate(self.q(h).view(1, s, self.heads, -1).transpose(1, 2), cos, sin)
        k = self.rotate(self.k(h).view(1, s, self.kv, -1).transpose(1, 2), cos, sin)
        v = self.v(h).view(1, s, self.kv, -1).transpose(1, 2)
        keys.index_copy_(2, past, k)
        values.index_copy_(2, past, v)
        mask = torch.arange(keys.shape[2])[None, :] <= past[:, None]
        y = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask, enable_gqa=True)
        x = x + self.o(y.transpose(1, 2).reshape(1, s, -1))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    def __init__(self, layers=22, vocab=32000, hidden=2048, context=512):
        super().__init__()
        self.embed = nn.Embedding(vocab, hidden)
        self.layers = nn.ModuleList(LlamaLayer() for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(hidden, 1e-5), nn.Linear(hidden, vocab, bias=False)
        for i in range(layers):
            self.register_buffer("k%d" % i, torch.zeros(1, 4, context, 64, dtype=torch.bfloat16))
            self.register_buffer("v%d" % i, torch.zeros(1, 4, context, 64, dtype=torch.bfloat16))
        self.register_buffer("frequency", 10000.0 ** (-torch.arange(0, 64, 2).float() / 64))

    def forward(self, ids, past):
        angle = past[:, None].float() * self.frequency[None]
        cos, sin = angle.cos().to(torch.bfloat16), angle.sin().to(torch.bfloat16)
        x = self.embed(ids)
        for i, layer in enumerate(self.layers):
            x = layer(x, cos, sin, getattr(self, "k%d" % i), getattr(self, "v%d" % i), past)
        return self.head(self.norm(x[:, -1:]))


def compile_llama(w, compiled):
    """Seconds of torch.compile for one token's step of the 1.1B model, without the step itself."""
    if not compiled:
        raise data.Missing("eager compiles nothing")
    import os
    import shutil
    import tempfile

    import torch._inductor.config as config

    config.freezing = False  # packs weights: 2 GB of copies that are not compiling
    cold = w.get("cold", False)
    kept = tempfile.mkdtemp(prefix="lightcone-bench-")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = kept
    with torch.device("meta"):
        model = Llama()
    model = model.to(torch.bfloat16).to_empty(device="cpu").eval()
    model.frequency = 10000.0 ** (-torch.arange(0, 64, 2).float() / 64)
    for p in model.parameters():
        p.data.fill_(0.01)
    ids, past = torch.zeros(1, 1, dtype=torch.long), torch.tensor([5])

    def timed():
        torch._dynamo.reset()
        if cold:
            shutil.rmtree(kept, ignore_errors=True)
        f = torch.compile(model, dynamic=False)
        with torch.no_grad():
            begin = time.perf_counter()
            f(ids, past)
            both = time.perf_counter() - begin
            begin = time.perf_counter()
            f(ids, past)
        return both - (time.perf_counter() - begin)

    if not cold:
        timed()
    return {"timed": timed, "facts": {"note": "bf16, one token's step, without the step"}}
