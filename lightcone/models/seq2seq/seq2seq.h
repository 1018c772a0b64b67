// Seq2Seq: an encoder-decoder that turns a text into another one: a translation, a summary, an answer.
//
//   const Seq2Seq model = Seq2Seq::load("flan-t5-small");
//   std::cout << model.generate("translate English to German: The house is wonderful.") << '\n';
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/io/text/tokenizer.h"
#include "lightcone/llm/decoder.h"
#include "lightcone/models/seq2seq/cached_decoder.h"
#include "lightcone/models/seq2seq/generation.h"
#include "lightcone/passes/precision.h"

namespace lc {

// Options of Seq2Seq::load().
struct Seq2SeqOptions {
  std::int64_t beams = 0;                 // 1: greedy search; 0: as generation_config.json says
  std::int64_t source = 0, context = 0;   // longest source and text in tokens; 0: the model's own, at most 1024
  std::optional<Compiler> compiler = {};  // unset: default_compiler({threads, precision})
  int threads = 0;                        // threads of the default compiler; 0: all cores this process may use
  Precision precision = Precision::Highest;
  std::vector<std::string> ignore = {};  // keys of config.json, see LoadModelOptions
  std::string tokenizer = {};            // a tokenizer file; "": the one beside the model
};

// Options of Seq2Seq::generate().
struct Seq2SeqGenerateOptions {
  int max_tokens = 0;      // limit of the generated tokens; 0: max_length of the files, or the room of the context
  std::string first = {};  // the token that begins the text, such as a language of mBART's: "fr_XX"
  // Greedy search: receives each token; returns false to stop.
  std::function<bool(int token)> on_token = {};
};

// A compiled model with its tokenizer. It is immutable: any number of threads may use it at once. Copies share it.
class Seq2Seq {
 public:
  // Opens a folder with config.json and weights. Throws Error for the reasons of load_model(), and for a model that
  // takes no text or predicts none.
  static Seq2Seq load(const std::string& path, const Seq2SeqOptions& o = {});
  static Seq2Seq load(const Weights& w, const Seq2SeqOptions& o = {});

  // The text that the model makes of another one. Throws Error if there is no tokenizer, for a text that is not UTF-8
  // or too long, and for a first token that does not exist.
  std::string generate(std::string_view text, const Seq2SeqGenerateOptions& o = {}) const;
  // The same for ids, without the start and the token that ends the text. Throws Error as CachedDecoder.
  std::vector<int> generate(std::span<const int> source, const Seq2SeqGenerateOptions& o = {}) const;
  // The ids of a text as the model expects a source, with the tokens around it.
  std::vector<int> source(std::string_view text) const;
  // A decoder that has read a source, for llm::generate() with a Sampler: the start of the text is its first token. It
  // may outlive this object. Throws Error if the model was loaded with several beams.
  std::unique_ptr<llm::Decoder> decoder(std::span<const int> source) const;

  const Tokenizer& tokenizer() const;  // throws Error if there is none
  const Seq2SeqGeneration& generation() const;
  const Seq2SeqPrograms& programs() const;
  bool ends(int token) const;  // true for a token that ends a text

 private:
  struct Loaded;
  explicit Seq2Seq(std::shared_ptr<const Loaded> loaded) : loaded_(std::move(loaded)) {}
  std::shared_ptr<const Loaded> loaded_;
};

}  // namespace lc
