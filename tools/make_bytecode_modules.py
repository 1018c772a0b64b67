#!/usr/bin/env python3
"""Programs of ours as StableHLO text and as portable artifacts, which JAX writes: tests/stablehlo/artifacts.h.

    tools/make_bytecode_modules.py > tests/stablehlo/artifacts.h
"""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax._src.interpreters import mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

HEAD = """// Programs as JAX has them, in text and as portable artifacts: written by tools/make_bytecode_modules.py.
#pragma once

namespace lc::test {

struct Artifact {
  const char *name, *text, *hex;
};

// clang-format off
inline constexpr Artifact kArtifacts[] = {"""
TAIL = """};
// clang-format on

}  // namespace lc::test"""


def products(x, w, y):
    """Products, a sort with a comparator, a reduction, a call, a donated argument."""
    return jnp.tanh(x @ w).sum(0), jnp.sort(y, axis=0), jnp.einsum("bij,bkj->bik", x[None], x[None])


def places(x, i):
    """Gathers, scatters, slices, pads, concatenations."""
    return x[i], x.at[i].add(2.0), lax.dynamic_slice(x, (i[0], 1), (2, 2)), jnp.pad(jnp.concatenate([x, x[::-1].T.T]), ((0, 1), (2, 0)))


def windows(x, k):
    """Convolutions, pooling and what grows out of its gradient."""
    def pool(v):
        return lax.reduce_window(v, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID").sum()
    y = lax.conv_general_dilated(x, k, (1, 1), [(1, 0), (0, 1)], lhs_dilation=(1, 2), dimension_numbers=("NCHW", "OIHW", "NCHW"))
    return y, jax.grad(pool)(x), lax.cumsum(x, 3)


def control(n, key):
    """Loops, branches and bits of random numbers."""
    steps = lax.while_loop(lambda s: s[0] != 1, lambda s: (jnp.where(s[0] % 2 == 1, 3 * s[0] + 1, s[0] // 2), s[1] + 1), (n, n * 0))
    branch = lax.switch(n, [lambda v: v + 1, lambda v: v * 2, lambda v: -v], 5.0)
    total, each = lax.scan(lambda c, r: (c + r, c * r), 0.0, jnp.arange(4.0))
    return steps[1], branch, total, each, lax.rng_bit_generator(key, (3,), algorithm=lax.RandomAlgorithm.RNG_THREE_FRY)[1]


def constants(x):
    """Constants of many types, truth values among them, and conversions."""
    mask = jnp.array([True, False, True, True, False, False, True, False, True, True, True])
    return (jnp.where(mask, x, jnp.nan), jnp.array([7, -3, 2**31 - 1], jnp.int32), jnp.array([[1.5, -0.0]], jnp.bfloat16),
            x.astype(jnp.int8), jnp.array([200, 3], jnp.uint8), jnp.array([True] * 9), jnp.full((2, 3), np.float16(np.inf)),
            lax.reduce_precision(x, 5, 10), x > 0)


def shape(*dims, dtype=np.float32):
    return jax.ShapeDtypeStruct(dims, dtype)


PROGRAMS = [
    (products, (shape(4, 3), shape(3, 2), shape(5, 3)), "1.13.0"),
    (products, (shape(4, 3), shape(3, 2), shape(5, 3)), "0.9.0"),
    (places, (shape(4, 3), shape(2, dtype=np.int32)), "1.13.0"),
    (windows, (shape(1, 2, 4, 4), shape(3, 2, 2, 2)), "1.17.0"),
    (control, (shape(dtype=np.int32), shape(4, dtype=np.uint32)), "1.13.0"),
    (constants, (shape(11),), "1.0.0"),
]

print(HEAD)
for function, arguments, version in PROGRAMS:
    donated = (2,) if function is products else ()
    lowered = jax.jit(function, donate_argnums=donated).lower(*arguments)
    text = str(lowered.compiler_ir("stablehlo"))
    with mlir.make_ir_context():  # without the places in this file
        artifact = stablehlo.serialize_portable_artifact(ir.Module.parse(text), version).hex()
    print('  {"%s, %s", R"(%s)",' % (function.__name__, version, text.rstrip()))
    rows = ['   "%s"' % artifact[k:k + 140] for k in range(0, len(artifact), 140)]
    print("\n".join(rows) + "},")
print(TAIL)
