#include "lightcone/llm/gguf.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lightcone/core/dim.h"
#include "lightcone/io/checkpoints/gguf.h"
#include "lightcone/io/printable.h"

namespace lc::llm {
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

}  // namespace

std::int64_t gguf_vocabulary(const Weights& w) {
  const std::vector<std::int64_t>& shape = w.at("token_embd.weight").shape;
  if (shape.size() != 2 || shape[0] < 1)
    throw file_error("load", w.path(), "token_embd.weight has the shape ", str(Shape(shape.begin(), shape.end())),
                     ", not a row for each token");
  const auto* tokens = w.gguf()->strings("tokenizer.ggml.tokens");
  if (tokens && static_cast<std::int64_t>(tokens->size()) != shape[0])
    throw file_error("load", w.path(), "token_embd.weight has ", shape[0], " rows for ", tokens->size(), " tokens");
  return shape[0];
}

void add_vocabulary(GgufFields& fields, const Vocabulary& v) {
  static constexpr std::int32_t types[] = {1, 2, 3, 4, 5, 6};  // ggml's numbers of Vocabulary::Type
  std::vector<std::int32_t> kinds;
  for (const Vocabulary::Type t : v.types) kinds.push_back(types[static_cast<std::size_t>(t)]);
  kinds.resize(v.pieces.size(), 1);
  fields.emplace_back("tokenizer.ggml.model", std::string("llama"));
  fields.emplace_back("tokenizer.ggml.tokens", spelled_pieces(v));
  fields.emplace_back("tokenizer.ggml.scores", v.scores);
  fields.emplace_back("tokenizer.ggml.token_type", kinds);
  for (const auto& [id, key] : {std::pair(v.unk, "unknown"), std::pair(v.bos, "bos"), std::pair(v.eos, "eos")})
    if (id >= 0) fields.emplace_back(str_cat("tokenizer.ggml.", key, "_token_id"), static_cast<std::uint32_t>(id));
  fields.emplace_back("tokenizer.ggml.add_bos_token", v.add_bos);
  fields.emplace_back("tokenizer.ggml.add_space_prefix", v.space_prefix);
}

}  // namespace lc::llm
