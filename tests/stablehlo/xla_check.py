#!/usr/bin/env python3
"""Exported StableHLO programs parse in MLIR and give the f64 reference's results in XLA, within its error bounds.

    xla_check.py --cases build/bin/stablehlo_cases [--first N] [--random N] [--keep FOLDER]
    xla_check.py --cases build/bin/stablehlo_open_cases --modules FOLDER [--keep FOLDER]

Every case that the program writes is parsed by MLIR (mlir-opt, where there is one) and compiled and run by XLA on the
CPU (jaxlib, where python finds it, or the python that LIGHTCONE_JAX names); its results are compared with those of the
f64 reference, within four times the bound that the reference finds for each number. Without both tools it exits with
77: skipped.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
SLACK = 4.0  # as verify() has it
# XLA takes numbers below the normal ones for zero on a CPU.
SMALLEST = {"f32": 2.0**-126, "bf16": 2.0**-126, "f16": 2.0**-24, "f64": 2.0**-1022,
            "f8E4M3FN": 2.0**-9, "f8E5M2": 2.0**-16}
LARGEST = {"f32": float.fromhex("0x1.fffffep127"), "bf16": float.fromhex("0x1.fep127"), "f16": 65504.0,
           "f64": sys.float_info.max, "f8E4M3FN": 448.0, "f8E5M2": 57344.0}


def find_mlir_opt():
    for version in ("", *(f"-{v}" for v in range(30, 16, -1))):
        if path := shutil.which("mlir-opt" + version):
            return path
    return None


def cases(folder):
    return sorted(path.parent for path in folder.glob("*/program.mlir"))


def types(case):
    lines = [line.split(" ", 2) for line in (case / "types.txt").read_text().splitlines()]
    return [w[1] for w in lines if w[0] == "in"], [(w[1], w[2]) for w in lines if w[0] == "out"]


def parse_all(mlir_opt, folder):
    wrong = 0
    for case in cases(folder):
        done = subprocess.run([mlir_opt, "--allow-unregistered-dialect", "-o", os.devnull, case / "program.mlir"],
                              capture_output=True, text=True)
        if done.returncode:
            wrong += 1
            print(f"{case.name}: MLIR does not read it: {done.stderr[:600]}")
    print(f"MLIR parses {len(cases(folder)) - wrong} of {len(cases(folder))} programs")
    return wrong


class Xla:
    """Compiles text in this process, as JAX does."""

    def __init__(self):
        # Results are held against exact rounding: a cast to bf16 and back may not be left out.
        os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_allow_excess_precision=false"
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
        import jax
        import ml_dtypes
        import numpy
        from jaxlib import _jax, xla_client

        jax.config.update("jax_enable_x64", True)
        self.jax, self.np, self.client, self.mlir = jax, numpy, xla_client, _jax.mlir
        self.device = jax.devices("cpu")[0]
        self.dtypes = {"i1": numpy.bool_, "bf16": ml_dtypes.bfloat16,
                       "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2}
        for bits in (8, 16, 32, 64):
            self.dtypes[f"i{bits}"], self.dtypes[f"ui{bits}"] = f"int{bits}", f"uint{bits}"
            if bits > 8:
                self.dtypes[f"f{bits}"] = f"float{bits}"

    def run(self, text, arguments):
        if "tensor<?" in text or "x?x" in text:  # a static @main calls functions with open extents
            text = self.mlir.refine_polymorphic_shapes(text.encode())
        devices = self.client.DeviceList((self.device,))
        program = self.device.client.compile_and_load(text, devices, self.client.CompileOptions())
        given = [self.jax.device_put(a, self.device) for a in arguments]
        made = program.execute_sharded(given).disassemble_into_single_device_arrays()
        return [self.of_parts(self.np.asarray(r[0])) for r in made]

    def of_parts(self, a):
        """A complex array as ours is: its parts, on an axis of their own."""
        return self.np.stack([a.real, a.imag], -1) if a.dtype.kind == "c" else a

    def load(self, path, element):
        a = self.np.load(path)
        if element.startswith("complex<"):
            return (a[..., 0] + 1j * a[..., 1]).astype("complex64" if element == "complex<f32>" else "complex128")
        return a.astype(self.dtypes[element])

    def differs(self, want, error, got, element):
        """Says how, or nothing."""
        np = self.np
        if want.shape != got.shape:
            return f"has the shape {got.shape}, not {want.shape}"
        if np.dtype(self.dtypes[element]) != got.dtype:
            return f"is {got.dtype}, not {element}"
        got = got.astype(want.dtype)
        known = np.isfinite(error)
        if want.dtype != np.float64:
            wrong = known & (np.abs(want - got) > SLACK * error) if error.any() else known & (want != got)
        else:
            with np.errstate(all="ignore"):
                allowed = SLACK * error + SMALLEST[element]
                same = (want == got) | (np.isnan(want) & np.isnan(got)) | (np.abs(want - got) <= allowed)
                overflow = np.isinf(got) & (np.where(got > 0, want, -want) + allowed > LARGEST[element])
                wrong = known & ~same & ~overflow
        if not wrong.any():
            return None
        at = tuple(int(i[0]) for i in np.nonzero(wrong)) if wrong.shape else ()
        return (f"{list(at)} is {got[at]}, the reference says {want[at]} within {SLACK * error[at]}, "
                f"and {int(wrong.sum())} numbers are wrong")

    def check(self, case):
        inputs, outputs = types(case)
        arguments = [self.load(case / f"in{k}.npy", t) for k, t in enumerate(inputs)]
        got = self.run((case / "program.mlir").read_text(), arguments)
        known = total = 0
        for k, (element, name) in enumerate(outputs):
            element = element.removeprefix("complex<").removesuffix(">")
            want, error = self.np.load(case / f"want{k}.npy"), self.np.load(case / f"error{k}.npy")
            known += int(self.np.isfinite(error).sum())
            total += error.size
            if problem := self.differs(want, error, got[k], element):
                return f"'{name}' {problem}", known, total
        return None, known, total


def run_all(folder):
    xla, wrong, known, total = Xla(), 0, 0, 0
    for case in cases(folder):
        try:
            problem, k, n = xla.check(case)
            known, total = known + k, total + n
        except Exception as e:  # what XLA refuses has types of its own
            problem = str(e)[:600]
        if problem:
            wrong += 1
            print(f"{case.name}: {problem}")
    print(f"XLA agrees on {len(cases(folder)) - wrong} of {len(cases(folder))} programs; "
          f"{known} of {total} numbers were decided")
    return wrong


def python_with_jax():
    for python in (os.environ.get("LIGHTCONE_JAX"), sys.executable):
        if python and shutil.which(python):
            if not subprocess.run([python, "-c", "import jax, jaxlib"], capture_output=True).returncode:
                return python
    return None


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--cases", help="the program that writes them")
    options.add_argument("--first", type=int, default=0, help="random graph")
    options.add_argument("--random", type=int, default=60, help="how many random graphs")
    options.add_argument("--modules", type=pathlib.Path, help="a folder of modules, for stablehlo_open_cases")
    options.add_argument("--keep", type=pathlib.Path, help="a folder for the cases, which stay")
    options.add_argument("--run", type=pathlib.Path, help="compile and run the cases of this folder, and nothing else")
    o = options.parse_args()
    if o.run:
        return 1 if run_all(o.run) else 0
    if o.modules and not o.modules.is_dir():
        print(f"skipped: there is no folder of modules at {o.modules}")
        return SKIPPED
    mlir_opt, python = find_mlir_opt(), python_with_jax()
    if not mlir_opt and not python:
        print("skipped: neither mlir-opt nor a python with jax is here (LIGHTCONE_JAX names one)")
        return SKIPPED
    with tempfile.TemporaryDirectory() as temporary:
        folder = o.keep or pathlib.Path(temporary)
        which = [o.modules, folder] if o.modules else [folder, str(o.first), str(o.random)]
        failed = subprocess.run([o.cases, *which]).returncode != 0
        if mlir_opt:
            failed |= parse_all(mlir_opt, folder) != 0
        else:
            print("no mlir-opt here: programs are not parsed by MLIR")
        if python:
            failed |= subprocess.run([python, __file__, "--run", folder]).returncode != 0
        else:
            print("no python with jax here (LIGHTCONE_JAX names one): programs are not run by XLA")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
