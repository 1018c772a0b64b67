#!/usr/bin/env python3
"""Makes the reference of the public headers with Doxygen.

    build.py SOURCE_DIRECTORY OUTPUT_DIRECTORY HEADER...

HEADER is a path behind lightcone/, of a header or of a folder of them. OUTPUT/html/index.html is the page to begin with.
Our comments are ordinary ones; a copy of the headers is made in which they are Doxygen's, and what is declared in a file
belongs to a group by the file's folder. A warning is an error. Exit status 77: there is no Doxygen.
"""
import pathlib
import re
import shutil
import subprocess
import sys

# The first that a path begins with.
GROUPS = [
    ("models/", "models"), ("llm/", "models"), ("io/data/", "training"), ("io/images/", "training"), ("io/", "files"),
    ("nn/session", "running"), ("nn/parameter", "running"), ("nn/", "layers"),
    ("train/", "training"), ("optim/", "training"), ("autograd/", "training"), ("ops/loss", "training"),
    ("ops/typed/", "typed"), ("ops/", "operations"), ("random/", "operations"),
    ("core/", "tensors"), ("runtime/", "running"), ("verify/", "compilers"), ("reference/", "compilers"), ("passes/", "compilers"),
    ("lowering/mixed", "compilers"), ("backends/cpu/cpu", "compilers"),
    ("", "devices"),
]
NAMESPACE = re.compile(r"^(inline )?namespace [\w:]+ \{$")


def group_of(path):
    return next(g for prefix, g in GROUPS if path.startswith(prefix))


def escaped(text):
    """Plain words: nothing in them is a command of Doxygen or HTML."""
    plain = re.sub(r'([\\@#<>&%"]|(?<!\w)::)', r"\\\1", text)
    return re.sub(r"`([^`]+)`", r"<tt>\1</tt>", plain)


def comment(lines):
    """The lines of one // comment as those of a Doxygen comment; what is indented behind an empty line or a colon is code."""
    out, code, may_begin = [], False, True
    for line in lines:
        text = line.strip()[2:]
        indented = text.startswith("  ") and (code or may_begin)
        if indented != code and (text.strip() or not code):
            out.append("/// @code{.cpp}" if indented else "/// @endcode")
            code = indented
        out.append("///" + (text if code else escaped(text)))
        may_begin = not text.strip() or text.endswith(":")
    return out + ["/// @endcode"] * code


def only_declares(lines, k):
    """Does the namespace that line k opens hold declarations of somebody else's classes, and nothing more?"""
    end = k + 1
    while re.match(r"(class|struct) \w+;$", lines[end]):
        end += 1
    return lines[end] == "}"


def split_code(line):
    """Code and the comment behind it; a // within a string is none."""
    quoted = False
    for k, c in enumerate(line):
        if c == '"' and (k == 0 or line[k - 1] not in "\\'"):
            quoted = not quoted
        if not quoted and line.startswith("//", k):
            return line[:k], line[k:]
    return line, ""


def converted(text, path):
    group = group_of(path)
    out, pending, first, open_section = [], [], True, False

    def flush():
        """What the comment that ends here becomes."""
        nonlocal pending, first, open_section
        section = pending and re.match(r"// -{2,} ?(.*?) ?-*$", pending[0])
        if section:  # "// ---- indexing ------": a heading between declarations
            out.extend(["/** @} */"] * open_section)
            out.extend(["/// @name %s" % escaped(section.group(1).capitalize()), *comment(pending[1:]), "/// @{"])
            open_section = True
        elif pending:
            out.extend(["/// @file"] * first + comment(pending))
        first, pending = first and not pending, []

    lines = text.splitlines()
    for k, line in enumerate(lines):
        if line.strip().startswith("//"):
            pending.append(line)
            continue
        flush()
        if line.strip():
            first = False
        code, behind = split_code(line)
        if NAMESPACE.match(line) and not only_declares(lines, k):
            out.append("/** @} */ " * open_section + line + " /** @addtogroup %s */ /** @{ */" % group)
            open_section = False
        elif re.match(r"^\}  // namespace", line):
            out.append("/** @} */ " * (1 + open_section) + "}")
            open_section = False
        elif behind and code.strip() and not code.strip().startswith("#"):
            out.append(code + "///<" + escaped(behind[2:]))
        else:
            out.append(line)
    flush()
    return "\n".join(out) + "\n"


def headers(source, names):
    for name in names:
        at = source / "lightcone" / name
        yield from sorted(at.rglob("*.h")) if at.is_dir() else [at]


def main(source, output, *names):
    source, output = pathlib.Path(source).resolve(), pathlib.Path(output).resolve()
    doxygen = shutil.which("doxygen")
    if not doxygen:
        print("the reference is made by Doxygen, which is not installed (Debian: doxygen)")
        return 77
    for old in ("headers", "html"):
        shutil.rmtree(output / old, ignore_errors=True)
    for header in headers(source, names):
        path = str(header.relative_to(source / "lightcone"))
        copy = output / "headers/lightcone" / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(converted(header.read_text(), path))
    here = source / "docs/reference"
    settings = (here / "Doxyfile").read_text()
    settings += 'INPUT = "%s" "%s"\nSTRIP_FROM_PATH = "%s"\nSTRIP_FROM_INC_PATH = "%s"\n' % (
        here / "main.dox", output / "headers", output / "headers", output / "headers")
    settings += 'OUTPUT_DIRECTORY = "%s"\nHTML_EXTRA_STYLESHEET = "%s"\n' % (output, here / "style.css")
    ran = subprocess.run([doxygen, "-"], input=settings, capture_output=True, text=True, cwd=output)
    warnings = [l for l in ran.stderr.splitlines() if l.strip()]
    print("\n".join(l.replace(str(output / "headers") + "/", "") for l in warnings))
    pages = len(list((output / "html").glob("*.html")))
    print("%d pages, %d lines of warnings: %s" % (pages, len(warnings), output / "html/index.html"))
    return ran.returncode != 0 or bool(warnings) or pages < 50


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
