#!/usr/bin/env python3
"""Writes docs/tests.md: every test and what it proves, which is the first paragraph of the first comment of its source.

    tools/test_table.py            # write the page
    tools/test_table.py --check    # fail when the page is stale, or when a test says nothing about itself

A test is a program of tests/FOLDER/*_test.cpp, or a script or program that a CMake file gives to add_test().
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/tests.md"
LONGEST = 300
BACKWARDS = ("Of ", "Such ", "Those ", "That ", "Who ", "Whose ", "What ", "Where ", "Which ")
# Tests that run a tool or an example: the comment of their source is about the tool.
SAID = {
    "bench_compare": ("bench", "The benchmark harness measures one row without peers and writes its table and its JSON."),
    "bench_compare_builds": ("bench", "The benchmark harness compares a row with another build, which is this build once more."),
    "reference": ("tests", "Doxygen makes the reference of the public headers without a warning. The test skips without Doxygen."),
    "stablehlo_open_xla": ("tests/stablehlo", "Modules whose open sizes are bound to numbers give the f64 reference's results in XLA, within its error bounds."),
    "pytorch_table": ("tools", "docs/pytorch.md is what tools/pytorch_table.py writes from the public headers."),
    "test_table": ("tools", "docs/tests.md is what tools/test_table.py writes from the tests' first comments."),
}
# Tests that this page leaves out: the examples, and another run of a program that has a row already.
ELSEWHERE = re.compile(r"example_.*|.*_output|\$\{name\}.*|llvm_masks_.*|.*_on_(tiles|fake_amx)")
HEAD = """# Tests

This page lists every test and what it proves. `tools/test_table.py` writes it from the first comment of each test's
source, and the test `test_table` fails when it is stale. [Testing](testing.md) says how to run tests and how to repeat a
failure.

A heading is the folder of a test's source, and a row begins with the name that `./test NAME` and `ctest -R NAME` take.
These tests have no row:

- `example_NAME` runs an example of `examples/`, and `NAME_output` compares what it prints.
- `NAME_on_cuda` runs a test once more on the simulated CUDA.
- `NAME_on_tiles` runs a test once more on emulated tile registers, and `NAME_on_fake_amx` with AMX's own instructions
  on a simulator of them.
- `NAME_with_commas` runs a test once more under a locale with a decimal comma.
- `llvm_masks_NAME` runs a part of `llvm_test` for another instruction set.
"""


def first_paragraph(path):
    """The first paragraph of the file's first comment, on one line; nothing where it has none."""
    text = path.read_text()
    if path.suffix == ".py" or text.startswith("#!/usr/bin/env python"):
        m = re.search(r'"""(.*?)(?:\n\s*\n|""")', text, re.S)
        return " ".join(m[1].split()) if m else ""
    lines = text.splitlines()
    if lines and lines[0].startswith("#!"):
        lines = lines[1:]
    said = []
    for line in lines:
        m = re.fullmatch(r"(?://|#) (\S.*)", line)
        if not m:
            break
        said.append(m[1])
    return " ".join(said)


def programs(cmake, text):
    """Sources of the executables of a CMake file."""
    folder = cmake.parent
    for name, source in re.findall(r"add_executable\((\w+) (?:\$\{CMAKE_CURRENT_SOURCE_DIR\}/)?([\w/]+\.cpp)", text):
        yield name, folder / source


def source_of(command, cmake, executables):
    """The file that a command of add_test() runs."""
    for word in command.split():
        path = word.replace("${CMAKE_CURRENT_SOURCE_DIR}", str(cmake.parent)).replace("${PROJECT_SOURCE_DIR}", str(ROOT))
        if pathlib.Path(path).is_file() and pathlib.Path(path).suffix in (".py", ".sh"):
            return pathlib.Path(path)
        if word in executables:
            return executables[word]
    return None


def tests():
    """Name, folder and sentence of each test, and what is wrong."""
    rows, wrong = [], []
    for path in sorted(ROOT.glob("tests/*/*_test.cpp")):
        rows.append((path.stem, path))
    known = {name for name, _ in rows}
    for cmake in sorted([*ROOT.glob("*/CMakeLists.txt"), *ROOT.glob("*/*/CMakeLists.txt"), *ROOT.glob("*/*.cmake")]):
        text = cmake.read_text()
        executables = dict(programs(cmake, text))
        for name, command in re.findall(r"add_test\(NAME (\S+)\s+COMMAND\s+([^)]*)\)", text):
            if name in known or ELSEWHERE.fullmatch(name):
                continue
            known.add(name)
            if name in SAID:
                continue
            source = source_of(command, cmake, executables)
            if source is None:
                wrong.append("%s: add_test(%s): its source was not found" % (cmake.relative_to(ROOT), name))
            else:
                rows.append((name, source))
    wrong += ["tools/test_table.py: there is no test %s" % name for name in SAID if name not in known]
    out = [(name, *SAID[name]) for name in SAID]
    for name, path in rows:
        said = first_paragraph(path)
        where = path.relative_to(ROOT)
        if not said:
            wrong.append("%s: it has no first comment, which says what the test proves" % where)
        elif len(said) > LONGEST or not said.endswith(".") or said.startswith(BACKWARDS):
            wrong.append("%s: its first comment is no plain sentence of at most %d characters: %s" % (where, LONGEST, said))
        out.append((name, str(where.parent), said))
    return out, wrong


def page(rows):
    text = HEAD
    folders = [folder for _, folder, _ in rows]
    rows = [(name, folder if folders.count(folder) > 1 else folder.split("/")[0], said) for name, folder, said in rows]
    for folder in sorted({folder for _, folder, _ in rows}):
        text += "\n## %s\n\n| test | what it proves |\n|---|---|\n" % folder
        text += "".join("| `%s` | %s |\n" % (name, said.replace("|", "\\|")) for name, where, said in sorted(rows) if where == folder)
    return text


def main():
    rows, wrong = tests()
    text = page(rows)
    if "--check" not in sys.argv:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        wrong.append("docs/tests.md is stale: run tools/test_table.py")
    print("%d tests" % len(rows))
    print("\n".join(wrong))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
