// tokenizer.json's added tokens: they are found in a text before it is cut, some as it stands and some once it is
// normalised.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lightcone/io/json_internal.h"
#include "lightcone/io/read_options.h"
#include "lightcone/io/text/pieces/longest_match.h"
#include "lightcone/io/text/pieces/string_map.h"
#include "lightcone/io/text/steps/normalizer.h"

namespace lc {

struct AddedToken {
  std::string content;  // as the file has it
  std::string spelled;  // as it is found and decoded: normalised where it is
  int id = -1;
  bool single_word = false, left = false, right = false, normalized = false, special = false;
};

class AddedTokens {
 public:
  AddedTokens() = default;
  // model(text) is the id of a model's token, or -1; `size`: how many of them there are. Tokens that are not among them
  // get the next ids, and the file has to agree.
  AddedTokens(io::Json list, const Normalizer& normalizer, const std::function<int(std::string_view)>& model,
              std::size_t size, Budget& budget);

  const std::vector<AddedToken>& all() const { return all_; }
  bool special(std::string_view text) const { return specials_.contains(text); }
  // part(begin, end, id) for the parts of a text, in order; -1: no token. `normalized`: which of the tokens.
  // `specials`: special ones are found, too.
  template <class Part>
  void split(std::string_view text, bool normalized, bool specials, const Part& part) const;

 private:
  struct Found {
    std::size_t begin, end;
  };
  // Whether a token counts where it stands, and the spaces that it takes along.
  bool fits(const AddedToken& t, std::string_view text, std::size_t done, Found& at) const;
  void index(Budget& budget);

  std::vector<AddedToken> all_;
  StringMap specials_;
  std::shared_ptr<const LongestMatch> plain_, normalized_;  // of all_, by their places
};

template <class Part>
void AddedTokens::split(std::string_view text, bool normalized, bool specials, const Part& part) const {
  std::size_t done = 0, at = 0;
  if (const auto& tokens = normalized ? normalized_ : plain_)
    tokens->cover(text, [&](int place, std::size_t bytes) {
      at += bytes;
      if (place == LongestMatch::kAny) return;
      const AddedToken& t = all_[static_cast<std::size_t>(place)];
      Found found{at - bytes, at};
      if ((!specials && special(t.content)) || !fits(t, text, done, found)) return;
      if (found.begin > done) part(done, found.begin, -1);
      if (found.begin < found.end) part(found.begin, found.end, t.id);
      done = found.end;
    });
  if (done < text.size()) part(done, text.size(), -1);
}

}  // namespace lc
