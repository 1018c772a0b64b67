"""What every runner written in Python shares: the same numbers as bench/runner/workload.h, and the protocol."""
import json
import os
import resource
import sys
import time

import numpy as np


def seed_of(name):
    h = 2166136261
    for c in name.encode():
        h = (h ^ c) * 16777619 & 0xFFFFFFFF
    return h


def uniform(name, count):
    """`count` numbers in [-1, 1), exact in f32: the hash of bench/runner/workload.h."""
    with np.errstate(over="ignore"):
        h = np.arange(count, dtype=np.uint32)
        h *= np.uint32(0x9E3779B1)
        h += np.uint32(seed_of(name))
        h ^= h >> np.uint32(16)
        h *= np.uint32(0x7FEB352D)
        h ^= h >> np.uint32(15)
        h *= np.uint32(0x846CA68B)
        h ^= h >> np.uint32(16)
    h >>= np.uint32(8)
    return h.astype(np.float32) * np.float32(2**-23) - np.float32(1)


def inputs(name, shape, scale=1.0):
    return (uniform(name, int(np.prod(shape))) * np.float32(scale)).reshape(shape)


def classes(name, shape, count):
    """Whole numbers from 0 to count - 1: labels, tokens."""
    in_0_1 = 0.5 * (uniform(name, int(np.prod(shape))).astype(np.float64) + 1)
    return (in_0_1 * count).astype(np.int64).reshape(shape)


def int8s(name, shape):
    return np.trunc(inputs(name, shape, 127)).astype(np.int8)


def parameter(name, shape):
    count = int(np.prod(shape))
    if len(shape) < 2:
        v = uniform(name, count) * np.float32(0.1)
        return v + np.float32(1) if name.endswith(("norm.weight", "running_var")) else v
    fan_in = np.float32(count // shape[0])
    return (uniform(name, count) * np.sqrt(np.float32(6) / fan_in)).reshape(shape)


def summary(values):
    v = np.asarray(values, dtype=np.float32).ravel()
    at = (np.arange(32, dtype=np.uint64) * np.uint64(2654435761)) % np.uint64(v.size)
    wide = v.astype(np.float64)
    return {"count": int(v.size), "rms": float(np.sqrt(np.mean(wide * wide))), "samples": [float(v[i]) for i in at]}


class Missing(Exception):
    """This peer cannot run this workload; the text says why."""


def peak_rss():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def go(call, seconds):
    """The same slice as the runner of Lightcone: a short call warms up a little, uncounted."""
    clock = time.perf_counter
    cpu, t = time.process_time(), clock()
    call()
    one = clock() - t
    if one > seconds:
        return {"s": one, "cpu_s": time.process_time() - cpu, "calls": 1}
    warm = clock() + min(0.03, seconds / 4)
    while clock() < warm:
        call()
    # a clock read is 50 ns: calls of microseconds are timed in bunches
    bunch = max(1, int(0.002 / max(one, 1e-7)))
    calls = 0
    cpu, t = time.process_time(), clock()
    while True:
        for _ in range(bunch):
            call()
        calls += bunch
        if clock() - t >= seconds:
            return {"s": (clock() - t) / calls, "cpu_s": (time.process_time() - cpu) / calls, "calls": calls}


def serve(make, version):
    """make(workload) -> {"call": function, "answer": values or a summary, ...}, or raises Missing.

    Libraries print to stdout as they like: what the driver reads is a copy of it, made before they are used.
    """
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    loaded = {}
    for line in sys.stdin:
        command, _, rest = line.strip().partition(" ")
        if command == "quit":
            break
        try:
            o = json.loads(rest or "{}")
            if command == "load":
                begin = time.perf_counter()
                loaded = make(o)
                built = time.perf_counter()
                if "timed" not in loaded:
                    loaded["call"]()
                first = time.perf_counter()
                answer = loaded.get("answer")
                answer = answer() if callable(answer) else answer
                reply = {"ok": True, "version": version(), "build_s": built - begin, "first_s": first - built}
                reply["answer"] = summary(answer) if answer is not None else None
                reply["facts"] = loaded.get("facts", {})
            elif "calls" in o:  # exactly so many, which all of several ranks are told
                reply = loaded["measure"](o["calls"])
            elif "timed" in loaded:  # a call that says itself what it took
                reply = {"s": loaded["timed"](), "calls": 1}
            else:
                reply = go(loaded["call"], o.get("seconds", 0.2))
        except Missing as e:
            reply = {"missing": str(e)}
        except Exception as e:  # whatever a peer throws is a reason to be shown
            text = " ".join(str(e).split())
            reply = {"missing": "%s: %s" % (type(e).__name__, text[:300])}
        reply["peak_rss"] = peak_rss()
        out.write(json.dumps(reply) + "\n")
        out.flush()
