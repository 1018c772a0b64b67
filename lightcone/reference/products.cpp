#include <algorithm>
#include <cmath>
#include <cstring>

#include "lightcone/reference/internal.h"

namespace lc {
namespace {

constexpr std::size_t kNone = Access::kNone;

constexpr std::size_t kBlock = 64;  // columns per panel

// A factor over the summed axis (rows) and some columns, row-major, with its samples.
struct Panel {
  std::vector<double> x;
  std::array<std::vector<double>, kSamples> s;
  bool exact = true;
};

struct Columns {  // [from, to) of an axis; kNone: a single column
  std::size_t axis;
  i64 from, to;
};

// Perturbs factors relative to the largest of 32 neighbours in the sum, as block formats with one scale round.
void round_factors(std::span<const i64> at, std::size_t width, std::size_t columns, const EvalConfig& config,
                   std::uint64_t side, Panel& p) {
  const std::size_t depth = p.x.size() / width;
  for (std::size_t j = 0; j < columns; ++j)
    for (std::size_t block = 0; block < depth; block += 32) {
      double most = 0;
      for (std::size_t k = block; k < std::min(depth, block + 32); ++k)
        if (const double x = std::fabs(p.x[k * width + j]); std::isfinite(x)) most = std::max(most, x);
      for (std::size_t k = block; k < std::min(depth, block + 32); ++k) {
        Deviations s = kNoDeviation;
        if (p.x[k * width + j] != 0)
          perturb(config.products * most,
                  noise_bits(config.noise + side, static_cast<std::uint64_t>(at[k * columns + j])), s);
        for (std::size_t l = 0; l < kSamples; ++l) p.s[l][k * width + j] += s[l];
      }
    }
}

void read(const Factor& f, const Integers& index, std::size_t summed, const Columns& c, std::size_t width,
          const EvalConfig& config, std::uint64_t side, Panel& p) {
  const auto depth = static_cast<std::size_t>(f.at.shape()[summed]), columns = static_cast<std::size_t>(c.to - c.from);
  Integers at(depth * columns);
  f.at.plane(index, summed, c.axis, c.from, c.to, at.data());
  const bool samples = config.noise && !f.value->shift.empty(), rounds = config.noise && config.products > 0;
  p.exact = !samples && !rounds;
  p.x.assign(depth * width, 0);
  for (auto& s : p.s)
    if (!p.exact) s.assign(depth * width, 0);
  for (std::size_t k = 0; k < depth; ++k)
    for (std::size_t j = 0; j < columns; ++j) {
      const i64 from = at[k * columns + j];
      if (from < 0) continue;
      p.x[k * width + j] = f.value->f[from];
      if (!samples) continue;
      for (std::size_t l = 0; l < kSamples; ++l) p.s[l][k * width + j] = f.value->shift[from][l];
    }
  if (rounds) round_factors(at, width, columns, config, side, p);
}

struct Row {
  double sum[kBlock], terms[kBlock], partial[kBlock];  // terms: sum of magnitudes; partial: sum of squared partial sums
  double shift[kSamples][kBlock];
};

// Loads and stores of a vector V.
template <class V>
[[gnu::always_inline]] inline void get(V& v, const double* p) {
  std::memcpy(&v, p, sizeof v);
}
template <class V>
[[gnu::always_inline]] inline void put(const V& v, double* p) {
  std::memcpy(p, &v, sizeof v);
}

template <class V>
[[gnu::always_inline]] inline void add_values(const Panel& a, const Panel& b, std::size_t width, Row& r) {
  constexpr std::size_t kAtOnce = 4, kLanes = sizeof(V) / sizeof(double);
  const std::size_t depth = a.x.size();
  for (std::size_t j = 0; j < width; j += kLanes * kAtOnce) {
    V sum[kAtOnce] = {}, terms[kAtOnce] = {}, partial[kAtOnce] = {}, before[kAtOnce] = {};
    const double of_blocks = depth > kLongSum ? part_of_block_sums(depth) : 0;
    const std::size_t some = std::min(kAtOnce, (width - j) / kLanes);
    for (std::size_t k = 0; k < depth; ++k) {
      const double* y = b.x.data() + k * width + j;
      for (std::size_t v = 0; v < some; ++v) {
        V t;
        get(t, y + v * kLanes);
        t = a.x[k] * t;
        sum[v] += t;
        terms[v] += t < 0 ? -t : t;
      }
      if (k % 8 == 7 || k + 1 == depth)  // sampling every eighth partial sum suffices
        for (std::size_t v = 0; v < some; ++v) partial[v] += 8 * (sum[v] - before[v]) * (sum[v] - before[v]);
      if (of_blocks > 0 && k % kSumBlock == kSumBlock - 1)
        for (std::size_t v = 0; v < some; ++v) partial[v] += of_blocks * sum[v] * sum[v], before[v] = sum[v];
    }
    for (std::size_t v = 0; v < some; ++v) {
      const std::size_t to = j + v * kLanes;
      put(sum[v], r.sum + to), put(terms[v], r.terms + to), put(partial[v], r.partial + to);
    }
  }
}

template <class V>
[[gnu::always_inline]] inline void add_samples(const Panel& a, const Panel& b, std::size_t width, Row& r) {
  constexpr std::size_t kLanes = sizeof(V) / sizeof(double), kAtOnce = 4;
  const std::size_t depth = a.x.size();
  for (std::size_t l = 0; l < kSamples; l += kAtOnce)
    for (std::size_t j = 0; j < width; j += kLanes) {
      V sum[kAtOnce] = {};
      for (std::size_t k = 0; k < depth && !a.exact; ++k) {
        V y;
        get(y, b.x.data() + k * width + j);
        for (std::size_t i = 0; i < kAtOnce; ++i) sum[i] += a.s[l + i][k] * y;
      }
      for (std::size_t i = 0; i < kAtOnce && !b.exact; ++i)
        for (std::size_t k = 0; k < depth; ++k) {
          V dy;
          get(dy, b.s[l + i].data() + k * width + j);
          sum[i] += (a.exact ? a.x[k] : a.x[k] + a.s[l + i][k]) * dy;
        }
      for (std::size_t i = 0; i < kAtOnce; ++i) put(sum[i], r.shift[l + i] + j);
    }
}

using V2 [[gnu::vector_size(16)]] = double;
using V4 [[gnu::vector_size(32)]] = double;
void add_plain(const Panel& a, const Panel& b, std::size_t width, Row& r) {
  if (width == 1) add_values<double>(a, b, width, r), add_samples<double>(a, b, width, r);
  else add_values<V2>(a, b, width, r), add_samples<V2>(a, b, width, r);
}
#if defined(__x86_64__)
[[gnu::target("avx2")]] void add_avx2(const Panel& a, const Panel& b, std::size_t width, Row& r) {
  add_values<V4>(a, b, width, r), add_samples<V4>(a, b, width, r);
}
void add(const Panel& a, const Panel& b, std::size_t width, Row& r) {
  static const bool avx2 = __builtin_cpu_supports("avx2");
  if (avx2 && width > 1) add_avx2(a, b, width, r);
  else add_plain(a, b, width, r);
}
#else
void add(const Panel& a, const Panel& b, std::size_t width, Row& r) { add_plain(a, b, width, r); }
#endif

// Computes what a naive device does: products rounded to f32, added in order.
void add_rounded(const Panel& a, const Panel& b, std::size_t width, Row& r) {
  std::fill(r.sum, r.sum + width, 0);
  for (std::size_t k = 0; k < a.x.size(); ++k)
    for (std::size_t j = 0; j < width; ++j)
      r.sum[j] += static_cast<double>(static_cast<float>(a.x[k] * b.x[k * width + j]));
}

// Sums each sample separately if infinities or NaN occur.
Deviations add_again(DType t, const Panel& a, const Panel& b, std::size_t width, std::size_t j, double y) {
  const std::size_t depth = a.x.size();
  Deviations s = kNoDeviation;
  const auto moved = [&](const Panel& p, std::size_t l, std::size_t at) { return p.exact ? 0 : p.s[l][at]; };
  const auto certain = [&](const Panel& p, std::size_t at) {
    for (std::size_t l = 0; l < kSamples; ++l)
      if (moved(p, l, at) != 0) return false;
    return true;
  };
  for (std::size_t k = 0; k < depth && std::isnan(y); ++k)  // a term that is certainly NaN makes the sum NaN
    if (std::isnan(a.x[k] * b.x[k * width + j]) && certain(a, k) && certain(b, k * width + j)) return s;
  double other_way = 0;
  for (std::size_t k = 0; k < depth; ++k) other_way += opposing(y, a.x[k] * b.x[k * width + j]);
  if (overflows(t, other_way)) return kUnknown;
  for (std::size_t l = 0; l < kSamples; ++l) {
    double sum = 0;
    bool known = true;
    for (std::size_t k = 0; k < depth; ++k) {
      const double da = moved(a, l, k), db = moved(b, l, k * width + j);
      known = known && !std::isnan(da) && !std::isnan(db);
      sum += (a.x[k] + da) * (b.x[k * width + j] + db);
    }
    s[l] = known ? deviation(sum, y) : kNaN;
  }
  return s;
}

class Product {
 public:
  Product(const Node& sum, Factor a, Factor b, const Integers& shape, const EvalConfig& config)
      : n_(sum),
        a_(std::move(a)),
        b_(std::move(b)),
        way_(config),
        space_(a_.at.shape()),
        summed_(static_cast<std::size_t>(sum.axis)),
        stride_(space_.size(), 0),
        out_(make_value(sum.dtype, shape)) {
    i64 step = 1;
    for (std::size_t i = space_.size(); i-- > 0;)
      if (i != summed_) stride_[i] = step, step *= space_[i];
    if (way_.noise) out_.shift.resize(out_.size()), magnitude_.resize(out_.size());
  }
  Value run() {
    choose_columns();
    if (out_.size() > 0) blocks(columns_ == 1 ? 1 : columns_ <= 8 ? 8 : kBlock);
    if (way_.noise) round();
    return std::move(out_);
  }

 private:
  // Picks the column axis: the longest that only one factor depends on (made b). Sorts the others into loops.
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
  // Advances the index along these axes; returns false after the last.
  bool next(const std::vector<std::size_t>& axes, Integers& index) const {
    for (std::size_t i = axes.size(); i-- > 0;) {
      if (++index[axes[i]] < space_[axes[i]]) return true;
      index[axes[i]] = 0;
    }
    return false;
  }
  void blocks(std::size_t width) {
    Integers index(space_.size(), 0);
    Panel a, b;
    for (i64 from = 0; from < columns_; from += static_cast<i64>(width)) {
      const Columns c{axis_, from, std::min(columns_, from + static_cast<i64>(width))};
      do {
        read(b_, index, summed_, c, width, way_, 2, b);
        do {
          read(a_, index, summed_, {kNone, 0, 1}, 1, way_, 4, a);
          row(a, b, width, index, c);
        } while (next(inner_, index));
      } while (next(outer_, index));
    }
  }
  void row(const Panel& a, const Panel& b, std::size_t width, const Integers& index, const Columns& c) {
    Row r;
    if (!way_.noise && n_.dtype == DType::F32 && way_.rounding == Rounding::Storage) add_rounded(a, b, width, r);
    else add(a, b, width, r);
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
      if (!finite) out_.shift[o] = add_again(n_.dtype, a, b, width, j, out_.f[o]);
    }
  }

  // Rounds the results. Convolutions may be computed in tiles (Winograd), whose rounding errors are proportional to the
  // neighbours' magnitudes.
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
      for (i64 i = 0; i < n; ++i) line[i] = magnitude_[at(i)];
      for (i64 i = 0; i < n; ++i)
        magnitude_[at(i)] =
            *std::max_element(line.begin() + std::max<i64>(0, i - kNear), line.begin() + std::min(n, i + kNear + 1));
    }
  }

  const Node& n_;
  Factor a_, b_;
  EvalConfig way_;
  Integers space_;
  std::size_t summed_, axis_ = kNone;
  Integers stride_;
  Value out_;
  std::vector<double> magnitude_;
  i64 columns_ = 1;
  std::vector<std::size_t> outer_, inner_;
};

}  // namespace

Value sum_of_products(const Node& sum, Factor a, Factor b, const Integers& shape, const EvalConfig& config) {
  return Product(sum, std::move(a), std::move(b), shape, config).run();
}

}  // namespace lc
