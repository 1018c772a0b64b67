#!/usr/bin/env python3
"""Gradients of models that load_model() makes of folders of transformers are those of PyTorch, weight by weight.

    model_gradients_check.py MODEL_GRADIENTS [NAME...]

Small models of each kind get random weights. The loss is the sum of what the model gives, times random factors. Each weight's
gradient is compared by its name with PyTorch's in f64: that of the f64 reference within 1e-5 and that of cpu() within 1e-4,
relative to the largest number of the weight's gradient, or to a thousandth of the largest of the model if that is more (the
gradient of a key's bias is 0, and rounding alone is left of it).
LIGHTCONE_PEFT names a python that has torch and transformers; without it the check is skipped."""
import os
import pathlib
import subprocess
import sys
import tempfile

BOUNDS = {"reference": 1e-5, "cpu": 1e-4}
BATCH, LENGTH = 2, 9


def texts(vocab, **more):
    import torch
    mask = torch.ones(BATCH, LENGTH, dtype=torch.int64)
    return {"input_ids": torch.randint(3, vocab, (BATCH, LENGTH)), "attention_mask": mask, **more}


def bert():
    from transformers import BertConfig, BertForSequenceClassification
    import torch
    c = BertConfig(vocab_size=40, hidden_size=24, num_hidden_layers=2, num_attention_heads=4, intermediate_size=40,
                   max_position_embeddings=16, num_labels=3)
    return BertForSequenceClassification(c), texts(40, token_type_ids=torch.randint(0, 2, (BATCH, LENGTH))), ["logits"]


def modernbert():
    from transformers import ModernBertConfig, ModernBertForSequenceClassification
    c = ModernBertConfig(vocab_size=40, hidden_size=24, num_hidden_layers=4, num_attention_heads=4, intermediate_size=40,
                         max_position_embeddings=32, local_attention=6, num_labels=3, pad_token_id=0)
    return ModernBertForSequenceClassification(c), texts(40), ["logits"]


def vit():
    from transformers import ViTConfig, ViTForImageClassification
    import torch
    c = ViTConfig(hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40, image_size=16, patch_size=4,
                  num_labels=5)
    return ViTForImageClassification(c), {"pixel_values": torch.randn(BATCH, 3, 16, 16)}, ["logits"]


def qwen2():
    from transformers import Qwen2Config, Qwen2ForCausalLM
    c = Qwen2Config(vocab_size=40, hidden_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                    intermediate_size=40, max_position_embeddings=32, tie_word_embeddings=True)
    return Qwen2ForCausalLM(c), texts(40), ["logits"]


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM
    c = LlamaConfig(vocab_size=40, hidden_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4,
                    intermediate_size=40, max_position_embeddings=32, tie_word_embeddings=False)
    return LlamaForCausalLM(c), texts(40), ["logits"]


def mamba():
    from transformers import MambaConfig, MambaForCausalLM
    c = MambaConfig(vocab_size=40, hidden_size=16, num_hidden_layers=2, state_size=4, time_step_rank=3)
    return MambaForCausalLM(c), texts(40), ["logits"]


def t5():
    from transformers import T5Config, T5ForConditionalGeneration
    import torch
    c = T5Config(vocab_size=40, d_model=24, d_kv=6, d_ff=40, num_layers=2, num_heads=4, decoder_start_token_id=0)
    return T5ForConditionalGeneration(c), texts(40, decoder_input_ids=torch.randint(3, 40, (BATCH, 5))), ["logits"]


def whisper():
    from transformers import WhisperConfig, WhisperForConditionalGeneration
    import torch
    c = WhisperConfig(vocab_size=40, d_model=24, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                      decoder_attention_heads=4, encoder_ffn_dim=40, decoder_ffn_dim=40, num_mel_bins=8, max_source_positions=20,
                      max_target_positions=16, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
                      suppress_tokens=[], begin_suppress_tokens=[])
    given = {"input_features": torch.randn(BATCH, 8, 40), "decoder_input_ids": torch.randint(3, 40, (BATCH, 5))}
    return WhisperForConditionalGeneration(c), given, ["logits"]


def resnet():
    from transformers import ResNetConfig, ResNetForImageClassification
    import torch
    c = ResNetConfig(embedding_size=8, hidden_sizes=[16, 24], depths=[2, 2], layer_type="bottleneck", num_labels=5)
    return ResNetForImageClassification(c), {"pixel_values": torch.randn(BATCH, 3, 32, 32)}, ["logits"]


def convnext():
    from transformers import ConvNextConfig, ConvNextForImageClassification
    import torch
    c = ConvNextConfig(hidden_sizes=[8, 16], depths=[1, 2], num_stages=2, num_labels=5, layer_scale_init_value=0.5)
    return ConvNextForImageClassification(c), {"pixel_values": torch.randn(BATCH, 3, 32, 32)}, ["logits"]


MODELS = [bert, modernbert, vit, qwen2, llama, mamba, t5, whisper, resnet, convnext]


def randomize(model):
    """Numbers that are all different, so that weights are told apart by their values."""
    import torch
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.1)
        for name, b in model.named_buffers():
            if b.is_floating_point() and "running" in name:
                b.add_(torch.rand_like(b) * 0.1)


def wanted_gradients(model, given, factors):
    """By the file's names: files of some models have others than PyTorch's modules."""
    model = model.double().eval()
    doubles = {k: v.double() if v.is_floating_point() else v for k, v in given.items()}
    out = model(**doubles, use_cache=False) if "input_ids" in given or "decoder_input_ids" in given else model(**doubles)
    loss = sum((out[name] * f.double()).sum() for name, f in factors.items())
    loss.backward()
    return loss.item(), [(name, p.detach(), p.grad) for name, p in model.named_parameters()]


def compare(tool, make):
    import torch
    from safetensors.torch import load_file, save_file
    torch.manual_seed(5)
    model, given, outputs = make()
    randomize(model)
    with tempfile.TemporaryDirectory() as name, torch.no_grad():
        d = pathlib.Path(name)
        model.float().eval().save_pretrained(d / "model")
        shapes = {name: model(**given)[name].shape for name in outputs}
        factors = {name: torch.randn(s) for name, s in shapes.items()}
        save_file({**given, **{"loss." + k: f for k, f in factors.items()}}, d / "given.safetensors")
        done = subprocess.run([tool, d / "model", d / "given.safetensors", d / "made.safetensors"], capture_output=True, text=True)
        if done.returncode:
            return [f"{make.__name__}: {done.stderr.strip()}"]
        stored, made = load_file(d / "model/model.safetensors"), load_file(d / "made.safetensors")
    loss, wanted = wanted_gradients(model, given, factors)
    wrong = []
    if abs(made["cpu."].item() - loss) > 1e-4 * abs(loss):
        wrong.append(f"{make.__name__}: the loss is {made['cpu.'].item()}, and {loss} is wanted")
    largest = max(grad.abs().max().item() for _, _, grad in wanted if grad is not None)
    worst = dict.fromkeys(BOUNDS, 0)
    for weight, value, grad in wanted:
        if grad is None:
            continue
        names = [n for n, t in stored.items() if t.shape == value.shape and torch.equal(t.double(), value)]
        for by, bound in BOUNDS.items():
            have = next((made[f"{by}.{n}"] for n in names if f"{by}.{n}" in made), None)
            if have is None:
                wrong.append(f"{make.__name__}: {weight} has no gradient (in the file: {names})")
                continue
            far = (have.double() - grad).abs().max().item() / max(grad.abs().max().item(), 1e-3 * largest)
            worst[by] = max(worst[by], far)
            if not far <= bound:
                wrong.append(f"{make.__name__}: the gradient of {weight} by {by} is off by {far:.2g}")
    print(f"{make.__name__}: {len(wanted)} weights; farthest by the reference {worst['reference']:.1e}, by cpu() {worst['cpu']:.1e}")
    return wrong


def main(tool, *names):
    wrong = [w for make in MODELS if not names or make.__name__ in names for w in compare(tool, make)]
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    python = os.environ.get("LIGHTCONE_PEFT")
    if not python:
        print("skipped: LIGHTCONE_PEFT names no python with torch and transformers")
        sys.exit(77)
    if pathlib.Path(python) != pathlib.Path(sys.executable):
        os.execv(python, [python, *sys.argv])
    sys.exit(main(str(pathlib.Path(sys.argv[1]).resolve()), *sys.argv[2:]))
