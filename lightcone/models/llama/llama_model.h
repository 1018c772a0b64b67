// A Llama that trains: a module whose parameters have Hugging Face's names, with the layers that inference has.
//
//   Graph g;
//   nn::Model<LlamaModel> model(g, LlamaModel(config));
//   auto loss = trace(model, next_token_loss, ids, next);   // i64 [batch, length] each
//
// It also goes on from a checkpoint: LlamaModel::of(weights), and Trainer::load_parameters(weights, ...) for the
// values. save_llama() writes what Llama::load() and the command `lightcone generate` read.
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

struct LlamaModelOptions {
  bool tied = true;                      // the head is the embedding table; otherwise lm_head.weight
  std::vector<std::string> biases = {};  // linear layers of a block that have one: "self_attn.q_proj", ... (Qwen 2)
  bool query_key_norms = false;          // of each head (Qwen 3)
};

class LlamaModel {
 public:
  // Error where the numbers make no model. Frequencies of RoPE that are left out are those of rope_theta.
  explicit LlamaModel(LlamaConfig c, const LlamaModelOptions& o = {});
  // The model of a checkpoint: its numbers, its biases and norms, and whether it has a head of its own. Its values:
  //   trainer.load_parameters(w, [&](const std::string& path) { return llama_file_name(w, path); });
  static LlamaModel of(const Weights& w);
  // First values: normal(0, 0.02), what ends a layer's halves divided by sqrt(2 layers) (GPT-2), norms 1.
  void visit(nn::Visitor& v);
  // ids i64 [batch, length] -> logits [batch, length, vocab], each of the token behind.
  Tensor operator()(const Tensor& ids) const;
  // The same of rows into which several texts are packed: `segments` i64 [batch, length] numbers them, and a token sees
  // those of its own number alone. (Positions go on through a row: RoPE sees distances.)
  Tensor operator()(const Tensor& ids, const Tensor& segments) const;
  const LlamaConfig& config() const { return config_; }
  // A tensor of the model: its path, which is its name in PyTorch's state_dict, and its shape.
  struct Part {
    std::string path;
    std::vector<std::int64_t> shape;
  };
  std::vector<Part> parts() const;
  bool has_query_key_norms() const { return o_.query_key_norms; }

 private:
  Tensor logits(const Tensor& ids, const std::function<Tensor(const Tensor& causal)>& mask) const;

  LlamaConfig config_;
  LlamaModelOptions o_;
  std::map<std::string, Tensor> tensors_;  // by path, of the graph that visit() was for
};

// The mean cross entropy of the tokens that follow: ids and next, i64 [batch, length]. Of a model in training, or any
// other that gives logits.
template <class Model>
Tensor next_token_loss(Model& model, const Tensor& ids, const Tensor& next, Reduction reduction = Reduction::Mean) {
  const Tensor logits = model(ids);
  const Dim tokens = logits.extent(0) * logits.extent(1);
  return cross_entropy(logits.reshape({tokens, logits.extent(2)}), next.reshape({tokens}), {.reduction = reduction});
}

// The f32 values of a part, by its path: any function that gives a span or a vector (Trainer::values, Trainer::merged).
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

// A GGUF file with the tokenizer (of SentencePiece's kind) inside: matrices as `type` (F32, F16 or BF16), norms in f32.
// Its architecture is "llama", or "qwen3" where queries and keys have norms; scaled positions are rope_freqs.weight.
// llama.cpp reads no sliding window of these: behind one it computes something else. Error for another type, and as
// save_gguf().
void save_llama(const std::string& path, const LlamaModel& model, const LlamaValues& values, const Vocabulary& tokens,
                DType type = DType::BF16, const std::string& name = "");
// A checkpoint of the kind of `like`, which the model is of, with everything else that is said there: a GGUF file with
// the same metadata (any tokenizer), or a folder with the same config.json and tokenizer and one model.safetensors.
// Types as above. Error for llama2.c's files, which have no place for types.
void save_llama_like(const Weights& like, const std::string& path, const LlamaModel& model, const LlamaValues& values,
                     DType type = DType::BF16);

// Adapters (nn::Lora) of the model as Hugging Face's peft has them: adapter_model.safetensors and adapter_config.json
// in the folder, with queries' and keys' rows as in Hugging Face's checkpoints whatever file the model came from.
// `base`: where that is, as its name on a hub or as a path. Error where there are no adapters, or one is of another
// model.
void save_llama_adapters(const std::string& folder, const LlamaModel& model, std::span<const nn::Adapter> adapters,
                         const LlamaValues& values, const std::string& base = "");
// What that or peft wrote for the model's adapters: their values by the names of parameters, in the order that this
// model has, from whatever file it came.
//   for (const auto& [name, v] : load_llama_adapters("adapter", llama, trainer.adapters())) trainer.context().set(name,
//   v);
// Error for adapters of other layers, ranks or scales, and for what is more than LoRA.
std::map<std::string, std::vector<float>> load_llama_adapters(const std::string& folder, const LlamaModel& model,
                                                              std::span<const nn::Adapter> adapters);

}  // namespace lc
