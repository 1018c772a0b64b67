"""Keeps what a check of a GPU brought back: a record in bench/results/gpu, and a table with PyTorch's figures beside ours."""
import json
import re
import sys

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


def keep(file, folder):
    record = json.loads(file.read_text())
    device = device_of(record)
    if not device or record.get("fake"):
        sys.exit("%s is of no GPU" % file)
    name = record["date"][:10] + "-" + re.sub(r"[^a-z0-9]+", "-", device["device"].lower()).strip("-")
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(record, indent=1)
    # of the other machine's folders nothing stays
    text = re.sub(r"/tmp/tmp[a-z0-9_]+/", "", text)
    (folder / (name + ".json")).write_text(text + "\n")
    print(table(record))
    print("written: %s" % (folder / (name + ".json")))
