#include "lightcone/lowering/types/mixed_precision.h"

#include "lightcone/composites/composites.h"
#include "lightcone/lowering/factors.h"
#include "lightcone/lowering/products.h"
#include "lightcone/passes/composites.h"
#include "lightcone/passes/gradient_marks.h"

namespace lc {
namespace {

using namespace prim;
using lowering::Factors;

Tensor rounded(const Tensor& x, DType to) { return cast(cast(x, to), x.dtype()); }

// Rounds the operands of sums of products.
Graph round_products(const Graph& given, DType to, PassLog& log) {
  const Graph g = inline_transparent(given, log, builtin::attention());
  const std::vector<bool> left_alone = lowering::inside_attention(g);
  return copy_graph(g, [&](Graph& dst, NodeId was, Node n) {
    const NodeId id = dst.add(std::move(n));
    const Edge made{id, View(dst[id].shape)};
    const auto f = left_alone[was] ? std::nullopt : lowering::factors(dst, id);
    if (!f || dst[id].dtype != DType::F32 || !lowering::is_product(dst, *f)) return made;
    std::vector<Tensor> in;
    for (const Edge& e : f->edge) {
      const bool is_f32 = dst[e.node].dtype == DType::F32;
      const Tensor whole(dst, {e.node, View(dst[e.node].shape)});
      in.push_back((is_f32 && !lowering::is_narrow(dst, dst[e.node]) ? rounded(whole, to) : whole).with(e.view));
    }
    const Node sum = dst[id];
    const Tensor product = mul(in[0], in[1]);
    ++log.fired["product in " + std::string(name(to))];
    return sum_reduce(product.with(sum.in[0].view), sum.axis).edge();
  });
}

Compiler rounding(DType to) {
  Pass p;
  p.name = name(to);
  p.redefines = true;
  p.run = [to](const Graph& g, PassLog& log) { return round_products(g, to, log); };
  return Compiler(std::move(p));
}

bool has_gradients(const Graph& g) {
  return any_node(g, [](const Node& n) { return is(n, gradient_result()); });
}

Tensor stretched(const Tensor& scalar, const Shape& to) { return scalar.reshape(Shape(to.size(), 1)).expand(to); }

// ---- the loss scale -----------------------------------------------------------------------------

class Scaled {
 public:
  Scaled(const Graph& g, const LossScaling& o, PassLog& log) : g_(g), options_(o), log_(log) {}
  Graph run();

 private:
  Edge copy(NodeId id, Node n);
  Tensor all_finite() const;
  void move_scale(const Tensor& finite);
  Tensor number(double v) const { return full(dst_, {}, v); }

  const Graph& g_;
  const LossScaling& options_;
  PassLog& log_;
  Graph dst_;
  Tensor exponent_, good_, scale_, inverse_;
  std::vector<Edge> to_;
  std::vector<bool> follows_;      // by node of the source graph: depends on a gradient
  std::vector<Tensor> gradients_;  // divided by the loss scale
};

Edge Scaled::copy(NodeId id, Node n) {
  for (Edge& e : n.in) {
    follows_[id] = follows_[id] || follows_[e.node];
    e = {to_[e.node].node, to_[e.node].view.then(e.view)};
  }
  const OpScope scope(n.where);
  if (is(n, gradient_seed())) return mul(Tensor(dst_, n.in[0]), stretched(cast(scale_, n.dtype), n.shape)).edge();
  if (is(n, gradient_result())) {
    follows_[id] = true;
    gradients_.push_back(mul(Tensor(dst_, n.in[0]), stretched(cast(inverse_, n.dtype), n.shape)));
    ++log_.fired["gradient scaled back"];
    return gradients_.back().edge();
  }
  const NodeId made = dst_.add(std::move(n));
  return {made, View(dst_[made].shape)};
}

// x * 0 is 0 for a finite x and NaN otherwise, and a sum with a NaN term is NaN.
Tensor Scaled::all_finite() const {
  Tensor sum = number(0);
  for (const Tensor& d : gradients_) {
    const Tensor flat = d.reshape({product(d.shape())});
    sum = add(sum, cast(sum_reduce(mul(flat, full_like(flat, 0)), 0), DType::F32));
  }
  return less_than(sum, number(1));
}

// The scale is a power of two, so the scale and its inverse are exact.
void Scaled::move_scale(const Tensor& finite) {
  constexpr double kLeast = -40, kMost = 100;
  const Tensor good = where(finite, add(good_, number(1)), number(0));
  const Tensor grows = less_than(number(static_cast<double>(options_.growth_interval) - 0.5), good);
  const Tensor up = where(grows, add(exponent_, number(1)), exponent_);
  const Tensor next = where(finite, up, add(exponent_, number(-1)));
  const Tensor least = number(kLeast - options_.exponent), most = number(kMost - options_.exponent);
  dst_.assign(exponent_, minimum(maximum(next, least), most));
  dst_.assign(good_, where(grows, number(0), good));
}

Graph Scaled::run() {
  exponent_ = dst_.input("loss_scale.exponent", {}), good_ = dst_.input("loss_scale.good", {});
  const Tensor power = add(exponent_, number(options_.exponent));
  scale_ = exp2(power), inverse_ = exp2(mul(power, number(-1)));
  to_.resize(g_.size()), follows_.resize(g_.size());
  const std::vector<bool> live = g_.live();
  for (NodeId id = 0; id < g_.size(); ++id)
    if (live[id]) to_[id] = copy(id, g_[id]);
  const auto moved = [&](const Edge& e) { return Tensor(dst_, {to_[e.node].node, to_[e.node].view.then(e.view)}); };
  for (const Root& r : g_.roots()) dst_.root(r.name, moved(r.edge).edge());
  const Tensor finite = all_finite();
  for (const Assignment& a : g_.assignments()) {
    const Tensor state(dst_, to_[a.state]), next = moved(a.next);
    dst_.assign(state, follows_[a.next.node] ? where(stretched(finite, next.shape()), next, state) : next);
  }
  move_scale(finite);
  dst_.output("loss_scale", scale_);
  return std::move(dst_);
}

}  // namespace

Compiler autocast(DType to, const LossScaling& scaling) {
  if (!is_half(to)) throw Error("autocast", str_cat("to ", name(to), ": products are rounded to bf16 or f16"));
  if (to == DType::BF16) return rounding(to);
  Pass p;
  p.name = "loss_scale";
  p.extends = p.redefines = true;
  p.applies = has_gradients;
  p.run = [scaling](const Graph& g, PassLog& log) { return Scaled(g, scaling, log).run(); };
  return Compiler(std::move(p)) | rounding(to);
}

}  // namespace lc
