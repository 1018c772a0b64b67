// Single hostile files (contradicting sizes, wrong types, terminal escapes, huge headers) give their values or an
// Error, in time and memory proportional to the file.
#include <cmath>
#include <functional>
#include <random>

#include "data.h"
#include "gguf_writer.h"
#include "lightcone/base/error.h"
#include "lightcone/io/checkpoints/gguf.h"
#include "lightcone/io/printable.h"
#include "lightcone/io/text/pieces/keyed_hash.h"
#include "lightcone/io/text/pieces/longest_match.h"
#include "lightcone/io/text/tokenizer.h"
#include "lightcone/models/llama/llama_config.h"
#include "memory.h"
#include "processor_time.h"

using namespace lc;

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double kSlower = 12;
#elif defined(__OPTIMIZE__)
constexpr double kSlower = 1;
#else
constexpr double kSlower = 6;
#endif

// Returns processor seconds, scaled to an optimized build without sanitizers.
double seconds(const std::function<void()>& f) { return test::seconds(f) / kSlower; }
// Returns the peak of additional memory during `f`.
std::size_t memory(const std::function<void()>& f) {
  counted::reset_most();
  const std::size_t before = counted::live();
  f();
  return counted::most() - before;
}

std::string error_of(const std::function<void()>& f) {
  try {
    f();
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}
#define EXPECT_SAYS(text, words)                                                                                     \
  do {                                                                                                               \
    const std::string words_said = text;                                                                             \
    EXPECT_NE(words_said.find(words), std::string::npos) << "'" << words_said.substr(0, 500) << "' lacks " << words; \
  } while (false)

// Reads the file in every way it can be read and returns the first Error's message.
std::string refusal(const std::string& name, const std::string& bytes, const ReadOptions& o = {}) {
  const TempDir dir;
  spit(dir / name, bytes);
  const bool tokens = name.starts_with("tokenizer");
  return error_of([&] {
    if (!tokens) {
      const Weights w = Weights::open(dir / name, o);
      if (w.gguf() || !w.config_json().empty()) LlamaConfig::from(w);
    }
    if (tokens || name.ends_with(".gguf")) load_tokenizer(dir / name, 0, o);
  });
}
std::string refusal(const std::function<void(Gguf&)>& change) {
  Gguf g = tiny_llama_with_tokens();
  change(g);
  return refusal("x.gguf", g.bytes());
}

std::string safetensors(const std::string& header, std::size_t data = 0) {
  const std::uint64_t n = header.size();
  return std::string(reinterpret_cast<const char*>(&n), 8) + header + std::string(data, 0);
}
std::string header_of_many(std::size_t tensors) {
  std::string h = "{";
  for (std::size_t i = 0; i < tensors; ++i)
    h += str_cat(i ? "," : "", "\"t", i, "\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[", i, ",", i + 1, "]}");
  return h + "}";
}
std::string vocabulary_json(std::size_t n, const std::string& more = "", const char* type = "WordPiece") {
  std::string s = str_cat("{\"model\":{\"type\":\"", type, "\",\"unk_token\":\"[UNK]\",\"vocab\":{\"[UNK]\":0");
  for (std::size_t i = 1; i < n; ++i) s += str_cat(",\"w", i, "\":", i);
  return s + (std::string(type) == "BPE" ? "},\"merges\":[]}" : "}}") + more + "}";
}

}  // namespace

// ---- arrays of a vocabulary -------------------------------------------------------------------------------------

TEST(Hostile, GgufColumnsAreAsLongAsTheTokens) {
  const std::string ends[] = {"<|eot_id|>", "<|im_end|>"};  // these tokens are looked up by type
  for (const char* key : {"tokenizer.ggml.token_type", "tokenizer.ggml.scores"})
    for (std::size_t n : {0, 1, 5, 7, 100000})
      EXPECT_SAYS(refusal([&](Gguf& g) {
                    g.metadata["tokenizer.ggml.tokens"] = std::vector<std::string>(6, ends[0]);
                    g.metadata[key] = std::vector<double>(n, 3);
                  }),
                  str_cat("'", key, "' has ", n, " values for 6 tokens"));
  EXPECT_EQ(refusal([](Gguf& g) { g.metadata.erase("tokenizer.ggml.token_type"); }), "");
}

TEST(Hostile, GgufValuesOfTheWrongType) {
  const std::vector<std::string> words{"a", "b", "c", "d", "e", "f"};
  EXPECT_SAYS(refusal([&](Gguf& g) { g.metadata["tokenizer.ggml.scores"] = words; }),
              "a list of texts, not a list of numbers");
  EXPECT_SAYS(refusal([&](Gguf& g) { g.metadata["tokenizer.ggml.scores"] = 1.0; }), "not a list of numbers");
  EXPECT_SAYS(refusal([&](Gguf& g) { g.metadata["tokenizer.ggml.token_type"] = words; }), "not a list of numbers");
  EXPECT_SAYS(refusal([&](Gguf& g) { g.metadata["tokenizer.ggml.tokens"] = std::vector<double>(6); }),
              "not a list of texts");
  EXPECT_SAYS(refusal([&](Gguf& g) { g.metadata["tokenizer.ggml.model"] = 3u; }), "a whole number, not a text");
  EXPECT_SAYS(refusal([&](Gguf& g) { g.metadata["tokenizer.ggml.add_bos_token"] = "yes"; }), "not true or false");
  EXPECT_SAYS(refusal([&](Gguf& g) { g.metadata["tokenizer.ggml.bos_token_id"] = "1"; }), "not a number");
  EXPECT_SAYS(refusal([&](Gguf& g) { g.metadata["llama.block_count"] = "1"; }), "not a number");
  for (const Gguf::Value& v : {Gguf::Value("64"), Gguf::Value(64.0), Gguf::Value(64.0f), Gguf::Value(words)})
    EXPECT_SAYS(refusal([&](Gguf& g) { g.metadata["general.alignment"] = v; }), "'general.alignment' is");
  EXPECT_SAYS(refusal([&](Gguf& g) { g.metadata["general.alignment"] = 33u; }), "an alignment of 33");
}

TEST(Hostile, JsonOfTheWrongType) {
  const auto tokenizer = [](const std::string& more) { return refusal("tokenizer.json", vocabulary_json(3, more)); };
  EXPECT_EQ(tokenizer(""), "");
  EXPECT_SAYS(tokenizer(",\"added_tokens\":{}"), "'added_tokens' is not a list");
  EXPECT_SAYS(tokenizer(",\"added_tokens\":[{\"id\":4,\"content\":7}]"), "'content' is not a string");
  EXPECT_SAYS(tokenizer(",\"added_tokens\":[{\"id\":4,\"content\":\"x\",\"special\":1}]"), "not true or false");
  EXPECT_SAYS(tokenizer(",\"pre_tokenizer\":[]"), "the pre-tokenizer is not an object");
  const auto config = [](const std::string& c) {
    const TempDir dir;
    spit(dir / "model.safetensors", safetensors("{}"));
    spit(dir / "config.json", c);
    return error_of([&] { LlamaConfig::from(Weights::open(dir.path.string())); });
  };
  const std::string good =
      "\"vocab_size\":8,\"hidden_size\":8,\"intermediate_size\":8,\"num_hidden_layers\":1,\"num_attention_heads\":2";
  EXPECT_EQ(config("{" + good + "}"), "");
  EXPECT_EQ(config("{\"text_config\":{" + good + "}}"), "");
  EXPECT_SAYS(config("{" + good + ",\"model_type\":1}"), "model_type is not a text");
  EXPECT_SAYS(config("{" + good + ",\"sliding_window\":4,\"use_sliding_window\":\"no\"}"), "not true or false");
  EXPECT_SAYS(config("{" + good + ",\"rope_scaling\":3}"), "not an object");
  EXPECT_SAYS(config("{" + good + ",\"eos_token_id\":\"x\"}"), "not a number");
  EXPECT_SAYS(config("{\"text_config\":{\"a\":" + std::string(200000, '[') + std::string(200000, ']') + "}}"),
              "nested too deeply");
}

TEST(Hostile, ShapesWhoseProductOverflows) {
  const std::uint64_t big = std::uint64_t{1} << 48;
  for (const std::vector<std::uint64_t>& shape :
       {std::vector<std::uint64_t>{0, big, big}, {big, big, 0}, {big, 0, big}})
    EXPECT_SAYS(refusal([&](Gguf& g) { g.tensors["x"] = {shape, {}}; }), "larger than any file");
  EXPECT_SAYS(refusal("x.safetensors",
                      safetensors(R"({"a":{"dtype":"U8","shape":[0,4611686018427387904,4],"data_offsets":[0,0]}})")),
              "larger than any file");
  const StoredTensor wide{.shape = {std::int64_t{1} << 40, std::int64_t{1} << 40, 0}, .type = "F32", .bytes = {}};
  EXPECT_THROW(wide.elements(), Error);
  const StoredTensor none{.shape = {std::int64_t{1} << 40, 0}, .type = "F32", .bytes = {}};
  EXPECT_EQ(none.elements(), 0);
}

// Regression: a table of frequencies as large as the file was expanded to floats before its size was checked.
TEST(Hostile, RopeFrequenciesAreCountedBeforeTheyAreRead) {
  Gguf g = tiny_llama_with_tokens();
  g.tensors["rope_freqs.weight"] = {{1 << 21}, std::vector<float>(1 << 21)};
  const std::string bytes = g.bytes();
  EXPECT_LT(memory([&] { EXPECT_SAYS(refusal("x.gguf", bytes), "2097152 values, 2 are needed"); }), 4u << 20);
}

// ---- time and memory --------------------------------------------------------------------------------------------

TEST(Hostile, SafetensorsHeadersTakeTimeInProportion) {
  const TempDir dir;
  const std::size_t n = 40000;
  spit(dir / "x.safetensors", safetensors(header_of_many(n), n));
  EXPECT_LT(seconds([&] { EXPECT_EQ(Weights::open(dir / "x.safetensors").tensors().size(), n); }), 1);
  // one object with many members, deep in the header
  spit(dir / "x.safetensors", safetensors("{\"a\":{\"shape\":[" + header_of_many(n) + "]}}"));
  EXPECT_LT(seconds([&] { EXPECT_THROW(Weights::open(dir / "x.safetensors"), Error); }), 1);
  std::vector<TensorToSave> many;
  for (std::size_t i = 0; i < n; ++i) many.push_back({str_cat("t", i), DType::U8, {0}, {}});
  EXPECT_LT(seconds([&] { save_safetensors(dir / "y.safetensors", many); }), 2);
}

// The cost of encoding grows with the number of components in a file, and the text itself may grow: both are bounded.
TEST(Hostile, ComponentsOfATokenizerJsonAreCounted) {
  const auto many = [](const char* where, const char* list, const std::string& one, int n) {
    std::string s = str_cat(",\"", where, "\":{\"type\":\"Sequence\",\"", list, "\":[", one);
    for (int i = 1; i < n; ++i) s += "," + one;
    return vocabulary_json(1000, s + "]}", "BPE");
  };
  const TempDir dir;
  const auto load = [&](const std::string& file) {
    spit(dir / "tokenizer.json", file);
    return error_of([&] { load_tokenizer(dir / "tokenizer.json"); });
  };
  for (const auto& [where, list, one] : {std::tuple("post_processor", "processors", R"({"type":"ByteLevel"})"),
                                         {"pre_tokenizer", "pretokenizers", R"({"type":"Punctuation"})"},
                                         {"normalizer", "normalizers", R"({"type":"NFC"})"},
                                         {"decoder", "decoders", R"({"type":"Fuse"})"}}) {
    EXPECT_EQ(load(many(where, list, one, 64)), "");
    EXPECT_LT(seconds([&] { EXPECT_SAYS(load(many(where, list, one, 20000)), "at most 64 are supported"); }), 2);
  }
  const auto grows = [&](const std::string& file) {
    EXPECT_EQ(load(file), "");
    return error_of([&] { load_tokenizer(dir / "tokenizer.json")->encode(std::string(100, 'a')); });
  };
  EXPECT_LT(memory([&] {
              EXPECT_SAYS(grows(many("normalizer", "normalizers",
                                     R"({"type":"Replace","pattern":{"String":"a"},"content":"aa"})", 64)),
                          "make too much of the text");
              EXPECT_SAYS(grows(many("normalizer", "normalizers",
                                     R"({"type":"Replace","pattern":{"Regex":""},"content":"a"})", 64)),
                          "make too much of the text");
              EXPECT_SAYS(grows(many("pre_tokenizer", "pretokenizers",
                                     R"({"type":"ByteLevel","add_prefix_space":true,"use_regex":false})", 64)),
                          "make too much of the text");
            }),
            64u << 20);
  EXPECT_SAYS(load(vocabulary_json(3, R"(,"padding":{"strategy":{"Fixed":999999999999}})")), "'Fixed' is not a whole");
}

TEST(Hostile, TokenIdsFarApartAreRefused) {
  const std::string file = R"({"model":{"type":"WordPiece","unk_token":"a","vocab":{"a":0,"b":9999999}}})";
  ASSERT_LT(file.size(), 120u);
  EXPECT_LT(memory([&] { EXPECT_SAYS(refusal("tokenizer.json", file), "ReadOptions::memory"); }), 40u << 20);
  EXPECT_EQ(refusal("tokenizer.json", R"({"model":{"type":"WordPiece","unk_token":"a","vocab":{"a":0,"b":2000}}})"),
            "");
  EXPECT_SAYS(refusal("tokenizer.json", R"({"model":{"type":"WordPiece","unk_token":"a","vocab":{"a":0,"b":-1}}})"),
              "out of range");
}

TEST(Hostile, WordsOfAnyLengthTakeTimeInProportion) {
  Vocabulary v;
  v.kind = Vocabulary::Kind::WordPiece;
  v.pieces = {"[UNK]",
              "\xE2\x96\x81"
              "a",
              "a", std::string(20000, 'a') + "b", std::string(300, 'a') + "c"};
  v.unk = 0;
  const auto t = make_tokenizer(v);
  const std::string word(200000, 'a');
  EXPECT_LT(seconds([&] { EXPECT_EQ(t->encode(word, false).size(), word.size()); }), 1);
  EXPECT_LT(seconds([&] { EXPECT_EQ(t->encode(word + "x", false), std::vector<int>{0}); }), 1);
  v.longest_word = 100;
  EXPECT_EQ(make_tokenizer(v)->encode(std::string(100, 'a') + " " + std::string(101, 'a'), false).size(), 101u);
  // tokens that are split off the text first (user defined)
  v.kind = Vocabulary::Kind::SentencePiece;
  v.types.assign(v.pieces.size(), Vocabulary::Type::UserDefined);
  v.pieces.emplace_back("x"), v.types.push_back(Vocabulary::Type::Normal);
  for (int i = 0; i < 3000; ++i) v.pieces.push_back(str_cat("a", i)), v.types.push_back(Vocabulary::Type::UserDefined);
  EXPECT_LT(seconds([&] { EXPECT_EQ(make_tokenizer(v)->encode(word, false).size(), word.size()); }), 1);
}

// Compares with the definition on words over three letters, in which pieces overlap in every way.
TEST(LongestMatch, IsTheGreedyCover) {
  std::mt19937 random(4);
  const auto word = [&](std::size_t longest) {
    std::string s(random() % (longest + 1), 0);
    for (char& c : s) c = static_cast<char>('a' + random() % 3);
    return s;
  };
  int covered = 0, left_over = 0;
  for (int i = 0; i < 3000; ++i) {
    std::vector<std::string> words;
    for (unsigned k = 0; k < 1 + random() % 12; ++k) words.push_back(word(6));
    std::vector<std::pair<std::string_view, int>> pieces;
    for (std::size_t k = 0; k < words.size(); ++k) pieces.emplace_back(words[k], static_cast<int>(k));
    const bool any = i % 2;
    const LongestMatch m(pieces, any);
    for (int k = 0; k < 10; ++k) {
      const std::string text = word(30);
      std::vector<std::pair<int, std::size_t>> want, have;
      bool all = true;
      for (std::size_t at = 0; at < text.size();) {
        std::pair<int, std::size_t> best{LongestMatch::kAny, any ? 1 : 0};
        for (std::size_t w = words.size(); w-- > 0;)
          if (words[w].size() >= std::max<std::size_t>(best.second, 1) &&
              std::string_view(text).substr(at).starts_with(words[w]))
            best = {static_cast<int>(w), words[w].size()};
        if (best.second == 0) {
          all = false;
          break;
        }
        want.push_back(best), at += best.second;
      }
      ASSERT_EQ(m.cover(text, [&](int id, std::size_t n) { have.emplace_back(id, n); }), all) << text;
      if (all) {
        ASSERT_EQ(have, want) << text;
      }
      ++(all ? covered : left_over);
    }
  }
  EXPECT_GT(covered, 5000);
  EXPECT_GT(left_over, 1000);
}

TEST(Hostile, AnArrayOfBytesIsNotWidened) {
  std::string s = "GGUF";
  const auto put = [&](const auto& v) { s.append(reinterpret_cast<const char*>(&v), sizeof v); };
  const std::uint64_t n = 32u << 20;
  put(std::uint32_t{3}), put(std::uint64_t{0}), put(std::uint64_t{1});
  put(std::uint64_t{1}), s += "k", put(std::uint32_t{9}), put(std::uint32_t{0}), put(n);
  s += std::string(n, 7);
  const TempDir dir;
  spit(dir / "x.gguf", s);
  EXPECT_LT(memory([&] {
              const GgufFile g = read_gguf(dir / "x.gguf");
              EXPECT_EQ(g.numbers("k")->size(), n);
              EXPECT_EQ((*g.numbers("k"))[n - 1], 7);
            }),
            1u << 20);
}

// Every reader stops at its memory budget, and its Error names the budget.
TEST(Hostile, BudgetsAreKept) {
  Gguf g = tiny_llama_with_tokens();
  std::vector<std::string> tokens(20000);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = str_cat("token ", i);
  g.metadata["tokenizer.ggml.tokens"] = tokens;
  g.metadata.erase("tokenizer.ggml.scores"), g.metadata.erase("tokenizer.ggml.token_type");
  std::string proto("\x0a\x09\x0a\x05<unk>\x18\x02"), llama2c(4, 1);
  for (int i = 0; i < 20000; ++i) {
    const std::string p = str_cat("a", i);
    proto += str_cat("\x0a", static_cast<char>(p.size() + 2), "\x0a", static_cast<char>(p.size()), p);
    const std::uint32_t head[2] = {0, static_cast<std::uint32_t>(p.size())};
    llama2c.append(reinterpret_cast<const char*>(head), 8) += p;
  }
  const std::string model = proto + std::string("\x12\x02\x18\x02", 4);
  const std::pair<const char*, std::string> files[] = {{"x.gguf", g.bytes()},
                                                       {"x.safetensors", safetensors(header_of_many(5000), 5000)},
                                                       {"tokenizer.json", vocabulary_json(20000)},
                                                       {"tokenizer.model", model},
                                                       {"tokenizer.bin", llama2c}};
  for (const auto& [name, bytes] : files) {
    const std::size_t budget = 200000;
    const TempDir dir;
    spit(dir / name, bytes);
    const auto read = [&, path = dir / name,
                       tokens_only = std::string(name).starts_with("tokenizer")](const ReadOptions& o) {
      return error_of([&] {
        if (!tokens_only) Weights::open(path, o);
        if (!path.ends_with("safetensors")) load_tokenizer(path, 0, o);
      });
    };
    EXPECT_EQ(read({}), "") << name;
    EXPECT_EQ(read({.memory = 64u << 20}), "") << name;
    EXPECT_LT(
        memory([&] { EXPECT_SAYS(read({.memory = budget}), "reading it takes more than 200000 bytes of memory"); }),
        2 * budget + 2 * bytes.size())
        << name;
  }
}

TEST(KeyedHash, IsSipHash) {  // the first of the published test vectors
  const HashKey key{0x0706050403020100, 0x0f0e0d0c0b0a0908};
  const std::uint64_t want[] = {0x726fdb47dd0e0e31, 0x74f839c593dc67fd, 0x0d6c8009d9a94f5a, 0x85676696d7fb7e2d,
                                0xcf2794e0277187b7, 0x18765564cd99a68d, 0xcbc9466e58fee3ce, 0xab0200f58b01d137,
                                0x93f5f5799a932462, 0x9e0082df0ba9e4b0};
  std::string s;
  for (std::size_t i = 0; i < std::size(want); ++i) {
    EXPECT_EQ(siphash(s, key), want[i]) << i;
    s += static_cast<char>(i);
  }
}

// ---- split patterns ---------------------------------------------------------------------------------------------

TEST(Hostile, SplitPatternsHaveBounds) {
  const auto encode = [](const std::string& pattern, const std::string& text) {
    Vocabulary v;
    v.kind = Vocabulary::Kind::ByteBpe;
    v.pieces = {"a", "b"};
    v.split = {pattern};
    return make_tokenizer(v)->encode(text, false);
  };
  // backtracking at every character needs more stack than JIT-compiled patterns have
  EXPECT_EQ(encode("(?:a|b(?=a|b|$))+", std::string(200000, 'a')).size(), 200000u);
  const std::string said = error_of([&] { encode("(a+)+$", std::string(40, 'a') + "b"); });
  EXPECT_SAYS(said, "the tokenizer's split pattern '(a+)+$' gives up on the text at byte 0: match limit exceeded");
  EXPECT_EQ(said.find("PCRE2"), said.npos);
  EXPECT_LT(seconds([&] { EXPECT_THROW(encode("(a+)+$", std::string(2000, 'a') + "b"), Error); }), 2);
  EXPECT_SAYS(error_of([&] { encode("[", "a"); }), "the split pattern '[' is wrong at 1");
  EXPECT_SAYS(error_of([&] { encode(std::string(100000, 'a'), "a"); }), "100000 bytes long");
}

// ---- words ------------------------------------------------------------------------------------------------------

TEST(Printable, SpellsOutWhatATerminalWouldObey) {
  EXPECT_EQ(printable("plain 'text' \\ \xC3\xA9 \xE4\xBD\xA0 \xF0\x9F\x98\x80"),
            "plain 'text' \\ \xC3\xA9 \xE4\xBD\xA0 \xF0\x9F\x98\x80");
  EXPECT_EQ(printable("\x1b]0;x\x07\r\n\t\x7f"), "\\x1b]0;x\\x07\\x0d\\x0a\\x09\\x7f");
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\xC2\x9b"
                      "31m"),
            "\\u{9b}31m");  // CSI as one character
  EXPECT_EQ(printable("\xE2\x80\xAE"
                      "abc\xE2\x81\xA6\xEF\xBB\xBF"),
            "\\u{202e}abc\\u{2066}\\u{feff}");  // characters that change the text direction or have no width
  EXPECT_EQ(printable("\xE2\x80\xA8\xF3\xA0\x80\x81"), "\\u{2028}\\u{e0001}");
  EXPECT_EQ(printable("\xff\xC3(\xED\xA0\x80"), "\\xff\\xc3(\\xed\\xa0\\x80");  // invalid UTF-8
  EXPECT_EQ(printable(std::string(200, 'x'), 100), std::string(100, 'x') + "...");
  EXPECT_EQ(printable(std::string(50, '\x1b'), 10), "\\x1b\\x1b...");
  EXPECT_EQ(printable("\xC3\xA9\xC3\xA9", 3), "\xC3\xA9...");  // never cuts a character in half
  EXPECT_EQ(for_terminal("a\tb\n\x1b[2J\xC2\x9b\r\xff\xE2\x80\xAE"), "a\tb\n\\x1b[2J\\u{9b}\\x0d\\xff\xE2\x80\xAE");
  std::mt19937 random(2);
  for (int i = 0; i < 2000; ++i) {
    std::string s(random() % 200, 0);
    for (char& c : s) c = static_cast<char>(random());
    const std::string clean = printable(s, 120);
    EXPECT_LE(clean.size(), 123u);
    EXPECT_EQ(printable(clean, 1000), clean);
  }
}

// Names and words of files are quoted in Errors without control characters, and at a readable length.
TEST(Hostile, ErrorsQuoteFilesWithCare) {
  const std::string bad = "\x1b[2J\xE2\x80\xAE\xff" + std::string(60000, 'y');
  const std::string spelled = "\\\\u001b[2J";
  std::vector<std::string> said;
  said.push_back(refusal([&](Gguf& g) { g.tensors[bad] = {{std::uint64_t{1} << 50}, {}}; }));
  said.push_back(refusal([&](Gguf& g) { g.metadata["general.architecture"] = bad; }));
  said.push_back(refusal([&](Gguf& g) { g.metadata["tokenizer.ggml.model"] = bad; }));
  said.push_back(refusal([&](Gguf& g) { g.metadata["llama.rope.scaling.type"] = bad; }));
  said.push_back(refusal([&](Gguf& g) {
    g.metadata["tokenizer.ggml.model"] = "gpt2";
    g.metadata["tokenizer.ggml.pre"] = bad;
  }));
  const std::string word = "\"\\u001b[2J\\u202e" + std::string(60000, 'y') + "\"";
  said.push_back(refusal("x.safetensors", safetensors("{" + word + ":{}}")));
  said.push_back(
      refusal("x.safetensors", safetensors("{\"a\":{\"dtype\":" + word + ",\"shape\":[],\"data_offsets\":[0,0]}}")));
  said.push_back(refusal("x.safetensors", safetensors("{\"__metadata__\":{" + word + ":1}}")));
  said.push_back(refusal("x.safetensors", safetensors("{" + std::string(60000, '\x1b'))));
  said.push_back(refusal("tokenizer.json", "{\"model\":{\"type\":" + word + "}}"));
  said.push_back(refusal("tokenizer.json", "{\"model\":{\"vocab\":{" + word + ":\"\"}}}"));
  for (const std::string& s : said) {
    EXPECT_NE(s, "");
    EXPECT_LT(s.size(), 1200u);
    EXPECT_EQ(s, printable(s, 10000));
  }
  const std::string shown = str(GgufValue(std::string_view(bad)));
  EXPECT_EQ(shown, printable(shown));
  EXPECT_LT(shown.size(), 70u);
}

// ---- files that cannot be opened --------------------------------------------------------------------------------

TEST(Hostile, LinksThatLeadNowhere) {
  const TempDir dir;
  std::filesystem::create_symlink("model.safetensors", dir.path / "model.safetensors");
  std::filesystem::create_symlink("tokenizer.json", dir.path / "tokenizer.json");
  for (const std::string& said :
       {error_of([&] { Weights::open(dir.path.string()); }), error_of([&] { load_tokenizer(dir.path.string()); })}) {
    EXPECT_SAYS(said, "cannot open");
    EXPECT_SAYS(said, "Too many levels of symbolic links");
    EXPECT_EQ(said.find("filesystem error"), said.npos);
  }
  const std::string longest = dir / std::string(5000, 'x');
  EXPECT_SAYS(error_of([&] { Weights::open(longest); }), "there is no file");
  EXPECT_THROW(load_tokenizer(longest), Error);
  EXPECT_THROW(Weights::open("/proc/self/mem"), Error);
}
