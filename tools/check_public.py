#!/usr/bin/env python3
"""Examples and pages for users include only the headers that are promised (cmake/public_headers.cmake), which exist."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# These show how passes, operations and devices are written, or look into the library.
EXTENDING = {"examples/new_device.cpp", "examples/new_device.h", "examples/new_operation.cpp", "examples/custom_pass.cpp",
             "docs/adding-a-device.md", "docs/adding-an-operation.md", "docs/writing-a-pass.md", "docs/profiling.md",
             "docs/pjrt.md", "docs/xla.md", "docs/guide/deploying.md", "docs/guide/gpus.md",
             "docs/guide/new_architecture.md", "docs/guide/threads-and-memory.md"}
LISTS = (ROOT / "cmake/public_headers.cmake").read_text()


def names(variable):
    return set(re.search(r"set\(%s\s([^)]*)\)" % variable, LISTS)[1].split())


promised = names("LIGHTCONE_API_HEADERS") | names("LIGHTCONE_IO_API_HEADERS") | names("LIGHTCONE_MPI_API_HEADERS")
wrong = ["cmake/public_headers.cmake: there is no lightcone/%s" % n for n in sorted(promised)
         if not (ROOT / "lightcone" / n).exists()]
pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.cpp"), *(ROOT / "examples").glob("*.h")]
for path in sorted(pages):
    name = str(path.relative_to(ROOT))
    if name in EXTENDING:
        continue
    for n, line in enumerate(path.read_text().splitlines(), 1):
        m = re.match(r'#include [<"]lightcone/([\w/]+\.h)[>"]', line)
        if m and m[1] not in promised:
            wrong.append("%s:%d: lightcone/%s is not among the promised headers" % (name, n, m[1]))
print("\n".join(wrong) or "%d promised headers" % len(promised))
sys.exit(bool(wrong))
