// The checkpoint of a language model that training goes on from: GGUF, safetensors or llama2.c.
#pragma once

#include <memory>

#include "config.h"
#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/io/text/tokenizer.h"
#include "lightcone/models/llama/llama_model.h"

namespace lc::tool {

struct Pretrained {
  Weights weights;
  LlamaModel model;
  std::shared_ptr<const Tokenizer> tokenizer;

  // Opens model.weights of the configuration, and gives the configuration the context it leaves open. Error where that
  // is no Llama, has no tokenizer, or is shorter than the context that was asked for.
  static Pretrained open(TrainConfig& c);
  // What `lightcone generate` reads, in the folder: model.gguf, or the folder model/ for a checkpoint in a folder.
  static const char* result_name(const Weights& w) { return w.format() == "safetensors" ? "model" : "model.gguf"; }
  void save(const std::string& path, const LlamaValues& values, DType type, const std::string& name) const;
};

}  // namespace lc::tool
