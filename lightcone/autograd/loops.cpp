#include "lightcone/autograd/loops.h"

#include <map>

#include "lightcone/autograd/reverse.h"

namespace lc {
namespace {

Tensor zeros_like(const Tensor& t) { return full_like(t, 0); }
Tensor added(const Tensor& sum, const Tensor& d) { return d.defined() ? prim::add(sum, d) : sum; }

// Builds the loop of the backward pass; its body is one step, and it runs from the last step to the first.
class Backward {
 public:
  Backward(const LoopBody& forward, const VjpCall& call) : f_(forward), call_(call) {}
  std::vector<Tensor> run();

 private:
  bool is_float_input(std::size_t operand) const { return is_float(f_.graph[f_.inputs[operand]].dtype); }
  bool wanted(std::size_t operand) const { return is_float_input(operand) && call_.wanted[operand]; }
  Tensor input(const TensorType& t, bool captured = false);
  std::vector<Tensor> stacked_states() const;
  void inputs();
  void outputs();

  const LoopBody& f_;
  const VjpCall& call_;
  LoopBody b_;
  std::vector<std::size_t> moving_;  // operands of f_: states and wanted captures
  std::vector<std::size_t> sliced_;  // slices with wanted cotangents
  std::vector<std::size_t> seeded_;  // ys with cotangents
  // Tensors in b_: cotangents and sums that are carried; operands of f_; cotangents of ys.
  std::vector<Tensor> carried_, step_, dy_;
  std::map<std::size_t, Tensor> kept_;  // cotangents of kept states, by state
  std::vector<Tensor> operands_;        // operands of the loop over b_
};

Tensor Backward::input(const TensorType& t, bool captured) {
  const Tensor in = b_.graph.input(str_cat("in", b_.inputs.size()), t.shape, t.dtype, Tensor::At::current(), captured);
  b_.inputs.push_back(in.edge().node);
  return in;
}

// Returns the states before each step. If the loop did not keep them, runs one that does.
std::vector<Tensor> Backward::stacked_states() const {
  std::vector<Tensor> results(call_.out.begin(), call_.out.end());
  if (!f_.keeps) {
    auto keeping = std::make_shared<LoopBody>(
        LoopBody{f_.graph.clone(), f_.inputs, f_.states, f_.slices, f_.captures, f_.ys, f_.length, f_.reverse, true});
    results = call_loop(keeping, {call_.in.begin(), call_.in.end()});
  }
  return {results.end() - static_cast<std::ptrdiff_t>(f_.states), results.end()};
}

// Input order: carried cotangents and sums; per step the states before it, the slices and the cotangents of ys and of
// kept states; then captures.
void Backward::inputs() {
  const auto type = [&](std::size_t operand) {
    const Node& n = f_.graph[f_.inputs[operand]];
    return TensorType{n.dtype, n.shape};
  };
  const std::size_t captures = f_.states + f_.slices, all = captures + f_.captures;
  for (std::size_t k = 0; k < all; ++k)
    if (k < f_.states ? is_float_input(k) : k >= captures && wanted(k)) {
      moving_.push_back(k);
      carried_.push_back(input(type(k)));
      const Tensor last = k < f_.states ? call_.cotangents[k] : Tensor();
      operands_.push_back(last.defined() ? last : zeros_like(call_.in[k]));
    }
  const std::vector<Tensor> stacks = stacked_states();
  for (std::size_t k = 0; k < captures; ++k) {
    step_.push_back(input(type(k)));
    operands_.push_back(k < f_.states ? stacks[k] : call_.in[k]);
    if (k >= f_.states && wanted(k)) sliced_.push_back(k);
  }
  for (std::size_t k = f_.states; k < f_.states + f_.ys; ++k) {
    if (!call_.cotangents[k].defined() || !is_float(call_.out[k].dtype())) continue;
    seeded_.push_back(k);
    const Edge& e = f_.graph.roots()[k].edge;
    dy_.push_back(input({f_.graph[e.node].dtype, e.view.shape()}));
    operands_.push_back(call_.cotangents[k]);
  }
  for (std::size_t k = 0; f_.keeps && k < f_.states; ++k) {
    const Tensor d = call_.cotangents[f_.states + f_.ys + k];
    if (!d.defined() || !is_float_input(k)) continue;
    kept_[k] = input(type(k));
    operands_.push_back(d);
  }
  for (std::size_t k = captures; k < all; ++k) {
    step_.push_back(input(type(k), true));
    operands_.push_back(call_.in[k]);
  }
  b_.states = moving_.size(), b_.slices = captures + seeded_.size() + kept_.size(), b_.captures = f_.captures;
}

void Backward::outputs() {
  Graph& g = b_.graph;
  const std::vector<Tensor> out = instantiate(f_, step_, g);
  std::vector<NodeId> wrt;
  for (const std::size_t k : moving_) wrt.push_back(step_[k].edge().node);
  for (const std::size_t k : sliced_) wrt.push_back(step_[k].edge().node);
  ReverseSweep sweep(g, wrt, true);
  for (std::size_t k = 0; k < moving_.size() && moving_[k] < f_.states; ++k) sweep.seed(out[moving_[k]], carried_[k]);
  for (std::size_t k = 0; k < seeded_.size(); ++k) sweep.seed(out[seeded_[k]], dy_[k]);
  sweep.run();
  const auto cotangent = [&](std::size_t operand) { return sweep.cotangent(step_[operand].edge().node); };
  for (std::size_t k = 0; k < moving_.size(); ++k) {
    const bool state = moving_[k] < f_.states;
    const auto kept = state ? kept_.find(moving_[k]) : kept_.end();
    const Tensor sum = !state ? carried_[k] : kept != kept_.end() ? kept->second : zeros_like(carried_[k]);
    g.root(str_cat("out", k), added(sum, cotangent(moving_[k])).edge());
  }
  for (std::size_t k = 0; k < sliced_.size(); ++k) {
    const Tensor d = cotangent(sliced_[k]);
    g.root(str_cat("out", moving_.size() + k), (d.defined() ? d : zeros_like(step_[sliced_[k]])).edge());
  }
  b_.ys = sliced_.size();
}

std::vector<Tensor> Backward::run() {
  inputs();
  outputs();
  b_.length = f_.length, b_.reverse = !f_.reverse, b_.keeps = false;
  std::vector<Tensor> back(call_.in.size());
  const std::vector<Tensor> results = call_loop(std::make_shared<const LoopBody>(std::move(b_)), operands_);
  for (std::size_t k = 0; k < moving_.size(); ++k)
    if (call_.wanted[moving_[k]]) back[moving_[k]] = results[k];
  for (std::size_t k = 0; k < sliced_.size(); ++k) back[sliced_[k]] = results[moving_.size() + k];
  return back;
}

}  // namespace

std::vector<Tensor> loop_vjp(const LoopBody& body, const VjpCall& call) { return Backward(body, call).run(); }

}  // namespace lc
