#include <cstring>

#include "lightcone/io/checkpoints/save.h"
#include "lightcone/models/llama/llama_graph.h"
#include "lightcone/models/llama/llama_model.h"
#include "lightcone/models/llama/llama_stored.h"

namespace lc {
namespace {

GgufFields fields(const LlamaConfig& c, const Vocabulary& v, const std::string& name) {
  const auto u32 = [](std::int64_t n) { return static_cast<std::uint32_t>(n); };
  GgufFields f{{"general.architecture", std::string("llama")},
               {"general.name", name},
               {"llama.context_length", u32(c.context)},
               {"llama.embedding_length", u32(c.hidden)},
               {"llama.block_count", u32(c.layers)},
               {"llama.feed_forward_length", u32(c.intermediate)},
               {"llama.attention.head_count", u32(c.heads)},
               {"llama.attention.head_count_kv", u32(c.kv_heads)},
               {"llama.attention.key_length", u32(c.head_dim)},
               {"llama.attention.value_length", u32(c.head_dim)},
               {"llama.rope.dimension_count", u32(c.head_dim)},
               {"llama.vocab_size", u32(c.vocab)},
               {"llama.attention.layer_norm_rms_epsilon", static_cast<float>(c.eps)},
               {"llama.rope.freq_base", static_cast<float>(c.rope_theta)}};
  if (c.window > 0) f.emplace_back("llama.attention.sliding_window", u32(c.window));
  static constexpr std::int32_t types[] = {1, 2, 3, 4, 5, 6};  // ggml's numbers of Vocabulary::Type
  std::vector<std::int32_t> kinds;
  for (const Vocabulary::Type t : v.types) kinds.push_back(types[static_cast<std::size_t>(t)]);
  kinds.resize(v.pieces.size(), 1);
  f.emplace_back("tokenizer.ggml.model", std::string("llama"));
  f.emplace_back("tokenizer.ggml.tokens", v.pieces);
  f.emplace_back("tokenizer.ggml.scores", v.scores);
  f.emplace_back("tokenizer.ggml.token_type", kinds);
  f.emplace_back("tokenizer.ggml.unknown_token_id", u32(v.unk));
  f.emplace_back("tokenizer.ggml.bos_token_id", u32(v.bos));
  f.emplace_back("tokenizer.ggml.eos_token_id", u32(v.eos));
  f.emplace_back("tokenizer.ggml.add_bos_token", v.add_bos);
  f.emplace_back("tokenizer.ggml.add_space_prefix", v.space_prefix);
  return f;
}

// The architecture "llama" rotates neighbours (2i, 2i + 1); where the model rotates halves, rows of queries and keys
// change places within each head.
std::vector<float> rotated_as_in_gguf(std::span<const float> w, std::int64_t heads, std::int64_t head_dim) {
  const std::size_t half = static_cast<std::size_t>(head_dim) / 2,
                    columns = w.size() / (static_cast<std::size_t>(heads) * 2 * half);
  std::vector<float> out(w.size());
  for (std::size_t h = 0; h < static_cast<std::size_t>(heads); ++h)
    for (std::size_t i = 0; i < half; ++i)
      for (std::size_t part = 0; part < 2; ++part)
        std::memcpy(&out[((h * half + i) * 2 + part) * columns], &w[((h * 2 + part) * half + i) * columns],
                    columns * sizeof(float));
  return out;
}

}  // namespace

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
  std::vector<std::vector<std::byte>> kept;
  std::vector<TensorToSave> tensors;
  for (const LlamaModel::Part& p : model.parts()) {
    std::span<const float> w = values(p.path);
    std::vector<float> moved;
    const bool query = p.path.find("q_proj") != p.path.npos;
    if (!c.rope_interleaved && (query || p.path.find("k_proj") != p.path.npos))
      w = moved = rotated_as_in_gguf(w, query ? c.heads : c.kv_heads, c.head_dim);
    const DType stored = p.shape.size() == 2 ? type : DType::F32;
    kept.push_back(stored_as(w, stored));
    tensors.push_back({llama_gguf_name(p.path), stored, p.shape, kept.back()});
  }
  save_gguf(path, tensors, fields(c, tokens, name));
}

}  // namespace lc
