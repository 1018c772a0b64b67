#include <algorithm>

#include "lightcone/reference/internal.h"

namespace lc {
namespace {

constexpr std::size_t kNone = Access::kNone;

// A factor over the summed axis and some columns, row by row, and its samples.
struct Panel {
  std::vector<double> x;
  std::array<std::vector<double>, kSamples> s;
  bool exact = true;
};

struct Columns {  // [from, to) of an axis; kNone: a single one
  std::size_t axis;
  i64 from, to;
};

void read(const Factor& f, const Ints& index, std::size_t summed, const Columns& c, std::size_t width, bool samples,
          Panel& p) {
  const auto depth = static_cast<std::size_t>(f.at.shape()[summed]), columns = static_cast<std::size_t>(c.to - c.from);
  Ints at(depth * columns);
  f.at.plane(index, summed, c.axis, c.from, c.to, at.data());
  p.exact = !samples || f.value->shift.empty();
  p.x.assign(depth * width, 0);
  for (auto& s : p.s)
    if (!p.exact) s.assign(depth * width, 0);
  for (std::size_t k = 0; k < depth; ++k)
    for (std::size_t j = 0; j < columns; ++j) {
      const i64 from = at[k * columns + j];
      if (from < 0) continue;
      p.x[k * width + j] = f.value->f[static_cast<std::size_t>(from)];
      if (p.exact) continue;
      for (std::size_t l = 0; l < kSamples; ++l)
        p.s[l][k * width + j] = f.value->shift[static_cast<std::size_t>(from)][l];
    }
}

template <std::size_t W>
struct Row {
  double sum[W] = {}, terms[W] = {}, partial[W] = {};  // terms: of their magnitudes; partial: of squared partial sums
  double shift[kSamples][W] = {};
};

template <std::size_t W>
void add_values(const Panel& a, const Panel& b, bool narrow, Row<W>& r) {
  const std::size_t depth = a.x.size();
  for (std::size_t k = 0; k < depth; ++k) {
    const double x = a.x[k];
    const double* y = b.x.data() + k * W;
    for (std::size_t j = 0; j < W; ++j)
      r.sum[j] += narrow ? static_cast<double>(static_cast<float>(x * y[j])) : x * y[j];
  }
}

template <std::size_t W>
void add_samples(const Panel& a, const Panel& b, Row<W>& r) {
  const std::size_t depth = a.x.size();
  for (std::size_t k = 0; k < depth; ++k) {
    const double x = a.x[k];
    const double* y = b.x.data() + k * W;
    for (std::size_t j = 0; j < W; ++j) {
      r.sum[j] += x * y[j];
      r.terms[j] += std::fabs(x * y[j]);
    }
    if (k % 8 == 7 || k + 1 == depth)  // every eighth will do
      for (std::size_t j = 0; j < W; ++j) r.partial[j] += 8 * r.sum[j] * r.sum[j];
    for (std::size_t l = 0; l < kSamples; ++l) {
      double* to = r.shift[l];
      const double dx = a.exact ? 0 : a.s[l][k];
      if (!a.exact)
        for (std::size_t j = 0; j < W; ++j) to[j] += dx * y[j];
      if (b.exact) continue;
      const double* dy = b.s[l].data() + k * W;
      for (std::size_t j = 0; j < W; ++j) to[j] += (x + dx) * dy[j];
    }
  }
}

// Where infinities or NaN flow: each sample added up by itself.
template <std::size_t W>
Shift add_again(const Panel& a, const Panel& b, std::size_t j, double y) {
  const std::size_t depth = a.x.size();
  Shift s = kNoShift;
  const auto moved = [&](const Panel& p, std::size_t l, std::size_t at) { return p.exact ? 0 : p.s[l][at]; };
  const auto certain = [&](const Panel& p, std::size_t at) {
    for (std::size_t l = 0; l < kSamples; ++l)
      if (moved(p, l, at) != 0) return false;
    return true;
  };
  for (std::size_t k = 0; k < depth && std::isnan(y); ++k)  // a NaN among them that no rounding can heal
    if (std::isnan(a.x[k] * b.x[k * W + j]) && certain(a, k) && certain(b, k * W + j)) return s;
  for (std::size_t l = 0; l < kSamples; ++l) {
    double sum = 0;
    bool known = true;
    for (std::size_t k = 0; k < depth; ++k) {
      const double da = moved(a, l, k), db = moved(b, l, k * W + j);
      known = known && !std::isnan(da) && !std::isnan(db);
      sum += (a.x[k] + da) * (b.x[k * W + j] + db);
    }
    s[l] = known ? apart(sum, y) : kNaN;
  }
  return s;
}

class Product {
 public:
  Product(const Node& sum, Factor a, Factor b, const Ints& shape, const Way& way)
      : n_(sum), a_(std::move(a)), b_(std::move(b)), way_(way), space_(a_.at.shape()),
        summed_(static_cast<std::size_t>(sum.axis)), stride_(space_.size(), 0), out_(make_value(sum.dtype, shape)) {
    i64 step = 1;
    for (std::size_t i = space_.size(); i-- > 0;)
      if (i != summed_) stride_[i] = step, step *= space_[i];
    if (way_.noise) out_.shift.resize(out_.size()), magnitude_.resize(out_.size());
  }
  Value run() {
    choose_columns();
    if (out_.size() > 0 && columns_ == 1) blocks<1>();
    else if (out_.size() > 0 && columns_ <= 8) blocks<8>();
    else if (out_.size() > 0) blocks<64>();
    if (way_.noise) round();
    return std::move(out_);
  }

 private:
  // An axis that one factor alone follows, b from then on; the others in the order in which they are walked.
  void choose_columns() {
    bool swap = false;
    for (std::size_t i = 0; i < space_.size(); ++i) {
      if (i == summed_ || a_.at.follows(i) == b_.at.follows(i) || space_[i] <= columns_) continue;
      axis_ = i, columns_ = space_[i], swap = a_.at.follows(i);
    }
    if (swap) std::swap(a_, b_);
    for (std::size_t i = 0; i < space_.size(); ++i)
      if (i != summed_ && i != axis_) (b_.at.follows(i) ? outer_ : inner_).push_back(i);
  }
  // The next place along these axes; false after the last.
  bool next(const std::vector<std::size_t>& axes, Ints& index) const {
    for (std::size_t i = axes.size(); i-- > 0;) {
      if (++index[axes[i]] < space_[axes[i]]) return true;
      index[axes[i]] = 0;
    }
    return false;
  }
  template <std::size_t W>
  void blocks() {
    Ints index(space_.size(), 0);
    Panel a, b;
    const auto width = static_cast<i64>(W);
    for (i64 from = 0; from < columns_; from += width) {
      const Columns c{axis_, from, std::min(columns_, from + width)};
      do {
        read(b_, index, summed_, c, W, way_.noise != 0, b);
        do {
          read(a_, index, summed_, {kNone, 0, 1}, 1, way_.noise != 0, a);
          row<W>(a, b, index, c);
        } while (next(inner_, index));
      } while (next(outer_, index));
    }
  }
  template <std::size_t W>
  void row(const Panel& a, const Panel& b, const Ints& index, const Columns& c) {
    Row<W> r;
    if (way_.noise) add_samples<W>(a, b, r);
    else add_values<W>(a, b, n_.dtype == DType::F32 && way_.rounding == Rounding::Storage, r);
    i64 at = 0;
    for (std::size_t i = 0; i < space_.size(); ++i)
      if (i != axis_) at += index[i] * stride_[i];
    const i64 step = axis_ == kNone ? 0 : stride_[axis_];
    for (std::size_t j = 0; j < static_cast<std::size_t>(c.to - c.from); ++j) {
      const auto o = static_cast<std::size_t>(at + (c.from + static_cast<i64>(j)) * step);
      out_.f[o] = rounded(n_.dtype, r.sum[j], way_.rounding);
      if (!way_.noise) continue;
      const double magnitude = r.terms[j] + std::sqrt(r.partial[j]);
      magnitude_[o] = std::isfinite(magnitude) ? magnitude : 0;
      bool finite = std::isfinite(r.sum[j]);
      for (std::size_t l = 0; l < kSamples; ++l) {
        out_.shift[o][l] = r.shift[l][j];
        finite = finite && std::isfinite(r.shift[l][j]);
      }
      if (!finite) out_.shift[o] = add_again<W>(a, b, j, out_.f[o]);
    }
  }

  // Windows may be computed in tiles (Winograd's convolutions), where what rounding does to one is in proportion to
  // its neighbours.
  void round() {
    for (std::size_t i = 0; i < space_.size(); ++i)
      if (i != summed_ && (a_.at.shares(i, summed_) || b_.at.shares(i, summed_))) take_largest_near(i);
    for (std::size_t o = 0; o < out_.size(); ++o)
      round_samples(n_.dtype, unit_of_sum(n_.dtype), out_.f[o], magnitude_[o], way_.bits(o), out_.shift[o]);
  }
  void take_largest_near(std::size_t axis) {
    constexpr i64 kNear = 5;  // tiles are six wide
    const i64 n = space_[axis], step = stride_[axis];
    std::vector<double> line(static_cast<std::size_t>(n));
    for (std::size_t o = 0; o < out_.size(); ++o) {
      if (static_cast<i64>(o) / step % n != 0) continue;
      const auto at = [&](i64 i) { return o + static_cast<std::size_t>(i * step); };
      for (i64 i = 0; i < n; ++i) line[static_cast<std::size_t>(i)] = magnitude_[at(i)];
      for (i64 i = 0; i < n; ++i)
        magnitude_[at(i)] = *std::max_element(line.begin() + std::max<i64>(0, i - kNear),
                                              line.begin() + std::min(n, i + kNear + 1));
    }
  }

  const Node& n_;
  Factor a_, b_;
  Way way_;
  Ints space_;
  std::size_t summed_, axis_ = kNone;
  Ints stride_;
  Value out_;
  std::vector<double> magnitude_;
  i64 columns_ = 1;
  std::vector<std::size_t> outer_, inner_;
};

}  // namespace

Value sum_of_products(const Node& sum, Factor a, Factor b, const Ints& shape, const Way& way) {
  return Product(sum, std::move(a), std::move(b), shape, way).run();
}

}  // namespace lc
