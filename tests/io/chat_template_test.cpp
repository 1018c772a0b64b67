// Chat templates give the text of Python's jinja2 (tests/goldens/chat_templates.json). Wrong or endless templates give
// an Error with a line.
#include "lightcone/io/text/chat_template.h"

#include <chrono>
#include <ctime>

#include <nlohmann/json.hpp>

#include "data.h"
#include "error_of.h"
#include "gguf_writer.h"
#include "paths.h"

using namespace lc;
using Json = nlohmann::ordered_json;

namespace {

// 9:05:07 on 22 November 2026, the time of the goldens.
std::time_t morning() {
  std::tm t = {};
  t.tm_year = 126, t.tm_mon = 10, t.tm_mday = 22, t.tm_hour = 9, t.tm_min = 5, t.tm_sec = 7, t.tm_isdst = -1;
  return std::mktime(&t);
}

std::string made(const std::string& text, const std::string& variables = "{}") {
  return ChatTemplate(text).apply({}, {.variables = variables, .now = morning()});
}
std::string wrong(const std::string& text, const std::string& variables = "{}") {
  return error_of([&] { made(text, variables); });
}

// Limit of processor seconds for templates that would never end. Sanitizers take some ten times as long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double kMostSeconds = 20;
#else
constexpr double kMostSeconds = 3;
#endif
double seconds(const std::function<void()>& f) {
  const auto begin = std::clock();
  f();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

}  // namespace

TEST(ChatTemplate, AsPythonMakesThem) {
  const Json goldens = Json::parse(slurp(std::string(paths::kSource) + "/tests/goldens/chat_templates.json"));
  std::size_t texts = 0, failures = 0;
  for (const Json& c : goldens["cases"]) {
    const std::string word = c["template"], name = c["name"];
    const std::string text = goldens["templates"].contains(word) ? goldens["templates"][word].get<std::string>() : word;
    std::string have;
    const std::string error = error_of([&] { have = made(text, c["variables"].dump()); });
    if (c.contains("fails")) {
      EXPECT_EQ(error.find("chat template: template: "), 0u) << name << ": " << text << "\n" << error << "\n" << have;
      ++failures;
    } else {
      EXPECT_EQ(error, "no error") << name << ": " << text;
      EXPECT_EQ(have, c["text"].get<std::string>()) << name << ": " << text;
      ++texts;
    }
  }
  EXPECT_GT(texts, 150u);
  EXPECT_GT(failures, 50u);
}

TEST(ChatTemplate, MessagesAndTokens) {
  Vocabulary v;
  v.pieces = {"<unk>", "<s>", "</s>", "a"};
  v.scores = {0, 0, 0, -1};
  v.types = {Vocabulary::Type::Unknown, Vocabulary::Type::Control, Vocabulary::Type::Control, Vocabulary::Type::Normal};
  v.bos = 1, v.eos = 2, v.unk = 0, v.space_prefix = false;
  const auto tokens = make_tokenizer(v);
  const ChatTemplate t({"{{ bos_token }}{% for m in messages %}{{ m.role }}:{{ m.content }}{{ eos_token }}{% endfor %}"
                        "{{ '!' if add_generation_prompt }}{{ mood }}",
                        "x"},
                       tokens.get());
  const std::vector<ChatMessage> two{{"user", "a"}, {"assistant", "\xC3\xA4"}};
  EXPECT_EQ(t.apply(two), "<s>user:a</s>assistant:\xC3\xA4</s>!");
  EXPECT_EQ(t.apply(two, {.generation_prompt = false, .variables = R"({"mood": "calm"})"}),
            "<s>user:a</s>assistant:\xC3\xA4</s>calm");
  // special tokens in the template are tokens
  EXPECT_EQ(tokens->encode("a</s>", false, true), (std::vector<int>{3, 2}));
  EXPECT_PRED2(contains, error_of([&] { t.apply({}, {.variables = "[]"}); }), "no JSON object");
  EXPECT_PRED2(contains, error_of([&] { t.apply({}, {.variables = "{"}); }), "not JSON");
}

TEST(ChatTemplate, ErrorsNameTheLine) {
  EXPECT_EQ(wrong("a\n{% if x %}\n{{ foo.bar }}{% endif %}", R"({"x": 1})"),
            "chat template: template: line 3: 'foo' is undefined");
  EXPECT_EQ(wrong("\n\n{{ raise_exception('no system') }}"),
            "chat template: template: line 3: the template does not take this conversation: no system");
  EXPECT_EQ(wrong("a\n{{ 1 + }}"), "chat template: template: line 2: unexpected '}}'");
  EXPECT_EQ(wrong("a\n\n{% include 'x' %}"),
            "chat template: template: line 3: the tag 'include' is unknown here, or not supported");
  EXPECT_EQ(wrong("{% for x in y %}\nz"),
            "chat template: template: line 2: the template ends where 'endfor' is expected");
  EXPECT_EQ(wrong("{% for x in [1] %}\n\n{{ x | nope }}\n{% endfor %}"),
            "chat template: template: line 3: there is no filter 'nope', or it is not supported");
  EXPECT_EQ(wrong("{{ 'a' +\n 1 }}"),
            "chat template: template: line 1: unsupported operand types for +: 'str' and 'int'");
  EXPECT_EQ(wrong("\n{{ 99999999999999999999 }}"),
            "chat template: template: line 2: 99999999999999999999 is beyond 64 bits");
  // messages from a template are made safe for a terminal
  const std::string evil = wrong("{{ raise_exception('\\x1b[2J' ~ 'y' * 5000) }}");
  EXPECT_EQ(evil.find('\x1b'), evil.npos);
  EXPECT_LT(evil.size(), 2000u);
}

TEST(ChatTemplate, ThatWouldNeverEnd) {
  const std::string
      doubled =
          "{% set ns = namespace(s='aaaaaaaaaaaaaaaa') %}{% for i in range(90) %}{% set ns.s = ns.s ~ ns.s %}{% endfor "
          "%}",
      nested = "{% set ns = namespace(l=[]) %}{% for i in range(90000) %}{% set ns.l = [ns.l] %}{% endfor %}",
      shared = "{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}";
  const std::string loop = "{% for i in range(99999) %}", end = "{% endfor %}";
  const std::pair<std::string, const char*> hostile[] = {
      {loop + loop + loop + end + end + end, "the template"},
      {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "too much within each other"},
      {"{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}", "too much within each other"},
      {"{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(40) }}", "the template"},
      {doubled, "more text than it may"},
      {"{{ 'a' * 9999999999 }}", "more text than it may"},
      {"{{ [1] * 9999999999 }}", "more text than it may"},
      {"{{ ('a' * 3000000).replace('', 'bbbbbbbbb') }}", "more text than it may"},
      {"{{ ('a' * 1000000) | indent(99999999999) }}", "more text than it may"},
      {"{{ [1] | tojson(indent=9999999) }}", "tojson(indent=9999999)"},
      {loop + "{{ 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' * 99 }}" + end, "more text than it may"},
      {nested, "too deep within each other"},
      {shared + "{{ ns.l }}", "the template"},
      {shared + "{{ ns.l == ns.l }}", "too many steps"},
      {shared + "{{ ns.l | tojson }}", "the template"},
      {"{{ " + std::string(100000, '(') + "1" + std::string(100000, ')') + " }}", "too much within each other"},
      {"{{ " + std::string(100000, '[') + std::string(100000, ']') + " }}", "too much within each other"},
      {"{{ " + std::string(100000, '-') + "1 }}", "too much within each other"},
      {"{{ 1" +
           [] {
             std::string s;
             for (int i = 0; i < 50000; ++i) s += "+1";
             return s;
           }() +
           " }}",
       "too much within each other"},
      {"{{ a" +
           [] {
             std::string s;
             for (int i = 0; i < 50000; ++i) s += ".a";
             return s;
           }() +
           " }}",
       "too much within each other"},
      {"{{ a" +
           [] {
             std::string s;
             for (int i = 0; i < 50000; ++i) s += "|e";
             return s;
           }() +
           " }}",
       "too much within each other"},
      {[] {
         std::string s;
         for (int i = 0; i < 20000; ++i) s += "{%if 1%}";
         return s;
       }(),
       "too much within each other"},
      {"{{ " +
           [] {
             std::string s;
             for (int i = 0; i < 20000; ++i) s += "not ";
             return s;
           }() +
           "1 }}",
       "too much within each other"},
      {std::string(300000, 'a'), "at most 262144 are read"},
      {loop + "{% set x = messages | tojson %}" + end, "the template"},
      {"{% set s = 'a' * 1000000 %}" + loop + "{{ s.find('b') }}" + end, "too many steps"},
      {"{% set s = 'a' * 2000000 %}" + loop + "{{ s.rfind('a' * 1000000 ~ 'b') }}" + end, "the template"},
      {"{% set d = {} %}" + loop + "{% set d = dict(d, a=1) %}" + end + loop + loop + "{{ d }}" + end + end,
       "the template"},
      {"{{ strftime_now('%9999d' ~ '%A' * 5000) }}", "more than 1,023 characters"},
      {"{{ range(99999) | map('list') | list }}", "not iterable"},
      {"{{ 2 ** 64 }}", "beyond 64 bits"},
      {"{{ (0 - 9223372036854775807 - 1) // (0 - 1) }}", "beyond 64 bits"},
      {"{{ -(0 - 9223372036854775807 - 1) }}", "beyond 64 bits"},
      {"{{ (0 - 9223372036854775807 - 1) | abs }}", "beyond 64 bits"},
      {"{{ [1][9223372036854775807] ~ 'x'[0 - 9223372036854775807 - 1] ~ 'abc'[::9223372036854775807] ~ x.y }}",
       "'x' is undefined"},
      {"{{ 1e400 | int }}{{ 1e300 | int }}", "beyond 64 bits"},
  };
  std::string many = R"({"messages": [)";
  for (int i = 0; i < 1000; ++i) many += str_cat(i ? "," : "", R"({"role": "user", "content": "hello"})");
  many += "]}";
  for (const auto& [text, what] : hostile) {
    std::string error;
    const double took = seconds([&] { error = wrong(text, text.find("messages") == text.npos ? "{}" : many); });
    EXPECT_EQ(error.find("chat template: template: "), 0u) << text.substr(0, 200);
    EXPECT_PRED2(contains, error, what) << text.substr(0, 200);
    EXPECT_LT(took, kMostSeconds) << text.substr(0, 200);
  }
  EXPECT_EQ(made("{{ 1 }}" + std::string(200000, 'a')), "1" + std::string(200000, 'a'));
}

TEST(ChatTemplate, LongConversationsAreNoHarm) {
  std::vector<ChatMessage> messages;
  for (int i = 0; i < 2000; ++i) messages.push_back({i % 2 ? "assistant" : "user", std::string(1000, 'x')});
  const Json goldens = Json::parse(slurp(std::string(paths::kSource) + "/tests/goldens/chat_templates.json"));
  for (const char* name : {"llama2", "llama3", "mistral", "qwen3", "gemma3", "deepseek", "phi3"}) {
    const ChatTemplate t(goldens["templates"][name].get<std::string>());
    std::string text;
    EXPECT_LT(seconds([&] { text = t.apply(messages, {.variables = R"({"bos_token": "<s>", "eos_token": "</s>"})"}); }),
              kMostSeconds)
        << name;
    EXPECT_GT(text.size(), 2000u * 1000u) << name;
  }
}

TEST(ChatTemplate, WhereCheckpointsKeepThem) {
  TempDir d;
  Gguf g = tiny_llama_with_tokens();
  spit(d / "none.gguf", g.bytes());
  EXPECT_EQ(find_chat_template(Weights::open(d / "none.gguf")).text, "");
  g.metadata["tokenizer.chat_template"] = "of the file";
  spit(d / "x.gguf", g.bytes());
  EXPECT_EQ(find_chat_template(Weights::open(d / "x.gguf")).text, "of the file");
  g.metadata["tokenizer.chat_template"] = 7u;
  spit(d / "x.gguf", g.bytes());
  EXPECT_PRED2(contains, error_of([&] { find_chat_template(Weights::open(d / "x.gguf")); }), "tokenizer.chat_template");

  std::filesystem::create_directory(d / "hf");
  const auto put = [&](const std::string& name, const std::string& text) { spit(d / ("hf/" + name), text); };
  const std::string empty("\x02\0\0\0\0\0\0\0{}", 10);
  put("model.safetensors", empty);
  const auto found = [&] { return find_chat_template(Weights::open(d / "hf")).text; };
  EXPECT_EQ(found(), "");
  put("tokenizer_config.json", R"({"bos_token": "<s>"})");
  EXPECT_EQ(found(), "");
  put("tokenizer_config.json", R"({"chat_template": "of the tokenizer\n"})");
  EXPECT_EQ(found(), "of the tokenizer\n");
  put("tokenizer_config.json",
      R"({"chat_template": [{"name": "tool_use", "template": "no"}, {"name": "default", "template": "of several"}]})");
  EXPECT_EQ(found(), "of several");
  put("tokenizer_config.json", R"({"chat_template": [{"name": "tool_use", "template": "no"}]})");
  EXPECT_PRED2(contains, error_of(found), "none is called 'default'");
  put("tokenizer_config.json", R"({"chat_template": 7})");
  EXPECT_PRED2(contains, error_of(found), "neither a text nor a list");
  put("chat_template.json", R"({"chat_template": "of a file of its own"})");
  EXPECT_EQ(found(), "of a file of its own");
  put("chat_template.jinja", "plain");
  EXPECT_EQ(found(), "plain");
  EXPECT_EQ(read_chat_template(d / "hf/chat_template.jinja").text, "plain");
  EXPECT_EQ(read_chat_template(d / "hf/chat_template.json").text, "of a file of its own");
  put("other.json", "{}");
  EXPECT_PRED2(contains, error_of([&] { read_chat_template(d / "hf/other.json"); }), "holds no chat template");
}
