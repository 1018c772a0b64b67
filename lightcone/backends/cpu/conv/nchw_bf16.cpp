// Plans a convolution in bf16: computes its offsets once, and packs its filters.
#include "lightcone/backends/cpu/conv/nchw_bf16.h"
#include "lightcone/device/host_kernel.h"

#include <algorithm>
#include <cstring>

#include "lightcone/backends/cpu/products/rounding.h"

namespace lc::backends::cpu {
namespace {

using i64 = std::int64_t;

// Converts sizes that must be constants; `known` becomes false if one is not.
struct Numbers {
  bool known = true;
  i64 operator()(const Dim& d) {
    const auto v = d.constant();
    known = known && v;
    return v.value_or(1);
  }
};

// A summed axis, which moves a window along an axis of pixels or runs over channels.
struct Sum {
  i64 extent, image, weight;
  int axis = 0;  // pixel axis (1 or 2) that it moves along; 0: channels
  i64 dilation = 0;
};

bool plain(const ConvPlan::Pixel& p) {
  return p.lo == Dim(-ConvPlan::kFar) && p.hi == Dim(ConvPlan::kFar) && p.step == 0;
}

bool read_sums(const ConvPlan& c, Numbers& number, std::vector<Sum>& sums) {
  for (const ConvPlan::Sum& s : c.sums) {
    Sum sum{number(s.extent), number(s.image), number(s.weight)};
    for (int j = 0; j < kSpatial; ++j) {
      if (s.dilation[j] == 0) continue;
      if (sum.axis != 0 || j == 0 || s.dilation[j] < 0 || sum.image % s.dilation[j] != 0) return false;
      sum.axis = j, sum.dilation = s.dilation[j];
    }
    sums.push_back(sum);
  }
  return true;
}

// Reads one axis of the planes: the reach of its windows, and the phases of its stride.
bool read_axis(const ConvPlan::Pixel& p, int j, const std::vector<Sum>& sums, Numbers& number, NchwBf16::Axis& a) {
  i64 reach = 0;
  for (const Sum& s : sums) {
    if (s.axis != j) continue;
    if (a.unit != 0) return false;
    a.unit = s.image / s.dilation, reach = s.dilation * (s.extent - 1);
  }
  const i64 image_step = number(p.image);
  a.extent = number(p.extent), a.step = std::max<i64>(p.step, 1);
  if (a.unit == 0) a.unit = image_step / a.step;
  if (p.step < 0 || (p.step > 0 && image_step != a.step * a.unit)) return false;
  if (p.step == 0 && reach > 0 && a.extent > 1) return false;
  a.lo = std::max<i64>(number(p.lo), 0);
  a.hi = std::min(number(p.hi), (a.extent - 1) * a.step + reach + 1);  // end of the coordinates that are read
  a.phases = std::min(a.step, reach + 1), a.length = a.extent + reach / a.step;
  return true;
}

// Computes offsets of channels, taps and weights. Channels precede taps, whatever their order in the sums.
void find_offsets(const std::vector<Sum>& sums, NchwBf16& p) {
  i64 channels = 1, taps = 1, index[16] = {};
  for (const Sum& s : sums) (s.axis ? taps : channels) *= s.extent;
  const i64 pairs = (channels + 1) / 2;
  p.row_words = p.y.phases * p.x.phases * p.x.length;
  p.channels.assign(static_cast<std::size_t>(2 * pairs), kNoChannel);
  p.shift.resize(static_cast<std::size_t>(taps));
  p.weights.assign(static_cast<std::size_t>(2 * pairs * taps), kNoChannel);
  for (i64 k = 0; k < channels * taps; ++k) {
    i64 channel = 0, tap = 0, image = 0, weight = 0, d[kSpatial] = {};
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const Sum& s = sums[i];
      i64& number = s.axis ? tap : channel;
      number = number * s.extent + index[i], weight += index[i] * s.weight;
      if (s.axis) d[s.axis] += s.dilation * index[i];
      else image += index[i] * s.image;
    }
    const i64 at = channel / 2 * taps + tap, phase = d[1] % p.y.step * p.x.phases + d[2] % p.x.step;
    p.channels[channel] = image;
    p.shift[tap] = d[1] / p.y.step * p.row_words + phase * p.x.length + d[2] / p.x.step;
    p.weights[2 * at + channel % 2] = weight;
    for (std::size_t i = sums.size(); i-- > 0 && ++index[i] == sums[i].extent;) index[i] = 0;
  }
}

// Merges contiguous rows of the image into one row.
void join_rows(NchwBf16& p) {
  if (p.planes || (p.y.extent > 1 && p.y.unit != p.x.unit * p.x.extent)) return;
  p.x.extent *= p.y.extent, p.y.extent = 1;
}

class PackNchwBf16 final : public HostKernel {
 public:
  explicit PackNchwBf16(std::shared_ptr<const NchwBf16> pairs) : p_(std::move(pairs)) {}
  std::string name() const override { return "pack_conv_bf16"; }
  Dim scratch_bytes(int workers) const override { return workers * strip_bytes(); }
  void run(const HostLaunch& l) const override {
    struct Job {
      const PackNchwBf16& k;
      const HostLaunch& l;
    } job{*this, l};
    const auto task = [](void* arg, int number, int worker) {
      const Job& j = *static_cast<Job*>(arg);
      j.k.strip(j.l, number, j.l.scratch + worker * j.k.strip_bytes());
    };
    l.parallel.run(static_cast<int>(p_->groups * strips()), task, &job);
  }

 private:
  i64 strips() const { return (p_->rows + p_->unit->mr - 1) / p_->unit->mr; }
  i64 strip_bytes() const { return round_up(p_->unit->mr * kTileDepth * 4, 64); }
  void strip(const HostLaunch& l, i64 number, std::byte* scratch) const {
    const NchwBf16& p = *p_;
    const Microkernel& u = *p.unit;
    const i64 group = number / strips(), row = number % strips() * u.mr, rows = std::min<i64>(u.mr, p.rows - row);
    auto* to = static_cast<std::byte*>(l.out) + group * p.group_bytes() + row / u.mr * u.a_bytes(p.depth());
    auto* numbers = reinterpret_cast<float*>(scratch);
    for (i64 k = 0; k < p.depth(); k += kTileDepth) {
      const i64 depth = std::min(kTileDepth, p.depth() - k);
      for (i64 r = 0; r < rows; ++r)
        for (i64 i = 0; i < depth; ++i) {
          const i64 at = p.weights[k + i];
          const i64 from = p.group_weight[group] + (row + r) * p.weight_row + at;
          numbers[r * depth + i] = at == kNoChannel ? 0.0f
                                   : p.stored == WeightType::BF16
                                       ? bf16_to_f32(static_cast<const std::uint16_t*>(l.in[0])[from])
                                       : static_cast<const float*>(l.in[0])[from];
        }
      u.pack_a(numbers, depth, 1, rows, depth, 0, to + u.a_bytes(k));
    }
  }
  std::shared_ptr<const NchwBf16> p_;
};

// Winograd's algorithm has four times fewer products and exact operands, but transforms the filters in every run, so
// many pixels must share them. The limits were measured on Zen 5, where bf16 products are 1.8 times as fast as f32.
bool winograd_is_faster(const ConvPlan& c, const NchwBf16& p) {
  constexpr i64 kPixels = 12288, kChannels = 256;
  i64 pixels = p.pixels;
  for (const ConvPlan::Axis& a : c.outer)  // capped, because a batch's bound may be any number
    if (a.weight == Dim(0)) pixels = std::min(pixels, kPixels) * std::min(a.extent.bounds().hi, kPixels);
  const bool tiles = p.unit->begin;  // tiles have bf16 products faster than that
  return !tiles && !winograd_refusal(c) && pixels >= kPixels &&
         std::min<i64>(p.rows, static_cast<i64>(p.channels.size())) >= kChannels;
}

// The parameter that holds the filters: they themselves, or what they are converted from.
struct StoredFilters {
  NodeId node;
  WeightType type;
};
StoredFilters stored_filters(const Graph& g, NodeId filters) {
  const Node& w = g[filters];
  if (w.op == Op::Contiguous && w.in[0].view.identity() && g[w.in[0].node].dtype == DType::BF16)
    return {w.in[0].node, WeightType::BF16};
  return {filters, WeightType::F32};
}

}  // namespace

std::shared_ptr<const NchwBf16> make_nchw_bf16(const ConvPlan& c, WeightType stored, const Microkernel& unit) {
  Numbers number;
  auto p = std::make_shared<NchwBf16>();
  p->unit = &unit, p->stored = stored;
  p->rows = number(c.rows.extent), p->weight_row = number(c.rows.weight), p->out_row = number(c.rows.out);
  std::vector<Sum> sums;
  if (!(c.pixels[0].extent == Dim(1)) || !plain(c.pixels[0]) || !read_sums(c, number, sums)) return nullptr;
  if (!read_axis(c.pixels[1], 1, sums, number, p->y) || !read_axis(c.pixels[2], 2, sums, number, p->x)) return nullptr;
  p->planes = !plain(c.pixels[1]) || !plain(c.pixels[2]);
  p->pixels = p->y.extent * p->x.extent;
  p->group_weight = {number(c.weight_offset)};
  for (const ConvPlan::Axis& a : c.outer) {
    number(a.image), number(a.out);
    if (a.weight == Dim(0)) continue;
    std::vector<i64> all;
    for (const i64 begin : p->group_weight)
      for (i64 i = 0; i < number(a.extent); ++i) all.push_back(begin + i * number(a.weight));
    p->group_weight = std::move(all);
  }
  p->groups = static_cast<i64>(p->group_weight.size());
  i64 depth = p->rows * p->pixels * p->groups;
  for (const Sum& s : sums) depth *= s.extent;
  if (!number.known || depth == 0) return nullptr;
  find_offsets(sums, *p);
  join_rows(*p);
  constexpr i64 kLongest = 4096;   // words of a plane's row, which is never divided
  constexpr i64 kReach = 1 << 16;  // words of rows that a task reads beyond its own, per plane
  const bool far = p->row_words > kLongest || (p->y.length - p->y.extent) * p->row_words > kReach;
  return p->planes && far ? nullptr : p;
}

std::optional<std::string> nchw_bf16_refusal(const Graph& g, std::span<const int> uses, bool winograd,
                                             const Target& target, const ConvPlan& c) {
  constexpr i64 kFewRows = 8;  // with fewer rows, most of a tile would be empty
  const StoredFilters stored = stored_filters(g, c.weight_node);
  ConvPlan read = c;
  read.weight_node = stored.node;
  if (uses[c.weight_node] != 1 || uses[stored.node] != 1) return "the filters have other readers";
  if (auto why = packing_refusal(g, read, target)) return why;
  if (!bf16_is_fast(target)) return "bf16 products are not faster than f32 on this processor";
  const auto pairs = make_nchw_bf16(c, stored.type, *microkernel(Arithmetic::Bf16, target));
  if (!pairs) return "a size other than the batch is symbolic, or windows reach too far";
  if (pairs->rows < kFewRows) return str_cat("there are fewer than ", kFewRows, " filters");
  if (pairs->channels[1] == kNoChannel) return "there is one channel, and bf16 products need pairs";
  if (winograd && winograd_is_faster(c, *pairs)) return "Winograd in f32 is faster for so many pixels and channels";
  return std::nullopt;
}

void plan_nchw_bf16(const Graph& g, const Target& target, ConvPlan& c) {
  const StoredFilters stored = stored_filters(g, c.weight_node);
  c.nchw_bf16 = make_nchw_bf16(c, stored.type, *microkernel(Arithmetic::Bf16, target));
  c.weight_node = stored.node;
}

std::shared_ptr<HostKernel> pack_nchw_bf16_kernel(std::shared_ptr<const NchwBf16> pairs) {
  return std::make_shared<PackNchwBf16>(std::move(pairs));
}

}  // namespace lc::backends::cpu
