#!/usr/bin/env python3
"""No code of the library, the command or the benchmarks reads or writes numbers through the C locale.

    check_numbers.py [FILE...]

The locale has a comma for a point in half of the world. Refused are printf's conversions of reals, strtod and its kin, streams
that numbers are written to or read from, and std::to_string of a real; base/numbers.h and str_cat take their place. The script
also looks at wrong lines of its own, so that it is known to find each kind.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Strings stay, for they hold formats; comments go, and lines keep their numbers.
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)
NAMES = re.compile(r"\b(strto(?:d|f|ld)|wcsto(?:d|f|ld)|sto(?:d|f|ld)|atof|ecvt|fcvt|gcvt|strfmon|setprecision|hexfloat|"
                   r"defaultfloat|(?:o|w|wo|wi)?stringstream|strstream|std::cout|std::cerr|std::clog|std::fixed|std::scientific|"
                   r"std::num_put|std::num_get|std::get_money|std::put_money)\b")
PRINTF = re.compile(r"(?<!\w)(?:std::)?(?:[fsd]|sn|v|vs|vsn|vf|a|va)?printf\s*\(|(?<!\w)(?:std::)?[fs]?scanf\s*\(")
REAL = re.compile(r"%[-+ #0']*(?:\d+|\*)?(?:\.(?:\d+|\*)?)?[lL]?[aefgAEFG]")
TO_STRING = re.compile(r"\bto_string\(\s*(?:static_cast<(?:double|float)>|[\d']+\.\d|\(?(?:double|float)\)?\()")

ALLOWED = {("tools/lightcone/main.cpp", "ostringstream")}  # the parser of options writes its help, texts alone, to a stream


def without_comments(text):
    def keep(m):
        s = m.group()
        return "\n" * s.count("\n") if s.startswith(("//", "/*")) else s
    return TOKEN.sub(keep, text)


def without_strings(text):
    return TOKEN.sub(lambda m: '"' + "\n" * m.group().count("\n") + '"', text)


def arguments(text, start):
    """From behind an opening parenthesis to its end."""
    depth, at = 1, start
    while at < len(text) and depth:
        m = TOKEN.match(text, at)
        if m:
            at = m.end()
            continue
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    return text[start:at]


def faults(text):
    text = without_comments(text)
    bare = without_strings(text)
    found = [(bare.count("\n", 0, m.start()) + 1, m.group()) for r in (NAMES, TO_STRING) for m in r.finditer(bare)]
    for m in PRINTF.finditer(text):
        strings = [s.group() for s in TOKEN.finditer(arguments(text, m.end())) if s.group().startswith('"')]
        if strings and any(REAL.search(s.replace("%%", "")) for s in strings):
            found.append((text.count("\n", 0, m.start()) + 1, m.group() + "... of a real number"))
    return found


WRONG = ['std::strtod(s, nullptr)', 'x = std::stof(s);', 'atof(s)', 'std::snprintf(t, sizeof t,\n  wide ? "%a" : "%af", v)',
         'printf("%-8.3f %s", v, s)', 'std::fprintf(stderr, "at %5.1lf", f(v))', 'std::ostringstream s;', 'std::cout << v',
         's << std::setprecision(9)', 'std::to_string(1.5)', 'std::to_string(static_cast<double>(n))', 'sscanf(s, "%lg", &v)',
         'std::fprintf(stderr, "%s" /* why */ "%*.*g", v)']
RIGHT = ['formatted("%.3f", v)', '// std::strtod is not for us', 'std::fprintf(stderr, "%d %% of %s", n, s)', '"std::cout"',
         'std::snprintf(t, sizeof t, "%02x", b)', 'std::to_string(n)', 'std::istringstream lines(text);', "'\"'; x(\"%f\")"]


def main(paths):
    for s in WRONG:
        assert faults(s), "not found: " + s
    for s in RIGHT:
        assert not faults(s), "found: " + s
    files = [pathlib.Path(p) for p in paths] or [
        p for room in ("lightcone", "tools", "bench") for p in sorted((ROOT / room).rglob("*"))
        if p.suffix in (".h", ".cpp", ".inc", ".cu", ".m", ".mm")]
    bad = ["%s:%d: %s" % (p, line, what) for p in files for line, what in faults(p.read_text())
           if not any(str(p).endswith(file) and what == word for file, word in ALLOWED)]
    print("\n".join(bad + ["numbers pass through the C locale: lightcone/base/numbers.h has what to use"] if bad else
                    ["%d files: no number passes through the C locale" % len(files)]))
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
