// The graph of a checkpoint, for `lightcone export` and `lightcone view`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/models/files/loaded_model.h"

namespace lc::tool {

struct CheckpointGraphOptions {
  bool whole = false;                // language models: texts as a whole, without a cache
  std::int64_t batch = 64;           // the bound of the symbol "batch"
  std::int64_t size = 0;             // height and width of a picture; 0: what the checkpoint says
  std::vector<std::string> outputs;  // empty: all
};

// True for a checkpoint whose graph Llama makes, with a cache: the builtin one, and those that `generate` opens so.
bool is_cached_llama(const std::string& name, const Weights& w);
// Opens any other checkpoint: a language model with a cache, if it may have one, and else what load_model() makes.
LoadedModel open_checkpoint(const std::string& name, const Weights& w, const CheckpointGraphOptions& o);

}  // namespace lc::tool
