"""OpenBLAS: the newest at hand (the wheel, else the system's), row-major sgemm."""
import ctypes

import numpy as np

import data


def libraries():
    try:
        import pathlib

        import scipy_openblas32 as wheel

        for path in pathlib.Path(wheel.get_lib_dir()).glob("libscipy_openblas*.so"):
            yield str(path), "scipy_"
    except ImportError:
        pass
    yield "libopenblas.so.0", ""


def load():
    for path, prefix in libraries():
        try:
            lib = ctypes.CDLL(path)
            return lib, {n: getattr(lib, prefix + n) for n in ("cblas_sgemm", "openblas_set_num_threads", "openblas_get_config")}
        except (OSError, AttributeError):
            continue
    raise data.Missing("no OpenBLAS: neither the wheel scipy-openblas32 nor the package libopenblas0-pthread")


def make(w):
    if w["kind"] != "gemm" or w["dtype"] != "f32":
        raise data.Missing("f32 products only")
    _, f = load()
    f["openblas_set_num_threads"](w["threads"])
    n = w["n"]
    x, weight = data.inputs("x", (n, n)), data.parameter("w", (n, n))
    y = np.empty((n, n), np.float32)
    pointer = lambda a: a.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
    one = ctypes.c_float
    args = (101, 111, 112, n, n, n, one(1), pointer(x), n, pointer(weight), n, one(0), pointer(y), n)
    sgemm = f["cblas_sgemm"]
    return {"call": lambda: sgemm(*args), "answer": lambda: y, "keep": (x, weight)}


def version():
    _, f = load()
    f["openblas_get_config"].restype = ctypes.c_char_p
    return f["openblas_get_config"]().decode()


data.serve(make, version)
