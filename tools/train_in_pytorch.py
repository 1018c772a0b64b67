#!/usr/bin/env python3
"""The runs of docs/training.md in PyTorch: the same models, first values' distributions, recipes and numbers of steps.

  train_in_pytorch.py char_gpt FILE [STEPS]             as examples/char_gpt
  train_in_pytorch.py resnet20|resnet18 FOLDER [EPOCHS] as examples/resnet (FOLDER with train.npz and test.npz)

--seed S and --threads T may stand anywhere. It prints the loss on the way and what is reached in the end.
"""
import argparse
import math
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

LAYERS, HEADS, WIDTH, BLOCK, BATCH = 4, 4, 128, 64, 12


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return F.layer_norm(x, (WIDTH,), self.weight, None)


class GptBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = Norm(), Norm()
        self.attn = nn.ModuleDict({"c_attn": nn.Linear(WIDTH, 3 * WIDTH, bias=False),
                                   "c_proj": nn.Linear(WIDTH, WIDTH, bias=False)})
        self.mlp = nn.ModuleDict({"c_fc": nn.Linear(WIDTH, 4 * WIDTH, bias=False),
                                  "c_proj": nn.Linear(4 * WIDTH, WIDTH, bias=False)})

    def forward(self, x):
        n = x.shape[0]
        q, k, v = (t.view(n, BLOCK, HEADS, WIDTH // HEADS).transpose(1, 2)
                   for t in self.attn["c_attn"](self.ln_1(x)).split(WIDTH, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attn["c_proj"](y.transpose(1, 2).reshape(n, BLOCK, WIDTH))
        return x + self.mlp["c_proj"](F.gelu(self.mlp["c_fc"](self.ln_2(x))))


class Gpt(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, WIDTH), nn.Embedding(BLOCK, WIDTH)
        self.h, self.ln_f = nn.ModuleList(GptBlock() for _ in range(LAYERS)), Norm()
        for name, p in self.named_parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * LAYERS) if "c_proj" in name else 0.02)

    def forward(self, x):
        h = self.wte(x) + self.wpe.weight
        for block in self.h:
            h = block(h)
        return F.linear(self.ln_f(h), self.wte.weight)


def char_gpt(path, steps):
    text = open(path, encoding="utf-8", newline="").read()
    characters = sorted(set(text))
    number = {c: i for i, c in enumerate(characters)}
    tokens = torch.tensor([number[c] for c in text])
    learned = len(tokens) * 9 // 10
    net = Gpt(len(characters))
    groups = [{"params": [p for p in net.parameters() if p.dim() > 1], "weight_decay": 0.1},
              {"params": [p for p in net.parameters() if p.dim() <= 1], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.99))

    def loss_of(x, y):
        return F.cross_entropy(net(x).flatten(0, 1), y.flatten())

    for step in range(steps):
        done = min(1.0, (step - 100) / max(steps - 100, 1))
        rate = 1e-3 * (step + 1) / 101 if step < 100 else 1e-4 + 0.5 * (1 + math.cos(math.pi * done)) * 9e-4
        for group in optimizer.param_groups:
            group["lr"] = rate
        begins = torch.randint(learned - BLOCK, (BATCH,))
        x = torch.stack([tokens[b:b + BLOCK] for b in begins])
        y = torch.stack([tokens[b + 1:b + BLOCK + 1] for b in begins])
        loss = loss_of(x, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        if step % 250 == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
    rest = tokens[learned:]
    blocks = (len(rest) - 1) // BLOCK // BATCH * BATCH
    x, y = (rest[k:k + blocks * BLOCK].view(-1, BATCH, BLOCK) for k in (0, 1))
    with torch.no_grad():
        total = sum(loss_of(a, b).item() for a, b in zip(x, y))
    print(f"validation loss {total / len(x):.4f}")


class ResidualBlock(nn.Module):
    def __init__(self, inputs, outputs, stride, projected):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.new, self.stride = outputs - inputs, stride
        self.downsample = None
        if projected and stride != 1:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        shortcut = x
        if self.downsample is not None:
            shortcut = self.downsample(x)
        elif self.stride != 1:
            shortcut = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.new // 2, self.new // 2))
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + shortcut)


class ResNet(nn.Module):
    def __init__(self, depth):
        super().__init__()
        widths, blocks = ([16, 32, 64], 3) if depth == 20 else ([64, 128, 256, 512], 2)
        self.conv1, self.bn1 = nn.Conv2d(3, widths[0], 3, 1, 1, bias=False), nn.BatchNorm2d(widths[0])
        stages, before = [], widths[0]
        for k, width in enumerate(widths):
            first = ResidualBlock(before, width, 2 if k else 1, depth == 18)
            stages.append(nn.Sequential(first, *(ResidualBlock(width, width, 1, False) for _ in range(blocks - 1))))
            before = width
        self.stages, self.fc = nn.Sequential(*stages), nn.Linear(before, 10)

    def forward(self, x):
        return self.fc(self.stages(F.relu(self.bn1(self.conv1(x)))).mean((2, 3)))


def resnet(depth, folder, epochs, batch=100):
    mean, std = (torch.tensor(v).view(1, 3, 1, 1) for v in ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)))
    data = []
    for part in ("train", "test"):
        file = np.load(f"{folder}/{part}.npz")
        x = torch.from_numpy(file["x"]).permute(0, 3, 1, 2).float() / 255
        data.append(((x - mean) / std, torch.from_numpy(file["y"].astype(np.int64))))
    (x, y), (test_x, test_y) = data
    zero = ((0 - mean) / std).expand(1, 3, 40, 40)  # what is beside a picture is black
    net = ResNet(depth)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    steps = epochs * (len(x) // batch)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for epoch in range(epochs):
        net.train()
        total, order = 0.0, torch.randperm(len(x))
        for k in range(len(x) // batch):
            chosen = order[k * batch:(k + 1) * batch]
            padded = zero.repeat(batch, 1, 1, 1)
            padded[:, :, 4:36, 4:36] = x[chosen]
            tops, lefts, flips = torch.randint(9, (batch,)), torch.randint(9, (batch,)), torch.rand(batch) < 0.5
            cut = torch.stack([p[:, t:t + 32, l:l + 32] for p, t, l in zip(padded, tops, lefts)])
            cut = torch.where(flips.view(-1, 1, 1, 1), cut.flip(3), cut)
            loss = F.cross_entropy(net(cut), y[chosen])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
        net.eval()
        with torch.no_grad():
            right = sum((net(a).argmax(1) == b).sum().item() for a, b in zip(test_x.split(100), test_y.split(100)))
        print(f"epoch {epoch + 1}: loss {total / (len(x) // batch):.4f}, accuracy {100 * right / len(test_x):.2f} %", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=["char_gpt", "resnet20", "resnet18"])
    parser.add_argument("data")
    parser.add_argument("count", type=int, nargs="?")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    begin = time.time()
    if options.model == "char_gpt":
        char_gpt(options.data, options.count or 2000)
    else:
        resnet(int(options.model[6:]), options.data, options.count or 20)
    print(f"{time.time() - begin:.0f} seconds")


if __name__ == "__main__":
    main()
