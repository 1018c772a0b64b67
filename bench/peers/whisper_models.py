"""Writes a Whisper folder of hf_models.py as CTranslate2's and whisper.cpp's own readers want it, with the same weights.

    whisper_models.py FOLDER [NAME ...]

FOLDER/NAME/ctranslate2, in f32, is what its converter makes; the vocabulary has the special tokens, and made-up words in place of a tokenizer.
FOLDER/NAME-f16 is the model rounded to f16, and whisper.cpp.bin in it the same in ggml's old format: numbers, a table of filters and a vocabulary,
which nothing reads here, and the tensors. whisper.cpp 1.8 loads f32, too, and then fails in the first convolution.
"""
import pathlib
import struct
import sys

import numpy as np

NAMES = ["whisper-tiny", "whisper-base"]
LANGUAGES, TIMES, END = 99, 1501, 50257  # of a multilingual vocabulary of 51865


def vocabulary(size):
    special = ["<|endoftext|>", "<|startoftranscript|>", *("<|l%d|>" % i for i in range(LANGUAGES)), "<|translate|>", "<|transcribe|>",
               "<|startoflm|>", "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>", *("<|%.2f|>" % (0.02 * i) for i in range(TIMES))]
    words = ["w%d" % i for i in range(END)] + special
    assert len(words) == size
    return words


def ctranslate2(model, target):
    from ctranslate2.converters.transformers import WhisperLoader

    spec = WhisperLoader().get_model_spec(model)
    spec.register_vocabulary(vocabulary(model.config.vocab_size))
    spec.config.suppress_ids, spec.config.suppress_ids_begin, spec.config.alignment_heads = [], [], [(1, 0)]
    spec.config.lang_ids = list(range(END + 2, END + 2 + LANGUAGES))
    spec.validate()
    spec.optimize()
    target.mkdir(exist_ok=True)
    spec.save(str(target))


# What whisper.cpp calls the parts of a layer.
PARTS = {"self_attn.k_proj": "attn.key", "self_attn.q_proj": "attn.query", "self_attn.v_proj": "attn.value", "self_attn.out_proj": "attn.out",
         "self_attn_layer_norm": "attn_ln", "encoder_attn.k_proj": "cross_attn.key", "encoder_attn.q_proj": "cross_attn.query",
         "encoder_attn.v_proj": "cross_attn.value", "encoder_attn.out_proj": "cross_attn.out", "encoder_attn_layer_norm": "cross_attn_ln",
         "fc1": "mlp.0", "fc2": "mlp.2", "final_layer_norm": "mlp_ln"}
OTHERS = {"encoder.layer_norm": "encoder.ln_post", "decoder.layer_norm": "decoder.ln", "decoder.embed_tokens.weight": "decoder.token_embedding.weight",
          "encoder.embed_positions.weight": "encoder.positional_embedding", "decoder.embed_positions.weight": "decoder.positional_embedding"}


def ggml_name(name):
    side, rest = name.split(".", 1)
    if rest.startswith("layers."):
        _, number, part = rest.split(".", 2)
        part, kind = part.rsplit(".", 1)
        return "%s.blocks.%s.%s.%s" % (side, number, PARTS[part], kind)
    for theirs, ours in OTHERS.items():
        if name.startswith(theirs):
            return ours + name[len(theirs):]
    return name


def ggml(model, target):
    c = model.config
    with open(target, "wb") as f:
        numbers = [0x67676d6c, c.vocab_size, c.max_source_positions, c.d_model, c.encoder_attention_heads, c.encoder_layers, c.max_target_positions,
                   c.d_model, c.decoder_attention_heads, c.decoder_layers, c.num_mel_bins, 1, c.num_mel_bins, 201]
        f.write(struct.pack("<14i", *numbers))
        f.write(np.zeros((c.num_mel_bins, 201), "<f4").tobytes())
        f.write(struct.pack("<i", 0))
        for name, tensor in model.model.state_dict().items():
            name, values = ggml_name(name), tensor.numpy()
            half = values.ndim > 1 and not name.endswith("positional_embedding")  # vectors stay in f32
            values = values.astype("<f2" if half else "<f4")
            if name in ("encoder.conv1.bias", "encoder.conv2.bias"):
                values = values.reshape(-1, 1)
            f.write(struct.pack("<3i", values.ndim, len(name), int(half)))
            f.write(struct.pack("<%di" % values.ndim, *reversed(values.shape)))
            f.write(name.encode())
            f.write(np.ascontiguousarray(values).tobytes())


def main():
    from transformers import WhisperForConditionalGeneration

    for name in sys.argv[2:] or NAMES:
        target = pathlib.Path(sys.argv[1]) / name
        model = WhisperForConditionalGeneration.from_pretrained(target)
        ctranslate2(model, target / "ctranslate2")
        rounded = target.with_name(name + "-f16")
        model.half().save_pretrained(rounded)
        ggml(model, rounded / "whisper.cpp.bin")
        print(name, "ready")


main()
