"""llama.cpp through its C interface: the same GGUF file, mapped; weights repacked where it has a layout for this CPU.

With arguments, llama_runner.py layer HOST:PORT... or tensor HOST:PORT..., servers of its RPC back end compute parts of it."""
import ctypes
import os
import pathlib
import socket
import sys
import time

import numpy as np

import data

try:
    import llama_cpp as lib
except ImportError as e:
    lib = None
    WHY = str(e)

PROMPT, LAST, CONTEXT = 64, 512, 1024
ANSWERED = 8  # tokens behind which the answers of several ranks are compared
SPLIT, SERVERS = sys.argv[1] if len(sys.argv) > 1 else None, sys.argv[2:]
ALL_LAYERS = 999


def ids(count, vocab):
    return [259 + ((i * 2654435761 & 0xFFFFFFFF) >> 7) % (vocab - 259) for i in range(count)]


def add_servers():
    """As common/arg.cpp does for --rpc; the servers have just been started."""
    folder = pathlib.Path(os.environ["LLAMA_CPP_LIB_PATH"])
    rpc, registry = ctypes.CDLL(folder / "libggml-rpc.so"), ctypes.CDLL(folder / "libggml.so")
    rpc.ggml_backend_rpc_add_server.argtypes, rpc.ggml_backend_rpc_add_server.restype = [ctypes.c_char_p], ctypes.c_void_p
    registry.ggml_backend_register.argtypes, registry.ggml_backend_register.restype = [ctypes.c_void_p], None
    for server in SERVERS:
        host, port = server.rsplit(":", 1)
        for _ in range(100):
            try:
                socket.create_connection((host, int(port))).close()
                break
            except OSError:
                time.sleep(0.1)
        added = rpc.ggml_backend_rpc_add_server(server.encode())
        if not added:
            raise data.Missing("llama.cpp does not reach its server")
        registry.ggml_backend_register(added)


class Session:
    def __init__(self, w):
        lib.llama_backend_init()
        m = lib.llama_model_default_params()
        m.n_gpu_layers = 0
        if SPLIT:
            add_servers()
            m.n_gpu_layers = w["half_of_layers"] if SPLIT == "layer" else ALL_LAYERS
            m.split_mode = {"layer": lib.LLAMA_SPLIT_MODE_LAYER, "tensor": lib.LLAMA_SPLIT_MODE_TENSOR}[SPLIT]
        self.model = lib.llama_model_load_from_file(w["path"].encode(), m)
        if not self.model:
            raise data.Missing("llama.cpp does not load " + w["path"])
        c = lib.llama_context_default_params()
        c.n_ctx, c.n_batch, c.n_ubatch = CONTEXT, 512, 512
        c.n_threads = c.n_threads_batch = w["threads"]
        c.no_perf = True
        self.context = lib.llama_init_from_model(self.model, c)
        self.vocab = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(self.model))
        self.memory = lib.llama_get_memory(self.context)
        self.text = (lib.llama_token * CONTEXT)(*ids(CONTEXT, self.vocab))
        self.past = 0

    def feed(self, count):
        at = ctypes.cast(ctypes.byref(self.text, self.past * 4), ctypes.POINTER(lib.llama_token))
        if lib.llama_decode(self.context, lib.llama_batch_get_one(at, count)) != 0:
            raise RuntimeError("llama_decode failed")
        self.past += count
        return lib.llama_get_logits_ith(self.context, -1)

    def rewind(self):
        lib.llama_memory_clear(self.memory, False)
        self.past = 0


def make(w):
    if lib is None:
        raise data.Missing("llama-cpp-python is not installed: " + WHY)
    if w["kind"] not in ("decode", "prompt"):
        raise data.Missing("runs Llamas only")
    s = Session(w)
    logits = s.feed(PROMPT)
    if SPLIT:
        for _ in range(ANSWERED):
            logits = s.feed(1)
    answer = np.ctypeslib.as_array(logits, (s.vocab,)).copy()

    def to_next():
        if s.past >= LAST:  # as the runner of Lightcone: positions stay within [64, 512)
            s.rewind()
            s.feed(PROMPT)

    def token():
        to_next()
        s.feed(1)

    def measure(calls):
        seconds = 0
        for _ in range(calls):
            to_next()
            begin = time.perf_counter()
            s.feed(1)
            seconds += time.perf_counter() - begin
        return {"s": seconds / calls, "calls": calls}

    def prompt():
        s.rewind()
        s.feed(w["tokens"])

    return {"call": token if w["kind"] == "decode" else prompt, "measure": measure, "answer": answer, "keep": s}


def version():
    return "llama.cpp of llama-cpp-python " + lib.__version__ + ", " + lib.llama_print_system_info().decode().strip(" |")


data.serve(make, version)
