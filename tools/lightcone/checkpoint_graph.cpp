#include "checkpoint_graph.h"

#include <algorithm>

#include "lightcone/models/gguf/gguf_config.h"
#include "lightcone/models/language/architectures/architectures.h"
#include "lightcone/models/language/language_model.h"
#include "lightcone/models/load/load_model.h"
#include "speak.h"

namespace lc::tool {
namespace {

bool has_config(const Weights& w) { return w.gguf() || !w.config_json().empty(); }

// True for a language model with a head for words.
bool continues_texts(const Weights& w) {
  if (!has_config(w)) return false;
  const ConfigFile config = config_of(w);
  if (!language_architecture(config.text("model_type"))) return false;
  const std::vector<std::string> all = config.texts("architectures");
  return all.empty() || all.front().ends_with("ForCausalLM") || all.front().ends_with("LMHeadModel");
}

}  // namespace

bool is_cached_llama(const std::string& name, const Weights& w) {
  return name == "builtin" || !w.llama2c().empty() || (has_config(w) && continues_texts(w) && is_llama(w));
}

LoadedModel open_checkpoint(const std::string& name, const Weights& w, const CheckpointGraphOptions& o) {
  if (!o.whole && continues_texts(w)) {
    if (!o.outputs.empty() && o.outputs != std::vector<std::string>{"logits"})
      throw Error("--outputs", "a language model with a cache has one output, logits; --whole gives it more");
    return load_decoder(w);
  }
  LoadModelOptions load{.batch = o.batch, .height = o.size, .width = o.size};
  if (!o.outputs.empty()) load.outputs = o.outputs;
  return lc::load_model(name, load);  // by its name, because files of whisper.cpp are opened by it alone
}

}  // namespace lc::tool
