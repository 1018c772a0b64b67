// Adapters (nn::Lora) in the format of Hugging Face's peft: adapter_model.safetensors and adapter_config.json in a
// folder. The rows of queries and keys are in the order of Hugging Face's checkpoints there, whatever file the model
// came from (ParameterInfo::interleaved_heads).
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "lightcone/llm/parameters.h"
#include "lightcone/nn/module.h"

namespace lc::llm {

// What peft is told about the model beside its adapters.
struct PeftTask {
  std::string type = "CAUSAL_LM";         // task_type; "": none
  std::vector<std::string> trained = {};  // modules that are trained as a whole and saved, too (modules_to_save)
};

// Writes the adapters of a model with these parameters. `base` is the name of the base model on a hub, or its path.
// Throws Error if there are no adapters, or if one belongs to another model.
void save_adapters(const std::string& folder, std::span<const ParameterInfo> parameters,
                   std::span<const nn::Adapter> adapters, const ParameterValues& values, const std::string& base = "",
                   const PeftTask& task = {});
// Reads adapters that save_adapters() or peft wrote for the model: the values by the names of the parameters, in the
// row order of this model. Throws Error for adapters of other layers, ranks or scales, and for features beyond LoRA.
//   for (const auto& [name, v] : llm::load_adapters("adapter", model.parameters(), trainer.adapters()))
//     trainer.context().set(name, v);
std::map<std::string, std::vector<float>> load_adapters(const std::string& folder,
                                                        std::span<const ParameterInfo> parameters,
                                                        std::span<const nn::Adapter> adapters);

}  // namespace lc::llm
