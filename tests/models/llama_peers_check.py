#!/usr/bin/env python3
"""Adapters and models that `lightcone train` writes give the same greedy text in peft, transformers and llama.cpp as in
`lightcone generate`.

    llama_peers_check.py LIGHTCONE STORY.gguf

LIGHTCONE_PEFT names a python that has torch, transformers, peft and gguf, and perhaps llama_cpp; without it the check is
skipped."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

PROMPT = "The owl said:"
TOKENS = 24
TEXT = "The owl said: boats are for ponds, kites are for hills. Once there was a cat.\n\n"


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr}")
    return done.stdout


def train(lightcone, base, folder, targets):
    (folder / "owl.txt").write_text(TEXT * 60)
    config = folder / "config.json"
    config.write_text(json.dumps({
        "model": {"kind": "llama", "weights": str(base), "context": 48, "lora_rank": 4, "lora_alpha": 12, "lora_targets": targets},
        "data": {"format": "text", "train": "owl.txt", "held_out": 0.1, "separator": "\n\n"},
        "train": {"steps": 30, "batch": 4, "optimizer": "adamw", "lr": 1e-2, "warmup": 3, "clip": 1.0},
        "evaluate": {"every": 15, "samples": 8}, "save": {"folder": "made", "weights": "f32"}}))
    run(lightcone, "train", config, "--overwrite")
    return folder / "made"


def continued(model, tokens):
    import torch
    ids = tokens(PROMPT, return_tensors="pt").input_ids
    with torch.no_grad():
        out = model.generate(ids, max_new_tokens=TOKENS, do_sample=False)
    return tokens.decode(out[0], skip_special_tokens=True)


def in_llama_cpp(file):
    try:
        from llama_cpp import Llama
    except ImportError:
        return None
    model = Llama(str(file), n_ctx=128, n_threads=1, verbose=False, n_gpu_layers=0)
    return PROMPT + model(PROMPT, max_tokens=TOKENS, temperature=0)["choices"][0]["text"]


def main(lightcone, story):
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer
    import torch
    said = lambda text: text.strip()[: len(PROMPT) + 40]
    wrong = 0
    for targets in (["q_proj", "k_proj", "down_proj"], ["embed_tokens", "q_proj"]):
        with tempfile.TemporaryDirectory() as name:
            made = train(lightcone, story, pathlib.Path(name), targets)
            file = made / "model.gguf"
            ours = run(lightcone, "generate", file, PROMPT, "-t", "0", "-n", str(TOKENS), "-q")
            tokens = AutoTokenizer.from_pretrained(made, gguf_file="model.gguf")
            load = lambda path: AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
            theirs = {"peft": continued(PeftModel.from_pretrained(load(story), str(made / "adapter")), tokens),
                      "transformers": continued(load(file), tokens), "llama.cpp": in_llama_cpp(file)}
            for program, text in theirs.items():
                agrees = text is None or said(text) == said(ours)
                wrong += not agrees
                print(targets, program, "is not here" if text is None else "agrees" if agrees else f"says {text!r}, not {ours!r}")
    return 1 if wrong else 0


if __name__ == "__main__":
    python = os.environ.get("LIGHTCONE_PEFT")
    if not python:
        print("skipped: LIGHTCONE_PEFT names no python with torch, transformers, peft and gguf")
        sys.exit(77)
    if pathlib.Path(python) != pathlib.Path(sys.executable):
        os.execv(python, [python, *sys.argv])
    sys.exit(main(*(pathlib.Path(a).resolve() for a in sys.argv[1:3])))
