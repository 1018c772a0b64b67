"""Writes the folders of bench/compare's rows model-*: config.json and weights as transformers and diffusers publish
them, and beside them the same model as ONNX, exported by PyTorch.

    hf_models.py FOLDER [NAME ...]

Weights are random (a seed); the numbers of a network do not change its speed. YOLOv9t's are those of the file that $LIGHTCONE_YOLOV9T names, a
checkpoint of Ultralytics, whose licence is the AGPL; without it there is no such folder, and its row is missing.
"""
import os
import pathlib
import sys

import torch

folder = pathlib.Path(sys.argv[1])


def export(model, target, example, names, output, dynamic=None):
    with torch.no_grad():
        torch.onnx.export(model, example, str(target / "model.onnx"), input_names=names, output_names=[output],
                          dynamic_shapes=dynamic, external_data=True, dynamo=True)


class Part(torch.nn.Module):
    """Calls a model with named inputs and gives one of its results."""

    def __init__(self, model, names, result):
        super().__init__()
        self.model, self.names, self.result = model, names, result
        self.eval()

    def forward(self, *inputs):
        return self.model(**dict(zip(self.names, inputs)), return_dict=True)[self.result]


def bert(target):
    from transformers import BertConfig, BertModel

    model = BertModel(BertConfig(), add_pooling_layer=False).eval()
    model.save_pretrained(target)
    names = ["input_ids", "attention_mask", "token_type_ids"]
    ids = torch.zeros(2, 16, dtype=torch.long)
    axes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("sequence", max=512)}
    export(Part(model, names, "last_hidden_state"), target, (ids, ids + 1, ids.clone()), names, "hidden", ((axes, axes, axes),))


def vit(target):
    from transformers import ViTConfig, ViTForImageClassification

    model = ViTForImageClassification(ViTConfig(num_labels=1000)).eval()
    model.save_pretrained(target)
    export(Part(model, ["pixel_values"], "logits"), target, (torch.zeros(1, 3, 224, 224),), ["pixel_values"], "logits")


def whisper(size):
    width, heads, layers = {"tiny": (384, 6, 4), "base": (512, 8, 6)}[size]

    def make(target):
        from transformers import WhisperConfig, WhisperForConditionalGeneration

        config = WhisperConfig(d_model=width, encoder_attention_heads=heads, decoder_attention_heads=heads, encoder_layers=layers,
                               decoder_layers=layers, encoder_ffn_dim=4 * width, decoder_ffn_dim=4 * width)
        model = WhisperForConditionalGeneration(config).eval()
        model.save_pretrained(target)
        encoder = Part(model.model.encoder, ["input_features"], "last_hidden_state")
        export(encoder, target, (torch.zeros(1, 80, 3000),), ["input_features"], "encoder_hidden")

    return make


def unet_model():
    """A UNet of the size of Stable Diffusion 1.5's."""
    from diffusers import UNet2DConditionModel

    return UNet2DConditionModel(sample_size=64, cross_attention_dim=768, attention_head_dim=8).eval()


def unet_bf16(target):  # ONNX Runtime has no bf16 kernels for CPUs: there is no export
    unet_model().to(torch.bfloat16).save_pretrained(target)


def unet(target):
    model = unet_model()
    model.save_pretrained(target)
    names = ["sample", "timestep", "encoder_hidden_states"]
    example = (torch.zeros(1, 4, 64, 64), torch.zeros(1), torch.zeros(1, 77, 768))
    export(Part(model, names, "sample"), target, example, names, "prediction")


class Boxes(torch.nn.Module):
    """A detector of Ultralytics with the results that load_model() gives: corners of boxes, and scores, each in rows."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        self.eval()

    def forward(self, pixel_values):
        y = self.model(pixel_values)
        y = (y[0] if isinstance(y, (list, tuple)) else y).transpose(1, 2)
        middle, half = y[..., :2], y[..., 2:4] / 2
        return torch.cat([middle - half, middle + half], -1), y[..., 4:]


def yolov9t(target):
    from ultralytics import YOLO

    weights = os.environ.get("LIGHTCONE_YOLOV9T")
    if not weights:
        raise RuntimeError("LIGHTCONE_YOLOV9T names no checkpoint")
    model = Boxes(YOLO(weights).model.float())
    example = torch.zeros(1, 3, 640, 640)
    with torch.no_grad():
        model(example)  # it makes the anchors of this size
        torch.onnx.export(model, (example,), str(target / "model.onnx"), input_names=["pixel_values"], output_names=["boxes", "scores"], dynamo=True)
    (target / "model.pt").symlink_to(pathlib.Path(weights).resolve())


MODELS = {"bert-base": bert, "vit-b-16": vit, "whisper-tiny": whisper("tiny"), "whisper-base": whisper("base"), "sd-unet": unet,
          "sd-unet-bf16": unet_bf16, "yolov9t": yolov9t}


def main():
    bad = []
    for name in sys.argv[2:] or MODELS:
        target = folder / name
        if (target / "model.onnx").exists() or (target / "diffusion_pytorch_model.safetensors").exists() and name.endswith("bf16"):
            continue
        target.mkdir(parents=True, exist_ok=True)
        torch.manual_seed(0)
        try:
            MODELS[name](target)
            print(name, "ready")
        except Exception as e:  # the others are made anyway
            bad.append(name)
            print("%s: error: %s" % (name, " ".join(str(e).split())[:300]))
    return bool(bad)


sys.exit(main())
