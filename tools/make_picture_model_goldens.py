#!/usr/bin/env python3
"""Writes tests/goldens/picture_models.json: what transformers computes in f64 of small models of pictures whose weights are a formula.

    python3 tools/make_picture_model_goldens.py          needs torch, transformers and safetensors

A case has config.json, the names and shapes of the weights as transformers saves them, in the order of the file, and the outputs.
Element k of weight i is 0.4 sin(1.3 i + 0.7 k + 0.1), and 1 more in the weight of a norm and in a variance. Element k of the picture
is ((5 k) mod 17 - 8) / 8; ids of texts stand in the file.

tests/goldens/image_processors.json has what the image processors that use Pillow make of one picture."""
import json
import pathlib
import tempfile

import numpy as np
import torch
import transformers
from safetensors.numpy import load_file, save_file

ROOT = pathlib.Path(__file__).resolve().parent.parent
VIT = dict(hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12, image_size=16, patch_size=8, num_labels=3)
DINO = dict(hidden_size=8, num_hidden_layers=2, num_attention_heads=2, image_size=14, patch_size=7, num_labels=3)
STAGES = dict(embedding_size=4, hidden_sizes=[4, 8], depths=[1, 2], num_labels=3)
NEXT = dict(hidden_sizes=[4, 8], depths=[1, 1], num_stages=2, num_labels=3, image_size=16)
TEXT = dict(vocab_size=19, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=12, max_position_embeddings=6,
            bos_token_id=0, eos_token_id=2, pad_token_id=1)
PICTURE = dict(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=12, image_size=16, patch_size=8)
EFFICIENT = dict(image_size=32, width_coefficient=0.25, depth_coefficient=1.0, depth_divisor=4, kernel_sizes=[3, 5], in_channels=[32, 16],
                 out_channels=[16, 24], strides=[1, 2], num_block_repeats=[1, 2], expand_ratios=[1, 3], depthwise_padding=[],
                 squeeze_expansion_ratio=0.25, hidden_dim=320, num_labels=3)
SEGMENTS = dict(hidden_sizes=[4, 8], num_encoder_blocks=2, depths=[1, 1], num_attention_heads=[1, 2], sr_ratios=[2, 1],
                patch_sizes=[7, 3], strides=[4, 2], mlp_ratios=[2, 2], decoder_hidden_size=6, num_labels=3)
SWIN = dict(image_size=32, patch_size=4, embed_dim=4, depths=[2, 2], num_heads=[1, 2], window_size=2, mlp_ratio=2.0, num_labels=3)


def detr():
    backbone = transformers.ResNetConfig(embedding_size=4, hidden_sizes=[4, 8], depths=[1, 1], layer_type="bottleneck")
    return transformers.DetrConfig(use_timm_backbone=False, backbone_config=backbone, backbone=None, use_pretrained_backbone=False, d_model=8,
                                   encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=12,
                                   decoder_ffn_dim=12, num_queries=3, num_labels=2)


# The class, its configuration, the size of the picture if it is another than the model's, and what of the result is wanted.
CASES = [
    ("ViTForImageClassification", dict(VIT, qkv_bias=False, hidden_act="gelu_new"), None, ["logits"]),
    ("ViTModel", VIT, (24, 16), ["last_hidden_state", "pooler_output"]),
    ("DeiTForImageClassificationWithTeacher", VIT, None, ["logits", "cls_logits", "distillation_logits"]),
    ("Dinov2ForImageClassification", dict(DINO, use_swiglu_ffn=True), None, ["logits"]),
    ("Dinov2Model", DINO, (21, 14), ["last_hidden_state", "pooler_output"]),
    ("Dinov2WithRegistersForImageClassification", dict(DINO, num_register_tokens=3), None, ["logits"]),
    ("CLIPModel", dict(text_config=TEXT, vision_config=PICTURE, projection_dim=6), None, ["logits_per_image", "text_embeds", "image_embeds"]),
    ("CLIPVisionModelWithProjection", dict(PICTURE, projection_dim=6), None, ["image_embeds"]),
    ("SiglipModel", dict(text_config=TEXT, vision_config=PICTURE), None, ["logits_per_image", "text_embeds", "image_embeds"]),
    ("SiglipForImageClassification", dict(vision_config=PICTURE, text_config=TEXT, num_labels=3), None, ["logits"]),
    ("ConvNextForImageClassification", NEXT, None, ["logits"]),
    ("ConvNextV2Model", {k: v for k, v in NEXT.items() if k != "num_labels"}, None, ["last_hidden_state", "pooler_output"]),
    ("ResNetForImageClassification", dict(STAGES, layer_type="basic"), (32, 48), ["logits"]),
    ("ResNetModel", dict(STAGES, layer_type="bottleneck", downsample_in_bottleneck=True), (32, 48), ["last_hidden_state"]),
    ("RegNetForImageClassification", dict(STAGES, layer_type="x", groups_width=4), (32, 48), ["logits"]),
    ("EfficientNetForImageClassification", EFFICIENT, None, ["logits"]),
    ("SegformerForSemanticSegmentation", SEGMENTS, (32, 48), ["logits"]),
    ("SegformerForImageClassification", SEGMENTS, (32, 48), ["logits"]),
    ("SwinForImageClassification", SWIN, None, ["logits"]),
    ("SwinModel", dict(SWIN, qkv_bias=False), (32, 48), ["last_hidden_state", "pooler_output"]),
    ("DetrForObjectDetection", detr(), (32, 48), ["logits", "pred_boxes"]),
]
OURS = {"last_hidden_state": "hidden", "pooler_output": "pooled"}
IDS = [[0, 5, 9, 2, 1, 1], [0, 7, 3, 11, 4, 2]]


def formula(i, shape, one):
    k = np.arange(int(np.prod(shape)), dtype=np.float64)
    return (0.4 * np.sin(1.3 * i + 0.7 * k + 0.1) + (1 if one else 0)).astype(np.float32).reshape(shape)


def adds_one(name):
    return name.endswith("running_var") or (name.endswith("weight") and ("LayerNorm" in name or "layer_norm" in name))


def case(name, settings, size, wanted):
    kind = getattr(transformers, name)
    config = settings if not isinstance(settings, dict) else kind.config_class(**settings)
    with tempfile.TemporaryDirectory() as folder:
        kind(config).save_pretrained(folder)
        file = pathlib.Path(folder, "model.safetensors")
        stored = {n: v for n, v in load_file(file).items() if v.dtype == np.float32}
        names = sorted(stored)
        save_file({n: formula(i, stored[n].shape, adds_one(n)) for i, n in enumerate(names)}, file, metadata={"format": "pt"})
        written = json.loads(pathlib.Path(folder, "config.json").read_text())
        model = kind.from_pretrained(folder, attn_implementation="eager").double().eval()
    given = {}
    if size is None:
        size = getattr(config, "vision_config", config).image_size
        size = (size, size)
    k = torch.arange(3 * size[0] * size[1], dtype=torch.float64)
    given["pixel_values"] = (((5 * k) % 17 - 8) / 8).reshape(1, 3, *size)
    texts = hasattr(config, "text_config") and "ForImage" not in name
    if texts:
        given.update(input_ids=torch.tensor(IDS), attention_mask=torch.ones(2, 6, dtype=torch.int64))
    if getattr(config, "image_size", size[0]) != size[0] and ("ViT" in name):
        given["interpolate_pos_encoding"] = True
    with torch.no_grad():
        out = model(**given)
    kept = {OURS.get(key, key): [float("%.9g" % v) for v in getattr(out, key).flatten().tolist()] for key in wanted}
    written = {k: v for k, v in written.items() if v not in (None, {}, [], False) or k.startswith("qkv")}
    return {"config": written, "tensors": [[n, list(stored[n].shape)] for n in names], "size": list(size), "ids": IDS if texts else [],
            "outputs": kept}


# Image processors, and their settings; the picture is 37 x 53.
MEAN, STD = [0.48, 0.45, 0.4], [0.26, 0.25, 0.27]
PROCESSORS = [
    ("CLIPImageProcessor", dict(size={"shortest_edge": 9}, crop_size={"height": 8, "width": 8}, image_mean=MEAN, image_std=STD)),
    ("CLIPImageProcessor", dict(size={"shortest_edge": 6}, crop_size={"height": 8, "width": 11}, image_mean=MEAN, image_std=STD)),
    ("ViTImageProcessor", dict(size={"height": 8, "width": 6}, image_mean=[0.5] * 3, image_std=[0.5] * 3)),
    ("ViTImageProcessor", dict(size={"height": 45, "width": 60}, resample=3, do_normalize=False, do_rescale=False)),
    ("ViTImageProcessor", dict(size={"height": 9, "width": 8}, resample=0, do_normalize=False)),
    ("ConvNextImageProcessor", dict(size={"shortest_edge": 8}, crop_pct=0.8, image_mean=MEAN, image_std=STD)),
    ("BitImageProcessor", dict(size={"shortest_edge": 10}, crop_size={"height": 7, "width": 7}, image_mean=MEAN, image_std=STD)),
    ("DetrImageProcessor", dict(size={"shortest_edge": 8, "longest_edge": 10}, image_mean=MEAN, image_std=STD)),
    ("DetrImageProcessor", dict(size={"shortest_edge": 8, "longest_edge": 100}, image_mean=MEAN, image_std=STD)),
]


def picture():
    y, x, c = np.meshgrid(np.arange(37), np.arange(53), np.arange(3), indexing="ij")
    return ((7 * y + 13 * x + 29 * c + x * y % 11 * 9) % 256).astype(np.uint8)


def processed(name, settings):
    made = getattr(transformers, name + "Pil")(**settings)
    out = np.asarray(made(picture(), return_tensors="np")["pixel_values"])[0]
    return {"config": dict(settings, image_processor_type=name), "shape": list(out.shape), "pixels": [float("%.6g" % v) for v in out.flatten()]}


if __name__ == "__main__":
    cases = [processed(*p) for p in PROCESSORS]
    text = "[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n"
    (ROOT / "tests/goldens/image_processors.json").write_text(text)
    cases = [case(*c) for c in CASES]
    text = "[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n"
    (ROOT / "tests/goldens/picture_models.json").write_text(text)
