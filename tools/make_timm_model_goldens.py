#!/usr/bin/env python3
"""Writes tests/goldens/timm_models.json: what timm computes in f64 of small models whose weights are a formula.

    python3 tools/make_timm_model_goldens.py          needs torch, timm, transformers and safetensors

Cases are as those of make_picture_model_goldens.py; config.json is as timm saves it."""
import json
import pathlib

import torch
from make_picture_model_goldens import adds_one, formula, pixels, rounded
from timm.models import convnext, deit, swin_transformer, vision_transformer

ROOT = pathlib.Path(__file__).resolve().parent.parent
VIT = dict(img_size=16, patch_size=8, embed_dim=128, depth=2, num_heads=2, mlp_ratio=0.25, num_classes=3)
CASES = [
    ("vit_tiny_patch8_16.test", vision_transformer.VisionTransformer, VIT, 16),
    ("vit_tiny_patch8_16.plain", vision_transformer.VisionTransformer, dict(VIT, qkv_bias=False, num_classes=0), 16),
    ("deit_tiny_distilled_patch8_16", deit.VisionTransformerDistilled, VIT, 16),
    ("convnext_pico", convnext.ConvNeXt, dict(depths=(1, 2, 1, 1), dims=(4, 8, 8, 12), num_classes=3), 32),
    ("convnextv2_pico", convnext.ConvNeXt, dict(depths=(1, 1, 1, 1), dims=(4, 8, 8, 12), num_classes=3, use_grn=True, ls_init_value=None, conv_mlp=True), 32),
    ("swin_tiny_patch4_window4_32", swin_transformer.SwinTransformer,
     dict(img_size=32, window_size=4, embed_dim=8, depths=(2, 2), num_heads=(1, 2), mlp_ratio=1.5, num_classes=3), 32),
]


def case(name, kind, settings, side):
    model = kind(**settings)
    names = sorted(model.state_dict())
    model.load_state_dict({n: torch.tensor(formula(i, model.state_dict()[n].shape, adds_one(n))) for i, n in enumerate(names)})
    model = model.double().eval()
    classes = settings["num_classes"]
    config = {"architecture": name, "num_classes": classes, "num_features": model.num_features, "global_pool": "avg" if "swin" in name or "next" in name else "token",
              "pretrained_cfg": {"tag": "test", "input_size": [3, side, side], "mean": [0.5] * 3}}
    with torch.no_grad():
        if classes:
            outputs = {"logits": model(pixels(side, side))}
        else:
            outputs = {"hidden": model.forward_features(pixels(side, side))}
    return {"config": config, "tensors": [[n, list(model.state_dict()[n].shape)] for n in names], "size": [side, side],
            "outputs": {k: rounded(v) for k, v in outputs.items()}}


if __name__ == "__main__":
    text = "[\n" + ",\n".join(json.dumps(case(*c), separators=(",", ":")) for c in CASES) + "\n]\n"
    (ROOT / "tests/goldens/timm_models.json").write_text(text)
