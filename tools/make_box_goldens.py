#!/usr/bin/env python3
"""Writes tests/goldens/boxes.txt: what torchvision (0.29) and ONNX's reference implementation (onnx 1.23) answer for boxes.

    python3 tools/make_box_goldens.py > tests/goldens/boxes.txt

A case is a name with its numbers, the inputs in f32, and the results without padding. Without the package onnx, or
without torchvision, it stops.
"""

import numpy as np
import torch
import torchvision.ops as ops
from onnx.reference.ops.op_non_max_suppression import NonMaxSuppression

draw = np.random.default_rng(5)
reference = object.__new__(NonMaxSuppression)  # its _run() needs no node


def tensor(kind, v):
    name = {"float32": "f32", "int64": "i64"}[v.dtype.name]
    print(kind, name, "[" + " ".join(map(str, v.shape)) + "]", *(repr(e) for e in v.ravel().tolist()))


def case(name, inputs, *outputs):
    print("case", name)
    for v in inputs:
        tensor("in", np.asarray(v))
    for v in outputs:
        tensor("out", np.asarray(v))


def corners(*shape):
    """Boxes in an image of 64, in eighths, so that sums are exact."""
    first = draw.integers(0, 384, (*shape, 2))
    return np.concatenate([first, first + draw.integers(1, 200, (*shape, 2))], -1).astype(np.float32) / 8


def scores(*shape):
    """In 64ths: some are equal."""
    return draw.integers(1, 64, shape).astype(np.float32) / 64


def onnx(name, boxes, scores, most, iou, threshold=None, center=0):
    limit = None if threshold is None else np.array([threshold], np.float32)
    arguments = (boxes, scores, np.array([most]), np.array([iou], np.float32), limit, center)
    case(f"{name} {most} {iou} {threshold} {center}", [boxes, scores], reference._run(*arguments)[0])


a, b = corners(6), corners(9)
case("iou", [a, b], ops.box_iou(torch.tensor(a), torch.tensor(b)).numpy())
case("area", [b], ops.box_area(torch.tensor(b)).numpy())
for start in ("xyxy", "xywh", "cxcywh"):
    for end in ("xyxy", "xywh", "cxcywh"):
        case(f"convert {start} {end}", [a], ops.box_convert(torch.tensor(a), start, end).numpy())
case("clip 40 30", [b], ops.clip_boxes_to_image(torch.tensor(b), (40, 30)).numpy())
for iou in (0.0, 0.3, 0.7):
    x, s = corners(70), scores(70)
    s += np.linspace(0, 1 / 1024, 70, dtype=np.float32)  # torchvision's order of equal scores is not fixed
    case(f"nms {iou}", [x, s], ops.nms(torch.tensor(x), torch.tensor(s), iou).numpy())
    kind = draw.integers(0, 4, 70)
    case(
        f"batched {iou}",
        [x, s, kind],
        ops.batched_nms(torch.tensor(x), torch.tensor(s), torch.tensor(kind), iou).numpy(),
    )
onnx("select", corners(2, 40), scores(2, 3, 40), 5, 0.4, 0.3)
onnx("select", corners(1, 40), scores(1, 2, 40), 40, 0.25)
onnx("select", corners(1, 40), scores(1, 2, 40), 100, 0.5, 0.9)
onnx("select", corners(1, 10), scores(1, 2, 10), 5, 0.5, 2.0)
flipped = corners(1, 30)
flipped[0, ::2] = flipped[0, ::2, [2, 1, 0, 3]].T
onnx("select", flipped, scores(1, 1, 30), 20, 0.3)
centred = corners(1, 30)
onnx("select", centred, scores(1, 1, 30), 20, 0.3, 0.1, 1)
same = np.tile(corners(1, 1), (1, 6, 1))
onnx("select", same, np.full((1, 1, 6), 0.5, np.float32), 6, 0.5)
onnx("select", same, np.full((1, 1, 6), 0.5, np.float32), 3, 1.0)
flat = corners(1, 6)
flat[0, :, 2] = flat[0, :, 0]
onnx("select", flat, scores(1, 1, 6), 6, 0.0)
half = np.array([[[0, 0, 1, 1], [0, 0, 1, 0.5], [0, 0, 1, 0.25]]], np.float32)
onnx("select", half, np.array([[[0.9, 0.8, 0.7]]], np.float32), 3, 0.5)
