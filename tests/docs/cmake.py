#!/usr/bin/env python3
"""The projects of docs/guide/cmake.md configure, build and run against an installed copy, and its mistakes get their sentences.

    cmake.py CMAKE BUILD_DIRECTORY PAGE

    ```cmake project   a whole CMakeLists.txt: it must build main.cpp, the page's program, which must print what is shown
    ```cmake wrong     one that cannot be configured; CMake's words must be those of the ```error block behind it
"""
import pathlib
import re
import subprocess
import sys
import tempfile

from check import FENCE, matches

cmake, build, page = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])


def call(*command):
    return subprocess.run(command, capture_output=True, text=True)


def words(text):
    """A message without CMake's wrapping of lines; "..." takes the spaces around it, too."""
    return re.sub(r" ?\.\.\. ?", "...", " ".join(text.split())) + "\n"


wrong, tried = [], 0
with tempfile.TemporaryDirectory() as work:
    work = pathlib.Path(work)
    installed = call(cmake, "--install", build, "--prefix", str(work / "prefix"))
    if installed.returncode != 0:
        sys.exit("cmake --install failed:\n" + installed.stderr)
    blocks = [m.groups() for m in FENCE.finditer(page.read_text())]
    program = next(k for k, b in enumerate(blocks) if b[:2] == ("cpp", "program"))
    for k, (language, kind, code) in enumerate(blocks):
        if language != "cmake" or kind not in ("project", "wrong"):
            continue
        tried += 1
        folder = work / str(k)
        folder.mkdir()
        (folder / "CMakeLists.txt").write_text(code)
        (folder / "main.cpp").write_text(blocks[program][2])
        configured = call(cmake, "-S", str(folder), "-B", str(folder / "build"), "-G", "Ninja", "-DCMAKE_PREFIX_PATH=%s" % (work / "prefix"))
        if kind == "wrong":
            said = words(re.sub(r"\n\s*-- Configuring incomplete.*", "", configured.stderr, flags=re.S).replace(str(work), ""))
            if configured.returncode == 0 or not matches(said, words(blocks[k + 1][2])):
                wrong.append("%s\nsays\n%s" % (code, said))
            continue
        built = call(cmake, "--build", str(folder / "build"))
        ran = call(str(folder / "build/app")) if built.returncode == 0 else built
        if configured.returncode + ran.returncode != 0 or not matches(ran.stdout, blocks[program + 1][2]):
            wrong.append("%s\n%s%s%s" % (code, configured.stderr, ran.stdout, ran.stderr))
print("%d projects, %d wrong" % (tried, len(wrong)))
print("\n".join(wrong))
sys.exit(bool(wrong) or tried < 2)
