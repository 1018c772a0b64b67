#!/usr/bin/env python3
"""Classifiers of texts that `lightcone train` continues take the same steps as in PyTorch, and their folders and adapters
say the same in transformers and peft as in `lightcone predict`.

    text_classifier_peers_check.py LIGHTCONE

LIGHTCONE_PEFT names a python that has torch, transformers and peft; without it the check is skipped."""
import csv
import json
import os
import pathlib
import random
import sys
import tempfile


def setting(folder, family, without=()):
    case = command.TextClassifier()
    case.d, case.random = folder, random.Random(7)
    case.reviews(48)
    command.write_model(folder / "base", family, without)
    c = case.config(1)
    del c["data"]["held_out"]
    c["data"]["test"] = "train.csv"
    return case, c


def encoded(folder, family, path):
    from transformers import AutoTokenizer
    with open(path, newline="") as f:
        rows = list(csv.DictReader(f))
    inputs = AutoTokenizer.from_pretrained(folder)([row["review"] for row in rows], padding=True, return_tensors="pt")
    if family != "bert":
        inputs.pop("token_type_ids", None)
    return rows, inputs


def same_steps(family):
    """The whole training set is one batch, so that each step is the gradient of the same loss."""
    import torch
    from safetensors.torch import load_file
    from transformers import AutoModelForSequenceClassification
    with tempfile.TemporaryDirectory() as kept:
        case = command.TextClassifier()
        case.d = d = pathlib.Path(kept)
        case.trained(case.formula(family))
        model = AutoModelForSequenceClassification.from_pretrained(d / family).double().eval()
        rows, inputs = encoded(d / family, family, d / "four.csv")
        wanted = torch.tensor([model.config.label2id[row["mood"]] for row in rows])
        begin = {name: v.clone() for name, v in model.state_dict().items()}
        optimizer = torch.optim.SGD(model.parameters(), lr=command.RATE)
        losses = []
        for _ in range(command.STEPS):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(**inputs).logits, wanted)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        written = command.LOSSES.get(family, [])
        assert len(written) == len(losses) and max(abs(a - b) for a, b in zip(losses, written)) < 1e-7, (family, losses)
        ours, theirs = load_file(d / (family + ".run/model/model.safetensors")), model.state_dict()
        assert set(ours) == set(theirs), set(ours) ^ set(theirs)
        worst = max((ours[name].double() - v).abs().max().item() for name, v in theirs.items())
        moved = max((begin[name] - v).abs().max().item() for name, v in theirs.items())
        assert moved > 1e-2 and worst < 2e-6, (family, worst, moved)
        published = AutoModelForSequenceClassification.from_pretrained(d / (family + ".run/model")).eval()
        probabilities = torch.softmax(published(**inputs).logits, 1)
        answers = json.loads(command.run("predict", d / (family + ".run"), d / "four.csv", "--format", "json", "--top", "2").stdout)
        off = max(abs(a["probability"] - probabilities[k][published.config.label2id[a["class"]]].item()) for k, row in enumerate(answers) for a in row["top"])
        assert off < 2e-6, (family, off)
        print(f"{family}: weights within {worst:.1e} of PyTorch's (moved by {moved:.1e}), probabilities within {off:.1e} of transformers")


def same_adapters(family, targets, without=()):
    from peft import PeftModel
    from transformers import AutoModelForSequenceClassification
    with tempfile.TemporaryDirectory() as kept:
        d = pathlib.Path(kept)
        case, c = setting(d, family, without)
        c["model"].update(lora_rank=4, lora_alpha=8, lora_targets=targets)
        c["train"] = {"steps": 20, "batch": 16, "lr": 0.01}
        case.trained(case.write(c, "made"))
        base = AutoModelForSequenceClassification.from_pretrained(d / "base", num_labels=2)
        adapted = PeftModel.from_pretrained(base, d / "made.run/adapter").eval()
        merged = AutoModelForSequenceClassification.from_pretrained(d / "made.run/model").eval()
        _, inputs = encoded(d / "made.run/model", family, d / "train.csv")
        off = (adapted(**inputs).logits - merged(**inputs).logits).abs().max().item()
        assert off < 2e-5, (family, off)
        print(f"{family}: logits of peft within {off:.1e} of the merged model's")


def main():
    for family in ("bert", "roberta", "distilbert"):
        same_steps(family)
    same_adapters("bert", ["query", "output.dense"])
    same_adapters("bert", ["query", "value"], without=("pooler",))
    same_adapters("roberta", ["query", "intermediate.dense"])
    same_adapters("distilbert", ["q_lin", "lin2"])


if __name__ == "__main__":
    python = os.environ.get("LIGHTCONE_PEFT", "")
    if not python:
        print("LIGHTCONE_PEFT names no python with torch, transformers and peft")
        sys.exit(77)
    if len(sys.argv) == 2:
        os.execv(python, [python, __file__, sys.argv[1], "again"])
    sys.argv = sys.argv[:2]
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
    import text_classifier_command_test as command
    main()
