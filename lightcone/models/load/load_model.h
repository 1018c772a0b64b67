// load_model(): the right model for a folder of Hugging Face's, by what its config.json says.
//
//   const LoadedModel m = load_model("all-MiniLM-L6-v2");
//   const Program p = m.program(generic() | cpu());
//   Context run(p);
//   run.set("input_ids", ids).set("attention_mask", ones).set("token_type_ids", zeros).run();   // i64 [batch, length]
//   std::vector<float> hidden = run.get("hidden");
//
// What a model takes and gives stands in the header of its family (models/encoder/encoder.h) and in docs/models.md.
// Weights of any floating type and any block format stay as they are stored.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/models/files/config_file.h"
#include "lightcone/models/files/loaded_model.h"

namespace lc {

// Opens a checkpoint: a folder with config.json and weights, or a file of weights with config.json beside it. Throws
// Error that says which type, key of config.json or weight is not known, missing or of another shape, and which known
// one is nearest. No key that may change what the model computes is passed over, and no weight.
LoadedModel load_model(const std::string& path, const LoadModelOptions& o = {});
// The same for an open checkpoint.
LoadedModel load_model(const Weights& w, const LoadModelOptions& o = {});

// Makes the model of an opened checkpoint whose config.json names the type. It throws Error for what it does not know,
// as load_model() promises.
using ModelLoader = std::function<LoadedModel(const Weights&, const ConfigFile&, const LoadModelOptions&)>;
// From now on load_model() opens checkpoints of this model_type (or _class_name) with `load`, and all that is built on
// load_model(), such as SentenceEncoder, does, too. Threads may call it at any time. Throws Error for a type that is
// known already. docs/guide/new_architecture.md shows a whole architecture.
void register_model(const std::string& type, ModelLoader load);

// The values of model_type that load_model() knows, registered ones included.
std::vector<std::string_view> loadable_model_types();

}  // namespace lc
