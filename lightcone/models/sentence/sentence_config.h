// What sentence-transformers' files say of a model: how the vectors of tokens become the vector of a text.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/io/checkpoints/weights.h"

namespace lc {

// How the vectors of the tokens become one.
enum class Pooling : std::uint8_t {
  Cls,           // the vector of the first token
  Max,           // the largest of each component
  Mean,          // the mean
  MeanSqrt,      // the sum, divided by the square root of the number of tokens
  WeightedMean,  // the mean with the weights 1, 2, ..., n
  Last           // the vector of the last token
};
// The words for them: cls, max, mean, mean_sqrt_len, weightedmean, lasttoken.
const std::vector<std::string_view>& pooling_names();
// Throws Error that names the nearest one if there is none of this name.
Pooling pooling_named(std::string_view name);

// A linear layer on the pooled vectors.
struct SentenceDense {
  std::string folder;  // its weights are there
  std::int64_t in = 0, out = 0;
  bool bias = true;
  std::string activation;  // one of activation_names()
};

// The modules behind the encoder, in their order: pooling, dense layers, normalisation.
struct SentenceConfig {
  std::string encoder;                             // the folder of the encoder
  std::vector<Pooling> pooling = {Pooling::Mean};  // several are concatenated
  std::vector<SentenceDense> dense = {};
  bool normalize = false;
  std::int64_t length = 0;                          // longest input in tokens; 0: the encoder's own
  std::map<std::string, std::string> prompts = {};  // what is written before a text, by its purpose
  std::string prompt = {};                          // the name of the one that is written if none is chosen

  // Reads modules.json and what it names in a folder. Without it the mean is taken. Throws Error that names a module or
  // a setting which is not known.
  static SentenceConfig from(const std::string& folder, const std::vector<std::string>& ignore, const ReadOptions& o);
};

}  // namespace lc
