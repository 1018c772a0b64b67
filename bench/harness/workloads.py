"""The workloads of bench/compare, and what Lightcone is to reach in each: one table for both.

A row: its name; its `topic`, which names the file of its record; `spec`, what every runner is told; `work` of one call in the unit of `rate`; `limit`, the measured
limit that rate is a share of; `peers`, who runs it too; `goals`.

Goals are shares of what the same machine can do and ratios to who is fastest on it, so that they hold on any:

       ("than", PEER, RATIO)       at least RATIO times as fast as PEER ("best": the fastest that ran it)
       ("than", PEER, RATIO, UNIT) the same, only where the processor has this unit
       ("limit", SHARE)            at least this share of the measured limit
       ("limit", SHARE, UNIT)      the same, only where the processor has this unit
       ("first", PEER, RATIO)      from the file to the end of the first run at most RATIO times as long as PEER
       ("grown", PEER, RATIO)      what the process's peak grew by with the model, at most RATIO times as much as PEER's
       ("rss", RATIO)              peak memory over what the plan and the weights say
       ("hidden", SHARE)           at least this share of what the exchanges take alone does not lengthen a step
       ("linear", NAME, SLACK)     its rate is at least 1/SLACK of that of another row
"""
import fnmatch

LLAMA = ["llama.cpp"]
PRODUCTS = ["torch", "torch.compile", "onnxruntime", "onednn", "openblas", "jax", "tinygrad", "dfdx", "luminal"]
NETS = ["torch", "torch.compile", "onnxruntime", "jax"]
SMALL = NETS + ["tinygrad", "dfdx", "luminal"]
FUSED = ["torch", "torch.compile", "onnxruntime", "jax", "tinygrad", "dfdx", "luminal"]

# of one token: all weights but the embedding table, and of experts those of the chosen ones
PARAMETERS = {"tinyllama": 1_100_048_384 - 32000 * 2048, "stories15m": 24_407_712 - 32000 * 288,
              "mixtral-2-layers": 2 * (2 * 4096**2 + 2 * 4096 * 1024 + 2 * 3 * 4096 * 14336) + 32000 * 4096}
BITS = {"q8_0": 8.5, "q4_0": 4.5, "q4_k": 4.5, "f16": 16, "bf16": 16}


def row(name, spec, work, rate, limit, peers, goals, tolerance=1e-3, **more):
    return dict(name=name, spec=spec, work=work, rate=rate, limit=limit, peers=peers, goals=goals, tolerance=tolerance, **more)


def llamas():
    for quant in ("q8_0", "q4_0", "q4_k", "f16", "bf16"):
        spec = {"kind": "decode", "model": "tinyllama", "quant": quant}
        if quant.startswith("q"):  # llama.cpp rounds activations to 8 bits as well
            spec["precision"] = "medium"
        goals = [("limit", 0.88), ("limit", 0.9, "amx_tile"), ("than", "best", 1.1), ("rss", 1.05)]
        bytes_read = PARAMETERS["tinyllama"] * BITS[quant] / 8
        # peers round activations to 8 bits, so that answers agree to a few per cent of their spread
        yield row("decode-" + quant, spec, 1, "tok/s", ("read", bytes_read), LLAMA, goals, 0.25)
    spec = {"kind": "decode", "model": "stories15m", "quant": "q8_0", "precision": "medium"}
    yield row("decode-tiny", spec, 1, "tok/s", None, LLAMA, [("than", "best", 1.5)], 0.25)
    # a layer of Mixtral 8x7B has 0.8 GB in Q4_K, so two of them are taken; a token reads 2 of 8 experts
    spec = {"kind": "decode", "model": "mixtral-2-layers", "quant": "q4_k", "precision": "medium", "experts": True}
    bytes_read = PARAMETERS["mixtral-2-layers"] * BITS["q4_k"] / 8
    yield row("decode-mixtral-q4_k", spec, 1, "tok/s", ("read", bytes_read), LLAMA, [("limit", 0.85), ("than", "best", 1.0)], 0.25)
    for quant, unit, ratio in (("q8_0", "amx_int8", 4), ("q4_0", "amx_int8", 4), ("bf16", "amx_bf16", 8)):
        spec = {"kind": "prompt", "model": "tinyllama", "quant": quant, "tokens": 512, "chunk": 512, "precision": "medium"}
        yield row("prompt-" + quant, spec, 512, "tok/s", None, LLAMA, [("than", "best", 1.5), ("than", "llama.cpp", ratio, unit)], 0.25)


# With tile registers: times as fast as oneDNN, and in f32, which they multiply as sums of bf16, as the best peer.
ON_TILES = {"f32": {2048: 1.5, 4096: 1.5}, "bf16": {512: 1.05, 1024: 1.3, 2048: 1.4, 4096: 1.6},
            "int8": {512: 0.97, 1024: 1.1, 2048: 1.3, 4096: 1.3}}


def product(dtype, m, n, tolerance):
    """Rows [m, n] times [n, n]."""
    goals, unit = [("than", "best", 0.97)], "amx_int8" if dtype == "int8" else "amx_bf16"
    ratio = ON_TILES[dtype].get(n) if m == n else None if dtype == "f32" else 1.1
    if ratio:
        goals.append(("than", "best" if dtype == "f32" else "onednn", ratio, unit))
    only_f32 = ("openblas", "tinygrad", "dfdx", "luminal")
    peers = [p for p in PRODUCTS if p not in only_f32 or (dtype == "f32" and m == n)]
    if dtype == "int8":
        peers.remove("torch.compile")  # the same routine as eager
    spec = {"kind": "gemm", "dtype": dtype, "n": n, "precision": "highest" if dtype == "f32" else "medium"}
    if m != n:
        spec["m"] = m
    name = "gemm-%s-%d" % (dtype, n) if m == n else "gemm-%s-%dx%d" % (dtype, m, n)
    rate, operations = "GOP/s" if dtype == "int8" else "GFLOP/s", 2.0 * m * n * n
    return row(name, spec, 1e-9 * operations, rate, (dtype, operations), peers, goals, tolerance)


def products():
    for dtype, tolerance in (("f32", 1e-4), ("bf16", 2e-2), ("int8", 1e-5)):
        for n in (512, 1024, 2048, 4096):
            yield product(dtype, n, n, tolerance)
        for m in (32, 128):  # a prompt's and a batch's rows
            yield product(dtype, m, 2048, tolerance)
    for n in (512, 1024, 2048, 4096):  # a scale for every 32 numbers: no peer answers this question, so no goal
        spec = {"kind": "gemm", "dtype": "q8_0", "n": n, "precision": "medium"}
        yield row("gemm-q8_0-%d" % n, spec, 2e-9 * n**3, "GOP/s", ("int8", 2.0 * n**3), [], [], 2e-2)


def nets():
    flops = {"vgg19": 39.3e9, "resnet50": 8.2e9}
    for kind in flops:
        for batch in (1, 16):
            for dtype in ("f32", "bf16"):
                precision = "highest" if dtype == "f32" else "medium"
                spec = {"kind": kind, "batch": batch, "dtype": dtype, "precision": precision}
                name = "%s-b%d%s" % (kind, batch, "" if dtype == "f32" else "-bf16")
                peers, told, goals, tolerance = NETS, {}, [("than", "best", 1.1)], 2e-3
                if dtype == "bf16":  # ONNX Runtime has no bf16 kernels for CPUs: its f32 is what it offers
                    told = {"onnxruntime": {"dtype": "f32"}}
                    goals, tolerance = [("than", "best", 1.0), ("than", "torch.compile", 1.1, "amx_bf16")], 0.1
                yield row(name, spec, 1e3, "ms", (dtype, flops[kind] * batch), peers, goals, tolerance, told=told, heavy=batch > 1)
    for kind, flop, shape in (("bert", 1.86e9, {"batch": 1, "tokens": 128}), ("gpt", 7.65e9, {"batch": 8, "tokens": 256})):
        spec = dict(kind=kind, dtype="f32", **shape)
        goals = [("limit", 0.8), ("than", "best", 1.1)]
        yield row(kind + "-block", spec, 1e3, "ms", ("f32", flop), NETS, goals, 2e-3)
        told = {"onnxruntime": {"dtype": "f32"}}
        told["torch.compile"] = {"dtype": "f32"}  # eager shows its bf16
        goals = [("than", "best", 1.1), ("than", "torch", 1.3, "amx_bf16")]
        spec = dict(spec, dtype="bf16", precision="medium")
        yield row(kind + "-block-bf16", spec, 1e3, "ms", ("bf16", flop), NETS, goals, 0.1, told=told)


def published():
    """Models that are published as ONNX files (bench/setup-peers onnx-models), read as they are by both sides."""
    def tokens(batch, length, vocabulary=30522):
        shape = [batch, length]
        return [{"name": "input_ids", "shape": shape, "dtype": "i64", "below": vocabulary},
                {"name": "attention_mask", "shape": shape, "dtype": "i64", "value": 1},
                {"name": "token_type_ids", "shape": shape, "dtype": "i64"}]

    def picture(name, size):
        return [{"name": name, "shape": [1, 3, size, size]}]

    for kind, tolerance in (("f32", 1e-3), ("int8", 5e-2)):
        for batch in (1, 32):
            yield "minilm-%s-b%d" % (kind, batch), "minilm-%s.onnx" % kind, {"inputs": tokens(batch, 128)}, tolerance
    # its open height and width have to be multiples of 32, which the file does not say
    yield "ppocr-detector", "ppocr-det.onnx", {"inputs": picture("x", 640), "fixed": True}, 5e-3
    yield "yolov8n", "yolov8n.onnx", {"inputs": picture("images", 640)}, 5e-3
    yield "resnet50", "resnet50.onnx", {"inputs": picture("x", 224)}, 5e-3
    yield "mobilenet-v3", "mobilenet-v3.onnx", {"inputs": picture("x", 224)}, 5e-3
    # who streams knows the size of a frame and the rate, and says so where that is possible
    silero = [{"name": "input", "shape": [1, 576]}, {"name": "state", "shape": [2, 1, 128]},
              {"name": "sr", "shape": [], "dtype": "i64", "value": 16000, "known": True}]
    yield "silero-vad", "silero-vad.onnx", {"inputs": silero, "feed": {"stateN": "state"}, "fixed": True}, 5e-3


def onnx():
    for name, file, spec, tolerance in published():
        goals = [("than", "onnxruntime", 1.0), ("first", "onnxruntime", 1.0), ("grown", "onnxruntime", 0.8)]
        yield row("onnx-" + name, dict(spec, kind="onnx", file=file), 1e3, "ms", None, ["onnxruntime"], goals, tolerance)


def folders():
    """Models as transformers and diffusers publish them (bench/setup-peers hf-models), opened by load_model() on our side and as
    an export on onnxruntime's."""
    def tokens(batch, length):
        shape = [batch, length]
        return [{"name": "input_ids", "shape": shape, "dtype": "i64", "below": 30522},
                {"name": "attention_mask", "shape": shape, "dtype": "i64", "value": 1},
                {"name": "token_type_ids", "shape": shape, "dtype": "i64"}]

    for batch in (1, 8):
        yield "bert-base-b%d" % batch, "bert-base", tokens(batch, 128), "hidden", 1.2
    yield "vit-b", "vit-b-16", [{"name": "pixel_values", "shape": [1, 3, 224, 224]}], "logits", 1.2
    for size in ("tiny", "base"):
        yield "whisper-%s-encoder" % size, "whisper-" + size, [{"name": "input_features", "shape": [1, 80, 3000]}], "encoder_hidden", 1.3
    step = [{"name": "sample", "shape": [1, 4, 64, 64]}, {"name": "timestep", "shape": [1]}, {"name": "encoder_hidden_states", "shape": [1, 77, 768]}]
    yield "sd-unet-step", "sd-unet", step, "prediction", 1.3


def models():
    for name, folder, inputs, answer, ratio in folders():
        spec = {"kind": "model", "folder": folder, "inputs": inputs, "answer": answer}
        heavy = name.startswith("sd-")
        if heavy:
            spec["fixed"] = True
        goals = [("than", "best", ratio)] + ([("grown", "onnxruntime", 0.7)] if heavy else [])
        yield row("model-" + name, spec, 1e3, "ms", None, ["torch", "torch.compile", "onnxruntime"], goals, 5e-3, heavy=heavy)
        if heavy:  # ONNX Runtime has no bf16 kernels for CPUs: its f32 is what it offers
            told = {"onnxruntime": {"folder": folder}}
            spec = dict(spec, folder=folder + "-bf16", dtype="bf16", precision="medium")
            yield row("model-%s-bf16" % name, spec, 1e3, "ms", None, ["torch", "torch.compile", "onnxruntime"], [("than", "best", ratio)], 0.1,
                      told=told, heavy=True)
    picture = [{"name": "pixel_values", "shape": [1, 3, 640, 640]}]
    spec = {"kind": "model", "folder": "yolov9t", "weights": "model.pt", "inputs": picture, "answer": "boxes", "outputs": ["boxes", "scores"]}
    yield row("model-yolov9t", spec, 1e3, "ms", None, ["onnxruntime"], [("than", "best", 1.2)], 5e-3)
    yield from whispers()


def whispers():
    """Whisper's decoder behind an encoded source, a token, and all from the spectrogram of 30 s to 64 tokens. CTranslate2 has f32. whisper.cpp has
    weights of f16, for which it rounds activations, too."""
    for size in ("tiny", "base"):
        for suffix, peer, tolerance in (("", "ctranslate2", 5e-3), ("-f16", "whisper.cpp", 5e-2)):
            for part, work in (("decode", 1e3 / 64), ("whole", 1e3)):
                spec = {"kind": "whisper", "folder": "whisper-" + size + suffix, "part": part, "tokens": 64}
                yield row("model-whisper-%s-%s%s" % (size, part, suffix), spec, work, "ms", None, [peer], [("than", peer, 1.3)], tolerance)


def fused():
    for op in ("gelu", "chain", "softmax", "layernorm", "ln_gelu_softmax"):
        spec = {"kind": "fused", "op": op, "rows": 4096, "columns": 4096}
        moved = 2 * 4 * 4096 * 4096
        goals = [("limit", 0.88), ("than", "best", 1.0)]
        yield row(op, spec, moved / 1e9, "GB/s", ("copy", moved), FUSED, goals)


def small():
    for batch in (1, 128):
        flop = 2.0 * batch * (784 * 512 + 512 * 512 + 512 * 10)
        limit = ("f32", flop) if batch > 1 else None
        spec = {"kind": "mlp", "batch": batch}
        yield row("mlp-b%d" % batch, spec, 1e6, "us", limit, SMALL, [("than", "best", 1.0)])
    yield row("dispatch", {"kind": "scalar"}, 1e6, "us", None, SMALL, [("than", "best", 2)])


def compiles():
    for cold in (True, False):
        goals = [("than", "best", 20)]
        spec = {"kind": "compile-llama", "cold": cold}
        yield row("compile-llama-" + ("cold" if cold else "warm"), spec, 1e3, "ms", None, ["torch.compile"], goals, once=True)
    for nodes in (10_000, 30_000, 100_000):
        goals = [("linear", "compile-10000", 1.5)]
        spec = {"kind": "compile-nodes", "nodes": nodes}
        yield row("compile-%d" % nodes, spec, nodes / 1e3, "knodes/s", None, [], goals)


def training():
    """Steps of training. `work` is of the products alone, forward and both of their gradients: 6 x the weights of the
    products x tokens (or rows, or pixels), without the gradient of the first layer's input, which nobody needs; causal
    attention is 6 x layers x batch x context^2 x width, half of what a full square would be."""
    def transformer(layers, width, context, batch, weights):
        return 6.0 * weights * batch * context + 6.0 * layers * batch * context**2 * width

    gpt = transformer(6, 384, 256, 8, 6 * 12 * 384**2 + 65 * 384)
    llama = transformer(6, 288, 256, 8, 6 * (4 * 288**2 + 3 * 288 * 768) + 32000 * 288)
    mlp = 2.0 * 128 * (3 * (784 * 512 + 512 * 512 + 512 * 10) - 784 * 512)
    stem, image, narrow, pixels = 9 * 3 * 64 * 1024, 4 * 9 * 64**2 * 1024, 64, 1024  # multiplications of an image
    for wide in (128, 256, 512):
        pixels //= 4
        image += (9 * narrow * wide + 3 * 9 * wide**2 + narrow * wide) * pixels
        narrow = wide
    resnet = 2.0 * 32 * (3 * (stem + image + 512 * 10) - stem)
    for model, batch, flop in (("mlp", 128, mlp), ("gpt", 8, gpt), ("llama", 8, llama), ("resnet18", 32, resnet)):
        spec = {"kind": "train", "net": model, "batch": batch}
        goals = [("than", "best", 1.0)]
        yield row("train-" + model, spec, 1e3, "ms", ("f32", flop), ["torch", "torch.compile"], goals, 1e-4, flop=flop)
        if model != "mlp":  # torch.autocast on the other side
            spec = dict(spec, dtype="bf16", precision="medium")
            goals = goals + [("than", "torch.compile", 1.3 if model == "resnet18" else 1.4, "amx_bf16")]
            yield row("train-%s-bf16" % model, spec, 1e3, "ms", ("bf16", flop), ["torch", "torch.compile"], goals, 5e-3, flop=flop)


LINKS = (("", {}), ("-1gbit", {"link": [1e9, 0.001]}))  # loopback (a peer's default on one machine), and 1 Gbit/s with 1 ms one way


def ranks():
    """Two ranks of one thread, beside PyTorch's over gloo. The batch is that of both."""
    gpt = {"kind": "train", "net": "gpt", "layers": 8, "heads": 8, "width": 512, "context": 256, "vocabulary": 65, "batch": 8}
    flop = 6.0 * (8 * 12 * 512**2 + 65 * 512) * 8 * 256 + 6.0 * 8 * 8 * 256**2 * 512
    several = {"ranks": 2, "threads": 1}
    yield from decodes(several)
    goals = [("than", "best", 1.2), ("hidden", 0.8)]
    for strategy, peer in (("data", "torch-ddp"), ("zero3", "torch-fsdp")):
        for link, more in (*LINKS, ("-tcp", {"transport": "tcp"})):  # MPI's default on one machine is shared memory
            spec = dict(gpt, strategy=strategy, **several, **more)
            yield row("ranks-%s%s" % (strategy, link), spec, 1e3, "ms", None, [peer, peer + ".compile"], goals, 1e-4, flop=flop)
    for size, calls in ((4096, 400), (65536, 200), (1 << 20, 40), (16 << 20, 4), (64 << 20, 1)):
        name = "all-reduce-%s" % ("%dKB" % (size >> 10) if size < 1 << 20 else "%dMB" % (size >> 20))
        for link, more in (*LINKS, ("-tcp", {"transport": "tcp"})):
            spec = {"kind": "all-reduce", "bytes": size, "calls": max(1, calls // 4) if link == "-1gbit" else calls, **several, **more}
            yield row(name + link, spec, 1e6, "us", None, ["torch-gloo"], [("than", "torch-gloo", 1.0)], 1e-6)


def decodes(several):
    """A model that two ranks hold by tensor parallelism, beside llama.cpp and a server of its RPC back end, of one thread each."""
    for quant in ("q8_0", "q4_k"):
        for link, more in (*LINKS, ("-tcp", {"transport": "tcp"})):
            spec = {"kind": "decode", "model": "tinyllama", "quant": quant, "precision": "medium", "calls": 16, **several, **more}
            # 12 of 22 layers here, and there 10 and the output layer, which is as large as 1.5 of them
            spec["half_of_layers"] = 11
            yield row("decode-ranks-" + quant + link, spec, 1, "tok/s", None, ["llama.cpp-rpc", "llama.cpp-rpc.tensor", "one-rank"],
                      [("than", "llama.cpp-rpc", 1.2), ("than", "llama.cpp-rpc.tensor", 1.2)], 0.25)


TOPICS = {"decode": llamas, "products": products, "networks": nets, "onnx": onnx, "models": models, "rows": fused, "small": small, "training": training, "distributed": ranks, "compile": compiles}


def workloads():
    return [dict(row, topic=topic) for topic, rows in TOPICS.items() for row in rows()]


def pick(rows, only):
    """Rows by name, by prefix ("gemm", "decode-q") or by pattern ("*-bf16*")."""
    if not only:
        return rows
    patterns = only.split(",")
    chosen = [r for r in rows if any(r["name"].startswith(p) or fnmatch.fnmatch(r["name"], p) for p in patterns)]
    for p in patterns:
        if not any(r["name"].startswith(p) or fnmatch.fnmatch(r["name"], p) for r in rows):
            raise SystemExit("compare: no workload is called '%s' (--list shows all)" % p)
    return chosen
