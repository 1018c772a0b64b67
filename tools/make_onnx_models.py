#!/usr/bin/env python3
"""Writes the small ONNX models of docs/guide/onnx.md into models/onnx. Needs the package onnx.

    make_onnx_models.py FOLDER
"""

import pathlib
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
rng = np.random.default_rng(3)


def weight(name, *shape):
    return numpy_helper.from_array((rng.standard_normal(shape) / 2).astype(np.float32), name)


def floats(name, shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def write(name, nodes, inputs, outputs, weights, opset=17):
    graph = helper.make_graph(nodes, name, inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], producer_name="lightcone")
    model.ir_version = 8
    (folder / (name + ".onnx")).write_bytes(model.SerializeToString())


# Two linear layers. The batch has a name, and the hidden layer is reshaped by arithmetic on the shape of the input.
nodes = [
    helper.make_node("Gemm", ["x", "w1", "b1"], ["h"], name="layer1", transB=1),
    helper.make_node("Relu", ["h"], ["a"], name="relu"),
    helper.make_node("Shape", ["x"], ["shape"]),
    helper.make_node("Gather", ["shape", "zero"], ["n"]),
    helper.make_node("Concat", ["n", "rest"], ["to"], axis=0),
    helper.make_node("Reshape", ["a", "to"], ["flat"]),
    helper.make_node("Gemm", ["flat", "w2", "b2"], ["logits"], name="layer2", transB=1),
    helper.make_node("Softmax", ["logits"], ["probabilities"], name="softmax", axis=-1),
]
weights = [
    weight("w1", 8, 4),
    weight("b1", 8),
    weight("w2", 3, 8),
    weight("b2", 3),
    numpy_helper.from_array(np.array([0], np.int64), "zero"),
    numpy_helper.from_array(np.array([-1], np.int64), "rest"),
]
write("flowers", nodes, [floats("x", ["batch", 4])], [floats("probabilities", ["batch", 3])], weights)

# Models that are wrong, each in another way.
x, y = [floats("x", ["batch", 4])], [floats("y", ["batch", 4])]
write("unknown_operator", [helper.make_node("Frobnicate", ["x"], ["y"], name="frob", domain="com.example")], x, y, [])
write("unknown_attribute", [helper.make_node("Relu", ["x"], ["y"], name="relu", slope=0.5)], x, y, [])
write("wrong_shapes", [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")], x, y, [weight("w", 5, 4)])
write("no_operand", [helper.make_node("Add", ["x", "bias"], ["y"], name="sum")], x, y, [])
outside = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4, 4], data_location=TensorProto.EXTERNAL)
outside.external_data.add(key="location", value="../weights.bin")
write("file_outside", [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")], x, y, [outside])
