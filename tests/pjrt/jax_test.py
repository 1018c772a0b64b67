#!/usr/bin/env python3
"""JAX programs give the same numbers on lightcone_pjrt.so as on JAX's own CPU.

    jax_test.py /path/lightcone_pjrt.so

Where neither python nor the one that LIGHTCONE_JAX names has jax, it exits with 77: skipped.
"""
import os
import shutil
import subprocess
import sys

SKIPPED = 77


def python_with_jax():
    for python in (os.environ.get("LIGHTCONE_JAX"), sys.executable):
        if python and shutil.which(python):
            if not subprocess.run([python, "-c", "import jax, jaxlib"], capture_output=True).returncode:
                return python
    return None


if len(sys.argv) != 3:
    python = python_with_jax()
    if not python:
        print("skipped: no python with jax is here (LIGHTCONE_JAX names one)")
        sys.exit(SKIPPED)
    environment = dict(os.environ, PJRT_NAMES_AND_LIBRARY_PATHS="lightcone:" + os.path.abspath(sys.argv[1]),
                       JAX_PLATFORMS="lightcone,cpu")
    sys.exit(subprocess.run([python, __file__, sys.argv[1], "--here"], env=environment).returncode)

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

HERE, THERE = jax.devices("lightcone")[0], jax.devices("cpu")[0]
X = np.random.default_rng(1).standard_normal((4, 6)).astype(np.float32)
Z = (X + 1j * np.random.default_rng(4).standard_normal((4, 6))).astype(np.complex64)
IMAGE = np.random.default_rng(2).standard_normal((2, 3, 8, 8)).astype(np.float32)
KERNEL = np.random.default_rng(3).standard_normal((5, 3, 3, 3)).astype(np.float32)


def pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


# What is held against JAX's CPU: a function of arrays, and the arrays.
PROGRAMS = {
    "elementwise": (lambda x: (jnp.tanh(x), jnp.exp(x) - 1, jnp.sqrt(jnp.abs(x)), x // 0.3, jnp.sign(x), x ** 3), X),
    "erf, gamma": (lambda x: (jax.scipy.special.erf(x), jax.scipy.special.gammaln(jnp.abs(x) + 1)), X),
    "no numbers": (lambda x: (x / 0, jnp.log(-jnp.abs(x)), -x * 0), X),
    "integers": (lambda x: ((x * 10).astype(jnp.int32) // 3, (x * 100).astype(jnp.uint8) >> 2, x > 0), X),
    "f8": (lambda x: (x.astype(jnp.float8_e4m3fn), (x * 400).astype(jnp.float8_e4m3fn).astype(jnp.float32), x.astype(jnp.float8_e5m2) * 2), X),
    "bf16, f16": (lambda x: (x.astype(jnp.bfloat16) * 2, x.astype(jnp.float16).sum(1)), X),
    "constants": (lambda x: (jnp.where(jnp.array([True, False, True, True, False, False]), x, 7), x + np.arange(24).reshape(4, 6) ** 2), X),
    "products": (lambda x: (x @ x.T, jnp.einsum("ij,kj->ikj", x, x), jnp.outer(x[0], x[1])), X),
    "reductions": (lambda x: (x.sum(), x.max(0), x.prod(1), jnp.argmax(x, 1), jnp.var(x), (x > 0).any(1)), X),
    "cumulative": (lambda x: (jnp.cumsum(x, 1), lax.cummax(x, 0), jax.nn.logsumexp(x, 1)), X),
    "sort": (lambda x: (jnp.sort(x), jnp.argsort(x, 0), jnp.median(x, 1), lax.top_k(x, 3)), X),
    "indices": (lambda x: (x[jnp.array([2, 0, 2])], x.at[jnp.array([1, 1, 3])].add(2.0), x.at[0].set(0), x[::-1, 1:5:2], jnp.roll(x, 2, 1)), X),
    "slices": (lambda x, i: (lax.dynamic_slice(x, (i, 2), (2, 3)), lax.dynamic_update_slice(x, x[:1] * 0, (i, 0))), X, np.int32(1)),
    "scan": (lambda x: lax.scan(lambda c, r: (c + r, c * r), jnp.zeros(6), x), X),
    "while": (lambda x: lax.while_loop(lambda c: c.sum() < 100, lambda c: c * 1.5, jnp.abs(x)), X),
    "fori": (lambda x: lax.fori_loop(0, 5, lambda i, c: c + i * x, x), X),
    "cond": (lambda x: (lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x), lax.switch(2, [lambda v: v, lambda v: -v, lambda v: v * 2], x)), X),
    "vmap": (jax.vmap(lambda r: (jnp.dot(r, r), jnp.sort(r))), X),
    "gradient": (jax.grad(lambda x: jax.nn.gelu(x @ x.T).sum() + jax.nn.softmax(x, 1)[0, 0]), X),
    "second derivative": (jax.grad(lambda x: jax.grad(lambda y: jnp.sin(y).sum())(x)[0, 0]), X),
    "convolution": (lambda x, k: lax.conv(x, k, (2, 1), "SAME"), IMAGE, KERNEL),
    "convolution's gradients": (jax.grad(lambda x, k: (pool(lax.conv(x, k, (1, 1), "SAME")) ** 2).sum(), (0, 1)), IMAGE, KERNEL),
    "factorisations": (lambda x: (jnp.linalg.cholesky(x @ x.T + jnp.eye(4)), jnp.linalg.solve(x @ x.T + jnp.eye(4), x)), X),
    "orthogonal factors": (lambda x: (jnp.linalg.qr(x), jnp.linalg.qr(x.T), jnp.linalg.qr(jnp.stack([x @ x.T, jnp.triu(x @ x.T)])),
                                      jnp.linalg.qr(x.T, mode="complete"), jax.grad(lambda a: jnp.linalg.qr(a)[1].sum())(x.T)), X),
    "complex systems": (lambda x, z: (jax.scipy.linalg.solve_triangular(jnp.tril(z[:, :4]) + 3 * jnp.eye(4), z, lower=True),
                                      jnp.linalg.solve(z[:, :4] + 3 * jnp.eye(4), z), jnp.linalg.inv(x[:, :4] + 3 * jnp.eye(4) + 0j)), X, Z),
    "random loops": (lambda key: (jax.random.gamma(key, 2.0, (3,)), jax.random.poisson(key, 3.0, (4,)), jax.random.dirichlet(key, jnp.ones(3))), jax.random.PRNGKey(9)),
    "complex": (lambda x, z: (z * z, z / (z + 2), jnp.exp(z), jnp.sqrt(z), jnp.abs(z), z.real + x, jnp.conj(z) @ z.T, (z ** 2).sum(0), jnp.arctan(z)), X, Z),
    "complex loops": (lambda z: (lax.fori_loop(0, 5, lambda i, c: c * z + 1, z), jnp.cumsum(z, 1), lax.scan(lambda c, r: (c * r, c), z[0], z)), Z),
    "complex gradient": (jax.grad(lambda x: jnp.abs(jnp.exp(1j * x) + x).sum()), X),
    "fourier transforms": (lambda x, z: (jnp.fft.fft(z), jnp.fft.ifft(z, 7), jnp.fft.rfft(x), jnp.fft.irfft(z, 9), jnp.fft.fft2(z), jnp.fft.fftshift(x)), X, Z),
    "integers of 4 bits": (lambda x: ((x * 3).astype(jnp.int4).astype(jnp.float32) @ x.T, (x * 3).astype(jnp.int4) + jnp.int4(7) > 0), X),
    "empty": (lambda x: (x[:0].sum(0), jnp.concatenate([x[:, :0], x], 1)), X),
    "random bits": (lambda key: (jax.random.bits(key, (5,)), jax.random.permutation(key, 9), jax.random.bernoulli(key, 0.3, (6,))), jax.random.PRNGKey(7)),
    "random numbers": (lambda key: (jax.random.normal(key, (3, 4)), jax.random.uniform(key, (5,)), jax.random.categorical(key, jnp.ones((4, 6)))),
                       jax.random.PRNGKey(8)),
}


def on(device, f, *arguments):
    return jax.device_get(jax.jit(f)(*(jax.device_put(a, device) for a in jax.device_get(arguments))))


def expect_same(name, got, want, tolerance=2e-5):
    got, want = jax.tree.leaves(got), jax.tree.leaves(want)
    assert len(got) == len(want), name
    for g, w in zip(got, want):
        assert g.dtype == w.dtype and g.shape == w.shape, (name, g.dtype, w.dtype, g.shape, w.shape)
        if g.dtype.kind in "biu":
            np.testing.assert_array_equal(g, w, err_msg=name)
        else:
            within = tolerance if g.dtype.itemsize > 2 else 2e-2
            wide = np.complex128 if g.dtype.kind == "c" else np.float64
            np.testing.assert_allclose(g.astype(wide), w.astype(wide), rtol=within, atol=within, err_msg=name)


def test_programs():
    for name, (f, *arguments) in PROGRAMS.items():
        expect_same(name, on(HERE, f, *arguments), on(THERE, f, *arguments))
    print(f"{len(PROGRAMS)} programs give what JAX's CPU gives")


def train(device):
    """A small network that learns the XOR of signs: loss, gradients and Adam's update in one program."""
    with jax.default_device(device):
        keys = jax.random.split(jax.random.PRNGKey(0), 3)
        x = jax.random.normal(keys[0], (256, 2))
        y = (x[:, 0] * x[:, 1] > 0).astype(jnp.float32)
        weights = {"w1": jax.random.normal(keys[1], (2, 32)), "b1": jnp.zeros(32), "w2": jax.random.normal(keys[2], (32,)) * 0.2, "b2": jnp.zeros(())}

        def loss(p):
            z = jnp.tanh(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]
            return (jax.nn.softplus(z) - y * z).mean()

        @jax.jit
        def step(p, m, v, t):
            value, g = jax.value_and_grad(loss)(p)
            m = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, m, g)
            v = jax.tree.map(lambda a, b: 0.999 * a + 0.001 * b * b, v, g)
            p = jax.tree.map(lambda w, a, b: w - 0.02 * (a / (1 - 0.9**t)) / (jnp.sqrt(b / (1 - 0.999**t)) + 1e-8), p, m, v)
            return p, m, v, value

        m, losses = jax.tree.map(jnp.zeros_like, weights), []
        v = m
        for t in range(1, 151):
            weights, m, v, value = step(weights, m, v, jnp.float32(t))
            losses.append(float(value))
        return losses, jax.device_get(weights)


def test_training():
    (here, weights), (there, others) = train(HERE), train(THERE)
    np.testing.assert_allclose(here, there, rtol=5e-4, atol=5e-4)
    expect_same("weights", weights, others, 5e-3)
    assert here[-1] < 0.15 < 0.5 < here[0], (here[0], here[-1])
    print(f"150 steps of training: the loss goes from {here[0]:.4f} to {here[-1]:.4f}, on JAX's CPU to {there[-1]:.4f}")


def test_arrays():
    a = jax.device_put(X, HERE)
    assert a.devices() == {HERE} and a.on_device_size_in_bytes() == X.nbytes
    b = jax.device_put(jax.device_put(a, THERE), HERE)  # there and back
    np.testing.assert_array_equal(b.copy(), X)  # of an array that stays on a device: its mesh stands in the program
    np.testing.assert_array_equal(np.asarray((a * 2)[1:3, ::2].T), (X * 2)[1:3, ::2].T)
    a.delete()
    assert a.is_deleted()
    with jax.enable_x64(True):
        expect_same("64 bits", on(HERE, lambda x: (x * 2, x.astype(jnp.int64)), np.array([1.5, 2.0**40])), (np.array([3.0, 2.0**41]), np.array([1, 2**40])))
    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,), devices=[HERE])
    rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("i"))
    total = jax.jit(lambda x: lax.with_sharding_constraint(x * 2, rows).sum(1))(jax.device_put(X, rows))
    np.testing.assert_allclose(total, X.sum(1) * 2, rtol=1e-5)
    joined = jax.shard_map(lambda x: lax.psum(x, "i") + lax.all_gather(x, "i").sum() * lax.axis_index("i") + lax.ppermute(x, "i", [(0, 0)]),
                           mesh=mesh, in_specs=jax.sharding.PartitionSpec("i"), out_specs=jax.sharding.PartitionSpec("i"))
    np.testing.assert_array_equal(jax.jit(joined)(jax.device_put(X, HERE)), 2 * X)  # collectives of a mesh of one device
    print("arrays go there and back")


def test_compiled():
    compiled = jax.jit(lambda x: (x @ x.T, x.sum())).lower(jax.device_put(X, HERE)).compile()
    stats = compiled.memory_analysis()
    assert stats.argument_size_in_bytes == X.nbytes and stats.output_size_in_bytes == 4 * 16 + 4
    assert compiled.cost_analysis()["flops"] >= 2 * 4 * 4 * 6
    np.testing.assert_allclose(compiled(jax.device_put(X, HERE))[0], X @ X.T, rtol=1e-5, atol=1e-5)
    print("compiled programs say what they take")


def test_refusals():
    for f, a, words in ((lambda x: x.astype(jnp.float8_e4m3fnuz).astype(jnp.float32), X, "f8E4M3FNUZ"),):
        try:
            on(HERE, f, a)
        except jax.errors.JaxRuntimeError as e:
            assert "UNIMPLEMENTED" in str(e) and words in str(e), e
        else:
            raise AssertionError("floats of a format that is not here were computed")
    expect_same("after an error", on(HERE, lambda x: x + 1, X), X + 1)
    print("what is not supported is said")


test_programs()
test_training()
test_arrays()
test_compiled()
test_refusals()
