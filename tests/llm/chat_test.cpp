// A conversation runs only the new tokens and gives the answers of a session that began anew. Errors leave it
// unchanged.
#include "lightcone/llm/chat.h"

#include <cstring>

#include "data.h"
#include "error_of.h"
#include "gguf_writer.h"
#include "lightcone/models/llama/llama.h"
#include "paths.h"

using namespace lc;

namespace {

const std::string kStory = std::string(paths::kSource) + "/models/story/story.gguf";
const char kWords[] =
    "{{ bos_token }}{% for m in messages %}{{ m.content }}{% if not loop.last %} {% endif %}{% endfor %}";

ChatTemplateSource words(const std::string& text = kWords) { return {text, "words"}; }
const Llama& story() {
  static const Llama m = Llama::load(kStory, {.context = 200, .threads = 1});
  return m;
}

// Returns the reply of a new session that reads the whole conversation from its beginning.
std::string anew(const std::string& text, int tokens) {
  LlamaSession s(story());
  llm::Sampler pick({});
  std::span<const float> logits = s.feed(story().tokenizer().encode(text, false, true));
  std::string said;
  for (int i = 0; i < tokens; ++i) {
    const int id = pick(logits);
    if (story().ends(id)) break;
    said += story().tokenizer().piece(id);
    logits = s.feed(id);
  }
  return said;
}

}  // namespace

TEST(Chat, OnlyWhatIsNewIsRun) {
  llm::Chat chat(story(), {.max_tokens = 12, .chat_template = words()});
  std::string heard;
  const auto hear = [&](std::string_view bytes) { return heard += bytes, true; };
  const llm::Chat::Reply first = chat.say("Once upon a time", hear);
  EXPECT_EQ(heard, first.text);
  EXPECT_EQ(first.end, llm::Chat::End::MaxTokens);
  EXPECT_EQ(first.text, anew("<s>Once upon a time", 12));
  EXPECT_EQ(first.kept, 0u);
  EXPECT_EQ(first.said, 12u);
  const llm::Chat::Reply second = chat.say("Then she went home.");
  EXPECT_EQ(second.text, anew("<s>Once upon a time " + first.text + " Then she went home.", 12));
  EXPECT_GE(second.kept, first.read);
  EXPECT_LT(second.read, 20u);
  EXPECT_EQ(
      second.kept + second.read,
      static_cast<std::size_t>(story()
                                   .tokenizer()
                                   .encode("<s>Once upon a time " + first.text + " Then she went home.", false, true)
                                   .size()));
  ASSERT_EQ(chat.messages().size(), 4u);
  EXPECT_EQ(chat.messages()[1].role, "assistant");
  EXPECT_EQ(chat.messages()[1].content, first.text);

  chat.clear();
  EXPECT_TRUE(chat.messages().empty());
  const llm::Chat::Reply again = chat.say("Once upon a time");
  EXPECT_EQ(again.text, first.text);
  EXPECT_EQ(again.read, 1u);  // the cache still held the rest
}

TEST(Chat, ASystemMessageComesFirst) {
  llm::Chat chat(story(), {.system = "Lily was sad.", .max_tokens = 5, .chat_template = words()});
  EXPECT_EQ(chat.say("Then").text, anew("<s>Lily was sad. Then", 5));
  chat.clear();
  ASSERT_EQ(chat.messages().size(), 1u);
  EXPECT_EQ(chat.messages()[0].role, "system");
}

TEST(Chat, WhereAnswersEnd) {
  llm::Chat chat(story(), {.chat_template = words()});
  const llm::Chat::Reply whole = chat.say("Once upon a time");
  EXPECT_EQ(whole.end, llm::Chat::End::Turn);
  EXPECT_EQ(whole.text, anew("<s>Once upon a time", 1000));

  chat.clear();
  int pieces = 0;
  const llm::Chat::Reply stopped = chat.say("Once upon a time", [&](std::string_view) { return ++pieces < 7; });
  EXPECT_EQ(stopped.end, llm::Chat::End::Stopped);
  EXPECT_EQ(stopped.said, 7u);
  EXPECT_EQ(whole.text.find(stopped.text), 0u);
  EXPECT_EQ(chat.messages()[1].content, stopped.text);  // an interrupted reply is kept in the conversation

  const Llama small = Llama::load(kStory, {.context = 24, .threads = 1});
  llm::Chat tight(small, {.chat_template = words()});
  const llm::Chat::Reply cut = tight.say("Once upon a time");
  EXPECT_EQ(cut.end, llm::Chat::End::Context);
  EXPECT_EQ(cut.read + cut.said, 25u);  // the last token need not be run
  EXPECT_EQ(whole.text.find(cut.text), 0u);
  const std::string error = error_of([&] { tight.say("and then"); });
  EXPECT_PRED2(contains, error,
               "do not fit the context of 24 positions: begin a new one, or load the model with a larger");
  EXPECT_EQ(tight.messages().size(), 2u);  // as before the failed call
  tight.clear();
  EXPECT_EQ(tight.say("Once upon a time").text, cut.text);
}

// The file's end-of-text token does not end a turn; the template shows which token does.
TEST(Chat, TheTokenBehindAnAnswerEndsTheTurn) {
  std::string bytes = slurp(kStory);
  const std::string key = "tokenizer.ggml.eos_token_id" + std::string("\4\0\0\0", 4);
  const std::size_t at = bytes.find(key);
  ASSERT_NE(at, bytes.npos);
  bytes[at + key.size()] = 0;
  TempDir d;
  spit(d / "x.gguf", bytes);
  const Llama m = Llama::load(d / "x.gguf", {.context = 200, .threads = 1});
  EXPECT_FALSE(m.ends(2));
  const std::string with_end =
      "<s>{% for m in messages %}{{ m.content }}{{ ' </s>' if m.role == 'assistant' else '' }}{% endfor %}";
  llm::Chat chat(m, {.chat_template = words(with_end)});
  EXPECT_EQ(chat.say("Once upon a time").end, llm::Chat::End::Turn);
  llm::Chat endless(m, {.chat_template = words()});
  EXPECT_EQ(endless.say("Once upon a time").end, llm::Chat::End::Context);
}

TEST(Chat, WhatCannotBe) {
  EXPECT_PRED2(contains, error_of([] { llm::Chat chat(story()); }),
               "brings no chat template: give one in llm::ChatOptions");
  EXPECT_PRED2(contains, error_of([] { llm::Chat chat(story(), {.chat_template = words("{% if %}")}); }),
               "words: line 1: ");
  llm::Chat chat(
      story(),
      {.max_tokens = 3,
       .chat_template = words("{{ raise_exception('no') if messages | length > 2 }}<s>{{ messages[0].content }}")});
  EXPECT_PRED2(contains, error_of([&] { chat.say("a\xff"); }), "not UTF-8");
  EXPECT_TRUE(chat.messages().empty());
  chat.say("a");
  EXPECT_PRED2(contains, error_of([&] { chat.say("b"); }), "does not take this conversation: no");
  EXPECT_EQ(chat.messages().size(), 2u);
  llm::Chat silent(story(), {.chat_template = words("{# #}")});
  EXPECT_PRED2(contains, error_of([&] { silent.say("a"); }), "makes no text");
}

TEST(Chat, TheTemplateOfTheCheckpoint) {
  TempDir d;
  Gguf g = tiny_llama_with_tokens();
  g.metadata["tokenizer.chat_template"] = "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}{{ more }}";
  spit(d / "x.gguf", g.bytes());
  const Llama m = Llama::load(d / "x.gguf");
  llm::Chat chat(m, {.max_tokens = 1, .variables = R"({"more": " a"})"});
  chat.say("a");
  EXPECT_EQ(m.tokenizer().decode(chat.decoder().tokens()), "a a");
  g.metadata["tokenizer.chat_template"] = "{{ broken";
  spit(d / "x.gguf", g.bytes());
  const Llama broken = Llama::load(d / "x.gguf");  // continuing texts does not need the template
  EXPECT_PRED2(contains, error_of([&] { llm::Chat of(broken); }), "x.gguf: line 1: a {{ is not closed");
}

TEST(Chat, Truncate) {
  LlamaSession s(story());
  const std::vector<int> ids = story().tokenizer().encode("Once upon a time");
  const auto once = [&] {
    const std::span<const float> l = s.feed(ids);
    return std::vector<float>(l.begin(), l.end());
  };
  const std::vector<float> want = once();
  s.feed(ids);
  s.truncate(0);
  EXPECT_EQ(once(), want);
  s.feed(std::vector<int>{300, 301, 302});
  s.truncate(ids.size() - 1);
  const std::span<const float> again = s.feed(ids.back());
  for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(again[i], want[i], 1e-4) << i;
  EXPECT_PRED2(contains, error_of([&] { s.truncate(6); }), "there are 5 tokens, not 6");
}

// Regression: the tokenizer of another model was accepted and garbled every text.
TEST(Chat, AnotherModelsTokenizerIsRefused) {
  TempDir d;
  Gguf g = tiny_llama();  // six tokens; token 2 is the end of text
  spit(d / "x.gguf", g.bytes());
  const auto bin = [](int pieces) {  // llama2.c's tokenizer
    std::string s("\4\0\0\0", 4);
    for (int i = 0; i < pieces; ++i) {
      const float score = static_cast<float>(-i);
      const std::int32_t length = 1;
      s.append(reinterpret_cast<const char*>(&score), 4);
      s.append(reinterpret_cast<const char*>(&length), 4);
      s += static_cast<char>('a' + i % 26);
    }
    return s;
  };
  const auto load = [&](const std::string& tokenizer) {
    return error_of([&] { Llama::load(d / "x.gguf", {.tokenizer = tokenizer}); });
  };
  spit(d / "six.bin", bin(6));
  EXPECT_EQ(load(d / "six.bin"), "no error");
  spit(d / "seven.bin", bin(7));
  EXPECT_PRED2(contains, load(d / "seven.bin"), "it holds more than the 6 pieces that are needed");
  const auto json = [&](const std::string& name, const std::string& vocabulary, const std::string& added) {
    spit(d / name, R"({"added_tokens": [)" + added + R"(], "model": {"type": "BPE", "vocab": {)" + vocabulary +
                       R"(}, "merges": []}})");
    return load(d / name);
  };
  const std::string five = R"("a": 0, "b": 1, "c": 3, "d": 4, "e": 5)", six = five + R"(, "</s>": 2)",
                    end = R"({"id": 2, "content": "</s>", "special": true})";
  EXPECT_EQ(json("right.json", six, end), "no error");
  EXPECT_EQ(json("padded.json", six, end + R"(, {"id": 6, "content": "<pad>", "special": true})"), "no error");
  EXPECT_PRED2(contains, json("large.json", six + R"(, "f": 6)", end),
               "is not this model's: it has 7 tokens, the embedding 6 rows");
  EXPECT_PRED2(contains, json("small.json", R"("a": 0, "b": 1, "</s>": 2, "c": 3)", end),
               "is not this model's: it has 4 tokens, the embedding 6 rows");
  EXPECT_PRED2(contains, json("end.json", five + R"(, "x": 2)", ""), "ends a text by token 2, which it spells 'x'");
}

// Regression: the error named an option of the command.
TEST(Chat, AModelWithoutATokenizerSpeaksToProgrammers) {
  TempDir d;
  spit(d / "x.gguf", tiny_llama().bytes());
  const Llama m = Llama::load(d / "x.gguf");
  for (const std::string& error :
       {error_of([&] { m.tokenizer(); }), error_of([&] { llm::Chat c(m, {.chat_template = words()}); })}) {
    EXPECT_PRED2(contains, error, "name a file in LlamaOptions::tokenizer");
    EXPECT_FALSE(contains(error, "--")) << error;
  }
}

// A chat or session may own its model, without a variable for the model (docs/chat.md).
TEST(Chat, OwnsItsModel) {
  LlamaSession session(Llama::load(kStory, {.context = 16, .chunk = 4, .threads = 1}));
  EXPECT_GT(session.feed(1).size(), 0u);
  EXPECT_EQ(LlamaSession(Llama::load(kStory, {.context = 16, .threads = 1})).room(), 16);
  llm::Chat chat(Llama::load(kStory, {.context = 16, .threads = 1}), {.max_tokens = 2, .chat_template = words()});
  EXPECT_EQ(chat.say("Once").said, 2u);
}
