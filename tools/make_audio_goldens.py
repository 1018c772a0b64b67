#!/usr/bin/env python3
"""Writes tests/goldens/audio.txt: what PyTorch (2.15) and torchaudio (2.11) answer for sound, in f64.

    python3 tools/make_audio_goldens.py > tests/goldens/audio.txt

A case is a name with its options, the inputs, the results and the gradients of sum(y * c) with respect to the inputs;
element k of c is ((7 k + 3) mod 11 - 5) / 4, as in make_vocabulary_goldens.py.
"""

import torch
import torchaudio.functional as F
import torchaudio.transforms as T

torch.set_default_dtype(torch.float64)
torch.manual_seed(3)


def signal(*shape):
    return torch.round(torch.randn(*shape) * 64) / 128


def line(kind, t):
    t = t.detach()
    print(kind, "f64", "[" + " ".join(map(str, t.shape)) + "]", *(repr(v) for v in t.reshape(-1).tolist()))


def case(name, inputs, f, slopes=True):
    print("case", name)
    inputs = [t.clone().requires_grad_(slopes) for t in inputs]
    out = f(*inputs)
    out = list(out) if isinstance(out, (list, tuple)) else [out]
    for t in inputs:
        line("in", t)
    for t in out:
        line("out", t)
    if not slopes:
        return
    total = 0
    for y in out:
        k = torch.arange(y.numel())
        total = total + (y * (((7 * k + 3) % 11 - 5) / 4).reshape(y.shape)).sum()
    for d in torch.autograd.grad(total, inputs):
        line("d", d)


def parts(z):
    return [z.real, z.imag]


for name in ("hann", "hamming", "blackman", "bartlett"):
    f = getattr(torch, name + "_window")
    case(
        f"window {name}", [signal(1)], lambda x: [f(n, periodic=p) for n in (1, 3, 9, 16) for p in (True, False)], False
    )

x = signal(2, 61)
w = torch.rand(12)
for mode in ("reflect", "constant", "replicate", "circular"):
    case(f"stft {mode}", [x, w], lambda x, w: parts(torch.stft(x, 16, 5, 12, w, pad_mode=mode, return_complex=True)))
case("stft plain", [x], lambda x: parts(torch.stft(x, 15, 4, center=False, window=torch.ones(15), return_complex=True)))
case(
    "stft both",
    [x, w],
    lambda x, w: parts(torch.stft(x, 12, 3, 12, w, normalized=True, onesided=False, return_complex=True)),
)
z = [signal(2, 9, 13), signal(2, 9, 13)]
w = torch.rand(16) + 0.25
case("istft", [*z, w], lambda a, b, w: torch.istft(torch.complex(a, b), 16, 4, 16, w))
case("istft short", [*z, w], lambda a, b, w: torch.istft(torch.complex(a, b), 16, 7, 16, w, length=50))
case("istft long", [*z, w], lambda a, b, w: torch.istft(torch.complex(a, b), 16, 4, 16, w, normalized=True, length=61))
case("istft edges", [*z, w], lambda a, b, w: torch.istft(torch.complex(a, b), 16, 5, 16, w, center=False))
z = [signal(2, 8, 13), signal(2, 8, 13)]
w = w[:8]
case("istft both", [*z, w], lambda a, b, w: torch.istft(torch.complex(a, b), 8, 2, 8, w, onesided=False))

for scale in ("htk", "slaney"):
    for norm in (None, "slaney"):
        case(
            f"filters {scale} {norm}",
            [signal(1)],
            lambda x: F.melscale_fbanks(33, 40.0, 7000.0, 10, 16000, norm, scale).T,
            False,
        )
x = signal(2, 300)
mel = dict(sample_rate=8000, n_fft=64, n_mels=12)
case("mel", [x], T.MelSpectrogram(**mel))
case("mel window", [x], T.MelSpectrogram(**mel, win_length=50, hop_length=20, power=1.0, normalized=True))
case("mel power", [x], T.MelSpectrogram(**mel, power=1.5, center=False))
case("db", [x[:, :40].reshape(2, 1, 5, 8).square()], lambda x: F.amplitude_to_DB(x, 10.0, 1e-10, 0.0, 20.0))
case("db plain", [x[:, :40].reshape(2, 5, 8).abs()], lambda x: F.amplitude_to_DB(x, 20.0, 1e-2, -0.5))
case("mfcc", [x], T.MFCC(8000, 6, melkwargs=dict(n_fft=64, n_mels=12)))
case("mfcc log", [x], T.MFCC(8000, 6, log_mels=True, melkwargs=dict(n_fft=64, n_mels=12)))
for norm in (None, "ortho"):
    case(f"dct {norm}", [signal(3, 7)], lambda x: x @ F.create_dct(7, 7, norm))
    case(f"idct {norm}", [signal(3, 7)], lambda x: x @ torch.linalg.inv(F.create_dct(7, 7, norm)))
for a, b in ((3, 2), (2, 3), (441, 160), (48000, 16000), (16000, 48000), (8000, 7900)):
    case(f"resample {a} {b}", [signal(2, 95)], lambda x: F.resample(x, a, b))
case("resample 5 4 sharp", [signal(50)], lambda x: F.resample(x, 5, 4, lowpass_filter_width=16, rolloff=0.9))
