// Unigram gives the ids and texts of sentencepiece, from tokenizer.model and from GGUF.
#include <fstream>

#include <nlohmann/json.hpp>

#include "base64.h"
#include "data.h"
#include "error_of.h"
#include "lightcone/base/error.h"
#include "lightcone/io/checkpoints/save.h"
#include "lightcone/io/text/tokenizer.h"
#include "paths.h"

using namespace lc;
using Json = nlohmann::json;

#define EXPECT_SAYS(text, words)                        \
  do {                                                  \
    const std::string sentence = text;                  \
    EXPECT_TRUE(contains(sentence, words)) << sentence; \
  } while (false)

namespace {

// tools/make_unigram_goldens.py writes the goldens and defines this text.
std::string long_text() {
  std::string s;
  std::uint64_t state = 1;
  for (int i = 0; i < 30000; ++i) {
    state = (state * 1103515245 + 12345) % (1u << 31);
    s += "thebosandriglwum"[state >> 16 & 15];
  }
  return s;
}

std::string hashed(const std::vector<int>& ids) {
  std::uint64_t h = 14695981039346656037u;
  for (const int id : ids) h = (h ^ static_cast<std::uint64_t>(id)) * 1099511628211u;
  return std::to_string(h);
}

std::vector<Json> goldens() {
  std::ifstream in(std::string(paths::kSource) + "/tests/goldens/unigram.json");
  std::vector<Json> all;
  for (std::string line; std::getline(in, line);) all.push_back(Json::parse(line));
  EXPECT_EQ(all.size(), 4u);
  return all;
}

std::vector<int> ids(const Json& row) { return row["ids"].get<std::vector<int>>(); }

GgufFields gguf_fields(const Json& model) {
  return {{"tokenizer.ggml.model", std::string("t5")},
          {"tokenizer.ggml.tokens", model["pieces"].get<std::vector<std::string>>()},
          {"tokenizer.ggml.scores", model["scores"].get<std::vector<float>>()},
          {"tokenizer.ggml.token_type", model["types"].get<std::vector<std::int32_t>>()},
          {"tokenizer.ggml.precompiled_charsmap", model["charsmap"].get<std::vector<std::int32_t>>()},
          {"tokenizer.ggml.add_space_prefix", model["add_space_prefix"].get<bool>()},
          {"tokenizer.ggml.remove_extra_whitespaces", model["remove_extra_whitespaces"].get<bool>()},
          {"tokenizer.ggml.treat_whitespace_as_suffix", model["treat_whitespace_as_suffix"].get<bool>()},
          {"tokenizer.ggml.unknown_token_id", std::uint32_t{0}},
          {"tokenizer.ggml.eos_token_id", std::uint32_t{2}}};
}

TEST(Unigram, TokenizerModel) {
  const TempDir dir;
  for (const Json& model : goldens()) {
    spit(dir / "tokenizer.model", from_base64(model["model"].get<std::string>()));
    const auto t = load_tokenizer(dir / "tokenizer.model");
    for (const Json& row : model["rows"]) {
      EXPECT_EQ(t->encode(row["text"].get<std::string>(), false), ids(row)) << row["text"];
      EXPECT_EQ(t->decode(ids(row)), row["decoded"].get<std::string>()) << row["text"];
    }
    const std::vector<int> of_long = t->encode(long_text(), false);
    EXPECT_EQ(of_long.size(), model["long"][0].get<std::size_t>());
    EXPECT_EQ(hashed(of_long), model["long"][1].get<std::string>());
  }
}

// In a GGUF file user-defined symbols are cut out first, as llama.cpp does, and a text begins anew behind them.
TEST(Unigram, Gguf) {
  const TempDir dir;
  for (const Json& model : goldens()) {
    save_gguf(dir / "t5.gguf", {}, gguf_fields(model));
    const auto t = load_tokenizer(dir / "t5.gguf");
    for (const Json& row : model["rows"]) {
      const auto text = row["text"].get<std::string>();
      if (text.find("<ship>") != std::string::npos) continue;
      EXPECT_EQ(t->encode(text, false), ids(row)) << text;
      std::vector<int> ended = ids(row);
      ended.push_back(2);
      EXPECT_EQ(t->encode(text), ended) << text;
      EXPECT_EQ(t->decode(ended), row["decoded"].get<std::string>()) << text;
    }
    std::vector<int> parts = t->encode("a", false);
    const std::vector<int> b = t->encode("b", false);
    parts.push_back(3);  // <ship>
    parts.insert(parts.end(), b.begin(), b.end());
    EXPECT_EQ(t->encode("a<ship>b", false), parts);
    EXPECT_EQ(t->encode("</s>", false, true), std::vector<int>{2});
    EXPECT_EQ(t->eos(), 2);
  }
}

// What llama.cpp assumes where the file does not say: spaces stay as they are.
TEST(Unigram, GgufDefaults) {
  const TempDir dir;
  const std::string mark = "\xE2\x96\x81";
  const std::vector<std::string> pieces{"<pad>", "</s>", "<unk>", mark, "a", mark + "a", "aa"};
  const GgufFields fields{{"tokenizer.ggml.model", std::string("t5")},
                          {"tokenizer.ggml.tokens", pieces},
                          {"tokenizer.ggml.scores", std::vector<float>{0, 0, 0, -3, -2, -2.5f, -4.5f}},
                          {"tokenizer.ggml.token_type", std::vector<std::int32_t>{3, 3, 2, 1, 1, 1, 1}}};
  save_gguf(dir / "t5.gguf", {}, fields);
  const auto t = load_tokenizer(dir / "t5.gguf");
  EXPECT_EQ(t->encode("a  a"), (std::vector<int>{4, 3, 5, 1}));      // sums: -2 -3 -2.5
  EXPECT_EQ(t->encode("aa", false), (std::vector<int>{4, 4}));       // -4 is more than -4.5
  EXPECT_EQ(t->encode("axxa", false), (std::vector<int>{4, 2, 4}));  // unknown characters are one token
  EXPECT_EQ(t->encode_pair("a", "aa").ids, (std::vector<int>{4, 1, 4, 4, 1}));
  const auto refused = [&](std::size_t field, const GgufField& value) {
    GgufFields f = fields;
    f[field].second = value;
    save_gguf(dir / "bad.gguf", {}, f);
    return error_of([&] { load_tokenizer(dir / "bad.gguf"); });
  };
  EXPECT_SAYS(refused(0, std::string("rwkv")), "a tokenizer of type 'rwkv' is not supported (llama, gpt2, bert and t5");
  EXPECT_SAYS(refused(2, std::vector<float>{0, 0, 0, -3, -2, -2.5f, std::nanf("")}), "the score of the piece 6 is not");
  EXPECT_SAYS(refused(2, std::vector<float>{0, 0, 0, -3, -2, -2.5f, HUGE_VALF}),
              "the score of the piece 6 is infinite");
  EXPECT_SAYS(refused(2, std::vector<float>{0, 0}), "'tokenizer.ggml.scores' has 2 values for 7 tokens");
  EXPECT_SAYS(refused(3, std::vector<std::int32_t>{3, 3, 2, 1, 1, 1, 6}), "the byte piece 'aa' is none");
  GgufFields f = fields;
  f.emplace_back("tokenizer.ggml.precompiled_charsmap", std::vector<std::int32_t>{4, 0, 0, 0, 1, 2});
  save_gguf(dir / "bad.gguf", {}, f);
  EXPECT_SAYS(error_of([&] { load_tokenizer(dir / "bad.gguf"); }), "the table of characters is damaged");
  f.back().second = std::vector<std::int32_t>{300};
  save_gguf(dir / "bad.gguf", {}, f);
  EXPECT_SAYS(error_of([&] { load_tokenizer(dir / "bad.gguf"); }), "300, which is no byte");
}

// A damaged trie: a node that is its own child would make the time of a text quadratic, and a chain of 300 nodes is
// longer than any rule of a published table.
TEST(Unigram, TablesOfCharactersWithCirclesAreRefused) {
  const TempDir dir;
  const auto said = [&](const std::vector<std::uint32_t>& units) {
    std::vector<std::int32_t> bytes;
    const auto put = [&](std::uint32_t v) {
      for (int k = 0; k < 4; ++k) bytes.push_back(static_cast<std::int32_t>(v >> 8 * k & 255));
    };
    put(static_cast<std::uint32_t>(4 * units.size()));
    for (const std::uint32_t u : units) put(u);
    bytes.push_back('x'), bytes.push_back(0);
    save_gguf(dir / "t5.gguf", {},
              {{"tokenizer.ggml.model", std::string("t5")},
               {"tokenizer.ggml.tokens", std::vector<std::string>{"<pad>", "</s>", "<unk>", "a"}},
               {"tokenizer.ggml.scores", std::vector<float>{0, 0, 0, -1}},
               {"tokenizer.ggml.precompiled_charsmap", bytes}});
    return error_of([&] { load_tokenizer(dir / "t5.gguf")->encode(std::string(100000, 'a')); });
  };
  std::vector<std::uint32_t> units(256);
  units[0] = 1u << 10;               // the children of the root are at 1 xor their byte
  units[1 ^ 'a'] = 'a' | 'a' << 10;  // and those of this node at (1 xor 'a') xor 'a' xor their byte
  EXPECT_SAYS(said(units), "it has a circle");
  units[1 ^ 'a'] = 'a';  // its children are where no node is
  EXPECT_EQ(said(units), "no error");
  units.assign(1024, 0);
  units[0] = 1u << 10;
  std::size_t node = 1 ^ 'a';
  for (std::size_t i = 1; i < 300; ++i) {  // node i + 1 follows node i
    const std::size_t next = i + 256;
    units[node] = static_cast<std::uint32_t>('a' | (node ^ next ^ 'a') << 10);
    node = next;
  }
  units[node] = 'a';
  EXPECT_SAYS(said(units), "a rule is too long");
}

// Pieces that are not in use, byte pieces instead of an unknown token, and a zero byte as a piece, which sentencepiece
// 0.2.3 reads as one that is not in use. (The expected ids are those of that library.)
TEST(Unigram, ModelsWithoutAnUnknownToken) {
  const TempDir dir;
  const auto field = [](int number, const std::string& bytes) {
    std::string s(1, static_cast<char>(number << 3 | 2));
    for (std::size_t n = bytes.size(); n > 0 || s.size() == 1; n >>= 7)
      s += static_cast<char>((n & 127) | (n > 127 ? 128 : 0));
    return s + bytes;
  };
  const auto piece = [&](const std::string& text, char type) {
    return field(1, field(1, text) + std::string("\x15\0\0\x80\xBF\x18", 6) + type);  // score -1
  };
  std::string pieces = piece("a", 1) + piece("b", 5) + piece(std::string(1, '\0'), 1);
  for (int b = 0; b < 256; ++b) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(b));
    pieces += piece(name, 6);
  }
  const std::string trainer = field(2, std::string("\x18\x01\x98\x02\x01", 5)),  // Unigram, byte_fallback
      normalizer = field(3, std::string("\x18\x00\x20\x00\x28\x00", 6));  // no space is added, removed or escaped
  spit(dir / "tokenizer.model", pieces + trainer + normalizer);
  const auto t = load_tokenizer(dir / "tokenizer.model");
  EXPECT_EQ(t->encode("ab", false), (std::vector<int>{0, 3 + 'b'}));
  EXPECT_EQ(t->encode(std::string(1, '\0'), false), std::vector<int>{3});
  EXPECT_EQ(t->decode(std::vector<int>{0, 3 + 0xC3, 3 + 0xA9}), "a\xC3\xA9");
}

}  // namespace
