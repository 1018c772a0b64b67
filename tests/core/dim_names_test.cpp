// The simplified form of a Dim does not depend on the names of its symbols.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "lightcone/core/view.h"

using namespace lc;

namespace {

using Names = std::array<std::string, 3>;

struct Sizes {
  Dim p, n, s;
  explicit Sizes(const Names& names)
      : p(Dim::symbol(names[0], 0, 5)), n(Dim::symbol(names[1], 1, 6)), s(Dim::symbol(names[2], 2, 7)) {}
};

// An approximate cost; divisions are expensive.
std::size_t operations(const Dim& d) {
  std::size_t count = d.offset() != 0;
  for (const Dim::Term& t : d.terms()) {
    count += t.factors.size() + (t.coefficient != 1);
    for (const Dim::Atom* f : t.factors)
      if (f->kind != Dim::Kind::Symbol) count += 10 + operations(f->a) + operations(f->b);
  }
  return count;
}

// The index expressions of a random buffer seen through random view operations. The seed makes all choices.
struct Seen {
  std::mt19937 rng;
  Sizes at;
  std::vector<Dim> results;
  std::map<std::string, Dim> indices;

  std::size_t pick(std::size_t below) { return rng() % below; }

  // Returns an extent, and the begin and length of a slice of it.
  std::array<Dim, 3> extent() {
    const auto& [p, n, s] = at;
    const std::array<Dim, 3> all[] = {
        {p + n, p, n},         {p + n, n, p},     {p + n, 0, n},         {p + s, p, s},     {n, 0, n},
        {s, 1, s - 1},         {p + n + s, p, s}, {p + n + s, n, p + s}, {n * s, 0, n * s}, {n * (p + s), 0, n * s},
        {p * s + n, n, p * s}, {p + 1, p, 1},     {n * 2, n, n},         {3, 0, 3},         {4, 2, 2}};
    return all[pick(std::size(all))];
  }

  Seen(unsigned seed, const Names& names) : rng(seed), at(names) {
    Shape base, begin, part;
    const std::size_t rank = 2 + pick(3);
    for (std::size_t i = 0; i < rank; ++i) {
      const auto [all, from, length] = extent();
      base.push_back(all), begin.push_back(from), part.push_back(length);
    }
    View v(base);
    const bool sliced = pick(3) == 0;
    if (sliced) v = v.slice(begin, part);
    const std::size_t moves = 1 + pick(3);
    for (std::size_t k = 0; k < moves; ++k) {
      Shape to = v.shape();
      std::vector<int> axes(to.size());
      std::iota(axes.begin(), axes.end(), 0);
      switch (pick(3)) {
        case 0:
          std::rotate(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(pick(axes.size())), axes.end());
          v = v.permute(axes);
          break;
        case 1:
          if (to.size() < 2) break;
          to[0] = to[0] * to[1];
          to.erase(to.begin() + 1);
          v = v.reshape(to);
          break;
        default:
          if (!sliced) v = v.reshape(base);
      }
    }
    const Shape index = index_symbols(v.shape());
    for (const Dim& i : index)
      if (const auto name = i.name()) indices.emplace(*name, i);
    const View::Position position = v.locate(index);
    results = position.index;
    results.push_back(position.offset);
    const auto again = unravel(position.offset, base);
    results.insert(results.end(), again.begin(), again.end());
  }
};

// Checks that b is a with other names, and has as many operations. (Substituting names simplifies anew, so comparing
// the expressions alone would prove too little.)
void same(const Seen& a, const Names& from, const Seen& b, const Names& to, unsigned seed) {
  const Sizes sizes(to);
  const auto renamed = [&](const std::string& name) -> std::optional<Dim> {
    for (std::size_t k = 0; k < 3; ++k)
      if (name == from[k]) return std::array{sizes.p, sizes.n, sizes.s}[k];
    return b.indices.at(name);
  };
  ASSERT_EQ(a.results.size(), b.results.size());
  for (std::size_t k = 0; k < a.results.size(); ++k) {
    ASSERT_EQ(operations(a.results[k]), operations(b.results[k]))
        << "seed " << seed << ": " << a.results[k] << "\nand " << b.results[k];
    ASSERT_EQ(a.results[k].substitute(renamed), b.results[k]) << "seed " << seed << ": " << a.results[k];
  }
}

}  // namespace

TEST(DimNames, TheIndexOfAScoreOverACacheIsTheLoopsIndex) {
  for (const Names& names : {Names{"past", "now", "x"}, Names{"past", "seq", "x"}}) {
    const auto [past, now, x] = Sizes(names);
    const Shape shape = {2, 4, now, past + now};
    const Shape index = index_symbols(shape);
    EXPECT_EQ(unravel(ravel(index, shape), shape), index) << names[1];
    EXPECT_EQ((index[0] * (past + now) + past) / (past + now), index[0]) << names[1];
  }
}

TEST(DimNames, DecideNothing) {
  std::mt19937 rng(7);
  const auto word = [&] {
    std::string w;
    for (std::size_t k = 0; k < 3; ++k) w += static_cast<char>("abhijklnpsz_"[rng() % 12]);
    return w + "q";  // a loop index ends in a digit
  };
  for (unsigned seed = 0; seed < 300; ++seed) {
    const Names first = {"past", "now", "seq"};
    const Seen a(seed, first);
    Names other = first;
    std::sort(other.begin(), other.end());
    do {
      same(a, first, Seen(seed, other), other, seed);
      if (testing::Test::HasFatalFailure()) return;
    } while (std::next_permutation(other.begin(), other.end()));
    for (int k = 0; k < 3; ++k) {
      const Names words = {"x" + word(), word(), "a" + word()};
      same(a, first, Seen(seed, words), words, seed);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}
