// train_bpe() makes the vocabulary that the merges by hand give.
#include "lightcone/io/text/train_bpe.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "error_of.h"

using namespace lc;

namespace {

using Texts = std::vector<std::string>;

std::vector<std::string> pieces(const Vocabulary& v, std::size_t first, std::size_t count) {
  const auto begin = v.pieces.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

// Computed by hand: " aab" occurs three times and " ab" twice. " a" and "ab" occur 5 times each; ties go to the greater
// bytes, so " a" is first (a space is U+2581 here). Next, " aa" and "ab" occur 3 times each, and " aa" is the greater;
// then " aab".
TEST(TrainBpe, MergesWhatStandsTogetherMostOften) {
  const Vocabulary v = train_bpe(Texts{"aab aab ab", "aab ab"}, {.size = 9, .byte_fallback = false});
  EXPECT_EQ(pieces(v, 0, 3), (Texts{"<unk>", "<s>", "</s>"}));
  EXPECT_EQ(pieces(v, 3, 3), (Texts{"\u2581a", "\u2581aa", "\u2581aab"}));
  EXPECT_EQ(pieces(v, 6, 3), (Texts{"a", "b", "\u2581"}));
  EXPECT_GT(v.scores[3], v.scores[4]);
  const auto t = make_tokenizer(v);
  EXPECT_EQ(t->encode("aab", false), std::vector<int>{5});
  EXPECT_EQ(t->decode(t->encode("ab aab b")), "ab aab b");
}

TEST(TrainBpe, WordsAreLettersWithTheSpaceBefore) {
  const Texts texts{"it's, it's, it's, it's, 1234 1234 1234 \u00e9t\u00e9 \u00e9t\u00e9"};
  const Vocabulary v = train_bpe(texts, {.size = 400});
  const auto holds = [&](const std::string& p) { return std::ranges::find(v.pieces, p) != v.pieces.end(); };
  EXPECT_TRUE(holds("\u2581it's"));
  EXPECT_TRUE(holds("\u2581\u00e9t\u00e9"));
  EXPECT_TRUE(holds("\u25811"));
  EXPECT_FALSE(holds("12"));
  EXPECT_FALSE(holds("s,"));
  EXPECT_EQ(v.pieces.size(), 400u);
  EXPECT_EQ(v.types.back(), Vocabulary::Type::Unused);
}

TEST(TrainBpe, AnyTextComesBack) {
  const auto t = make_tokenizer(train_bpe(Texts{"the cat sat on the mat"}, {.size = 300}));
  for (const std::string text : {"the cat", "  two  spaces ", "\u4e2d\u6587 \xF0\x9F\x98\x80", "line\nline\t!", "THE"})
    EXPECT_EQ(t->decode(t->encode(text, false)), text);
  EXPECT_EQ(make_tokenizer(train_bpe(Texts{}, {.size = 300}))->decode(std::vector<int>{}), "");
}

TEST(TrainBpe, CharactersAlone) {
  const Vocabulary v = train_bpe(Texts{"hello you"}, {.size = 12, .byte_fallback = false, .merges = false});
  EXPECT_EQ(pieces(v, 3, 8), (Texts{"e", "h", "l", "o", "u", "y", "\u2581", "<unused10>"}));
  const auto t = make_tokenizer(v);
  EXPECT_EQ(t->encode("hello", false).size(), 5u);
  EXPECT_EQ(t->decode(t->encode("you hello", false)), "you hello");
  EXPECT_EQ(t->encode("z", false), std::vector<int>{v.unk});
}

TEST(TrainBpe, TheSameTextsGiveTheSamePieces) {
  Texts texts;
  for (int k = 0; k < 200; ++k) texts.push_back(str_cat("w", static_cast<char>('a' + k % 26), "x yz", k));
  EXPECT_EQ(train_bpe(texts, {.size = 380}).pieces, train_bpe(texts, {.size = 380}).pieces);
}

TEST(TrainBpe, Refusals) {
  EXPECT_PRED2(contains, error_of([] { train_bpe(Texts{"ab\xFF"}); }), "not UTF-8 at byte 2");
  EXPECT_PRED2(contains, error_of([] { train_bpe(Texts{"abc"}, {.size = 262}); }),
               "262 pieces has no room for 259 special ones and the 4 characters");
  EXPECT_PRED2(contains, error_of([] { train_bpe(Texts{"abc"}, {.size = -1}); }), "no room");
}

}  // namespace
