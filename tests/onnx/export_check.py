#!/usr/bin/env python3
"""Exported ONNX models pass ONNX's checker and give the f64 reference's results in onnxruntime.

    export_check.py --cases build/bin/onnx_export_cases [--first N] [--random N] [--keep FOLDER]
    export_check.py --cases build/bin/onnx_export_cases --again FOLDER [--opset N] [--keep FOLDER]

Every model that the program writes is checked (with shape inference) and run; its results are compared with those of
the f64 reference, within the bound that the reference finds for each number and what a sum in another order may differ.
With --again, each model of the folder, in the form of ONNX's own tests, is read, written again and run on the test's
inputs; its results are compared with the test's. Without onnx and onnxruntime (in this python, or in the one that
LIGHTCONE_ONNXRUNTIME names) it exits with 77: skipped.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
SLACK = 8.0


def python_with_onnxruntime():
    for python in (os.environ.get("LIGHTCONE_ONNXRUNTIME"), sys.executable):
        if python and shutil.which(python):
            if not subprocess.run([python, "-c", "import onnx, onnxruntime"], capture_output=True).returncode:
                return python
    return None


def session(path):
    import onnx
    import onnxruntime

    onnx.checker.check_model(str(path), full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 2
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def difference(got, want, error):
    import numpy as np

    got = np.asarray(got)
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"is {got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"
    if not want.size:
        return None
    x, y = got.astype(np.float64), want.astype(np.float64)
    room = SLACK * error
    if want.dtype.kind == "f":
        unit = np.finfo(want.dtype).eps
        finite = np.abs(y[np.isfinite(y)])
        room = room + 64 * unit * (np.abs(y) + (finite.mean() if finite.size else 0)) + np.finfo(np.float32).tiny
    with np.errstate(invalid="ignore"):
        good = (x == y) | (np.isnan(x) & np.isnan(y)) | (np.abs(x - y) <= room) | np.isinf(error)
    if good.all():
        return None
    k = np.argmin(good.reshape(-1))
    limit = np.broadcast_to(room, y.shape).reshape(-1)[k]
    return f"element {k} is {x.reshape(-1)[k]}, not {y.reshape(-1)[k]} within {limit}"


def run_case(folder):
    import numpy as np

    s = session(folder / "model.onnx")
    wanted = {i.name for i in s.get_inputs()}
    for run in sorted(folder.glob("in*.npz")):
        given = np.load(run)
        want = np.load(run.with_name(run.name.replace("in", "out")))
        names = [o.name for o in s.get_outputs()]
        got = s.run(names, {k: given[k] for k in given.files if k in wanted})
        for name, value in zip(names, got):
            if why := difference(value, want["want " + name], want["error " + name]):
                return f"{run.stem}, '{name}' {why}"
    return None


def with_plain_types(path):
    """Returns the model with casts, so that numpy has the types of its inputs and outputs."""
    import onnx
    from onnx import TensorProto, helper

    m = onnx.load(path)
    plain = {
        TensorProto.FLOAT,
        TensorProto.FLOAT16,
        TensorProto.DOUBLE,
        TensorProto.BOOL,
        TensorProto.INT8,
        TensorProto.INT16,
        TensorProto.INT32,
        TensorProto.INT64,
        TensorProto.UINT8,
        TensorProto.UINT16,
        TensorProto.UINT32,
        TensorProto.UINT64,
    }
    for ports, is_input in ((m.graph.input, True), (m.graph.output, False)):
        for port in ports:
            kind = port.type.tensor_type.elem_type
            if kind in plain:
                continue
            inner = port.name + " as it was"
            for node in m.graph.node:
                for names in (node.input, node.output):
                    for k, name in enumerate(names):
                        if name == port.name:
                            names[k] = inner
            port.type.tensor_type.elem_type = TensorProto.FLOAT
            if is_input:
                m.graph.node.insert(0, helper.make_node("Cast", [port.name], [inner], to=kind))
            else:
                m.graph.node.append(helper.make_node("Cast", [inner], [port.name], to=TensorProto.FLOAT))
    plain_path = path.with_name("plain.onnx")
    onnx.save(m, plain_path)
    return plain_path


def read_tensor(path):
    """Returns the numbers of a file; types that numpy lacks become the wider ones that a graph has for them."""
    import numpy as np
    import onnx
    from onnx import numpy_helper

    a = numpy_helper.to_array(onnx.load_tensor(path))
    if a.dtype.name in ("int4", "int2"):
        return a.astype(np.int8)
    if a.dtype.name in ("uint4", "uint2"):
        return a.astype(np.uint8)
    return a.astype(np.float32) if a.dtype.name.startswith(("float8", "bfloat")) else a


def run_again(folder, original):
    import numpy as np
    import onnx

    session(folder / "model.onnx")
    s = session(with_plain_types(folder / "model.onnx"))
    before = onnx.load(original / "model.onnx", load_external_data=False).graph
    inputs, outputs = [i.name for i in before.input], [o.name for o in before.output]
    data = original / "test_data_set_0"
    given = {n: read_tensor(data / f"input_{k}.pb") for k, n in enumerate(inputs) if (data / f"input_{k}.pb").exists()}
    feed = {i.name: given[i.name] if i.name in given else np.zeros(i.shape, np.int64) for i in s.get_inputs()}
    is_random = any(i.name not in given for i in s.get_inputs())  # its state
    names = [o.name for o in s.get_outputs()]
    got = dict(zip(names, s.run(names, feed)))
    for line in (folder / "counts.txt").read_text().splitlines():
        name, count, axis = line.split("\t")
        got[name] = np.take(got[name], range(int(np.reshape(got[count], -1)[0])), axis=int(axis))
    for k, name in enumerate(outputs):
        if not (data / f"output_{k}.pb").exists() or not name:
            continue
        want, value = read_tensor(data / f"output_{k}.pb"), np.asarray(got[name])
        if value.dtype != want.dtype or value.shape != want.shape:
            return f"'{name}' is {value.dtype}{list(value.shape)}, not {want.dtype}{list(want.shape)}"
        if is_random:
            continue
        if want.dtype.kind in "fc":
            if not np.allclose(value, want, rtol=1e-3, atol=1e-5, equal_nan=True):
                return f"'{name}' differs by {np.nanmax(np.abs(value.astype(np.float64) - want))}"
        elif not np.array_equal(value, want):
            return f"'{name}' has other values"
    return None


def run_all(folder, original):
    wrong = passed = 0
    for case in sorted(p.parent for p in folder.glob("*/model.onnx")):
        try:
            why = run_again(case, original / case.name) if original else run_case(case)
        except Exception as e:
            why = f"{type(e).__name__}: {str(e)[:400]}"
        if why:
            wrong += 1
            print(f"WRONG {case.name}: {why}", flush=True)
        else:
            passed += 1
    print(f"onnxruntime: {passed} of {passed + wrong} models answer as they should")
    return wrong


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--cases", help="the program that writes them")
    options.add_argument("--first", type=int, default=0, help="random graph")
    options.add_argument("--random", type=int, default=60, help="how many random graphs")
    options.add_argument("--again", type=pathlib.Path, help="a folder of ONNX's test cases")
    options.add_argument("--opset", type=int, default=21)
    options.add_argument("--keep", type=pathlib.Path, help="write the models here, and keep them")
    options.add_argument("--run", type=pathlib.Path, help=argparse.SUPPRESS)
    o = options.parse_args()
    if o.run:
        return 1 if run_all(o.run, o.again) else 0
    python = python_with_onnxruntime()
    if not python:
        print("skipped: no python with onnx and onnxruntime is here (LIGHTCONE_ONNXRUNTIME names one)")
        return SKIPPED
    with tempfile.TemporaryDirectory() as temporary:
        folder = o.keep or pathlib.Path(temporary)
        again = ["--again", str(o.again)] if o.again else []
        what = ["--again", o.again, folder, str(o.opset)] if o.again else [folder, str(o.first), str(o.random)]
        failed = subprocess.run([o.cases, *what]).returncode != 0
        failed |= subprocess.run([python, __file__, "--run", folder, *again]).returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
