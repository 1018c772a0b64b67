#include "lightcone/models/language/architectures/architectures.h"

namespace lc {
namespace {

// A new architecture is a row here.
constexpr const LanguageArchitecture* kAll[] = {
    &kGpt2,   &kGptBigcode, &kGptNeox,     &kGptJ,     &kGptNeo,   &kOpt,        &kFalcon,
    &kBloom,  &kStarcoder2, &kPhi,         &kPhi3,     &kLlama,    &kMistral,    &kQwen2,
    &kQwen3,  &kGemma,      &kGemma2,      &kGemma3,   &kGranite,  &kGraniteMoe, &kGraniteMoeShared,
    &kOlmo2,  &kOlmoe,      &kMixtral,     &kQwen2Moe, &kQwen3Moe, &kDeepseekV2, &kDeepseekV3,
    &kGptOss, &kMamba,      &kFalconMamba, &kMamba2,   &kRwkv,
};

}  // namespace

const LanguageArchitecture* language_architecture(std::string_view type) {
  for (const LanguageArchitecture* a : kAll)
    if (a->type == type) return a;
  return nullptr;
}

const std::vector<std::string_view>& language_model_types() {
  static const std::vector<std::string_view> types = [] {
    std::vector<std::string_view> all;
    for (const LanguageArchitecture* a : kAll) all.push_back(a->type);
    return all;
  }();
  return types;
}

}  // namespace lc
