#!/usr/bin/env python3
"""Networks written in JAX, as StableHLO text with inputs and results: programs that no code of ours wrote.

    tools/make_jax_modules.py FOLDER [--only NAME]

writes NAME.mlir, NAME.in.npz (arg0, arg1, ...) and NAME.out.npz (out0, ...) for each network; JAX computes the results.
"""
import argparse
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax


def normal(rng, *shape, scale=None):
    scale = scale if scale is not None else 1 / np.sqrt(shape[0] if len(shape) < 4 else np.prod(shape[:-1]))
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def layer_norm(x, p):
    mean = x.mean(-1, keepdims=True)
    var = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(var + 1e-5) * p["g"] + p["b"]


def attention(x, p, heads, causal):
    b, t, d = x.shape
    q, k, v = jnp.split(x @ p["qkv"] + p["qkv_b"], 3, -1)
    q, k, v = (a.reshape(b, t, heads, d // heads).transpose(0, 2, 1, 3) for a in (q, k, v))
    s = jnp.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(d // heads)
    if causal:
        s = jnp.where(jnp.tril(jnp.ones((t, t), bool)), s, -jnp.inf)
    y = jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(s, -1), v)
    return y.transpose(0, 2, 1, 3).reshape(b, t, d) @ p["out"] + p["out_b"]


def block(x, p, heads, causal, pre):
    norm = layer_norm
    if pre:
        x = x + attention(norm(x, p["n1"]), p, heads, causal)
        return x + jax.nn.gelu(norm(x, p["n2"]) @ p["up"] + p["up_b"]) @ p["down"] + p["down_b"]
    x = norm(x + attention(x, p, heads, causal), p["n1"])
    return norm(x + jax.nn.gelu(x @ p["up"] + p["up_b"], approximate=False) @ p["down"] + p["down_b"], p["n2"])


def block_weights(rng, d, hidden):
    n = lambda: {"g": normal(rng, d, scale=0.1) + 1, "b": normal(rng, d, scale=0.1)}
    return {"n1": n(), "n2": n(), "qkv": normal(rng, d, 3 * d), "qkv_b": normal(rng, 3 * d, scale=0.1), "out": normal(rng, d, d),
            "out_b": normal(rng, d, scale=0.1), "up": normal(rng, d, hidden), "up_b": normal(rng, hidden, scale=0.1),
            "down": normal(rng, hidden, d), "down_b": normal(rng, d, scale=0.1)}


def gpt_block(rng):
    """GPT-2 small's block: [1, 128, 768], 12 heads."""
    return lambda p, x: block(x, p, 12, True, True), (block_weights(rng, 768, 3072), normal(rng, 1, 128, 768, scale=1))


def gpt_loss_gradients(rng):
    """The gradients of a small GPT's loss: embedding, two blocks, cross entropy."""
    d, vocabulary = 64, 97
    p = {"wte": normal(rng, vocabulary, d, scale=0.5), "wpe": normal(rng, 32, d, scale=0.1),
         "blocks": [block_weights(rng, d, 4 * d) for _ in range(2)], "n": {"g": np.ones(d, np.float32), "b": np.zeros(d, np.float32)}}

    def loss(p, ids, targets):
        x = p["wte"][ids] + p["wpe"]
        for b in p["blocks"]:
            x = block(x, b, 4, True, True)
        logits = layer_norm(x, p["n"]) @ p["wte"].T
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], -1).mean()

    ids = rng.integers(0, vocabulary, (2, 33)).astype(np.int32)
    return jax.value_and_grad(loss), (p, ids[:, :-1], ids[:, 1:])


def bert(rng):
    """BERT-base's encoder with 4 of its 12 layers: ids [1, 128]."""
    d = 768
    p = {"word": normal(rng, 30522, d, scale=0.05), "place": normal(rng, 512, d, scale=0.05), "kind": normal(rng, 2, d, scale=0.05),
         "n": {"g": np.ones(d, np.float32), "b": np.zeros(d, np.float32)}, "blocks": [block_weights(rng, d, 3072) for _ in range(4)]}

    def f(p, ids, kinds):
        x = layer_norm(p["word"][ids] + p["place"][:ids.shape[1]] + p["kind"][kinds], p["n"])
        for b in p["blocks"]:
            x = block(x, b, 12, False, False)
        return x

    return f, (p, rng.integers(0, 30522, (1, 128)).astype(np.int32), rng.integers(0, 2, (1, 128)).astype(np.int32))


def conv(x, w, stride=1):
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def bottleneck(x, p, stride):
    norm = lambda x, n: (x - n["m"]) * (lax.rsqrt(n["v"] + 1e-5) * n["g"]) + n["b"]
    y = jax.nn.relu(norm(conv(x, p["c1"]), p["n1"]))
    y = jax.nn.relu(norm(conv(y, p["c2"], stride), p["n2"]))
    y = norm(conv(y, p["c3"]), p["n3"])
    return jax.nn.relu(y + (norm(conv(x, p["c0"], stride), p["n0"]) if "c0" in p else x))


def resnet(rng, layers, size, width):
    bn = lambda n: {"m": normal(rng, n, scale=0.1), "v": np.abs(normal(rng, n, scale=0.1)) + 1, "g": normal(rng, n, scale=0.1) + 1,
                    "b": normal(rng, n, scale=0.1)}
    p, inside = {"stem": normal(rng, 7, 7, 3, width), "n": bn(width), "blocks": []}, width
    strides = []
    for stage, count in enumerate(layers):
        out = width * 2 ** stage
        for k in range(count):
            b = {"c1": normal(rng, 1, 1, inside, out), "n1": bn(out), "c2": normal(rng, 3, 3, out, out), "n2": bn(out),
                 "c3": normal(rng, 1, 1, out, 4 * out), "n3": bn(4 * out)}
            if k == 0:
                b |= {"c0": normal(rng, 1, 1, inside, 4 * out), "n0": bn(4 * out)}
            p["blocks"].append(b)
            strides.append(2 if k == 0 and stage > 0 else 1)
            inside = 4 * out
    p["fc"], p["fc_b"] = normal(rng, inside, 1000), normal(rng, 1000, scale=0.1)

    def f(p, x):
        x = jax.nn.relu((conv(x, p["stem"], 2) - p["n"]["m"]) * (lax.rsqrt(p["n"]["v"] + 1e-5) * p["n"]["g"]) + p["n"]["b"])
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        for b, s in zip(p["blocks"], strides):
            x = bottleneck(x, b, s)
        return x.mean((1, 2)) @ p["fc"] + p["fc_b"]

    return f, (p, normal(rng, 1, size, size, 3, scale=1))


def resnet50(rng):
    """ResNet-50, NHWC, normalisation by running statistics."""
    return resnet(rng, (3, 4, 6, 3), 224, 64)


def small_resnet_gradients(rng):
    """The gradients of a small ResNet's loss."""
    f, (p, x) = resnet(rng, (1, 1), 32, 8)
    x = np.concatenate([x, x * 0.5])
    return jax.value_and_grad(lambda p, x: (jax.nn.log_softmax(f(p, x))[:, 3] ** 2).mean()), (p, x)


def lstm(rng):
    """An LSTM over 30 steps: lax.scan is a while loop."""
    d = 32
    p = {"w": normal(rng, 2 * d, 4 * d), "b": normal(rng, 4 * d, scale=0.1)}

    def f(p, xs):
        def step(s, x):
            h, c = s
            i, g, o, n = jnp.split(jnp.concatenate([x, h], -1) @ p["w"] + p["b"], 4, -1)
            c = jax.nn.sigmoid(g) * c + jax.nn.sigmoid(i) * jnp.tanh(n)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h
        zero = jnp.zeros((xs.shape[1], d))
        return lax.scan(step, (zero, zero), xs)

    return jax.value_and_grad(lambda p, xs: (f(p, xs)[1] ** 2).mean()), (p, normal(rng, 30, 4, d, scale=1))


def random_numbers(rng):
    """Threefry in integer operations, dropout, normal and categorical draws."""
    def f(key, x):
        a, b, c = jax.random.split(key, 3)
        return (jax.random.normal(a, (64,)), jnp.where(jax.random.bernoulli(b, 0.5, x.shape), x * 2, 0), jax.random.permutation(c, 17),
                jax.random.categorical(a, x), jax.random.bits(c, (33,)))
    return f, (np.array([0, 42], np.uint32), normal(rng, 8, 10, scale=1))


def searches(rng):
    """Sorts, searches, tops, cumulative sums, indexed updates, a while loop of unknown length."""
    def f(x, ids):
        y = x.at[ids].add(1.0).at[:, 3].max(0.0).at[2:5].multiply(2.0)
        newton = lax.while_loop(lambda s: jnp.abs(s[0] * s[0] - s[1]) > 1e-4, lambda s: (0.5 * (s[0] + s[1] / s[0]), s[1]), (jnp.float32(3), jnp.float32(2)))[0]
        return (jnp.sort(x, 0), jnp.argsort(x, -1), lax.top_k(x, 3), jnp.cumsum(x, 0), jnp.cumprod(x * 0.5 + 1, 1), jnp.searchsorted(jnp.sort(x[:, 0]), x[:, 1]),
                jnp.argmax(x, 1), y, newton, lax.cond(x[0, 0] > 0, lambda v: v + 1, lambda v: v - 1, x), jnp.median(x, 0), jnp.unique(ids, size=5))
    return f, (normal(rng, 12, 10, scale=1), rng.integers(0, 12, 7).astype(np.int32))


def open_block(rng):
    """A block of which the module leaves batch and length open, called with 2 and 7."""
    return lambda p, x: block(x, p, 4, True, True)[:, ::2], (block_weights(rng, 64, 256), normal(rng, 2, 7, 64, scale=1))


def spectra(rng):
    """Complex numbers: filters by Fourier transforms of all kinds of lengths with their gradient, rotary positions as
    turns of complex numbers, a recurrence with a complex state."""
    def filtered(p, x):
        spectrum = jnp.fft.rfft(x, axis=-1)
        y = jnp.fft.irfft(spectrum * (p["re"] + 1j * p["im"]), n=x.shape[-1], axis=-1)
        return y, jnp.abs(jnp.fft.fftn(x.astype(jnp.complex64), axes=(0, 2)))

    def rotary(x):
        pairs = x[..., ::2] + 1j * x[..., 1::2]
        turn = jnp.exp(1j * jnp.arange(x.shape[1])[:, None] * 0.1 ** jnp.arange(x.shape[-1] // 2))
        turned = pairs * turn
        return jnp.stack([turned.real, turned.imag], -1).reshape(x.shape)

    def recurrence(p, x):
        decay = jnp.exp(-jnp.abs(p["re"]) + 1j * p["im"])
        last, all_states = lax.scan(lambda h, u: (decay * h + u, h.real), jnp.zeros(p["re"].shape, jnp.complex64), x)
        return all_states, jnp.angle(last), jnp.sqrt(last), jnp.log(last), jnp.tanh(last)

    def f(p, x):
        loss = lambda p: (filtered(p, x)[0] ** 2).sum() + (rotary(x[:, :, :64]) * p["re"][0]).sum()
        states = recurrence({k: v[:33] for k, v in p.items()}, x[0, :, :33])
        return filtered(p, x), rotary(x[:, :, :64]), states, jax.grad(loss)(p)

    n = 67 + 33
    return f, ({"re": normal(rng, n // 2 + 1, scale=1), "im": normal(rng, n // 2 + 1, scale=1)}, normal(rng, 3, 7, n, scale=1))


def exported(f, arguments):
    """With b and t in place of the last argument's first extents."""
    b, t = export.symbolic_shape("b, t")
    kept = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), arguments[:-1])
    x = arguments[-1]
    return export.export(f)(*kept, jax.ShapeDtypeStruct((b, t, *x.shape[2:]), x.dtype)).mlir_module()


NETWORKS = [open_block, gpt_block, gpt_loss_gradients, bert, resnet50, small_resnet_gradients, lstm, random_numbers, searches, spectra]


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder", type=pathlib.Path)
    p.add_argument("--only")
    o = p.parse_args()
    o.folder.mkdir(parents=True, exist_ok=True)
    for network in NETWORKS:
        name = network.__name__
        if o.only and name != o.only:
            continue
        f, arguments = network(np.random.default_rng(len(name)))
        jitted = jax.jit(f, keep_unused=True)
        text = exported(jitted, arguments) if network is open_block else jitted.lower(*arguments).as_text()
        (o.folder / (name + ".mlir")).write_text(text)
        flat, _ = jax.tree.flatten(arguments)
        with jax.default_matmul_precision("highest"):
            results, _ = jax.tree.flatten(jitted(*arguments))
        np.savez(o.folder / (name + ".in.npz"), **{"arg%d" % k: np.asarray(a) for k, a in enumerate(flat)})
        np.savez(o.folder / (name + ".out.npz"), **{"out%d" % k: np.asarray(r) for k, r in enumerate(results)})
        print("%-24s %3d arguments, %2d results, %d lines" % (name, len(flat), len(results), text.count("\n")))


if __name__ == "__main__":
    main()
