// The config.json that a GGUF file stands for: its metadata in the words of transformers, so that families of models
// have one way to read both. Learned from llama.cpp's converter (conversion/ of ggml-org/llama.cpp) and from the keys
// of its Python package gguf.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lightcone/models/files/config_file.h"
#include "lightcone/models/gguf/config_text.h"
#include "lightcone/models/gguf/metadata.h"

namespace lc {

// What config.json says of a checkpoint: the file of this name, or of a GGUF file what its metadata mean. Keys in
// `ignore` are taken for neutral. Throws Error for an architecture or a key that is not known, naming the nearest.
ConfigFile config_of(const Weights& w, const std::vector<std::string>& ignore = {});

// The values of general.architecture that are known.
const std::vector<std::string_view>& gguf_architectures();

namespace gguf {

// A value of general.architecture, and how its metadata become keys of config.json.
struct Translation {
  std::string_view architecture;
  void (*write)(const GgufMetadata& m, ConfigText& c);
};
// Decoder-only language models, those with routed experts, and encoders.
extern const std::vector<Translation> kLanguages, kRouted, kEncoders;

// Writes what Llama's config.json calls the sizes of a model; the width of a head and of the network where the file
// has them.
void write_sizes(const GgufMetadata& m, ConfigText& c);
// The same, and the epsilon of RMS norms and the rotation.
void write_llama_sizes(const GgufMetadata& m, ConfigText& c);
// Writes the rotation as rope_parameters: its base, how much of a head it turns, how it is stretched. `head`: elements
// of a head. Tensors of factors become lists.
void write_rope(const GgufMetadata& m, ConfigText& c, std::int64_t head, double theta = 10000);
ConfigText rope_of(const GgufMetadata& m, std::int64_t head, double theta);
// Elements of a head of queries and keys.
std::int64_t head_of(const GgufMetadata& m);

}  // namespace gguf

}  // namespace lc
