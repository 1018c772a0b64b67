#!/usr/bin/env python3
"""No C++ comment begins with a word that leaves its sentence without a subject, and none exceeds 120 columns.

A comment may not begin with "Of", "Such", "Those", "Who" or "Whose", nor with "All", "None", "Nothing", "One" or "That" as a
pronoun, which the next word tells: "All are ...", "None of ...". A comment is a trailing comment, or whole-line comments up to
the next line of code or empty comment line; only its first line counts. Strings, raw strings included, are no
comments."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("lightcone", "tools", "bench", "examples", "simulators", "tests")
COLUMNS = 120
TOKEN = re.compile(
    r'R"([^()\\\s"]*)\((?:.|\n)*?\)\1"'  # a raw string
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'"  # a character, no separator of digits
    r"|(?P<comment>//(?:\\\n|[^\n])*|/\*(?:.|\n)*?\*/)")
VERB = (r"is|are|was|were|be|has|have|had|does|do|did|can|cannot|could|may|might|must|will|would|shall|should|need|needs|get|gets"
        r"|become|becomes|remain|remains|stay|stays|come|comes|go|goes|lie|lies|keep|keeps|give|gives|take|takes|make|makes")
BACKWARDS = re.compile(
    r"(?:of|such|those|who|whose)\b"
    r"|(?:all|none|nothing|one|that)\s+(?:%s)\b"
    r"|(?:all|none|nothing|one)\s+(?:that|which|who|whose)\b"
    r"|(?:none|that)\s+of\b"
    r"|(?:all|one)\s+of\s+(?:it|them|these|those|which|whom)\b" % VERB, re.I)


def comments(text):
    """Line, column, text of each comment, and whether code comes before it on its line."""
    for m in TOKEN.finditer(text):
        if m["comment"]:
            start = text.rfind("\n", 0, m.start()) + 1
            yield text.count("\n", 0, m.start()) + 1, m.start() - start, m["comment"], bool(text[start : m.start()].strip())


def beginnings(text):
    """Line and words of each comment; lines that continue a comment are left out."""
    before = None  # line and column of the comment that the next line may continue
    for line, column, comment, trailing in comments(text):
        words = comment[2:].lstrip("/*!< \n")
        if words and (trailing or before != (line - 1, column)):
            yield line, words
        before = (line + comment.count("\n"), column) if words else None


def problems(path):
    text = path.read_text()
    for line, words in beginnings(text):
        if BACKWARDS.match(words):
            yield line, 'the comment begins with "%s": give the sentence a subject' % " ".join(words.split()[:2])
    lines = text.split("\n")
    for line, _, comment, _ in comments(text):
        for k in range(line, line + comment.count("\n") + 1):
            if len(lines[k - 1]) > COLUMNS:
                yield k, "the line of this comment has %d columns, more than %d" % (len(lines[k - 1]), COLUMNS)


def main():
    files = sorted(p for folder in FOLDERS for p in (ROOT / folder).rglob("*") if p.suffix in (".h", ".cpp"))
    found = ["%s:%d: %s" % (p.relative_to(ROOT), line, what) for p in files for line, what in sorted(problems(p))]
    print("%d files, %d comments to rewrite" % (len(files), len(found)))
    print("\n".join(found))
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
