// Rules for calls, branches and loops.
#include <algorithm>

#include "lightcone/ops/loop.h"
#include "lightcone/stablehlo/read/reader.h"
#include "lightcone/stablehlo/read/scans.h"

namespace lc::stablehlo {
namespace {

std::vector<Tensor> call_function(const Call& c) { return c.reader.function(c.word("callee"), c.in); }
// An operation with a decomposition, which is used.
std::vector<Tensor> composite(const Call& c) { return c.reader.function(c.word("decomposition"), c.in); }

// ---- branches: all are computed, and one is taken -----------------------------------------------------

std::vector<Tensor> branches(const Call& c, const Tensor& which) {
  std::vector<Tensor> taken;
  for (std::size_t k = c.op.regions.size(); k-- > 0;) {
    const std::vector<Tensor> r = c.reader.block(c.region(k, 0, c.results.size()), {});
    if (taken.empty()) {
      taken = r;
      continue;
    }
    if (r.size() != taken.size()) c.refuse("its branches give different numbers of results");
    for (std::size_t n = 0; n < r.size(); ++n) {
      if (!r[n].defined() || !taken[n].defined()) {
        taken[n] = Tensor();
        continue;
      }
      const Tensor here = prim::equal(which, full_like(which, static_cast<std::int64_t>(k)));
      taken[n] = prim::where(to_shape(here, r[n].shape()), r[n], taken[n]);
    }
  }
  return taken;
}
std::vector<Tensor> if_else(const Call& c) {
  if (c.in.size() != 1 || c.x().dtype() != DType::Bool || c.x().rank() != 0 || c.op.regions.size() != 2)
    c.refuse("takes one truth value and two branches");
  return branches(c, prim::cast(logical_not(c.x()), DType::I32));
}
// The last branch also serves every number out of range.
std::vector<Tensor> case_of(const Call& c) {
  if (c.in.size() != 1 || is_float(c.x().dtype()) || c.x().rank() != 0 || c.op.regions.empty())
    c.refuse("takes one whole number and branches");
  return branches(c, c.x());
}

// ---- loops ------------------------------------------------------------------------------------------

const Operation* maker(const Block& b, ValueId v) {
  for (const Operation& op : b.operations)
    if (std::ranges::find(op.results, v) != op.results.end()) return &op;
  return nullptr;
}

// Returns an integer that is known before the loop and the same in every step.
std::optional<std::int64_t> fixed(const Call& c, const Block& b, ValueId v) {
  if (const Operation* op = maker(b, v)) {
    const Attribute* value = op->name == "stablehlo.constant" ? op->find("value") : nullptr;
    if (!value || value->kind != Attribute::Kind::Dense || !value->type.shape.empty()) return std::nullopt;
    const auto t = dtype_of(value->type.element);
    if (!t || is_float(*t) || value->data.empty()) return std::nullopt;
    return load_i64(value->data.data(), *t, 0);
  }
  Tensor outside;
  const auto argument = std::ranges::find(b.arguments, v);
  if (argument == b.arguments.end()) {
    outside = c.reader.value(v);
  } else {
    const auto k = static_cast<std::size_t>(argument - b.arguments.begin());
    const Block& body = c.op.regions[1];
    if (body.operations.back().operands[k] != body.arguments[k]) return std::nullopt;
    outside = c.in[k];
  }
  const auto known = outside.defined() ? c.reader.known(outside) : std::nullopt;
  if (!known || known->size() != 1) return std::nullopt;
  return (*known)[0];
}

// Returns the counter of `while (i < limit) i += step`.
std::optional<Counter> counter_of(const Call& c) {
  const Block &condition = c.op.regions[0], &body = c.op.regions[1];
  const Operation& last = condition.operations.back();
  const Operation* compare = last.operands.size() == 1 ? maker(condition, last.operands[0]) : nullptr;
  if (!compare || compare->name != "stablehlo.compare" || compare->operands.size() != 2) return std::nullopt;
  const Attribute* direction = compare->find("comparison_direction");
  const auto counter = std::ranges::find(condition.arguments, compare->operands[0]);
  if (!direction || counter == condition.arguments.end()) return std::nullopt;
  const auto k = static_cast<std::size_t>(counter - condition.arguments.begin());
  const auto limit = fixed(c, condition, compare->operands[1]);
  const auto begin = is_float(c.in[k].dtype()) ? std::nullopt : c.reader.known(c.in[k]);
  if (!limit || !begin || begin->size() != 1 || body.operations.back().operands.size() <= k) return std::nullopt;
  const Operation* next = maker(body, body.operations.back().operands[k]);
  if (!next || next->name != "stablehlo.add" || next->operands.size() != 2) return std::nullopt;
  const bool left = next->operands[0] == body.arguments[k], right = next->operands[1] == body.arguments[k];
  if (left == right) return std::nullopt;
  const auto step = fixed(c, body, next->operands[left ? 1 : 0]);
  if (!step || *step < 1) return std::nullopt;
  constexpr std::int64_t kFar = std::int64_t{1} << 40;
  const std::int64_t from = (*begin)[0], to = direction->text == "LE" ? *limit + 1 : *limit;
  if ((direction->text != "LT" && direction->text != "LE") || std::abs(from) > kFar || std::abs(to) > kFar ||
      *step > kFar)
    return std::nullopt;
  if (to > info(c.in[k].dtype()).highest) return std::nullopt;  // the counter would wrap
  return Counter{k, from, *step, from >= to ? 0 : (to - from + *step - 1) / *step};
}

std::vector<Tensor> defined_or_refuse(const Call& c, std::vector<Tensor> r) {
  for (const Tensor& t : r)
    if (!t.defined()) c.refuse("its body is not all supported");
  return r;
}

std::vector<Tensor> while_do(const Call& c) {
  if (c.op.regions.size() != 2) c.refuse("has a condition and a body");
  const Block &condition = c.region(0, c.in.size(), 1), &body = c.region(1, c.in.size(), c.in.size());
  const auto step = [&](const std::vector<Tensor>& state) { return defined_or_refuse(c, c.reader.block(body, state)); };
  if (c.in.empty()) c.refuse("carries nothing");
  if (const auto counter = counter_of(c)) {
    const auto f = [&](const std::vector<Tensor>& state, const std::vector<Tensor>&) {
      return Scanned{step(state), {}};
    };
    if (counter->steps == 0) return scan(f, c.in, {}, {.length = 0}).state;
    return run_counted(c.reader, trace_loop(f, c.in, {}, counter->steps), *counter);
  }
  const auto holds = [&](const std::vector<Tensor>& state) {
    return defined_or_refuse(c, c.reader.block(condition, state))[0];
  };
  return while_loop(holds, step, c.in, c.reader.options().max_steps);
}

// chlo.scan: the body takes slices of the inputs and the carries, and returns slices of the results and the next
// carries.
std::vector<Tensor> scan_along(const Call& c) {
  const Integers segments = c.integers("operandSegmentSizes", 2, 0);
  const auto inputs = static_cast<std::size_t>(segments[0]), carries = static_cast<std::size_t>(segments[1]);
  if (segments[0] < 1 || segments[1] < 0 || inputs + carries != c.in.size() || c.results.size() < carries)
    c.refuse("its operands are not so many inputs and carries");
  const std::int64_t axis = c.integer("dimension", 0);
  const std::size_t ys = c.results.size() - carries;
  const auto split = c.in.begin() + static_cast<std::ptrdiff_t>(inputs);
  std::vector<Tensor> xs(c.in.begin(), split), carried(split, c.in.end());
  for (Tensor& x : xs) {
    if (axis < 0 || axis >= x.rank()) c.refuse(str_cat("there is no axis ", axis));
    x = movedim(x, {static_cast<int>(axis)}, {0});
  }
  const Block& body = c.region(0, inputs + carries, ys + carries);
  const auto step = [&](const std::vector<Tensor>& state, const std::vector<Tensor>& slices) -> Scanned {
    std::vector<Tensor> in = slices;
    in.insert(in.end(), state.begin(), state.end());
    std::vector<Tensor> r = defined_or_refuse(c, c.reader.block(body, in));
    const auto at = r.begin() + static_cast<std::ptrdiff_t>(ys);
    return {.state = {at, r.end()}, .ys = {r.begin(), at}};
  };
  const Scanned done = scan(step, carried, xs, {.reverse = c.flag("is_reverse")});
  std::vector<Tensor> r;
  for (const Tensor& y : done.ys) {
    if (axis >= y.rank()) c.refuse(str_cat("a result has no axis ", axis));
    r.push_back(movedim(y, {0}, {static_cast<int>(axis)}));
  }
  r.insert(r.end(), done.state.begin(), done.state.end());
  return r;
}

}  // namespace

void add_control(Rules& r) {
  r["func.call"] = call_function;
  r["stablehlo.composite"] = composite;
  r["stablehlo.if"] = if_else;
  r["stablehlo.case"] = case_of;
  r["stablehlo.while"] = while_do;
  r["chlo.scan"] = scan_along;
}

}  // namespace lc::stablehlo
