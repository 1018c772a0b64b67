// Generates files that are valid except for chosen false claims. A generator describes a valid file and passes each
// length, count, type, number and word through a Mutator. The Mutator counts these positions in a first pass and
// falsifies the chosen ones in a second. Two false claims at once find errors that no single one finds: for example a
// length that fits a wrong count.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace fuzz {

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  // Sets the positions, by number, that are falsified from now on. Everything else is drawn as in the first pass.
  void lie_at(std::vector<std::size_t> places) { places_ = std::move(places); }
  std::size_t places() const { return at_; }

  std::uint64_t draw(std::uint64_t below) { return random_() % below; }
  bool lies() {
    for (std::size_t p : places_)
      if (p == at_) return ++at_, true;
    return ++at_, false;
  }
  // A length, count, offset or type that the file states.
  std::uint64_t number(std::uint64_t truth) {
    seen_.push_back(truth);
    return lies() ? other(truth) : truth;
  }
  // A number of items that the file really contains. A false one is larger or smaller, but small enough to be written.
  std::size_t count(std::size_t truth) {
    if (!lies()) return truth;
    const std::size_t wrong[] = {0, 1, truth ? truth - 1 : 2, truth + 1, truth / 2, 2 * truth + 1};
    return wrong[draw(std::size(wrong))];
  }
  std::string word(const std::string& truth) { return lies() ? other_word(truth) : truth; }
  std::uint64_t other(std::uint64_t truth);
  std::string other_word(const std::string& truth);

 private:
  std::mt19937_64 random_;
  std::vector<std::size_t> places_;
  std::vector<std::uint64_t> seen_;
  std::size_t at_ = 0;
};

// The files of one case. The first is the one to be read first.
struct Files {
  std::vector<std::pair<std::string, std::string>> files;  // name, bytes
};

struct Format {
  const char* name;
  Files (*make)(Mutator&);
  bool weights, tokenizer, chat = false, onnx = false;  // which kinds of content the format has
};
extern const std::vector<Format> kFormats;

// A table of characters and their replacements of SentencePiece.
std::string charsmap(Mutator&);
using Shapes = std::vector<std::pair<std::string, std::vector<int>>>;
// A folder of Hugging Face's with a small Llama, in one file or in two with an index; `shard` writes these tensors.
Files make_folder(Mutator& l, const std::string& name, const std::string& extension,
                  std::string (*shard)(Mutator&, const Shapes&));
Files make_gguf(Mutator&);
Files make_safetensors(Mutator&);
Files make_torch(Mutator&);
Files make_tokenizer_json(Mutator&);
Files make_sentencepiece(Mutator&);
Files make_llama2c(Mutator&);
Files make_llama2c_tokenizer(Mutator&);
Files make_chat_template(Mutator&);
Files make_onnx(Mutator&);

}  // namespace fuzz
