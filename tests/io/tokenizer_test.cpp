// Every tokenizer gives the ids and texts of its reference implementation.
#include "lightcone/io/text/tokenizer.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <random>

#include <nlohmann/json.hpp>

#include "base64.h"
#include "data.h"
#include "error_of.h"
#include "lightcone/base/error.h"
#include "lightcone/io/checkpoints/gguf.h"
#include "paths.h"

using namespace lc;
using Json = nlohmann::json;

#define EXPECT_SAYS(text, words)                        \
  do {                                                  \
    const std::string sentence = text;                  \
    EXPECT_TRUE(contains(sentence, words)) << sentence; \
  } while (false)

namespace {

std::vector<std::string> split(const std::string& s, const std::string& by) {
  std::vector<std::string> parts;
  for (std::size_t at = 0;;) {
    const std::size_t next = s.find(by, at);
    parts.push_back(s.substr(at, next == std::string::npos ? next : next - at));
    if (next == std::string::npos) return parts;
    at = next + by.size();
  }
}
std::vector<int> numbers(const std::string& line) {
  std::istringstream in(line);
  std::vector<int> v;
  for (int x; in >> x;) v.push_back(x);
  return v;
}

class Vectors : public testing::TestWithParam<const char*> {};

TEST_P(Vectors, Exact) {
  const std::string base = std::string("tokenizers/ggml-vocab-") + GetParam() + ".gguf";
  NEEDS_DATA(base);
  const auto t = load_tokenizer(data(base));
  const auto texts = split(slurp(data(base + ".inp")), "\n__ggml_vocab_test__\n");
  const auto lines = split(slurp(data(base + ".out")), "\n");
  ASSERT_GE(texts.size(), 40u);
  int checked = 0;
  for (std::size_t i = 0; i < texts.size() && i < lines.size(); ++i, ++checked)
    EXPECT_EQ(t->encode(texts[i], false), numbers(lines[i])) << "case " << i << ": '" << texts[i] << "'";
  EXPECT_GE(checked, 40);
}

TEST_P(Vectors, LongTexts) {
  const std::string base = std::string("tokenizers/ggml-vocab-") + GetParam();
  NEEDS_DATA(base + ".long.json");
  NEEDS_DATA("datasets/tinyshakespeare/input.txt");
  const auto t = load_tokenizer(data(base + ".gguf"));
  const Json want = Json::parse(slurp(data(base + ".long.json")));
  EXPECT_EQ(t->encode(slurp(data("datasets/tinyshakespeare/input.txt")).substr(0, 12000), false),
            want["shakespeare_12000"].get<std::vector<int>>());
  std::string mixed = want["mixed_text"].get<std::string>();
  for (std::size_t at; (at = mixed.find("\\n")) != std::string::npos;)
    mixed.replace(at, 2, "\n");  // the reference's command line expands it
  EXPECT_EQ(t->encode(mixed, false), want["mixed"].get<std::vector<int>>());
}
INSTANTIATE_TEST_SUITE_P(All, Vectors, testing::Values("llama-spm", "gpt-2", "falcon", "deepseek-coder", "bert-bge"),
                         [](const auto& i) {
                           std::string s = i.param;
                           std::replace(s.begin(), s.end(), '-', '_');
                           return s;
                         });

// Compares tokenizer files with the ids and texts of the libraries they are made for.
void expect_rows(const std::string& path, const Json& rows, const std::string& name) {
  const auto t = load_tokenizer(path);
  for (const Json& row : rows) {
    const auto text = row["text"].get<std::string>();
    const auto ids = [&](const char* key) { return row[key].get<std::vector<int>>(); };
    if (row.contains("ids")) {
      EXPECT_EQ(t->encode(text, true, true), ids("ids")) << name << ": '" << text << "'";
    }
    if (row.contains("plain")) {
      EXPECT_EQ(t->encode(text, false, true), ids("plain")) << name << ": '" << text << "'";
    }
    if (row.contains("spelled")) {
      EXPECT_EQ(t->encode(text, false), ids("spelled")) << name << ": '" << text << "'";
    }
    EXPECT_EQ(t->decode(ids(row.contains("ids") ? "ids" : "spelled")), row["decoded"].get<std::string>()) << name;
    if (row.contains("pair")) {
      const Encoding e = t->encode_pair(text, row["pair"].get<std::string>(), true, true);
      const Json made{e.ids, e.type_ids, e.attention_mask};
      EXPECT_EQ(made, row["encoding"]) << name << ": '" << text << "' and " << row["pair"];
    }
  }
}

TEST(Tokenizer, FilesOfEveryKindOfComponent) {
  for (const auto& [list, ending] : {std::pair("cases.json", ".json"), {"spm_cases.json", ".model"}}) {
    const std::string folder = "tokenizers/variants/";
    NEEDS_DATA(folder + list);
    const Json files = Json::parse(slurp(data(folder + list)));
    for (const auto& [name, rows] : files.items()) {
      Json asked = rows;
      if (std::string(ending) == ".model")  // the reference library treats control tokens in a text as plain text
        for (Json& row : asked) row["spelled"] = row["plain"], row.erase("plain");
      expect_rows(data(folder + name + ending), asked, name);
    }
  }
}

// tools/make_tokenizer_goldens.py writes the goldens, with random components. LIGHTCONE_TOKENIZER_GOLDENS names another
// such file.
TEST(Tokenizer, RandomComponents) {
  const char* more = std::getenv("LIGHTCONE_TOKENIZER_GOLDENS");
  std::ifstream in(more ? more : std::string(paths::kSource) + "/tests/goldens/tokenizers.json");
  const TempDir dir;
  int files = 0;
  for (std::string line; std::getline(in, line); ++files) {
    const Json one = Json::parse(line);
    const bool json = one.contains("json");
    const std::string path = dir / (json ? "tokenizer.json" : "tokenizer.model");
    spit(path, json ? one["json"].get<std::string>() : from_base64(one["model"].get<std::string>()));
    expect_rows(path, one["rows"], "line " + std::to_string(files + 1));
  }
  EXPECT_GE(files, 50);
}

// The reference does not load these files either.
TEST(Tokenizer, SentencePieceFilesWithEmptyAndRepeatedPiecesAreRefused) {
  const TempDir dir;
  const std::string unknown("\x0a\x09\x0a\x05<unk>\x18\x02"),
      a("\x0a\x03\x0a\x01"
        "a"),
      none("\x0a\x02\x0a\x00", 4);
  const auto said = [&](const std::string& pieces) {
    spit(dir / "tokenizer.model", unknown + pieces + std::string("\x12\x02\x18\x02", 4));
    return error_of([&] { load_tokenizer(dir / "tokenizer.model"); });
  };
  EXPECT_EQ(said(a), "no error");
  EXPECT_NE(said(a + none).find("the piece 2 is empty"), std::string::npos) << said(a + none);
  EXPECT_NE(said(a + a).find("the piece 'a' is there twice"), std::string::npos) << said(a + a);
}

TEST(Tokenizer, TheSameVocabularyFromThreeFiles) {
  NEEDS_DATA("tokenizers/llama2/tokenizer.model");
  const auto gguf = load_tokenizer(data("tokenizers/ggml-vocab-llama-spm.gguf"));
  const auto model = load_tokenizer(data("tokenizers/llama2/tokenizer.model"));
  const auto bin = load_tokenizer(data("tokenizers/llama2/tokenizer.bin"), 32000);
  EXPECT_EQ(model->size(), 32000);
  EXPECT_EQ(bin->size(), 32000);
  for (const std::string& text :
       split(slurp(data("tokenizers/ggml-vocab-llama-spm.gguf.inp")), "\n__ggml_vocab_test__\n")) {
    EXPECT_EQ(model->encode(text), gguf->encode(text)) << text;
    if (text.find("\xE2\x96\x81") == std::string::npos) {
      EXPECT_EQ(bin->encode(text), gguf->encode(text)) << text;
    }
    EXPECT_EQ(model->decode(model->encode(text)), text);
  }
}

TEST(Tokenizer, LlamaReferences) {
  for (const std::string name : {"stories260K", "babyllama361"}) {
    NEEDS_DATA("llm/" + name);
    const auto t = load_tokenizer(data("llm/" + name + "/tokenizer.bin"));
    const Json expected = Json::parse(slurp(data("llm/" + name + "/expected/expected.json")));
    for (const Json& c : expected["cases"]) {
      EXPECT_EQ(t->encode(c["text"].get<std::string>()), c["ids"].get<std::vector<int>>());
      EXPECT_EQ(t->decode(c["greedy_ids"].get<std::vector<int>>()), c["greedy_text"].get<std::string>());
    }
    const auto want = expected["eval"]["ids"].get<std::vector<int>>();  // truncated to the model's context
    auto have = t->encode(expected["eval"]["text"].get<std::string>());
    ASSERT_GE(have.size(), want.size());
    have.resize(want.size());
    EXPECT_EQ(have, want);
  }
}

TEST(Tokenizer, RoundTripsAndRefusesWhatIsNotUtf8) {
  NEEDS_DATA("tokenizers");
  std::mt19937 random(1);
  for (const char* name : {"llama-spm", "gpt-2", "falcon", "deepseek-coder"}) {
    const auto t = load_tokenizer(data(std::string("tokenizers/ggml-vocab-") + name + ".gguf"));
    for (int i = 0; i < 200; ++i) {
      std::string text;
      for (int k = 0; k < 20; ++k) {
        const char* pieces[] = {"a", "Z",  " ", "  ", "\n", "\xC3\xA9", "\xE4\xBD\xA0", "\xF0\x9F\x98\x80",
                                "7", "'s", "!", "\t"};
        text += pieces[random() % std::size(pieces)];
      }
      EXPECT_EQ(t->decode(t->encode(text)), text) << name;
    }
    try {
      t->encode("abc\xff");
      ADD_FAILURE();
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("byte 0xff at offset 3"), std::string::npos) << e.what();
    }
    for (int i = 0; i < 500; ++i) {  // any bytes give ids or an Error
      std::string bytes(random() % 40, 0);
      for (char& c : bytes) c = static_cast<char>(random());
      try {
        t->encode(bytes);
      } catch (const Error&) {
      }
    }
  }
}

// Compares both kinds of BPE with their definition on texts: words over few letters, in which pieces overlap in every
// way, with characters that are no piece, and duplicate pieces.
TEST(Tokenizer, JoinsAreThoseOfTheTexts) {
  std::mt19937 random(6);
  const std::vector<std::string> letters{"a", "b", "\xC3\xA9", "\xE4\xBD\xA0"};
  const auto word = [&](std::size_t longest) {
    std::vector<std::string> w(1 + random() % longest);
    for (std::string& c : w) c = letters[random() % letters.size()];
    return w;
  };
  const auto text = [](const std::vector<std::string>& w) {
    std::string s;
    for (const std::string& c : w) s += c;
    return s;
  };
  // repeatedly joins the pair with the least cost(left, right), the leftmost of equals
  const auto joined = [](std::vector<std::string> w, const auto& cost) {
    for (;;) {
      std::optional<std::pair<double, std::size_t>> best;
      for (std::size_t i = 0; i + 1 < w.size(); ++i)
        if (const std::optional<double> c = cost(w[i], w[i + 1]); c && (!best || *c < best->first)) best = {*c, i};
      if (!best) return w;
      w[best->second] += w[best->second + 1];
      w.erase(w.begin() + static_cast<std::ptrdiff_t>(best->second) + 1);
    }
  };
  int joins = 0;
  for (int i = 0; i < 400; ++i) {
    Vocabulary v;
    for (unsigned k = 0; k < 3 + random() % 30; ++k)
      v.pieces.push_back(text(word(5))), v.scores.push_back(static_cast<float>(random() % 8));
    const auto id = [&](const std::string& s) {
      const auto at = std::find(v.pieces.begin(), v.pieces.end(), s);
      return at == v.pieces.end() ? -1 : static_cast<int>(at - v.pieces.begin());
    };
    v.unk = static_cast<int>(v.pieces.size()), v.space_prefix = false;
    v.pieces.push_back("<unk>"), v.scores.push_back(0);
    v.types.assign(v.pieces.size(), Vocabulary::Type::Normal), v.types.back() = Vocabulary::Type::Unknown;
    const auto spm = make_tokenizer(v);
    Vocabulary b;
    b.kind = Vocabulary::Kind::ByteBpe;
    for (unsigned k = 0; k < 1 + random() % 30; ++k) {
      std::string left(1 + random() % 3, 'a'), right(1 + random() % 3, 'a');
      for (char& c : left) c = static_cast<char>('a' + random() % 2);
      for (char& c : right) c = static_cast<char>('a' + random() % 2);
      b.merges.emplace_back(left, right), b.pieces.push_back(left + right);
    }
    b.pieces.push_back("a"), b.pieces.push_back("b");
    const auto bpe = make_tokenizer(b);
    for (int k = 0; k < 10; ++k) {
      const std::vector<std::string> w = word(24);
      std::vector<int> want;
      const auto score = [&](const std::string& l, const std::string& r) -> std::optional<double> {
        const int n = id(l + r);
        return n < 0 ? std::nullopt : std::optional(-static_cast<double>(v.scores[static_cast<std::size_t>(n)]));
      };
      for (const std::string& s : joined(w, score)) want.push_back(id(s) < 0 ? v.unk : id(s));
      ASSERT_EQ(spm->encode(text(w), false), want) << text(w);
      std::vector<std::string> plain(w.size());
      for (std::size_t c = 0; c < w.size(); ++c) plain[c] = w[c] == "a" ? "a" : "b";
      want.clear();
      const auto rank = [&](const std::string& l, const std::string& r) -> std::optional<double> {
        const auto at = std::find(b.merges.begin(), b.merges.end(), std::pair(l, r));
        return at == b.merges.end() ? std::nullopt : std::optional<double>(at - b.merges.begin());
      };
      for (const std::string& s : joined(plain, rank)) {
        want.push_back(static_cast<int>(std::find(b.pieces.begin(), b.pieces.end(), s) - b.pieces.begin()));
        joins += s.size() > 1;
      }
      ASSERT_EQ(bpe->encode(text(plain), false), want) << text(plain);
    }
  }
  EXPECT_GT(joins, 5000);
}

// The words of Llama 3 and Qwen 2. They differ in how digits are split, and in whether a word that is a token is
// merged.
TEST(Tokenizer, WordsOfLlama3AndQwen2) {
  Vocabulary v;
  v.kind = Vocabulary::Kind::ByteBpe;
  v.pieces = {"1", "2",  "3",        "4",        "12", "123",      "1234",    "a",
              "b", "ab", "\xC3\x83", "\xC2\xA9", "e",  "\xC3\x8C", "\xC4\xA3"};
  v.merges = {{"1", "2"}, {"12", "3"}, {"123", "4"}};
  v.split = split_patterns("llama-bpe");
  EXPECT_EQ(make_tokenizer(v)->encode("1234", false), (std::vector<int>{5, 3}));
  EXPECT_EQ(make_tokenizer(v)->encode("ab", false), (std::vector<int>{7, 8}));  // no merge creates it
  v.whole_words = true;
  EXPECT_EQ(make_tokenizer(v)->encode("ab", false), (std::vector<int>{9}));
  v.split = split_patterns("qwen2");
  EXPECT_EQ(make_tokenizer(v)->encode("1234", false), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(make_tokenizer(v)->encode("e\xCC\x81", false), (std::vector<int>{12, 13, 14}));
  v.nfc = true;  // e and a combining accent become one character
  EXPECT_EQ(make_tokenizer(v)->encode("e\xCC\x81", false), (std::vector<int>{10, 11}));
  v.bos = 7, v.eos = 8, v.add_bos = v.add_eos = true;
  EXPECT_EQ(make_tokenizer(v)->encode("12", true), (std::vector<int>{7, 0, 1, 8}));
  v.types.assign(v.pieces.size(), Vocabulary::Type::Normal);
  v.types[4] = v.types[5] = Vocabulary::Type::UserDefined;  // matched before other pieces, the longest first
  EXPECT_EQ(make_tokenizer(v)->encode("1231", false), (std::vector<int>{5, 0}));
  EXPECT_THROW(split_patterns("no such model"), Error);
}

// Unused pieces are in the file but never in a text. After a special token a text begins anew.
TEST(Tokenizer, SentencePieceUnusedPiecesAndPrefixes) {
  using Type = Vocabulary::Type;
  Vocabulary v;
  v.pieces = {"<unk>",
              "<s>",
              "</s>",
              "\xE2\x96\x81",
              "a",
              "b",
              "ab",
              "\xE2\x96\x81"
              "a",
              "<sep>",
              "\xE2\x96\x81"
              "ab"};
  v.types = {Type::Unknown, Type::Control, Type::Control, Type::Normal,      Type::Normal,
             Type::Normal,  Type::Unused,  Type::Normal,  Type::UserDefined, Type::Unused};
  v.scores.assign(v.pieces.size(), 0);
  v.unk = 0, v.bos = 1, v.eos = 2;
  const auto t = make_tokenizer(v);
  EXPECT_EQ(t->encode("ab", false), (std::vector<int>{7, 5}));
  EXPECT_EQ(t->encode("ab<sep>ab", false), (std::vector<int>{7, 5, 8, 7, 5}));
  EXPECT_EQ(t->encode("<s>a", false, true), (std::vector<int>{1, 7}));
  EXPECT_EQ(t->encode("a<unk>a", false, true), (std::vector<int>{7, 0, 7}));  // as in llama.cpp
  EXPECT_EQ(t->piece(-1), "");
  EXPECT_EQ(t->piece(10), "");  // an embedding table may have more rows
  EXPECT_THROW(t->decode(std::vector<int>{10}), Error);
  v.space_prefix = false;
  EXPECT_EQ(make_tokenizer(v)->encode("ab<sep>ab", false), (std::vector<int>{4, 5, 8, 4, 5}));
  v.scores[4] = std::nanf("");
  EXPECT_THROW(make_tokenizer(v), Error);
}

// Files of models of Hugging Face's kinds, with the ids of transformers.
TEST(Tokenizer, SmallModels) {
  const std::string folder = "models/tiny/";
  NEEDS_DATA(folder + "hf_tokenizer_cases.json");
  const Json models = Json::parse(slurp(data(folder + "hf_tokenizer_cases.json")));
  int checked = 0;
  for (const auto& [name, model] : models.items()) {
    const auto t = load_tokenizer(data(folder + model["tokenizer"].get<std::string>()));
    const bool json = model["tokenizer"].get<std::string>().ends_with(".json");
    for (const Json& c : model["cases"]) {
      EXPECT_EQ(t->encode(c["text"].get<std::string>(), json, json), c["ids"].get<std::vector<int>>()) << name;
      EXPECT_EQ(t->decode(c["ids"].get<std::vector<int>>()), c["decoded"].get<std::string>()) << name;
      ++checked;
    }
  }
  EXPECT_GE(checked, 100);
}

// BERT from a GGUF file: pairs, options of the normaliser, and the spaces that llama.cpp takes away in decoding.
TEST(Tokenizer, WordPieceOfGguf) {
  Vocabulary v;
  v.kind = Vocabulary::Kind::WordPiece;
  for (const char* word : {"it", "s", "e", "E", "'", "!", "don", "t", "\xC3\xA9", "m"})
    v.pieces.push_back("\xE2\x96\x81" + std::string(word));
  v.pieces.insert(v.pieces.begin(), {"[UNK]", "[CLS]", "[SEP]"});
  v.types.assign(v.pieces.size(), Vocabulary::Type::Normal);
  v.types[1] = v.types[2] = Vocabulary::Type::Control;
  v.unk = 0, v.bos = 1, v.eos = 2, v.add_bos = v.add_eos = true;
  const auto t = make_tokenizer(v);
  const Encoding e = t->encode_pair("it", "s E");
  EXPECT_EQ(e.ids, (std::vector<int>{1, 3, 2, 4, 5, 2}));
  EXPECT_EQ(e.type_ids, (std::vector<int>{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(e.attention_mask, std::vector<int>(6, 1));
  EXPECT_EQ(t->encoding("it").ids, t->encode("it"));
  EXPECT_EQ(t->decode(t->encode("it's!")), "it's!");
  EXPECT_EQ(t->decode(t->encode("don't")), "don't");
  EXPECT_EQ(t->decode(t->encode("it 'm s")), "it'm s");
  EXPECT_EQ(t->encode("\xC3\xA9 E", false), (std::vector<int>{5, 5}));
  v.strip_accents = false;
  EXPECT_EQ(make_tokenizer(v)->encode("\xC3\xA9 E", false), (std::vector<int>{11, 5}));
  v.lowercase = false;
  EXPECT_EQ(make_tokenizer(v)->encode("\xC3\xA9 E", false), (std::vector<int>{11, 6}));
}

// tokenizer_config.json may ask for the clean-up of decoded texts. Only WordPiece does it.
TEST(Tokenizer, CleanUpOfTokenizerConfig) {
  const TempDir dir;
  const auto decoded = [&](const std::string& type, const std::string& flag) {
    spit(dir / "tokenizer.json",
         R"({"pre_tokenizer": {"type": "BertPreTokenizer"}, "decoder": {"type": "WordPiece", "cleanup": false},
      "model": {"type": ")" +
             type + R"(", "unk_token": "u", "vocab": {"u": 0, "don": 1, "'": 2, "t": 3, ".": 4}}})");
    spit(dir / "tokenizer_config.json", "{" + flag + "}");
    const auto t = load_tokenizer(dir / "tokenizer.json");
    return t->decode(t->encode("don't."));
  };
  EXPECT_EQ(decoded("WordPiece", ""), "don ' t .");
  EXPECT_EQ(decoded("WordPiece", R"("clean_up_tokenization_spaces": false)"), "don ' t .");
  EXPECT_EQ(decoded("WordPiece", R"("clean_up_tokenization_spaces": true)"), "don't.");
  EXPECT_EQ(decoded("WordLevel", R"("clean_up_tokenization_spaces": true)"), "don ' t .");
  EXPECT_SAYS(error_of([&] { decoded("WordPiece", R"("clean_up_tokenization_spaces": 1)"); }), "is not true or false");
}

// Characters that Unicode has added since the tables of the installed libraries. (The expected ids are those of
// tokenizers 0.23.3.)
TEST(Tokenizer, RecentCharacters) {
  const TempDir dir;
  spit(dir / "tokenizer.json", R"({"normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "Whitespace"},
    "model": {"type": "WordLevel", "unk_token": "u", "vocab": {"u": 0, "a\uD803\uDD70": 1, "a\uD801\uDDD2": 2}}})");
  const auto t = load_tokenizer(dir / "tokenizer.json");
  EXPECT_EQ(t->encode("a\xF0\x90\xB5\x90"), std::vector<int>{1});  // U+10D50 is the capital of U+10D70
  EXPECT_EQ(t->encode("a\xF0\x90\x97\x92"), std::vector<int>{2});  // U+105D2 is a letter
}

TEST(Tokenizer, EmptyPiecesInAWordPieceVocabulary) {
  const TempDir dir;
  spit(dir / "tokenizer.json",
       R"({"pre_tokenizer": {"type": "WhitespaceSplit"},
           "model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": {"[UNK]": 0, "": 1, "a": 2}}})");
  EXPECT_EQ(load_tokenizer(dir / "tokenizer.json")->encode("a b", false), (std::vector<int>{2, 0}));
}

TEST(Tokenizer, ByteLevelFromJson) {
  const TempDir dir;
  spit(dir / "tokenizer.json", R"({
    "added_tokens": [{"id": 6, "content": "<|endoftext|>", "special": true}],
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": "\\p{N}{1,3}| ?\\p{L}+|\\s+"}, "behavior": "Isolated"},
      {"type": "ByteLevel", "use_regex": false}]},
    "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}}, {"Sequence": {"id": "A"}}],
      "special_tokens": {"<|endoftext|>": {"id": "<|endoftext|>", "ids": [6], "tokens": ["<|endoftext|>"]}}},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "\u0120": 3, "\u0120ab": 4, "1": 5}, "merges": ["a b", ["\u0120", "ab"]]}})");
  const auto t = load_tokenizer(dir / "tokenizer.json");
  EXPECT_EQ(t->encode("ab ab1"), (std::vector<int>{6, 2, 4, 5}));
  EXPECT_EQ(t->decode(t->encode("ab ab1")), "ab ab1");
  EXPECT_EQ(t->encode("<|endoftext|>a", false, true), (std::vector<int>{6, 0}));
  EXPECT_TRUE(t->is_end(6));
}

TEST(Tokenizer, SentencePieceFromJson) {
  const TempDir dir;
  spit(dir / "tokenizer.json", R"({
    "added_tokens": [{"id": 0, "content": "<unk>", "special": true}, {"id": 1, "content": "<s>", "special": true}, {"id": 2, "content": "</s>", "special": true}],
    "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"}, {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
    "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
    "model": {"type": "BPE", "byte_fallback": true, "unk_token": "<unk>", "vocab": {"<unk>": 0, "<s>": 1, "</s>": 2, "<0xC3>": 3, "<0xA9>": 4, "\u2581": 5, "a": 6, "b": 7, "ab": 8, "\u2581ab": 9}, "merges": ["a b", "\u2581 ab"]}})");
  const auto t = load_tokenizer(dir / "tokenizer.json");
  EXPECT_EQ(t->encode("ab ab", false), (std::vector<int>{9, 9}));
  EXPECT_EQ(t->encode("\xC3\xA9", false), (std::vector<int>{5, 3, 4}));
  EXPECT_EQ(t->decode(t->encode("ab \xC3\xA9")), "ab \xC3\xA9");
}

// Metaspace, as transformers 5 writes it for Llama: a text's own space is its prefix; "first" adds no prefix after a
// special token. (The expected ids are those of transformers.)
TEST(Tokenizer, SpacesOfMetaspace) {
  const auto tokenizer = [](const std::string& scheme) {
    const TempDir dir;
    spit(dir / "tokenizer.json", R"({
      "added_tokens": [{"id": 0, "content": "<unk>", "special": true}, {"id": 1, "content": "</s>", "special": true}],
      "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": ")" +
                                     scheme + R"(", "split": false},
      "model": {"type": "BPE", "unk_token": "<unk>", "vocab": {"<unk>": 0, "</s>": 1, "\u2581": 2, "a": 3, "b": 4, "\u2581a": 5, "\u2581b": 6},
                "merges": ["\u2581 a", "\u2581 b"]}})");
    return load_tokenizer(dir / "tokenizer.json");
  };
  using Ids = std::vector<int>;
  struct Row {
    std::string text;
    Ids first, always, never;
  };
  const Row rows[] = {{"a", {5}, {5}, {3}},
                      {" a", {5}, {5}, {5}},
                      {"  a", {2, 5}, {2, 5}, {2, 5}},
                      {"\u2581"
                       "a",
                       {5},
                       {5},
                       {5}},
                      {"a</s>b", {5, 1, 4}, {5, 1, 6}, {3, 1, 4}},
                      {"</s> b", {1, 6}, {1, 6}, {1, 6}},
                      {"</s>b", {1, 4}, {1, 6}, {1, 4}}};
  const auto first = tokenizer("first"), always = tokenizer("always"), never = tokenizer("never");
  for (const Row& r : rows) {
    EXPECT_EQ(first->encode(r.text, false, true), r.first) << r.text;
    EXPECT_EQ(always->encode(r.text, false, true), r.always) << r.text;
    EXPECT_EQ(never->encode(r.text, false, true), r.never) << r.text;
  }
}

TEST(Tokenizer, DamagedFilesGiveErrors) {
  NEEDS_DATA("llm/stories260K");
  const TempDir dir;
  for (const std::string file :
       {"llm/stories260K/tokenizer.bin", "tokenizers/llama2/tokenizer.model", "tokenizers/ggml-vocab-llama-spm.gguf"}) {
    const std::string whole = slurp(data(file));
    std::mt19937 random(2);
    for (int i = 0; i < 60; ++i) {
      std::string bytes = whole.substr(0, i < 30 ? whole.size() * static_cast<std::size_t>(i) / 30 : whole.size());
      if (i >= 30)
        for (int k = 0; k < 20; ++k)
          bytes[random() % std::min<std::size_t>(bytes.size(), 4000)] = static_cast<char>(random());
      spit(dir / "x", bytes);
      try {
        load_tokenizer(dir / "x")->encode("Once upon a time", false);
      } catch (const Error&) {
      }
    }
  }
  spit(dir / "bad.json", R"({"model": {"type": "BPE", "vocab": {"a": "b"}, "merges": []}})");
  EXPECT_THROW(load_tokenizer(dir / "bad.json"), Error);
  spit(dir / "deep.json", std::string(100000, '['));
  EXPECT_THROW(load_tokenizer(dir / "deep.json"), Error);
}

}  // namespace
