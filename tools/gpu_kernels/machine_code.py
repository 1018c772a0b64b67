"""What NVIDIA's disassembler says of compiled kernels."""
import collections
import os
import pathlib
import re
import subprocess

# Of a multiprocessor: warps, registers, KB of shared memory, groups; and the KB of shared memory that a group takes for
# the driver. CUDA C++ Programming Guide, "Compute Capabilities".
MULTIPROCESSORS = {75: (32, 65536, 64, 16, 0), 80: (64, 65536, 164, 32, 1), 90: (64, 65536, 228, 32, 1),
                   100: (64, 65536, 228, 32, 1), 120: (48, 65536, 100, 24, 1)}
MATRIX = {"HMMA": r"HMMA|QMMA", "HGMMA": r"HGMMA|QGMMA|UTCHMMA|UTCQMMA", "IMMA": r"IMMA|IGMMA|UTCIMMA"}


class Function:
    def __init__(self, registers, stack, shared, local, instructions):
        self.registers, self.stack, self.shared, self.local = registers, stack, shared, local
        self.instructions = instructions  # opcodes, counted: "LDG.E.128"

    def count(self, pattern):
        return sum(n for op, n in self.instructions.items() if re.match(r"(?:%s)(?:\.|$)" % pattern, op))

    def wide(self, pattern):
        return sum(n for op, n in self.instructions.items()
                   if re.match(r"(?:%s)\." % pattern, op) and re.search(r"\.(128|256)\b", op))

    def spills(self):
        return self.count("LDL|STL")

    def total(self):
        return sum(n for op, n in self.instructions.items() if op != "NOP")


def architecture(name):
    return int(re.search(r"\d+", name)[0])


def occupancy(f, threads, dynamic_shared, name):
    """Warps of a multiprocessor that can be there at once, and how many it takes."""
    most, registers, shared, groups, reserved = MULTIPROCESSORS[architecture(name)]
    warps = -(-threads // 32)
    of_a_warp = -(-max(f.registers, 16) * 32 // 256) * 256
    fit = min(registers // (of_a_warp * warps), most // warps, groups)
    used = f.shared + dynamic_shared
    if used:
        fit = min(fit, shared * 1024 // (used + reserved * 1024))
    return fit * warps, most


def read(cuobjdump, cubin):
    """The functions of a file, by name."""
    def ask(*what):
        folder = str(pathlib.Path(cuobjdump).parent)  # where nvdisasm is, which it starts
        env = dict(os.environ, PATH=folder + ":" + os.environ.get("PATH", ""))
        done = subprocess.run([cuobjdump, *what, cubin], capture_output=True, text=True, env=env)
        if done.returncode:
            raise RuntimeError("%s does not read %s: %s" % (cuobjdump, cubin, done.stderr.strip()))
        return done.stdout

    opcodes, at = {}, None
    for line in ask("-sass").splitlines():
        if m := re.match(r"\s*Function : (\w+)", line):
            at = opcodes[m[1]] = collections.Counter()
        elif m := re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", line):
            at[m[1]] += 1
    found = {}
    for name, *numbers in re.findall(r"Function (\w+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)",
                                     ask("--dump-resource-usage")):
        found[name] = Function(*map(int, numbers), opcodes[name])
    if not found:
        raise RuntimeError("%s finds no functions in %s" % (cuobjdump, cubin))
    return found
