// Every move of a view reads the same elements as its definition on an array, through locate() and through strides.
#include "lightcone/core/view.h"

#include <functional>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "lightcone/base/error.h"

using namespace lc;

namespace {

// Elements in row-major order; -1 is padding.
struct Array {
  std::vector<int> shape;
  std::vector<int> data;
};

int count(const std::vector<int>& shape) { return std::accumulate(shape.begin(), shape.end(), 1, std::multiplies<>()); }
void each(const std::vector<int>& shape, const std::function<void(const std::vector<int>&)>& f) {
  std::vector<int> i(shape.size(), 0);
  for (int n = count(shape); n > 0; --n) {
    f(i);
    for (std::size_t k = shape.size(); k-- > 0;) {
      if (++i[k] < shape[k]) break;
      i[k] = 0;
    }
  }
}
int flat(const std::vector<int>& i, const std::vector<int>& shape) {
  int at = 0;
  for (std::size_t k = 0; k < shape.size(); ++k) at = at * shape[k] + i[k];
  return at;
}
// Returns an array with element i = from[map(i)], or padding if map returns nullopt.
Array pick(const Array& from, std::vector<int> shape,
           const std::function<std::optional<std::vector<int>>(const std::vector<int>&)>& map) {
  Array a{shape, {}};
  each(shape, [&](const std::vector<int>& i) {
    const auto src = map(i);
    a.data.push_back(src ? from.data[static_cast<std::size_t>(flat(*src, from.shape))] : -1);
  });
  return a;
}
Shape dims(const std::vector<int>& v) { return Shape(v.begin(), v.end()); }

class Walk {
 public:
  explicit Walk(unsigned seed) : random_(seed) {
    std::vector<int> shape;
    for (int r = below(4); r > 0; --r) shape.push_back(below(12) == 0 ? 0 : 1 + below(5));
    array_ = {shape, std::vector<int>(static_cast<std::size_t>(count(shape)))};
    std::iota(array_.data.begin(), array_.data.end(), 0);
    view_ = View(dims(shape));
  }
  void step();
  void check() const;
  int strided = 0;

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  std::mt19937 random_;
  Array array_;
  View view_;
};

void Walk::step() {
  const Array a = array_;
  const std::size_t r = a.shape.size();
  const std::size_t axis = r ? static_cast<std::size_t>(below(static_cast<int>(r))) : 0;
  switch (below(6)) {
    case 0: {
      std::vector<int> axes(r);
      std::iota(axes.begin(), axes.end(), 0);
      std::shuffle(axes.begin(), axes.end(), random_);
      std::vector<int> shape;
      for (int x : axes) shape.push_back(a.shape[static_cast<std::size_t>(x)]);
      view_ = view_.permute(axes);
      array_ = pick(a, shape, [&](const std::vector<int>& i) {
        std::vector<int> j(r);
        for (std::size_t k = 0; k < r; ++k) j[static_cast<std::size_t>(axes[k])] = i[k];
        return std::optional(j);
      });
      return;
    }
    case 1: {  // a new axis of extent 1, expanded
      std::vector<int> shape = a.shape;
      shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), 1);
      view_ = view_.reshape(dims(shape));
      shape[axis] = 1 + below(3);
      view_ = view_.expand(dims(shape));
      array_ = pick(a, shape, [&](std::vector<int> i) {
        i.erase(i.begin() + static_cast<std::ptrdiff_t>(axis));
        return std::optional(i);
      });
      return;
    }
    case 2: {  // another shape with the same number of elements
      const int n = count(a.shape);
      std::vector<int> shape;
      for (int left = n; left > 1;) {
        int f = left;
        for (int k = 2; k <= left; ++k)
          if (left % k == 0 && below(2)) {
            f = k;
            break;
          }
        shape.push_back(f);
        left /= f;
      }
      if (n == 0) shape = {0, 2};
      view_ = view_.reshape(dims(shape));
      array_.shape = shape;
      return;
    }
    case 3: {
      if (r == 0 || a.shape[axis] == 0) return;
      Shape begin(r, 0), extent = dims(a.shape);
      std::vector<std::int64_t> step(r, 1);
      const int from = below(a.shape[axis]);
      step[axis] = below(2) ? 1 + below(2) : -1 - below(2);
      const int room = step[axis] > 0 ? (a.shape[axis] - 1 - from) / static_cast<int>(step[axis]) + 1
                                      : from / static_cast<int>(-step[axis]) + 1;
      const int n = 1 + below(room);
      begin[axis] = from, extent[axis] = n;
      std::vector<int> shape = a.shape;
      shape[axis] = n;
      view_ = view_.slice(begin, extent, step);
      array_ = pick(a, shape, [&](std::vector<int> i) {
        i[axis] = from + i[axis] * static_cast<int>(step[axis]);
        return std::optional(i);
      });
      return;
    }
    case 4: {
      if (r == 0) return;
      const int before = below(3), after = below(3);
      Shape b(r, 0), f(r, 0);
      b[axis] = before, f[axis] = after;
      std::vector<int> shape = a.shape;
      shape[axis] += before + after;
      view_ = view_.pad(b, f);
      array_ = pick(a, shape, [&](std::vector<int> i) {
        i[axis] -= before;
        return i[axis] >= 0 && i[axis] < a.shape[axis] ? std::optional(i) : std::nullopt;
      });
      return;
    }
    default: {
      if (r == 0 || a.shape[axis] < 2) return;
      const int size = 1 + below(2), stride = 1 + below(2), dilation = 1 + below(2), reach = (size - 1) * dilation + 1;
      if (reach > a.shape[axis]) return;
      std::vector<int> shape = a.shape;
      shape[axis] = (a.shape[axis] - reach) / stride + 1;
      shape.push_back(size);
      view_ = view_.unfold(static_cast<int>(axis), size, stride, dilation);
      array_ = pick(a, shape, [&](std::vector<int> i) {
        i[axis] = i[axis] * stride + i.back() * dilation;
        i.pop_back();
        return std::optional(i);
      });
    }
  }
}

void Walk::check() const {
  ASSERT_EQ(view_.shape(), dims(array_.shape));
  std::size_t at = 0;
  const auto strides = view_.strided();
  each(array_.shape, [&](const std::vector<int>& i) {
    const View::Position p = view_.locate(std::vector<Dim>(i.begin(), i.end()));
    const int want = array_.data[at++];
    if (want < 0) {
      EXPECT_EQ(p.valid, Dim(0));
      return;
    }
    EXPECT_EQ(p.valid, Dim(1));
    EXPECT_EQ(p.offset, Dim(want));
    if (!strides) return;
    Dim offset = strides->offset;
    for (std::size_t k = 0; k < i.size(); ++k) offset = offset + strides->strides[k] * Dim(i[k]);
    EXPECT_EQ(offset, Dim(want));
  });
}

}  // namespace

TEST(View, ReadsWhatTheMovesSay) {
  for (unsigned seed = 0; seed < 3000; ++seed) {
    Walk w(seed);
    for (int k = 0; k < 1 + static_cast<int>(seed % 6); ++k) w.step();
    w.check();
    if (testing::Test::HasFailure()) {
      ADD_FAILURE() << "seed " << seed;
      return;
    }
  }
}

// With symbols for the indices, the expression is the same function.
TEST(View, SymbolicIndicesAgree) {
  const Dim n = Dim::symbol("n", 1, 9);
  const View v = View({n, 6}).reshape({n * 2, 3}).permute({1, 0}).pad({0, 1}, {0, 2}).slice({0, 1}, {3, n * 2});
  const View::Position p = v.locate(index_symbols(v.shape()));
  for (std::int64_t size : {1, 4, 9})
    for (std::int64_t i = 0; i < 3; ++i)
      for (std::int64_t j = 0; j < 2 * size; ++j) {
        const Bindings env{{"n", size}, {"i0", i}, {"i1", j}};
        EXPECT_EQ(p.valid.eval(env), 1);
        EXPECT_EQ(p.offset.eval(env), j * 3 + i);
      }
}

// An index beside its axis stays there: axes of one element come and go without a division.
TEST(View, PaddingBehindAxesOfOneElementNeedsNoDivision) {
  const View v =
      View({2, 5, 7, 1, 3}).permute({0, 4, 1, 2, 3}).reshape({2, 3, 1, 5, 7}).pad({0, 0, 0, 1, 1}, {0, 0, 0, 1, 1});
  const View::Position p = v.locate(index_symbols(v.shape()));
  EXPECT_EQ(p.offset.str().find_first_of("/%"), std::string::npos) << p.offset.str();
  for (std::int64_t channel = 0; channel < 3; ++channel)
    for (std::int64_t row = 0; row < 7; ++row)
      for (std::int64_t column = 0; column < 9; ++column) {
        const Bindings env{{"i0", 1}, {"i1", channel}, {"i2", 0}, {"i3", row}, {"i4", column}};
        const bool inside = row > 0 && row < 6 && column > 0 && column < 8;
        ASSERT_EQ(p.valid.eval(env), inside);
        if (inside) {
          ASSERT_EQ(p.offset.eval(env), ((5 + row - 1) * 7 + column - 1) * 3 + channel);
        }
      }
  const View none = View({0, 3}).reshape({0, 5});
  EXPECT_NO_THROW(none.locate(index_symbols(none.shape())));
}

TEST(View, WrongMovesAreErrors) {
  const View v({2, 3});
  EXPECT_THROW(v.permute({0, 0}), Error);
  EXPECT_THROW(v.permute({0}), Error);
  EXPECT_THROW(v.expand({2, 4}), Error);
  EXPECT_THROW(v.reshape({7}), Error);
  EXPECT_THROW(v.slice({0, 2}, {2, 2}), Error);
  EXPECT_NO_THROW(v.slice({1, 0}, {1, 2}));
  EXPECT_THROW(v.slice({1, 0}, {2, 2}), Error);  // one past the end
  EXPECT_THROW(v.slice({0, 0}, {2, 4}), Error);
  EXPECT_THROW(v.slice({0, -1}, {2, 2}), Error);
  EXPECT_THROW(v.pad({-1, 0}, {0, 0}), Error);
  EXPECT_THROW(v.unfold(1, 4, 1, 1), Error);
  EXPECT_THROW(v.unfold(2, 1, 1, 1), Error);
  EXPECT_THROW(v.unfold(1, 1, 0, 1), Error);
}
