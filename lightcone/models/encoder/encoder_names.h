// What checkpoints of encoders call their weights.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/models/encoder/encoder_config.h"
#include "lightcone/models/files/weight_table.h"

namespace lc {

// The names in Hugging Face's checkpoints, and what may stand before them.
std::span<const WeightName> encoder_weight_names(EncoderKind kind);
std::span<const std::string_view> encoder_prefixes();
// The names in GGUF files of architecture "bert".
std::span<const WeightName> encoder_gguf_names();
// The name that transformers' classifier of sequences gives a parameter of Encoder.
std::string classifier_name(EncoderKind kind, std::string_view ours);
// The layers that get adapters unless somebody names others: those of queries and values.
std::vector<std::string> default_lora_targets(EncoderKind kind);

}  // namespace lc
