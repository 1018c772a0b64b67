// The checkpoint of a language model from which training continues: GGUF, safetensors or llama2.c.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "config.h"
#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/io/text/tokenizer.h"
#include "lightcone/models/llama/llama_model.h"

namespace lc::tool {

struct Pretrained {
  Weights weights;
  LlamaModel model;
  std::shared_ptr<const Tokenizer> tokenizer;

  // Opens model.weights of a language model's configuration, if it has them, and fills in the context if the
  // configuration leaves it open. Throws Error if the checkpoint is no Llama, has no tokenizer, or has a shorter
  // context than required.
  static std::optional<Pretrained> of(TrainConfig& c);
  // Returns the name of the result in the folder, for `lightcone generate`: model.gguf, or the folder model/ for a
  // checkpoint in a folder.
  static const char* result_name(const Weights& w) { return !w.gguf() && w.llama2c().empty() ? "model" : "model.gguf"; }
  void save(const std::string& path, const llm::ParameterValues& values, DType type, const std::string& name) const;
};

}  // namespace lc::tool
