#!/usr/bin/env python3
"""Ranks that MPI starts as processes give the bits of threads, and an Error when ranks differ, end, or do not come. No process
hangs or is left when one is killed at any moment. The test skips where MPI is absent.

    mpi_check.py [MPIEXEC MPI_RANKS [EXAMPLE]]

MPI_RANKS is the program of mpi_ranks.cpp, EXAMPLE that of examples/distributed_mlp.cpp.
"""
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

KILLS = 20
# More processes than processors, by any user, not bound to processors that others use, too: for Open MPI 4 and 5. MPICH asks
# for nothing.
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                   OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_hwloc_base_binding_policy="none",
                   OMPI_MCA_plm_rsh_agent="false",  # else it wants ssh, and starts nothing on other machines here
                   OMPI_MCA_mpi_yield_when_idle="0",  # else a rank waits for whatever else this machine computes
                   OMPI_MCA_btl_vader_single_copy_mechanism="none",  # containers forbid it, which is said in many lines
                   PRTE_ALLOW_RUN_AS_ROOT="1", PRTE_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                   PRTE_MCA_rmaps_default_mapping_policy=":oversubscribe", PRTE_MCA_hwloc_default_binding_policy="none")
wrong = []


def expect(right, what, output=""):
    if not right:
        wrong.append(what + ("\n" + output if output else ""))


class Launch:
    """Processes that are started together, and ended together if they do not end."""

    def __init__(self, *command):
        self.what = " ".join([*command[1:3], os.path.basename(command[3]), *command[4:5]]) if len(command) > 3 else command[0]
        self.begin = time.monotonic()
        self.process = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        start_new_session=True)

    def end(self, limit):
        """The exit status and what was printed."""
        try:
            said = self.process.communicate(timeout=limit)[0]
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            expect(False, "%s did not end within %g s" % (self.what, limit))
            return None, self.process.communicate()[0]
        return self.process.returncode, said


def passes(limit, *command):
    launch = Launch(*command)
    status, said = launch.end(limit)
    expect(status == 0, "%s: exit status %s" % (launch.what, status), said)
    print("%s: %.1f s" % (launch.what, time.monotonic() - launch.begin), flush=True)
    return said


def fails(mpiexec, program, ranks, how, sentences):
    """Every rank says its sentence, and the launcher reports a failure. One for which there is None may be killed."""
    with tempfile.TemporaryDirectory() as folder:
        launch = Launch(mpiexec, "-n", str(ranks), program, how, folder)
        status, said = launch.end(60)
        expect(status not in (0, None), "%s: exit status %s" % (launch.what, status), said)
        for rank in range(ranks):
            file = pathlib.Path(folder, str(rank))
            sentence = sentences(rank)
            if sentence:
                expect(file.exists() and sentence in file.read_text(), "%s: rank %d does not say: %s" % (launch.what, rank, sentence),
                       (file.read_text() + "\n" if file.exists() else "") + said)
    print("%s: %.1f s" % (launch.what, time.monotonic() - launch.begin), flush=True)


def alive(pid):
    try:
        state = pathlib.Path("/proc/%d/stat" % pid).read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"  # whoever should wait for it has not yet


def kill(mpiexec, program, seed):
    """One of two ranks is killed while they exchange, or before they begin."""
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        launch = Launch(mpiexec, "-n", "2", program, "endless", folder)
        until = time.monotonic() + 30
        while len(os.listdir(folder)) < 2 and time.monotonic() < until and launch.process.poll() is None:
            time.sleep(0.01)
        pids = sorted(int(name) for name in os.listdir(folder))
        expect(len(pids) == 2, "%s: %d processes began" % (launch.what, len(pids)))
        time.sleep(draw.random() * 0.8)
        there = [pid for pid in pids if alive(pid)]
        if there:
            os.kill(draw.choice(there), signal.SIGKILL)
        status, said = launch.end(20)
        expect(len(there) == 2, "%s: a process ended by itself" % launch.what, said)
        expect(status != 0, "%s: a rank was killed, and all is well" % launch.what, said)
        until = time.monotonic() + 5
        while any(map(alive, pids)) and time.monotonic() < until:
            time.sleep(0.02)
        expect(not any(map(alive, pids)), "%s: processes are left: %s" % (launch.what, pids), said)


def main(mpiexec=None, program=None, example=None):
    if not mpiexec or not os.path.exists(mpiexec):
        print("skipped: there is no MPI here (Debian: openmpi-bin libopenmpi-dev)")
        return 77
    try:  # a sandbox may forbid what a launcher does
        starts = subprocess.run([mpiexec, "-n", "2", sys.executable, "-c", ""], env=ENVIRONMENT, capture_output=True, text=True, timeout=30)
    except subprocess.TimeoutExpired:
        starts = None
    if starts is None or starts.returncode:
        print("skipped: MPI starts no processes here: " + (starts.stdout + starts.stderr if starts else "it does not end"))
        return 77
    passes(60, program, "embedded")  # without a launcher
    for ranks in ("2", "4"):
        expect("operations among " + ranks in passes(120, mpiexec, "-n", ranks, program, "collectives"), "no operations among " + ranks)
        expect("as planned among " + ranks in passes(60, mpiexec, "-n", ranks, program, "planned"), "other bytes than planned")
        expect("5 trainings" in passes(60, mpiexec, "-n", ranks, program, "training"), "no trainings among " + ranks)
    passes(120, mpiexec, "-n", "2", program, "collectives", "100003")
    passes(60, mpiexec, "-n", "2", program, "embedded")
    expect("for one thread" in passes(60, mpiexec, "-n", "2", program, "unfit"), "MPI for one thread is taken")
    fails(mpiexec, program, 3, "differ", lambda rank: "ranks run different operations: rank 0 all_reduce (sum) of 100000 i64")
    fails(mpiexec, program, 3, "ends", lambda rank: "this rank has no disk" if rank == 1 else "rank 1 has ended (all_reduce")
    fails(mpiexec, program, 3, "late", lambda rank: None if rank == 1 else "rank 1 did not come within 1 s (all_reduce")
    fails(mpiexec, program, 3, "absent", lambda rank: None if rank == 1 else "not all ranks called it within 1 s")
    fails(mpiexec, program, 3, "stopped", lambda rank: None if rank else "not all ranks began MPI within 3 s")
    fails(mpiexec, program, 3, "unended", lambda rank: None if rank else "the communicator has ended")
    if example:
        said = passes(60, mpiexec, "-n", "2", example)
        expect(said.count("2 ranks: the loss fell from") == 1, "the example says something else", said)
    begin = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda seed: kill(mpiexec, program, seed), range(KILLS)))
    print("%d kills: %.1f s" % (KILLS, time.monotonic() - begin))
    print("\n".join(wrong) or "all is as it should be")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
