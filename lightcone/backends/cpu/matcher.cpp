#include "lightcone/backends/cpu/matcher.h"

#include "lightcone/backends/cpu/loops/epilogue.h"

namespace lc::backends::cpu {
namespace {

using lowering::Contraction;
using lowering::Convolution;
using lowering::Factors;
using lowering::PartitionRules;

bool multiplies_bf16(const CpuOptions& o) { return o.precision == Precision::Medium && bf16_dots_are_fast(*o.target); }

// Returns whether the graph has a convolution with channels last that is no matrix product. The other convolutions of
// the net then keep channels last, too.
bool keeps_channels_last(const Graph& g, const Target& target) {
  for (NodeId id = 0; id < g.size(); ++id) {
    const auto f = g[id].op == Op::SumReduce && g[id].shape.size() > 3 ? lowering::factors(g, id) : std::nullopt;
    if (!f || match_contraction(g, *f)) continue;
    if (const auto c = find_convolution(g, *f, target); c && c->channels_last) return true;
  }
  return false;
}

// Returns whether all rows of A have one distance in memory. The others are several products, each of few rows.
bool rows_follow(const Contraction& c) {
  Dim next = 0;
  for (std::size_t i = c.axes.size() - 1; i-- > 0;) {
    const Contraction::Axis& x = c.axes[i];
    if (x.extent == Dim(1)) continue;
    if (!(next == Dim(0)) && !(x.a == next)) return false;
    next = x.a * x.extent;
  }
  return true;
}

}  // namespace

Matcher::Matcher(const Graph& g, const CpuOptions& o)
    : g_(g), options_(o), uses_(g.uses()), nhwc_bf16_(multiplies_bf16(o) && keeps_channels_last(g, *o.target)) {}

PartitionRules Matcher::rules() {
  PartitionRules r;
  r.machine = *options_.machine;
  r.epilogue_operands = Epilogue::kMaxOperands, r.epilogue_sizes = Epilogue::kMaxSizes;
  r.match = [this](const Graph&, const Factors& f) { return match(f); };
  return r;
}

ConvContext Matcher::conv_context(const ConvPlan& c) const {
  return {.graph = g_,
          .target = *options_.target,
          .blocking = Blocking(*options_.machine),
          .precision = c.rounded ? Precision::Medium : options_.precision,
          .winograd = options_.winograd,
          .rounded = c.rounded,
          .nhwc_bf16 = nhwc_bf16_,
          .uses = uses_};
}

// The microkernel whose B is split when it is loaded, if B is a parameter that can be.
const Microkernel* Matcher::split_weights(const Contraction& c, Precision p) const {
  return c.type == WeightType::F32 && packable(g_, c) ? choose_split_weights(c, p, *options_.target) : nullptr;
}

// Returns whether a microkernel multiplies the factors faster than f32. Without instructions for bf16 its kernel saves
// only memory.
bool Matcher::beats_f32(const Contraction& c) const {
  if (split_weights(c, options_.precision)) return true;
  const Microkernel* u = choose_unit(c, options_.precision, *options_.target);
  return u && (u->arithmetic != Arithmetic::Bf16 || bf16_may_be_fast(*options_.target));
}

// Chooses what computes a sum of products: a convolution, a matrix product or, if neither matches, a loop.
PartitionRules::Match Matcher::match(const Factors& f) {
  auto product = match_contraction(g_, f);
  // a convolution with channels last may also be a matrix product with a microkernel that is faster than f32
  const bool faster = product && !nhwc_bf16_ && beats_f32(*product);
  const auto c = find_convolution(g_, f, *options_.target, options_.precision);
  ConvPlan found;
  if (c) found = {*c}, found.rounded = c->rounded;
  const ConvContext context = conv_context(found);
  const auto on_registers = [&] {
    const ConvAlgorithm* a = rows_follow(*product) ? nullptr : choose(found, context);
    return a && a->filters == FilterLayout::Bf16Registers;
  };
  if (c && !(c->channels_last && faster && !on_registers())) {
    ConvPlan& plan = convolutions[f.sum] = found;
    plan.algorithm = choose(plan, context);
    check(plan.algorithm, "find_convolution() found an algorithm");
    if (plan.algorithm->prepare) plan.algorithm->prepare(plan, context);
    tiles_wanted +=
        context.precision == Precision::Medium && (plan.algorithm->registers || !plan.algorithm->is_gradient);
    return static_cast<const Convolution&>(plan);  // its filters may be read as they are stored
  }
  if (!product) return std::monostate{};
  Precision precision = options_.precision;
  if (const auto wide = before_rounding(g_, f, DType::BF16); wide && bf16_is_fast(*options_.target)) {
    if (auto rounding = match_contraction(g_, *wide)) product = std::move(rounding), precision = Precision::Medium;
  }
  MatmulPlan& plan = matmuls[f.sum] = {*product};
  plan.unit = split_weights(*product, precision);
  plan.for_unit = plan.unit != nullptr;
  if (!plan.for_unit) plan.unit = choose_unit(*product, precision, *options_.target);
  if (const Microkernel* u = choose_prompt_unit(*product, precision, *options_.target); u && packable(g_, *product))
    plan.few = plan.unit, plan.unit = u;
  if (plan.for_unit || wants_tiles(*product, precision, *options_.target)) ++tiles_wanted;
  return std::move(*product);
}

}  // namespace lc::backends::cpu
