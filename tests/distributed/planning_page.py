#!/usr/bin/env python3
"""docs/guide/planning-1024-gpus.md shows what `lightcone plan` prints: its commands run on its configuration.

Words are the same, and numbers differ by 3 % at most: a processor with other vectors has other kernels. Without
instructions for bf16 operands are rounded before their products, which takes 10 % more memory, as the page says.

    planning_page.py LIGHTCONE PAGE [--update]
"""
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.M | re.S)
NUMBER = re.compile(r"^([-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?)(.*)$")
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}


def tolerance():
    """Of numbers, on this processor."""
    try:
        units = pathlib.Path("/proc/cpuinfo").read_text().split()
    except OSError:
        units = []
    return 0.03 if {"avx512_bf16", "amx_bf16", "bf16"} & set(units) else 0.1


def words(text):
    """Words, and numbers with the unit behind them."""
    found, rest = [], text.split()
    for k, word in enumerate(rest):
        m = NUMBER.match(word)
        if m and k + 1 < len(rest) and rest[k + 1].strip(",;:") in UNITS:
            found.append(float(m.group(1)) * UNITS[rest[k + 1].strip(",;:")])
        elif m and m.group(2) in ("", ",", ";", ":"):
            found.append(float(m.group(1)))
        elif word.strip(",;:") not in UNITS:
            found.append(word)
    return found


def same(shown, said, tolerance):
    a, b = words(shown), words(said)
    if len(a) != len(b):
        return False
    return all(abs(x - y) <= tolerance * max(abs(x), abs(y)) + 1e-3 * (abs(x) > 1) if isinstance(x, float) and isinstance(y, float) else x == y
               for x, y in zip(a, b))


def main(lightcone, page, update=None):
    page = pathlib.Path(page)
    text, wrong = page.read_text(), []
    blocks = list(FENCE.finditer(text))
    with tempfile.TemporaryDirectory() as folder:
        for block, behind in zip(blocks, blocks[1:] + [None]):
            language, code = block.groups()
            if language == "json":
                pathlib.Path(folder, "llama-70b.json").write_text(code)
            if language != "sh" or not behind or behind.group(1) != "text":
                continue
            command = shlex.split(code.replace("\\\n", " "))
            done = subprocess.run([lightcone, *command[1:]], cwd=folder, capture_output=True, text=True, timeout=600)
            said = done.stdout + done.stderr
            if not same(behind.group(2), said, tolerance()):
                wrong.append("%s\nprints\n%s" % (code, said))
                text = text.replace(behind.group(2), said)
    if update:
        page.write_text(text)
    print("\n".join(wrong) or "the page shows what the command prints")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
