"""ONNX Runtime: models written operation by operation, all optimisations, weights as initialisers (so it packs them)."""
import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

import data


class Model:
    def __init__(self):
        self.nodes, self.weights, self.inputs, self.feed, self.count = [], [], [], {}, 0

    def op(self, kind, *args, domain="", **attributes):
        self.count += 1
        out = "v%d" % self.count
        self.nodes.append(helper.make_node(kind, list(args), [out], domain=domain, **attributes))
        return out

    def constant(self, name, value):
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def weight(self, name, shape):
        return self.constant(name, data.parameter(name, shape))

    def dense(self, x, name, i, o):
        w = self.constant(name + ".weight", data.parameter(name + ".weight", (o, i)).T)
        return self.op("Add", self.op("MatMul", x, w), self.weight(name + ".bias", (o,)))

    def norm(self, x, name, width):
        return self.op(
            "LayerNormalization", x, self.weight(name + "norm.weight", (width,)), self.weight(name + "norm.bias", (width,)),
            axis=-1, epsilon=1e-5)

    def gelu(self, x):
        return self.op("Gelu", x)

    def input(self, name, value, kind=TensorProto.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, kind, value.shape))
        self.feed[name] = value
        return name

    def finish(self, y, threads, kind=TensorProto.FLOAT):
        out = helper.make_tensor_value_info(y, kind, None)
        graph = helper.make_graph(self.nodes, "g", self.inputs, [out], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
        model.ir_version = 9
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        # bound once: no copies of inputs or outputs in a call
        values = {n: ort.OrtValue.ortvalue_from_numpy(v) for n, v in self.feed.items()}
        shape = session.run(None, self.feed)[0]
        result = ort.OrtValue.ortvalue_from_numpy(np.empty_like(shape))
        binding = session.io_binding()
        for n, v in values.items():
            binding.bind_ortvalue_input(n, v)
        binding.bind_ortvalue_output(y, result)
        return {
            "call": lambda: session.run_with_iobinding(binding),
            "answer": lambda: result.numpy().astype(np.float32),
            "keep": (values, result, session),
        }


def gemm(w, m):
    n, rows = w["n"], w.get("m", w["n"])
    if w["dtype"] == "int8":
        # u8 times s8 is the pair its kernels are fastest at; the zero point 128 makes it the same product
        x = m.input("x", (data.int8s("x", (rows, n)).astype(np.int16) + 128).astype(np.uint8), TensorProto.UINT8)
        wt = m.constant("w", data.int8s("w", (n, n)).T)
        y = m.op("MatMulInteger", x, wt, m.constant("zero", np.uint8(128)))
        return m.finish(y, w["threads"], TensorProto.INT32)
    if w["dtype"] == "bf16":
        raise data.Missing("ONNX Runtime has no bf16 MatMul on CPUs")
    x = m.input("x", data.inputs("x", (rows, n)))
    return m.finish(m.op("MatMul", x, m.constant("w", data.parameter("w", (n, n)).T)), w["threads"])


def fused(w, m):
    rows, columns, op = w["rows"], w["columns"], w["op"]
    x = m.input("x", data.inputs("x", (rows, columns), 3))
    if op == "gelu":
        return m.gelu(x)
    if op == "softmax":
        return m.op("Softmax", x, axis=-1)
    if op == "chain":
        y = m.op("Relu", m.op("Add", m.op("Mul", x, m.weight("w", (columns,))), m.weight("b", (columns,))))
        return m.op("Add", m.op("Mul", y, m.constant("two", np.float32(2))), x)
    y = m.norm(x, "", columns)
    return y if op == "layernorm" else m.op("Softmax", m.gelu(y), axis=-1)


def vgg19(w, m):
    x, channels, n = m.input("x", data.inputs("x", (w["batch"], 3, 224, 224))), 3, 0
    for width in (64, 64, 0, 128, 128, 0, 256, 256, 256, 256, 0, 512, 512, 512, 512, 0, 512, 512, 512, 512, 0):
        if not width:
            x = m.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
            continue
        name = "conv%d" % n
        k, b = m.weight(name + ".weight", (width, channels, 3, 3)), m.weight(name + ".bias", (width,))
        x = m.op("Relu", m.op("Conv", x, k, b, pads=[1, 1, 1, 1]))
        channels, n = width, n + 1
    x = m.op("Flatten", x)
    x = m.op("Relu", m.dense(x, "fc1", 25088, 4096))
    x = m.op("Relu", m.dense(x, "fc2", 4096, 4096))
    return m.dense(x, "fc3", 4096, 1000)


def resnet50(w, m):
    def conv_norm(x, name, i, o, kernel, stride):
        y = m.op("Conv", x, m.weight(name + ".conv.weight", (o, i, kernel, kernel)), strides=[stride] * 2, pads=[kernel // 2] * 4)
        parts = ("weight", "bias", "running_mean", "running_var")
        return m.op("BatchNormalization", y, *(m.weight("%s.norm.%s" % (name, p), (o,)) for p in parts), epsilon=1e-5)

    relu = lambda x: m.op("Relu", x)
    x = relu(conv_norm(m.input("x", data.inputs("x", (w["batch"], 3, 224, 224))), "stem", 3, 64, 7, 2))
    x, i = m.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]), 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for b in range(blocks):
            name, width = "layer%d.%d" % (stage, b), 64 << stage
            stride = 2 if stage and not b else 1
            y = relu(conv_norm(x, name + ".a", i, width, 1, 1))
            y = conv_norm(relu(conv_norm(y, name + ".b", width, width, 3, stride)), name + ".c", width, width * 4, 1, 1)
            x = relu(m.op("Add", y, conv_norm(x, name + ".down", i, width * 4, 1, stride) if b == 0 else x))
            i = width * 4
    return m.dense(m.op("Flatten", m.op("GlobalAveragePool", x)), "fc", 2048, 1000)


def attend(m, x, batch, seq, width, heads, causal):
    size = width // heads
    shape = m.constant("split", np.array([batch, seq, heads, size], np.int64))
    q, k, v = (m.op("Reshape", m.dense(x, n, width, width), shape) for n in ("query", "key", "value"))
    q, v = (m.op("Transpose", t, perm=[0, 2, 1, 3]) for t in (q, v))
    k = m.op("Transpose", k, perm=[0, 2, 3, 1])
    scores = m.op("Mul", m.op("MatMul", q, k), m.constant("scale", np.float32(size**-0.5)))
    if causal:
        mask = np.where(np.tril(np.ones((seq, seq), bool)), 0, -np.inf).astype(np.float32)
        scores = m.op("Add", scores, m.constant("mask", mask))
    y = m.op("Transpose", m.op("MatMul", m.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    y = m.op("Reshape", y, m.constant("join", np.array([batch, seq, width], np.int64)))
    return m.dense(y, "out", width, width)


def block(w, m):
    batch, seq = w["batch"], w["tokens"]
    gpt = w["kind"] == "gpt"
    width, heads = (384, 6) if gpt else (768, 12)
    x = m.input("x", data.inputs("x", (batch, seq, width)))
    feed = lambda x: m.dense(m.gelu(m.dense(x, "up", width, 4 * width)), "down", 4 * width, width)
    if gpt:
        x = m.op("Add", x, attend(m, m.norm(x, "attention_", width), batch, seq, width, heads, True))
        return m.op("Add", x, feed(m.norm(x, "mlp_", width)))
    x = m.norm(m.op("Add", x, attend(m, x, batch, seq, width, heads, False)), "attention_", width)
    return m.norm(m.op("Add", x, feed(x)), "output_", width)


def mlp(w, m):
    x = m.input("x", data.inputs("x", (w["batch"], 784)))
    x = m.op("Relu", m.dense(x, "fc1", 784, 512))
    x = m.op("Relu", m.dense(x, "fc2", 512, 512))
    return m.dense(x, "fc3", 512, 10)


def values_of(given):
    """An input of a model file, as bench/runner/onnx.cpp has it."""
    if given.get("dtype", "f32") == "f32":
        return data.inputs(given["name"], given["shape"])
    if "below" in given:
        return data.classes(given["name"], given["shape"], given["below"])
    return np.full(given["shape"], given.get("value", 0), np.int64)


def published(w):
    """A model file as it is. Outputs stay where they were made; a state that is fed back is bound, not copied."""
    before = data.peak_rss()
    options = ort.SessionOptions()
    options.intra_op_num_threads = w["threads"]
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    path = w["path"] + "/model.onnx" if w["kind"] == "model" else w["path"]
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    values = [ort.OrtValue.ortvalue_from_numpy(values_of(i)) for i in w["inputs"]]
    for given, value in zip(w["inputs"], values):
        binding.bind_ortvalue_input(given["name"], value)
    names = [o.name for o in session.get_outputs()]
    feed = [(names.index(output), i) for output, i in w.get("feed", {}).items()]
    for name in names:
        binding.bind_output(name)

    def call():
        session.run_with_iobinding(binding)
        if feed:
            made = binding.get_outputs()
            for k, name in feed:
                binding.bind_ortvalue_input(name, made[k])

    answer = names.index(w["answer"]) if "answer" in w else 0
    return {
        "call": call,
        "answer": lambda: binding.get_outputs()[answer].numpy().astype(np.float32),
        "facts": {"rss_before": before},
        "keep": (values, session),
    }


def make(w):
    m, kind = Model(), w["kind"]
    if kind in ("onnx", "model"):
        return published(w)
    if kind == "gemm":
        return gemm(w, m)
    if kind == "scalar":
        y = m.op("Add", *(m.input(n, data.inputs(n, (1,))) for n in "ab"))
    else:
        f = {"fused": fused, "mlp": mlp, "vgg19": vgg19, "resnet50": resnet50, "bert": block, "gpt": block}.get(kind)
        if f is None:
            raise data.Missing("no runner for " + kind)
        if w.get("dtype") == "bf16":
            raise data.Missing("ONNX Runtime has no bf16 kernels on CPUs")
        y = f(w, m)
    return m.finish(y, w["threads"])


data.serve(make, lambda: "onnxruntime " + ort.__version__)
