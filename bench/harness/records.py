"""Where results are kept: bench/records/PROCESSOR/TOPIC.json, the newest measurement of each row. History is git's."""
import json
import math
import pathlib
import re

from runners import ROOT
from workloads import TOPICS

RECORDS = ROOT / "bench/records"
TRIAL = ROOT / "build/bench-trial.json"
LINES = ("workloads", "rows", "stages")  # each of their elements has a line


def folder(processor):
    """The folder of a processor or GPU: "AMD EPYC (Zen 4)" has amd-epyc-zen4."""
    name = re.sub(r"zen (\d)", r"zen\1", processor.lower())
    return RECORDS / re.sub(r"[^a-z0-9]+", "-", name).strip("-")


def text(value, pad="", broken=True):
    """JSON with one line for each element of the root and of the LINES, so that files are short and a diff shows the rows that changed."""
    if not isinstance(value, (dict, list)):
        return json.dumps(number(value))
    items = value.items() if isinstance(value, dict) else [(None, v) for v in value]
    inner = pad + " " if broken else pad
    parts = [("" if k is None else json.dumps(k) + ": ") + text(v, inner, k in LINES and bool(v)) for k, v in items]
    begin, end = "{}" if isinstance(value, dict) else "[]"
    if not broken:
        return begin + ", ".join(parts) + end
    return begin + "\n" + ",\n".join(inner + p for p in parts) + "\n" + pad + end


def number(value):
    """A measured number has seven digits at most; a whole number, and what is before the point, has all of its own."""
    if not isinstance(value, float) or not math.isfinite(value):
        return value
    value = float(round(value)) if abs(value) >= 1e6 else float("%.7g" % value)
    return int(value) if value.is_integer() else value


def write(path, result):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text(result) + "\n")


def read(name):
    """A file, or all topics of a processor's folder as one result; "versions" and "limits" are those of the newest file."""
    path = pathlib.Path(name)
    if not path.is_dir():
        return json.loads(path.read_text())
    parts = [json.loads(f.read_text()) for topic in TOPICS if (f := path / (topic + ".json")).exists()]
    if not parts:
        raise SystemExit("compare: no record of a topic (%s) is in %s" % (", ".join(TOPICS), path))
    newest = max(parts, key=lambda r: r["machine"]["date"])
    return {**newest, "workloads": {name: d for r in parts for name, d in r["workloads"].items()}}


class Store:
    """Puts each row of a run where it belongs: the file of its topic, or one file for all rows.

    A topic's file keeps the rows that this run does not measure. One file for all begins anew, unless it is appended to."""

    def __init__(self, head, file=None, append=True):
        self.head, self.file, self.append, self.results = head, file, append, {}

    def path(self, topic):
        return self.file or folder(self.head["machine"]["cpu"]) / (topic + ".json")

    def result(self, topic):
        path = self.path(topic)
        if path not in self.results:
            before = json.loads(path.read_text()) if self.append and path.exists() else {}
            kept = {k: before[k] for k in ("workloads", "versions") if k in before}
            self.results[path] = {**self.head, "workloads": {}, "versions": {}, **kept}
        return self.results[path]

    def rows(self, topic):
        return self.result(topic)["workloads"]

    def add(self, topic, name, done):
        """Written after every row: a run that is stopped leaves what it had."""
        result = self.result(topic)
        result["workloads"][name] = done
        result["versions"].update({p: r["version"] for p, r in done["runs"].items() if r.get("version")})
        write(self.path(topic), result)
