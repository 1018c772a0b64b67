#!/usr/bin/env python3
"""Writes tests/goldens/regions.txt: ONNX Runtime's (1.32) RoiAlign, MaxRoiPool, DeformConv and cubic GridSample.

    python3 tools/make_region_goldens.py > tests/goldens/regions.txt

A case is a name with its numbers, the inputs and the result. Without the packages onnx and onnxruntime it stops.
"""

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

draw = np.random.default_rng(7)


def numbers(*shape):
    return (np.round(draw.standard_normal(shape) * 64) / 64).astype(np.float32)


def tensor(kind, v):
    name = {"float32": "f32", "int64": "i64"}[v.dtype.name]
    print(kind, name, "[" + " ".join(map(str, v.shape)) + "]", *map(str, v.ravel()))


def case(name, operator, opset, inputs, **attributes):
    """Runs a node; the case has the inputs that are not None."""
    given = {f"x{k}": v for k, v in enumerate(inputs) if v is not None}
    names = [f"x{k}" if v is not None else "" for k, v in enumerate(inputs)]
    types = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64}
    node = helper.make_node(operator, names, ["y"], **attributes)
    operands = [helper.make_tensor_value_info(k, types[v.dtype.name], v.shape) for k, v in given.items()]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * inputs[0].ndim)
    graph = helper.make_graph([node], "g", operands, [result])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    print("case", name)
    for v in given.values():
        tensor("in", v)
    tensor("out", session.run(None, given)[0])


def boxes(count, images, size):
    first = draw.integers(-20, 40, (count, 2))
    corners = np.concatenate([first, first + draw.integers(0, 10 * size, (count, 2))], 1)
    return (corners / 10).astype(np.float32), draw.integers(0, images, count)


x = numbers(2, 3, 7, 6)
for mode in ("avg", "max"):
    for samples in (0, 2, 3):
        for aligned in (0, 1):
            corners, image = boxes(4, 2, 20)
            case(
                f"align {mode} {samples} {aligned}",
                "RoiAlign",
                16,
                [x, corners, image],
                mode=mode,
                sampling_ratio=samples,
                output_height=3,
                output_width=2,
                spatial_scale=0.5,
                coordinate_transformation_mode="half_pixel" if aligned else "output_half_pixel",
            )
one = numbers(1, 2, 5, 5)
corners = np.array([[1, 1, 1, 1], [3, 3, 0, 0], [-9, -9, -5, -5], [-40, -40, 60, 60]], np.float32)
case(
    "align avg 0 0",
    "RoiAlign",
    16,
    [one, corners, np.zeros(4, np.int64)],
    output_height=3,
    output_width=2,
    spatial_scale=0.5,
    coordinate_transformation_mode="output_half_pixel",
)
for scale in (1.0, 0.5):
    corners, image = boxes(5, 2, 12)
    case(
        f"pool {scale}",
        "MaxRoiPool",
        13,
        [x, np.concatenate([image[:, None], corners], 1).astype(np.float32)],
        pooled_shape=[3, 2],
        spatial_scale=scale,
    )
for groups, offset_groups, stride, dilation, pad in (
    (1, 1, 1, 1, 0),
    (2, 2, 1, 1, 1),
    (1, 2, 2, 1, 1),
    (2, 1, 1, 2, 1),
):
    image = numbers(2, 4, 6, 5)
    extents = [(n + 2 * pad - dilation * (k - 1) - 1) // stride + 1 for n, k in ((6, 3), (5, 2))]
    weight, taps = numbers(4, 4 // groups, 3, 2), offset_groups * 6
    offset, mask, bias = numbers(2, 2 * taps, *extents), abs(numbers(2, taps, *extents)), numbers(4)
    with_mask = groups == offset_groups
    case(
        f"deform {groups} {offset_groups} {stride} {dilation} {pad} {int(with_mask)}",
        "DeformConv",
        19,
        [image, weight, offset, bias, mask if with_mask else None],
        group=groups,
        offset_group=offset_groups,
        strides=[stride] * 2,
        dilations=[dilation] * 2,
        pads=[pad] * 4,
    )
for outside in ("zeros", "border", "reflection"):
    for align in (0, 1):
        case(
            f"sample {outside} {align}",
            "GridSample",
            16,
            [numbers(2, 2, 4, 3), numbers(2, 3, 2, 2)],
            mode="bicubic",
            padding_mode=outside,
            align_corners=align,
        )
