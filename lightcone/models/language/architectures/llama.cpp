// Llama 1 to 3 (H. Touvron et al., 2023) and SmolLM, Mistral (windows), Qwen 2 (biases) and Qwen 3 (norms of heads).
#include "lightcone/models/language/architectures/common.h"

namespace lc {
namespace {

void read_llama(const ConfigFile& c, LanguageConfig& l) { read_llama_keys(c, l); }

void read_mistral(const ConfigFile& c, LanguageConfig& l) {
  read_llama_keys(c, l);
  if (c.is_null("sliding_window")) return;
  for (LanguageLayerKind& layer : l.layers) layer.window = c.size("sliding_window", 4096);
}

void read_qwen2(const ConfigFile& c, LanguageConfig& l) {
  read_llama_keys(c, l);
  l.attention.query_bias = l.attention.key_bias = l.attention.value_bias = true;
  read_qwen_windows(c, l);
}

void read_qwen3(const ConfigFile& c, LanguageConfig& l) {
  read_llama_keys(c, l, {.head = 128});
  l.attention.norm = HeadNorm::Head;
  read_qwen_windows(c, l);
}

}  // namespace

constinit const LanguageArchitecture kLlama{"llama", "Llama", read_llama, kLlamaNames};
constinit const LanguageArchitecture kMistral{"mistral", "Mistral", read_mistral, kLlamaNames};
constinit const LanguageArchitecture kQwen2{"qwen2", "Qwen2", read_qwen2, kLlamaNames};
constinit const LanguageArchitecture kQwen3{"qwen3", "Qwen3", read_qwen3, kLlamaNames};

}  // namespace lc
