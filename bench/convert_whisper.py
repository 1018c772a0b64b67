#!/usr/bin/env python3
"""Turns a Whisper of CTranslate2 into a folder as Hugging Face's libraries write it: config.json, generation_config.json, model.safetensors
with the same bits, and tokenizer.json.

    convert_whisper.py FOLDER_OF_CTRANSLATE2 FOLDER

A model.bin is a version, the name of the kind of model, a revision and a number of variables (u32 each, the name as a text); a variable is
its name, the number of its axes (u8), their extents (u32), its type (u8) and its bytes after their number (u32). At the end stand pairs of
names: the first is another name of the second. A text is its length (u16) and bytes that end with 0."""
import json
import math
import pathlib
import shutil
import struct
import sys

TYPES = {0: ("F32", 4), 4: ("F16", 2), 5: ("BF16", 2)}


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self, kind):
        value = struct.unpack_from("<" + kind, self.data, self.at)[0]
        self.at += struct.calcsize(kind)
        return value

    def text(self):
        n = self.number("H")
        self.at += n
        return self.data[self.at - n:self.at].rstrip(b"\0").decode()

    def variable(self):
        name = self.text()
        shape = [self.number("I") for _ in range(self.number("B"))]
        kind, n = self.number("B"), self.number("I")
        self.at += n
        return name, (kind, shape, self.data[self.at - n:self.at])


def variables(data):
    r = Reader(data)
    r.number("I"), r.text(), r.number("I")
    all_of_them = dict(r.variable() for _ in range(r.number("I")))
    for _ in range(r.number("I")):
        alias, name = r.text(), r.text()
        all_of_them[alias] = all_of_them[name]
    return all_of_them


def rows(variable, part, parts):
    """One of several equal parts of the rows."""
    kind, shape, data = variable
    n, size = shape[0] // parts, len(data) // parts
    return kind, [n, *shape[1:]], data[part * size:(part + 1) * size]


class Converter:
    def __init__(self, v):
        self.v, self.out = v, {}

    def norm(self, theirs, ours):
        self.out[ours + ".weight"], self.out[ours + ".bias"] = self.v[theirs + "/gamma"], self.v[theirs + "/beta"]

    def linear(self, theirs, names, within):
        """Layers that CTranslate2 has as one product. Keys have no bias: there it is zeros."""
        for k, name in enumerate(names):
            self.out[f"{within}.{name}.weight"] = rows(self.v[theirs + "/weight"], k, len(names))
            bias = rows(self.v[theirs + "/bias"], k, len(names))
            if name != "k_proj":
                self.out[f"{within}.{name}.bias"] = bias
            elif any(bias[2]):
                raise SystemExit(f"{theirs}: keys have a bias, which Whisper has not")

    def stack(self, name):
        ours = f"model.{name}"
        self.norm(f"{name}/layer_norm", ours + ".layer_norm")
        self.out[ours + ".embed_positions.weight"] = self.v[f"{name}/position_encodings/encodings"]
        layers = 0
        while f"{name}/layer_{layers}/self_attention/linear_0/weight" in self.v:
            theirs, to = f"{name}/layer_{layers}", f"{ours}.layers.{layers}"
            self.norm(theirs + "/self_attention/layer_norm", to + ".self_attn_layer_norm")
            self.linear(theirs + "/self_attention/linear_0", ("q_proj", "k_proj", "v_proj"), to + ".self_attn")
            self.linear(theirs + "/self_attention/linear_1", ("out_proj",), to + ".self_attn")
            if name == "decoder":
                self.norm(theirs + "/attention/layer_norm", to + ".encoder_attn_layer_norm")
                self.linear(theirs + "/attention/linear_0", ("q_proj",), to + ".encoder_attn")
                self.linear(theirs + "/attention/linear_1", ("k_proj", "v_proj"), to + ".encoder_attn")
                self.linear(theirs + "/attention/linear_2", ("out_proj",), to + ".encoder_attn")
            self.norm(theirs + "/ffn/layer_norm", to + ".final_layer_norm")
            self.linear(theirs + "/ffn/linear_0", ("fc1",), to)
            self.linear(theirs + "/ffn/linear_1", ("fc2",), to)
            layers += 1
        return layers

    def whole(self):
        for k in (1, 2):
            for part in ("weight", "bias"):
                self.out[f"model.encoder.conv{k}.{part}"] = self.v[f"encoder/conv{k}/{part}"]
        self.out["model.decoder.embed_tokens.weight"] = self.v["decoder/embeddings/weight"]
        return self.stack("encoder"), self.stack("decoder")


def save(tensors, file):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, (kind, shape, data) in tensors.items():
        dtype, size = TYPES[kind]
        assert len(data) == size * math.prod(shape), name
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    file.write_bytes(struct.pack("<Q", len(head)) + head + b"".join(data for _, _, data in tensors.values()))


def main():
    source, to = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    v = variables((source / "model.bin").read_bytes())
    converter = Converter(v)
    encoder_layers, decoder_layers = converter.whole()
    heads = int.from_bytes(v["encoder/num_heads"][2], "little")
    shape = {name: t[1] for name, t in converter.out.items()}
    vocabulary, width = shape["model.decoder.embed_tokens.weight"]
    inner = shape["model.encoder.layers.0.fc1.weight"][0]
    theirs = json.loads((source / "config.json").read_text())
    english = vocabulary < 51865
    end = 50256 if english else 50257
    to.mkdir(parents=True, exist_ok=True)
    config = {"architectures": ["WhisperForConditionalGeneration"], "model_type": "whisper", "d_model": width, "vocab_size": vocabulary,
              "encoder_layers": encoder_layers, "decoder_layers": decoder_layers, "encoder_attention_heads": heads,
              "decoder_attention_heads": heads, "encoder_ffn_dim": inner, "decoder_ffn_dim": inner, "activation_function": "gelu",
              "num_mel_bins": shape["model.encoder.conv1.weight"][1],
              "max_source_positions": shape["model.encoder.embed_positions.weight"][0],
              "max_target_positions": shape["model.decoder.embed_positions.weight"][0],
              "bos_token_id": end, "eos_token_id": end, "pad_token_id": end, "decoder_start_token_id": end + 1}
    generation = {"alignment_heads": theirs["alignment_heads"], "suppress_tokens": theirs["suppress_ids"],
                  "begin_suppress_tokens": theirs["suppress_ids_begin"], "is_multilingual": not english,
                  "eos_token_id": end, "decoder_start_token_id": end + 1}
    (to / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    (to / "generation_config.json").write_text(json.dumps(generation, indent=2) + "\n")
    save(converter.out, to / "model.safetensors")
    shutil.copyfile(source / "tokenizer.json", to / "tokenizer.json")


if __name__ == "__main__":
    main()
