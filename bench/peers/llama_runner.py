"""llama.cpp through its C interface: the same GGUF file, mapped; weights repacked where it has a layout for this CPU."""
import ctypes

import numpy as np

import data

try:
    import llama_cpp as lib
except ImportError as e:
    lib = None
    WHY = str(e)

PROMPT, CONTEXT = 64, 1024


def ids(count, vocab):
    return [259 + ((i * 2654435761 & 0xFFFFFFFF) >> 7) % (vocab - 259) for i in range(count)]


class Session:
    def __init__(self, w):
        lib.llama_backend_init()
        m = lib.llama_model_default_params()
        m.n_gpu_layers = 0
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
    answer = np.ctypeslib.as_array(s.feed(PROMPT), (s.vocab,)).copy()

    def token():
        if s.past >= 512:  # as the runner of Lightcone: positions stay within [64, 512)
            s.rewind()
            s.feed(PROMPT)
        s.feed(1)

    def prompt():
        s.rewind()
        s.feed(w["tokens"])

    return {"call": token if w["kind"] == "decode" else prompt, "answer": answer, "keep": s}


def version():
    return "llama.cpp of llama-cpp-python " + lib.__version__ + ", " + lib.llama_print_system_info().decode().strip(" |")


data.serve(make, version)
