// DecoderStates: where the layers of a graph that continues a text keep what later steps need.
#pragma once

#include <cstdint>
#include <string>

#include "lightcone/core/tensor.h"

namespace lc {

// The states of one layer of a decoder. Their names begin with `name`.
struct DecoderStates {
  Graph* graph = nullptr;  // null: the graph computes whole texts, and keeps nothing
  std::string name = {};   // "cache.3"
  std::int64_t context = 0;
  Dim past = 0;  // number of positions in the states
  DType type = DType::F32;
};

}  // namespace lc
