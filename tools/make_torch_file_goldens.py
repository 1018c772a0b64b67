#!/usr/bin/env python3
"""Writes tests/goldens/torch: small files of torch.save() and the tensors in them, with which tests/io/torch_test.cpp
compares.

    make_torch_file_goldens.py tests/goldens/torch          # made with PyTorch 2.15.0 and Python 3.11

expected.txt has a line for each tensor: file, name, type (as safetensors calls it), shape, bytes in hexadecimal. Names of
modules are those of their state_dict().
"""
import argparse
import collections
import io
import pathlib
import sys
import warnings
import zipfile

import numpy as np
import torch

warnings.filterwarnings("ignore")
TYPES = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64",
    torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL",
    torch.uint16: "U16", torch.uint32: "U32", torch.uint64: "U64", torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2", torch.complex64: "C64", torch.complex128: "C128"}
R = torch.Generator().manual_seed(7)
OUT = pathlib.Path(sys.argv[1])
lines = []


def no_source(*_, **__):
    """Old files have the text of each class beside it, which is other people's."""
    raise OSError


torch.serialization.get_source_lines_and_file = no_source


def save(name, what, tensors, **options):
    torch.save(what, OUT / name, **options)
    describe(name, tensors)


def describe(name, tensors):
    for key, t in sorted(tensors.items()):
        shape = ",".join(str(n) for n in t.shape)
        data = t.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes().hex() if t.numel() else ""
        lines.append("\t".join([name, key, TYPES[t.dtype], shape, data]))


def dtypes():
    made = {}
    for dtype, name in TYPES.items():
        size = torch.empty(0, dtype=dtype).element_size()
        data = torch.randint(0, 2 if dtype is torch.bool else 256, (2, 3 * size), dtype=torch.uint8, generator=R)
        made[name] = data.view(dtype)
    return made


def views():
    base = torch.arange(60, dtype=torch.float32)
    cube = base.view(3, 4, 5)
    return {
        "base": base, "slice": base[7:19], "transposed": cube.transpose(0, 2), "step": base[::3],
        "expanded": base[:4].view(4, 1).expand(4, 6), "permuted": cube.permute(2, 0, 1)[1:, ::2],
        "scalar": torch.tensor(3.5), "empty": torch.zeros(0, 4), "element": base[5],
        "channels_last": torch.randn(2, 3, 4, 5, generator=R).contiguous(memory_format=torch.channels_last),
        "tied": cube, "halves": base.half().view(6, 10).t()}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(2, 3, 2)
        self.norm = torch.nn.BatchNorm2d(3)
        self.blocks = torch.nn.ModuleList([torch.nn.Linear(2, 2) for _ in range(2)])
        self.shared = self.blocks[0]
        self.activation = torch.nn.functional.relu
        self.names = {0: "cat", 1: "dog"}
        self.stride = torch.tensor([8.0, 16.0])
        self.path = pathlib.PurePosixPath("a/b")
        self.weight = torch.nn.Parameter(torch.randn(2, 2))
        self.register_buffer("passing", torch.ones(3), persistent=False)


class Scripted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(3, 2))
        self.sizes = [3, 2]
        self.inner = Inner()

    def forward(self, x):
        return self.inner(x @ self.weight) * self.sizes[0]


class Inner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("shift", torch.arange(40.0).view(2, 20).t())

    def forward(self, x):
        return x + self.shift[0]


def checkpoint(net):
    """What a training script keeps, and which of it are tensors."""
    optimizer = torch.optim.AdamW(net.parameters())
    net.weight.sum().backward()
    optimizer.step()
    array = np.arange(6, dtype=np.int32).reshape(2, 3).T
    tensors = dict(net.state_dict(), array=torch.from_numpy(array.copy()))
    for number, state in optimizer.state_dict()["state"].items():
        for key, value in state.items():
            tensors["optimizer.state.%d.%s" % (number, key)] = value
    return {
        "epoch": 3, "model": net.state_dict(), "optimizer": optimizer.state_dict(), "array": array,
        "args": argparse.Namespace(lr=0.1, out=pathlib.PurePosixPath("x")), "score": np.float64(2.5),
        "loss": [1.5, None, True], "config": {"sizes": (1, 2), "dtype": torch.float16, "device": torch.device("cpu")},
        "counter": collections.Counter([1, 1, 2]), "lists": collections.defaultdict(list, {1: [2]}), "words": {"x"},
        "frozen": frozenset([-1]), "large": 2**100, "bytes": b"xyz", "text": "h\u00e9\n"}, tensors


OUT.mkdir(exist_ok=True)
torch.manual_seed(1)
for form, options in (("zip", {}), ("old", {"_use_new_zipfile_serialization": False})):
    for name, made in (("dtypes", dtypes()), ("views", views())):
        save("%s_%s.pt" % (form, name), made, made, **options)
    save(form + "_checkpoint.pt", *checkpoint(Net()), **options)
    for protocol in (1, 2, 3, 4, 5):
        net = Net()
        tensor = torch.arange(3.0)
        tensor.note = "a tensor with attributes"
        whole = {"nets": [net], "plain": tensor}
        named = {"nets.0." + key: t for key, t in net.state_dict().items()}
        save("%s_module_%d.pt" % (form, protocol), whole, dict(named, plain=tensor), pickle_protocol=protocol, **options)
    save(form + "_tensor.pt", torch.arange(5), {"tensor": torch.arange(5)}, **options)
# A file of TorchScript without its program, packed by another program than PyTorch: its members are deflated.
script = torch.jit.script(Scripted())
file = io.BytesIO()
torch.jit.save(script, file)
with zipfile.ZipFile(file) as whole, zipfile.ZipFile(OUT / "script.pt", "w", zipfile.ZIP_DEFLATED) as parts:
    for member in whole.namelist():
        if "/code/" not in member:
            parts.writestr(zipfile.ZipInfo(member, (2026, 1, 1, 0, 0, 0)), whole.read(member), zipfile.ZIP_DEFLATED)
describe("script.pt", script.state_dict())
(OUT / "expected.txt").write_text("".join(line + "\n" for line in lines))
