// Packs the weights of convolutions once, when they are loaded.
#include <algorithm>
#include <cstring>

#include "lightcone/backends/cpu/conv/algorithms.h"
#include "lightcone/backends/cpu/conv/depthwise.h"
#include "lightcone/backends/cpu/conv/nchw_bf16.h"
#include "lightcone/backends/cpu/conv/nhwc_bf16.h"
#include "lightcone/backends/cpu/conv/register_filters.h"
#include "lightcone/device/host_kernel.h"

namespace lc::backends::cpu {
namespace {

using i64 = std::int64_t;

// Packs a panel of any height.
template <class T, class To>
void pack_any(const PackedFilters& f, const T* weights, const Tap* taps, i64 row, i64 rows, i64 mr, To* to) {
  for (i64 r = 0; r < rows; ++r)
    for (i64 k = 0; k < f.depth; ++k) to[k * mr + r] = static_cast<To>(weights[(row + r) * f.row + taps[k].weight]);
}

// Packs a panel in bf16. A tap is a pair of channels; the second half of the last pair may be missing.
template <class T>
void pack_words(const PackedFilters& f, const T* weights, const Tap* taps, i64 row, i64 rows, i64 mr, float* to) {
  const auto [channels, step] = f.sums.back();
  for (i64 k = 0; k < f.depth; ++k) {
    const bool both = 2 * (k % f.words()) + 1 < channels;
    const T* from = weights + row * f.row + taps[k].weight;
    for (i64 r = 0; r < rows; ++r) {
      const std::uint32_t even = f32_to_bf16(static_cast<float>(from[r * f.row]));
      const std::uint32_t odd = both ? f32_to_bf16(static_cast<float>(from[r * f.row + step])) : 0;
      to[k * mr + r] = std::bit_cast<float>(even | odd << 16);
    }
  }
}

class PackWeights final : public HostKernel {
 public:
  PackWeights(const PackedFilters& f, const Target& target)
      : f_(f), table_(*kernel_tables(target.isa).conv), mr_(f.panel(target)) {}
  std::string name() const override { return f_.bf16 ? "pack_conv_bf16" : "pack_conv"; }
  Dim scratch_bytes(int workers) const override { return taps_bytes() + workers * panel_floats() * 4; }
  void run(const HostLaunch& l) const override;

 private:
  i64 taps_bytes() const { return (f_.depth * static_cast<i64>(sizeof(Tap)) + 63) / 64 * 64; }
  void pack_last(const HostLaunch& l, const ConvProblem& p, i64 row, i64 rows, float* to) const {
    const auto pack = [&](const auto* weights) {
      if (f_.bf16) pack_words(f_, weights + f_.offset, p.taps, row, rows, mr_, to);
      else pack_any(f_, weights + f_.offset, p.taps, row, rows, mr_, to);
    };
    if (f_.halves)
      pack_any(f_, static_cast<const std::uint16_t*>(l.in[0]) + f_.offset, p.taps, row, rows, mr_,
               reinterpret_cast<std::uint16_t*>(to));
    else if (f_.stored == WeightType::BF16) pack(static_cast<const bf16*>(l.in[0]));
    else if (f_.stored == WeightType::F16) pack(static_cast<const f16*>(l.in[0]));
    else pack(static_cast<const float*>(l.in[0]));
  }
  i64 bytes(i64 numbers) const { return numbers * (f_.halves ? 2 : 4); }
  i64 panel_floats() const { return f_.depth * mr_ + 16; }  // the last vector is wider than the panel
  PackedFilters f_;
  const ConvTable& table_;
  i64 mr_;
};

// Offset of element `index` of axes given by extent and stride.
i64 offset(const std::vector<std::array<i64, 2>>& axes, i64 index) {
  i64 at = 0;
  for (std::size_t i = axes.size(); i-- > 0; index /= axes[i][0]) at += index % axes[i][0] * axes[i][1];
  return at;
}

void PackWeights::run(const HostLaunch& l) const {
  struct Job {
    const PackWeights& k;
    const HostLaunch& l;
    ConvProblem p;
    float* scratch;
    i64 panels;
  } job{*this, l, {}, reinterpret_cast<float*>(l.scratch + taps_bytes()), 0};
  auto* taps = reinterpret_cast<Tap*>(l.scratch);
  ConvProblem& p = job.p;
  p.neighbours = true;
  auto sums = f_.sums;
  if (f_.bf16) sums.back() = {f_.words(), 2 * sums.back()[1]};
  for (i64 k = 0; k < f_.depth; ++k) {
    taps[k] = {0, offset(sums, k), {}};
    p.neighbours = p.neighbours && taps[k].weight == taps[0].weight + k;
  }
  p.weight = static_cast<const float*>(l.in[0]) + f_.offset;
  p.rows = f_.rows, p.weight_row = f_.row, p.depth = f_.depth, p.taps = taps;
  job.panels = (f_.rows + mr_ - 1) / mr_;
  const auto task = [](void* arg, int number, int worker) {
    const Job& j = *static_cast<Job*>(arg);
    const i64 mr = j.k.mr_, group = number / j.panels, row = number % j.panels * mr, depth = j.k.f_.depth;
    float* panel = j.scratch + worker * j.k.panel_floats();
    std::memset(panel, 0, static_cast<std::size_t>(depth * mr) * 4);
    ConvProblem of = j.p;
    of.weight += offset(j.k.f_.outer, group);
    const i64 rows = std::min(mr, of.rows - row);
    if (j.k.f_.channels_last) j.k.pack_last(j.l, of, row, rows, panel);
    else j.k.table_.pack_weights(&of, row, rows, 0, depth, panel);
    std::memcpy(static_cast<std::byte*>(j.l.out) + j.k.bytes(group * j.k.f_.group_floats(mr) + row * depth), panel,
                static_cast<std::size_t>(j.k.bytes(depth * mr)));
  };
  l.parallel.run(static_cast<int>(f_.groups * job.panels), task, &job);
  std::memset(static_cast<std::byte*>(l.out) + bytes(f_.floats(mr_) - 16), 0, static_cast<std::size_t>(bytes(16)));
}

class PackRegisters final : public HostKernel {
 public:
  PackRegisters(const PackedFilters& f, const Target& target) : filters_(f, conv_tiles(target)) {}
  std::string name() const override { return "pack_conv_bf16"; }
  void run(const HostLaunch& l) const override {
    auto* to = static_cast<std::byte*>(l.out);
    filters_.pack(l.in[0], to, l.parallel);
    std::fill_n(to + filters_.bytes(), 64, std::byte{0});  // the padding of PackedFilters::floats
  }

 private:
  RegisterFilters filters_;
};

}  // namespace

int PackedFilters::panel(const Target& target) const {
  if (registers) return 32;
  if (bf16) return nhwc_bf16_table(target).nr;
  return channels_last ? kernel_tables(target.isa).nhwc->nr : kernel_tables(target.isa).conv->mr;
}

std::optional<PackedFilters> filters_in_memory(const ConvPlan& c) {
  PackedFilters f;
  bool known = true;
  const auto number = [&](const Dim& d) {
    const auto v = d.constant();
    known = known && v;
    return v.value_or(0);
  };
  f.offset = number(c.weight_offset), f.rows = number(c.rows.extent), f.row = number(c.rows.weight), f.depth = 1;
  for (const auto& s : c.sums) {
    f.sums.push_back({number(s.extent), number(s.weight)});
    f.depth *= f.sums.back()[0];
  }
  for (const auto& a : c.outer) {
    if (a.weight == Dim(0)) continue;
    f.outer.push_back({number(a.extent), number(a.weight)});
    f.groups *= f.outer.back()[0];
  }
  f.stored = c.stored;
  if (f.channels_last = c.channels_last; is_depthwise_nhwc(c)) {
    if (!depthwise_nhwc_shape(c)) return std::nullopt;
  } else if (c.channels_last) {
    const auto s = nhwc_shape(c);
    if (!known || !s || !f.outer.empty()) return std::nullopt;
    f.sums.clear();
    for (const auto& sum : s->sums) f.sums.push_back({sum.extent, sum.weight});
    f.halves = c.stored != WeightType::F32 && c.algorithm && c.algorithm->filters == FilterLayout::Panels;
    f.bf16 = c.algorithm && c.algorithm->filters == FilterLayout::Bf16Panels;
    if (f.bf16) f.depth = f.depth / f.sums.back()[0] * f.words();
    f.registers = c.algorithm && c.algorithm->filters == FilterLayout::Bf16Registers;
    const auto w = f.registers ? narrow_window(*s) : std::nullopt;
    if (f.narrow = w.has_value(); w) {
      f.sums = {{w->down.extent, w->down.weight},
                {w->across.extent, w->across.weight},
                {w->channels.extent, w->channels.weight}};
      f.depth = w->down.extent * 16;
    } else if (f.registers) {
      f.depth = f.depth / f.sums.back()[0] * f.blocks() * 16;
    }
  }
  return known && f.groups * f.rows * f.depth > 0 ? std::optional(f) : std::nullopt;
}

std::optional<PackedFilters> packed_filters(const Graph& g, const ConvPlan& c, const Target& target) {
  constexpr i64 kSmall = 1 << 16;
  const Node& w = g[c.weight_node];
  if (w.op != Op::Input || !w.parameter || depthwise_shape(c)) return std::nullopt;
  const auto f = filters_in_memory(c);
  if (!f || !product(w.shape).is_constant()) return std::nullopt;
  // A mostly empty last panel, or rows read by several groups, must not enlarge the parameter much. Channels-last
  // convolutions may double it, because one that cannot be packed would keep the whole network from that layout.
  const i64 floats = f->floats(f->panel(target)), stored = *product(w.shape).constant();
  const i64 most = stored + (c.channels_last ? stored : stored / 5);
  return floats <= std::max(kSmall, most) ? f : std::nullopt;
}

std::optional<std::string> packing_refusal(const Graph& g, const ConvPlan& c, const Target& target) {
  if (packed_filters(g, c, target)) return std::nullopt;
  const Node& w = g[c.weight_node];
  if (w.op != Op::Input || !w.parameter) return "the filters are not a parameter";
  if (depthwise_shape(c)) return "each channel has filters of its own, which need no packing";
  return "the filters would be much larger when packed, or a size is symbolic";
}

PackedParameter packed_parameter(const ConvPlan& c, const PackedFilters& f, const Target& target) {
  if (c.algorithm->filters == FilterLayout::Bf16Strips)
    return {DType::U8, c.nchw_bf16->groups * c.nchw_bf16->group_bytes(), pack_nchw_bf16_kernel(c.nchw_bf16)};
  const DType halves = f.stored == WeightType::F16 ? DType::F16 : DType::BF16;
  return {f.halves ? halves : DType::F32, f.floats(f.panel(target)), pack_weights_kernel(f, target)};
}

std::shared_ptr<HostKernel> pack_weights_kernel(const PackedFilters& f, const Target& target) {
  if (f.registers) return std::make_shared<PackRegisters>(f, target);
  return std::make_shared<PackWeights>(f, target);
}

}  // namespace lc::backends::cpu
