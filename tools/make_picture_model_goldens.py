#!/usr/bin/env python3
"""Writes tests/goldens/picture_models.json: what transformers computes in f64 of small models of pictures whose weights are a formula.

    python3 tools/make_picture_model_goldens.py          needs torch, transformers and safetensors

A case has config.json, the names and shapes of the weights as transformers saves them, in the order of the file, and the outputs.
Element k of weight i is 0.4 sin(1.3 i + 0.7 k + 0.1), and 1 more in the weight of a norm and in a variance. Element k of the picture
is ((5 k) mod 17 - 8) / 8; ids of texts stand in the file.

tests/goldens/prompted_models.json has models that take points or texts beside pictures, with these inputs.
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
THREE = dict(hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12, image_size=16, patch_size=8)
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
    ("SwinModel", dict(SWIN, window_size=3), (45, 54), ["last_hidden_state"]),
    ("SwinForImageClassification", dict(SWIN, use_absolute_embeddings=True), None, ["logits"]),
    ("DINOv3ViTModel", dict(THREE, num_register_tokens=2), (24, 16), ["last_hidden_state", "pooler_output"]),
    ("DINOv3ViTModel", dict(THREE, use_gated_mlp=True, key_bias=True, mlp_bias=False, hidden_act="silu", rope_theta=10.0), None,
     ["last_hidden_state"]),
    ("DINOv3ConvNextModel", {k: v for k, v in NEXT.items() if k != "num_labels" and k != "num_stages"}, (32, 24), ["last_hidden_state"]),
]
# Further inputs of cases, and which inputs load_model() is asked for.
POINTS = dict(input_points=[[[[3, 5.5], [20, 9]], [[30, 1], [7, 7]]]], input_labels=[[[1, 0], [1, -10]]])
BOXES = dict(input_boxes=[[[2, 3, 17, 30], [0, 8.5, 31, 12]]])
SAM = dict(vision_config=dict(hidden_size=8, num_hidden_layers=2, num_attention_heads=2, image_size=32, patch_size=8, window_size=3,
                              global_attn_indexes=[1], output_channels=16, num_pos_feats=8, mlp_ratio=2.0),
           prompt_encoder_config=dict(hidden_size=16, image_size=32, patch_size=8, mask_input_channels=4),
           mask_decoder_config=dict(hidden_size=16, mlp_dim=24, num_attention_heads=2, iou_head_hidden_dim=12))
LLAMA = dict(model_type="llama", vocab_size=19, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
             intermediate_size=12, max_position_embeddings=16)
PROMPTED = [
    ("SamModel", SAM, POINTS, ["input_points"], ["pred_masks", "iou_scores", "single_mask", "single_score"]),
    ("SamModel", dict(SAM, vision_config=dict(SAM["vision_config"], use_rel_pos=False, qkv_bias=False, use_abs_pos=False)),
     dict(POINTS, **BOXES, input_masks="formula"), ["input_points", "input_boxes", "input_masks"], ["pred_masks", "iou_scores"]),
    ("SamModel", SAM, BOXES, ["input_boxes"], ["iou_scores"]),
    ("LlavaForConditionalGeneration", dict(
        vision_config=dict(PICTURE, model_type="clip_vision_model", num_hidden_layers=2), text_config=LLAMA, image_token_id=18,
        vision_feature_layer=[-2, 0], projector_hidden_act="gelu"),
     dict(input_ids=[[1, 18, 18, 18, 18, 7], [3, 5, 9, 2, 11, 4]], attention_mask=[[1] * 6] * 2), None, ["logits"]),
    ("LlavaForConditionalGeneration", dict(
        vision_config=dict(PICTURE, model_type="siglip_vision_model", num_hidden_layers=2), text_config=dict(LLAMA, model_type="qwen2"),
        image_token_id=18, vision_feature_layer=-2, vision_feature_select_strategy="full", multimodal_projector_bias=False),
     dict(input_ids=[[1, 18, 18, 18, 18, 7]], attention_mask=[[1] * 6]), None, ["logits"]),
]
OURS = {"last_hidden_state": "hidden", "pooler_output": "pooled"}
EVERYWHERE = transformers.PretrainedConfig().to_dict()  # its keys say nothing where they are false
IDS = [[0, 5, 9, 2, 1, 1], [0, 7, 3, 11, 4, 2]]


def formula(i, shape, one):
    k = np.arange(int(np.prod(shape)), dtype=np.float64)
    return (0.4 * np.sin(1.3 * i + 0.7 * k + 0.1) + (1 if one else 0)).astype(np.float32).reshape(shape)


def adds_one(name):
    return name.endswith("running_var") or (name.endswith("weight") and ("LayerNorm" in name or "layer_norm" in name))


def opened(name, settings):
    """The model with weights by the formula, its config.json, and the names and shapes of its weights."""
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
    written = {k: v for k, v in written.items() if v not in (None, {}, []) and not (v is False and k in EVERYWHERE)}
    return model, config, written, [[n, list(stored[n].shape)] for n in names]


def pixels(*size):
    k = torch.arange(3 * size[0] * size[1], dtype=torch.float64)
    return (((5 * k) % 17 - 8) / 8).reshape(1, 3, *size)


def rounded(x):
    return [float("%.9g" % v) for v in x.flatten().tolist()]


def prompted(name, settings, more, inputs, wanted):
    """A case of a model that takes more than pictures."""
    model, config, written, tensors = opened(name, settings)
    side = config.vision_config.image_size
    given = {key: torch.arange(16 * 16, dtype=torch.float64).reshape(1, 1, 16, 16).sin() if v == "formula" else torch.tensor(v)
             for key, v in more.items()}
    given = {key: v.double() if key in ("input_points", "input_boxes") else v for key, v in given.items()}
    with torch.no_grad():
        out = dict(model(pixel_values=pixels(side, side), **given))
        if "single_mask" in wanted:
            one = model(pixel_values=pixels(side, side), multimask_output=False, **given)
            out.update(single_mask=one["pred_masks"], single_score=one["iou_scores"])
    return {"config": written, "tensors": tensors, "size": [side, side], "inputs": inputs,
            "given": {key: {"shape": list(v.shape), "values": rounded(v)} for key, v in given.items()},
            "outputs": {key: rounded(out[key]) for key in wanted}}


def case(name, settings, size, wanted):
    model, config, written, tensors = opened(name, settings)
    given = {}
    if size is None:
        size = getattr(config, "vision_config", config).image_size
        size = (size, size)
    given["pixel_values"] = pixels(*size)
    texts = hasattr(config, "text_config") and "ForImage" not in name
    if texts:
        given.update(input_ids=torch.tensor(IDS), attention_mask=torch.ones(2, 6, dtype=torch.int64))
    if getattr(config, "image_size", size[0]) != size[0] and ("ViT" in name):
        given["interpolate_pos_encoding"] = True
    with torch.no_grad():
        out = model(**given)
    return {"config": written, "tensors": tensors, "size": list(size), "ids": IDS if texts else [],
            "outputs": {OURS.get(key, key): rounded(getattr(out, key)) for key in wanted}}


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
    cases = [prompted(*c) for c in PROMPTED]
    text = "[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n"
    (ROOT / "tests/goldens/prompted_models.json").write_text(text)
