// Steps of optimisers (ai.onnx.preview.training).
#include "lightcone/onnx/read/call.h"

namespace lc::onnx {
namespace {

// The operands of a step: the learning rate, the number of steps so far, and for each tensor its value, its gradient
// and its states. They come in groups: all values, all gradients, all first states, ...
struct Step {
  Tensor rate, count;
  std::size_t tensors = 0;

  Step(Call& c, std::size_t groups) : rate(c.x(0).reshape({})), count(c.x(1).reshape({})) {
    tensors = (c.in.size() - 2) / groups;
    if (tensors == 0 || c.in.size() != 2 + groups * tensors)
      c.refuse(str_cat("has ", c.in.size(), " operands, and needs 2 and ", groups, " for each tensor"));
  }
};
Tensor operand_of(Call& c, const Step& s, std::size_t group, std::size_t k) { return c.x(2 + group * s.tensors + k); }
// A scalar that depends on the number of steps, in the type of x.
Tensor steps(const Step& s, const Tensor& x) { return s.count.to(x.dtype()); }

Values adagrad_(Call& c) {
  const Step s(c, 3);
  const double eps = c.number("epsilon", 1e-6), decay = c.number("decay_factor", 0),
               l2 = c.number("norm_coefficient", 0);
  Values r(2 * s.tensors);
  for (std::size_t k = 0; k < s.tensors; ++k) {
    const Tensor x = operand_of(c, s, 0, k), g = operand_of(c, s, 1, k) + x * l2;
    const Tensor h = operand_of(c, s, 2, k) + g * g;
    const Tensor rate = s.rate.to(x.dtype()) / (steps(s, x) * decay + 1.0);
    r[k] = x - rate * g / (sqrt(h) + eps);
    r[s.tensors + k] = h;
  }
  return r;
}

Values adam(Call& c) {
  const Step s(c, 4);
  const double alpha = c.number("alpha", 0.9), beta = c.number("beta", 0.999), eps = c.number("epsilon", 1e-6);
  const double l2 = c.number("norm_coefficient", 0), after = c.number("norm_coefficient_post", 0);
  Values r(3 * s.tensors);
  for (std::size_t k = 0; k < s.tensors; ++k) {
    const Tensor x = operand_of(c, s, 0, k), g = operand_of(c, s, 1, k) + x * l2;
    const Tensor v = operand_of(c, s, 2, k) * alpha + g * (1 - alpha);
    const Tensor h = operand_of(c, s, 3, k) * beta + g * g * (1 - beta);
    const Tensor t = steps(s, x), rate = s.rate.to(x.dtype());
    const Tensor adjusted = rate * sqrt(1.0 - pow(beta, t)) / (1.0 - pow(alpha, t));
    r[k] = (x - where(t > 0, adjusted, rate) * v / (sqrt(h) + eps)) * (1 - after);
    r[s.tensors + k] = v;
    r[2 * s.tensors + k] = h;
  }
  return r;
}

Values momentum(Call& c) {
  const Step s(c, 3);
  const double alpha = c.number("alpha", 0), beta = c.number("beta", 1), l2 = c.number("norm_coefficient", 0);
  const std::string_view mode = c.text("mode", "standard");
  if (mode != "standard" && mode != "nesterov") c.refuse("has a mode that is not standard or nesterov");
  Values r(2 * s.tensors);
  for (std::size_t k = 0; k < s.tensors; ++k) {
    const Tensor x = operand_of(c, s, 0, k), g = operand_of(c, s, 1, k) + x * l2;
    const Tensor scale = where(s.count > 0, full(x, {}, beta, x.dtype()), full(x, {}, 1, x.dtype()));
    const Tensor v = operand_of(c, s, 2, k) * alpha + g * scale;
    r[k] = x - s.rate.to(x.dtype()) * (mode == "nesterov" ? g + v * alpha : v);
    r[s.tensors + k] = v;
  }
  return r;
}

}  // namespace

void add_training(Operators& t) {
  constexpr std::string_view kTraining = "ai.onnx.preview.training";
  const Operator rows[] = {
      {kTraining, "Adagrad", 1, adagrad_, "elementwise"},
      {kTraining, "Adam", 1, adam, "elementwise"},
      {kTraining, "Gradient", 1, nullptr,
       "derivatives are made by this library (autograd), not by a node of the model"},
      {kTraining, "Momentum", 1, momentum, "elementwise"},
  };
  t.insert(t.end(), std::begin(rows), std::end(rows));
}

}  // namespace lc::onnx
