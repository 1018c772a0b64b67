#!/usr/bin/env python3
"""Writes tests/goldens/quants.txt: what ggml makes blocks of.

    pip install --target FOLDER --no-deps pywhispercpp     # it has ggml as a library
    python3 tools/make_quant_goldens.py FOLDER > tests/goldens/quants.txt

The numbers are those of numbers() in tests/io/quantize_test.cpp, which is the same in Python."""
import ctypes
import pathlib
import struct
import sys

FORMATS = {"Q4_0": (2, 32), "Q4_1": (3, 32), "Q5_0": (6, 32), "Q5_1": (7, 32), "Q8_0": (8, 32), "Q2_K": (10, 256), "Q3_K": (11, 256),
           "Q4_K": (12, 256), "Q5_K": (13, 256), "Q6_K": (14, 256), "IQ4_NL": (20, 32), "IQ4_XS": (23, 256), "TQ1_0": (34, 256),
           "TQ2_0": (35, 256), "MXFP4": (39, 32)}
BYTES = {"Q4_0": 18, "Q4_1": 20, "Q5_0": 22, "Q5_1": 24, "Q8_0": 34, "Q2_K": 84, "Q3_K": 110, "Q4_K": 144, "Q5_K": 176, "Q6_K": 210,
         "IQ4_NL": 18, "IQ4_XS": 136, "TQ1_0": 54, "TQ2_0": 66, "MXFP4": 17}


def numbers():
    """Sums of four pseudorandom numbers, in groups of 16 of different size; then the same moved up; then zeros, and a constant."""
    state, values = 1, []
    for k in range(512):
        total = 0
        for _ in range(4):
            state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
            total += state >> 16
        values.append((total - 131070) / 65536 * 2.0 ** (k // 16 % 5 - 2))
    values += [v + 0.5 for v in values]
    return values + [0.0] * 256 + [0.75] * 256


def libraries(folder):
    for name in ("libgomp*", "libggml-base*"):
        for at in sorted(pathlib.Path(folder).rglob(name)):
            try:
                yield ctypes.CDLL(str(at), mode=ctypes.RTLD_GLOBAL)
                break
            except OSError:
                continue


ggml = list(libraries(sys.argv[1]))[-1]
ggml.ggml_quantize_chunk.restype = ctypes.c_size_t
ggml.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
ggml.ggml_version.restype = ctypes.c_char_p
values = numbers()
floats = (ctypes.c_float * len(values)).from_buffer_copy(struct.pack("<%df" % len(values), *values))
print("# ggml %s, by tools/make_quant_goldens.py" % ggml.ggml_version().decode())
for name, (number, each) in FORMATS.items():
    out = (ctypes.c_ubyte * (len(values) // each * BYTES[name]))()
    written = ggml.ggml_quantize_chunk(number, floats, out, 0, len(values) // 256, 256, None)
    assert written == len(out), name
    print(name, bytes(out).hex())
