#!/usr/bin/env python3
"""Writes tests/goldens/vision.txt: torchvision's VGG and ResNet, their state_dicts and how small ones compute and learn.

    python3 tools/make_vision_goldens.py                  # made with PyTorch 2.15 and torchvision 0.29
    python3 tools/make_vision_goldens.py --full FOLDER    # instead: networks of full size with random weights, for
                                                          # LIGHTCONE_VISION=FOLDER build/bin/vgg_test (or resnet_test)
Lines of a kind:
    names MODEL COUNT HASH        how many tensors its state_dict has, and the FNV-1a of the lines "NAME [SHAPE]"
    model MODEL                   what follows are its tensors:
    tensor NAME [SHAPE] FIRST     FIRST: how torchvision began it: uniform LOW HIGH, normal MEAN STD, fill VALUE
    net NAME                      what follows is of a network with an eighth of the width and ten classes:
    eval, train VALUES            logits in evaluation and in training
    grad NAME MAX NORM DOT VALUES a gradient of the first step: its largest magnitude, its norm, its product with c, as in
                                  make_goldens.py, and elements (2654435761 k) mod n, for k from 0 to 15
    loss VALUES                   before each of 20 steps of SGD, and
    after VALUES                  logits in evaluation after them
    picture VALUES                what the preset ImageClassification makes of a picture of 37 x 53 (resize 32, crop 24)
Weights and pictures are a formula (number), which tests/support/vision.h has as well; torch computes in f64.
"""
import os
import sys

import numpy
import torch
import torchvision
from torch import nn
from torchvision.models import resnet, vgg

MODELS = [name + end for name in ("vgg11", "vgg13", "vgg16", "vgg19") for end in ("", "_bn")]
MODELS += ["resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "resnext50_32x4d", "resnext101_32x8d", "resnext101_64x4d"]
MODELS += ["wide_resnet50_2", "wide_resnet101_2"]
BATCH, SIZE, CLASSES = 6, 64, 10
out = []


def number(seed, n):
    """n numbers in [0, 1): multiples of 2^-24."""
    h = (numpy.arange(n, dtype=numpy.uint64) + numpy.uint64(seed * 1000003 + 1)) * numpy.uint64(2654435761) & numpy.uint64(0xFFFFFFFF)
    h ^= h >> numpy.uint64(15)
    h = h * numpy.uint64(2246822519) & numpy.uint64(0xFFFFFFFF)
    h ^= h >> numpy.uint64(13)
    return (h >> numpy.uint64(8)).astype(numpy.float64) / 2**24


def value(seed, name, shape):
    u = number(seed, int(numpy.prod(shape)))
    if len(shape) > 1:
        u = (2 * u - 1) * numpy.sqrt(6 / numpy.prod(shape[1:]))
    elif name.endswith("bn3.weight"):  # with large ones the rounding of f32 would be seen after a few steps
        u = (u + 0.5) / 4
    elif name.endswith("running_var") or name.endswith("weight"):
        u = u + 0.5
    else:
        u = (2 * u - 1) * 0.125
    return torch.from_numpy(u.astype(numpy.float32).reshape(shape))


def weights(net):
    return {n: value(k, n, tuple(t.shape)) if t.dim() else t for k, (n, t) in enumerate(net.state_dict().items())}


def line(kind, *values):
    out.append(" ".join([kind] + [v if isinstance(v, str) else "%.9g" % v for v in values]))


def names(name):
    with torch.device("meta"):
        net = torchvision.models.get_model(name, weights=None)
    tensors = ["%s [%s]" % (n, " ".join(map(str, t.shape))) for n, t in net.state_dict().items()]
    h = 0xCBF29CE484222325
    for byte in "".join(t + "\n" for t in tensors).encode():
        h = (h ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    line("names", name, str(len(tensors)), "%016x" % h)


def remember_first(method):
    """Tensors remember what torch.nn.init called on them last."""
    call = getattr(torch.Tensor, method + "_")

    def remembering(self, *args, **named):
        self.first = "fill 0" if method == "zero" else " ".join([method] + ["%.10g" % a for a in args if isinstance(a, (int, float))])
        return call(self, *args, **named)

    setattr(torch.Tensor, method + "_", remembering)


def firsts(name, **options):
    net = getattr(torchvision.models, name)(weights=None, **options)
    line("model", name)
    for n, t in net.state_dict(keep_vars=True).items():
        line("tensor", n, "[%s]" % " ".join(map(str, t.shape)), t.first)


class SmallResNet(resnet.ResNet):
    """torchvision's with an eighth of the width."""

    def _make_layer(self, block, planes, *args, **named):
        if planes == 64:
            self.inplanes = 8
            self.conv1, self.bn1 = nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8)
        return super()._make_layer(block, planes // 8, *args, **named)

    def __init__(self, block, layers, **named):
        super().__init__(block, layers, **named)
        self.fc = nn.Linear(64 * block.expansion, CLASSES)


def small_vgg(cfg, batch_norm):
    features = vgg.make_layers([w if w == "M" else w // 8 for w in vgg.cfgs[cfg]], batch_norm)
    net = vgg.VGG(features, CLASSES, False, dropout=0)
    for k, (i, o) in {0: (64 * 49, 512), 3: (512, 512), 6: (512, CLASSES)}.items():
        net.classifier[k] = nn.Linear(i, o)
    return net


def pictures(n, size):
    return torch.from_numpy(((2 * number(1000, n * 3 * size * size) - 1) * 1.75).astype(numpy.float32).reshape(n, 3, size, size))


def labels(n, classes):
    return (torch.arange(n) * 7 + 3) % classes


def gradient(name, g):
    g = g.flatten()
    c = ((torch.arange(g.numel(), dtype=g.dtype) * 7 + 3) % 11 - 5) / 4
    at = [2654435761 * k % g.numel() for k in range(16)]
    line("grad", name, g.abs().max().item(), g.norm().item(), (g * c).sum().item(), *g[at].tolist())


def learns(name, net, lr):
    net.load_state_dict(weights(net))
    net = net.double()
    x, y = pictures(BATCH, SIZE).double(), labels(BATCH, CLASSES)
    line("net", name)
    line("eval", *net.eval()(x).flatten().tolist())
    net.train()
    sgd = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9, weight_decay=5e-4)
    losses = []
    for step in range(20):
        logits = net(x)
        loss = nn.functional.cross_entropy(logits, y)
        sgd.zero_grad()
        loss.backward()
        if step == 0:
            line("train", *logits.flatten().tolist())
            for n, p in net.named_parameters():
                gradient(n, p.grad)
        losses.append(loss.item())
        sgd.step()
    line("loss", *losses)
    line("after", *net.eval()(x).flatten().tolist())


def preset():
    from PIL import Image
    from torchvision.transforms._presets import ImageClassification

    pixels = (number(2000, 37 * 53 * 3) * 256).astype(numpy.uint8).reshape(37, 53, 3)
    line("picture", *ImageClassification(crop_size=24, resize_size=32)(Image.fromarray(pixels)).flatten().tolist())


def full(folder):
    """Logits, the loss and gradients of whole networks on two pictures, and how far off torch's gradients are in f32."""
    from safetensors.torch import save_file

    for name in ("vgg19", "resnet50"):
        net = torchvision.models.get_model(name, weights=None)
        for m in net.modules():
            if isinstance(m, nn.Dropout):
                m.p = 0
        begin = weights(net)
        save_file(begin, "%s/%s.safetensors" % (folder, name))
        results = {}
        for dtype in (torch.float32, torch.float64):
            net.load_state_dict(begin)
            net.to(dtype).zero_grad()
            x, y = pictures(2, 224).to(dtype), labels(2, 1000)
            found = {"eval": net.eval()(x).detach().clone()}
            loss = nn.functional.cross_entropy(net.train()(x), y)
            loss.backward()
            found["loss"] = loss.detach()
            found.update(("grad." + n, p.grad.detach().clone()) for n, p in net.named_parameters())
            results[dtype] = found
        f32, f64 = results[torch.float32], results[torch.float64]
        off = {n: ((f32[n] - t).norm() / t.norm()).item() for n, t in f64.items()}
        worst = max((n for n in off if n.startswith("grad.")), key=off.get)
        print("%s in f32: logits off by %.2g, gradients by at most %.2g of their norm (%s)" % (name, off["eval"], off[worst], worst))
        f64["off"] = torch.tensor(off[worst])
        save_file({n: t.float().contiguous() for n, t in f64.items()}, "%s/%s.results.safetensors" % (folder, name))


if sys.argv[1:2] == ["--full"]:
    full(sys.argv[2])
    sys.exit()
torch.manual_seed(1)
for name in MODELS:
    names(name)
learns("vgg11", small_vgg("A", False), 3e-5)
learns("vgg16_bn", small_vgg("D", True), 1e-5)
learns("resnet18", SmallResNet(resnet.BasicBlock, [2, 2, 2, 2]), 0.003)
learns("resnet50", SmallResNet(resnet.Bottleneck, [3, 4, 6, 3]), 3e-5)
learns("resnext50", SmallResNet(resnet.Bottleneck, [3, 4, 6, 3], groups=2, width_per_group=32), 3e-5)
preset()
for method in ("uniform", "normal", "fill", "zero"):
    remember_first(method)
firsts("vgg11_bn")
firsts("resnet18", zero_init_residual=True)
firsts("resnet50")
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "goldens", "vision.txt")
with open(path, "w") as f:
    f.write("\n".join(out) + "\n")
