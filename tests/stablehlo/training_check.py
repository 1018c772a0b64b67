#!/usr/bin/env python3
"""A narrow VGG19's training step has the same 38 gradients and losses by the CPU back end, by lightcone_pjrt.so and by XLA.

XLA takes part where jaxlib is installed.

    training_check.py PROGRAM PLUGIN
"""
import os
import pathlib
import subprocess
import sys
import tempfile

import xla_check


def by_xla(folder):
    xla = xla_check.Xla()
    np = xla.np
    given, expected = np.load(folder / "step.npz"), np.load(folder / "expected.npz")
    feed = given["feed"]
    arguments = [given["arg%d" % k] for k in range(len(given.files) - 1)]
    text = (folder / "step.mlir").read_text()
    program = xla.device.client.compile_and_load(text, xla.client.DeviceList((xla.device,)), xla.client.CompileOptions())
    losses, gradients = [], 0.0
    for step in range(len(expected["losses"])):
        device = [xla.jax.device_put(a, xla.device) for a in arguments]
        results = [np.array(r[0]) for r in program.execute_sharded(device).disassemble_into_single_device_arrays()]
        losses.append(float(results[0]))
        if step == 0:
            for k in range(len(expected.files) - 1):
                want = expected["gradient%d" % k]
                gradients = max(gradients, float(np.abs(results[1 + k] - want).max() / max(np.abs(want).max(), 1e-30)))
        for k, argument in enumerate(feed):
            if argument >= 0:
                arguments[argument] = results[k]
    off = float(np.abs(np.array(losses) - expected["losses"]).max())
    print("XLA: %d gradients within %.2g of their largest element, losses of %d steps within %.2g" % (len(expected.files) - 1, gradients, len(losses), off))
    return not (gradients <= 1e-4 and off <= 1e-3 and len(expected.files) == 39)


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--xla":
        return by_xla(pathlib.Path(sys.argv[2]))
    program, plugin = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        wrong = subprocess.run([program, folder, plugin]).returncode != 0
        python = xla_check.python_with_jax()
        if python is None:
            print("SKIPPED: XLA, for no python here has jaxlib (LIGHTCONE_JAX names one)")
        else:
            wrong |= subprocess.run([python, __file__, "--xla", folder], env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}).returncode != 0
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
