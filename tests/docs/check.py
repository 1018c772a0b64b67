#!/usr/bin/env python3
"""Compiles the C++ that README.md and docs/*.md show.

    check.py COMPILER SOURCE_DIRECTORY

The blocks of a page are one file, in order, behind `using namespace lc`. How a block begins says what it is:

    ```cpp                    definitions
    ```cpp body(PARAMETERS)   statements of a function with these parameters; #include and using stand before it
    ```cpp from(FILE)         an excerpt, which must stand in that file as it is shown
"""
import pathlib
import re
import subprocess
import sys
import tempfile

compiler, source = sys.argv[1], pathlib.Path(sys.argv[2])
BLOCK = re.compile(r"^```cpp *(?:(body|from)\(([^\n]*)\))?\n(.*?)^```$", re.M | re.S)


def program(page):
    """The page's C++, with #line so that an error names the page; and what is wrong with its excerpts."""
    text, wrong = page.read_text(), []
    out = '#include <iostream>\n#include "lightcone/lightcone.h"\nusing namespace lc;\n'
    for n, block in enumerate(BLOCK.finditer(text)):
        kind, argument, code = block.groups()
        line = text[: block.start(3)].count("\n") + 1
        if kind == "from":
            if code not in (source / argument).read_text():
                wrong.append("%s:%d: this is not in %s" % (page.name, line, argument))
            continue
        if kind == "body":
            head = [l for l in code.splitlines() if l.startswith(("#include", "using namespace"))]
            rest = ["" if l in head else l for l in code.splitlines()]
            code = "%s\nvoid body_%d(%s) {\n#line %d \"%s\"\n%s\n}\n" % ("\n".join(head), n, argument, line, page, "\n".join(rest))
        out += '#line %d "%s"\n%s' % (line, page, code)
    return out, wrong


blocks, wrong = 0, []
with tempfile.TemporaryDirectory() as header:
    # the library's header, compiled once for all pages; a compiler that does not take it reads the text
    (pathlib.Path(header) / "lightcone").mkdir()
    subprocess.run([compiler, "-std=c++20", "-x", "c++-header", "-I", source, source / "lightcone/lightcone.h", "-o", header + "/lightcone/lightcone.h.gch"], capture_output=True)
    for page in [source / "README.md", *sorted((source / "docs").glob("*.md"))]:
        blocks += len(re.findall(r"^```cpp", page.read_text(), re.M))
        text, not_there = program(page)
        wrong += not_there
        run = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-I", header, "-I", source, "-x", "c++", "-"], input=text, capture_output=True, text=True)
        if run.returncode != 0:
            wrong.append(run.stderr)
print("%d blocks, %d wrong" % (blocks, len(wrong)))
print("\n".join(wrong))
sys.exit(bool(wrong) or blocks < 5)
