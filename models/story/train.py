#!/usr/bin/env python3
"""Trains the default model on text from generate_text.py and writes story.gguf.

    /usr/bin/python3 train.py --minutes 40 --out story.gguf

Needs PyTorch (Debian: python3-torch). The tokenizer is a SentencePiece-style BPE with byte
fallback, trained here; the model is a small Llama (RMSNorm, interleaved RoPE, SwiGLU, grouped
queries, tied embeddings).
"""
import argparse
import collections
import json
import math
import re
import struct
import time

import numpy as np
import torch
import torch.nn.functional as F

from generate_text import stories

DIM, LAYERS, HEADS, KV_HEADS, HIDDEN, CONTEXT = 192, 4, 6, 2, 512, 384
VOCAB, ROPE_THETA, EPS = 1024, 10000.0, 1e-5
UNK, BOS, EOS = 0, 1, 2


# ---- tokenizer ---------------------------------------------------------------------------------
def train_tokenizer(texts):
    """Pieces in the order of their merges; earlier merges have higher scores."""
    counts = collections.Counter()
    for t in texts:
        for word in re.findall(r"\u2581?[A-Za-z']+|\u2581?[^A-Za-z']", ("\u2581" + t.replace(" ", "\u2581"))):
            counts[word] += 1
    words = {w: list(w) for w in counts}
    chars = sorted({c for w in counts for c in w})
    merges = []
    while 3 + 256 + len(chars) + len(merges) < VOCAB:
        pairs = collections.Counter()
        for w, n in counts.items():
            s = words[w]
            for a, b in zip(s, s[1:]):
                pairs[a, b] += n
        if not pairs:
            break
        (a, b), n = max(pairs.items(), key=lambda x: (x[1], x[0]))
        merges.append(a + b)
        for w, s in words.items():
            i = 0
            while i < len(s) - 1:
                if s[i] == a and s[i + 1] == b:
                    s[i:i + 2] = [a + b]
                i += 1
    return merges, chars


class Tokenizer:
    def __init__(self, merges, chars):
        self.pieces = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % b for b in range(256)] + merges + chars
        self.types = [2, 3, 3] + [6] * 256 + [1] * (len(merges) + len(chars))
        self.scores = [0.0] * 259 + [-float(i) for i in range(len(merges))] + [-1e6 - i for i in range(len(chars))]
        self.id = {p: i for i, p in enumerate(self.pieces)}
        self.cache = {}

    def encode_word(self, word):
        s = list(word)
        while True:
            best = None
            for i in range(len(s) - 1):
                k = self.id.get(s[i] + s[i + 1])
                if k is not None and (best is None or self.scores[k] > best[0]):
                    best = (self.scores[k], i)
            if best is None:
                break
            s[best[1]:best[1] + 2] = [s[best[1]] + s[best[1] + 1]]
        out = []
        for p in s:
            out += [self.id[p]] if p in self.id else [3 + b for b in p.encode()]
        return out

    def encode(self, text):
        out = []
        for word in re.findall("\u2581[^\u2581]*", "\u2581" + text.replace(" ", "\u2581")):
            if word not in self.cache:
                self.cache[word] = self.encode_word(word)
            out += self.cache[word]
        return out

    def decode(self, ids):
        return "".join(self.pieces[i] for i in ids if i > 2).replace("\u2581", " ")


# ---- model -------------------------------------------------------------------------------------
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        hd = DIM // HEADS
        lin = lambda i, o: torch.nn.Linear(i, o, bias=False)
        self.attn_norm, self.ffn_norm = torch.nn.Parameter(torch.ones(DIM)), torch.nn.Parameter(torch.ones(DIM))
        self.q, self.k, self.v, self.o = lin(DIM, DIM), lin(DIM, KV_HEADS * hd), lin(DIM, KV_HEADS * hd), lin(DIM, DIM)
        self.gate, self.up, self.down = lin(DIM, HIDDEN), lin(DIM, HIDDEN), lin(HIDDEN, DIM)

    def forward(self, x, rope, mask):
        b, s, _ = x.shape
        hd = DIM // HEADS
        h = norm(x, self.attn_norm)
        q = rotate(self.q(h).view(b, s, HEADS, hd), rope).transpose(1, 2)
        k = rotate(self.k(h).view(b, s, KV_HEADS, hd), rope).transpose(1, 2)
        v = self.v(h).view(b, s, KV_HEADS, hd).transpose(1, 2)
        k, v = (t.repeat_interleave(HEADS // KV_HEADS, 1) for t in (k, v))
        a = (q @ k.transpose(2, 3) / math.sqrt(hd) + mask[:s, :s]).softmax(-1)
        x = x + self.o((a @ v).transpose(1, 2).reshape(b, s, DIM))
        h = norm(x, self.ffn_norm)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


def norm(x, w):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + EPS) * w


def rotate(x, rope):
    cos, sin = rope[0][: x.shape[1], None, :], rope[1][: x.shape[1], None, :]
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)


class Llama(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(VOCAB, DIM)
        self.blocks = torch.nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = torch.nn.Parameter(torch.ones(DIM))
        for n, p in self.named_parameters():
            if p.dim() == 2:
                torch.nn.init.normal_(p, 0, 0.02 / (math.sqrt(2 * LAYERS) if n.endswith(("o.weight", "down.weight")) else 1))
        hd = DIM // HEADS
        angle = torch.arange(CONTEXT)[:, None] / ROPE_THETA ** (torch.arange(0, hd, 2) / hd)
        self.rope = (angle.cos(), angle.sin())
        self.mask = torch.full((CONTEXT, CONTEXT), float("-inf")).triu(1)

    def forward(self, ids):
        x = self.embed(ids)
        for b in self.blocks:
            x = b(x, self.rope, self.mask)
        return norm(x, self.norm) @ self.embed.weight.T


# ---- GGUF --------------------------------------------------------------------------------------
def write_gguf(path, model, tok):
    def s(x):
        b = x.encode()
        return struct.pack("<Q", len(b)) + b

    kv = []
    u32 = lambda k, v: kv.append(s(k) + struct.pack("<II", 4, v))
    f32 = lambda k, v: kv.append(s(k) + struct.pack("<If", 6, v))
    text = lambda k, v: kv.append(s(k) + struct.pack("<I", 8) + s(v))
    text("general.architecture", "llama")
    text("general.name", "Lightcone story model")
    u32("llama.context_length", CONTEXT), u32("llama.embedding_length", DIM), u32("llama.block_count", LAYERS)
    u32("llama.feed_forward_length", HIDDEN), u32("llama.attention.head_count", HEADS)
    u32("llama.attention.head_count_kv", KV_HEADS), u32("llama.rope.dimension_count", DIM // HEADS)
    u32("llama.vocab_size", VOCAB)
    f32("llama.attention.layer_norm_rms_epsilon", EPS), f32("llama.rope.freq_base", ROPE_THETA)
    text("tokenizer.ggml.model", "llama")
    kv.append(s("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, VOCAB) + b"".join(map(s, tok.pieces)))
    kv.append(s("tokenizer.ggml.scores") + struct.pack("<IIQ", 9, 6, VOCAB) + np.array(tok.scores, "<f4").tobytes())
    kv.append(s("tokenizer.ggml.token_type") + struct.pack("<IIQ", 9, 5, VOCAB) + np.array(tok.types, "<i4").tobytes())
    u32("tokenizer.ggml.unknown_token_id", UNK), u32("tokenizer.ggml.bos_token_id", BOS), u32("tokenizer.ggml.eos_token_id", EOS)
    names = {"embed.weight": "token_embd.weight", "norm": "output_norm.weight"}
    for i in range(LAYERS):
        for ours, theirs in dict(attn_norm="attn_norm", ffn_norm="ffn_norm", **{"q.weight": "attn_q", "k.weight": "attn_k", "v.weight": "attn_v",
                                 "o.weight": "attn_output", "gate.weight": "ffn_gate", "up.weight": "ffn_up", "down.weight": "ffn_down"}).items():
            names["blocks.%d.%s" % (i, ours)] = "blk.%d.%s.weight" % (i, theirs)
    infos, data = [], b""
    for n, p in model.named_parameters():
        w = p.detach().float()
        matrix = w.dim() == 2
        raw = w.to(torch.bfloat16).view(torch.int16).numpy().tobytes() if matrix else w.numpy().tobytes()
        data += b"\0" * (-len(data) % 32)
        infos.append(s(names[n]) + struct.pack("<I", w.dim()) + b"".join(struct.pack("<Q", d) for d in reversed(w.shape)) +
                     struct.pack("<IQ", 30 if matrix else 0, len(data)))
        data += raw
    head = b"GGUF" + struct.pack("<IQQ", 3, len(infos), len(kv)) + b"".join(kv) + b"".join(infos)
    with open(path, "wb") as f:
        f.write(head + b"\0" * (-len(head) % 32) + data)


# ---- training ----------------------------------------------------------------------------------
def batches(tok, seed, batch):
    source, buffer = stories(seed), []
    while True:
        rows = []
        for _ in range(batch):
            while len(buffer) < CONTEXT + 1:  # every window begins with a story
                buffer += [BOS] + tok.encode(next(source)) + [EOS]
            rows.append(buffer[: CONTEXT + 1])
            buffer = buffer[CONTEXT + 1:]
            buffer = buffer[buffer.index(BOS):] if BOS in buffer else []
        yield torch.tensor(rows)


def loss_of(model, x):
    return F.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--minutes", type=float, default=40)
    p.add_argument("--batch", type=int, default=12)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--out", default="story.gguf")
    a = p.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(a.threads)
    source = stories(0)
    tok = Tokenizer(*train_tokenizer([next(source) for _ in range(4000)]))
    model = Llama()
    print("parameters", sum(x.numel() for x in model.parameters()), flush=True)
    opt = torch.optim.AdamW(model.parameters(), lr=a.lr, betas=(0.9, 0.95), weight_decay=0.05)
    held_out = next(batches(tok, 999, 32))
    start, step, tokens, saved = time.time(), 0, 0, 0
    for x in batches(tok, 1, a.batch):
        done = (time.time() - start) / (a.minutes * 60)
        if done >= 1:
            break
        for g in opt.param_groups:
            g["lr"] = a.lr * min(1, (step + 1) / 100) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * done)))
        loss = loss_of(model, x)
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        step, tokens = step + 1, tokens + x.numel()
        if step % 50 == 0:
            with torch.no_grad():
                v = loss_of(model, held_out).item()
            print("step %d tokens %d loss %.4f held out %.4f minutes %.1f" % (step, tokens, loss.item(), v, (time.time() - start) / 60), flush=True)
            if time.time() - saved > 120:
                write_gguf(a.out, model, tok)
                saved = time.time()
    write_gguf(a.out, model, tok)
    ids = [BOS] + tok.encode("Once upon a time")
    with torch.no_grad():
        while len(ids) < CONTEXT and ids[-1] != EOS:
            ids.append(int(model(torch.tensor([ids]))[0, -1].argmax()))
    print(tok.decode(ids))
    print(json.dumps({"steps": step, "tokens": tokens}))


if __name__ == "__main__":
    main()
