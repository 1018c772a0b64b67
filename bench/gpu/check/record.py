"""Keeps what a check of a GPU brought back: bench/records/DEVICE/gpu-check.json, and a table with PyTorch's figures beside ours."""
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "harness"))
import records

FIGURES = ("tflops", "gbytes_per_s", "tokens_per_s", "ms_a_step", "us")
BY_MEMORY = ("gbytes_per_s",)  # what bounds a row that reads weights once
SMALLER_IS_BETTER = ("ms_a_step", "us")


def rows_of(record, wanted):
    return {r["row"]: r for s in record["stages"] if wanted(s["stage"]) for r in s["rows"] if "row" in r}


def device_of(record):
    for s in record["stages"]:
        for r in s["rows"]:
            if "device" in r and "architecture" in r:
                return r
    return {}


def table(record):
    ours = rows_of(record, lambda name: name.startswith("rows ") and "," not in name)
    torch = rows_of(record, lambda name: name == "torch")
    copy = rows_of(record, lambda name: name == "ceilings").get("ceiling copy", {}).get("gbytes_per_s")
    lines = []
    for name, row in ours.items():
        first = BY_MEMORY if name.startswith(("gemv", "few rows")) else ()
        figure = next((f for f in first + FIGURES if f in row), None)
        if not figure:
            lines.append("%-50s %s" % (name, row.get("error", "")))
            continue
        text = "%-50s %10.4g %s" % (name, row[figure], figure)
        if copy and "gbytes_per_s" in row and not name.startswith("gemm"):
            text += "  %3.0f %% of copy" % (100 * row["gbytes_per_s"] / copy)
        peer = torch.get(name, {}).get(figure)
        if peer:
            text += "  %.2f of PyTorch" % (peer / row[figure] if figure in SMALLER_IS_BETTER else row[figure] / peer)
        lines.append(text)
    return "\n".join(lines)


def keep(file, output):
    # folders of the other machine leave no trace
    record = json.loads(re.sub(r"/tmp/tmp[a-z0-9_]+/", "", file.read_text()))
    device = device_of(record)
    if not device or record.get("fake"):
        sys.exit("%s is of no GPU" % file)
    path = output or records.folder(device["device"]) / "gpu-check.json"
    records.write(path, record)
    print(table(record))
    print("written: %s" % path)
