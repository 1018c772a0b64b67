#!/usr/bin/env python3
"""XLA runs the story model's decoding steps with the logits and greedy tokens of cpu(), and caches whose memory is donated.

    decoding_check.py PROGRAM MODEL

Skips (77) without a python that has jaxlib (LIGHTCONE_JAX names one).
"""
import os
import pathlib
import subprocess
import sys
import tempfile

import xla_check

TOLERANCE = 1e-5  # of the largest logit


def by_xla(folder):
    xla = xla_check.Xla()
    np = xla.np
    lines = [line.split() for line in (folder / "arguments.txt").read_text().splitlines()]
    values, expected = np.load(folder / "arguments.npz"), np.load(folder / "expected.npz")
    put = lambda array, element: xla.jax.device_put(array.astype(xla.dtypes[element]), xla.device)
    arguments = [None if kind == "tokens" else put(values["arg%d" % k], element) for k, (kind, element, _) in enumerate(lines)]
    steps = len(list(folder.glob("step*.mlir")))
    logits = expected["logits"].reshape(steps, -1)
    wanted = expected["tokens"].tolist()
    prompt = len(wanted) - steps
    fed, said, off, kept = wanted[:prompt], [], 0.0, 0
    for step in range(steps):
        text = (folder / ("step%d.mlir" % step)).read_text()
        program = xla.device.client.compile_and_load(text, xla.client.DeviceList((xla.device,)), xla.client.CompileOptions())
        for k, (kind, element, _) in enumerate(lines):
            if kind == "tokens":
                arguments[k] = put(np.array(fed), element)
        results = [r[0] for r in program.execute_sharded(arguments).disassemble_into_single_device_arrays()]
        for k, (kind, _, result) in enumerate(lines):
            if kind == "state":
                kept += not arguments[k].is_deleted()
                arguments[k] = results[int(result)]
        got = np.asarray(results[0])
        off = max(off, float(np.abs(got - logits[step]).max() / np.abs(logits[step]).max()))
        fed = [int(got.argmax())]
        said += fed
    same = said == wanted[prompt:]
    print("XLA: %d steps, logits within %.2g of the largest, %s tokens, %d caches not donated" % (steps, off, "the same" if same else "OTHER", kept))
    return not (same and off <= TOLERANCE and kept == 0)


def main():
    if sys.argv[1] == "--xla":
        return by_xla(pathlib.Path(sys.argv[2]))
    python = xla_check.python_with_jax()
    if python is None:
        print("skipped: no python here has jaxlib (LIGHTCONE_JAX names one)")
        return xla_check.SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        if subprocess.run([*sys.argv[1:3], folder]).returncode:
            return 1
        return subprocess.run([python, __file__, "--xla", folder], env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}).returncode


if __name__ == "__main__":
    sys.exit(int(main()))
