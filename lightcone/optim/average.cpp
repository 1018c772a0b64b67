// Averages of parameters over steps.
#include <cmath>

#include "lightcone/optim/rules.h"

namespace lc::optim {
namespace {

// Adds a state per parameter and assigns next(average, new parameter value), both in f32 or f64.
template <class Next>
std::vector<Tensor> averages(const Step& s, const char* suffix, const Next& next) {
  std::vector<Tensor> r;
  for (std::size_t k = 0; k < s.parameters.size(); ++k) {
    const Tensor value = prim::cast(s.next.at(k), wide(s.next[k].dtype()));
    const Tensor state = value.graph().input(str_cat(name_of(s.parameters[k]), suffix), value.shape(), value.dtype());
    r.push_back(assign_when(s.when, state, next(state, value)));
  }
  return r;
}
Tensor where_scalar(const Tensor& condition, const Tensor& a, const Tensor& b) {
  return prim::where(broadcast_to(condition, a.shape()), a, b);
}
void must_have_stepped(const Step& s, const char* op) {
  if (s.parameters.empty() || !s.step.defined())
    throw Error(op, "the step has no parameters; give what step() returned");
}

}  // namespace

std::vector<Tensor> ema(const Step& s, double decay, const Tensor::At& at) {
  const OpScope scope("ema", at);
  must_have_stepped(s, "ema");
  if (!(decay >= 0 && decay <= 1)) throw Error("ema", str_cat("decay is ", decay, "; it lies between 0 and 1"));
  const Tensor first = prim::equal(s.step, full_like(s.step, 0));
  return averages(s, ".ema", [&](const Tensor& average, const Tensor& value) {
    return where_scalar(first, value, moved(average, value, 1 - decay));
  });
}

std::vector<Tensor> swa(const Step& s, std::int64_t start, std::int64_t every, const Tensor::At& at) {
  const OpScope scope("swa", at);
  must_have_stepped(s, "swa");
  if (start < 0 || every < 1)
    throw Error("swa",
                str_cat("averages from step ", start, " on every ", every, "; give a step from 0 and a number from 1"));
  Graph& g = s.step.graph();
  const auto number = [&](std::int64_t v) { return g.constant(v, DType::I64); };
  const Tensor since = prim::add(s.step, number(-start)), first = prim::equal(since, number(0));
  const Tensor counts =
      logical_and(prim::less_than(number(-1), since), prim::equal(prim::mod(since, number(every)), number(0)));
  const Tensor taken = plus(prim::cast(prim::div(since, number(every)), DType::F64), 1);
  return averages(s, ".swa", [&](const Tensor& average, const Tensor& value) {
    const Tensor part = broadcast_to(prim::cast(prim::recip(taken), value.dtype()), value.shape());
    const Tensor next = prim::add(average, prim::mul(minus(value, average), part));
    return where_scalar(counts, where_scalar(first, value, next), average);
  });
}

}  // namespace lc::optim
