// Checkpoints of language models: names of the parameters in them, and saving a model as the checkpoint that it began
// from.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lightcone/core/dtype.h"
#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/llm/parameters.h"

namespace lc::llm {

// Returns the GGUF name of a parameter with a name of Hugging Face, such as "model.layers.0.self_attn.q_proj.weight",
// or `path` itself for any other. Llama, Mistral, Qwen and other architectures with the same layers share these names.
std::string gguf_name(const std::string& path);
// Returns the name of the parameter in a checkpoint of this format: gguf_name() in GGUF files, the path in others.
std::string name_in_file(const Weights& w, const std::string& path);

// Maps the path of a parameter to its name in a checkpoint.
using NameInFile = std::function<std::string(const Weights& w, const std::string& path)>;

// Writes the parameters in the format of the checkpoint `like` that the model began from, with everything else in it: a
// GGUF file with the same metadata (and any tokenizer), or a folder with the same config.json and tokenizer and one
// model.safetensors. Matrices are stored as `type` (F32, F16 or BF16); vectors, in GGUF, as f32. Throws Error for
// another type and for a llama2.c file, which cannot store types of weights.
void save_like(const Weights& like, const std::string& path, std::span<const ParameterInfo> parameters,
               const ParameterValues& values, DType type = DType::BF16, const NameInFile& name = name_in_file);

// What config.json says of a classifier.
struct ClassifierConfig {
  std::string architecture;         // the class of transformers
  std::vector<std::string> labels;  // names of the classes by number
};
// The text of a config.json with the architecture and the labels of a classifier, and everything else as it was.
std::string classifier_config(const std::string& config_json, const ClassifierConfig& classifier);
// Writes a classifier as a folder of Hugging Face's, all parameters stored as `type`: model.safetensors with
// `metadata`, the config.json of the folder `like` with the architecture and the labels (id2label, label2id, for one
// class a sample), and its tokenizer or preprocessor_config.json. Further tensors of `like` are left out. Throws Error
// as save_like().
void save_classifier(const Weights& like, const std::string& folder, const ClassifierConfig& classifier,
                     std::span<const ParameterInfo> parameters, const ParameterValues& values, DType type,
                     std::map<std::string, std::string> metadata = {});

}  // namespace lc::llm
