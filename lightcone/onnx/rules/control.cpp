// If, Loop and Scan.
#include <algorithm>
#include <functional>

#include "lightcone/onnx/read/call.h"
#include "lightcone/ops/loop.h"

namespace lc::onnx {
namespace {

constexpr std::int64_t kMostUnrolled = 256;  // steps of a loop that are written out one after another

Values values_of(const std::vector<Tensor>& tensors) { return {tensors.begin(), tensors.end()}; }

std::vector<Tensor> tensors_of(const Call& c, const Values& values) {
  std::vector<Tensor> r;
  for (const Value& v : values) {
    if (!v.tensor.defined() || v.count) c.refuse("carries a sequence or a value whose size depends on data");
    r.push_back(v.tensor);
  }
  return r;
}

// The only element of an operand, if it is known when the model is read.
std::optional<std::int64_t> known_scalar(Call& c, const Tensor& t) {
  const auto v = c.importer.known().integers(t);
  if (!v || v->size() != 1) return std::nullopt;
  return (*v)[0].constant();
}

// ---- If: the branch that is known, or both, of which one is chosen ----------------------------------

Values if_(Call& c) {
  const Tensor condition = c.x().reshape({});
  const GraphData &yes = c.graph("then_branch"), &no = c.graph("else_branch");
  if (const auto known = known_scalar(c, condition)) return c.importer.subgraph(*known ? yes : no, {});
  const Values a = c.importer.subgraph(yes, {}), b = c.importer.subgraph(no, {});
  if (a.size() != b.size()) c.refuse("has branches with different numbers of results");
  Values r;
  for (std::size_t k = 0; k < a.size(); ++k) {
    const Tensor x = tensors_of(c, {a[k]})[0], y = tensors_of(c, {b[k]})[0];
    if (x.rank() != y.rank() || x.dtype() != y.dtype())
      c.refuse(str_cat("has branches that give ", str(x.shape()), " and ", str(y.shape()), ", by a condition that ",
                       "depends on data; give the extents of inputs when reading if it depends on them"));
    for (int axis = 0; axis < x.rank(); ++axis) c.importer.same_extent(x.extent(axis), y.extent(axis));
    r.emplace_back(where(expand_to(c, condition, x.shape()), x, y));
  }
  return r;
}

// ---- Loop -----------------------------------------------------------------------------------------

struct LoopParts {
  const GraphData& body;
  Values carried;                      // before the first step
  std::optional<std::int64_t> steps;   // nullopt: until the condition fails
  std::optional<std::int64_t> starts;  // whether the condition holds at first; nullopt: it depends on data
  Tensor condition;
};

struct StepResult {
  Tensor condition;  // undefined: it always holds
  Values carried, collected;
};

StepResult one_step(Call& c, const LoopParts& loop, const Tensor& number, Values carried) {
  Values in = {Value(number), Value(c.graph().constant(1, DType::Bool))};
  in.insert(in.end(), carried.begin(), carried.end());
  const Values out = c.importer.subgraph(loop.body, in);
  if (out.size() < 1 + carried.size()) c.refuse("has a body with too few results");
  StepResult r;
  r.condition = tensors_of(c, {out[0]})[0].reshape({});
  const auto split = out.begin() + 1 + static_cast<std::ptrdiff_t>(carried.size());
  r.carried.assign(out.begin() + 1, split);
  r.collected.assign(split, out.end());
  return r;
}

// Writes the steps out one after another: shapes may change, and sequences may grow, from step to step.
Values unrolled(Call& c, const LoopParts& loop) {
  Values carried = loop.carried;
  std::vector<std::vector<Tensor>> collected;
  for (std::int64_t k = 0; loop.starts != 0 && (!loop.steps || k < *loop.steps); ++k) {
    if (k >= kMostUnrolled) c.refuse(str_cat("has more than ", kMostUnrolled, " steps, whose shapes differ"));
    const StepResult r = one_step(c, loop, c.graph().constant(k, DType::I64), std::move(carried));
    const auto goes_on = known_scalar(c, r.condition);
    if (!goes_on) c.refuse("ends when data says so, and its shapes differ from step to step");
    carried = r.carried;
    collected.push_back(tensors_of(c, r.collected));
    if (!*goes_on) break;
  }
  for (std::size_t k = 0; k + loop.carried.size() < c.results(); ++k) {
    if (collected.empty()) c.refuse("has no steps, so that the shapes of its results are not known");
    std::vector<Tensor> each;
    for (const auto& step : collected) {
      if (k >= step.size()) c.refuse("has a body with too few results");
      each.push_back(step[k]);
    }
    carried.emplace_back(stack(each, 0));
  }
  return carried;
}

// A number of steps that is known, of equal shapes, without a condition. nullopt: the condition depends on data.
std::optional<Values> counted(Call& c, const LoopParts& loop) {
  bool always = true;
  const auto step = [&](const std::vector<Tensor>& state, const std::vector<Tensor>& x) -> Scanned {
    const StepResult r = one_step(c, loop, x[0], values_of(state));
    always = always && known_scalar(c, r.condition) == 1;
    return {tensors_of(c, r.carried), tensors_of(c, r.collected)};
  };
  const Tensor numbers = arange(c.graph(), Dim(*loop.steps), DType::I64);
  const Importer::LoopBody in_loop(c.importer);
  const Scanned all = scan(step, tensors_of(c, loop.carried), {numbers});
  if (!always) return std::nullopt;
  Values r = values_of(all.state);
  r.insert(r.end(), all.ys.begin(), all.ys.end());
  return r;
}

// At most `most` steps, as long as the condition holds and, if `steps` is defined, for that many. Collected values have
// a count.
Values bounded(Call& c, const LoopParts& loop, const Tensor& steps, std::int64_t most) {
  Graph& g = c.graph();
  const Tensor zero = g.constant(0, DType::I64);
  const auto and_within = [&](const Tensor& condition, const Tensor& step) {
    return steps.defined() ? logical_and(condition, step < steps) : condition;
  };
  std::vector<Tensor> state = {and_within(loop.condition, zero), zero};
  for (const Tensor& t : tensors_of(c, loop.carried)) state.push_back(t);
  const auto step = [&](const std::vector<Tensor>& s, const std::vector<Tensor>&) -> Scanned {
    const Tensor active = s[0];
    const StepResult r = one_step(c, loop, s[1], values_of({s.begin() + 2, s.end()}));
    const auto kept = [&](const Tensor& next, const Tensor& otherwise) {
      return where(expand_to(c, active, next.shape()), next, otherwise);
    };
    const Tensor taken = s[1] + active.to(DType::I64);
    Scanned out{.state = {logical_and(active, and_within(r.condition, taken)), taken}, .ys = {}};
    const std::vector<Tensor> next = tensors_of(c, r.carried);
    for (std::size_t k = 0; k < next.size(); ++k) out.state.push_back(kept(next[k], s[k + 2]));
    for (const Tensor& y : tensors_of(c, r.collected)) out.ys.push_back(kept(y, zeros_like(y)));
    return out;
  };
  const Importer::LoopBody in_loop(c.importer);
  const Scanned all = scan(step, state, {}, {.length = most});
  Values r = values_of({all.state.begin() + 2, all.state.end()});
  for (const Tensor& y : all.ys) r.emplace_back(y, Value::Count{all.state[1], 0});
  return r;
}

Values loop_(Call& c) {
  LoopParts loop{.body = c.graph("body"), .carried = {}, .steps = {}, .starts = 1, .condition = {}};
  for (std::size_t k = 2; k < c.in.size(); ++k) loop.carried.push_back(c.value(k));
  if (c.has(0)) loop.steps = known_scalar(c, c.x(0));
  if (loop.steps) loop.steps = std::max<std::int64_t>(*loop.steps, 0);
  loop.condition = c.graph().constant(1, DType::Bool);
  if (c.has(1)) {
    loop.condition = c.x(1).reshape({});
    loop.starts = known_scalar(c, loop.condition);
  }
  std::optional<Values> r;
  if (loop.starts == 0) return unrolled(c, loop);
  if (loop.steps && loop.starts && *loop.steps > 0 && c.importer.tries([&] { r = counted(c, loop); }) && r) return *r;
  if (loop.starts && c.importer.tries([&] { r = unrolled(c, loop); })) return *r;
  if (loop.steps) return bounded(c, loop, {}, *loop.steps);
  const Tensor steps = c.has(0) ? c.x(0).reshape({}).to(DType::I64) : Tensor();  // known only when the program runs
  return bounded(c, loop, steps, c.importer.options().max_steps);
}

// ---- Scan -----------------------------------------------------------------------------------------

struct ScanAxes {
  std::size_t inputs;
  Integers input_axes, input_directions, output_axes, output_directions;
};

std::vector<Tensor> scan_once(Call& c, const GraphData& body, const ScanAxes& axes, const std::vector<Tensor>& state,
                              std::vector<Tensor> xs) {
  for (std::size_t k = 0; k < xs.size(); ++k) {
    const int axis = c.wrap(k < axes.input_axes.size() ? axes.input_axes[k] : 0, xs[k].rank());
    xs[k] = movedim(xs[k], {axis}, {0});
    if (k < axes.input_directions.size() && axes.input_directions[k] == 1) xs[k] = xs[k].flip(0);
  }
  const auto step = [&](const std::vector<Tensor>& s, const std::vector<Tensor>& x) -> Scanned {
    Values in = values_of(s);
    in.insert(in.end(), x.begin(), x.end());
    const std::vector<Tensor> out = tensors_of(c, c.importer.subgraph(body, in));
    if (out.size() < s.size()) c.refuse("has a body with too few results");
    const auto split = out.begin() + static_cast<std::ptrdiff_t>(s.size());
    return {{out.begin(), split}, {split, out.end()}};
  };
  const Importer::LoopBody in_loop(c.importer);
  const Scanned all = scan(step, state, xs);
  std::vector<Tensor> r = all.state;
  for (std::size_t k = 0; k < all.ys.size(); ++k) {
    Tensor y = all.ys[k];
    if (k < axes.output_directions.size() && axes.output_directions[k] == 1) y = y.flip(0);
    r.push_back(movedim(y, {0}, {c.wrap(k < axes.output_axes.size() ? axes.output_axes[k] : 0, y.rank())}));
  }
  return r;
}

Values scan_(Call& c) {
  const GraphData& body = c.graph("body");
  ScanAxes axes{.inputs = static_cast<std::size_t>(std::max<std::int64_t>(c.integer("num_scan_inputs"), 0)),
                .input_axes = c.integers("scan_input_axes", {}),
                .input_directions = c.integers(c.opset < 9 ? "directions" : "scan_input_directions", {}),
                .output_axes = c.integers("scan_output_axes", {}),
                .output_directions = c.integers("scan_output_directions", {})};
  std::vector<Tensor> all;
  for (std::size_t k = c.opset < 9 ? 1 : 0; k < c.in.size(); ++k) all.push_back(c.x(k));
  if (all.size() < axes.inputs || axes.inputs == 0) c.refuse("has fewer operands than num_scan_inputs");
  const auto split = all.end() - static_cast<std::ptrdiff_t>(axes.inputs);
  const std::vector<Tensor> state(all.begin(), split), xs(split, all.end());
  if (c.opset >= 9) return values_of(scan_once(c, body, axes, state, xs));
  if (c.has(0)) c.refuse("has sequence_lens, which are not supported");
  std::vector<std::vector<Tensor>> parts;  // operator set 8 has a leading axis of batches
  const std::int64_t batch = fixed(c, xs[0].extent(0), "the number of batches");
  if (batch < 1 || batch > kMostUnrolled) c.refuse("has no batches, or too many");
  const auto of_batch = [](const std::vector<Tensor>& from, std::int64_t b) {
    std::vector<Tensor> r;
    for (const Tensor& t : from) r.push_back(t.select(0, b));
    return r;
  };
  for (std::int64_t b = 0; b < batch; ++b)
    parts.push_back(scan_once(c, body, axes, of_batch(state, b), of_batch(xs, b)));
  Values r;
  for (std::size_t k = 0; k < parts[0].size(); ++k) {
    std::vector<Tensor> each;
    for (const auto& p : parts) each.push_back(p[k]);
    r.emplace_back(stack(each, 0));
  }
  return r;
}

}  // namespace

void add_control(Operators& t) {
  const Operator rows[] = {
      {"", "If", 1, if_, "the branch that is known, or where() of both"},
      {"", "Loop", 1, loop_, "scan, while_loop with a bound, or one step after another"},
      {"", "Scan", 8, scan_, "scan"},
  };
  t.insert(t.end(), std::begin(rows), std::end(rows));
}

}  // namespace lc::onnx
