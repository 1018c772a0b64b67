#include <algorithm>
#include <cmath>
#include <cstring>

#include "lightcone/io/checkpoints/save.h"
#include "lightcone/models/llama/llama_graph.h"
#include "lightcone/models/llama/llama_model.h"
#include "lightcone/models/llama/llama_stored.h"

namespace lc {
namespace {

constexpr std::string_view kSpace = "\xE2\x96\x81";

// The pieces in the usual spelling, the only one that readers of GGUF know. llama2.c spells a space as it is, and has
// line ends around <s> and </s>.
std::vector<std::string> spelled_pieces(const Vocabulary& v) {
  if (v.escape_spaces) return v.pieces;
  std::vector<std::string> pieces;
  for (const std::string& p : v.pieces) {
    std::string& to = pieces.emplace_back();
    for (const char c : p) c == ' ' ? to.append(kSpace) : to.append(1, c);
  }
  for (const auto& [id, name] : {std::pair(v.unk, "<unk>"), std::pair(v.bos, "<s>"), std::pair(v.eos, "</s>")})
    if (id >= 0) pieces[static_cast<std::size_t>(id)] = name;
  return pieces;
}

GgufFields fields(const std::string& architecture, const LlamaConfig& c, const Vocabulary& v, const std::string& name,
                  DType type) {
  const auto u32 = [](std::int64_t n) { return static_cast<std::uint32_t>(n); };
  GgufFields f{
      {"general.architecture", architecture}, {"general.name", name}, {"general.file_type", gguf_file_type(type)}};
  const auto add = [&](const char* key, GgufField value) {
    f.emplace_back(architecture + "." + key, std::move(value));
  };
  add("context_length", u32(c.context));
  add("embedding_length", u32(c.hidden));
  add("block_count", u32(c.layers));
  add("feed_forward_length", u32(c.intermediate));
  add("attention.head_count", u32(c.heads));
  add("attention.head_count_kv", u32(c.kv_heads));
  add("attention.key_length", u32(c.head_dim));
  add("attention.value_length", u32(c.head_dim));
  add("rope.dimension_count", u32(c.head_dim));
  add("vocab_size", u32(c.vocab));
  add("attention.layer_norm_rms_epsilon", static_cast<float>(c.eps));
  add("rope.freq_base", static_cast<float>(c.rope_theta));
  if (c.window > 0) add("attention.sliding_window", u32(c.window));
  static constexpr std::int32_t types[] = {1, 2, 3, 4, 5, 6};  // ggml's numbers of Vocabulary::Type
  std::vector<std::int32_t> kinds;
  for (const Vocabulary::Type t : v.types) kinds.push_back(types[static_cast<std::size_t>(t)]);
  kinds.resize(v.pieces.size(), 1);
  f.emplace_back("tokenizer.ggml.model", std::string("llama"));
  f.emplace_back("tokenizer.ggml.tokens", spelled_pieces(v));
  f.emplace_back("tokenizer.ggml.scores", v.scores);
  f.emplace_back("tokenizer.ggml.token_type", kinds);
  for (const auto& [id, key] : {std::pair(v.unk, "unknown"), std::pair(v.bos, "bos"), std::pair(v.eos, "eos")})
    if (id >= 0) f.emplace_back(str_cat("tokenizer.ggml.", key, "_token_id"), u32(id));
  f.emplace_back("tokenizer.ggml.add_bos_token", v.add_bos);
  f.emplace_back("tokenizer.ggml.add_space_prefix", v.space_prefix);
  return f;
}

// RoPE's divisor of each pair if RoPE is scaled; empty otherwise.
std::vector<float> rope_divisors(const LlamaConfig& c) {
  std::vector<float> by;
  bool scaled = false;
  for (std::size_t i = 0; i < c.rope_frequencies.size(); ++i) {
    const double plain = std::pow(c.rope_theta, -2.0 * static_cast<double>(i) / static_cast<double>(c.head_dim));
    by.push_back(static_cast<float>(plain / c.rope_frequencies[i]));
    scaled = scaled || std::abs(by.back() - 1.0f) > 1e-6f;
  }
  return scaled ? by : std::vector<float>();
}

// Moves row (head, part, i) to row (head, i, part), or back.
std::vector<float> with_rows_moved(std::span<const float> w, std::int64_t heads, std::int64_t head_dim, bool back) {
  const std::size_t half = static_cast<std::size_t>(head_dim) / 2,
                    columns = w.size() / (static_cast<std::size_t>(heads) * 2 * half);
  std::vector<float> out(w.size());
  for (std::size_t h = 0; h < static_cast<std::size_t>(heads); ++h)
    for (std::size_t i = 0; i < half; ++i)
      for (std::size_t part = 0; part < 2; ++part) {
        const std::size_t neighbours = ((h * half + i) * 2 + part) * columns,
                          halves = ((h * 2 + part) * half + i) * columns;
        std::memcpy(&out[back ? halves : neighbours], &w[back ? neighbours : halves], columns * sizeof(float));
      }
  return out;
}

}  // namespace

std::vector<float> neighbours_of_halves(std::span<const float> w, std::int64_t heads, std::int64_t head_dim) {
  return with_rows_moved(w, heads, head_dim, false);
}
std::vector<float> halves_of_neighbours(std::span<const float> w, std::int64_t heads, std::int64_t head_dim) {
  return with_rows_moved(w, heads, head_dim, true);
}

void require_stored_type(std::string_view op, DType type) {
  if (type != DType::F32 && type != DType::F16 && type != DType::BF16)
    throw Error(op, str_cat("weights of type ", name(type), ": they can be f32, f16 or bf16"));
}

std::vector<std::byte> stored_as(std::span<const float> w, DType type) {
  std::vector<std::byte> bytes(w.size() * size_of(type));
  for (std::size_t k = 0; k < w.size(); ++k) {
    if (type == DType::F32) {
      std::memcpy(bytes.data() + 4 * k, &w[k], 4);
      continue;
    }
    const std::uint16_t bits = type == DType::BF16 ? f32_to_bf16(w[k]) : f32_to_f16(w[k]);
    std::memcpy(bytes.data() + 2 * k, &bits, 2);
  }
  return bytes;
}

void save_llama(const std::string& path, const LlamaModel& model, const LlamaValues& values, const Vocabulary& tokens,
                DType type, const std::string& name) {
  const LlamaConfig& c = model.config();
  require_stored_type("save_llama", type);
  if (tokens.kind != Vocabulary::Kind::SentencePiece || static_cast<std::int64_t>(tokens.pieces.size()) != c.vocab)
    throw Error("save_llama", str_cat("the vocabulary must be SentencePiece's kind and have the model's ", c.vocab,
                                      " pieces; it has ", tokens.pieces.size()));
  // GGUF has norms of queries and keys in the architecture "qwen3", which rotates halves as Hugging Face does.
  const bool norms = model.has_query_key_norms();
  if (norms && c.rope_interleaved)
    throw Error("save_llama", "no architecture of GGUF has norms of queries and keys and rotates neighbours");
  std::vector<std::vector<std::byte>> kept;
  std::vector<TensorToSave> tensors;
  const std::vector<LlamaModel::Part> parts = model.parts();
  kept.reserve(parts.size() + 1);
  for (const LlamaModel::Part& p : parts) {
    std::vector<float> w = values(p.path);
    const bool query = p.path.find("q_proj") != p.path.npos;
    if (!norms && !c.rope_interleaved && (query || p.path.find("k_proj") != p.path.npos))
      w = neighbours_of_halves(w, query ? c.heads : c.kv_heads, c.head_dim);
    const DType stored = p.shape.size() == 2 ? type : DType::F32;
    kept.push_back(stored_as(w, stored));
    tensors.push_back({llama_gguf_name(p.path), stored, p.shape, kept.back()});
  }
  if (const std::vector<float> by = rope_divisors(c); !by.empty()) {
    kept.push_back(stored_as(by, DType::F32));
    tensors.push_back({"rope_freqs.weight", DType::F32, {static_cast<std::int64_t>(by.size())}, kept.back()});
  }
  save_gguf(path, tensors, fields(norms ? "qwen3" : "llama", c, tokens, name, type));
}

}  // namespace lc
