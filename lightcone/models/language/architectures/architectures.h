// The architectures of decoder-only language models, a file each: how config.json's keys set a LanguageConfig, and what
// the file calls the weights.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "lightcone/models/files/config_file.h"
#include "lightcone/models/files/weight_table.h"
#include "lightcone/models/language/config/language_config.h"

namespace lc {

// One model_type.
struct LanguageArchitecture {
  std::string_view type, class_name;  // "gpt2", and "GPT2" of GPT2LMHeadModel
  void (*read)(const ConfigFile& c, LanguageConfig& l);
  std::span<const WeightName> names, more = {}, still_more = {};
};

// Returns the architecture of a model_type, or null.
const LanguageArchitecture* language_architecture(std::string_view type);
// The values of model_type.
const std::vector<std::string_view>& language_model_types();

// Every model_type that is known.
extern const LanguageArchitecture kGpt2, kGptBigcode, kGptNeox, kGptJ, kGptNeo, kOpt, kFalcon, kBloom, kStarcoder2,
    kPhi, kPhi3, kLlama, kMistral, kQwen2, kQwen3, kGemma, kGemma2, kGemma3, kGranite, kGraniteMoe, kGraniteMoeShared,
    kOlmo2, kOlmoe, kMixtral, kQwen2Moe, kQwen3Moe, kDeepseekV2, kDeepseekV3, kGptOss, kMamba, kFalconMamba, kMamba2,
    kRwkv;

}  // namespace lc
