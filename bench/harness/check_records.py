"""The records in bench/records are as bench/compare writes them, in the folder of their processor, and docs/performance/results.md
has their tables."""
import json
import pathlib
import sys
import tempfile

import machine
import records
import report
from workloads import workloads

PAGE = records.ROOT / "docs/performance/results.md"


def names():
    """Processors as Linux names them, and their folders."""
    avx512 = {"avx2", "avx512f", "avx512_vnni"}
    for known, folder in ((("AMD EPYC", "AuthenticAMD", 25, 17, avx512), "amd-epyc-zen4"),
                          (("AMD EPYC", "AuthenticAMD", 25, 17, {"avx2"}), "amd-epyc-zen4-avx2"),
                          (("AMD EPYC", "AuthenticAMD", 25, 1, {"avx2"}), "amd-epyc-zen3"),
                          (("AMD EPYC 9R14 96-Core Processor", "AuthenticAMD", 26, 2, avx512), "amd-epyc-zen5"),
                          (("Intel(R) Xeon(R) Processor @ 2.50GHz", "GenuineIntel", 6, 85, avx512), "intel-xeon-cascade-lake"),
                          (("Intel(R) Xeon(R) Processor", "GenuineIntel", 6, 167, avx512 | {"amx_tile"}), "intel-xeon-amx"),
                          (("Some CPU 3000", "Nobody", 1, 2, set()), "some-3000")):
        made = records.folder(machine.processor(*known)).name
        assert made == folder, (known, made)


def store(folder):
    """A topic's file keeps the rows that a run does not measure; one file for all begins anew, or is appended to."""
    def done(version):
        return {"runs": {"lightcone": {"version": version}, "torch": {"missing": "not installed"}}}

    def run(version, name, append):
        records.Store({"machine": {"cpu": version}}, folder / "all.json", append).add("rows", name, done(version))
        return json.loads((folder / "all.json").read_text())

    assert list(run("1", "gelu", False)["workloads"]) == ["gelu"]
    result = run("2", "chain", True)
    assert list(result["workloads"]) == ["gelu", "chain"] and result["machine"]["cpu"] == "2", result
    assert list(run("3", "softmax", False)["workloads"]) == ["softmax"]
    text = records.text({"a": [1.5, {"b": {}}], "rows": {"x": {"s": 0.123456789}, "y": 2.0}})
    assert text == '{\n "a": [1.5, {"b": {}}],\n "rows": {\n  "x": {"s": 0.1234568},\n  "y": 2\n }\n}', text


def faults(file):
    text = file.read_text()
    record = json.loads(text)
    if records.text(record) + "\n" != text:
        yield "is not as bench/compare writes it"
    if "workloads" not in record:
        return
    if records.folder(record["machine"]["cpu"]) != file.parent:
        yield "is of %s" % record["machine"]["cpu"]
    topics = {row["name"]: row["topic"] for row in workloads()}
    for name, done in record["workloads"].items():
        if not (file.stem == topics.get(name) or file.stem.startswith(topics.get(name, "?") + "-")):
            yield "has the row %s" % name
        if not done["measured"]["date"]:
            yield "does not say when %s was measured" % name


def main():
    names()
    with tempfile.TemporaryDirectory() as made:
        store(pathlib.Path(made))
    files = sorted(records.RECORDS.rglob("*.json"))
    assert files, "no records in %s" % records.RECORDS
    bad = ["%s %s" % (f.relative_to(records.ROOT), fault) for f in files for fault in faults(f)]
    page = set(PAGE.read_text().splitlines())
    for folder in sorted(f for f in records.RECORDS.iterdir() if any(f.glob("decode.json"))):
        result = records.read(folder)
        shown = [*report.results_table(result), *report.steps_table(result), *report.parts_table(result)]
        bad += ["%s lacks, of %s: %s" % (PAGE.relative_to(records.ROOT), folder.name, line) for line in shown if line not in page]
    print("\n".join(bad) or "%d records" % len(files))
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
