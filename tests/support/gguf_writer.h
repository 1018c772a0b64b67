// A writer of GGUF files, so that tests of malformed files need no reference data.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

// The content of a GGUF file: metadata (numbers, strings, arrays) and f32 tensors.
struct Gguf {
  using Value = std::variant<std::uint32_t, float, std::string, double, std::vector<std::string>, std::vector<double>>;
  std::map<std::string, Value> metadata;
  std::map<std::string, std::pair<std::vector<std::uint64_t>, std::vector<float>>> tensors;  // shapes, innermost first
  std::size_t alignment = 32;  // alignment of the tensors in bytes; written to the metadata if it is not 32

  std::string bytes() const {
    std::string s = "GGUF", payload;
    const auto put = [&](const auto& v) { s.append(reinterpret_cast<const char*>(&v), sizeof v); };
    const auto text = [&](const std::string& t) { put(static_cast<std::uint64_t>(t.size())), s += t; };
    const auto aligned = [&](std::size_t n) { return (n + alignment - 1) / alignment * alignment; };
    auto all = metadata;
    if (alignment != 32) all["general.alignment"] = static_cast<std::uint32_t>(alignment);
    put(std::uint32_t{3}), put(static_cast<std::uint64_t>(tensors.size()));
    put(static_cast<std::uint64_t>(all.size()));
    for (const auto& [key, value] : all) {
      text(key);
      static constexpr std::uint32_t types[] = {4, 6, 8, 12, 9, 9};
      put(types[value.index()]);
      if (const auto* n = std::get_if<std::uint32_t>(&value)) put(*n);
      if (const auto* f = std::get_if<float>(&value)) put(*f);
      if (const auto* t = std::get_if<std::string>(&value)) text(*t);
      if (const auto* d = std::get_if<double>(&value)) put(*d);
      if (const auto* a = std::get_if<std::vector<std::string>>(&value)) {
        put(std::uint32_t{8}), put(static_cast<std::uint64_t>(a->size()));
        for (const std::string& t : *a) text(t);
      }
      if (const auto* a = std::get_if<std::vector<double>>(&value)) {
        put(std::uint32_t{12}), put(static_cast<std::uint64_t>(a->size()));
        for (double d : *a) put(d);
      }
    }
    for (const auto& [name, t] : tensors) {
      text(name), put(static_cast<std::uint32_t>(t.first.size()));
      for (std::uint64_t d : t.first) put(d);
      put(std::uint32_t{0}), put(static_cast<std::uint64_t>(payload.size()));
      payload.append(reinterpret_cast<const char*>(t.second.data()), t.second.size() * 4);
      payload.resize(aligned(payload.size()));
    }
    s.resize(aligned(s.size()));
    return s + payload;
  }
};

// A Llama of one layer: 6 tokens, hidden size 8, two query heads of 4 over one key head, feed-forward size 12. Token 2
// is the end of text.
inline Gguf tiny_llama() {
  Gguf g;
  g.metadata = {{"general.architecture", "llama"},   {"llama.embedding_length", 8u},
                {"llama.feed_forward_length", 12u},  {"llama.block_count", 1u},
                {"llama.attention.head_count", 2u},  {"llama.attention.head_count_kv", 1u},
                {"llama.context_length", 16u},       {"llama.rope.dimension_count", 4u},
                {"llama.rope.freq_base", 10000.0f},  {"llama.rope.scaling.type", "linear"},
                {"llama.rope.scaling.factor", 2.0f}, {"llama.attention.layer_norm_rms_epsilon", 1e-5f},
                {"tokenizer.ggml.eos_token_id", 2u}};
  const std::pair<const char*, std::vector<std::uint64_t>> shapes[] = {
      {"token_embd.weight", {8, 6}},      {"blk.0.attn_norm.weight", {8}},    {"blk.0.attn_q.weight", {8, 8}},
      {"blk.0.attn_k.weight", {8, 4}},    {"blk.0.attn_v.weight", {8, 4}},    {"blk.0.attn_output.weight", {8, 8}},
      {"blk.0.ffn_norm.weight", {8}},     {"blk.0.ffn_gate.weight", {8, 12}}, {"blk.0.ffn_up.weight", {8, 12}},
      {"blk.0.ffn_down.weight", {12, 8}}, {"output_norm.weight", {8}}};
  unsigned seed = 1;
  for (const auto& [name, shape] : shapes) {
    std::size_t n = 1;
    for (std::uint64_t d : shape) n *= d;
    std::vector<float> values(n);
    for (float& v : values) v = static_cast<float>((seed = seed * 1103515245 + 12345) >> 16 & 255) / 256 - 0.5f;
    g.tensors[name] = {shape, values};
  }
  return g;
}

// The same model with a tokenizer of its own.
inline Gguf tiny_llama_with_tokens() {
  Gguf g = tiny_llama();
  g.metadata["tokenizer.ggml.model"] = "llama";
  g.metadata["tokenizer.ggml.tokens"] = std::vector<std::string>{"<unk>",
                                                                 "<s>",
                                                                 "</s>",
                                                                 "\xE2\x96\x81",
                                                                 "a",
                                                                 "\xE2\x96\x81"
                                                                 "a"};
  g.metadata["tokenizer.ggml.scores"] = std::vector<double>{0, 0, 0, -1, -2, -0.5};
  g.metadata["tokenizer.ggml.token_type"] = std::vector<double>{2, 3, 3, 1, 1, 1};
  return g;
}
