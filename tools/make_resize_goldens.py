#!/usr/bin/env python3
"""Writes tests/goldens/resize.txt: what ONNX's reference implementation of Resize answers (package onnx 1.23).

    python3 tools/make_resize_goldens.py > tests/goldens/resize.txt

A case is a line of options, the input and the result, in f64. The options have the names of ONNX's attributes and
inputs. Where the reference differs from the text of the operator, the expected numbers follow the text:
pytorch_half_pixel takes position 0, not -0.5, if the result has one element, and tf_half_pixel_for_nn is from opset 10.
"""

import numpy as np
from onnx.reference.ops.op_resize import Resize


def values(shape):
    """Numbers with few digits that no order of axes confuses."""
    k = np.arange(int(np.prod(shape)))
    return (((k * 37 + 11) % 101 - 50) / 8).reshape(shape)


def expected(x, o):
    arguments = dict(
        antialias=o.get("antialias", 0),
        axes=[a % x.ndim for a in o["axes"]] if "axes" in o else None,
        coordinate_transformation_mode=o.get("ctm", "half_pixel"),
        cubic_coeff_a=o.get("a", -0.75),
        exclude_outside=o.get("exclude_outside", 0),
        extrapolation_value=o.get("extrapolation_value", 0.0),
        keep_aspect_ratio_policy=o.get("policy", "stretch"),
        mode=o.get("mode", "nearest"),
        nearest_mode=o.get("nearest_mode", "round_prefer_floor"),
    )
    scales = np.array(o["scales"], np.float32) if "scales" in o else None
    sizes = np.array(o["sizes"], np.int64) if "sizes" in o else None
    roi = np.array(o["roi"], np.float64) if "roi" in o else None
    return Resize._run(None, x, roi, scales, sizes, **arguments)[0]


def line(kind, v):
    print(kind, "f64", "[" + " ".join(map(str, v.shape)) + "]", *(repr(float(e)) for e in v.ravel()))


def case(shape, **o):
    def text(v):
        return (
            ",".join(map(text, v))
            if isinstance(v, (list, tuple))
            else repr(float(v))
            if isinstance(v, float)
            else str(v)
        )

    def written(k, v):
        return text([float(np.float32(e)) for e in v]) if k == "scales" else text(v)

    print("case", *(f"{k}={written(k, v)}" for k, v in o.items()))
    x = values(shape)
    line("in", x)
    line("out", expected(x, o))


NEAREST = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
MODES = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"]
for ctm in MODES:
    for nearest_mode in NEAREST:
        if nearest_mode.startswith("round"):
            case([1, 2, 4, 5], ctm=ctm, nearest_mode=nearest_mode, scales=[1, 1, 1.5, 0.7])
        case([2, 6, 5], ctm=ctm, nearest_mode=nearest_mode, sizes=[4, 9], axes=[1, 2])
    for mode in ["linear", "cubic"]:
        case([1, 2, 4, 5], ctm=ctm, mode=mode, scales=[1, 1, 1.6, 0.6])
        case([1, 4, 5], ctm=ctm, mode=mode, sizes=[1, 3, 11])
for exclude in [0, 1]:
    for mode in ["linear", "cubic"]:
        case([1, 9, 5], mode=mode, sizes=[4, 7], axes=[1, -1], antialias=1, exclude_outside=exclude)
        case([7, 6], ctm="align_corners", mode=mode, scales=[0.6, 0.8], antialias=1, exclude_outside=exclude)
for exclude in [0, 1]:
    case([1, 1, 4, 4], mode="cubic", a=-0.5, scales=[1, 1, 0.8, 2], exclude_outside=exclude)
    case([40], mode="linear", sizes=[3], antialias=1, exclude_outside=exclude)
    case([40], mode="cubic", sizes=[3], antialias=1, exclude_outside=exclude, a=-0.5)
for policy in ["not_larger", "not_smaller"]:
    case([1, 1, 2, 4], policy=policy, sizes=[7, 8], axes=[2, 3])
    case([1, 1, 2, 4], policy=policy, sizes=[1, 3], axes=[2, 3])
    case([3, 5, 7], policy=policy, sizes=[9, 3], axes=[2, 0], mode="linear")
crop = "tf_crop_and_resize"
case([1, 1, 4, 4], ctm=crop, mode="linear", sizes=[1, 1, 3, 3], roi=[0, 0, 0.4, 0.6, 1, 1, 0.6, 0.8])
case([1, 1, 4, 4], ctm=crop, mode="linear", sizes=[3, 3], axes=[3, 2], roi=[0.6, 0.4, 0.8, 0.6])
case([2, 4, 5], ctm=crop, mode="linear", sizes=[3, 4], axes=[1, 2], roi=[0.4, -0.2, 1.2, 1.7], extrapolation_value=10.0)
case(
    [2, 4, 5], ctm=crop, mode="nearest", sizes=[3, 4], axes=[1, 2], roi=[0.4, -0.2, 1.2, 1.7], extrapolation_value=10.0
)
case([2, 4, 5], ctm=crop, mode="cubic", sizes=[4, 5], axes=[1, 2], roi=[0.1, 0.2, 0.7, 0.9])
case([2, 4], ctm=crop, mode="linear", sizes=[2, 4], axes=[0, 1], roi=[0.0, 0.5, 1.0, 1.0])
case([2, 2, 2, 3], mode="linear", scales=[1, 2, 3, 0.7])
