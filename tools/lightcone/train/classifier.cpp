#include "classifier.h"

#include <filesystem>

namespace lc::tool {

std::unique_ptr<PretrainedClassifier> PretrainedClassifier::of(TrainConfig& c) {
  if (c.encoder()) return pretrained_texts(c);
  if (c.vision()) return pretrained_pictures(c);
  return nullptr;
}

MergedValues::MergedValues(const Trainer& trainer) : trainer_(trainer) {
  for (const nn::Adapter& a : trainer.adapters()) merged_[a.weight] = trainer.merged(a.weight);
}
std::span<const float> MergedValues::operator()(const std::string& path) const {
  const auto sum = merged_.find(path);
  return sum == merged_.end() ? trainer_.values(path) : std::span<const float>(sum->second);
}

std::vector<std::string> adapter_layers(const Trainer& trainer) {
  std::vector<std::string> all;
  for (const nn::Adapter& a : trainer.adapters())
    for (const std::string& name : {a.a, a.b}) all.push_back(name.substr(0, name.rfind(".weight")));
  return all;
}

std::string absolute_path(const std::string& path) {
  std::string base = std::filesystem::absolute(path).lexically_normal().string();
  while (base.size() > 1 && base.ends_with('/')) base.pop_back();
  return base;
}

}  // namespace lc::tool
