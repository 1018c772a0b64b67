#include "lightcone/models/files/loaded_model.h"

#include <span>

#include "lightcone/runtime/names.h"

namespace lc {

std::map<std::string, ArrayView, std::less<>> LoadedModel::values() {
  std::map<std::string, ArrayView, std::less<>> all;
  for (NodeId id = 0; id < graph_->size(); ++id) {
    const Node& n = (*graph_)[id];
    const StoredTensor* t = n.parameter ? weight(n.name) : nullptr;
    if (!t) continue;
    if (t->dtype || t->quant) {
      all[n.name] = *t;
    } else {
      const std::vector<float>& wide = converted_[n.name] = Weights::read(*t);
      all[n.name] = {DType::F32, t->shape, std::as_bytes(std::span(wide))};
    }
  }
  return all;
}

void LoadedModel::retrieve(const LoadModelOptions& o) {
  std::vector<std::string_view> names;
  for (const auto& [name, value] : outputs) names.push_back(name);
  if (!o.outputs) {
    for (auto& [name, value] : outputs) value = value.retrieve(name);
    return;
  }
  for (const std::string& name : *o.outputs) {
    const auto at = outputs.find(name);
    if (at == outputs.end())
      throw Error("load_model", str_cat("a ", architecture, " has no output '", name, "'; ", names_near(name, names)));
    at->second = at->second.retrieve(name);
  }
}

}  // namespace lc
