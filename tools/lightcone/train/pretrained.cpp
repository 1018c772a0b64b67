#include "pretrained.h"

#include <algorithm>

#include "lightcone/base/error.h"
#include "lightcone/io/printable.h"
#include "lightcone/llm/checkpoint.h"
#include "lightcone/llm/model_tokenizer.h"

namespace lc::tool {

std::optional<Pretrained> Pretrained::of(TrainConfig& c) {
  if (!c.pretrained()) return std::nullopt;
  Weights w = Weights::open(c.model.weights);
  LlamaModel model = LlamaModel::of(w);
  const LlamaConfig& has = model.config();
  auto tokenizer = llm::model_tokenizer(w, has.vocab, has.eos);
  if (!tokenizer)
    throw file_error("train", c.model.weights,
                     "it has no tokenizer, and no tokenizer.json, tokenizer.model or tokenizer.bin lies beside it");
  if (c.model.context > has.context)
    throw Error("train", str_cat("model.context is ", c.model.context, ", ", in_quotes(c.model.weights),
                                 " was made for ", has.context, " tokens"));
  c.model.heads = has.heads, c.model.kv_heads = has.kv_heads;
  if (c.model.context == 0) c.model.context = std::min<i64>(has.context, 512);
  return Pretrained{std::move(w), std::move(model), std::move(tokenizer)};
}

void Pretrained::save(const std::string& path, const llm::ParameterValues& values, DType type,
                      const std::string& name) const {
  if (weights.format() == "llama2.c") save_llama(path, model, values, tokenizer->vocabulary(), type, name);
  else llm::save_like(weights, path, model.parameters(), values, type);
}

}  // namespace lc::tool
