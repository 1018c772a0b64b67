// A model of another architecture needs a Decoder and a Model of its own and nothing else: generate(), Sampler and Chat
// continue its texts as its definition says.
#include "lightcone/llm/decoder.h"

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "error_of.h"
#include "lightcone/base/error.h"
#include "lightcone/llm/chat.h"
#include "lightcone/llm/generate.h"

using namespace lc;

namespace {

// The tokens of the toy: <unk>, <s>, </s> and the letters a to h.
constexpr int kEnd = 2, kFirst = 3, kLetters = 8, kVocabulary = kFirst + kLetters;

// The definition of the toy: the token that follows a sequence is a hash of all of its tokens.
int next_of(std::span<const int> sequence) {
  int hash = 7;
  for (const int token : sequence) hash = (hash * 29 + token) % 997;
  return hash % 11 == 0 ? kEnd : kFirst + hash % kLetters;
}

// A decoder with a cache of its tokens, which it reads up to the position of each row of logits.
class ToyDecoder final : public llm::Decoder {
 public:
  explicit ToyDecoder(std::int64_t context, std::int64_t step = 0, bool all_logits = false)
      : Decoder({.vocabulary = kVocabulary, .context = context, .step = step, .all_logits = all_logits}),
        cache_(static_cast<std::size_t>(context)),
        all_logits_(all_logits) {}
  std::vector<std::int64_t> steps;  // the number of tokens of each step so far
  bool fails = false;               // whether the next step throws

 protected:
  std::span<const float> step(std::span<const int> tokens, std::int64_t past) override {
    steps.push_back(static_cast<std::int64_t>(tokens.size()));
    std::copy(tokens.begin(), tokens.end(), cache_.begin() + past);
    if (fails) throw Error("toy", "the step fails");
    logits_.clear();
    for (std::size_t k = all_logits_ ? 0 : tokens.size() - 1; k < tokens.size(); ++k) {
      logits_.resize(logits_.size() + kVocabulary, 0.0f);
      const int next = next_of(std::span(cache_).first(static_cast<std::size_t>(past) + k + 1));
      logits_[logits_.size() - kVocabulary + static_cast<std::size_t>(next)] = 20;
    }
    return logits_;
  }
  void clear() override { std::fill(cache_.begin(), cache_.end(), 0); }

 private:
  std::vector<int> cache_;
  std::vector<float> logits_;
  bool all_logits_;
};

class Toy final : public llm::Model {
 public:
  explicit Toy(std::int64_t context) : context_(context) {
    Vocabulary v;
    v.pieces = {"<unk>", "<s>", "</s>", "a", "b", "c", "d", "e", "f", "g", "h"};
    v.scores.resize(v.pieces.size(), 0);
    v.types.resize(v.pieces.size(), Vocabulary::Type::Normal);
    v.types[0] = Vocabulary::Type::Unknown, v.types[1] = v.types[2] = Vocabulary::Type::Control;
    v.unk = 0, v.bos = 1, v.eos = kEnd;
    v.add_bos = true, v.space_prefix = false;
    tokenizer_ = make_tokenizer(v);
  }
  const Tokenizer& tokenizer() const override { return *tokenizer_; }
  const ChatTemplateSource& chat_template() const override { return template_; }
  bool ends(int token) const override { return token == kEnd; }
  std::int64_t context_length() const override { return context_; }
  std::unique_ptr<llm::Decoder> decoder() const override { return std::make_unique<ToyDecoder>(context_); }

 private:
  std::int64_t context_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  ChatTemplateSource template_{"{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}", "toy"};
};

// Returns the continuation of a sequence, at most `most` tokens, by the definition.
std::vector<int> continued(std::vector<int> sequence, std::size_t most) {
  const std::size_t begin = sequence.size();
  while (sequence.size() < begin + most && next_of(sequence) != kEnd) sequence.push_back(next_of(sequence));
  return {sequence.begin() + static_cast<std::ptrdiff_t>(begin), sequence.end()};
}

bool ends_toy(int id) { return id == kEnd; }

}  // namespace

TEST(Decoder, GeneratesAsTheDefinitionSays) {
  const Toy toy(100);
  const std::vector<int> prompt = llm::prompt_tokens(toy.tokenizer(), "abca");
  ASSERT_EQ(prompt, (std::vector<int>{1, 3, 4, 5, 3}));
  const std::vector<int> whole = continued(prompt, 1000);
  ASSERT_GT(whole.size(), 3u);
  ASSERT_LT(whole.size(), 90u);
  const auto generated = [&](ToyDecoder& d, const llm::SamplerOptions& s, const llm::GenerateOptions& o) {
    llm::Sampler pick(s);
    return llm::generate(d, pick, d.feed(prompt), o);
  };
  ToyDecoder d(100);
  const llm::Generated all = generated(d, {}, {.ends = ends_toy});
  EXPECT_EQ(all.tokens, whole);
  EXPECT_EQ(all.end, llm::End::Turn);
  EXPECT_EQ(all.steps, whole.size());
  EXPECT_EQ(d.tokens().size(), prompt.size() + whole.size());

  // The other tokens are e^20 times less likely than the next one.
  ToyDecoder drawn(100);
  EXPECT_EQ(generated(drawn, {.temperature = 1, .top_k = 3, .seed = 7}, {.ends = ends_toy}).tokens, whole);

  d.reset();
  const llm::Generated three = generated(d, {}, {.max_tokens = 3, .ends = ends_toy});
  EXPECT_EQ(three.tokens, continued(prompt, 3));
  EXPECT_EQ(three.end, llm::End::MaxTokens);
  EXPECT_EQ(three.steps, 2u);  // nothing follows the third token

  d.reset();
  int left = 2;
  const llm::Generated two = generated(d, {}, {.ends = ends_toy, .on_token = [&](int) { return --left > 0; }});
  EXPECT_EQ(two.tokens, continued(prompt, 2));
  EXPECT_EQ(two.end, llm::End::Stopped);

  ToyDecoder small(7);
  const llm::Generated full = generated(small, {}, {.ends = ends_toy});
  EXPECT_EQ(full.tokens, continued(prompt, 3));  // two in the cache, and one that need not be fed
  EXPECT_EQ(full.end, llm::End::Context);
  EXPECT_EQ(small.room(), 0);
}

TEST(Decoder, StepsAndRowsOfLogits) {
  const std::vector<int> tokens{1, 3, 9, 4, 4, 10, 5};
  ToyDecoder whole(20), parts(20, 3), rows(20, 3, true);
  const std::span<const float> want = whole.feed(tokens), have = parts.feed(tokens), all = rows.feed(tokens);
  EXPECT_EQ(whole.steps, (std::vector<std::int64_t>{7}));
  EXPECT_EQ(parts.steps, (std::vector<std::int64_t>{3, 3, 1}));
  EXPECT_EQ(std::vector<float>(have.begin(), have.end()), std::vector<float>(want.begin(), want.end()));
  ASSERT_EQ(all.size(), tokens.size() * kVocabulary);
  for (std::size_t k = 0; k < tokens.size(); ++k) {
    const auto row = all.subspan(k * kVocabulary, kVocabulary);
    EXPECT_EQ(std::max_element(row.begin(), row.end()) - row.begin(), next_of(std::span(tokens).first(k + 1))) << k;
  }
  // generate() begins with the last row.
  llm::Sampler pick({});
  EXPECT_EQ(llm::generate(rows, pick, all, {.max_tokens = 4, .ends = ends_toy}).tokens, continued(tokens, 4));
  EXPECT_EQ(whole.vocabulary_size(), kVocabulary);
  EXPECT_EQ(whole.context_length(), 20);
  EXPECT_EQ(whole.room(), 13);
}

TEST(Decoder, Errors) {
  ToyDecoder d(4);
  EXPECT_EQ(error_of([&] { d.feed(std::span<const int>()); }), "feed: no tokens");
  EXPECT_EQ(error_of([&] { d.feed(kVocabulary); }), "feed: token 11 is outside the vocabulary of 11");
  EXPECT_EQ(error_of([&] { d.feed(-1); }), "feed: token -1 is outside the vocabulary of 11");
  d.feed(std::vector<int>{1, 3, 4});
  EXPECT_EQ(error_of([&] { d.feed(std::vector<int>{3, 3}); }), "feed: 2 tokens after 3 do not fit the context of 4");
  EXPECT_EQ(error_of([&] { d.truncate(4); }), "truncate: there are 3 tokens, not 4");
  d.fails = true;
  EXPECT_EQ(error_of([&] { d.feed(5); }), "toy: the step fails");
  EXPECT_EQ(d.tokens().size(), 3u);
  d.fails = false;
  const std::span<const float> logits = d.feed(6);  // overwrites what the failed step left
  EXPECT_EQ(std::max_element(logits.begin(), logits.end()) - logits.begin(), next_of(std::vector<int>{1, 3, 4, 6}));
  EXPECT_PRED2(contains, error_of([] { ToyDecoder none(0); }), "a context of 0 positions make no decoder");
}

TEST(Decoder, ChatRunsOnlyWhatIsNew) {
  const Toy toy(100);
  llm::Chat chat(toy, {.max_tokens = 4});
  const auto sequence = [&](const std::string& text) { return toy.tokenizer().encode(text, false, true); };
  std::string heard;
  const llm::Chat::Reply first = chat.say("abca", [&](std::string_view bytes) { return heard += bytes, true; });
  const std::vector<int> want = continued(sequence("<s>abca"), 4);
  EXPECT_EQ(sequence(first.text), want);
  EXPECT_EQ(heard, first.text);
  EXPECT_EQ(first.said, want.size());
  EXPECT_EQ(first.read, 5u);
  const llm::Chat::Reply second = chat.say("hg");
  EXPECT_EQ(sequence(second.text), continued(sequence("<s>abca" + first.text + "hg"), 4));
  EXPECT_GE(second.kept, 5u + first.said - 1);
  EXPECT_LE(second.read, 3u);
  EXPECT_EQ(chat.messages().size(), 4u);
  EXPECT_EQ(&chat.model().tokenizer(), &toy.tokenizer());

  llm::Chat shared(std::make_shared<const Toy>(6));
  const llm::Chat::Reply full = shared.say("abca");
  EXPECT_EQ(full.end, llm::End::Context);
  EXPECT_EQ(sequence(full.text), continued(sequence("<s>abca"), 2));
  EXPECT_PRED2(contains, error_of([&] { shared.say("a"); }), "do not fit the context of 6 positions");
}
