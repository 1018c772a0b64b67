#include "lightcone/llm/decoder.h"

#include <algorithm>

#include "lightcone/base/error.h"

namespace lc::llm {

Decoder::Decoder(const DecoderSizes& sizes) : sizes_(sizes) {
  if (sizes.vocabulary < 1 || sizes.context < 1)
    throw Error("decoder", str_cat("a vocabulary of ", sizes.vocabulary, " tokens and a context of ", sizes.context,
                                   " positions make no decoder"));
  if (sizes_.step < 1) sizes_.step = sizes_.context;
  tokens_.reserve(static_cast<std::size_t>(sizes_.context));
}

std::int64_t Decoder::room() const { return sizes_.context - static_cast<std::int64_t>(tokens_.size()); }

std::span<const float> Decoder::feed(std::span<const int> tokens) {
  if (tokens.empty()) throw Error("feed", "no tokens");
  if (static_cast<std::int64_t>(tokens.size()) > room())
    throw Error("feed", str_cat(tokens.size(), " tokens after ", tokens_.size(), " do not fit the context of ",
                                sizes_.context));
  for (int t : tokens)
    if (t < 0 || t >= sizes_.vocabulary)
      throw Error("feed", str_cat("token ", t, " is outside the vocabulary of ", sizes_.vocabulary));
  logits_.clear();
  std::span<const float> last;
  const auto past = static_cast<std::int64_t>(tokens_.size());
  for (std::size_t at = 0; at < tokens.size();) {
    const auto now = tokens.subspan(at, std::min(tokens.size() - at, static_cast<std::size_t>(sizes_.step)));
    last = step(now, past + static_cast<std::int64_t>(at));
    if (sizes_.all_logits) logits_.insert(logits_.end(), last.begin(), last.end());
    at += now.size();
  }
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  return sizes_.all_logits ? logits_ : last;
}

// Positions of the cache after the kept tokens are overwritten before they are read again.
void Decoder::truncate(std::size_t tokens) {
  if (tokens > tokens_.size()) throw Error("truncate", str_cat("there are ", tokens_.size(), " tokens, not ", tokens));
  tokens_.resize(tokens);
}

void Decoder::reset() {
  tokens_.clear();
  clear();
}

}  // namespace lc::llm
