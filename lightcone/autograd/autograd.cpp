#include "lightcone/autograd/autograd.h"

#include <algorithm>

#include "lightcone/autograd/reverse.h"
#include "lightcone/core/graph_impl.h"
#include "lightcone/passes/gradient_marks.h"

namespace lc {
namespace {

std::string said(const Tensor& t) {
  const Node& n = t.node();
  return str_cat(n.op == Op::Input ? "'" + n.name + "'" : describe(n), " ", str(t.shape()));
}

// Finds the first operation on a path from `w` to the outputs that passes no derivative on.
std::string why_unreached(const Graph& g, const Tensor& w, const std::vector<Tensor>& outputs,
                          const std::set<NodeId>& flat) {
  std::vector<bool> reads(g.size()), needed(g.size());  // reads: depends on w; needed: an output depends on it
  reads[w.edge().node] = true;
  for (NodeId id = w.edge().node + 1; id < g.size(); ++id)
    for (const Edge& e : g[id].in) reads[id] = reads[id] || reads[e.node];
  for (const Tensor& y : outputs) needed[y.edge().node] = true;
  for (NodeId id = static_cast<NodeId>(g.size()); id-- > 0;)
    if (needed[id])
      for (const Edge& e : g[id].in) needed[e.node] = true;
  const auto cuts = [&](NodeId id) {
    const bool whole = std::ranges::any_of(g[id].in, [&](const Edge& e) {
      return reads[e.node] && is_float(g[e.node].dtype) && !is_float(g[id].dtype) && g[id].results.empty();
    });
    return reads[id] && needed[id] && (whole || flat.contains(id));
  };
  for (NodeId id = 0; id < g.size(); ++id)
    if (cuts(id)) {
      const Location& at = g[id].where;
      return str_cat(at.known() && *at.op ? std::string(at.op) + " (" + at.str() + ")" : describe(g[id]),
                     " has no derivative and cuts the path");
    }
  return "no operation on the way to the loss reads it";
}

void one_graph(const std::vector<Tensor>& some, const Graph& g, const char* op) {
  for (const Tensor& t : some)
    if (&t.impl() != &g.impl()) throw Error(op, "the tensors belong to different graphs");
}

void differentiable(const std::vector<Tensor>& wrt, const char* op) {
  for (const Tensor& w : wrt) {
    if (!w.edge().view.identity())
      throw Error(op, str_cat("with respect to a view of ", said(w), ": name the tensor itself"));
    if (!is_float(w.dtype()))
      throw Error(op, str_cat(said(w), " is ", name(w.dtype()), ": derivatives need floating elements"));
  }
}

void fit(const std::vector<Tensor>& of, const std::vector<Tensor>& v, const char* op, const char* what) {
  if (of.size() != v.size()) throw Error(op, str_cat(v.size(), " ", what, "s for ", of.size(), " tensors"));
  for (std::size_t k = 0; k < of.size(); ++k)
    if (of[k].shape() != v[k].shape() || of[k].dtype() != v[k].dtype())
      throw Error(op, str_cat("the ", what, " of ", name(of[k].dtype()), " ", str(of[k].shape()), " is ",
                              name(v[k].dtype()), " ", str(v[k].shape())));
}

std::vector<Tensor> swept(const std::vector<Tensor>& outputs, const std::vector<Tensor>& wrt,
                          const std::vector<Tensor>& cotangents, bool allow_unused, const char* op) {
  if (outputs.empty()) throw Error(op, "there is nothing to differentiate");
  Graph& g = outputs[0].graph();
  one_graph(outputs, g, op), one_graph(wrt, g, op), one_graph(cotangents, g, op);
  differentiable(wrt, op);
  fit(outputs, cotangents, op, "cotangent");
  std::vector<NodeId> nodes;
  for (const Tensor& w : wrt) nodes.push_back(w.edge().node);
  ReverseSweep sweep(g, nodes, false);
  for (std::size_t k = 0; k < outputs.size(); ++k) sweep.seed(outputs[k], cotangents[k]);
  sweep.run();
  std::vector<Tensor> d;
  std::string unused;
  for (const Tensor& w : wrt) {
    d.push_back(sweep.cotangent(w.edge().node));
    if (d.back().defined()) continue;
    if (!allow_unused)
      unused += str_cat(unused.empty() ? "" : "; ", said(w), ": ", why_unreached(g, w, outputs, sweep.flat()));
    d.back() = full_like(w, 0);
  }
  if (!unused.empty())
    throw Error(op, str_cat("the loss does not depend on ", unused,
                            ". Leave out what is not trained: in a model nn::Frozen does; gradients() and vjp() take "
                            "{.allow_unused = true}"));
  return d;
}

std::vector<TensorType> first_type(const Attributes&, std::span<const TensorType> in) { return {in[0]}; }
std::vector<Tensor> first_operand(const Attributes&, std::span<const Tensor> in) { return {in[0]}; }

// A value of x's type without dependencies: the variable of a function that is linear in it.
Tensor placeholder(const Tensor& x, std::int64_t number) {
  static const auto c = std::make_shared<const Composite>(
      Composite{.name = "placeholder", .infer = first_type, .define = first_operand, .vjp = [](const VjpCall&) {
                  return std::vector<Tensor>(1);
                }});
  return call(c, {full_like(x, 0)}, {{"number", number}})[0];
}

}  // namespace

std::vector<Tensor> gradients(Operand loss, const std::vector<Tensor>& wrt, const GradientOptions& o) {
  const OpScope scope("gradients", loss.at);
  if (!is_float(loss->dtype()) || !(product(loss->shape()) == Dim(1)))
    throw Error("gradients", str_cat("the loss is ", name(loss->dtype()), " ", str(loss->shape()),
                                     ", not one floating element; reduce it with sum or mean first"));
  const Tensor seed = call(gradient_seed(), {full_like(loss, 1)})[0];
  std::vector<Tensor> d = swept({loss}, wrt, {seed}, o.allow_unused, "gradients");
  for (Tensor& each : d) each = call(gradient_result(), {each})[0];
  return d;
}

Tensor gradient(Operand loss, const Tensor& wrt, const GradientOptions& o) { return gradients(loss, {wrt}, o)[0]; }

std::vector<Tensor> vjp(const std::vector<Tensor>& outputs, const std::vector<Tensor>& wrt,
                        const std::vector<Tensor>& cotangents, const GradientOptions& o, const SourceLocation& at) {
  const OpScope scope("vjp", at);
  return swept(outputs, wrt, cotangents, o.allow_unused, "vjp");
}

// The vjp is linear in its cotangents u, so its own vjp with respect to u multiplies by the Jacobian; u drops out.
std::vector<Tensor> jvp(const std::vector<Tensor>& outputs, const std::vector<Tensor>& wrt,
                        const std::vector<Tensor>& tangents, const SourceLocation& at) {
  const OpScope scope("jvp", at);
  fit(wrt, tangents, "jvp", "tangent");
  std::vector<Tensor> u;
  for (const Tensor& y : outputs) {
    if (!is_float(y.dtype())) throw Error("jvp", str_cat(said(y), " is ", name(y.dtype()), ": it has no derivative"));
    u.push_back(placeholder(y, static_cast<std::int64_t>(u.size())));
  }
  const std::vector<Tensor> back = swept(outputs, wrt, u, true, "jvp");
  return swept(back, u, tangents, true, "jvp");
}

std::vector<Tensor> hvp(Operand loss, const std::vector<Tensor>& wrt, const std::vector<Tensor>& v) {
  const OpScope scope("hvp", loss.at);
  fit(wrt, v, "hvp", "vector");
  return swept(gradients(loss, wrt), wrt, v, true, "hvp");  // the Hessian is symmetric
}

Tensor stop_gradient(Operand x) {
  static const auto c = std::make_shared<const Composite>(
      Composite{.name = "stop_gradient", .infer = first_type, .define = first_operand, .vjp = [](const VjpCall&) {
                  return std::vector<Tensor>(1);
                }});
  return call(c, {x}, {}, x.at)[0];
}

Tensor custom_gradient(Operand y, const std::vector<Tensor>& in, Vjp vjp) {
  const OpScope scope("custom_gradient", y.at);
  auto c = std::make_shared<Composite>(Composite{.name = "custom_gradient",
                                                 .arity = static_cast<int>(in.size()) + 1,
                                                 .infer = first_type,
                                                 .define = first_operand});
  // the rule gets the original function: its operands and y, without the extra operand
  c->vjp = [rule = std::move(vjp)](const VjpCall& call) {
    const std::vector<bool> wanted(call.wanted.begin() + 1, call.wanted.end());
    std::vector<Tensor> d = rule({call.attributes, call.in.subspan(1), call.out, call.cotangents, wanted});
    d.insert(d.begin(), Tensor());
    return d;
  };
  std::vector<Tensor> operands{y};
  operands.insert(operands.end(), in.begin(), in.end());
  return call(c, operands, {}, y.at)[0];
}

Compiler autograd(std::string loss, std::vector<std::string> parameters) {
  Pass p;
  p.name = "autograd";
  p.extends = true;
  p.run = [loss, parameters](const Graph& src, PassLog& log) {
    Graph g = src.clone();
    const auto root = std::ranges::find(g.roots(), loss, &Root::name);
    if (root == g.roots().end()) throw Error("autograd", "no output is named '" + loss + "'");
    std::vector<Tensor> wrt;
    for (NodeId id = 0; id < g.size(); ++id) {
      const Node& n = g[id];
      const bool named = std::ranges::count(parameters, n.name) > 0;
      if (n.op == Op::Input && is_float(n.dtype) && (parameters.empty() ? n.parameter : named))
        wrt.emplace_back(g, Edge{id, View(n.shape)});
    }
    for (const std::string& name : parameters)
      if (std::ranges::none_of(wrt, [&](const Tensor& t) { return t.node().name == name; }))
        throw Error("autograd", "no floating input is named '" + name + "'");
    const std::vector<Tensor> d = gradients(Tensor(g, root->edge), wrt);
    for (std::size_t k = 0; k < d.size(); ++k) g.output("grad." + wrt[k].node().name, d[k]);
    log.fired["gradient"] += static_cast<int>(d.size());
    return g;
  };
  return Compiler(std::move(p));
}

}  // namespace lc
