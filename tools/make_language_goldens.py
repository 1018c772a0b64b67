#!/usr/bin/env python3
"""Writes tests/goldens/languages.json: what transformers computes in f64 of small language models whose weights are a formula.

    python3 tools/make_language_goldens.py          needs torch and transformers

A case has config.json as transformers writes it (with "old" as files before version 5 have it), the names and shapes of the weights in the
order of the file, and the logits of IDS with MASK: one text is padded at its end, one at its begin. Element k of weight i is
0.4 sin(1.3 i + 0.7 k + 0.1), and 1 more in a weight of one axis."""
import json
import pathlib
import sys
import tempfile

import numpy as np
import torch
import transformers
from safetensors import safe_open
from safetensors.numpy import save_file

ROOT = pathlib.Path(__file__).resolve().parent.parent
SIZES = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=12, vocab_size=17,
             max_position_embeddings=16, pad_token_id=0, bos_token_id=1, eos_token_id=2)
GPT = dict(n_embd=16, n_layer=2, n_head=4, n_positions=16, vocab_size=17, pad_token_id=0, bos_token_id=1, eos_token_id=2)
PLAIN = {k: v for k, v in SIZES.items() if k != "num_key_value_heads"}
BLOOM = {k: v for k, v in SIZES.items() if k not in ("num_key_value_heads", "intermediate_size", "max_position_embeddings",
                                                     "num_hidden_layers", "num_attention_heads")}
NEO = dict(hidden_size=16, num_layers=2, num_heads=4, vocab_size=17, max_position_embeddings=16, window_size=3, pad_token_id=0,
           bos_token_id=1, eos_token_id=2, attention_types=[[["global", "local"], 1]])
OPT = dict({k: v for k, v in PLAIN.items() if k != "intermediate_size"}, ffn_dim=12)
FALCON = dict(PLAIN, ffn_hidden_size=20)
del FALCON["intermediate_size"]
MOE = dict(SIZES, num_local_experts=5, num_experts_per_tok=2)
QMOE = dict(SIZES, num_experts=5, num_experts_per_tok=2, moe_intermediate_size=6)
MLA = dict(SIZES, num_key_value_heads=4, kv_lora_rank=6, q_lora_rank=5, qk_nope_head_dim=4, qk_rope_head_dim=2, v_head_dim=3, n_routed_experts=8,
           num_experts_per_tok=3, moe_intermediate_size=5, n_shared_experts=2, first_k_dense_replace=1)
LLAMA3 = dict(rope_type="llama3", factor=4.0, low_freq_factor=1.0, high_freq_factor=2.0, original_max_position_embeddings=8)
YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=8)
LONG = dict(type="longrope", short_factor=[1.0, 1.5], long_factor=[2.0, 3.0])
STATES = dict(hidden_size=16, num_hidden_layers=2, vocab_size=17, pad_token_id=0, bos_token_id=1, eos_token_id=2)
CASES = [
    ("GPT2LMHeadModel", dict(GPT, scale_attn_by_inverse_layer_idx=True, activation_function="relu")),
    ("GPT2LMHeadModel", dict(GPT, scale_attn_weights=False, n_inner=12, tie_word_embeddings=False)),
    ("GPT2ForTokenClassification", dict(GPT, num_labels=3)),
    ("GPTBigCodeForCausalLM", GPT),
    ("GPTBigCodeForCausalLM", dict(GPT, multi_query=False)),
    ("GPTNeoXForCausalLM", dict(PLAIN, rotary_pct=0.5, use_parallel_residual=False, attention_bias=False)),
    ("GPTNeoXForSequenceClassification", dict(PLAIN, rotary_pct=0.5, num_labels=3)),
    ("GPTJForCausalLM", dict(GPT, rotary_dim=2)),
    ("GPTNeoForCausalLM", NEO),
    ("OPTForCausalLM", OPT),
    ("OPTForCausalLM", dict(OPT, do_layer_norm_before=False, word_embed_proj_dim=8, enable_bias=False)),
    ("OPTForSequenceClassification", dict(OPT, num_labels=3)),
    ("FalconForCausalLM", dict(FALCON, new_decoder_architecture=True, num_kv_heads=2, bias=True)),
    ("FalconForCausalLM", dict(FALCON, new_decoder_architecture=True, num_kv_heads=2, num_ln_in_parallel_attn=1)),
    ("FalconForCausalLM", dict(FALCON, multi_query=False, parallel_attn=False, alibi=True, bias=True)),
    ("FalconForCausalLM", dict(FALCON, rope_scaling=dict(type="linear", factor=3.0))),
    ("BloomForCausalLM", dict(BLOOM, n_layer=2, n_head=4)),
    ("BloomForCausalLM", dict(BLOOM, hidden_size=24, n_layer=2, n_head=6)),
    ("Starcoder2ForCausalLM", dict(SIZES, sliding_window=3)),
    ("Starcoder2ForCausalLM", dict(SIZES, use_bias=False, tie_word_embeddings=False)),
    ("PhiForCausalLM", dict(SIZES, qk_layernorm=True)),
    ("Phi3ForCausalLM", dict(SIZES, rope_scaling=LONG, original_max_position_embeddings=4)),
    ("Phi3ForCausalLM", dict(SIZES, rope_scaling=LONG, original_max_position_embeddings=12)),
    ("LlamaForCausalLM", dict(SIZES, attention_bias=True, mlp_bias=True, rope_scaling=LLAMA3)),
    ("LlamaForCausalLM", dict(SIZES, head_dim=6, rope_scaling=dict(rope_type="dynamic", factor=2.0))),
    ("LlamaForCausalLM", dict(SIZES, rope_theta=100.0, rope_scaling=YARN)),
    ("LlamaForCausalLM", dict(SIZES, rope_theta=100.0, rope_scaling=dict(YARN, attention_factor=1.3, beta_fast=4, beta_slow=1, truncate=False))),
    ("LlamaForTokenClassification", dict(SIZES, num_labels=3)),
    ("LlamaForQuestionAnswering", SIZES),
    ("LlamaModel", SIZES),
    ("MistralForCausalLM", dict(SIZES, sliding_window=3)),
    ("MistralForSequenceClassification", dict(SIZES, sliding_window=None, num_labels=3)),
    ("Qwen2ForCausalLM", dict(SIZES, use_sliding_window=True, sliding_window=3, max_window_layers=1)),
    ("Qwen3ForCausalLM", dict(SIZES, head_dim=6, attention_bias=True)),
    ("GemmaForCausalLM", dict(SIZES, head_dim=6)),
    ("Gemma2ForCausalLM", dict(SIZES, head_dim=6, num_hidden_layers=3, sliding_window=3, query_pre_attn_scalar=8, attn_logit_softcapping=2.0,
                               final_logit_softcapping=5.0)),
    ("Gemma3ForCausalLM", dict(SIZES, head_dim=6, num_hidden_layers=3, sliding_window=3, layer_types=["sliding_attention", "full_attention"] * 1 + ["sliding_attention"],
                               rope_scaling=dict(rope_type="linear", factor=8.0))),
    ("GraniteForCausalLM", dict(SIZES, embedding_multiplier=3.0, residual_multiplier=0.5, attention_multiplier=0.3, logits_scaling=2.0)),
    ("GraniteMoeForCausalLM", dict(MOE, attention_multiplier=0.3)),
    ("GraniteMoeSharedForCausalLM", dict(MOE, shared_intermediate_size=6)),
    ("Olmo2ForCausalLM", SIZES),
    ("OlmoeForCausalLM", dict(SIZES, num_experts=5, num_experts_per_tok=2, clip_qkv=0.7)),
    ("MixtralForCausalLM", dict(MOE, sliding_window=3)),
    ("Qwen2MoeForCausalLM", dict(QMOE, shared_expert_intermediate_size=7, mlp_only_layers=[0], norm_topk_prob=True)),
    ("Qwen3MoeForCausalLM", dict(QMOE, decoder_sparse_step=2, norm_topk_prob=True)),
    ("DeepseekV2ForCausalLM", dict(MLA, topk_method="group_limited_greedy", n_group=4, topk_group=2, routed_scaling_factor=1.5,
                                   attention_bias=True)),
    ("DeepseekV2ForCausalLM", dict(MLA, q_lora_rank=None, rope_theta=100.0, rope_scaling=dict(YARN, mscale=0.7, mscale_all_dim=1.0))),
    ("DeepseekV3ForCausalLM", dict(MLA, n_group=4, topk_group=2)),
    ("GptOssForCausalLM", dict(MOE, head_dim=4, sliding_window=3)),
    ("MambaForCausalLM", dict(STATES, state_size=4, time_step_rank=3)),
    ("FalconMambaForCausalLM", dict(STATES, state_size=4, time_step_rank=3, mixer_rms_eps=1e-3)),
    ("Mamba2ForCausalLM", dict(STATES, state_size=5, num_heads=4, head_dim=8, n_groups=2, chunk_size=4, use_bias=True)),
    ("Mamba2ForCausalLM", dict(STATES, state_size=5, num_heads=8, head_dim=4, n_groups=1, use_conv_bias=False, time_step_limit=[0.1, 0.6])),
    ("RwkvForCausalLM", dict(STATES, context_length=64, num_hidden_layers=5, rescale_every=2)),
    ("RwkvForCausalLM", dict(STATES, context_length=64, intermediate_size=20, rescale_every=0)),
]
IN_STEPS = ("Gemma2ForCausalLM", "GptOssForCausalLM")
IDS = [[2, 7, 11, 4, 16, 5, 9], [3, 8, 6, 12, 0, 0, 0], [0, 0, 13, 1, 15, 10, 4]]
MASK = [[1] * 7, [1] * 4 + [0] * 3, [0] * 2 + [1] * 5]


def formula(i, shape):
    k = np.arange(int(np.prod(shape)), dtype=np.float64)
    return (0.4 * np.sin(1.3 * i + 0.7 * k + 0.1)).astype(np.float32).reshape(shape)


def value(i, name, shape):
    return formula(i, shape) + np.float32(1 if len(shape) == 1 and name.endswith("weight") else 0)


def case(name, settings):
    kind = getattr(transformers, name)
    with tempfile.TemporaryDirectory() as folder:
        kind(kind.config_class(**settings)).save_pretrained(folder)
        path = pathlib.Path(folder)
        with safe_open(path / "model.safetensors", "np") as f:
            shapes = {n: list(f.get_slice(n).get_shape()) for n in sorted(f.keys())}
        save_file({n: value(i, n, s) for i, (n, s) in enumerate(shapes.items())}, path / "model.safetensors", {"format": "pt"})
        config = json.loads((path / "config.json").read_text())
        # rows that see nothing are NaN in steps, and 0 in sdpa, which not all have: the others get no padding
        sdpa = kind._supports_sdpa and name not in IN_STEPS
        mask = torch.tensor(MASK if sdpa else [[1] * 7] * 3)
        model = kind.from_pretrained(folder, dtype=torch.float64, attn_implementation="sdpa" if sdpa else "eager",
                                     experts_implementation="eager").eval()
        with torch.no_grad():
            out = model(input_ids=torch.tensor(IDS), attention_mask=mask)
    y = out.logits if "logits" in out else torch.stack([out.start_logits, out.end_logits], -1) if "start_logits" in out else out.last_hidden_state
    if y.dim() == 3:
        y = torch.where(mask[..., None] > 0, y, 0)  # rows of padding mean nothing
    assert not y.isnan().any(), name
    logits = [float("%.8g" % v) for v in y.flatten().tolist()]
    return {"config": config, "tensors": [[n, s] for n, s in shapes.items()], "mask": mask.flatten().tolist(),
            "logits": logits}


if __name__ == "__main__":
    cases = []
    for name, settings in CASES:
        if len(sys.argv) > 1 and sys.argv[1] not in name:
            continue
        try:
            cases.append(case(name, settings))
        except Exception as e:
            print(name, settings, repr(e)[:300], file=sys.stderr)
    text = "[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n"
    (ROOT / "tests/goldens/languages.json").write_text(text)
