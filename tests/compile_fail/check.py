#!/usr/bin/env python3
"""Every wrong typed program of tests/compile_fail fails to compile, with its own sentence in the compiler's message.

    check.py COMPILER INCLUDE_DIRECTORY

A file must fail with one error, and the sentence of its first line ("// expect: ...") must stand
both in the first line that the compiler says about the code and in the line with "error:";
control.cpp must compile.
"""
import pathlib
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

compiler, include = sys.argv[1:3]
# asserted with a fixed sentence, which is in the error line only
PLAIN = {"embedding_float", "set_type", "where_condition", "many_axes"}
folder = pathlib.Path(__file__).parent
files = sorted(folder.glob("*.cpp"))


def check(path):
    expect = path.read_text().splitlines()[0].removeprefix("// expect: ")
    run = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-I", header, "-I", include, str(path)], capture_output=True, text=True)
    if path.stem == "control":
        return None if run.returncode == 0 else "control.cpp does not compile:\n" + run.stderr
    if run.returncode == 0:
        return "%s compiles, but should not" % path.name
    # lines that only say where a file was included from come before the message
    said = [l for l in run.stderr.splitlines() if "In file included from" not in l and not l.strip().startswith("from ")]
    said = [l for l in said if "In function" not in l and "In substitution" not in l]
    errors = [l for l in said if " error: " in l]
    first = [said[0], errors[0]] if path.stem not in PLAIN else [errors[0]]
    for line in first:
        if expect not in line:
            return "%s: the compiler says\n  %s\nbut should say\n  %s" % (path.name, line, expect)
    if len(errors) > 1 and path.stem not in PLAIN:
        return "%s: one mistake, %d errors\n  %s" % (path.name, len(errors), "\n  ".join(errors))
    return None

with tempfile.TemporaryDirectory() as header, ThreadPoolExecutor(2) as pool:
    # the library's header, compiled once for all files; a compiler that does not take it reads the text
    (pathlib.Path(header) / "lightcone").mkdir()
    subprocess.run([compiler, "-std=c++20", "-x", "c++-header", "-I", include, include + "/lightcone/lightcone.h", "-o", header + "/lightcone/lightcone.h.gch"], capture_output=True)
    wrong = [w for w in pool.map(check, files) if w]
print("%d files, %d wrong" % (len(files), len(wrong)))
for w in wrong:
    print(w)
sys.exit(bool(wrong) or len(files) < 30)
