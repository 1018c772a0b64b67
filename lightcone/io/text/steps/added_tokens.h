// The added tokens of tokenizer.json. They are found in a text before it is split, some in the original text and some
// in the normalised text.
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

// An added token, with the fields of the file.
struct AddedToken {
  std::string content;  // as in the file
  std::string spelled;  // as it is found and decoded: normalised if `normalized`
  int id = -1;
  bool single_word = false, left = false, right = false, normalized = false, special = false;
};

// The added tokens of a file.
class AddedTokens {
 public:
  AddedTokens() = default;
  // model(text) returns the id of a token of the model, or -1; `size` is the number of those. Added tokens that are not
  // among them get the next ids. Throws Error if the file has other ids.
  AddedTokens(io::Json list, const Normalizer& normalizer, const std::function<int(std::string_view)>& model,
              std::size_t size, Budget& budget);

  const std::vector<AddedToken>& all() const { return all_; }
  bool special(std::string_view text) const { return specials_.contains(text); }
  // Calls part(begin, end, id) for the parts of a text in order, with id -1 for text without a token. `normalized`
  // selects the tokens to find. Special tokens are found only if `specials`.
  template <class Part>
  void split(std::string_view text, bool normalized, bool specials, const Part& part) const;

 private:
  struct Found {
    std::size_t begin, end;
  };
  // Returns true if a token is valid at this position, and extends it by the spaces that it absorbs.
  bool fits(const AddedToken& t, std::string_view text, std::size_t done, Found& at) const;
  void index(Budget& budget);

  std::vector<AddedToken> all_;
  StringMap specials_;
  std::shared_ptr<const LongestMatch> plain_, normalized_;  // values are indices into all_
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
