"""The stages, best first: what tells most about a GPU in a second. A stage is a command, its limit in seconds, and what its
environment has more than that of the others."""
from collections import namedtuple

Stage = namedtuple("Stage", "name command limit more fake", defaults=({}, False))

# Figures of these rows, in this order, each prefix in a process of its own: one that hangs takes no other with it.
ROWS = ["gemm", "gemv", "few rows", "attention", "story", "training", "gelu", "softmax", "layer norm", "add", "sums", "transposed", "AdamW"]


def stages(place, found, fake):
    """`place`: where the files are; `found`: tools of this machine by name; `fake`: by the CUDA that runs on the CPU, of each
    program a test or two."""
    bench, story = place / "bin/lightcone_gpu_bench", place / "models/story/story.gguf"

    def rows(prefix, seconds=0.2):
        return [bench, story, "--only", prefix] + (["--tiny"] if fake else ["--seconds", seconds])

    def test(program, few="*"):
        return [place / "bin" / program, "--gtest_filter=" + (few if fake else "*")]

    ours = {"LIGHTCONE_CUBLASLT": "off"}
    facts = "nvidia-smi --query-gpu=name,driver_version,power.limit,clocks.max.sm,clocks.max.memory,memory.total --format=csv; uname -r; nproc"
    all_stages = [
        Stage("facts", ["sh", "-c", facts], 15),
        Stage("ceilings", rows("ceiling"), 30, {}, True),
        Stage("primitives", test("primitives_test"), 40, {}, True),
        Stage("values", rows("values"), 30, {}, True),
        Stage("products", test("products_test", "*OfHalves*"), 90, {}, True),
        Stage("warpgroups", test("warpgroup_products_test", "*OfViews"), 80, {}, True),
        *(Stage("rows " + prefix, rows(prefix), 40, {}, prefix in ("gemm", "gemv", "story")) for prefix in ROWS[:5]),
        Stage("rows gemm, without cuBLASLt", rows("gemm"), 30, ours),
        Stage("rows gemm, by warps", rows("gemm bf16", 0.1), 30, dict(ours, LIGHTCONE_WARPGROUPS="0")),
        Stage("torch", [found.get("python", "python3"), place / "peers.py"], 60),
        Stage("attention", test("gpu_attention_test"), 90),
        *(Stage("rows " + prefix, rows(prefix), 30) for prefix in ROWS[5:]),
        Stage("rows story, overlap", rows("story"), 30, {"LIGHTCONE_OVERLAP": "1"}),
        Stage("columns", test("columns_test"), 30),
        Stage("types", test("types_test"), 30),
        Stage("models", test("models_test", "*RunLoops*"), 60, {}, True),
        Stage("nccl", rows("nccl", 0.1), 60, {}, True),
        Stage("random graphs", test("random_graphs_test"), 90, {"LIGHTCONE_RANDOM": "0.1"}),
    ]
    if "compute-sanitizer" in found:
        for name, program, few in (("primitives", "primitives_test", "*"), ("warpgroups", "warpgroup_products_test", "*OfViews"),
                                   ("products", "products_test", "*OfHalves*:*AsExact*")):
            command = [found["compute-sanitizer"], "--error-exitcode", "1", place / "bin" / program, "--gtest_filter=" + few]
            all_stages.append(Stage("sanitizer " + name, command, 60))
    all_stages.append(Stage("lost device", rows("lost device"), 20, {}, True))
    return [s for s in all_stages if s.fake or not fake]
