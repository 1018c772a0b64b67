#!/usr/bin/env python3
"""No file includes upward, no rooms include each other in a circle, and no folder has more than 25 source files.

The rooms, bottom to top, by their folders under lightcone/, and what each may include: whole rooms, or single headers."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROOMS = {
    "base": [],
    "core": ["base"],
    "cache": ["base", "core"],
    "random": [],
    "formats": ["core/dtype.h"],
    "reference": ["base", "core"],
    "composites": ["core", "formats", "random", "reference"],
    "ops": ["core", "composites", "random"],
    "ops/conv": ["core", "composites", "ops"],
    "ops/loss": ["core", "composites", "ops"],
    "ops/views": ["core", "composites", "ops"],
    "ops/typed": ["core", "ops", "ops/linalg", "ops/indexing", "ops/special", "ops/functional"],
    "ops/linalg": ["core", "composites", "ops"],
    "ops/indexing": ["core", "composites", "ops"],
    "ops/special": ["core", "composites", "ops"],
    "ops/vision": ["core", "composites", "ops", "ops/conv"],
    "ops/functional": [
        "core", "composites", "ops", "ops/conv", "ops/indexing", "ops/linalg", "ops/special", "ops/vision"],
    "ops/complex": ["core", "ops", "ops/special"],
    "ops/audio": ["core", "ops", "ops/complex"],
    "optim": ["core", "ops"],
    "passes": ["base", "core", "composites", "reference"],
    "autograd": ["core", "composites", "ops", "passes"],
    "codegen": ["base", "core", "composites"],
    "codegen/interpret": ["base", "core", "codegen"],
    "codegen/schedule": ["core", "codegen"],
    "codegen/c": ["base", "core", "codegen"],
    "codegen/llvm": ["base", "core", "codegen"],
    "lowering": ["core", "formats", "device", "composites", "passes", "codegen"],
    "lowering/types": ["core", "composites", "passes", "codegen", "lowering"],
    "device": ["base", "core", "passes"],
    "stablehlo": ["base", "core", "passes"],
    "stablehlo/text": ["base", "core", "stablehlo"],
    "stablehlo/bytecode": ["base", "core", "stablehlo"],
    "stablehlo/read": [
        "base", "core", "composites", "ops", "ops/indexing", "ops/linalg", "ops/special", "readers",
        "stablehlo"],
    "stablehlo/read/types": ["core", "ops/complex", "ops/special", "stablehlo/read"],
    "stablehlo/write": ["base", "core", "composites", "random", "passes", "codegen", "lowering", "stablehlo"],
    "readers": ["core", "composites"],
    "runtime": ["base", "core", "composites", "reference", "passes", "device", "runtime/profile"],
    "runtime/profile": ["base", "core", "device"],
    "runtime/view": ["core", "passes", "device", "runtime/profile"],
    "distributed": ["base", "core", "reference", "passes", "device"],
    "distributed/sharding": ["base", "core", "composites", "ops", "passes", "distributed"],
    "distributed/nccl": [
        "base", "core", "cache", "distributed", "backends/gpu/device", "backends/cuda"],
    "distributed/planning": ["base", "core", "device", "distributed", "runtime", "runtime/profile"],
    # A library of its own: it links MPI.
    "distributed/mpi": ["base", "core", "distributed"],
    "verify": ["base", "core", "formats", "composites", "reference", "passes", "runtime"],
    # A library of its own, below the planners: its interface (abi) is plain structs, and it links nothing of the rest.
    "backends/cpu/kernels/abi": ["formats"],
    "backends/cpu/kernels/vectors": ["core/dtype.h", "backends/cpu/kernels/abi"],
    "backends/cpu/kernels/gemm": ["backends/cpu/kernels/abi", "backends/cpu/kernels/vectors"],
    "backends/cpu/kernels/dense": [
        "backends/cpu/kernels/abi", "backends/cpu/kernels/vectors", "backends/cpu/kernels/gemm"],
    "backends/cpu/kernels/conv": ["backends/cpu/kernels/abi", "backends/cpu/kernels/vectors"],
    "backends/cpu/kernels/conv/bf16": [
        "backends/cpu/kernels/abi", "backends/cpu/kernels/vectors", "backends/cpu/kernels/dense",
        "backends/cpu/kernels/conv"],
    "backends/cpu/kernels/attention": ["backends/cpu/kernels/abi", "backends/cpu/kernels/vectors"],
    "backends/cpu/kernels/random": ["random", "backends/cpu/kernels/abi", "backends/cpu/kernels/vectors"],
    "backends/cpu/target": ["base", "core", "cache", "codegen", "device", "backends/cpu/kernels/abi"],
    "backends/cpu/threads": ["base", "core", "device"],
    "backends/cpu/jit": ["base", "core", "cache", "codegen/c", "codegen/llvm", "backends/cpu/target"],
    "backends/cpu/loops": [
        "core", "codegen", "codegen/interpret", "codegen/c", "codegen/llvm", "lowering", "device",
        "backends/cpu/jit"],
    "backends/cpu/products": [
        "core", "passes", "lowering", "device", "backends/cpu/target", "backends/cpu/threads", "backends/cpu/loops",
        "backends/cpu/kernels/abi"],
    "backends/cpu/conv/plan": ["lowering", "device", "backends/cpu/loops"],
    "backends/cpu/conv/gradients": [
        "backends/cpu/conv/plan", "backends/cpu/products", "backends/cpu/kernels/abi", "backends/cpu/target"],
    "backends/cpu/conv": [
        "base", "core", "passes", "device", "backends/cpu/loops", "backends/cpu/products",
        "backends/cpu/kernels/abi", "backends/cpu/conv/plan", "backends/cpu/conv/gradients"],
    "backends/cpu/attention": [
        "core", "passes", "lowering", "device", "backends/cpu/products", "backends/cpu/kernels/abi",
        "backends/cpu/target"],
    "backends/cpu/random": ["core", "random", "device", "backends/cpu/target"],
    "backends/cpu": [
        "base", "core", "formats", "composites", "cache", "ops", "ops/special", "passes", "codegen", "lowering",
        "device", "runtime", "backends/cpu/target", "backends/cpu/threads", "backends/cpu/jit", "backends/cpu/loops",
        "backends/cpu/products", "backends/cpu/conv", "backends/cpu/attention", "backends/cpu/random"],
    "backends/pjrt": ["base", "core", "passes", "stablehlo", "device"],
    "codegen/simt": ["core", "codegen", "codegen/c"],
    "backends/gpu/products": ["core", "formats", "codegen", "codegen/simt", "lowering"],
    "backends/gpu/attention": ["core", "codegen/c", "codegen/simt", "lowering"],
    "backends/gpu/sorting": ["core", "codegen/c", "codegen/simt"],
    "backends/gpu/device": ["base", "core", "passes", "codegen", "codegen/simt", "device"],
    "backends/gpu": [
        "base", "core", "formats", "composites", "random", "passes", "codegen", "codegen/c", "codegen/simt",
        "lowering", "device", "backends/gpu/device", "backends/gpu/products", "backends/gpu/attention",
        "backends/gpu/sorting"],
    "backends/cuda": ["base", "core", "cache", "device", "backends/gpu", "backends/gpu/device"],
    "backends/opencl": ["base", "core", "backends/gpu", "backends/gpu/device", "cache"],
    "backends/metal": ["base", "core", "backends/gpu", "backends/gpu/device", "cache"],
    "train": [
        "base", "core", "ops/typed", "autograd", "optim", "runtime", "distributed/sharding", "nn", "io", "io/checkpoints", "io/data"],
    "nn": ["core", "formats", "composites", "random", "ops", "ops/typed", "runtime"],
    "io": ["base", "core", "cache"],
    "io/data": ["base", "core", "io"],
    "io/checkpoints/torch": ["base", "core", "io", "io/data"],
    "io/checkpoints": ["base", "core", "formats", "io", "io/checkpoints/torch"],
    "io/images": ["core", "io", "io/data"],
    "io/audio": ["core", "io", "io/data"],
    "io/jinja": ["base", "core", "io"],
    "io/text/pieces": ["base", "core", "io"],
    "io/text/steps": ["base", "core", "io", "io/text/pieces"],
    "io/text": ["base", "core", "io", "io/checkpoints", "io/jinja", "io/text/pieces", "io/text/steps"],
    "onnx": ["core", "io"],
    "onnx/model": ["core", "io"],
    "onnx/write": [
        "base", "core", "formats", "composites", "passes", "io", "io/checkpoints", "stablehlo", "stablehlo/write", "onnx",
        "onnx/model"],
    "onnx/read": ["base", "core", "ops", "readers", "io", "onnx", "onnx/model"],
    "onnx/parts": ["ops/special", "onnx/read"],
    "onnx/rules": [
        "ops", "ops/complex", "ops/functional", "ops/indexing", "ops/linalg", "ops/special", "ops/vision", "onnx/read",
        "onnx/parts"],
    "onnx/microsoft": ["composites", "onnx/parts"],
    "llm": ["base", "core", "distributed/sharding", "ops", "runtime", "nn", "io", "io/checkpoints", "io/text"],
    "models/llama": [
        "core", "distributed", "ops", "passes", "runtime", "nn", "io", "io/checkpoints", "io/text", "llm"],
    "models/files": ["base", "core", "io", "io/checkpoints", "runtime", "nn", "train"],
    "models/gguf": ["base", "io", "io/checkpoints", "runtime", "models/files"],
    "models/blocks": ["core", "composites", "ops", "ops/functional", "io", "runtime", "nn", "models/files"],
    "models/blocks/positions": ["core", "ops", "io", "nn", "models/files", "models/blocks"],
    "models/encoder": [
        "core", "ops", "io", "runtime", "nn", "llm", "models/files", "models/blocks", "models/blocks/positions"],
    "models/diffusion": ["core", "ops", "io", "runtime", "nn", "models/files", "models/blocks"],
    "models/diffusion/sampling": ["base", "io", "runtime", "models/files"],
    "models/diffusion/pipeline": [
        "base", "core", "ops", "passes", "io", "io/checkpoints", "io/data", "io/images", "io/text", "runtime", "nn",
        "models/files", "models/diffusion", "models/diffusion/sampling", "models/seq2seq", "models/vision_transformer"],
    "models/vision_transformer": [
        "ops", "ops/indexing", "io", "runtime", "models/files", "models/blocks"],
    "models/convnet": ["ops", "io", "nn", "models/files", "models/blocks"],
    "models/yolo": [
        "base", "core", "ops", "ops/functional", "io", "io/checkpoints", "nn", "models/files", "models/blocks"],
    "models/swin": ["ops", "nn", "models/files", "models/blocks"],
    "models/llava": ["ops", "io", "models/files", "models/blocks", "models/language", "models/vision_transformer"],
    "models/sam": ["ops", "io", "nn", "models/files", "models/blocks"],
    "models/timm": ["io", "runtime", "models/files", "models/convnet", "models/swin", "models/vision_transformer"],
    "models/wav2vec2": ["ops", "io", "runtime", "nn", "models/files", "models/blocks"],
    "models/segformer": ["ops", "ops/functional", "nn", "models/files", "models/blocks"],
    "models/detr": ["ops", "io", "nn", "models/files", "models/blocks", "models/convnet"],
    "models/language/config": ["core", "models/blocks", "models/blocks/positions"],
    "models/language/recurrent": ["core", "ops", "models/blocks", "models/language/config"],
    "models/language/architectures": ["io", "models/files", "models/language/config"],
    "models/language": [
        "core", "distributed", "ops", "passes", "io", "io/checkpoints", "runtime", "nn", "llm", "models/files", "models/gguf",
        "models/blocks", "models/blocks/positions", "models/language/config", "models/language/architectures",
        "models/language/recurrent"],
    "models/seq2seq": [
        "core", "ops", "passes", "io", "io/text", "runtime", "nn", "llm", "models/files", "models/blocks",
        "models/blocks/positions"],
    "models/whisper": [
        "base", "core", "ops/audio", "passes", "io", "io/audio", "io/checkpoints", "io/text", "io/text/pieces", "runtime", "llm",
        "models/files", "models/gguf", "models/seq2seq"],
    "models/load": [
        "io", "runtime", "models/files", "models/gguf", "models/encoder", "models/language", "models/language/architectures",
        "models/diffusion", "models/vision_transformer", "models/convnet", "models/yolo", "models/detr", "models/llava",
        "models/sam", "models/segformer", "models/swin", "models/timm", "models/seq2seq", "models/wav2vec2",
        "models/whisper"],
    "models/sentence": [
        "core", "ops", "passes", "io", "io/checkpoints", "io/text", "runtime", "nn", "llm", "models/files",
        "models/blocks", "models/load"],
    "models/vgg": ["core", "nn"],
    "models/resnet": ["core", "nn"],
    "inspection": [
        "base", "core", "io", "io/audio", "io/checkpoints", "io/checkpoints/torch", "io/data", "io/images", "io/text", "onnx",
        "stablehlo", "passes", "runtime", "models/llama", "models/load"],
    "models/vision": [
        "core", "ops", "ops/vision", "io", "io/data", "runtime", "models/files", "models/vgg", "models/resnet"],
    "models/classify": ["core", "io", "llm", "nn", "runtime", "models/files", "models/load"],
    "models/detect": [
        "base", "core", "ops", "ops/vision", "passes", "io", "io/data", "runtime", "models/files", "models/load"],
}
THIRD_PARTY = {"nlohmann": ["io", "llm"], "pcre2.h": ["io"], "utf8proc.h": ["io"], "zlib.h": ["io"],
               "turbojpeg.h": ["io"], "png.h": ["io"], "FLAC": ["io"], "mpi.h": ["distributed"]}
MOST_FILES = 25  # in a folder

wrong = []
includes = {room: set() for room in ROOMS}
headers = {room: set() for room in ROOMS}
files = {}


def room_of(folder):
    return folder if folder in ROOMS else None


for path in sorted((ROOT / "lightcone").rglob("*")):
    if path.suffix not in (".h", ".cpp") or path.parent.name == "lightcone":
        continue
    folder = str(path.parent.relative_to(ROOT / "lightcone"))
    files[folder] = files.get(folder, 0) + 1
    room = room_of(folder)
    name = path.relative_to(ROOT)
    if room is None:
        wrong.append("%s: the folder is no room of tools/check_layers.py" % name)
        continue
    for n, line in enumerate(path.read_text().splitlines(), 1):
        if m := re.match(r'#include "lightcone/([\w/]+)/([\w.]+)"', line):
            other = room_of(m[1])
            used = [other, "%s/%s" % (m[1], m[2])]
            if other is None or other != room and not set(used) & set(ROOMS[room]):
                wrong.append("%s:%d: %s may not include %s" % (name, n, room, used[1]))
            elif other != room:
                includes[room].add(other)
                headers[room].update(used)
        if m := re.match(r"#include <([\w./]+)>", line):
            for library, rooms in THIRD_PARTY.items():
                if m[1].startswith(library) and room.split("/")[0] not in rooms:
                    wrong.append("%s:%d: third-party code at the edges only" % (name, n))
for folder, count in files.items():
    if count > MOST_FILES:
        wrong.append("lightcone/%s holds %d files, more than %d" % (folder, count, MOST_FILES))
for room, allowed in ROOMS.items():
    for other in sorted(set(allowed) - headers[room] - {"core"}):
        wrong.append("%s is allowed to include %s and does not: take the permission away" % (room, other))
# A circle is a room that can be reached from itself.
for room in ROOMS:
    seen, stack = set(), list(includes[room])
    while stack:
        other = stack.pop()
        if other not in seen:
            seen.add(other)
            stack += includes[other]
    if room in seen:
        wrong.append("%s is part of a circle of rooms that include each other" % room)
print("\n".join(wrong) or "no room includes upward, none is part of a circle, no folder is too full")
sys.exit(bool(wrong))
