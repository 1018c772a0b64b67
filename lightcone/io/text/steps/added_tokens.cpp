#include "lightcone/io/text/steps/added_tokens.h"

#include <algorithm>
#include <limits>

#include "lightcone/io/text/pieces/characters.h"
#include "lightcone/io/text/steps/fields.h"

namespace lc {
namespace {

// Returns the last character of a text, which must not be empty, and its position.
std::uint32_t last_character(std::string_view text, std::size_t* begin) {
  std::size_t at = text.size() - 1, size;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  *begin = at;
  return utf8_decode(text, at, &size);
}

AddedToken read_token(const Fields& f) {
  AddedToken t;
  const std::int64_t id = f.number("id", -1, 0, std::numeric_limits<int>::max() - 1);
  if (id < 0) f.fail("it has no id");
  t.id = static_cast<int>(id);
  t.content = f.required_text("content");
  t.special = f.flag("special");
  t.single_word = f.flag("single_word"), t.left = f.flag("lstrip"), t.right = f.flag("rstrip");
  t.normalized = f.flag("normalized", !t.special);
  return t;
}

}  // namespace

AddedTokens::AddedTokens(io::Json list, const Normalizer& normalizer, const std::function<int(std::string_view)>& model,
                         std::size_t size, Budget& budget) {
  if (list.absent()) return;
  if (!list.is(io::Json::Kind::Array)) throw Error("tokenizer", "'added_tokens' is not a list");
  budget.take(list.size(), 2 * sizeof(AddedToken) + 2 * kIndexBytes);
  all_.reserve(list.size());  // the maps refer to its elements
  StringMap places;
  auto next = static_cast<std::int64_t>(size);
  for (const auto& [unnamed, j] : list) {
    const Fields f(j, "an added token", {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
    AddedToken t = read_token(f);
    if (t.content.empty()) continue;
    budget.take(3 * t.content.size());
    const auto known = places.find(t.content);
    const int own = known != places.end() ? all_[static_cast<std::size_t>(known->second)].id : model(t.content);
    if (const std::int64_t id = own >= 0 ? own : next++; id != t.id)
      f.fail(in_quotes(t.content), " has the id ", t.id, "; by the vocabulary and its place it is ", id);
    t.spelled = t.normalized && !normalizer.empty() ? normalizer(t.content) : t.content;
    if (t.spelled.empty()) f.fail("nothing is left of ", in_quotes(t.content), " once it is normalised");
    budget.take(t.spelled.size());
    if (known != places.end()) {
      AddedToken& before = all_[static_cast<std::size_t>(known->second)];
      t.special = t.special || before.special;
      std::swap(before.spelled, t.spelled);
      before.single_word = t.single_word, before.left = t.left, before.right = t.right;
      before.normalized = t.normalized, before.special = t.special;
      continue;
    }
    all_.push_back(std::move(t));
    places.try_emplace(all_.back().content, static_cast<int>(all_.size()) - 1);
  }
  index(budget);
}

void AddedTokens::index(Budget& budget) {
  for (std::size_t i = 0; i < all_.size(); ++i)
    if (all_[i].special) specials_.try_emplace(all_[i].content, static_cast<int>(i));
  for (const bool normalized : {false, true}) {
    std::vector<std::pair<std::string_view, int>> found;
    StringMap seen;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (all_[i].normalized != normalized) continue;
      if (!seen.try_emplace(all_[i].spelled, 0).second)
        throw Error("tokenizer", str_cat("two added tokens are spelled ", in_quotes(all_[i].spelled)));
      found.emplace_back(all_[i].spelled, static_cast<int>(i));
    }
    if (!found.empty())
      (normalized ? normalized_ : plain_) = std::make_shared<const LongestMatch>(std::move(found), true, &budget);
  }
}

bool AddedTokens::fits(const AddedToken& t, std::string_view text, std::size_t done, Found& at) const {
  std::size_t size, begin;
  if (t.single_word && ((at.begin > 0 && is_word_character(last_character(text.substr(0, at.begin), &begin))) ||
                        (at.end < text.size() && is_word_character(utf8_decode(text, at.end, &size)))))
    return false;
  if (t.left) at.begin = std::max(at.begin, done);  // the previous token may have absorbed the spaces
  while (t.left && at.begin > done && is_white_space(last_character(text.substr(0, at.begin), &begin)))
    at.begin = begin;
  while (t.right && at.end < text.size() && is_white_space(utf8_decode(text, at.end, &size))) at.end += size;
  return true;
}

}  // namespace lc
