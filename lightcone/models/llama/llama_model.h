// LlamaModel: a Llama for training, a module of which the parameters have Hugging Face's names. It has the layers of
// inference.
//
//   Graph g;
//   nn::Model<LlamaModel> model(g, LlamaModel(config));
//   auto loss = trace(model, next_token_loss, ids, next);   // i64 [batch, length] each
//
// Training can also continue from a checkpoint: LlamaModel::of(weights), then Trainer::load_parameters(weights, ...)
// for the values. save_llama() writes files for Llama::load() and the command `lightcone generate`.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lightcone/io/text/tokenizer.h"
#include "lightcone/models/llama/llama_config.h"
#include "lightcone/nn/module.h"
#include "lightcone/ops/loss.h"

namespace lc {

// Options of LlamaModel.
struct LlamaModelOptions {
  bool tied = true;                      // the head is the embedding table; otherwise it is lm_head.weight
  std::vector<std::string> biases = {};  // linear layers of a block that have a bias: "self_attn.q_proj", ... (Qwen 2)
  bool query_key_norms = false;          // norms of the queries and keys of each head (Qwen 3)
};

// A Llama as a module. Calls map token ids to logits.
class LlamaModel {
 public:
  // Throws Error if the sizes are inconsistent. Missing rope_frequencies are computed from rope_theta.
  explicit LlamaModel(LlamaConfig c, const LlamaModelOptions& o = {});
  // The model of a checkpoint: its sizes, its biases and norms, and whether it has a separate head. The values are
  // loaded by
  //   trainer.load_parameters(w, [&](const std::string& path) { return llama_file_name(w, path); });
  static LlamaModel of(const Weights& w);
  // Initial values: normal(0, 0.02), for o_proj and down_proj divided by sqrt(2 layers) (GPT-2); norms 1, biases 0.
  void visit(nn::Visitor& v);
  // ids i64 [batch, length] -> logits [batch, length, vocab]; the logits at a position predict the next token.
  Tensor operator()(const Tensor& ids) const;
  // The same for rows into which several texts are packed. `segments`, i64 [batch, length], numbers the texts, and a
  // token attends to tokens with its own number only. Positions are not restarted in a row, because RoPE depends on
  // distances only.
  Tensor operator()(const Tensor& ids, const Tensor& segments) const;
  const LlamaConfig& config() const { return config_; }  // the hyperparameters
  // A tensor of the model: its path, which is its name in PyTorch's state_dict, and its shape.
  struct Part {
    std::string path;
    std::vector<std::int64_t> shape;
  };
  // Returns the tensors of the model, in the order of visit().
  std::vector<Part> parts() const;
  bool has_query_key_norms() const { return o_.query_key_norms; }  // true if queries and keys are normalised

 private:
  Tensor logits(const Tensor& ids, const std::function<Tensor(const Tensor& causal)>& mask) const;

  LlamaConfig config_;
  LlamaModelOptions o_;
  std::map<std::string, Tensor> tensors_;  // by path, in the graph of the last visit()
};

// The cross entropy of the next tokens: ids and next are i64 [batch, length]. `model` is a model in training or any
// callable that returns logits [batch, length, vocab].
template <class Model>
Tensor next_token_loss(Model& model, const Tensor& ids, const Tensor& next, Reduction reduction = Reduction::Mean) {
  const Tensor logits = model(ids);
  const Dim tokens = logits.extent(0) * logits.extent(1);
  return cross_entropy(logits.reshape({tokens, logits.extent(2)}), next.reshape({tokens}), {.reduction = reduction});
}

// Maps the path of a part to its f32 values. It wraps any function that returns a span or a vector (Trainer::values,
// Trainer::merged).
class LlamaValues {
 public:
  template <class F>
    requires(!std::is_same_v<F, LlamaValues>)
  LlamaValues(F f)
      : of_([f = std::move(f)](const std::string& path) {
          const auto& values = f(path);
          return std::vector<float>(values.begin(), values.end());
        }) {}
  std::vector<float> operator()(const std::string& path) const { return of_(path); }

 private:
  std::function<std::vector<float>(const std::string&)> of_;
};

// Writes a GGUF file with the tokenizer, which must be of SentencePiece's kind. Matrices are stored as `type` (F32, F16
// or BF16), norms as f32. The architecture is "llama", or "qwen3" if queries and keys have norms; scaled RoPE is stored
// as rope_freqs.weight. llama.cpp ignores the sliding window of these architectures and computes something else beyond
// it. Throws Error for another type, for a vocabulary of another kind or size, and for the reasons of save_gguf().
void save_llama(const std::string& path, const LlamaModel& model, const LlamaValues& values, const Vocabulary& tokens,
                DType type = DType::BF16, const std::string& name = "");
// Writes the model in the format of the checkpoint `like` that it began from, with everything else in it: a GGUF file
// with the same metadata (and any tokenizer), or a folder with the same config.json and tokenizer and one
// model.safetensors. Types are as above. Throws Error for a llama2.c file, which cannot store types of weights.
void save_llama_like(const Weights& like, const std::string& path, const LlamaModel& model, const LlamaValues& values,
                     DType type = DType::BF16);

// Writes the adapters (nn::Lora) of the model in the format of Hugging Face's peft: adapter_model.safetensors and
// adapter_config.json in the folder. The rows of queries and keys are in the order of Hugging Face's checkpoints,
// whatever file the model came from. `base` is the name of the base model on a hub, or its path. Throws Error if there
// are no adapters, or if one belongs to another model.
void save_llama_adapters(const std::string& folder, const LlamaModel& model, std::span<const nn::Adapter> adapters,
                         const LlamaValues& values, const std::string& base = "");
// Reads adapters that save_llama_adapters() or peft wrote for the model: the values by the names of the parameters, in
// the row order of this model, whatever file it came from. Throws Error for adapters of other layers, ranks or scales,
// and for features beyond LoRA.
//   for (const auto& [name, v] : load_llama_adapters("adapter", llama, trainer.adapters())) trainer.context().set(name,
//   v);
std::map<std::string, std::vector<float>> load_llama_adapters(const std::string& folder, const LlamaModel& model,
                                                              std::span<const nn::Adapter> adapters);

}  // namespace lc
