#include "lightcone/backends/cpu/attention/gradients.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "lightcone/backends/cpu/attention/gradient_products.h"
#include "lightcone/backends/cpu/products/microkernel.h"
#include "lightcone/backends/cpu/products/rounding.h"
#include "lightcone/core/composite.h"
#include "lightcone/device/host_kernel.h"

namespace lc::backends::cpu {
namespace {

using i64 = std::int64_t;
constexpr i64 kBlockScores = 24576;  // scores per block of queries, about, so that the block stays in the cache
constexpr i64 kMostQueries = 96, kMostKeys = 1 << 20;
constexpr int kMaskAxes = 8;
constexpr float kLowest = -std::numeric_limits<float>::infinity();

// The kernel's sizes: of T = Dim when it is made, of T = i64 in a run. each() visits all of them in one order. The
// mask's axes follow.
template <class T>
struct NamedSizes {
  T batch = 1, heads = 1, kv = 1, queries = 0, keys = 0, depth = 0, width = 0;
  static constexpr std::size_t kCount = 7;
  template <class F>
  void each(const F& f) {
    for (T* t : {&batch, &heads, &kv, &queries, &keys, &depth, &width}) f(*t);
  }
};
struct Sizes : NamedSizes<i64> {
  i64 padded() const { return round_up(keys, 64); }
  i64 row() const { return padded() + 16; }  // stride of score rows; not a power of two
  i64 block(i64 mr) const { return std::clamp(kBlockScores / row(), mr, kMostQueries) / mr * mr; }
  // Scratch per worker: scores and slopes of a block, then operands of products.
  i64 scores(i64 mr) const { return 2 * block(mr) * row(); }
  i64 floats(const GradientProducts& p) const {
    return round_up(scores(p.rows()) + p.floats(keys, depth, width, block(p.rows())), 16);
  }
};

class AttentionGradientsKernel final : public HostKernel {
 public:
  AttentionGradientsKernel(const Node& n, const AttentionGradientsTable& t, std::shared_ptr<const GradientProducts> p)
      : t_(t), products_(std::move(p)) {
    const auto shape = [&](std::size_t k) -> const Shape& { return n.in[k].view.shape(); };
    const Shape &q = shape(0), &k = shape(1), &v = shape(2);
    const std::size_t rank = q.size();
    NamedSizes<Dim> s;
    for (std::size_t i = 0; i + 3 < rank; ++i) s.batch = s.batch * q[i];
    if (rank > 2) s.heads = q[rank - 3], s.kv = k[rank - 3];
    s.queries = q[rank - 2], s.keys = k[rank - 2], s.depth = q[rank - 1], s.width = v[rank - 1];
    s.each([&](const Dim& d) { sizes_.push_back(d); });
    std::size_t next = 0;
    most_.each([&](i64& most) { most = sizes_[next++].bounds().hi; });
    scale_ = static_cast<float>(n.attributes.real("scale")), causal_ = n.attributes.integer("causal") != 0;
    offsets_ = result_offsets(n.results);
    flops_ = s.batch * s.heads * s.queries * s.keys * (Dim(6) * s.depth + Dim(4) * s.width) / Dim(causal_ ? 2 : 1);
    if (n.in.size() > 4) mask_axes(shape(4), q, s.keys);
  }
  std::string name() const override { return "attention_gradients"; }
  std::vector<Dim> sizes() const override { return sizes_; }
  Dim flops() const override { return flops_; }
  Dim scratch_bytes(int workers) const override { return workers * most_.floats(*products_) * 4 + 64; }
  void run(const HostLaunch& l) const override;

 private:
  struct Job {
    const AttentionGradientsKernel& k;
    Sizes n;
    const float *q, *keys, *values, *g;
    const std::byte* mask;
    std::span<const i64> mask_sizes;  // extent and stride of each axis of [..., h, s, t]
    float *dq, *dk, *dv, *scratch;
    i64 worker;  // scratch per worker, in floats
  };
  void mask_axes(const Shape& m, const Shape& q, const Dim& keys);
  void key_head(const Job& j, i64 task, int worker) const;
  bool head(const Job& j, GradientBlock& b, i64 index) const;
  bool weigh(const Job& j, const GradientBlock& b, i64 index) const;
  const std::byte* mask_row(const Job& j, i64 head, i64 query, i64& step) const;

  const AttentionGradientsTable& t_;
  std::shared_ptr<const GradientProducts> products_;
  std::vector<Dim> sizes_;
  Sizes most_;  // by the bounds of the symbols
  std::vector<i64> offsets_;
  std::size_t axes_ = 0;  // axes of the mask, those of [..., h, s, t]
  float scale_ = 1;
  bool causal_ = false;
  Dim flops_;
};

void AttentionGradientsKernel::mask_axes(const Shape& m, const Shape& q, const Dim& keys) {
  Shape full = q;
  full.back() = keys;
  axes_ = full.size();
  std::vector<Dim> strides(axes_, 0);
  Dim stride = 1;
  for (std::size_t i = 0; i < m.size(); ++i) {
    const std::size_t from = m.size() - 1 - i, to = axes_ - 1 - i;
    if (!(m[from] == Dim(1))) strides[to] = stride;
    stride = stride * m[from];
  }
  for (std::size_t i = 0; i < axes_; ++i) sizes_.push_back(full[i]), sizes_.push_back(strides[i]);
}

const std::byte* AttentionGradientsKernel::mask_row(const Job& j, i64 head, i64 query, i64& step) const {
  const auto& s = j.mask_sizes;
  const std::byte* p = j.mask + query * s[2 * (axes_ - 2) + 1];
  step = s[2 * (axes_ - 1) + 1];
  for (std::size_t i = axes_ - 2; i-- > 0; head /= s[2 * i]) p += head % s[2 * i] * s[2 * i + 1];
  return p;
}

bool finite(const float* p, i64 n) {
  float sum[16] = {};
  i64 i = 0;
  for (; i + 16 <= n; i += 16)
    for (int k = 0; k < 16; ++k) sum[k] += p[i + k] * 0;
  for (; i < n; ++i) sum[0] += p[i] * 0;
  return std::all_of(sum, sum + 16, [](float v) { return v == 0; });
}

// Turns a block's scores into weights and its slopes into those of the scores. Returns false if a row of scores is not
// finite, so that skipped products matter. `index`: of the query head among all, for the mask.
bool AttentionGradientsKernel::weigh(const Job& j, const GradientBlock& b, i64 index) const {
  const i64 mr = products_->rows();
  bool good = true;
  for (i64 r = 0; r < b.rows; ++r) {
    const i64 query = b.first + r, tile = std::min(r / mr * mr + mr, b.rows),
              end = round_up(b.needed(b.first + tile, mr), GradientProducts::kLanes);
    float *s = b.scores + r * b.row, *d = b.slopes + r * b.row;
    const i64 visible = causal_ ? std::min(b.keys, query + 1) : b.keys;
    for (i64 k = 0; k < visible; ++k) s[k] *= scale_;
    std::fill(s + visible, s + end, kLowest);
    if (j.mask) {
      i64 step = 0;
      const std::byte* mask = mask_row(j, index, query, step);
      for (i64 k = 0; k < visible; ++k)
        if (mask[k * step] == std::byte{0}) s[k] = kLowest;
    }
    const float total = t_.weigh(s, end, std::numbers::log2e_v<float>);
    good = good && std::isfinite(total);
    t_.slopes(s, d, end, scale_);
  }
  return good;
}

bool AttentionGradientsKernel::head(const Job& j, GradientBlock& b, i64 index) const {
  const i64 rows = j.n.block(products_->rows());
  for (b.first = 0; b.first < j.n.queries; b.first += rows) {
    b.rows = std::min(rows, j.n.queries - b.first);
    products_->scores(b);
    const bool good = weigh(j, b, index);
    products_->gradients(b);
    if (!good && !b.all) return false;
  }
  return true;
}

void AttentionGradientsKernel::key_head(const Job& j, i64 task, int worker) const {
  const Sizes& n = j.n;
  const i64 group = n.heads / n.kv, batch = task / n.kv, kv = task % n.kv, keys = n.keys * n.depth,
            values = n.keys * n.width, mr = products_->rows();
  GradientBlock b{.keys = n.keys, .depth = n.depth, .width = n.width};
  b.k = j.keys + task * keys, b.v = j.values + task * values;
  b.dk = j.dk + task * keys, b.dv = j.dv + task * values;
  b.scores = j.scratch + worker * j.worker, b.slopes = b.scores + n.block(mr) * n.row(), b.row = n.row();
  b.packed = b.scores + n.scores(mr);
  products_->pack(b);
  const auto at = [&](i64 k) { return (batch * n.heads + kv * group + k) * n.queries; };
  const float *q = j.q + at(0) * n.depth, *g = j.g + at(0) * n.width;
  b.all = !causal_ || !finite(b.k, keys) || !finite(b.v, values) || !finite(q, group * n.queries * n.depth) ||
          !finite(g, group * n.queries * n.width);
  for (bool done = false; !done;) {
    std::fill_n(b.dk, keys, 0.0f), std::fill_n(b.dv, values, 0.0f);
    done = true;
    for (i64 k = 0; k < group && done; ++k) {
      b.q = j.q + at(k) * n.depth, b.g = j.g + at(k) * n.width, b.dq = j.dq + at(k) * n.depth;
      done = head(j, b, batch * n.heads + kv * group + k);
    }
    b.all = true;
  }
}

void AttentionGradientsKernel::run(const HostLaunch& l) const {
  Sizes sizes;
  const i64* next = l.sizes.data();
  sizes.each([&](i64& n) { n = *next++; });
  const auto in = [&](std::size_t k) { return static_cast<const float*>(l.in[k]); };

  const auto out = [&](std::size_t k) {
    return reinterpret_cast<float*>(static_cast<std::byte*>(l.out) + offsets_[k]);
  };
  Job j{*this,  sizes,  in(0),   in(1),
        in(2),  in(3),  nullptr, l.sizes.subspan(Sizes::kCount),
        out(0), out(1), out(2),  reinterpret_cast<float*>(l.scratch),
        0};
  if (axes_ > 0) j.mask = static_cast<const std::byte*>(l.in[4]);
  j.worker = j.n.floats(*products_);
  const Sizes& n = j.n;
  if (n.batch * n.kv * n.keys * n.queries * n.depth * n.width == 0) {  // empty sums
    std::fill_n(j.dq, n.batch * n.heads * n.queries * n.depth, 0.0f);
    std::fill_n(j.dk, n.batch * n.kv * n.keys * n.depth, 0.0f);
    std::fill_n(j.dv, n.batch * n.kv * n.keys * n.width, 0.0f);
    return;
  }
  l.parallel.run(
      static_cast<int>(n.batch * n.kv),
      [](void* arg, int task, int worker) {
        const Job& of = *static_cast<Job*>(arg);
        of.k.key_head(of, task, worker);
      },
      &j);
}

}  // namespace

std::shared_ptr<Kernel> attention_gradients_kernel(const Graph& g, const Node& n, const Target& target,
                                                   Precision precision) {
  for (std::size_t k = 0; k < 4; ++k)
    if (g[n.in[k].node].dtype != DType::F32) return nullptr;
  const Shape& q = n.in[0].view.shape();
  if (q.size() > kMaskAxes || n.in[1].view.shape()[q.size() - 2].bounds().hi > kMostKeys) return nullptr;
  for (const Dim& d : {q.back(), n.in[2].view.shape().back()})
    if (d.bounds().hi > kMostQueries * 64) return nullptr;
  const AttentionGradientsTable& t = *kernel_tables(target.isa).attention_gradients;
  const Microkernel* bf16 = precision == Precision::Medium ? microkernel(Arithmetic::Bf16, target) : nullptr;
  const bool tiles = bf16 && on_tiles(*bf16);
  return std::make_shared<AttentionGradientsKernel>(n, t, tiles ? gradient_products(*bf16) : gradient_products(t));
}

}  // namespace lc::backends::cpu
