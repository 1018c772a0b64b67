#include "lightcone/models/classify/loaded_module.h"

#include <optional>

#include "lightcone/core/composite.h"

namespace lc {

LoadedModule::LoadedModule(std::shared_ptr<const LoadedModel> model, const std::string& input,
                           const std::string& output)
    : model_(std::move(model)), in_(model_->inputs.at(input)), out_(model_->outputs.at(output)) {
  const Graph& g = model_->graph();
  const std::vector<bool> read = needed();
  for (NodeId id = 0; id < g.size(); ++id) {
    const Node& n = g[id];
    if (n.op != Op::Input || !n.parameter || !read[id]) continue;
    if (n.dtype != DType::F32) throw Error("LoadedModule", str_cat("'", n.name, "' is no f32 and cannot be trained"));
    Entry& e = entries_.emplace_back(Entry{n.name, {}, id});
    for (const Dim& d : n.shape) e.shape.push_back(*d.constant());
  }
  values_.resize(entries_.size());
}

// The nodes that the output depends on, those that derivatives name included.
std::vector<bool> LoadedModule::needed() const {
  const Graph& g = model_->graph();
  std::vector<bool> read(g.size());
  std::vector<NodeId> open{out_.edge().node};
  const auto reach = [&](const Edge& e) {
    if (!read[e.node]) open.push_back(e.node);
  };
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    if (read[id]) continue;
    read[id] = true;
    for (const Edge& e : g[id].in) reach(e);
    if (const Derivative* d = g.derivative(id))
      for (const Edge& e : d->in) reach(e);
  }
  return read;
}

void LoadedModule::visit(nn::Visitor& v, const std::function<bool(std::string_view name)>& wanted) {
  for (std::size_t k = 0; k < entries_.size(); ++k) {
    const Entry& e = entries_[k];
    if (!wanted(e.name)) continue;
    std::optional<nn::Visitor::ScopedFreeze> fixed;
    if (e.name.ends_with("running_mean") || e.name.ends_with("running_var")) fixed.emplace(v);
    v.parameter(e.name, values_[k], Shape(e.shape.begin(), e.shape.end()), nn::constant_init(0));
  }
}

Tensor LoadedModule::operator()(const Tensor& x) const {
  if (x.shape() != in_.shape() || x.dtype() != in_.dtype())
    throw Error("LoadedModule", str_cat("needs ", name(in_.dtype()), " ", str(in_.shape()), ", not ", name(x.dtype()),
                                        " ", str(x.shape())));
  const Graph& from = model_->graph();
  Graph& g = x.graph();
  const std::vector<bool> read = needed();
  std::vector<Edge> to(from.size());
  const auto put = [&](NodeId id, const Tensor& t) { to[id] = t.edge(); };
  put(in_.edge().node, x);
  for (std::size_t k = 0; k < entries_.size(); ++k) {
    nn::require_visited("LoadedModule", values_[k]);
    put(entries_[k].node, values_[k]);
  }
  const auto moved = [&](const Edge& e) { return Edge{to[e.node].node, to[e.node].view.then(e.view)}; };
  for (NodeId id = 0; id < from.size(); ++id) {
    if (!read[id] || from[id].op == Op::Input) continue;
    Node n = from[id];
    for (Edge& e : n.in) e = moved(e);
    const OpScope scope(n.where);
    to[id] = {g.add(std::move(n)), View(from[id].shape)};
    const Derivative* d = from.derivative(id);
    if (!d) continue;
    Derivative own{{}, d->vjp};
    for (const Edge& e : d->in) own.in.push_back(moved(e));
    g.derivative(to[id].node, std::make_shared<const Derivative>(std::move(own)));
  }
  return Tensor(g, moved(out_.edge()));
}

}  // namespace lc
