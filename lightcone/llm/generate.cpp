#include "lightcone/llm/generate.h"

#include <algorithm>

namespace lc::llm {

std::vector<int> prompt_tokens(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<int> ids = tokenizer.encode(text);
  if (tokenizer.vocabulary().add_eos && !ids.empty() && ids.back() == tokenizer.eos()) ids.pop_back();
  return ids;
}

Generated generate(Decoder& d, Sampler& pick, std::span<const float> logits, const GenerateOptions& o) {
  Generated g;
  for (;;) {
    const int id =
        pick(logits.last(std::min(logits.size(), static_cast<std::size_t>(d.vocabulary_size()))), d.tokens());
    if (o.ends && o.ends(id)) return g;
    g.tokens.push_back(id);
    if (o.on_token && !o.on_token(id)) g.end = End::Stopped;
    else if (o.max_tokens > 0 && g.tokens.size() >= static_cast<std::size_t>(o.max_tokens)) g.end = End::MaxTokens;
    else if (d.room() == 0) g.end = End::Context;
    if (g.end != End::Turn) return g;
    logits = d.feed(id);
    ++g.steps;
  }
}

}  // namespace lc::llm
