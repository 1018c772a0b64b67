"""JAX on XLA's CPU back end: one jitted function, weights as arguments on the device, float32 products in full precision."""
import functools

import jax
import jax.numpy as jnp
import numpy as np

import data


class Weights(dict):
    """Parameters by name, made when a name is first asked for."""

    def __init__(self, dtype):
        super().__init__()
        self.dtype = dtype

    def take(self, name, shape):
        if name not in self:
            with jax.ensure_compile_time_eval():  # a value, also while a function is being traced
                self[name] = jnp.asarray(data.parameter(name, shape)).astype(self.dtype)
        return self[name]


def dense(p, x, name, i, o):
    return x @ p.take(name + ".weight", (o, i)).T + p.take(name + ".bias", (o,))


def norm(p, x, name, width):
    mean = x.mean(-1, keepdims=True)
    var = ((x - mean) ** 2).mean(-1, keepdims=True)
    y = (x - mean) * jax.lax.rsqrt(var + 1e-5)
    return y * p.take(name + "norm.weight", (width,)) + p.take(name + "norm.bias", (width,))


gelu = functools.partial(jax.nn.gelu, approximate=False)


def conv(p, x, name, i, o, kernel, stride):
    """NHWC with HWIO filters: what XLA's CPU convolution is written for."""
    k = p.take(name + ".weight", (o, i, kernel, kernel)).transpose(2, 3, 1, 0)
    return jax.lax.conv_general_dilated(
        x, k, (stride, stride), [(kernel // 2, kernel // 2)] * 2, dimension_numbers=("NHWC", "HWIO", "NHWC"))


def pool(x, size, stride, pad):
    return jax.lax.reduce_window(
        x, -jnp.inf, jax.lax.max, (1, size, size, 1), (1, stride, stride, 1), ((0, 0), (pad, pad), (pad, pad), (0, 0)))


def vgg19(p, x):
    channels, n = 3, 0
    for width in (64, 64, 0, 128, 128, 0, 256, 256, 256, 256, 0, 512, 512, 512, 512, 0, 512, 512, 512, 512, 0):
        if not width:
            x = pool(x, 2, 2, 0)
            continue
        x = jax.nn.relu(conv(p, x, "conv%d" % n, channels, width, 3, 1) + p.take("conv%d.bias" % n, (width,)))
        channels, n = width, n + 1
    x = x.transpose(0, 3, 1, 2).reshape(x.shape[0], -1)
    x = jax.nn.relu(dense(p, x, "fc1", 25088, 4096))
    return dense(p, jax.nn.relu(dense(p, x, "fc2", 4096, 4096)), "fc3", 4096, 1000)


def resnet50(p, x):
    def conv_norm(x, name, i, o, kernel, stride):
        y = conv(p, x, name + ".conv", i, o, kernel, stride)
        part = lambda n: p.take("%s.norm.%s" % (name, n), (o,))
        return (y - part("running_mean")) * (jax.lax.rsqrt(part("running_var") + 1e-5) * part("weight")) + part("bias")

    x, i = pool(jax.nn.relu(conv_norm(x, "stem", 3, 64, 7, 2)), 3, 2, 1), 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for b in range(blocks):
            name, width, stride = "layer%d.%d" % (stage, b), 64 << stage, 2 if stage and not b else 1
            y = jax.nn.relu(conv_norm(x, name + ".a", i, width, 1, 1))
            y = jax.nn.relu(conv_norm(y, name + ".b", width, width, 3, stride))
            y = conv_norm(y, name + ".c", width, width * 4, 1, 1)
            x = jax.nn.relu(y + (conv_norm(x, name + ".down", i, width * 4, 1, stride) if b == 0 else x))
            i = width * 4
    return dense(p, x.mean((1, 2)), "fc", 2048, 1000)


def block(gpt, p, x):
    width, heads = (384, 6) if gpt else (768, 12)
    batch, seq, _ = x.shape

    def attend(x):
        q, k, v = (dense(p, x, n, width, width).reshape(batch, seq, heads, -1) for n in ("query", "key", "value"))
        y = jax.nn.dot_product_attention(q, k, v, is_causal=gpt)
        return dense(p, y.reshape(batch, seq, width), "out", width, width)

    feed = lambda x: dense(p, gelu(dense(p, x, "up", width, 4 * width)), "down", 4 * width, width)
    if gpt:
        x = x + attend(norm(p, x, "attention_", width))
        return x + feed(norm(p, x, "mlp_", width))
    x = norm(p, x + attend(x), "attention_", width)
    return norm(p, x + feed(x), "output_", width)


def fused(op, columns, p, x):
    if op == "gelu":
        return gelu(x)
    if op == "softmax":
        return jax.nn.softmax(x, -1)
    if op == "chain":
        return jax.nn.relu(x * p.take("w", (columns,)) + p.take("b", (columns,))) * 2 + x
    y = norm(p, x, "", columns)
    return y if op == "layernorm" else jax.nn.softmax(gelu(y), -1)


def mlp(p, x):
    x = jax.nn.relu(dense(p, jax.nn.relu(dense(p, x, "fc1", 784, 512)), "fc2", 512, 512))
    return dense(p, x, "fc3", 512, 10)


def build(w):
    kind = w["kind"]
    if kind == "fused":
        return functools.partial(fused, w["op"], w["columns"]), data.inputs("x", (w["rows"], w["columns"]), 3)
    if kind == "mlp":
        return mlp, data.inputs("x", (w["batch"], 784))
    if kind in ("vgg19", "resnet50"):
        x = data.inputs("x", (w["batch"], 3, 224, 224)).transpose(0, 2, 3, 1)
        return vgg19 if kind == "vgg19" else resnet50, x
    if kind in ("bert", "gpt"):
        return functools.partial(block, kind == "gpt"), data.inputs("x", (w["batch"], w["tokens"], 384 if kind == "gpt" else 768))
    raise data.Missing("no runner for " + kind)


def make(w):
    jax.config.update("jax_default_matmul_precision", "highest")
    if w["kind"] == "scalar":
        f, args = jax.jit(jnp.add), [jnp.asarray(data.inputs(n, (1,))) for n in "ab"]
    elif w["kind"] == "gemm":
        n, m = w["n"], w.get("m", w["n"])
        if w["dtype"] == "int8":
            f = jax.jit(lambda x, y: jax.lax.dot_general(x, y, (((1,), (1,)), ((), ())), preferred_element_type=jnp.int32))
            args = [jnp.asarray(data.int8s(k, (rows, n))) for k, rows in (("x", m), ("w", n))]
        else:
            kind = jnp.bfloat16 if w["dtype"] == "bf16" else jnp.float32
            f = jax.jit(lambda x, y: jnp.matmul(x, y.T, preferred_element_type=jnp.float32))
            args = [jnp.asarray(v).astype(kind) for v in (data.inputs("x", (m, n)), data.parameter("w", (n, n)))]
    else:
        net, x = build(w)
        weights = Weights(jnp.bfloat16 if w.get("dtype") == "bf16" else jnp.float32)
        x = jnp.asarray(x).astype(weights.dtype)
        jax.eval_shape(lambda v: net(weights, v), x)  # a dry run that asks for every parameter
        f = jax.jit(lambda p, v: net(with_values(weights, p), v))
        args = [dict(weights), x]
    y = f(*args).block_until_ready()
    return {"call": lambda: f(*args).block_until_ready(), "answer": lambda: np.asarray(y.astype(jnp.float32)), "keep": args}


def with_values(weights, values):
    given = Weights(weights.dtype)
    given.update(values)
    return given


data.serve(make, lambda: "jax " + jax.__version__)
