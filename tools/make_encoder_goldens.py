#!/usr/bin/env python3
"""Writes tests/goldens/encoders.json: what transformers computes in f64 of small encoders whose weights are a formula.

    python3 tools/make_encoder_goldens.py          [FOLDER]; needs torch and transformers

With a folder of all-MiniLM-L6-v2 it writes tests/goldens/minilm.json instead: texts, and what its encoder and sentence-transformers'
rules (256 tokens, the mean of the tokens, length 1) give for them.

A case has the class, its config.json, the names and shapes of its weights in the order of the file, the inputs and the outputs.
Element k of weight i is 0.4 sin(1.3 i + 0.7 k + 0.1), and 1 more in the weight of a norm."""
import json
import pathlib
import sys

import numpy as np
import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parent.parent
SIZES = dict(hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12, vocab_size=17, max_position_embeddings=12)
DISTIL = dict(dim=8, n_layers=2, n_heads=2, hidden_dim=12, vocab_size=17, max_position_embeddings=12)
DEBERTA = dict(SIZES, relative_attention=True, pos_att_type=["p2c", "c2p"], max_relative_positions=8)
MODERN = dict(SIZES, num_hidden_layers=4, local_attention=4, pad_token_id=0, hidden_activation="gelu")
CASES = [
    ("BertForMaskedLM", dict(SIZES, hidden_act="gelu_new")),
    ("BertForMaskedLM", dict(SIZES, tie_word_embeddings=False)),
    ("BertForPreTraining", SIZES),
    ("BertForTokenClassification", dict(SIZES, num_labels=3, hidden_act="relu")),
    ("BertForQuestionAnswering", dict(SIZES, layer_norm_eps=1e-3)),
    ("BertForNextSentencePrediction", SIZES),
    ("RobertaModel", dict(SIZES, type_vocab_size=1, pad_token_id=1)),
    ("RobertaForSequenceClassification", dict(SIZES, type_vocab_size=1, pad_token_id=1, num_labels=4)),
    ("RobertaForMaskedLM", dict(SIZES, type_vocab_size=1, pad_token_id=3, layer_norm_eps=1e-5)),
    ("CamembertForTokenClassification", dict(SIZES, type_vocab_size=1, pad_token_id=1)),
    ("XLMRobertaForQuestionAnswering", dict(SIZES, type_vocab_size=1, pad_token_id=1)),
    ("DistilBertForMaskedLM", DISTIL),
    ("DistilBertForQuestionAnswering", dict(DISTIL, activation="relu")),
    ("DistilBertForTokenClassification", dict(DISTIL, num_labels=5)),
    ("BertForMultipleChoice", SIZES),
    ("RobertaForMultipleChoice", dict(SIZES, type_vocab_size=1, pad_token_id=1)),
    ("DistilBertForMultipleChoice", DISTIL),
    ("MPNetModel", dict(SIZES, pad_token_id=1)),
    ("MPNetForMaskedLM", dict(SIZES, pad_token_id=1)),
    ("MPNetForSequenceClassification", dict(SIZES, pad_token_id=1, num_labels=3)),
    ("ElectraModel", dict(SIZES, embedding_size=6)),
    ("ElectraForPreTraining", dict(SIZES, embedding_size=8)),
    ("ElectraForMaskedLM", dict(SIZES, embedding_size=6)),
    ("ElectraForSequenceClassification", dict(SIZES, embedding_size=6, num_labels=3)),
    ("ElectraForMultipleChoice", dict(SIZES, embedding_size=6)),
    ("AlbertModel", dict(SIZES, embedding_size=6, num_hidden_layers=3)),
    ("AlbertForPreTraining", dict(SIZES, embedding_size=6, num_hidden_layers=4, num_hidden_groups=2, inner_group_num=2)),
    ("AlbertForTokenClassification", dict(SIZES, embedding_size=6, num_labels=3)),
    ("DebertaV2Model", dict(DEBERTA, share_att_key=True, position_buckets=4, norm_rel_ebd="layer_norm", position_biased_input=False)),
    ("DebertaV2ForSequenceClassification", dict(DEBERTA, type_vocab_size=2, num_labels=3)),
    ("DebertaV2ForMaskedLM", dict(DEBERTA, pos_att_type=["c2p"])),
    ("ModernBertModel", MODERN),
    ("ModernBertForMaskedLM", dict(MODERN, decoder_bias=False, norm_bias=True)),
    ("ModernBertForSequenceClassification", dict(MODERN, classifier_pooling="mean", num_labels=3)),
    ("ModernBertForTokenClassification", dict(MODERN, attention_bias=True, mlp_bias=True, classifier_bias=True)),
    ("NomicBertModel", dict(SIZES, type_vocab_size=2)),
    ("NomicBertForSequenceClassification", dict(SIZES, type_vocab_size=2, num_labels=3)),
]
IDS = [[2, 7, 11, 4, 16, 5, 9], [2, 8, 6, 12, 0, 0, 0]]  # the second is padded, with the id of the padding
TYPES = [[0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 0, 0, 0]]
MASK = [[1] * 7, [1] * 4 + [0] * 3]


def formula(i, shape, norm):
    k = np.arange(int(np.prod(shape)), dtype=np.float64)
    return (0.4 * np.sin(1.3 * i + 0.7 * k + 0.1) + (1 if norm else 0)).astype(np.float32).reshape(shape)


def is_norm(name):
    return name.endswith("weight") and ("LayerNorm" in name or "layer_norm" in name)


def case(name, settings):
    kind = getattr(transformers, name)
    # ModernBERT's own softmax is in f32, where a masked score of f64 overflows
    config = kind.config_class(**settings, attn_implementation="sdpa" if name.startswith("Modern") else "eager")
    model = kind(config).eval()
    state = model.state_dict()
    tied = set(model._tied_weights_keys or ()) if config.tie_word_embeddings else set()
    names = sorted(n for n in state if n not in tied and state[n].dtype == torch.float32)
    new = {n: torch.from_numpy(formula(i, tuple(state[n].shape), is_norm(n))) for i, n in enumerate(names)}
    model.load_state_dict(new, strict=False)
    model.tie_weights()
    model = model.double()
    pad = settings.get("pad_token_id", 0)
    ids = [[pad if not m else i for i, m in zip(row, mask)] for row, mask in zip(IDS, MASK)]
    given = {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(MASK)}
    if getattr(config, "type_vocab_size", 0) > 1 and config.model_type != "mpnet":
        given["token_type_ids"] = torch.tensor(TYPES)
    choice = name.endswith("MultipleChoice")  # whose texts are those of one question
    with torch.no_grad():
        out = model(**({k: v[None] for k, v in given.items()} if choice else given))
        outputs = {"hidden": model.base_model(**given).last_hidden_state}
    if getattr(out, "pooler_output", None) is not None:
        outputs["pooled"] = out.pooler_output
    if "start_logits" in out:
        outputs["logits"] = torch.stack([out.start_logits, out.end_logits], -1)
    for theirs, ours in (("logits", "logits"), ("prediction_logits", "logits"), ("seq_relationship_logits", "next_sentence"),
                         ("sop_logits", "next_sentence")):
        if theirs in out:
            outputs[ours] = out[theirs]
    if name == "BertForNextSentencePrediction":
        outputs["next_sentence"] = outputs.pop("logits")
    written = dict(settings, architectures=[name], model_type=config.model_type)
    for key in ("layer_norm_eps", "hidden_act"):
        if hasattr(config, key):
            written.setdefault(key, getattr(config, key))
    mask = torch.tensor(MASK)[..., None]  # rows of padding mean nothing
    kept = {}
    for key, value in outputs.items():
        if value.dim() == 3 or value.shape == mask.shape[:2]:
            value = torch.where((mask if value.dim() == 3 else mask[..., 0]) > 0, value, 0)
        kept[key] = [float("%.9g" % v) for v in value.flatten().tolist()]
    return {"config": written, "tensors": [[n, list(state[n].shape)] for n in names], "ids": ids, "outputs": kept}


TEXTS = ["The cat sat on the mat.", "A feline rested on the rug.", "Compilers turn graphs into kernels.", "",
         "Zürich, naïve café; 東京 and 123,456.78", "many words " * 200]


def minilm(folder):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").double().eval()
    x = tokenizer(TEXTS, padding=True, truncation=True, max_length=256, return_tensors="pt")
    with torch.no_grad():
        hidden = model(**x).last_hidden_state
    mask = x["attention_mask"][..., None].double()
    mean = (hidden * mask).sum(1) / mask.sum(1)
    unit = mean / mean.norm(dim=1, keepdim=True)
    number = lambda t: [float("%.7g" % v) for v in t.flatten().tolist()]
    return {"texts": TEXTS, "ids": [row[m == 1].tolist() for row, m in zip(x["input_ids"], x["attention_mask"])],
            "embeddings": [number(row[:32]) for row in unit], "cosines": number(unit @ unit.T), "hidden": number(hidden[0, :3, :16])}


if __name__ == "__main__" and len(sys.argv) > 1:
    (ROOT / "tests/goldens/minilm.json").write_text(json.dumps(minilm(sys.argv[1]), separators=(",", ":")) + "\n")
elif __name__ == "__main__":
    cases = [case(*c) for c in CASES]
    text = "[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n"
    (ROOT / "tests/goldens/encoders.json").write_text(text)
