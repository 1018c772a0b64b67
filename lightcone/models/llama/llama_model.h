// LlamaModel: a Llama for training, a module of which the parameters have Hugging Face's names. It has the layers of
// inference.
//
//   Graph g;
//   nn::Model<LlamaModel> model(g, LlamaModel(config));
//   auto loss = trace(model, [](auto& net, const Tensor& x, const Tensor& y) {
//     return llm::next_token_loss(net, x, y);
//   }, ids, next);   // i64 [batch, length] each
//
// Training can also continue from a checkpoint: LlamaModel::of(weights), then Trainer::load_parameters(weights, ...)
// for the values. save_llama() writes files for Llama::load() and the command `lightcone generate`.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lightcone/io/text/tokenizer.h"
#include "lightcone/llm/loss.h"
#include "lightcone/llm/parameters.h"
#include "lightcone/models/llama/llama_config.h"
#include "lightcone/nn/module.h"

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
  //   trainer.load_parameters(w, [&](const std::string& path) { return llm::name_in_file(w, path); });
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
  // Returns the parameters of the model, in the order of visit(). llm::save_like() and llm::save_adapters()
  // (llm/checkpoint.h, llm/adapters.h) write files of them.
  std::vector<llm::ParameterInfo> parameters() const;
  bool has_query_key_norms() const { return o_.query_key_norms; }  // true if queries and keys are normalised

 private:
  Tensor logits(const Tensor& ids, const std::function<Tensor(const Tensor& causal)>& mask) const;

  LlamaConfig config_;
  LlamaModelOptions o_;
  std::map<std::string, Tensor> tensors_;  // by path, in the graph of the last visit()
};

// Writes a GGUF file with the tokenizer, which must be of SentencePiece's kind. Matrices are stored as `type` (F32, F16
// or BF16), norms as f32. The architecture is "llama", or "qwen3" if queries and keys have norms; scaled RoPE is stored
// as rope_freqs.weight. llama.cpp ignores the sliding window of these architectures and computes something else beyond
// it. Throws Error for another type, for a vocabulary of another kind or size, and for the reasons of save_gguf().
void save_llama(const std::string& path, const LlamaModel& model, const llm::ParameterValues& values,
                const Vocabulary& tokens, DType type = DType::BF16, const std::string& name = "");

}  // namespace lc
