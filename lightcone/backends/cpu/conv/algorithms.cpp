#include "lightcone/backends/cpu/conv/algorithms.h"

#include <algorithm>
#include <limits>

#include "lightcone/backends/cpu/conv/depthwise.h"
#include "lightcone/backends/cpu/conv/filter_gradients_last.h"
#include "lightcone/backends/cpu/conv/gradients/filter_gradient.h"
#include "lightcone/backends/cpu/conv/gradients/on_registers.h"
#include "lightcone/backends/cpu/conv/nchw_bf16.h"
#include "lightcone/backends/cpu/conv/nhwc_bf16.h"
#include "lightcone/backends/cpu/products/microkernel.h"
#include "lightcone/backends/cpu/products/rounding.h"
#include "lightcone/base/numbers.h"
#include "lightcone/device/host_kernel.h"

namespace lc::backends::cpu {
namespace {

using Refusal = std::optional<std::string>;
using EpiloguePtr = std::shared_ptr<const Epilogue>;
using KernelPtr = std::shared_ptr<HostKernel>;

double always_cheapest(const ConvPlan&, const ConvContext&) { return 0; }

// What all algorithms with contiguous pixels refuse.
Refusal refuses_nchw(const ConvPlan& c, const ConvContext& x) {
  if (c.channels_last) return "the channels are last";
  if (like_filter_gradient(x.graph, c)) return "it sums so many products for each result that it is a filter gradient";
  return std::nullopt;
}
// What all algorithms with contiguous channels refuse, except filter gradients.
Refusal refuses_nhwc(const ConvPlan& c, const ConvContext& x) {
  if (!c.channels_last) return "the channels are not last";
  return packing_refusal(x.graph, c, x.target);
}

// ---- one algorithm for each function -----------------------------------------------------------

Refusal refuses_filter_gradient(const ConvPlan& c, const ConvContext& x) {
  if (packed_filters(x.graph, c, x.target)) return "the filters are a parameter, which is packed";
  if (!filter_gradient_shape(c)) return filter_gradient_refusal(c);
  return std::nullopt;
}
KernelPtr make_filter_gradient(const ConvPlan& c, EpiloguePtr, const ConvContext& x) {
  return filter_gradient_kernel(c, x.target);
}

bool has_tile_registers(const ConvContext& x) { return on_tiles(*microkernel(Arithmetic::Bf16, x.target)); }
Refusal refuses_gradient_registers(const ConvPlan& c, const ConvContext& x) {
  if (x.precision != Precision::Medium) return "the precision is not medium";
  if (auto why = refuses_filter_gradient(c, x)) return why;
  if (auto why = gradient_registers_refusal(c)) return why;
  if (!has_tile_registers(x)) return "the processor has no tile registers";
  return std::nullopt;
}
KernelPtr make_gradient_registers(const ConvPlan& c, EpiloguePtr, const ConvContext& x) {
  return gradient_registers_kernel(c, gradient_tiles(x.target), x.blocking);
}

Refusal refuses_depthwise(const ConvPlan& c, const ConvContext& x) {
  if (auto why = refuses_nchw(c, x)) return why;
  if (!depthwise_shape(c)) return depthwise_refusal(c);
  return std::nullopt;
}
KernelPtr make_depthwise(const ConvPlan& c, EpiloguePtr epilogue, const ConvContext& x) {
  return depthwise_kernel(c, std::move(epilogue), x.target, x.blocking);
}

Refusal refuses_depthwise_nhwc(const ConvPlan& c, const ConvContext& x) {
  if (c.channels_last && !is_depthwise_nhwc(c)) return "all channels share the filters";
  return refuses_nhwc(c, x);
}
KernelPtr make_depthwise_nhwc(const ConvPlan& c, EpiloguePtr epilogue, const ConvContext& x) {
  return depthwise_nhwc_kernel(c, std::move(epilogue), x.target);
}

Refusal refuses_nchw_bf16(const ConvPlan& c, const ConvContext& x) {
  if (auto why = refuses_nchw(c, x)) return why;
  if (x.precision != Precision::Medium) return "the precision is not medium";
  return nchw_bf16_refusal(x.graph, x.uses, x.winograd, x.target, c);
}
KernelPtr make_pairs(const ConvPlan& c, EpiloguePtr epilogue, const ConvContext& x) {
  return nchw_bf16_kernel(c, std::move(epilogue), x.blocking);
}
void prepare_pairs(ConvPlan& c, const ConvContext& x) { plan_nchw_bf16(x.graph, x.target, c); }

Refusal refuses_nhwc_registers(const ConvPlan& c, const ConvContext& x) {
  if (!c.channels_last) return "the channels are not last";
  if (x.precision != Precision::Medium) return "the precision is not medium";
  if (lowering::filters_parameter(x.graph, c.weight_node)) {
    if (auto why = packing_refusal(x.graph, c, x.target)) return why;
  } else if (x.graph[c.weight_node].dtype != DType::F32) {
    return "the filters are neither a parameter nor f32";
  }
  if (auto why = nhwc_registers_refusal(c)) return why;
  if (!has_tile_registers(x)) return "the processor has no tile registers";
  return std::nullopt;
}
KernelPtr make_nhwc_registers(const ConvPlan& c, EpiloguePtr epilogue, const ConvContext& x) {
  return nhwc_registers_kernel(c, std::move(epilogue), conv_tiles(x.target), x.blocking);
}

Refusal refuses_nhwc_bf16(const ConvPlan& c, const ConvContext& x) {
  if (auto why = refuses_nhwc(c, x)) return why;
  if (x.precision != Precision::Medium) return "the precision is not medium";
  if (!bf16_dots_are_fast(x.target)) return "bf16 dot products are not faster than f32 on this processor";
  if (!x.nhwc_bf16) return "all convolutions of the graph with channels last are matrix products";
  return nhwc_bf16_refusal(c);
}
// A dot product takes as long as a multiply-add and has twice the products. Winograd's algorithm, in f32, has a quarter
// of them and moves more memory: 15 cycles for each channel of a tile before and after the products, and up to 80 where
// the image is in no cache and others use the memory (VGG19 on a Zen 4 with two cores). On Zen 5, whose memory is as
// fast and whose arithmetic twice, bf16 is faster (VGG19 814 ms, with Winograd in f32 999).
double cost_of_nhwc_bf16(const ConvPlan& c, const ConvContext& x) {
  if (!x.target.halves_512) return 0;
  const NhwcShape s = *nhwc_shape(c);
  const std::int64_t images = largest_batch(c), channels = s.channels + s.rows;
  const std::int64_t tiles = images * ceil_div(s.y.extent, kWinogradOut) * ceil_div(s.x.extent, kWinogradOut);
  const bool cached = 4 * images * s.y.extent * s.x.extent * channels <= x.blocking.llc_bytes(16);
  return std::max(0.0, nhwc_cost(s, images) / 2 - (cached ? 15.0 : 50.0) * static_cast<double>(tiles * channels));
}
KernelPtr make_nhwc_bf16(const ConvPlan& c, EpiloguePtr epilogue, const ConvContext& x) {
  return nhwc_bf16_kernel(c, std::move(epilogue), x.target, x.blocking);
}

Refusal refuses_nhwc_f32(const ConvPlan& c, const ConvContext& x) {
  if (c.channels_last && is_depthwise_nhwc(c)) return "each channel has its own filters";
  if (auto why = refuses_nhwc(c, x)) return why;
  if (!nhwc_shape(c)) return nhwc_refusal(c);
  return std::nullopt;
}
double cost_of_nhwc(const ConvPlan& c, const ConvContext&) { return nhwc_cost(*nhwc_shape(c), largest_batch(c)); }
KernelPtr make_nhwc(const ConvPlan& c, EpiloguePtr epilogue, const ConvContext& x) {
  return nhwc_kernel(c, std::move(epilogue), x.target, x.blocking);
}

Refusal refuses_winograd_nhwc(const ConvPlan& c, const ConvContext& x) {
  if (auto why = refuses_nhwc_f32(c, x)) return why;
  if (!x.winograd) return "CpuOptions::winograd is false";
  const NhwcShape s = *nhwc_shape(c);
  if (auto why = nhwc_winograd_refusal(s)) return why;
  if (s.channels < 16) return "there are fewer than 16 channels";
  if (s.rows < 16) return "there are fewer than 16 filters";
  return std::nullopt;
}
double cost_of_winograd_nhwc(const ConvPlan& c, const ConvContext&) {
  return nhwc_winograd_cost(*nhwc_shape(c), largest_batch(c));
}
KernelPtr make_winograd_nhwc(const ConvPlan& c, EpiloguePtr epilogue, const ConvContext& x) {
  return nhwc_winograd_kernel(c, std::move(epilogue), x.target, x.blocking);
}

// The algorithms of the NCHW kernel, for the largest sizes.
ConvRun run_for(const ConvPlan& c, const ConvContext& x) {
  return largest_run(c, x.winograd ? UseWinograd::IfCheaper : UseWinograd::Never, x.target, x.blocking);
}
template <const ConvInRun& algorithm>
Refusal refuses_in_run(const ConvPlan& c, const ConvContext& x) {
  if (auto why = refuses_nchw(c, x)) return why;
  const char* why = algorithm.refuses(run_for(c, x));
  return why ? Refusal(why) : std::nullopt;
}
template <const ConvInRun& algorithm>
double cost_in_run(const ConvPlan& c, const ConvContext& x) {
  return algorithm.cost(run_for(c, x));
}
Refusal refuses_winograd(const ConvPlan& c, const ConvContext& x) {
  if (auto why = refuses_nchw(c, x)) return why;
  if (!x.winograd) return "CpuOptions::winograd is false";
  if (auto why = winograd_refusal(c)) return why;
  return refuses_in_run<kWinograd>(c, x);
}
KernelPtr make_nchw(const ConvPlan& c, EpiloguePtr epilogue, const ConvContext& x) {
  return nchw_kernel(c, x.winograd ? UseWinograd::IfCheaper : UseWinograd::Never, std::move(epilogue), x.target,
                     x.blocking);
}

}  // namespace

// The first of equally cheap algorithms is chosen. Winograd, whose errors are larger, comes after the others.
const std::array<ConvAlgorithm, 12> kConvAlgorithms = {{
    {.name = "filter_gradient_registers",
     .filters = FilterLayout::AsStored,
     .is_gradient = true,
     .registers = true,
     .refuses = refuses_gradient_registers,
     .cost = always_cheapest,
     .make = make_gradient_registers},
    {.name = "filter_gradient",
     .filters = FilterLayout::AsStored,
     .is_gradient = true,
     .refuses = refuses_filter_gradient,
     .cost = always_cheapest,
     .make = make_filter_gradient},
    {.name = "depthwise",
     .filters = FilterLayout::AsStored,
     .refuses = refuses_depthwise,
     .cost = always_cheapest,
     .make = make_depthwise},
    {.name = "depthwise_nhwc",
     .filters = FilterLayout::Panels,
     .refuses = refuses_depthwise_nhwc,
     .cost = always_cheapest,
     .make = make_depthwise_nhwc},
    {.name = "nchw_bf16",
     .filters = FilterLayout::Bf16Strips,
     .refuses = refuses_nchw_bf16,
     .cost = always_cheapest,
     .make = make_pairs,
     .prepare = prepare_pairs},
    {.name = "nhwc_registers",
     .filters = FilterLayout::Bf16Registers,
     .registers = true,
     .refuses = refuses_nhwc_registers,
     .cost = always_cheapest,
     .make = make_nhwc_registers,
     .reads_bf16 = nhwc_registers_reads_bf16},
    {.name = "nhwc_bf16",
     .filters = FilterLayout::Bf16Panels,
     .refuses = refuses_nhwc_bf16,
     .cost = cost_of_nhwc_bf16,
     .make = make_nhwc_bf16,
     .reads_bf16 = nhwc_bf16_reads_bf16},
    {.name = "nhwc",
     .filters = FilterLayout::Panels,
     .refuses = refuses_nhwc_f32,
     .cost = cost_of_nhwc,
     .make = make_nhwc},
    {.name = "winograd_nhwc",
     .filters = FilterLayout::Panels,
     .refuses = refuses_winograd_nhwc,
     .cost = cost_of_winograd_nhwc,
     .make = make_winograd_nhwc},
    // The sizes of these three may be symbolic. Their kernel chooses again in each run.
    {.name = "slide",
     .filters = FilterLayout::PanelsIfPossible,
     .refuses = refuses_in_run<kSlide>,
     .cost = cost_in_run<kSlide>,
     .make = make_nchw,
     .in_run = &kSlide},
    {.name = "direct",
     .filters = FilterLayout::PanelsIfPossible,
     .refuses = refuses_in_run<kDirect>,
     .cost = cost_in_run<kDirect>,
     .make = make_nchw,
     .in_run = &kDirect},
    {.name = "winograd",
     .filters = FilterLayout::PanelsIfPossible,
     .refuses = refuses_winograd,
     .cost = cost_in_run<kWinograd>,
     .make = make_nchw,
     .in_run = &kWinograd},
}};

const ConvAlgorithm& conv_algorithm(std::string_view name) {
  const auto at = std::find_if(kConvAlgorithms.begin(), kConvAlgorithms.end(),
                               [&](const ConvAlgorithm& a) { return a.name == name; });
  check(at != kConvAlgorithms.end(), "no algorithm of convolutions has this name");
  return *at;
}

const ConvAlgorithm* choose(const ConvPlan& c, const ConvContext& x) {
  const ConvAlgorithm* best = nullptr;
  double least = 0;
  for (const ConvAlgorithm& a : kConvAlgorithms) {
    if ((x.rounded && !a.registers) || a.refuses(c, x)) continue;
    const double cost = a.cost(c, x);
    if (best && cost >= least) continue;
    best = &a, least = cost;
    if (least == 0) break;  // no other is cheaper
  }
  return best;
}

const ConvInRun& choose_in_run(const ConvRun& run) {
  const ConvInRun* best = &kDirect;
  double least = std::numeric_limits<double>::infinity();
  for (const ConvAlgorithm& a : kConvAlgorithms) {
    if (!a.in_run || a.in_run->refuses(run)) continue;
    const double cost = a.in_run->cost(run);
    if (cost < least) best = a.in_run, least = cost;
  }
  return *best;
}

std::vector<std::string> explain(const ConvPlan& plan, const ConvContext& x) {
  ConvPlan c = plan;
  c.algorithm = nullptr;  // packed_filters() describes f32
  const ConvAlgorithm* chosen = plan.algorithm->in_run ? choose(c, x) : plan.algorithm;
  const double least = chosen->cost(c, x);
  std::string first(chosen->name);
  if (chosen->in_run && !sizes_are_known(c)) {
    first += ", for the largest sizes; each run chooses again among";
    for (const ConvAlgorithm& a : kConvAlgorithms)
      if (a.in_run) first += str_cat(first.ends_with("among") ? " " : ", ", a.name);
  }
  std::vector<std::string> lines = {first};
  for (const ConvAlgorithm& a : kConvAlgorithms) {
    if (&a == chosen) continue;
    // Filter gradients are asked for first: to ask others might request AMX tiles in vain.
    Refusal why = chosen->is_gradient         ? std::nullopt
                  : x.rounded && !a.registers ? Refusal("the graph rounds to bf16, and this does not")
                                              : a.refuses(c, x);
    if (!why && least == 0) why = str_cat(chosen->name, " is faster wherever it applies");
    if (!why) {
      const double times = a.cost(c, x) / least;
      why = times > 1 ? formatted("it is estimated to take %.2f times as long", times)
                      : str_cat("it is not estimated to be faster than ", chosen->name);
    }
    lines.push_back(str_cat(a.name, ": ", *why));
  }
  return lines;
}

namespace {

bool any_computes(const ConvPlan& plan, const ConvContext& x, bool on_registers) {
  return std::any_of(kConvAlgorithms.begin(), kConvAlgorithms.end(),
                     [&](const ConvAlgorithm& a) { return (!on_registers || a.registers) && !a.refuses(plan, x); });
}

}  // namespace

bool multiplied_on_registers(const Graph& g, const lowering::Factors& f, const Target& target, Precision precision) {
  if (!may_have_tiles(target)) return false;
  if (precision != Precision::Medium && !lowering::before_rounding(g, f, DType::BF16)) return false;
  return on_tiles(*microkernel(Arithmetic::Bf16, target));
}

// On tile registers a convolution's filters may change from run to run, and what a graph rounds to bf16 is read before
// that.
std::optional<FoundConvolution> find_convolution(const Graph& g, const lowering::Factors& f, const Target& target,
                                                 Precision precision) {
  ConvContext x{.graph = g, .target = target};
  if (may_have_tiles(target)) {
    const auto wide = lowering::before_rounding(g, f, DType::BF16);
    x.precision = wide ? Precision::Medium : precision;
    const auto c = x.precision == Precision::Medium ? lowering::match_convolution(g, wide ? *wide : f) : std::nullopt;
    if (c && any_computes({*c}, x, true)) return FoundConvolution{*c, wide.has_value()};
  }
  x.precision = Precision::Highest;
  const auto c = lowering::match_convolution(g, f);
  return c && any_computes({*c}, x, false) ? std::optional(FoundConvolution{*c}) : std::nullopt;
}

}  // namespace lc::backends::cpu
