"""Whisper in CTranslate2 (f32) or whisper.cpp (f16), as the first argument says: the same weights, one source, greedy."""
import ctypes
import importlib.util
import pathlib
import re
import sys
import time

import numpy as np

import data

ENGINE = sys.argv[1]
try:
    import ctranslate2
except ImportError as e:
    WHY = str(e)
else:
    WHY = None

PROMPT = [50258, 50259, 50359, 50363]  # start, a language, transcribe, no timestamps
END = 50257


class CTranslate2:
    """generate() is its only way to decode, so what tokens take is a difference of two calls for one encoded source."""

    FEW = 8

    def __init__(self, w):
        self.tokens = w["tokens"]
        self.model = ctranslate2.models.Whisper(w["path"] + "/ctranslate2", compute_type="float32", intra_threads=w["threads"], inter_threads=1)
        self.features = ctranslate2.StorageView.from_array(data.inputs("input_features", (1, 80, 3000)))
        self.encoded = self.model.encode(self.features)

    def generate(self, source, count, never=(END,), **more):
        # it stops at half of max_length
        result = self.model.generate(source, [PROMPT], beam_size=1, max_length=2 * count, suppress_blank=False, suppress_tokens=list(never), **more)[0]
        if len(result.sequences_ids[0]) != count:
            raise RuntimeError("%d tokens were asked for, and %d came" % (count, len(result.sequences_ids[0])))
        return result

    def logits(self):
        first = self.generate(self.encoded, self.FEW, never=(), return_logits_vocab=True).logits[0][0]
        return np.asarray(ctranslate2.StorageView.to_device(first, ctranslate2.Device.cpu)).ravel()

    def decode(self):
        begin = time.perf_counter()
        self.generate(self.encoded, self.FEW)
        between = time.perf_counter()
        self.generate(self.encoded, self.FEW + self.tokens)
        return time.perf_counter() - between - (between - begin)

    def whole(self):
        self.generate(self.features, self.tokens)


class Heads(ctypes.Structure):
    _fields_ = [("count", ctypes.c_size_t), ("heads", ctypes.c_void_p)]


class Parameters(ctypes.Structure):
    _fields_ = [("use_gpu", ctypes.c_bool), ("flash_attn", ctypes.c_bool), ("device", ctypes.c_int), ("timestamps", ctypes.c_bool),
                ("preset", ctypes.c_int), ("top", ctypes.c_int), ("heads", Heads), ("memory", ctypes.c_size_t)]


def library():
    """libwhisper, behind what it needs. They lie beside pywhispercpp, or with a hash in their names where a published wheel puts them."""
    found = importlib.util.find_spec("pywhispercpp")
    if found is None:
        raise data.Missing("pywhispercpp is not installed")
    site = pathlib.Path(found.origin).parents[1]
    files = sorted((site / "pywhispercpp.libs").glob("*.so*")) or sorted(site.glob("*.so*"))
    for name in ("libgomp", "libggml-base", "libggml-cpu", "libggml", "libwhisper"):
        for file in [f for f in files if re.fullmatch(name + r"(-[0-9a-f]{8})?\.so(\.\d+)*", f.name)][:1]:
            lib = ctypes.CDLL(str(file), mode=ctypes.RTLD_GLOBAL)
    return lib


class WhisperCpp:
    """Through its C interface. Its caches of keys and values are f16 whatever the weights are."""

    def __init__(self, w):
        self.tokens, self.threads, self.lib = w["tokens"], w["threads"], library()
        self.lib.whisper_context_default_params.restype = Parameters
        self.lib.whisper_init_from_file_with_params.restype = ctypes.c_void_p
        self.lib.whisper_init_from_file_with_params.argtypes = [ctypes.c_char_p, Parameters]
        self.lib.whisper_get_logits.restype = ctypes.POINTER(ctypes.c_float)
        parameters = self.lib.whisper_context_default_params()
        parameters.use_gpu = False
        self.context = ctypes.c_void_p(self.lib.whisper_init_from_file_with_params((w["path"] + "/whisper.cpp.bin").encode(), parameters))
        if not self.context:
            raise data.Missing("whisper.cpp does not load " + w["path"])
        self.vocab = self.lib.whisper_n_vocab(self.context)
        self.mel = np.ascontiguousarray(data.inputs("input_features", (80, 3000)))
        self.encode()

    def encode(self):
        mel = self.mel.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        if self.lib.whisper_set_mel(self.context, mel, 3000, 80) or self.lib.whisper_encode(self.context, 0, self.threads):
            raise RuntimeError("whisper.cpp does not encode")

    def feed(self, ids, past):
        if self.lib.whisper_decode(self.context, (ctypes.c_int * len(ids))(*ids), len(ids), past, self.threads):
            raise RuntimeError("whisper.cpp does not decode")
        return np.ctypeslib.as_array(self.lib.whisper_get_logits(self.context), (len(ids), self.vocab))[-1]

    def logits(self):
        return self.feed(PROMPT, 0).copy()

    def decode(self):
        id = int(self.logits().argmax())
        begin = time.perf_counter()
        for k in range(self.tokens):
            id = int(self.feed([id], len(PROMPT) + k).argmax())
        return time.perf_counter() - begin

    def whole(self):
        self.encode()
        logits = self.logits()
        for k in range(self.tokens - 1):
            logits = self.feed([int(logits.argmax())], len(PROMPT) + k)


def make(w):
    if WHY:
        raise data.Missing("not installed: " + WHY)
    if w["kind"] != "whisper":
        raise data.Missing("runs Whisper only")
    engine = (CTranslate2 if ENGINE == "ctranslate2" else WhisperCpp)(w)
    answer = engine.logits()
    if w["part"] == "whole":
        return {"call": engine.whole, "answer": answer}
    engine.decode()
    return {"timed": engine.decode, "answer": answer}


def version():
    if ENGINE == "ctranslate2":
        return "ctranslate2 " + ctranslate2.__version__
    lib = library()
    for f in (lib.whisper_version, lib.whisper_print_system_info):
        f.restype = ctypes.c_char_p
    return "whisper.cpp %s, %s" % (lib.whisper_version().decode(), lib.whisper_print_system_info().decode().strip(" |"))


data.serve(make, version)
