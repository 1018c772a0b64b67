#include "lightcone/io/text/steps/post_processor.h"

#include <algorithm>
#include <limits>

#include "lightcone/io/text/steps/fields.h"

namespace lc {
namespace {

using io::Json;

constexpr std::int64_t kMostIds = std::numeric_limits<int>::max() - 1;
constexpr std::int64_t kMostLength = 1 << 20;  // maximum length of padding, which takes time and memory for any text
constexpr std::size_t kMostParts = 64;

int token_id(const Fields& f, Json j) {
  const std::optional<std::int64_t> id = j.integer();
  if (!id || *id < 0 || *id > kMostIds) f.fail("an id is not the number of a token");
  return static_cast<int>(*id);
}

// Reads a token such as ["[SEP]", 3].
std::vector<int> named_token(const Fields& f, std::string_view key) {
  const Json pair = f.list(key);
  if (pair.size() != 2 || !pair[0].is(Json::Kind::String)) f.fail(in_quotes(key), " is not a token and its id");
  return {token_id(f, pair[1])};
}

}  // namespace

PostProcessor::Step PostProcessor::around_of(Json j, bool roberta) {
  const Fields f = roberta ? Fields(j, "the post-processor RobertaProcessing",
                                    {"type", "sep", "cls", "trim_offsets", "add_prefix_space"})
                           : Fields(j, "the post-processor BertProcessing", {"type", "sep", "cls"});
  if (roberta) f.flag("trim_offsets"), f.flag("add_prefix_space");  // for offsets in the text, which are not computed
  Step s;
  s.cls = named_token(f, "cls"), s.sep = named_token(f, "sep"), s.roberta = roberta;
  return s;
}

PostProcessor::Step PostProcessor::template_of(Json j) {
  const Fields f(j, "the post-processor TemplateProcessing", {"type", "single", "pair", "special_tokens"});
  const Json specials = f.member("special_tokens", Json::Kind::Object, "an object");
  const auto read = [&](const char* key, int sequences) {
    Template t;
    const Json list = f.list(key);
    if (list.size() > kMostParts)
      f.fail(in_quotes(key), " has ", list.size(), " parts; at most ", kMostParts, " are supported");
    for (const auto& [unnamed, part] : list) {
      const Fields one(part, str_cat(f.what(), ", a part of ", in_quotes(key)), {"Sequence", "SpecialToken"});
      if (one.has("Sequence") == one.has("SpecialToken")) one.fail("it is neither a Sequence nor a SpecialToken");
      const bool sequence = one.has("Sequence");
      const Fields what(part[sequence ? "Sequence" : "SpecialToken"], one.what(), {"id", "type_id"});
      const int type = static_cast<int>(what.number("type_id", 0, 0, kMostIds));
      if (sequence) {
        const int n = what.choice("id", {"A", "B"}, 0);
        if (n >= sequences) what.fail("a single text has no second sequence");
        t.push_back({n, type, {}});
        continue;
      }
      const std::string_view name = what.required_text("id");
      const Json token = specials[name];
      if (token.absent()) what.fail("'special_tokens' does not have ", in_quotes(name));
      const Fields special(token, str_cat(f.what(), ", the token ", in_quotes(name)), {"id", "ids", "tokens"});
      special.text("id"), special.list("tokens");
      t.push_back({-1, type, {}});
      for (const auto& [none, id] : special.list("ids")) t.back().ids.push_back(token_id(special, id));
    }
    return t;
  };
  Step s;
  s.is_template = true;
  if (!f.has("single")) f.fail("it has no 'single'");
  s.single = read("single", 1), s.pair = read("pair", 2);
  return s;
}

PostProcessor::PostProcessor(Json processor, Budget& budget) {
  for (const Json& j : components(processor, "the post-processor", "processors")) {
    budget.take(1024);
    const std::string_view type = type_of(j, "the post-processor");
    if (type == "ByteLevel") {
      const Fields f(j, "the post-processor ByteLevel", {"type", "add_prefix_space", "trim_offsets", "use_regex"});
      f.flag("add_prefix_space"), f.flag("trim_offsets"), f.flag("use_regex");  // for offsets in the text
    } else if (type == "TemplateProcessing") {
      steps_.push_back(template_of(j));
      for (const Part& p : steps_.back().single) added_ += p.ids.size();
      for (const Part& p : steps_.back().pair) added_to_pair_ += p.ids.size();
      budget.take(added_ + added_to_pair_, 2 * sizeof(int));
    } else if (type == "BertProcessing" || type == "RobertaProcessing") {
      steps_.push_back(around_of(j, type == "RobertaProcessing"));
      added_ += 2, added_to_pair_ += steps_.back().roberta ? 4 : 3;
    } else {
      throw Error("tokenizer", str_cat("the post-processor ", in_quotes(type), " is not known"));
    }
  }
}

PostProcessor::Sequences PostProcessor::applied(const Step& s, Sequences all, bool specials) {
  Sequences made;
  if (s.is_template) {
    if (all.empty() || all.size() > 2)
      throw Error("tokenizer", str_cat("the post-processor TemplateProcessing stands behind another one that makes ",
                                       all.size(), " sequences of a text, and takes one or two"));
    for (const Part& p : all.size() == 2 ? s.pair : s.single) {
      if (p.sequence < 0 && !specials) continue;
      made.push_back({p.sequence < 0 ? p.ids : all[static_cast<std::size_t>(p.sequence)].ids, {}});
      made.back().types.assign(made.back().ids.size(), p.type);
    }
    return made;
  }
  for (TypedIds& t : all)
    if (s.roberta) t.types.assign(t.ids.size(), 0);
  const auto around = [](std::vector<int>& v, const std::vector<int>& before, const std::vector<int>& behind) {
    v.insert(v.begin(), before.begin(), before.end());
    v.insert(v.end(), behind.begin(), behind.end());
  };
  for (std::size_t i = 0; specials && i < all.size(); ++i) {
    const std::vector<int> before = i == 0 ? s.cls : s.roberta ? s.sep : std::vector<int>();
    const int type = i == 0 || s.roberta ? 0 : 1;
    around(all[i].ids, before, s.sep);
    around(all[i].types, std::vector<int>(before.size(), type), std::vector<int>(s.sep.size(), type));
  }
  return all;
}

std::vector<TypedIds> typed(std::vector<std::vector<int>> texts) {
  std::vector<TypedIds> all;
  for (std::vector<int>& ids : texts) {
    all.push_back({std::move(ids), {}});
    all.back().types.assign(all.back().ids.size(), static_cast<int>(all.size()) - 1);
  }
  return all;
}

TypedIds PostProcessor::apply(std::vector<TypedIds> texts, bool specials) const {
  Sequences all = std::move(texts);
  for (const Step& s : steps_) all = applied(s, std::move(all), specials);
  if (all.size() == 1) return std::move(all[0]);
  TypedIds out;
  for (const TypedIds& t : all) {
    out.ids.insert(out.ids.end(), t.ids.begin(), t.ids.end());
    out.types.insert(out.types.end(), t.types.begin(), t.types.end());
  }
  return out;
}

std::pair<std::vector<int>, std::vector<int>> PostProcessor::around() const try {
  const std::vector<int> all = apply(typed({{-1}}), true).ids;
  const auto first = std::find(all.begin(), all.end(), -1);
  if (first == all.end()) return {};
  return {{all.begin(), first}, {std::find(all.rbegin(), all.rend(), -1).base(), all.end()}};
} catch (const Error&) {
  return {};  // it takes no single text; apply() reports that
}
int PostProcessor::largest() const {
  int most = -1;
  for (const Step& s : steps_) {
    for (const std::vector<int>* ids : {&s.cls, &s.sep})
      for (const int id : *ids) most = std::max(most, id);
    for (const Template* t : {&s.single, &s.pair})
      for (const Part& p : *t)
        for (const int id : p.ids) most = std::max(most, id);
  }
  return most;
}

Truncation::Truncation(Json truncation) {
  if (truncation.absent()) return;
  const Fields f(truncation, "the truncation", {"direction", "max_length", "strategy", "stride"});
  any_ = true;
  left_ = f.choice("direction", {"Right", "Left"}, 0) == 1;
  strategy_ = f.choice("strategy", {"LongestFirst", "OnlyFirst", "OnlySecond"}, 0);
  if (!f.has("max_length")) f.fail("it has no 'max_length'");
  most_ = static_cast<std::size_t>(f.number("max_length", 0, 0, std::numeric_limits<std::int64_t>::max()));
  stride_ = static_cast<std::size_t>(f.number("stride", 0, 0, std::numeric_limits<std::int64_t>::max()));
}

void Truncation::cut(std::vector<int>& ids, std::size_t most) const {
  if (ids.size() <= most) return;
  if (stride_ >= most && most > 0)
    throw Error("tokenizer", str_cat("the file's truncation to ", most, " tokens has a stride of ", stride_));
  if (left_) ids.erase(ids.begin(), ids.end() - static_cast<std::ptrdiff_t>(most));
  else ids.resize(most);
}

void Truncation::apply(std::vector<std::vector<int>>& texts, std::size_t added) const {
  if (strict_ && added >= most_)
    throw Error("tokenizer",
                str_cat("a length of ", most_, " has no room for a text beside the ", added, " tokens around it"));
  if (!any_ || added > most_) return;  // the reference's unsigned difference wraps around: nothing is truncated
  const std::size_t most = most_ - added;
  std::size_t total = 0;
  for (const std::vector<int>& ids : texts) total += ids.size();
  if (total <= most) return;
  if (most == 0) {
    for (std::vector<int>& ids : texts) ids.clear();
  } else if (strategy_ != 0) {  // one of the texts alone
    if (strategy_ == 2 && texts.size() == 1)
      throw Error("tokenizer", "the file's truncation cuts the second text alone, and there is one");
    std::vector<int>& ids = texts[strategy_ == 2 ? 1 : 0];
    if (ids.size() <= total - most)
      throw Error("tokenizer",
                  str_cat("the file's truncation to ", most, " tokens cuts the ", strategy_ == 2 ? "second" : "first",
                          " text alone, which has ", ids.size(), " of ", total));
    cut(ids, ids.size() - (total - most));
  } else if (texts.size() == 1) {
    cut(texts[0], most);
  } else {  // the longer one, or both to halves
    const bool first_longer = texts[0].size() > texts[1].size();
    std::size_t shorter = std::min(texts[0].size(), texts[1].size()), longer = most / 2 + most % 2;
    if (shorter > most || shorter + std::max(shorter, most - shorter) > most) shorter = most / 2;
    else longer = most - shorter;
    cut(texts[0], first_longer ? longer : shorter);
    cut(texts[1], first_longer ? shorter : longer);
  }
}

Padding::Padding(Json padding) {
  if (padding.absent()) return;
  const Fields f(padding, "the padding",
                 {"strategy", "direction", "pad_to_multiple_of", "pad_id", "pad_type_id", "pad_token"});
  any_ = true;
  const Json strategy = f["strategy"];
  if (strategy.is(Json::Kind::Object))
    length_ = static_cast<std::size_t>(
        Fields(strategy, "the padding, its strategy", {"Fixed"}).number("Fixed", 0, 0, kMostLength));
  else f.choice("strategy", {"BatchLongest"}, 0);
  left_ = f.choice("direction", {"Right", "Left"}, 0) == 1;
  multiple_ = static_cast<std::size_t>(f.number("pad_to_multiple_of", 0, 0, kMostLength));
  id_ = static_cast<int>(f.number("pad_id", 0, 0, kMostIds));
  type_ = static_cast<int>(f.number("pad_type_id", 0, 0, kMostIds));
  f.text("pad_token");
}

std::size_t Padding::apply(TypedIds& t) const {
  if (!any_) return 0;
  std::size_t length = length_ > 0 ? length_ : t.ids.size();
  if (multiple_ > 0 && length % multiple_ > 0) length += multiple_ - length % multiple_;
  if (t.ids.size() >= length) return 0;
  const std::size_t n = length - t.ids.size();
  t.ids.insert(left_ ? t.ids.begin() : t.ids.end(), n, id_);
  t.types.insert(left_ ? t.types.begin() : t.types.end(), n, type_);
  return n;
}

}  // namespace lc
