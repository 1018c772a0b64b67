#!/usr/bin/env python3
"""Writes reference.json: what the story model says, computed in f64 with numpy alone.

    python3 reference.py
"""
import json
import os
import struct

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


def read_gguf(path):
    b = open(path, "rb").read()
    at = 8
    sizes = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}

    def take(f):
        nonlocal at
        v = struct.unpack_from("<" + f, b, at)[0]
        at += struct.calcsize("<" + f)
        return v

    def text():
        nonlocal at
        n = take("Q")
        at += n
        return b[at - n:at].decode()

    def value(t):
        if t == 8:
            return text()
        if t == 9:
            kind, n = take("I"), take("Q")
            return [value(kind) for _ in range(n)]
        return take(sizes[t])

    tensors, count = take("Q"), take("Q")
    meta = {}
    for _ in range(count):
        key = text()
        meta[key] = value(take("I"))
    infos = []
    for _ in range(tensors):
        name = text()
        dims = [take("Q") for _ in range(take("I"))]
        infos.append((name, dims[::-1], take("I"), take("Q")))
    data = (at + 31) // 32 * 32
    w = {}
    for name, shape, kind, offset in infos:
        n = int(np.prod(shape))
        if kind == 0:
            v = np.frombuffer(b, "<f4", n, data + offset)
        else:  # bf16
            v = (np.frombuffer(b, "<u2", n, data + offset).astype(np.uint32) << 16).view(np.float32)
        w[name] = v.reshape(shape).astype(np.float64)
    return meta, w


def logits(meta, w, ids):
    heads, kv = meta["llama.attention.head_count"], meta["llama.attention.head_count_kv"]
    dim, n = meta["llama.embedding_length"], len(ids)
    hd, eps = dim // heads, meta["llama.attention.layer_norm_rms_epsilon"]
    angle = np.arange(n)[:, None] / meta["llama.rope.freq_base"] ** (np.arange(0, hd, 2) / hd)
    cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
    norm = lambda x, g: x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * g

    def rotate(x):
        a, b = x[..., 0::2], x[..., 1::2]
        return np.stack([a * cos - b * sin, a * sin + b * cos], -1).reshape(x.shape)

    x = w["token_embd.weight"][ids]
    for i in range(meta["llama.block_count"]):
        p = "blk.%d." % i
        h = norm(x, w[p + "attn_norm.weight"])
        q = rotate((h @ w[p + "attn_q.weight"].T).reshape(n, heads, hd))
        k = rotate((h @ w[p + "attn_k.weight"].T).reshape(n, kv, hd))
        v = (h @ w[p + "attn_v.weight"].T).reshape(n, kv, hd)
        k, v = np.repeat(k, heads // kv, 1), np.repeat(v, heads // kv, 1)
        s = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(hd)
        s = np.where(np.tril(np.ones((n, n), bool)), s, -np.inf)
        s = np.exp(s - s.max(-1, keepdims=True))
        s /= s.sum(-1, keepdims=True)
        x = x + np.einsum("hqk,khd->qhd", s, v).reshape(n, dim) @ w[p + "attn_output.weight"].T
        h = norm(x, w[p + "ffn_norm.weight"])
        g = h @ w[p + "ffn_gate.weight"].T
        x = x + (g / (1 + np.exp(-g)) * (h @ w[p + "ffn_up.weight"].T)) @ w[p + "ffn_down.weight"].T
    return norm(x, w["output_norm.weight"]) @ w["token_embd.weight"].T


def main():
    meta, w = read_gguf(os.path.join(HERE, "story.gguf"))
    pieces = meta["tokenizer.ggml.tokens"]
    ids = [1]
    while len(ids) < 250 and ids[-1] != 2:
        ids.append(int(logits(meta, w, ids)[-1].argmax()))
    text = "".join(pieces[i] for i in ids if i > 2).replace("\u2581", " ").lstrip()
    last = logits(meta, w, ids)[-1]
    with open(os.path.join(HERE, "reference.json"), "w") as f:
        json.dump({"ids": ids, "text": text, "last_logits": [round(float(v), 6) for v in last]}, f)
        f.write("\n")
    print(text)


if __name__ == "__main__":
    main()
