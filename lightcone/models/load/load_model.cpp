#include "lightcone/models/load/load_model.h"

#include "lightcone/io/printable.h"
#include "lightcone/models/encoder/encoder.h"
#include "lightcone/runtime/names.h"

namespace lc {
namespace {

using Loader = LoadedModel (*)(const Weights&, const ConfigFile&, const LoadModelOptions&);

// A new architecture is a row here.
constexpr std::pair<std::string_view, Loader> kTypes[] = {
    {"bert", load_encoder},      {"roberta", load_encoder},    {"xlm-roberta", load_encoder},
    {"camembert", load_encoder}, {"distilbert", load_encoder},
};

}  // namespace

const std::vector<std::string_view>& loadable_model_types() {
  static const std::vector<std::string_view> types = [] {
    std::vector<std::string_view> all;
    for (const auto& [type, load] : kTypes) all.push_back(type);
    return all;
  }();
  return types;
}

LoadedModel load_model(const std::string& path, const LoadModelOptions& o) {
  return load_model(Weights::open(path, o.read), o);
}

LoadedModel load_model(const Weights& w, const LoadModelOptions& o) {
  if (o.batch < 1) throw Error("load_model", str_cat("LoadModelOptions::batch is ", o.batch, ", and not 1 or more"));
  const ConfigFile config(w, o.ignore);
  const std::string type = config.text("model_type");
  for (const auto& [known, load] : kTypes)
    if (known == type) return load(w, config, o);
  const std::string_view near = nearest_name(type, loadable_model_types());
  config.fail(
      type.empty() ? std::string("there is no model_type") : str_cat("model_type ", in_quotes(type), " is not known"),
      "; ", type.empty() ? "" : str_cat("the nearest is ", near, ", and "), "known are ",
      listed({loadable_model_types().begin(), loadable_model_types().end()}));
}

}  // namespace lc
