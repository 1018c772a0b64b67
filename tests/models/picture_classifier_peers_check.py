#!/usr/bin/env python3
"""Classifiers of pictures that `lightcone train` continues take the same steps as in PyTorch, and their folders and
adapters say the same in transformers and peft as in `lightcone predict`.

    picture_classifier_peers_check.py LIGHTCONE SOURCE_DIRECTORY

LIGHTCONE_PEFT names a python that has torch, transformers, Pillow and, for the adapters, peft; without it the check is
skipped."""
import json
import os
import pathlib
import sys
import tempfile


def pixels(folder, files):
    import numpy as np
    import torch
    from PIL import Image
    said = json.loads((folder / "preprocessor_config.json").read_text())
    size = (said["size"]["width"], said["size"]["height"])
    all = [np.asarray(Image.open(f).convert("RGB").resize(size, Image.BILINEAR)) for f in files]
    x = (np.stack(all).astype(np.float64) / 255 - said["image_mean"]) / said["image_std"]
    return torch.tensor(x.transpose(0, 3, 1, 2))


def same_steps(family):
    """All pictures are one batch, so that each step is the gradient of the same loss. Batch norms keep their statistics."""
    import torch
    from transformers import AutoModelForImageClassification
    with tempfile.TemporaryDirectory() as kept:
        case = command.PictureClassifier()
        case.d = d = pathlib.Path(kept)
        case.trained(case.formula(family))
        model = AutoModelForImageClassification.from_pretrained(d / family).double().eval()
        files = sorted((d / ("six of " + family)).rglob("*.png"))
        x, wanted = pixels(d / family, files), torch.tensor([int(f.parent.name) for f in files])
        optimizer = torch.optim.SGD(model.parameters(), lr=command.RATE)
        losses = []
        for _ in range(command.STEPS):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x).logits, wanted)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print("    %r: %r," % (family, losses))
        ours = case.losses(family)
        assert len(ours) == len(losses) and all(abs(a - b) < 1e-5 * max(1, b) for a, b in zip(losses, ours)), (family, losses, ours)
        written = command.LOSSES.get(family, [])
        assert len(written) == len(losses) and max(abs(a - b) for a, b in zip(losses, written)) < 1e-7, (family, losses)


def same_folder(family, lora):
    """The folder model/, or the adapters on the folder that training began from, answer as `lightcone predict` does."""
    import torch
    from transformers import AutoModelForImageClassification
    with tempfile.TemporaryDirectory() as kept:
        case = command.PictureClassifier()
        case.d = d = pathlib.Path(kept)
        case.pictures(each=6)
        command.write_model(d / "base", family, bare=True)
        case.trained(case.write(case.config(6, {"lora_rank": 2} if lora else {})))
        r = command.run("predict", d / "c.run", d / "train", "--format", "json", "--top", "3")
        said = json.loads(r.stdout)
        model = AutoModelForImageClassification.from_pretrained(d / "c.run/model").eval()
        if lora:
            from peft import PeftModel
            plain = AutoModelForImageClassification.from_pretrained(d / "base", num_labels=3)
            model = PeftModel.from_pretrained(plain, d / "c.run/adapter").eval()
        with torch.no_grad():
            theirs = model(pixel_values=pixels(d / "base", [a["input"] for a in said]).float()).logits.softmax(1)
        for a, p in zip(said, theirs):
            ours = {t["class"]: t["probability"] for t in a["top"]}
            for k, name in enumerate(("blue", "green", "red")):
                assert abs(ours[name] - p[k].item()) < 1e-4, (family, lora, ours, p)


if __name__ == "__main__":
    peer = os.environ.get("LIGHTCONE_PEFT", "")
    if not peer:
        print("LIGHTCONE_PEFT names no python: skipped")
        sys.exit(77)
    if os.environ.get("LIGHTCONE_PEFT_RUNS") != "1":
        os.environ["LIGHTCONE_PEFT_RUNS"] = "1"
        os.execv(peer, [peer, *sys.argv])
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
    import picture_classifier_command_test as command
    for name in command.FAMILIES:
        same_steps(name)
        same_folder(name, lora=False)
    try:
        import peft  # noqa: F401
    except ImportError:
        print("no peft: adapters are not compared")
    else:
        same_folder("convnext", lora=True)  # transformers 5 has other names for ViT's layers than its files
