#include "mutator.h"

#include <iterator>

namespace fuzz {

std::uint64_t Mutator::other(std::uint64_t truth) {
  const std::uint64_t one = 1;
  const std::uint64_t wrong[] = {0,
                                 1,
                                 truth - 1,
                                 truth + 1,
                                 truth * 2,
                                 truth / 2,
                                 truth + 8,
                                 255,
                                 one << 31,
                                 (one << 31) - 1,
                                 one << 32,
                                 (one << 32) - 1,
                                 one << 63,
                                 ~(one << 63),
                                 ~std::uint64_t{0},
                                 10'000'000,
                                 1'000'000'000,
                                 one << 48,
                                 draw(16),
                                 draw(300),
                                 seen_[draw(seen_.size())],
                                 one << 40,
                                 7};
  return wrong[draw(std::size(wrong))];
}

std::string Mutator::other_word(const std::string& truth) {
  static const std::string kWords[] = {"",
                                       "x",
                                       "\x1b[2J\x1b]0;gone\x07",
                                       "\xE2\x80\xAE"
                                       "abc",
                                       "\xff\xfe",
                                       std::string(3000, 'y'),
                                       "../x",
                                       "BPE",
                                       "WordPiece",
                                       "Unigram",
                                       "Sequence",
                                       "ByteLevel",
                                       "llama",
                                       "gpt2",
                                       "bert",
                                       "default",
                                       "qwen2",
                                       "mistral",
                                       "linear",
                                       "llama3",
                                       "F32",
                                       "BF16",
                                       "U8",
                                       "F8_E4M3",
                                       "Isolated",
                                       "(a+)+$",
                                       "((((((((((a*)*)*)*)*)*)*)*)*)*b",
                                       "[",
                                       " ",
                                       "a b",
                                       "a",
                                       "\xE2\x96\x81",
                                       "<0x41>",
                                       std::string("a\0b", 3),
                                       "TemplateProcessing",
                                       "model.norm.weight"};
  const std::uint64_t which = draw(std::size(kWords) + 4);
  if (which < std::size(kWords)) return kWords[which];
  if (which == std::size(kWords)) return truth + truth;
  if (which == std::size(kWords) + 1) return truth.substr(0, truth.size() / 2);
  if (which == std::size(kWords) + 2) return truth + "\n";
  std::string changed = truth;
  if (!changed.empty()) changed[draw(changed.size())] = static_cast<char>(draw(256));
  return changed;
}

const std::vector<Format> kFormats = {{"gguf", make_gguf, true, true},
                                      {"safetensors", make_safetensors, true, true},
                                      {"torch", make_torch, true, false},
                                      {"tokenizer-json", make_tokenizer_json, false, true},
                                      {"sentencepiece", make_sentencepiece, false, true},
                                      {"llama2c", make_llama2c, true, false},
                                      {"llama2c-tokenizer", make_llama2c_tokenizer, false, true},
                                      {"chat-template", make_chat_template, false, false, true},
                                      {"onnx", make_onnx, false, false, false, true}};

}  // namespace fuzz
