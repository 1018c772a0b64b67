"""Runners: child processes that hold a workload ready and run a slice of it when told to."""
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

BENCH = pathlib.Path(__file__).resolve().parent.parent
ROOT = BENCH.parent
LIGHTCONE = str(ROOT / "build/bin/lightcone_bench_workload")


def peers_folder():
    return pathlib.Path(os.environ.get("LIGHTCONE_PEERS", ROOT.parent / "peers")).resolve()


def public(text):
    """A reason without this machine's paths."""
    return text.replace(str(peers_folder()), "$LIGHTCONE_PEERS").replace(str(ROOT), ".").replace(str(pathlib.Path.home()), "~")


def _python(script, *arguments):
    return [str(peers_folder() / "venv/bin/python"), str(BENCH / "peers" / script), *arguments]


BUILDS = {}  # other builds of Lightcone that are peers: "build:NAME" -> the program
FOLDERS = {}  # where the programs of each build lie


def add_build(peer):
    """build:PATH, a build folder of another checkout; in the results it has the checkout's name."""
    folder = pathlib.Path(peer.removeprefix("build:")).resolve()
    runner = folder / "bin/lightcone_bench_workload"
    if not runner.exists():
        raise ValueError("%s is not there: build the target lightcone_bench_workload" % runner)
    name = "build:" + (folder.parent.name if folder.name.startswith("build") else folder.name)
    BUILDS[name] = str(runner)
    FOLDERS[name] = runner.parent
    return name


def folder_of(peer):
    """The folder of a build's programs."""
    return FOLDERS.get(peer) or ROOT / "build/bin"


def copy_builds(folder):
    """Builds that are compared run from fresh copies: how much of a program's text the kernel maps around a fault depends on how
    the file came into the page cache, which alone moves the peak of a process of 50 MB by one in a hundred."""
    global LIGHTCONE
    LIGHTCONE = shutil.copy(LIGHTCONE, pathlib.Path(folder) / "lightcone")
    for i, name in enumerate(BUILDS):
        BUILDS[name] = shutil.copy(BUILDS[name], pathlib.Path(folder) / ("build%d" % i))


def command(peer):
    built = peers_folder()
    if peer in BUILDS:
        return [BUILDS[peer]]
    return {
        "lightcone": [LIGHTCONE],
        "module": [str(ROOT / "build/bin/lightcone_bench_module")],
        "llama.cpp": _python("llama_runner.py"),
        "torch": _python("torch_runner.py", "eager"),
        "torch.compile": _python("torch_runner.py", "compile"),
        "onnxruntime": _python("onnx_runner.py"),
        "ctranslate2": [str(built / "whisper/bin/python"), str(BENCH / "peers/whisper_runner.py"), "ctranslate2"],
        "whisper.cpp": [str(built / "whisper/bin/python"), str(BENCH / "peers/whisper_runner.py"), "whisper.cpp"],
        "openblas": _python("openblas_runner.py"),
        "jax": _python("jax_runner.py"),
        "tinygrad": _python("tinygrad_runner.py"),
        "onednn": [str(built / "onednn/runner")],
        "dfdx": [str(built / "seeds/release/dfdx_runner")],
        "luminal": [str(built / "seeds/release/luminal_runner")],
    }[peer]


PEERS = ["llama.cpp", "llama.cpp-rpc", "llama.cpp-rpc.tensor", "one-rank", "ctranslate2", "whisper.cpp", "torch", "torch.compile", "torch-ddp", "torch-ddp.compile", "torch-fsdp", "torch-fsdp.compile",
         "torch-gloo", "onnxruntime", "onednn", "openblas", "jax", "tinygrad", "dfdx", "luminal"]


def environment(peer, threads):
    """The settings each peer's own documentation recommends for inference on a CPU."""
    # nothing inherited: a machine's image may hold a library back (OPENBLAS_CORETYPE=Haswell was found on one)
    inherited = ("OPENBLAS_", "MKL_", "DNNL_", "ONEDNN_", "OMP_", "GOMP_", "KMP_", "ATEN_", "XLA_", "MALLOC_", "NPY_", "LIGHTCONE_ISA")
    env = {k: v for k, v in os.environ.items() if not k.startswith(inherited)}
    for name in ("OMP", "MKL", "OPENBLAS", "RAYON"):
        env[name + "_NUM_THREADS"] = str(threads)
    if peer.startswith("torch") or peer in ("jax", "tinygrad", "dfdx", "luminal"):
        # large results stay in the heap: a fresh mapping for each costs more than the operation (PyTorch's tuning guide
        # reaches the same by another allocator)
        env.update(MALLOC_MMAP_MAX_="0", MALLOC_TRIM_THRESHOLD_="100000000000", MALLOC_TOP_PAD_="268435456", THP_MEM_ALLOC_ENABLE="1")
    if peer.startswith("llama.cpp"):
        env["KMP_BLOCKTIME"] = "30"  # ms; compiled by clang its threads would spin for 200 ms, into the turns of others
    if peer == "jax":
        env["JAX_PLATFORMS"] = "cpu"
    if peer == "tinygrad":
        clang = next((c for c in ("clang", *("clang-%d" % v for v in range(22, 13, -1))) if shutil.which(c)), None)
        env.update(DEV="CPU" if clang else "CPU:X86", CPU_COUNT=str(threads))  # its own assembler where there is no clang
        if clang:
            env["CC"] = clang
    return env


class Gone(Exception):
    """The runner cannot; the text says why."""


class Runner:
    def __init__(self, peer, threads):
        self.peer, self.log = peer, tempfile.TemporaryFile()
        argv = command(peer)
        if not os.path.exists(argv[0]):
            hint = "build the target lightcone_bench_workload" if peer == "lightcone" else install_state(peer)
            raise Gone("not installed: " + hint)
        self.child = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, env=environment(peer, threads), cwd=BENCH / "peers"
        )

    def ask(self, line, timeout):
        try:
            self.child.stdin.write((line + "\n").encode())
            self.child.stdin.flush()
        except OSError:
            raise Gone(self.last_words())
        reply, end = b"", time.monotonic() + timeout
        while not reply.endswith(b"\n"):
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.child.stdout], [], [], left)[0]:
                self.child.kill()
                raise Gone("no answer in %d s" % timeout)
            part = os.read(self.child.stdout.fileno(), 1 << 16)
            if not part:
                raise Gone(self.last_words())
            reply += part
        answer = json.loads(reply.decode().strip().rsplit("\n", 1)[-1])
        if "missing" in answer:
            raise Gone(answer["missing"])
        return answer

    def load(self, spec, timeout):
        return self.ask("load " + json.dumps(spec), timeout)

    def go(self, seconds, timeout, limit=False):
        return self.ask("go " + json.dumps({"seconds": seconds, "limit": limit}), timeout)

    def last_words(self):
        self.child.wait()
        self.log.seek(0)
        lines = [l for l in self.log.read().decode(errors="replace").splitlines() if l.strip()]
        return "ended with %d: %s" % (self.child.returncode, lines[-1].strip()[:300] if lines else "no message")

    def close(self):
        try:
            self.child.stdin.write(b"quit\n")
            self.child.stdin.close()
            self.child.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            self.child.kill()
            self.child.wait()
        self.child.stdout.close()
        self.log.close()


def install_state(peer):
    """What bench/setup-peers said about a peer that is not there."""
    try:
        reasons = json.loads((peers_folder() / "state.json").read_text())
    except (OSError, ValueError):
        return "run bench/setup-peers"
    return reasons.get(peer, "run bench/setup-peers")


def onnx_file(name):
    """A published ONNX model, where bench/setup-peers onnx-models put it."""
    path = peers_folder() / "onnx" / name
    if not path.exists():
        raise Gone("%s is not there: %s" % (name, install_state("onnx-models").replace("setup-peers", "setup-peers onnx-models", 1)))
    return str(path)


def model_folder(name):
    """A model's folder, where bench/setup-peers hf-models put it."""
    path = peers_folder() / "hf" / name
    if not (path / "config.json").exists() and not (path / "model.pt").exists():
        raise Gone("%s is not there: %s" % (name, install_state("hf-models").replace("setup-peers", "setup-peers hf-models", 1)))
    return str(path)


def model_file(spec):
    """The checkpoint a spec names, written the first time it is wanted (by Lightcone's runner, with numbers of no meaning)."""
    path = peers_folder() / "models" / ("%s-%s.gguf" % (spec["model"], spec["quant"]))
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        writer = Runner("lightcone", 1)
        try:
            writer.ask("write " + json.dumps(dict(model=spec["model"], quant=spec["quant"], path=str(path))), 300)
        finally:
            writer.close()
    return str(path)
