// Saves a Llama as a GGUF file.
#include <cmath>

#include "lightcone/io/checkpoints/save.h"
#include "lightcone/llm/checkpoint.h"
#include "lightcone/llm/gguf.h"
#include "lightcone/llm/stored.h"
#include "lightcone/models/llama/llama_model.h"

namespace lc {
namespace {

GgufFields fields(const std::string& architecture, const LlamaConfig& c, const Vocabulary& v, const std::string& name,
                  DType type) {
  const auto u32 = [](std::int64_t n) { return static_cast<std::uint32_t>(n); };
  GgufFields f{
      {"general.architecture", architecture}, {"general.name", name}, {"general.file_type", llm::gguf_file_type(type)}};
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
  llm::add_vocabulary(f, v);
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

}  // namespace

void save_llama(const std::string& path, const LlamaModel& model, const llm::ParameterValues& values,
                const Vocabulary& tokens, DType type, const std::string& name) {
  const LlamaConfig& c = model.config();
  llm::require_stored_type("save_llama", type);
  if (tokens.kind != Vocabulary::Kind::SentencePiece || static_cast<std::int64_t>(tokens.pieces.size()) != c.vocab)
    throw Error("save_llama", str_cat("the vocabulary must be SentencePiece's kind and have the model's ", c.vocab,
                                      " pieces; it has ", tokens.pieces.size()));
  // GGUF has norms of queries and keys in the architecture "qwen3", which rotates halves as Hugging Face does.
  const bool norms = model.has_query_key_norms();
  if (norms && c.rope_interleaved)
    throw Error("save_llama", "no architecture of GGUF has norms of queries and keys and rotates neighbours");
  std::vector<std::vector<std::byte>> kept;
  std::vector<TensorToSave> tensors;
  const std::vector<llm::ParameterInfo> parameters = model.parameters();
  kept.reserve(parameters.size() + 1);
  for (const llm::ParameterInfo& p : parameters) {
    std::vector<float> w = values(p.path);
    const bool query = p.path.find("q_proj") != p.path.npos;
    if (!norms && !c.rope_interleaved && (query || p.path.find("k_proj") != p.path.npos))
      w = llm::neighbours_of_halves(w, query ? c.heads : c.kv_heads, c.head_dim);
    const DType stored = p.shape.size() == 2 ? type : DType::F32;
    kept.push_back(llm::stored_as(w, stored));
    tensors.push_back({llm::gguf_name(p.path), stored, p.shape, kept.back()});
  }
  if (const std::vector<float> by = rope_divisors(c); !by.empty()) {
    kept.push_back(llm::stored_as(by, DType::F32));
    tensors.push_back({"rope_freqs.weight", DType::F32, {static_cast<std::int64_t>(by.size())}, kept.back()});
  }
  save_gguf(path, tensors, fields(norms ? "qwen3" : "llama", c, tokens, name, type));
}

}  // namespace lc
