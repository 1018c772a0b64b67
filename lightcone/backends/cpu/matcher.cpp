#include "lightcone/backends/cpu/matcher.h"

#include <algorithm>

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

}  // namespace

Matcher::Matcher(const Graph& g, const CpuOptions& o)
    : g_(g), options_(o), uses_(g.uses()), nhwc_bf16_(multiplies_bf16(o) && keeps_channels_last(g, *o.target)) {}

PartitionRules Matcher::rules() {
  PartitionRules r;
  r.machine = *options_.machine;
  r.epilogue_operands = Epilogue::kMaxOperands, r.epilogue_sizes = Epilogue::kMaxSizes - 1;
  r.match = [this](const Graph&, const Factors& f) { return match(f); };
  r.sums_apart = [this](NodeId sum, DType result) {
    return result == DType::F32 ? sums_apart(sum) : result == DType::BF16 && writes_bf16(sum);
  };
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

// The value in bf16 that a factor widens, if `read` is the factor. For a kernel that reads what the graph rounds to
// bf16 before that, it is the rounded value if nothing else reads the other, which an epilogue then rounds.
std::optional<NodeId> Matcher::in_bf16(const Factors& f, NodeId read) const {
  for (const Edge& e : f.edge) {
    const auto stored = lowering::widened_bf16(g_, e.node);
    if (!stored) continue;
    const Node& rounded = g_[*stored];
    const bool before = rounded.op == Op::Contiguous && rounded.in[0].node == read && uses_[read] == 1;
    if (e.node == read || (before && made_by(read) == MadeBy::WriterOfBf16)) return stored;
  }
  return std::nullopt;
}

// Follows the elementwise operations before a value that a kernel of loops would fuse.
Matcher::MadeBy Matcher::made_by(NodeId value) const {
  constexpr std::size_t kMost = 64;  // operations of an epilogue
  std::vector<NodeId> chain{value};
  std::map<NodeId, int> read;  // how often the chain reads a node
  MadeBy found = MadeBy::Loop;
  for (std::size_t i = 0; i < std::min(chain.size(), kMost); ++i) {
    const NodeId id = chain[i];
    if (convolutions.contains(id) || matmuls.contains(id)) {
      if (!writes_bf16(id)) return MadeBy::OtherSum;
      found = MadeBy::WriterOfBf16;
    } else if (info(g_[id].op).kind == Kind::Elementwise) {
      for (const Edge& e : g_[id].in)
        if (product(e.view.shape()) == product(e.view.base()) && ++read[e.node] == uses_[e.node])
          chain.push_back(e.node);
    }
  }
  return found;
}

bool Matcher::writes_bf16(NodeId sum) const {
  const auto c = convolutions.find(sum);
  if (c != convolutions.end()) return c->second.algorithm->reads_bf16 != nullptr;
  const auto m = matmuls.find(sum);  // products of the same rows share a buffer of f32
  return m != matmuls.end() && cpu::writes_bf16(m->second) && rows_read_.at(m->second.a_node) == 1;
}

bool Matcher::sums_apart(NodeId sum) const {
  const auto c = convolutions.find(sum);
  if (c != convolutions.end()) return c->second.algorithm->registers && c->second.algorithm->reads_bf16;
  const auto m = matmuls.find(sum);
  return m != matmuls.end() && cpu::sums_apart(m->second);
}

bool Matcher::reads_bf16(NodeId sum) const {
  const auto c = convolutions.find(sum);
  if (c != convolutions.end()) return c->second.algorithm->reads_bf16 && c->second.algorithm->reads_bf16(c->second);
  const auto m = matmuls.find(sum);
  return m != matmuls.end() && cpu::reads_bf16(m->second);
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
    const ConvAlgorithm* a = lowering::rows_follow(*product) ? nullptr : choose(found, context);
    return a && a->filters == FilterLayout::Bf16Registers;
  };
  if (c && !(c->channels_last && faster && !on_registers())) {
    ConvPlan& plan = convolutions[f.sum] = found;
    plan.algorithm = choose(plan, context);
    check(plan.algorithm, "find_convolution() found an algorithm");
    if (plan.algorithm->prepare) plan.algorithm->prepare(plan, context);
    if (const auto stored = reads_bf16(f.sum) ? in_bf16(f, plan.image_node) : std::nullopt)
      plan.image_node = *stored, plan.bf16_image = true;
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
  const bool split = plan.unit != nullptr;
  if (!split) plan.unit = choose_unit(*product, precision, *options_.target);
  plan.for_unit = split || (plan.unit && plan.unit->exact() && packable_bytes(g_, *product));
  if (const Microkernel* u = choose_prompt_unit(*product, precision, *options_.target); u && packable(g_, *product))
    plan.few = plan.unit, plan.unit = u;
  if (split || wants_tiles(*product, precision, *options_.target)) ++tiles_wanted;
  if (const auto stored = reads_bf16(f.sum) ? in_bf16(f, plan.a_node) : std::nullopt)
    plan.a_node = product->a_node = *stored, plan.bf16_a = true;
  ++rows_read_[plan.a_node];
  return std::move(*product);
}

}  // namespace lc::backends::cpu
