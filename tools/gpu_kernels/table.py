#!/usr/bin/env python3
"""The machine code that NVRTC makes of our kernels for sm_75 to sm_120 is the committed table's and keeps its rules.

No GPU is needed. The table has registers, stack, shared memory, occupancy, widths of accesses and matrix instructions.

  tools/gpu_kernels/table.py PROGRAM            compares with tools/gpu_kernels/kernels.txt and floors.txt, and checks rules
  tools/gpu_kernels/table.py PROGRAM --update   writes both anew: look at the difference before you believe it
  tools/gpu_kernels/table.py PROGRAM --print softmax   shows the rows of cases whose names begin so

PROGRAM is build/bin/lightcone_gpu_kernels. NVRTC is found as the library finds it ($LIGHTCONE_NVRTC); $LIGHTCONE_CUOBJDUMP
names cuobjdump, beside which nvdisasm is. Where one of them is missing the exit status is 77. With another NVRTC than the
table was made by, registers and instructions may differ: then only the rules are checked."""
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import machine_code
import rules

HERE = pathlib.Path(__file__).resolve().parent
KERNELS, FLOORS = HERE / "kernels.txt", HERE / "floors.txt"

COLUMNS = """\
# The kernels that Lightcone makes for NVIDIA's GPUs, as the compiler left them. Made by tools/gpu_kernels/table.py.
# %s
#
# regs: registers a thread. stack: bytes of local memory a thread, spills among them. shared: bytes a group. thr: threads
# a group. occ: warps that fit a multiprocessor, of how many. ldg, stg, lds, sts: instructions that load and store global
# and shared memory, and behind the colon how many of them move 16 bytes or more a thread. HMMA, HGMMA, IMMA: matrix
# instructions, of floats of 8 bits, too. instr: all. A kernel that is in a case several times has "x 3" behind it.
#
# arch     regs stack shared  thr   occ     ldg     stg     lds     sts  HMMA HGMMA IMMA instr  case | computes -> result
"""
FLOOR_HEAD = """\
# PREDICTIONS, not measurements: nothing here ran on a GPU. What each kernel has to move and to compute, and the time below
# which an H200 cannot do it: the larger of its bytes at %.1f TB/s (what copies reach) and its operations at %.0f TFLOP/s
# of f32, or %.0f of bf16 where it is a product that matrix instructions can do. Each operand counts once, whatever a kernel
# reads again. An operation counts as one a number it makes. groups: of each of its launches.
#
#     read MB   written MB       MFLOP    floor us  groups  case, use | computes -> result
""" % (rules.COPY / 1e12, rules.F32 / 1e12, rules.BF16 / 1e12)


def cuobjdump():
    return os.environ.get("LIGHTCONE_CUOBJDUMP") or shutil.which("cuobjdump")


def skip(why):
    print("SKIPPED: %s" % why)
    sys.exit(77)


def compile_all(program, folder, only):
    done = subprocess.run([program, folder] + (["--only", only] if only else []), capture_output=True, text=True)
    if done.returncode:
        if "NVRTC, which compiles kernels" in done.stderr:
            skip(done.stderr.strip())
        sys.exit("%s failed: %s" % (program, done.stderr.strip()))
    return json.loads(done.stdout)


class Row:
    """A function of machine code: what it computes, for which architecture, and how often a case has it."""

    def __init__(self, kernel, started, code):
        self.case, self.words, self.architecture = kernel["case"], kernel["words"], kernel["architecture"]
        self.result = "%s %s" % (kernel["dtype"], kernel["result"])
        self.scalars, self.uses = kernel["scalars"], kernel["uses"]
        self.threads, self.dynamic, self.code, self.times = started["threads"], started["shared"], code, 1

    def key(self):
        return self.case, self.words, self.result

    def text(self):
        c, f = self.code, lambda p: "%d:%d" % (self.code.count(p), self.code.wide(p))
        occupied = "%d/%d" % machine_code.occupancy(c, self.threads, self.dynamic, self.architecture)
        matrix = [c.count(p) for p in machine_code.MATRIX.values()]
        return "%-8s %5d %5d %6d %4d %5s %7s %7s %7s %7s %5d %5d %4d %5d  %s | %s -> %s%s" % (
            self.architecture, c.registers, c.stack, c.shared + self.dynamic, self.threads, occupied, f("LDG"), f("STG"),
            f("LDS"), f("STS"), *matrix, c.total(), *self.key(), " x %d" % self.times if self.times > 1 else "")


def rows_of(said, tool):
    files = sorted({f["file"] for k in said["kernels"] for f in k["functions"]})
    with concurrent.futures.ThreadPoolExecutor(max(1, min(4, os.cpu_count() or 1))) as pool:
        codes = dict(zip(files, pool.map(lambda f: machine_code.read(tool, f), files)))
    rows, seen = [], {}
    for kernel in said["kernels"]:
        for started in kernel["functions"]:
            same = (kernel["case"], kernel["words"], kernel["architecture"], kernel["result"], started["name"])
            if same in seen:
                seen[same].times += 1
                continue
            seen[same] = Row(kernel, started, codes[started["file"]][started["name"]])
            rows.append(seen[same])
    rows.sort(key=lambda r: (*r.key(), machine_code.architecture(r.architecture)))  # what is alike stays in order
    return rows


def kernel_table(said, rows):
    return COLUMNS % said["compiler"] + "".join(r.text() + "\n" for r in rows)


def floor_table(rows):
    lines = []
    for r in rows:
        if machine_code.architecture(r.architecture) != 90:
            continue
        for use in r.uses:
            seconds = rules.floor(use, rules.kind(r))
            lines.append("%13.3f %12.3f %11.2f %11.2f %7s  %s%s | %s -> %s%s" % (
                use["read"] / 1e6, use["written"] / 1e6, use["flops"] / 1e6, 1e6 * seconds,
                "+".join(map(str, use["groups"])), r.case, ", " + use["use"] if use["use"] else "", r.words, r.result,
                " x %d" % r.times if r.times > 1 else ""))
    return FLOOR_HEAD + "\n".join(lines) + "\n"


def differences(file, now):
    before = file.read_text().splitlines() if file.exists() else []
    now = now.splitlines()
    return ["- " + l for l in before if l not in set(now)] + ["+ " + l for l in now if l not in set(before)]


def main():
    arguments = sys.argv[1:]
    if not arguments or len(arguments) > 3:
        sys.exit(__doc__)
    program, option = arguments[0], arguments[1] if len(arguments) > 1 else ""
    only = arguments[2] if option == "--print" and len(arguments) > 2 else ""
    tool = cuobjdump()
    if not tool:
        skip("no cuobjdump: name it in LIGHTCONE_CUOBJDUMP (bench/setup-peers nvrtc fetches it)")
    with tempfile.TemporaryDirectory() as folder:
        said = compile_all(program, folder, only)
        rows = rows_of(said, tool)
    kernels, floors = kernel_table(said, rows), floor_table(rows)
    if option == "--print":
        print(kernels + "\n" + floors)
    elif option == "--update":
        KERNELS.write_text(kernels)
        FLOORS.write_text(floors)
    broken = rules.broken(rows)
    print("\n".join(broken))
    print("%d kernels for %s; %d break a rule" % (len(rows), ", ".join(g["architecture"] for g in said["gpus"]), len(broken)))
    changed = []
    if not option:
        if said["compiler"] in KERNELS.read_text().splitlines()[1]:
            changed = differences(KERNELS, kernels) + differences(FLOORS, floors)
        else:
            print("the table is of another compiler than %s: it is not compared" % said["compiler"])
    if changed:
        print("the table is not what it was (--update writes it anew):\n" + "\n".join(changed[:40]))
    sys.exit(1 if broken or changed else 0)


if __name__ == "__main__":
    main()
