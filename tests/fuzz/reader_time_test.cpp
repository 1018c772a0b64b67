// Readers take time proportional to the size of the file, for as many tensors, texts, pieces or merges as a file can
// hold.
//
// Processor time is compared with that of a file of a fourth or a sixteenth of the size, so that neither a slow machine
// nor a loaded one fails.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "data.h"
#include "gguf_writer.h"
#include "lightcone/base/error.h"
#include "lightcone/io/checkpoints/gguf.h"
#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/io/text/tokenizer.h"
#include "lightcone/models/llama/llama_config.h"
#include "processor_time.h"

using namespace lc;

namespace {

using test::seconds;

// Creates the input of a given size and returns a function that reads it.
using Make = std::function<std::function<void()>(std::size_t)>;

// Checks that `times` the size takes less than `most` times as long. For 4 times the size, n log n with cache effects
// takes five or six times as long, a square 16 times. The least of several measurements counts; a neighbour on the same
// core may slow all of a second.
void expect_linear(std::size_t size, const Make& make, std::size_t times = 4, double most = 10) {
  const std::function<void()> small = make(size), large = make(size * times);
  double of_small = std::numeric_limits<double>::infinity(), of_large = of_small;
  const auto in_proportion = [&] { return of_large < most * of_small; };
  for (int i = 0; i < 2 || (i < 25 && !in_proportion()); ++i) {
    of_small = std::min(of_small, seconds(small));
    of_large = std::min(of_large, seconds(large));
  }
  EXPECT_TRUE(in_proportion()) << size << ": " << of_small << " s, " << times << " times that: " << of_large << " s";
}

template <class T>
void put(std::string& s, const T& v) {
  s.append(reinterpret_cast<const char*>(&v), sizeof v);
}
void put_text(std::string& s, const std::string& t) { put(s, static_cast<std::uint64_t>(t.size())), s += t; }
// A number of fixed width, so that words differ only at their ends.
std::string digits(std::size_t n, std::size_t width = 8) {
  const std::string d = std::to_string(n);
  return std::string(width - d.size(), '0') + d;
}
// The i-th of n numbers in an order that is neither ascending nor descending.
std::size_t shuffled(std::size_t i, std::size_t n) { return i * 1'000'003 % n; }

constexpr std::uint32_t kU8 = 0, kI32 = 5, kF32 = 6, kText = 8, kArray = 9;
std::string gguf_header(std::size_t tensors, std::size_t values) {
  std::string s = "GGUF";
  put(s, std::uint32_t{3}), put(s, static_cast<std::uint64_t>(tensors)), put(s, static_cast<std::uint64_t>(values));
  return s;
}
// A file with one array, under the key "k".
std::string gguf_array(std::uint32_t type, std::size_t n, const std::string& each) {
  std::string s = gguf_header(0, 1);
  put_text(s, "k"), put(s, kArray), put(s, type), put(s, static_cast<std::uint64_t>(n));
  s.reserve(s.size() + n * each.size());
  for (std::size_t i = 0; i < n; ++i) s += each;
  return s;
}

// Merges that build on each other: the file grows with the square of their number. A reader that looks up whole texts
// takes the power 3/2 of the file's size, 512 times as long for 64 times the size.
constexpr std::size_t kManyTimes = 64;
constexpr double kTooMuch = 200;

// A file in a temporary folder that lives as long as this object.
struct Stored {
  TempDir dir;
  std::string path;
  Stored(const char* name, const std::string& bytes) : path(dir / name) { spit(path, bytes); }
};
std::function<void()> reading(const char* name, const std::string& bytes,
                              const std::function<void(const std::string&)>& read) {
  return [file = std::make_shared<Stored>(name, bytes), read] { read(file->path); };
}
std::function<void()> reading_gguf(const std::string& bytes, std::size_t tensors = 0) {
  return reading("x.gguf", bytes,
                 [tensors](const std::string& path) { EXPECT_EQ(Weights::open(path).tensors().size(), tensors); });
}
// Loads a tokenizer of `pieces` pieces, encodes a text and decodes it.
std::function<void()> using_tokens(const char* name, const std::string& bytes, std::size_t pieces,
                                   const std::string& text = "") {
  return reading(name, bytes, [pieces, text](const std::string& path) {
    const auto t = load_tokenizer(path);
    EXPECT_EQ(static_cast<std::size_t>(t->size()), pieces);
    EXPECT_TRUE(t->decode(t->encode(text, false)) == text);
  });
}

// A SentencePiece model has a field 1 per piece, with a text, a score and a type.
std::string varint(std::uint64_t n) {
  std::string s;
  for (; n > 127; n >>= 7) s += static_cast<char>(n | 128);
  return s + static_cast<char>(n);
}
std::string proto_bytes(int field, const std::string& b) {
  return varint(static_cast<std::uint64_t>(field) << 3 | 2) + varint(b.size()) + b;
}
std::string proto_piece(const std::string& text, float score = 0, int type = 1) {
  std::string p = proto_bytes(1, text);
  p += '\x15', put(p, score);
  return proto_bytes(1, p + '\x18' + static_cast<char>(type));
}
// The three special pieces, and a piece for every byte, so that every text has tokens.
std::string proto_bytes_pieces() {
  std::string s = proto_piece("<unk>", 0, 2) + proto_piece("<s>", 0, 3) + proto_piece("</s>", 0, 3);
  for (int b = 0; b < 256; ++b) {
    char spelled[8];
    std::snprintf(spelled, sizeof spelled, "<0x%02X>", b);
    s += proto_piece(spelled, 0, 6);
  }
  return s;
}
constexpr std::size_t kBytePieces = 259;
// The settings: BPE (or another kind) with byte pieces, no normalization, no space before the first word.
std::string proto_end(char kind = 2) {
  return proto_bytes(2, std::string("\x18") + kind + "\x98\x02\x01") + proto_bytes(3, std::string("\x18\0\x20\0", 4));
}

// Pieces a, aa, aaa, ...: each merge appends one letter, and the next merge is always the best.
std::vector<std::string> chain(std::size_t longest, char letter = 'a') {
  std::vector<std::string> pieces;
  for (std::size_t n = 1; n <= longest; ++n) pieces.emplace_back(n, letter);
  return pieces;
}
// As many letters as all pieces of a chain together.
std::string as_long_as(const std::vector<std::string>& pieces) {
  return std::string(pieces.size() * pieces.size() / 2, 'a');
}

}  // namespace

// ---- GGUF ---------------------------------------------------------------------------------------------------------

TEST(ReaderTime, GgufTensors) {
  // the most dimensions allowed; tensors are adjacent in the file, in another order than in the table
  const auto tensors = [](std::size_t n, const std::string& before) {
    std::string s = gguf_header(n, 1);
    put_text(s, "general.alignment"), put(s, std::uint32_t{4}), put(s, std::uint32_t{1});
    for (std::size_t i = 0; i < n; ++i) {
      put_text(s, before + digits(shuffled(i, n)));
      put(s, std::uint32_t{8});
      for (int d = 0; d < 8; ++d) put(s, std::uint64_t{1});
      put(s, std::uint32_t{24}), put(s, static_cast<std::uint64_t>(shuffled(i, n)));  // I8
    }
    return s + std::string(n, 1);
  };
  expect_linear(8000, [&](std::size_t n) { return reading_gguf(tensors(n, ""), n); });
  // names of the greatest length allowed that differ only at their ends
  expect_linear(32, [&](std::size_t n) { return reading_gguf(tensors(n, std::string(65000, 'x')), n); });
}

TEST(ReaderTime, GgufMetadata) {
  const auto values = [](std::size_t n, const std::string& before) {
    std::string s = gguf_header(0, n);
    for (std::size_t i = 0; i < n; ++i) put_text(s, before + digits(n - i)), put(s, kU8), s += '\x01';
    return reading_gguf(s);
  };
  expect_linear(20000, [&](std::size_t n) { return values(n, ""); });
  expect_linear(32, [&](std::size_t n) { return values(n, std::string(65000, 'x')); });
}

TEST(ReaderTime, GgufArrays) {
  expect_linear(100000, [](std::size_t n) { return reading_gguf(gguf_array(kText, n, std::string(8, 0))); });
  std::string word;
  put_text(word, std::string(1000, 'x'));
  expect_linear(4000, [&](std::size_t n) { return reading_gguf(gguf_array(kText, n, word)); });
  // many empty arrays
  expect_linear(20000, [](std::size_t n) {
    std::string s = gguf_header(0, n);
    for (std::size_t i = 0; i < n; ++i) put_text(s, digits(i)), put(s, kArray), put(s, kText), put(s, std::uint64_t{0});
    return reading_gguf(s);
  });
  expect_linear(1 << 20, [](std::size_t n) {
    std::string four;
    put(four, std::int32_t{7});
    return reading("x.gguf", gguf_array(kI32, n, four), [n](const std::string& path) {
      const GgufFile g = read_gguf(path);
      double sum = 0;
      for (std::size_t i = 0; i < n; ++i) sum += (*g.numbers("k"))[i];
      EXPECT_EQ(sum, 7.0 * static_cast<double>(n));
    });
  });
}

namespace {

// A tokenizer in a GGUF file.
std::string gguf_tokens(const char* model, const std::vector<std::string>& pieces, const std::vector<float>& scores,
                        std::int32_t type, const std::vector<std::string>& merges = {}) {
  std::string s = gguf_header(0, 5);
  const auto texts = [&](const char* key, const std::vector<std::string>& all) {
    put_text(s, key), put(s, kArray), put(s, kText), put(s, static_cast<std::uint64_t>(all.size()));
    for (const std::string& t : all) put_text(s, t);
  };
  put_text(s, "tokenizer.ggml.model"), put(s, kText), put_text(s, model);
  texts("tokenizer.ggml.tokens", pieces);
  put_text(s, "tokenizer.ggml.token_type"), put(s, kArray), put(s, kI32);
  put(s, static_cast<std::uint64_t>(pieces.size()));
  for (std::size_t i = 0; i < pieces.size(); ++i) put(s, type);
  if (!merges.empty()) {
    texts("tokenizer.ggml.merges", merges);
    put_text(s, "tokenizer.ggml.pre"), put(s, kText), put_text(s, "gpt-2");
  } else {
    put_text(s, "tokenizer.ggml.scores"), put(s, kArray), put(s, kF32);
    put(s, static_cast<std::uint64_t>(scores.size()));
    for (float v : scores) put(s, v);
    put_text(s, "tokenizer.ggml.add_space_prefix"), put(s, std::uint32_t{7}), s += '\0';
  }
  return s;
}

}  // namespace

TEST(ReaderTime, GgufTokens) {
  for (const std::int32_t type : {1, 3, 4})  // normal, control and user-defined tokens
    expect_linear(type == 4 ? 5000 : 10000, [type](std::size_t n) {
      std::vector<std::string> pieces{"a"};
      for (std::size_t i = 1; i < n; ++i) pieces.push_back(digits(shuffled(i, n)));
      return using_tokens("x.gguf", gguf_tokens("llama", pieces, std::vector<float>(n), type), n,
                          type == 3 ? "" : std::string(n, 'a'));
    });
  expect_linear(1 << 19, [](std::size_t n) {  // one long text
    const std::vector<std::string> pieces{"u", "v", "w", "a", std::string(n, 'a')};
    return using_tokens("x.gguf", gguf_tokens("llama", pieces, std::vector<float>(5), 1), 5, pieces.back());
  });
  // only end-of-text tokens, and is_end() of each
  expect_linear(4000, [](std::size_t n) {
    const std::vector<std::string> pieces(n, "<EOT>");
    return reading("x.gguf", gguf_tokens("llama", pieces, std::vector<float>(n), 3), [](const std::string& path) {
      const auto t = load_tokenizer(path);
      for (int id = 0; id < t->size(); ++id) EXPECT_TRUE(t->is_end(id));
      EXPECT_FALSE(t->is_end(t->size()));
    });
  });
}

TEST(ReaderTime, GgufMerges) {
  expect_linear(5000, [](std::size_t n) {  // merges "a... b" of a fixed length, as many as pieces
    std::vector<std::string> pieces{"a"}, merges;
    for (std::size_t i = 0; i < n; ++i) {
      const std::string left = "a" + digits(i);
      merges.push_back(left + " b"), pieces.push_back(left + "b");
    }
    return using_tokens("x.gguf", gguf_tokens("gpt2", pieces, {}, 1, merges), n + 1, std::string(n, 'a'));
  });
  expect_linear(1 << 20, [](std::size_t n) {  // one merge of a long text
    const std::string a(n, 'a');
    return using_tokens("x.gguf", gguf_tokens("gpt2", {"a", "b", a + "b"}, {}, 1, {a + " b"}), 3, "aab");
  });
  // each merge builds on the previous one: the more of a word is joined, the longer are the texts to look up
  expect_linear(
      8000,
      [](std::size_t n) {
        const auto longest = static_cast<std::size_t>(std::sqrt(2.0 * static_cast<double>(n)));
        const std::vector<std::string> pieces = chain(longest);
        std::vector<std::string> merges;
        for (std::size_t k = longest; k-- > 1;) merges.push_back(std::string(k, 'a') + " a");  // longest first
        return using_tokens("x.gguf", gguf_tokens("gpt2", pieces, {}, 1, merges), longest, as_long_as(pieces));
      },
      kManyTimes, kTooMuch);
}

// ---- SentencePiece ------------------------------------------------------------------------------------------------

TEST(ReaderTime, SentencePiecePieces) {
  const auto pieces = [](std::size_t n, const std::function<std::string(std::size_t)>& each) {
    std::string s = proto_bytes_pieces();
    for (std::size_t i = 0; i < n; ++i) s += each(i);
    return using_tokens("tokenizer.model", s + proto_end(), kBytePieces + n, "once" + std::string(n, 'a'));
  };
  for (const int type : {1, 3, 4})
    expect_linear(type == 4 ? 4000 : 8000, [&](std::size_t n) {
      return pieces(n, [&](std::size_t i) { return proto_piece("b" + digits(shuffled(i, n)), 0, type); });
    });
  // long pieces that differ only at their ends
  expect_linear(32, [&](std::size_t n) {
    return pieces(n, [](std::size_t i) { return proto_piece(std::string(20000, 'b') + digits(i)); });
  });
  expect_linear(1 << 19, [&](std::size_t n) {
    return using_tokens("tokenizer.model", proto_bytes_pieces() + proto_piece(std::string(n, 'a')) + proto_end(),
                        kBytePieces + 1, std::string(n, 'a'));
  });
}

TEST(ReaderTime, SentencePieceFields) {
  const std::string skipped = proto_bytes(4, "");  // self-test data of a model, which the library skips
  expect_linear(100000, [&](std::size_t n) {       // fields between pieces, and within one
    std::string s = proto_bytes_pieces(), within = proto_bytes(1, "a");
    for (std::size_t i = 0; i < n; ++i) s += skipped, within += proto_bytes(1, "a");
    return using_tokens("tokenizer.model", s + proto_bytes(1, within) + proto_end(), kBytePieces + 1, "a");
  });
}

TEST(ReaderTime, SentencePieceMerges) {
  // each merge builds on the previous one
  expect_linear(
      8000,
      [](std::size_t n) {
        const std::vector<std::string> all = chain(static_cast<std::size_t>(std::sqrt(2.0 * static_cast<double>(n))));
        std::string s = proto_bytes_pieces();
        for (std::size_t i = 0; i < all.size(); ++i) s += proto_piece(all[i], static_cast<float>(i));
        return using_tokens("tokenizer.model", s + proto_end(), kBytePieces + all.size(), as_long_as(all));
      },
      kManyTimes, kTooMuch);
  // a long piece whose neighbour grows letter by letter, and is looked up with it each time
  expect_linear(
      2048,
      [](std::size_t n) {
        const std::vector<std::string> all = chain(static_cast<std::size_t>(std::sqrt(static_cast<double>(n))), 'b');
        std::string s = proto_bytes_pieces();
        for (std::size_t k = 1; k <= n; k *= 2) s += proto_piece(std::string(k, 'a'), 1e6);
        for (std::size_t i = 0; i < all.size(); ++i) s += proto_piece(all[i], static_cast<float>(i));
        const std::string text = std::string(n, 'a') + all.back();
        std::string texts;
        for (int i = 0; i < 4; ++i) texts += text;
        std::size_t pieces = kBytePieces + all.size();
        for (std::size_t k = 1; k <= n; k *= 2) ++pieces;
        return using_tokens("tokenizer.model", s + proto_end(), pieces, texts);
      },
      kManyTimes, kTooMuch);
}

// Unigram: a long piece that matches the text except for its last letter at each position. (Pieces that are prefixes of
// each other are all found at each position, which takes the square root of the file's size as often.)
TEST(ReaderTime, SentencePieceUnigram) {
  expect_linear(1 << 16, [](std::size_t n) {
    return using_tokens("tokenizer.model",
                        proto_bytes_pieces() + proto_piece(std::string(n, 'a') + "b") + proto_piece("a") + proto_end(1),
                        kBytePieces + 2, std::string(n, 'a'));
  });
}

// ---- llama2.c -----------------------------------------------------------------------------------------------------

namespace {

std::string llama2c_pieces(std::size_t n, const std::function<std::string(std::size_t)>& each) {
  std::string s(4, 1);
  for (std::size_t i = 0; i < n; ++i) {
    const std::string p = i == 3 ? " " : i == 4 ? "a" : each(i);
    put(s, static_cast<float>(i)), put(s, static_cast<std::int32_t>(p.size()));
    s += p;
  }
  return s;
}

}  // namespace

TEST(ReaderTime, Llama2cLayers) {  // at most 1000 layers are allowed
  expect_linear(250, [](std::size_t layers) {
    std::string s;
    const auto depth = static_cast<std::int32_t>(layers);
    for (const std::int32_t v : {8, 8, depth, 1, 1, 8, 8}) put(s, v);
    const std::size_t matrices = 7 * 64, numbers = 64 + layers * (matrices + 16) + 8 + 64;
    s += std::string(numbers * 4, 0);
    return reading("x.bin", s, [layers](const std::string& path) {
      const Weights w = Weights::open(path);
      EXPECT_EQ(w.tensors().size(), 9 * layers + 2);
      EXPECT_EQ(static_cast<std::size_t>(LlamaConfig::from(w).layers), layers);
    });
  });
}

TEST(ReaderTime, Llama2cPieces) {
  const auto pieces = [](std::size_t n, const std::function<std::string(std::size_t)>& each) {
    return using_tokens("tokenizer.bin", llama2c_pieces(n, each), n, std::string(n, 'a'));
  };
  expect_linear(20000, [&](std::size_t n) { return pieces(n, [](std::size_t) { return std::string(); }); });
  expect_linear(10000,
                [&](std::size_t n) { return pieces(n, [n](std::size_t i) { return "b" + digits(shuffled(i, n)); }); });
  expect_linear(32, [&](std::size_t n) {  // pieces of the greatest length allowed
    return pieces(n, [](std::size_t i) { return std::string(65536 - 8, 'b') + digits(i); });
  });
  expect_linear(
      8000,
      [](std::size_t n) {
        const std::vector<std::string> all = chain(static_cast<std::size_t>(std::sqrt(2.0 * static_cast<double>(n))));
        const std::string bytes =
            llama2c_pieces(all.size() + 4, [&](std::size_t i) { return i < 4 ? "" : all[i - 4]; });
        return using_tokens("tokenizer.bin", bytes, all.size() + 4, as_long_as(all));
      },
      kManyTimes, kTooMuch);
}
