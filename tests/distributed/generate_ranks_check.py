#!/usr/bin/env python3
"""Two processes that hold one model together say what one says: lightcone generate and chat with --mesh. Rank 0 alone prints, and
an Error of one ends all. The test skips where MPI is absent.

    generate_ranks_check.py LIGHTCONE [MPIEXEC]
"""
import os
import subprocess
import sys
import time

from mpi_check import ENVIRONMENT

PROMPT = "Once upon a time there was a little"
wrong = []


def expect(right, what, more=""):
    if not right:
        wrong.append("%s\n%s" % (what, more))


def run(*command, given=None):
    """Status, standard output and standard error. What takes more than three minutes is wrong."""
    begin = time.monotonic()
    try:
        done = subprocess.run(command, env=ENVIRONMENT, input=given, capture_output=True, text=True, timeout=180)
    except subprocess.TimeoutExpired:
        expect(False, "%s does not end" % " ".join(command))
        return None, "", ""
    print("%.1f s: %s" % (time.monotonic() - begin, " ".join(command)[:150]), flush=True)
    return done.returncode, done.stdout, done.stderr


def main(lightcone, mpiexec=None):
    if not mpiexec or not os.path.exists(mpiexec):
        print("skipped: there is no MPI here (Debian: openmpi-bin libopenmpi-dev)")
        return 77
    if run(mpiexec, "-n", "2", sys.executable, "-c", "")[0] != 0:
        print("skipped: MPI starts no processes here")
        return 77
    two, words = (mpiexec, "-n", "2"), ("generate", "builtin", PROMPT, "-n", "24", "--context", "64", "--threads", "1")
    for how in (("-t", "0"), ("--seed", "7")):
        alone = run(lightcone, *words, *how, "-q")
        expect(alone[0] == 0 and alone[1].startswith("Once upon a time"), "one rank says something else", str(alone))
        both = run(*two, lightcone, *words, *how, "-q", "--mesh", "model=2")
        expect(both[0] == 0 and both[1] == alone[1] and "lightcone" not in both[2], "two ranks say something else", str((alone, both)))
    both = run(*two, lightcone, *words, "--mesh", "model=2")
    expect(both[0] == 0 and both[2].count("tok/s") == 2, "not one line of figures", str(both))  # one line has two of them
    both = run(*two, lightcone, "generate", "builtin", "-", *words[3:], "-t", "0", "-q", "--mesh", "model=2", given=PROMPT)
    expect(both[1] == run(lightcone, *words, "-t", "0", "-q")[1], "a prompt from the standard input", str(both))
    for command, sentence in (
            ((lightcone, *words, "--mesh", "model=2"), "model=2 has 2 ranks, and MPI has started 1"),
            ((*two, lightcone, *words, "--mesh", "model=3"), "model=3 has 3 ranks, and MPI has started 2"),
            ((*two, lightcone, *words, "--mesh", "model"), "is no mesh"),
            ((*two, lightcone, "generate", "/absent", "x", "--mesh", "model=2"), "there is no file"),
            ((mpiexec, "-n", "1", lightcone, *words, "--mesh", "model=2", ":", "-n", "1", lightcone, *words[:-4], "--mesh", "model=2"),
             "ranks differ in the version and the options")):
        status, out, error = run(*command)
        expect(status not in (0, None) and sentence in error and not out, "no Error: " + sentence, str((status, out, error)))
    print("\n".join(wrong) or "all is as it should be")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
