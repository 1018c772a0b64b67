"""Runners that are several processes: the ranks of one side, over loopback or over a link that is slowed (bench/distributed/link.cpp).

Each rank is a runner that is told the same at once, through a pair of FIFOs: MPI keeps standard input and output for itself."""
import atexit
import ctypes
import json
import os
import pathlib
import re
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import runners
from runners import BENCH, ROOT, Gone

TORCH = {"torch-ddp": ["ddp"], "torch-ddp.compile": ["ddp", "compile"], "torch-fsdp": ["fsdp"], "torch-fsdp.compile": ["fsdp", "compile"],
         "torch-gloo": ["ddp"]}
# llama.cpp with servers of its RPC back end: how it divides a model, and among how many servers; the first is at the other end of a link. Layers are
# its default, and half of them stay in the program itself. Tensors it divides among devices alone, which the program's own processor is not.
LLAMA_RPC = {"llama.cpp-rpc": ("layer", 1), "llama.cpp-rpc.tensor": ("tensor", 2)}
ONE_RANK = "one-rank"  # Lightcone on one rank, with as many threads as one of several has
PROGRAM = "lightcone_bench_ranks"
LINK = ROOT / "build/bin/lightcone_bench_link"
ADDRESSES = ("10.77.0.1", "10.77.0.2")


class Link:
    """Two network namespaces with a slow link between them."""

    def __init__(self, rate, delay):
        if not LINK.exists():
            raise Gone("build the target lightcone_bench_link")
        self.child = subprocess.Popen([LINK, "run", str(rate), str(delay)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True)
        self.spaces = self.child.stdout.readline().split()
        if len(self.spaces) != 2:
            raise Gone(self.child.communicate()[1].strip() or "there is no link")

    def enter(self, place):
        return [str(LINK), "enter", self.spaces[place], "host%d" % place]

    def counters(self):
        self.child.stdin.write("\n")
        self.child.stdin.flush()
        return json.loads(self.child.stdout.readline())

    def close(self):
        self.child.stdin.close()
        self.child.wait(10)


def launcher(build):
    """mpirun of the MPI that the build has."""
    cache = build / "CMakeCache.txt"
    found = re.search(r"^MPIEXEC_EXECUTABLE:\w+=(.+)$", cache.read_text(), re.M) if cache.exists() else None
    if not found or not shutil.which(found[1]):
        raise Gone("lightcone::mpi was not built: MPI was not found")
    return found[1]


def free_port():
    """A port that is free here; those of a namespace of its own all are."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def is_open_mpi(mpirun):
    said = subprocess.run([mpirun, "--version"], capture_output=True, text=True).stdout
    return "Open MPI" in said or "OpenRTE" in said


def end_with_the_harness():
    """Linux ends a launcher when the harness was killed: asked to end, it would wait for the other end of a link that is gone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Ranks:
    """As a Runner of one process: load, go and close, of all ranks at once."""

    def __init__(self, peer, spec):
        self.peer, self.count = peer, 1 if peer in LLAMA_RPC or peer == ONE_RANK else spec["ranks"]
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="lightcone-ranks-"))
        self.log = open(self.folder / "log", "w+b")
        self.link, self.children, self.pipes = None, [], []
        atexit.register(self.close)
        try:
            if "link" in spec and peer != ONE_RANK:
                self.link = Link(*spec["link"])
            for rank in range(self.count):
                for way in ("in", "out"):
                    os.mkfifo(self.folder / ("%s.%d" % (way, rank)))
                self.pipes.append([os.open(self.folder / ("%s.%d" % (way, rank)), os.O_RDWR) for way in ("in", "out")])
            self.script("rank", 'r=${RANK:-${OMPI_COMM_WORLD_RANK:-$PMI_RANK}}\nexec "$@" <%s/in.$r >%s/out.$r' % (self.folder, self.folder))
            self.calls = spec.get("calls", 1)
            if peer in TORCH:
                self.start_torch(TORCH[peer], spec)
            elif peer in LLAMA_RPC:
                self.start_llama(*LLAMA_RPC[peer], spec)
            else:
                self.start_mpi(runners.folder_of("lightcone" if peer == ONE_RANK else peer), spec)
        except (Gone, OSError):
            self.close()
            raise

    def script(self, name, text):
        path = self.folder / name
        path.write_text("#!/bin/sh\n%s\n" % text)
        path.chmod(0o755)
        return str(path)

    def start(self, argv, env):
        # a session of its own, so that it can be ended with all that it started
        self.children.append(subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env=env, cwd=BENCH / "peers",
                                              start_new_session=True, preexec_fn=end_with_the_harness))

    def start_torch(self, arguments, spec):
        python = runners.peers_folder() / "venv/bin/python"
        if not python.exists():
            raise Gone("not installed: " + runners.install_state("torch"))
        port = free_port()
        for rank in range(self.count):
            env = runners.environment(self.peer, spec["threads"])
            env.update(RANK=str(rank), WORLD_SIZE=str(self.count), MASTER_PORT=str(port), MASTER_ADDR=ADDRESSES[0] if self.link else "127.0.0.1",
                       GLOO_SOCKET_IFNAME="link0" if self.link else "lo")
            inside = self.link.enter(rank) if self.link else []
            self.start([*inside, str(self.folder / "rank"), str(python), str(BENCH / "peers/ranks_torch.py"), *arguments], env)

    def start_llama(self, split, servers, spec):
        built = runners.peers_folder() / "llama-rpc"
        server, python = built / "bin/ggml-rpc-server", runners.peers_folder() / "venv/bin/python"
        if not server.exists() or not python.exists():
            raise Gone("not installed: " + runners.install_state("llama.cpp-rpc"))
        env = runners.environment(self.peer, spec["threads"])
        env.update(LLAMA_CPP_LIB_PATH=str(built / "bin"), PYTHONPATH=str(built / "python"), RANK="0")
        endpoints = []
        for place in range(1, 1 - servers, -1):
            host, port = ADDRESSES[place] if self.link else "127.0.0.1", str(free_port())
            inside = self.link.enter(place) if self.link else []
            self.start([*inside, str(server), "-H", host, "-p", port, "-t", str(spec["threads"])], env)
            endpoints.append(host + ":" + port)
        inside = self.link.enter(0) if self.link else []
        self.start([*inside, str(self.folder / "rank"), str(python), str(BENCH / "peers/llama_runner.py"), split, *endpoints], env)

    def start_mpi(self, folder, spec):
        program, mpirun = folder / PROGRAM, launcher(folder.parent)
        if not program.exists():
            raise Gone("build the target " + PROGRAM)
        env = runners.environment(self.peer, spec["threads"])
        # any user, and not bound to processors; a daemon of Open MPI's reaches the other namespace as if by ssh
        env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_hwloc_base_binding_policy="none",
                   OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_btl_vader_single_copy_mechanism="none", OMPI_MCA_plm_rsh_agent="false")
        if self.link or spec.get("transport") == "tcp":
            env.update(OMPI_MCA_pml="ob1", OMPI_MCA_btl="self,tcp", UCX_TLS="self,tcp")
        env.update(spec.get("environment", {}))
        rank = [str(self.folder / "rank"), str(program)]
        if not self.link:
            return self.start([mpirun, "-n", str(self.count), *rank], env)
        if not is_open_mpi(mpirun):
            first, second = (["-n", "1", *self.link.enter(k), *rank] for k in range(self.count))
            return self.start([mpirun, *first, ":", *second], env)
        env["OMPI_MCA_plm_rsh_agent"] = self.script("agent", 'shift\nexec %s sh -c "$*"' % shlex.join(self.link.enter(1)))
        env.update(OMPI_MCA_btl_tcp_if_include="link0", OMPI_MCA_oob_tcp_if_include="link0")
        self.start([*self.link.enter(0), mpirun, "-H", ",".join(ADDRESSES), "-n", str(self.count), *rank], env)

    def ask(self, line, timeout):
        end = time.monotonic() + timeout
        for into, _ in self.pipes:
            os.write(into, (line + "\n").encode())
        replies = [b""] * self.count
        while not all(r.endswith(b"\n") for r in replies):
            for rank, (_, out) in enumerate(self.pipes):
                if not replies[rank].endswith(b"\n") and select.select([out], [], [], 0.02)[0]:
                    replies[rank] += os.read(out, 1 << 16)
            if any(c.poll() is not None for c in self.children):
                raise Gone(self.last_words())
            if time.monotonic() > end:
                raise Gone("no answer in %d s" % timeout)
        answers = [json.loads(r.decode().strip().rsplit("\n", 1)[-1]) for r in replies]
        for a in answers:
            if "missing" in a:
                raise Gone(a["missing"])
        return answers

    def load(self, spec, timeout):
        answers = self.ask("load " + json.dumps(spec), timeout)
        return {**answers[0], **{k: max(a[k] for a in answers) for k in ("build_s", "first_s", "peak_rss")}}

    def go(self, _, timeout, limit=False):
        """The slowest rank's times. How many calls it is the row says, for all ranks."""
        before = self.link.counters() if self.link else None
        answers = self.ask("go " + json.dumps({"calls": self.calls}), timeout)
        slowest = {k: max(a[k] for a in answers) for k in answers[0] if isinstance(answers[0][k], (int, float))}
        if before:
            slowest["link_cpu_s"] = self.link.counters()["cpu_s"] - before["cpu_s"]
        return slowest

    def last_words(self):
        self.log.flush()
        lines = [l.strip() for l in (self.folder / "log").read_text(errors="replace").splitlines() if l.strip(" -")]
        return "ended: " + (" / ".join(lines)[-300:] if lines else "no message")

    def close(self):
        for into, _ in self.pipes:
            os.write(into, b"quit\n")
        end = time.monotonic() + 10
        for c in self.children:
            try:
                c.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                pass
            try:
                os.killpg(c.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            c.wait()
        for pair in self.pipes:
            for pipe in pair:
                os.close(pipe)
        if self.link:
            self.link.close()
        self.link, self.children, self.pipes = None, [], []
        atexit.unregister(self.close)
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)
