// Conversations, questions with answers, and texts, one per line of JSON. A language model learns the answers.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include <nlohmann/json.hpp>

#include "data.h"
#include "lightcone/base/error.h"
#include "lightcone/io/data/loader.h"
#include "lightcone/io/data/text.h"
#include "lightcone/io/printable.h"
#include "lightcone/io/utf8.h"

namespace lc::tool {
namespace {

using Json = nlohmann::json;
constexpr i64 kNotLearned = -100;  // cross_entropy's ignore_index

// Tokens, and which of them are learned.
struct ChatTokens {
  std::vector<int> ids;
  std::vector<bool> learned;
};

std::size_t common(const std::vector<int>& a, const std::vector<int>& b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

class Examples {
 public:
  Examples(const Tokenizer& tokens, const ChatTemplateSource& source) : tokens_(tokens) {
    if (!source.text.empty()) template_.emplace(source, &tokens);
  }
  ChatTokens of(const Json& line) const {
    if (!line.is_object()) throw Error("", "it is no object, { ... }");
    if (line.contains("messages")) return conversation(messages(line.at("messages")));
    if (line.contains("prompt")) {
      const std::string prompt = text(line, "prompt"), answer = learned(line, "completion");
      if (template_) return conversation({{"user", prompt}, {"assistant", answer}});
      return continued(prompt, answer);
    }
    if (line.contains("text")) return continued("", learned(line, "text"));
    throw Error("", "it has none of \"messages\", \"prompt\" and \"text\"");
  }

 private:
  static std::string text(const Json& line, const char* key) {
    if (!line.contains(key) || !line.at(key).is_string()) throw Error("", str_cat("its \"", key, "\" is no text"));
    return line.at(key).get<std::string>();
  }
  // Returns a text that is to be learned, which must not be empty.
  static std::string learned(const Json& line, const char* key) {
    std::string t = text(line, key);
    if (t.empty()) throw Error("", str_cat("its \"", key, "\" is empty: there is nothing to learn"));
    return t;
  }
  static std::string role(const Json& message) {
    std::string r = text(message, "role");
    if (r != "system" && r != "user" && r != "assistant" && r != "tool")
      throw Error("", str_cat("the role ", in_quotes(r), " is none of system, user, assistant and tool"));
    return r;
  }
  static std::vector<ChatMessage> messages(const Json& list) {
    if (!list.is_array() || list.empty()) throw Error("", "its \"messages\" are no list");
    std::vector<ChatMessage> r;
    for (const Json& m : list) {
      if (!m.is_object()) throw Error("", "a message is no object, { ... }");
      const std::string from = role(m);
      r.push_back({from, from == "assistant" ? learned(m, "content") : text(m, "content")});
    }
    if (std::ranges::count(r, "assistant", &ChatMessage::role) == 0)
      throw Error("", "no message is the assistant's: there is nothing to learn");
    return r;
  }
  // Tokenizes a conversation as generate and chat read it. The tokens of an answer are the ones after the common prefix
  // with the conversation before it.
  ChatTokens conversation(const std::vector<ChatMessage>& all) const {
    if (!template_)
      throw Error("",
                  "the checkpoint has no chat template, which says how messages are written down: put a "
                  "chat_template.jinja beside its safetensors, or use \"prompt\" and \"completion\", or \"text\"");
    const auto written = [&](std::size_t count, bool asks) {
      const std::string t = template_->apply(std::span(all).first(count), {.generation_prompt = asks});
      return tokens_.encode(t, false, true);
    };
    ChatTokens e{written(all.size(), false), {}};
    e.learned.assign(e.ids.size(), false);
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (all[k].role != "assistant") continue;
      const std::size_t from = common(written(k, true), e.ids), to = common(written(k + 1, false), e.ids);
      std::fill(e.learned.begin() + static_cast<std::ptrdiff_t>(from),
                e.learned.begin() + static_cast<std::ptrdiff_t>(std::max(from, to)), true);
    }
    return e;
  }
  ChatTokens continued(const std::string& prompt, const std::string& answer) const {
    ChatTokens e{tokens_.encode(prompt + answer), {}};
    const std::size_t from = prompt.empty() ? 1 : common(tokens_.encode(prompt), e.ids);
    if (tokens_.eos() >= 0) e.ids.push_back(tokens_.eos());
    for (std::size_t k = 0; k < e.ids.size(); ++k) e.learned.push_back(k >= from);
    return e;
  }

  const Tokenizer& tokens_;
  std::optional<ChatTemplate> template_;
};

// The position of an example: its row, and its first token there.
struct Packed {
  std::size_t row, at;
};
// Packs the longest examples first, each into the fullest row that has room: "best fit decreasing", which needs at most
// 11 / 9 of the fewest rows and four (D. S. Johnson and others, 1974).
std::vector<Packed> pack(const std::vector<std::size_t>& lengths, std::size_t room) {
  std::vector<std::size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t k) { return lengths[k]; });
  std::vector<Packed> all(lengths.size());
  std::multimap<std::size_t, std::size_t> open;  // rows by the room that is left
  std::size_t rows = 0;
  for (const std::size_t k : order) {
    const auto best = open.lower_bound(lengths[k]);
    const std::size_t left = best == open.end() ? room : best->first, row = best == open.end() ? rows++ : best->second;
    if (best != open.end()) open.erase(best);
    all[k] = {row, room - left};
    open.emplace(left - lengths[k], row);
  }
  return all;
}

class Chats final : public TrainingData {
 public:
  Chats(const TrainConfig& c, std::shared_ptr<const Tokenizer> tokenizer, const ChatTemplateSource& source)
      : c_(c), tokens_(std::move(tokenizer)), examples_(*tokens_, source) {
    std::vector<ChatTokens> learn = read(c.data.train), hold = read(c.data.test);
    read_ = learn.size();
    if (c.data.test.empty()) {
      const auto count = static_cast<double>(learn.size());
      const auto at = static_cast<std::ptrdiff_t>(learn.size()) -
                      static_cast<std::ptrdiff_t>(std::llround(count * c.data.held_out));
      hold.assign(learn.begin() + at, learn.end());
      learn.erase(learn.begin() + at, learn.end());
    }
    learned_ = rows(learn, "to learn from", examples_learned_), held_out_ = rows(hold, "to hold out", examples_held_);
    if (c.held_out_samples > 0 && held_out_->size() > c.held_out_samples)
      held_out_ = std::make_shared<const Dataset>(held_out_->part(0, c.held_out_samples));
    loader_.emplace(learned_, LoaderOptions{.batch_size = c.train.batch,
                                            .shuffle = true,
                                            .seed = static_cast<std::uint64_t>(c.train.seed),
                                            .part_begin = c.part_begin,
                                            .part_size = c.part_size});
    held_loader_.emplace(held_out_, LoaderOptions{.batch_size = c.train.batch, .rest = Rest::Wrap, .prefetch = 0});
  }
  Arrays batch(i64 step) override { return at(*loader_, {step / loader_->batches(), step % loader_->batches()}); }
  i64 held_out() const override { return held_out_->size(); }
  Arrays held_out_batch(i64 first) override { return at(*held_loader_, {0, first / c_.train.batch}); }
  std::string summary() const override {
    const auto percent = 100 * tokens_read_ / places_;
    return str_cat(examples_learned_, " examples to learn from, ", examples_held_, " held out; ", answers_,
                   " tokens of answers; ", learned_->size(), " rows to learn from, ", percent,
                   " % of all rows are tokens",
                   percent < 50 && !c_.data.packing ? " (data.packing puts several examples into one)" : "",
                   cut_ ? str_cat("; ", cut_, " cut at ", c_.model.context, " tokens") : "",
                   left_out_ ? str_cat("; ", left_out_, " left out, whose answers begin behind that") : "");
  }
  const Tokenizer* tokenizer() const override { return tokens_.get(); }

 private:
  static Arrays at(DataLoader& loader, const LoaderPosition& where) {
    if (!(loader.position() == where)) loader.seek(where);
    return loader.next().arrays;
  }
  std::vector<ChatTokens> read(const std::vector<std::string>& paths) const {
    std::vector<ChatTokens> all;
    for (const std::string& path : paths) {
      const std::string file = read_text(path, {.memory = std::size_t{4} << 30});
      require_utf8(file, in_quotes(path));
      std::size_t number = 0;
      for (std::size_t from = 0; from < file.size();) {
        const std::size_t end = std::min(file.find('\n', from), file.size());
        const std::string_view line = std::string_view(file).substr(from, end - from);
        from = end + 1, ++number;
        if (line.find_first_not_of(" \t\r") == line.npos) continue;
        try {
          all.push_back(examples_.of(Json::parse(line)));
        } catch (const Json::exception&) {
          throw Error("train", str_cat(in_quotes(path), ", line ", number, ": it is no JSON"));
        } catch (const Error& e) {
          throw Error("train", str_cat(in_quotes(path), ", line ", number, ": ", printable(e.problem(), 500)));
        }
      }
    }
    return all;
  }
  // Returns why no example is left, and what to change.
  std::string why_none(const std::vector<ChatTokens>& all) const {
    const auto length = static_cast<std::size_t>(c_.model.context);
    if (std::ranges::any_of(all, [&](const ChatTokens& e) { return e.ids.size() > length + 1; }))
      return str_cat("the answers of all ", all.size(), " begin behind ", length, " tokens: raise model.context");
    if (!all.empty())
      return str_cat("the answers of all ", all.size(), " have no tokens: does the chat template write them?");
    if (read_ == 0) return str_cat(in_quotes(c_.data.train[0]), " has no line of JSON");
    if (!c_.data.test.empty()) return str_cat(in_quotes(c_.data.test[0]), " has no line of JSON");
    return str_cat("of ", read_, " data.held_out = ", c_.data.held_out,
                   " leaves none: change it, write more, or name a file as data.test");
  }
  // Returns the examples cut to the context, without those from which nothing would be learned.
  std::vector<ChatTokens> usable(const std::vector<ChatTokens>& all) {
    const auto length = static_cast<std::size_t>(c_.model.context);
    std::vector<ChatTokens> some;
    for (const ChatTokens& e : all) {
      const auto n = static_cast<std::ptrdiff_t>(std::min(e.ids.size(), length + 1));
      const i64 answers = std::count(e.learned.begin() + std::min<std::ptrdiff_t>(n, 1), e.learned.begin() + n, true);
      cut_ += e.ids.size() > length + 1 && answers > 0;
      left_out_ += answers == 0;
      answers_ += answers;
      if (answers > 0) some.push_back({{e.ids.begin(), e.ids.begin() + n}, {e.learned.begin(), e.learned.begin() + n}});
    }
    return some;
  }
  // Returns rows of one example or, packed, several, followed by tokens that are not read.
  std::shared_ptr<const Dataset> rows(const std::vector<ChatTokens>& all, const char* purpose, i64& examples) {
    const std::vector<ChatTokens> some = usable(all);
    if (some.empty()) throw Error("train", str_cat("there is no example ", purpose, ": ", why_none(all)));
    examples = static_cast<i64>(some.size());
    std::vector<std::size_t> lengths;  // the last token of an example is only predicted
    for (const ChatTokens& e : some) lengths.push_back(e.ids.size() - 1);
    const auto length = static_cast<std::size_t>(c_.model.context);
    std::vector<Packed> packed(some.size());
    for (std::size_t k = 0; k < packed.size(); ++k) packed[k] = {k, 0};
    if (c_.data.packing) packed = pack(lengths, length);
    const std::size_t count = 1 + std::ranges::max_element(packed, {}, &Packed::row)->row;
    const auto filled = [&](i64 v) {
      Array a = Array::zeros(DType::I64, {static_cast<i64>(count), c_.model.context});
      std::ranges::fill(a.values<i64>(), v);
      return a;
    };
    Array x = filled(std::max(tokens_->eos(), 0)), y = filled(kNotLearned), segments = filled(-1);
    for (std::size_t i = 0; i < some.size(); ++i)
      for (std::size_t k = 0; k < lengths[i]; ++k) {
        const std::size_t at = packed[i].row * length + packed[i].at + k;
        x.values<i64>()[at] = some[i].ids[k], segments.values<i64>()[at] = static_cast<i64>(i);
        if (some[i].learned[k + 1]) y.values<i64>()[at] = some[i].ids[k + 1];
      }
    tokens_read_ += std::accumulate(lengths.begin(), lengths.end(), std::size_t{0}), places_ += count * length;
    Arrays a;
    a.emplace("x", std::move(x)), a.emplace("y", std::move(y));
    if (c_.data.packing) a.emplace("segments", std::move(segments));
    return std::make_shared<const Dataset>(std::move(a));
  }

  const TrainConfig& c_;
  std::shared_ptr<const Tokenizer> tokens_;
  Examples examples_;
  std::shared_ptr<const Dataset> learned_, held_out_;
  std::optional<DataLoader> loader_, held_loader_;
  std::size_t read_ = 0;  // examples of data.train
  i64 answers_ = 0, cut_ = 0, left_out_ = 0, examples_learned_ = 0, examples_held_ = 0;
  std::size_t tokens_read_ = 0, places_ = 0;  // tokens of examples, and room in all rows
};

}  // namespace

std::unique_ptr<TrainingData> read_chats(const TrainConfig& c, std::shared_ptr<const Tokenizer> tokenizer,
                                         const ChatTemplateSource& source) {
  return std::make_unique<Chats>(c, std::move(tokenizer), source);
}

}  // namespace lc::tool
