// The checkpoint of a language model that training goes on from: GGUF, safetensors or llama2.c.
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

  // Opens model.weights of a language model's configuration, where it has them, and gives the configuration the context
  // that it leaves open. Error where that is no Llama, has no tokenizer, or is shorter than the context asked for.
  static std::optional<Pretrained> of(TrainConfig& c);
  // What `lightcone generate` reads, in the folder: model.gguf, or the folder model/ for a checkpoint in a folder.
  static const char* result_name(const Weights& w) { return w.format() == "safetensors" ? "model" : "model.gguf"; }
  void save(const std::string& path, const LlamaValues& values, DType type, const std::string& name) const;
};

}  // namespace lc::tool
