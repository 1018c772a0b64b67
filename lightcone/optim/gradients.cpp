// Gradient processing before a step: clipping and accumulation.
#include "lightcone/optim/rules.h"

namespace lc::optim {
namespace {

// Returns sum(|x|^p), or max |x| for p = infinity.
Tensor measure(const Tensor& x, double p) {
  if (p == 2) return sum(prim::mul(x, x));
  const Tensor m = abs(x);
  return p == kInf ? amax(m) : p == 1 ? sum(m) : sum(pow(m, p));
}

void all_fit(const std::vector<Update>& updates, const char* op) {
  if (updates.empty()) throw Error(op, "there is no gradient");
  for (const Update& u : updates) {
    check_update(u, op);
    if (&u.gradient.graph() != &updates[0].gradient.graph())
      throw Error(op, str_cat("'", name_of(u.parameter), "' belongs to another graph than '",
                              name_of(updates[0].parameter), "'"));
  }
}

}  // namespace

Clipped clip_grad_norm(const std::vector<Update>& updates, double max_norm, double norm_type, const Tensor::At& at) {
  const char* op = "clip_grad_norm";
  const OpScope scope(op, at);
  all_fit(updates, op);
  not_negative(max_norm, op, "max_norm");
  if (!(norm_type > 0)) throw Error(op, str_cat("norm_type is ", norm_type, "; it must be above 0"));
  DType type = DType::F32;
  for (const Update& u : updates)
    if (u.gradient.dtype() == DType::F64) type = DType::F64;
  Tensor total;
  for (const Update& u : updates) {
    const Tensor part = prim::cast(measure(prim::cast(u.gradient, wide(u.gradient.dtype())), norm_type), type);
    total = !total.defined() ? part : norm_type == kInf ? prim::maximum(total, part) : prim::add(total, part);
  }
  Clipped r;
  r.norm = norm_type == 1 || norm_type == kInf ? total : norm_type == 2 ? prim::sqrt(total) : pow(total, 1 / norm_type);
  const Tensor scale = prim::minimum(prim::div(full_like(r.norm, max_norm), plus(r.norm, 1e-6)), full_like(r.norm, 1));
  for (const Update& u : updates) {
    const Tensor g = prim::cast(u.gradient, wide(u.gradient.dtype()));
    r.updates.push_back({u.parameter, prim::mul(g, broadcast_to(prim::cast(scale, g.dtype()), g.shape()))});
  }
  return r;
}

std::vector<Update> clip_grad_value(const std::vector<Update>& updates, double clip_value, const Tensor::At& at) {
  const char* op = "clip_grad_value";
  const OpScope scope(op, at);
  all_fit(updates, op);
  not_negative(clip_value, op, "clip_value");
  std::vector<Update> r;
  for (const Update& u : updates) r.push_back({u.parameter, clamp(u.gradient, -clip_value, clip_value)});
  return r;
}

Accumulated accumulate(const std::vector<Update>& updates, int runs, Reduction reduction, std::string_view name,
                       const Tensor::At& at) {
  const char* op = "accumulate";
  const OpScope scope(op, at);
  all_fit(updates, op);
  if (runs < 1) throw Error(op, str_cat("a step in every ", runs, " runs; there must be at least 1"));
  if (reduction != Reduction::Sum && reduction != Reduction::Mean)
    throw Error(op, "gradients are added up (Reduction::Sum) or averaged (Mean)");
  Graph& g = updates[0].gradient.graph();
  const Tensor run = g.input(str_cat(name, ".accumulated_runs"), {}, DType::I64, at);
  Accumulated r;
  r.when = prim::equal(run, full_like(run, runs - 1));
  const Tensor first = prim::equal(run, full_like(run, 0));
  g.assign(run, prim::where(r.when, full_like(run, 0), plus(run, 1)));
  for (const Update& u : updates) {
    const Tensor gradient = prim::cast(u.gradient, wide(u.gradient.dtype()));
    const Tensor sum = g.input(name_of(u.parameter) + ".accumulated_grad", gradient.shape(), gradient.dtype(), at);
    // the first run overwrites the sum, so nothing has to be cleared and only one array is written
    const Tensor total = prim::where(broadcast_to(first, sum.shape()), gradient, prim::add(sum, gradient));
    g.assign(sum, total);
    r.updates.push_back({u.parameter, reduction == Reduction::Sum ? total : scaled(total, 1.0 / runs)});
  }
  return r;
}

}  // namespace lc::optim
