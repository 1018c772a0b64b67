#include "lightcone/models/files/loaded_model.h"

#include "lightcone/runtime/names.h"

namespace lc {

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
