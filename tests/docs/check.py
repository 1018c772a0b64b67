#!/usr/bin/env python3
"""The C++ that README.md, CONTRIBUTING.md, docs/ and simulators/ show compiles, and its programs print what the pages show.
Links between pages lead somewhere.

    check.py COMPILER SOURCE_DIRECTORY DRIVER [--update] [PAGE...]

DRIVER is the program of driver.cpp, which has the library; without pages (paths behind SOURCE_DIRECTORY) all are checked.
--update writes into the pages what their programs say now: look at the difference before you believe it.
How a block begins says what it is:

    ```cpp program            a whole program, with its includes and main(); an ```output block behind it says what it prints
    ```cpp wrong              statements that are wrong. Behind them stands the sentence: an ```error block for what an lc::Error
                              says when they run, a ```compiler block for the first line of the C++ compiler
    ```cpp                    definitions, which wrong programs may use
    ```cpp body(PARAMETERS)   statements of a function with these parameters
    ```cpp from(FILE)         an excerpt, which must stand in that file as it is shown (in other languages, too: ```cmake from(FILE))

#include and using stand before the function that statements are put into. "..." in what is said stands for any text, on a line
of its own for any lines. Links between pages must lead somewhere. The programs of a page run one after another in one folder, where models/ is that of the sources; a
program is main.cpp to itself.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

LINK = re.compile(r"\]\(([^)#:\s]*)(#[^)\s]*)?\)")
FENCE = re.compile(r"^```(\w+) *([^\n]*)\n(.*?)^```$", re.M | re.S)
HEAD = ("#include", "using namespace")


class Block:
    def __init__(self, page, match):
        self.language, self.kind, self.code = match.groups()
        self.span = match.span(3)
        self.line = page.text[: match.start(3)].count("\n") + 1
        self.where = "%s:%d" % (page.name, self.line)

    def argument(self, kind):
        m = re.fullmatch(kind + r"\((.*)\)", self.kind)
        return m and m.group(1)


class Page:
    def __init__(self, path, source):
        self.path, self.name, self.text = path, str(path.relative_to(source)), path.read_text()
        self.blocks = [Block(self, m) for m in FENCE.finditer(self.text)]
        self.wrong, self.differs = [], []
        self.programs, self.mistakes, self.misspelt = [], [], []  # (block, the block of what it says)
        for block, said in zip(self.blocks, self.blocks[1:] + [None]):
            language = said.language if said else ""
            if block.language == "cpp" and block.kind == "program":
                self.expect(block, said, language == "output", self.programs, "a program, and no ```output behind it")
            elif block.language == "cpp" and block.kind == "wrong":
                to = self.misspelt if language == "compiler" else self.mistakes
                self.expect(block, said, language in ("error", "compiler"), to, "no ```error and no ```compiler behind it")
            elif block.argument("from") is not None:
                if block.code not in (source / block.argument("from")).read_text():
                    self.wrong.append("%s: this is not in %s" % (block.where, block.argument("from")))
            elif block.language == "cpp" and block.kind and block.argument("body") is None:
                self.wrong.append("%s: ```cpp %s: there is no such kind" % (block.where, block.kind))

        self.links()

    def links(self):
        """Other pages and their headings must be there."""
        for path, heading in LINK.findall(FENCE.sub("", self.text)):
            to = (self.path.parent / path).resolve() if path else self.path
            if not to.exists():
                self.wrong.append("%s: there is no %s" % (self.name, path))
            elif heading and heading[1:] not in headings(to.read_text()):
                self.wrong.append("%s: %s has no heading %s" % (self.name, path or "it", heading))

    def expect(self, block, said, there, to, otherwise):
        if there:
            to.append((block, said))
        else:
            self.wrong.append("%s: %s" % (block.where, otherwise))

    def compare(self, block, shown, said):
        """Notes where a block says something else than is shown."""
        if not matches(said, shown.code):
            self.differs.append((shown.span, said.rstrip() + "\n"))
            self.wrong.append("%s: it says\n%s" % (block.where, said))

    def update(self):
        text = self.text
        for (begin, end), said in sorted(self.differs, reverse=True):
            text = text[:begin] + said + text[end:]
        self.path.write_text(text)

    def head(self):
        """What stands before the functions: the library and all that the page's blocks include."""
        lines = ['#include "lightcone/lightcone.h"', "#include <iostream>", "using namespace lc;"]
        for b in self.blocks:
            if b.language == "cpp":
                lines += [l for l in b.code.splitlines() if l.startswith(HEAD) and l not in lines]
        return "\n".join(lines) + "\n"

    def definitions(self):
        out = self.head()
        for b in self.blocks:
            if b.language == "cpp" and not b.kind:
                out += '#line %d "%s"\n%s' % (b.line, self.name, b.code)
        return out

    def functions(self):
        """Definitions, statements, and the wrong programs that compile: one file."""
        out = self.definitions()
        for n, b in enumerate(self.blocks):
            if b.language == "cpp" and b.argument("body") is not None:
                out += function("void body_%d(%s)" % (n, b.argument("body")), b, '#line %d "%s"' % (b.line, self.name))
        for n, (b, _) in enumerate(self.mistakes):
            out += function('extern "C" void wrong_%d()' % n, b, '#line 1 "main.cpp"')
        return out


def headings(text):
    """The names of a page's headings in links, as on GitHub."""
    lines = re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.M)
    return [re.sub(r"[^\w\- ]", "", l.lower()).replace(" ", "-") for l in lines]


def function(declaration, block, line):
    rest = ["" if l.startswith(HEAD) else l for l in block.code.splitlines()]
    return "%s {\n%s\n%s\n}\n" % (declaration, line, "\n".join(rest))


def program(block):
    """main() under another name, which a shared object may have."""
    code, mains = re.subn(r"^int main\(\) \{(.*?)^\}", r'extern "C" int program() {\1  return 0; }', block.code, flags=re.M | re.S)
    return '#line 1 "main.cpp"\n' + code if mains == 1 else None


def errors(built):
    return "\n".join([l for l in built.stderr.splitlines() if "error: " in l][:5]) or built.stderr


def matches(said, expected):
    """Is this what was said? Trailing spaces do not count."""
    lines = []
    for l in expected.rstrip().splitlines():
        lines.append(r"(?:.*\n)*?" if l.strip() == "..." else ".*".join(re.escape(p) for p in l.rstrip().split("...")) + r"\n")
    said = "".join(l.rstrip() + "\n" for l in said.rstrip().splitlines())
    return re.fullmatch("".join(lines), said)


class Checker:
    def __init__(self, compiler, source, driver, work):
        self.source, self.driver, self.work = source, driver, work
        self.call = [compiler, "-std=c++20", "-fPIC", "-I", str(work / "header"), "-I", str(source)]
        # the library's header, compiled once for all pages; a compiler that does not take it reads the text
        (work / "header/lightcone").mkdir(parents=True)
        header = str(source / "lightcone/lightcone.h")
        (work / "header/lightcone/lightcone.h").write_text('#include "%s"\n' % header)
        subprocess.run([*self.call, "-w", "-x", "c++-header", header, "-o", str(work / "header/lightcone/lightcone.h.gch")])

    def compile(self, text, *options):
        return subprocess.run([*self.call, *options, "-x", "c++", "-"], input=text, capture_output=True, text=True)

    def run(self, folder, shared, name):
        try:
            return subprocess.run([self.driver, str(shared), name], cwd=folder, capture_output=True, text=True, timeout=120)
        except subprocess.TimeoutExpired as e:
            return subprocess.CompletedProcess(e.cmd, 124, "", "it did not end")

    def folder(self, n):
        folder = self.work / str(n)
        folder.mkdir()
        (folder / "models").symlink_to(self.source / "models")
        return folder

    def page(self, page, n):
        folder = self.folder(n)
        for k, (block, shown) in enumerate(page.programs):
            self.program(page, block, shown, folder, folder / ("program_%d.so" % k))
        self.functions(page, folder)
        for block, shown in page.misspelt:
            self.misspelt(page, block, shown)

    def program(self, page, block, shown, folder, shared):
        text = program(block)
        alone = page.name.startswith("simulators/")  # its programs need nothing of the library
        if text is None or not (alone or re.search('#include [<"]lightcone/', text)):
            return page.wrong.append("%s: not a whole program: it needs int main() { and an #include of the library" % block.where)
        built = self.compile(text, "-shared", "-o", str(shared))
        if built.returncode != 0:
            return page.wrong.append("%s: this does not compile:\n%s" % (block.where, errors(built)))
        ran = self.run(folder, shared, "program")
        if ran.returncode != 0:
            return page.wrong.append("%s: exit status %d\n%s%s" % (block.where, ran.returncode, ran.stdout, ran.stderr))
        page.compare(block, shown, ran.stdout)

    def functions(self, page, folder):
        if not any(b.language == "cpp" for b in page.blocks):
            return
        shared = folder / "functions.so"
        built = self.compile(page.functions(), *(["-shared", "-o", str(shared)] if page.mistakes else ["-fsyntax-only"]))
        if built.returncode != 0:
            return page.wrong.append("%s: this does not compile:\n%s" % (page.name, errors(built)))
        for n, (block, shown) in enumerate(page.mistakes):
            ran = self.run(folder, shared, "wrong_%d" % n)
            if ran.returncode == 1:
                page.compare(block, shown, ran.stderr)
            else:
                page.wrong.append("%s: no lc::Error, but exit status %d\n%s" % (block.where, ran.returncode, ran.stderr))

    def misspelt(self, page, block, shown):
        text = page.definitions() + function("void wrong()", block, '#line 1 "main.cpp"')
        built = self.compile(text, "-fsyntax-only")
        if built.returncode == 0:
            return page.wrong.append("%s: this compiles, but should not" % block.where)
        error = next(l for l in built.stderr.splitlines() if " error: " in l)
        # the sentence is the text of a template argument, or the message itself
        sentence = re.search(r'Text\{"(.*?)"\}', error)
        page.compare(block, shown, sentence.group(1) if sentence else error.split(" error: ", 1)[1].removeprefix("static assertion failed: "))


def main(compiler, source, driver, *arguments):
    source = pathlib.Path(source).resolve()
    names = [a for a in arguments if a != "--update"]
    paths = [source / n for n in names] or [source / "README.md", source / "CONTRIBUTING.md",
                                            *(p for f in ("docs", "simulators") for p in sorted((source / f).rglob("*.md")))]
    pages = [Page(p, source) for p in paths if p.exists()]
    pages.sort(key=lambda p: -len(p.programs) - len(p.misspelt))  # what takes longest first
    with tempfile.TemporaryDirectory() as work, ThreadPoolExecutor(2) as pool:
        check = Checker(compiler, source, os.path.abspath(driver), pathlib.Path(work))
        list(pool.map(check.page, pages, range(len(pages))))
    wrong = [w for p in pages for w in p.wrong]
    if "--update" in arguments:
        for p in pages:
            p.update()
    programs, mistakes = sum(len(p.programs) for p in pages), sum(len(p.mistakes) + len(p.misspelt) for p in pages)
    blocks = sum(b.language == "cpp" for p in pages for b in p.blocks)
    print("%d pages, %d blocks; of them %d programs and %d mistakes; %d wrong" % (len(pages), blocks, programs, mistakes, len(wrong)))
    print("\n".join(wrong))
    return bool(wrong) or (not names and (programs < 1 or blocks < 5))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
