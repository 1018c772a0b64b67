#!/usr/bin/env python3
"""Writes tests/goldens/speech_models.json: what transformers computes in f64 of small encoders of speech whose weights are a formula.

    python3 tools/make_speech_model_goldens.py          needs torch, transformers and safetensors

Cases are as those of make_picture_model_goldens.py. Sample k of the sounds, two of 90, is sin(k^2 / 40); of the second the last 31 are
padding."""
import json
import pathlib

import torch
from make_picture_model_goldens import opened, rounded

ROOT = pathlib.Path(__file__).resolve().parent.parent
SMALL = dict(hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12, conv_dim=[6, 8], conv_stride=[5, 2], conv_kernel=[10, 3],
             num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=2, vocab_size=7, num_labels=3, classifier_proj_size=5)
CASES = [
    ("Wav2Vec2ForCTC", SMALL),
    ("Wav2Vec2ForSequenceClassification", dict(SMALL, feat_extract_norm="layer", do_stable_layer_norm=True, conv_bias=True, adapter_attn_dim=3)),
    ("Wav2Vec2ForAudioFrameClassification", dict(SMALL, num_conv_pos_embeddings=5, hidden_act="relu")),
    ("HubertForCTC", dict(SMALL, feat_extract_norm="layer", do_stable_layer_norm=True, feat_proj_layer_norm=False)),
    ("HubertModel", dict(SMALL, feat_extract_activation="relu")),
]


def case(name, settings):
    model, _, written, tensors = opened(name, settings)
    k = torch.arange(180, dtype=torch.float64)
    mask = torch.ones(2, 90, dtype=torch.int64)
    mask[1, 59:] = 0
    with torch.no_grad():
        out = model(torch.sin(k * k / 40).reshape(2, 90), attention_mask=mask, output_hidden_states=True)
    key = "hidden" if name.endswith("Model") else "logits"
    return {"config": written, "tensors": tensors, "outputs": {key: rounded(out[0])}}


if __name__ == "__main__":
    text = "[\n" + ",\n".join(json.dumps(case(*c), separators=(",", ":")) for c in CASES) + "\n]\n"
    (ROOT / "tests/goldens/speech_models.json").write_text(text)
