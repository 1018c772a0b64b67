"""A model's folder as transformers and diffusers open it."""
import json
import pathlib

import torch

import data

# The result of each class that a row asks for.
RESULTS = {"hidden": "last_hidden_state", "encoder_hidden": "last_hidden_state", "logits": "logits", "prediction": "sample"}


def open_model(path):
    config = json.loads((pathlib.Path(path) / "config.json").read_text())
    if "_class_name" in config:
        import diffusers

        return getattr(diffusers, config["_class_name"]).from_pretrained(path)
    import transformers

    return getattr(transformers, config["architectures"][0]).from_pretrained(path)


def values_of(given):
    """An input, as bench/runner/onnx.cpp has it."""
    if given.get("dtype", "f32") == "f32":
        return torch.from_numpy(data.inputs(given["name"], given["shape"]))
    if "below" in given:
        return torch.from_numpy(data.classes(given["name"], given["shape"], given["below"]).astype("int64"))
    return torch.full(given["shape"], given.get("value", 0), dtype=torch.long)


def build(w):
    model = open_model(w["path"]).eval()
    narrow = w.get("dtype") == "bf16"
    model = model.to(torch.bfloat16) if narrow else model
    if w["answer"] == "encoder_hidden":
        model = model.get_encoder()
    inputs = {i["name"]: values_of(i) for i in w["inputs"]}
    if narrow:
        inputs = {k: v.to(torch.bfloat16) if v.is_floating_point() else v for k, v in inputs.items()}
    result = RESULTS[w["answer"]]
    return model, lambda net: net(**inputs, return_dict=True)[result]
