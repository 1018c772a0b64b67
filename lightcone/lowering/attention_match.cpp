// Matches SumReduce(softmax(scores) * V) with scores = steps(SumReduce(Q * K)), as imported graphs have it. An index of
// the result is pulled back through every view on the way. The normalisation is a softmax if its sum and its maximum
// run over exactly the elements that the last product sums over.
#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "lightcone/lowering/attention_operands.h"

namespace lc::lowering {
namespace {

class Matcher : public AttentionOperands {
 public:
  using AttentionOperands::AttentionOperands;
  std::optional<Attention> match(const std::vector<int>& uses);

 private:
  std::optional<double> constant(const Coordinate& p, std::size_t k) const;
  std::optional<Coordinate> reduced(const Coordinate& p, Op op) const;
  bool softmax(const Coordinate& p);
  bool exponential(const Coordinate& p, const Coordinate& sum);
  bool difference(const Coordinate& p);
  bool chain(const Coordinate& p, int steps);
  bool step(const Coordinate& p, std::size_t chained, Step s, std::optional<std::size_t> read, int steps);
  bool dot(const Coordinate& p);
  bool private_to(const std::vector<int>& uses) const;

  std::vector<NodeId> inside_;  // nodes that the kernel replaces
};

std::optional<double> Matcher::constant(const Coordinate& p, std::size_t k) const {
  const auto at = pull(p, k);
  if (!at || node(*at).op != Op::Constant) return std::nullopt;
  return node(*at).value;
}

// Returns the element of the operand that a sum or maximum over the keys reads for the current key.
std::optional<AttentionOperands::Coordinate> Matcher::reduced(const Coordinate& p, Op op) const {
  if (!is(p, op)) return std::nullopt;
  const Node& n = node(p);
  if (!(n.in[0].view.shape()[n.axis] == keys_)) return std::nullopt;
  for (const Dim& d : p.index)
    if (mentions(d, key_)) return std::nullopt;
  Index index = p.index;
  index.insert(index.begin() + n.axis, key_);
  return pull(n.in[0], index);
}

// Matches e / sum(e), written as e * recip(sum) or as a division.
bool Matcher::softmax(const Coordinate& p) {
  if (!is(p, Op::Mul) && !is(p, Op::Div)) return false;
  inside_.push_back(p.node);
  const std::size_t mark = inside_.size();
  for (const std::size_t e : {0u, 1u}) {
    inside_.resize(mark);
    const auto top = pull(p, e);
    auto below = pull(p, 1 - e);
    if (!top || !below) continue;
    if (is(p, Op::Mul)) {
      if (!is(*below, Op::Recip)) continue;
      inside_.push_back(below->node);
      below = pull(*below, 0);
      if (!below) continue;
    } else if (e == 1) {
      continue;
    }
    if (exponential(*top, *below)) return true;
  }
  return false;
}

bool Matcher::exponential(const Coordinate& p, const Coordinate& sum) {
  if ((!is(p, Op::Exp2) && !is(p, Op::Exp)) || reduced(sum, Op::SumReduce) != p) return false;
  inside_.push_back(sum.node), inside_.push_back(p.node);
  const auto power = pull(p, 0);
  if (!power) return false;
  if (is(p, Op::Exp)) {
    exponent_ = std::numbers::log2e;
    return difference(*power);
  }
  if (!is(*power, Op::Mul)) return difference(*power);
  for (const std::size_t k : {0u, 1u}) {
    const auto c = constant(*power, k);
    const auto d = pull(*power, 1 - k);
    if (!c || !d || !(*c > 0) || !std::isfinite(*c)) continue;
    exponent_ = *c;
    inside_.push_back(power->node);
    return difference(*d);
  }
  return false;
}

// Matches x - max(x), written as an addition.
bool Matcher::difference(const Coordinate& p) {
  if (!is(p, Op::Add)) return false;
  inside_.push_back(p.node);
  for (const std::size_t k : {0u, 1u}) {
    const auto x = pull(p, k), minus = pull(p, 1 - k);
    if (!x || !minus || !is(*minus, Op::Mul)) continue;
    for (const std::size_t s : {0u, 1u}) {
      const auto max = pull(*minus, 1 - s);
      if (constant(*minus, s) != -1.0 || !max || reduced(*max, Op::MaxReduce) != x) continue;
      inside_.push_back(minus->node), inside_.push_back(max->node);
      return chain(*x, 0);
    }
  }
  return false;
}

// Follows a score from the softmax back to the product of Q and K. `steps` counts the steps passed so far.
bool Matcher::chain(const Coordinate& p, int steps) {
  if (node(p).dtype != DType::F32) return false;
  if (node(p).op == Op::SumReduce) return dot(p);
  if (steps > kAttentionSteps) return false;  // the first scale is merged into the product, so one more
  using S = AttentionStep;
  const auto number = [&](std::size_t k) { return constant(p, k); };
  switch (node(p).op) {
    case Op::Mul:
      for (const std::size_t k : {0u, 1u})
        if (const auto c = number(k)) return step(p, 1 - k, {{S::Scale, static_cast<float>(*c)}, {}}, {}, steps);
      return false;
    case Op::Div:
      if (const auto c = number(1); c && std::isnormal(static_cast<float>(1 / *c)))
        return step(p, 0, {{S::Scale, static_cast<float>(1 / *c)}, {}}, {}, steps);
      return false;
    case Op::Add:
      for (const std::size_t k : {0u, 1u})
        if (const auto c = number(k)) return step(p, 1 - k, {{S::Shift, static_cast<float>(*c)}, {}}, {}, steps);
      return step(p, 0, {{S::Bias}, {}}, 1, steps) || step(p, 1, {{S::Bias}, {}}, 0, steps);
    case Op::Where:
      for (const std::size_t k : {1u, 2u})
        if (const auto c = number(k)) return step(p, 3 - k, {{S::Mask, static_cast<float>(*c), k == 2}, {}}, 0, steps);
      return false;
    default: return false;
  }
}

bool Matcher::step(const Coordinate& p, std::size_t chained, Step s, std::optional<std::size_t> from, int steps_above) {
  const auto next = pull(p, chained);
  const std::size_t inside = inside_.size(), steps = steps_.size();
  inside_.push_back(p.node);
  if (next && chain(*next, steps_above + 1)) {
    if (from) s.read = read_small(node(p).in[*from], p.index);
    if (!from || s.read) {
      steps_.push_back(s);
      return true;
    }
  }
  inside_.resize(inside), steps_.resize(steps);
  return false;
}

bool Matcher::dot(const Coordinate& p) {
  const Node& n = node(p);
  add_depth(n.in[0].view.shape()[n.axis]);
  Index index = p.index;
  index.insert(index.begin() + n.axis, depth_symbol());
  const auto mul = pull(n.in[0], index);
  if (!mul || !is(*mul, Op::Mul)) return false;
  for (const std::size_t k : {0u, 1u}) {
    q_ = read(node(*mul).in[1 - k], mul->index);
    k_ = cached(node(*mul).in[k], mul->index);
    if (!fits_product()) continue;
    inside_.push_back(p.node), inside_.push_back(mul->node);
    return true;
  }
  return false;
}

bool Matcher::private_to(const std::vector<int>& uses) const {
  std::vector<NodeId> nodes = inside_;
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  std::map<NodeId, int> own;
  for (const NodeId id : nodes)
    for (const Edge& e : g_[id].in) ++own[e.node];
  for (const Edge& e : g_[root_].in) ++own[e.node];
  return std::all_of(nodes.begin(), nodes.end(), [&](NodeId id) { return own[id] == uses[id]; });
}

std::optional<Attention> Matcher::match(const std::vector<int>& uses) {
  const Node& n = g_[root_];
  if (n.op != Op::SumReduce || n.dtype != DType::F32) return std::nullopt;
  const Node& mul = g_[n.in[0].node];
  const auto weighs = [&](const Edge& e) { return g_[e.node].op == Op::Mul || g_[e.node].op == Op::Div; };
  if (mul.op != Op::Mul || !std::any_of(mul.in.begin(), mul.in.end(), weighs)) return std::nullopt;
  make_axes();
  if (!add_keys(n.in[0].view.shape()[n.axis])) return std::nullopt;
  Index index = index_;
  index.insert(index.begin() + n.axis, key_);
  const auto at = pull(n.in[0], index);
  if (!at) return std::nullopt;
  for (const std::size_t k : {0u, 1u}) {
    steps_.clear();
    inside_ = {at->node};
    const auto weights = pull(*at, k);
    if (!weights || !softmax(*weights)) continue;
    v_ = cached(mul.in[1 - k], at->index);
    if (!v_) return std::nullopt;
    if (!steps_.empty() && steps_[0].step.kind == AttentionStep::Scale) {  // merged into the product, where it is free
      scale_ = steps_[0].step.value;
      steps_.erase(steps_.begin());
    }
    return private_to(uses) ? plan() : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Attention> match_attention(const Graph& g, const std::vector<int>& uses, NodeId id) {
  if (g[id].op != Op::SumReduce) return std::nullopt;
  return plan_with_cuts<Matcher>(g, id, [&](Matcher& m) { return m.match(uses); });
}

}  // namespace lc::lowering
