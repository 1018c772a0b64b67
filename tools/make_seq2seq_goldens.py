#!/usr/bin/env python3
"""Writes tests/goldens/seq2seq.json: what transformers computes in f64 of small encoder-decoders whose weights are a formula.

    python3 tools/make_seq2seq_goldens.py          needs torch and transformers

A case has the class, its config.json, the names and shapes of its weights in the order of the file, the inputs, the outputs, and the
ids that searches of SEARCHES generate for the first source. Element k of weight i is 0.4 sin(1.3 i + 0.7 k + 0.1),
and 1 more in the weight of a norm."""
import json
import pathlib

import numpy as np
import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parent.parent
BART = dict(d_model=8, encoder_layers=2, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=12,
            decoder_ffn_dim=10, vocab_size=19, max_position_embeddings=24, pad_token_id=1, bos_token_id=0, eos_token_id=2,
            decoder_start_token_id=2, forced_eos_token_id=None)
MARIAN = dict(BART, pad_token_id=18, eos_token_id=0, decoder_start_token_id=18, activation_function="swish", scale_embedding=True)
PEGASUS = dict(BART, pad_token_id=0, eos_token_id=1, decoder_start_token_id=0, activation_function="relu", scale_embedding=True)
T5 = dict(d_model=8, d_kv=6, d_ff=12, num_layers=2, num_decoder_layers=2, num_heads=2, vocab_size=19, relative_attention_num_buckets=8,
          relative_attention_max_distance=9, decoder_start_token_id=0)
WHISPER = dict(d_model=8, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=12,
               decoder_ffn_dim=10, vocab_size=19, num_mel_bins=5, max_source_positions=7, max_target_positions=16, pad_token_id=1,
               bos_token_id=0, eos_token_id=2, decoder_start_token_id=3, suppress_tokens=None, begin_suppress_tokens=None)
CASES = [  # class, its configuration, parts of names of weights that the file leaves out
    ("BartForConditionalGeneration", BART, []),
    ("BartForConditionalGeneration", dict(BART, scale_embedding=True, activation_function="relu", decoder_layers=2), []),
    ("BartModel", BART, []),
    ("MBartForConditionalGeneration", dict(BART, scale_embedding=True), []),
    ("MarianMTModel", MARIAN, ["embed_positions"]),
    ("MarianMTModel", MARIAN, []),
    ("MarianMTModel", dict(MARIAN, share_encoder_decoder_embeddings=False), ["embed_positions"]),
    ("PegasusForConditionalGeneration", PEGASUS, ["embed_positions"]),
    ("M2M100ForConditionalGeneration", BART, []),
    ("T5ForConditionalGeneration", T5, []),
    ("T5ForConditionalGeneration", dict(T5, feed_forward_proj="gated-gelu", tie_word_embeddings=False, num_decoder_layers=1), []),
    ("T5ForConditionalGeneration", dict(T5, feed_forward_proj="gated-silu", relative_attention_num_buckets=32,
                                        relative_attention_max_distance=20), []),
    ("T5EncoderModel", T5, []),
    ("MT5ForConditionalGeneration", T5, []),
    ("UMT5ForConditionalGeneration", T5, []),
    ("WhisperForConditionalGeneration", WHISPER, []),
    ("WhisperForConditionalGeneration", dict(WHISPER, scale_embedding=True), ["encoder.embed_positions"]),
]
SEARCHES = [  # keys of generation_config.json
    {"num_beams": 1}, {"num_beams": 1, "no_repeat_ngram_size": 2, "min_length": 6}, {"num_beams": 3, "early_stopping": True},
    {"num_beams": 3, "length_penalty": 0.5}, {"num_beams": 4, "length_penalty": 2.0, "no_repeat_ngram_size": 2, "bad_words_ids": [[16]]},
    {"num_beams": 2, "forced_bos_token_id": 7, "forced_eos_token_id": 8, "repetition_penalty": 1.3},
]
ENDS = [5, 8, 14]
IDS = [[3, 7, 11, 4, 16, 5, 9, 2], [3, 8, 6, 12, 2, 0, 0, 0]]
MASK = [[1] * 8, [1] * 5 + [0] * 3]
TARGET = [[2, 4, 7, 10, 3], [2, 6, 9, 12, 5]]


def formula(i, shape, norm):
    k = np.arange(int(np.prod(shape)), dtype=np.float64)
    return (0.4 * np.sin(1.3 * i + 0.7 * k + 0.1) + (1 if norm else 0)).astype(np.float32).reshape(shape)


def is_norm(name):
    return name.endswith("weight") and ("LayerNorm" in name or "layer_norm" in name)


def case(name, settings, left_out):
    kind = getattr(transformers, name)
    config = kind.config_class(**settings, attn_implementation="eager")
    model = kind(config).eval()
    if settings.get("tie_word_embeddings") is False:  # transformers 5 ties it in every case
        model.lm_head.weight = torch.nn.Parameter(torch.empty_like(model.lm_head.weight))
    state = model.state_dict()
    names, tied, owners = [], set(), {}
    for n in sorted(state, key=lambda n: ("shared" not in n, n)):  # a table that several parts share stands once in the file
        (names.append if owners.setdefault(state[n].data_ptr(), n) == n else tied.add)(n)
    names = sorted(n for n in names if state[n].dtype == torch.float32 and not any(part in n for part in left_out))
    new = {n: torch.from_numpy(formula(i, tuple(state[n].shape), is_norm(n))) for i, n in enumerate(names)}
    missing, unexpected = model.load_state_dict(new, strict=False)
    assert not unexpected and all(m in tied or any(part in m for part in left_out) for m in missing), (missing, unexpected)
    model = model.double()
    encoder_alone = name == "T5EncoderModel"
    if "Whisper" in name:
        mel = formula(3, (2, settings["num_mel_bins"], 2 * settings["max_source_positions"]), False)
        given = {"input_features": torch.from_numpy(mel).double()}
    else:
        pad = config.pad_token_id
        given = {"input_ids": torch.tensor([[i if m else pad for i, m in zip(row, mask)] for row, mask in zip(IDS, MASK)]),
                 "attention_mask": torch.tensor(MASK)}
    more = {} if encoder_alone else {"decoder_input_ids": torch.tensor([[config.decoder_start_token_id, *row[1:]] for row in TARGET])}
    with torch.no_grad():
        out = model(**given, **more)
    outputs = {"encoder_hidden": out.last_hidden_state if encoder_alone else out.encoder_last_hidden_state}
    if "logits" in out:
        outputs["logits"] = out.logits
    elif not encoder_alone:
        outputs["decoder_hidden"] = out.last_hidden_state
    searched = []
    if "logits" in out and "Whisper" not in name:
        first = {k: v[:1] for k, v in given.items()}
        for search in SEARCHES:
            ids = model.generate(**first, **search, do_sample=False, max_length=11, eos_token_id=ENDS)
            searched.append({"settings": dict(search, max_length=11, eos_token_id=ENDS), "ids": ids[0].tolist()})
    saved = json.loads(config.to_json_string(use_diff=False))
    saved = {k: v for k, v in saved.items() if k in settings or k in ("model_type", "scale_decoder_outputs")}
    saved["architectures"] = [name]
    if "tie_word_embeddings" in settings:
        saved["tie_word_embeddings"] = settings["tie_word_embeddings"]
    return {"config": saved, "tensors": [[n, list(state[n].shape)] for n in names],
            "inputs": {k: v.tolist() for k, v in {**given, **more}.items()},
            "outputs": {k: [round(x, 9) for x in v.flatten().tolist()] for k, v in outputs.items()}, "generated": searched}


def main():
    cases = [case(*c) for c in CASES]
    text = "[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n"
    (ROOT / "tests/goldens/seq2seq.json").write_text(text)


if __name__ == "__main__":
    main()
