// SentenceEncoder: a model that gives each text a vector, so that texts of like meaning have like vectors
// (N. Reimers and I. Gurevych, "Sentence-BERT", 2019).
//
//   const SentenceEncoder model = SentenceEncoder::load("all-MiniLM-L6-v2");
//   const std::vector<std::string> texts{"A cat sleeps.", "A kitten is asleep."};
//   const std::vector<float> v = model.embed(texts);                      // [texts, model.width()]
//   const std::vector<double> c = cosines(v, texts.size());               // [texts, texts]
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lightcone/io/text/tokenizer.h"
#include "lightcone/models/files/loaded_model.h"
#include "lightcone/models/sentence/sentence_config.h"
#include "lightcone/passes/precision.h"

namespace lc {

// Options of SentenceEncoder::load().
struct SentenceOptions {
  std::optional<Pooling> pooling = {};  // in place of what the files say
  std::optional<bool> normalize = {};   // whether vectors have length 1, in place of what the files say
  std::int64_t length = 0;              // longest input in tokens; 0: what the files say. The rest of a text is cut off
  std::int64_t batch = 32;              // texts at once
  std::vector<std::string> ignore = {};   // keys of JSON files, see LoadModelOptions
  std::optional<Compiler> compiler = {};  // unset: default_compiler({threads, precision})
  int threads = 0;                        // threads of the default compiler; 0: all cores this process may use
  Precision precision = Precision::Highest;
  std::string tokenizer = {};  // a tokenizer file; "": the one beside the encoder
};

// A compiled model with its tokenizer. It is immutable: any number of threads may use it at once. Copies share it.
class SentenceEncoder {
 public:
  // Opens a folder of sentence-transformers, or of a plain encoder, whose vectors are then averaged. Throws Error for
  // the reasons of load_model(), and if there is no tokenizer.
  static SentenceEncoder load(const std::string& path, const SentenceOptions& o = {});

  // The vectors of texts, f32 [texts, width()], in their order. Texts of similar lengths are computed together, which
  // changes no result beyond rounding. `progress` is called with the finished part, 0 to 1. Throws Error for a text
  // that is not UTF-8.
  std::vector<float> embed(std::span<const std::string> texts,
                           const std::function<void(double part)>& progress = {}) const;
  std::int64_t width() const;            // components of a vector
  std::int64_t length() const;           // longest input in tokens
  const SentenceConfig& config() const;  // what the files said
  const Program& program() const;        // the compiled program
  const Tokenizer& tokenizer() const;
  // The text of a prompt, which callers write before their texts. Throws Error that names those that there are.
  const std::string& prompt(const std::string& name) const;

 private:
  struct Loaded;
  explicit SentenceEncoder(std::shared_ptr<const Loaded> loaded) : loaded_(std::move(loaded)) {}
  std::shared_ptr<const Loaded> loaded_;
};

// The cosines of the angles between `count` vectors [count, width]: [count, count]. A vector of zeros gives 0.
std::vector<double> cosines(std::span<const float> vectors, std::size_t count);

}  // namespace lc
