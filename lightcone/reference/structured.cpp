// Composites: the built-in ones that move elements (gather, scatter, sort, block formats) or count them
// (random words), and definitions.
#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "lightcone/core/quant.h"
#include "lightcone/random/random_bits.h"
#include "lightcone/reference/internal.h"
#include "lightcone/reference/rule.h"

namespace lc {
namespace {

Deviations shift_at(const Value& v, std::size_t k) { return v.shift.empty() ? kNoDeviation : v.shift[k]; }

// Copies element `from` of a to `to` of b, whatever the dtype.
void copy_element(const Value& a, std::size_t from, Value& b, std::size_t to) {
  if (is_float(b.dtype)) b.f[to] = a.f[from];
  else b.i[to] = a.i[from];
  if (!b.shift.empty()) b.shift[to] = shift_at(a, from);
}

bool sampled(Operands in) {
  return std::any_of(in.begin(), in.end(), [](const Value* v) { return !v->shift.empty(); });
}

int axis_of(const Node& n) { return static_cast<int>(n.attributes.integer("axis")); }

Value gather(const Node& n, Operands in, const IntList& shape) {
  Value out = make_value(n.dtype, shape);
  if (sampled(in)) out.shift.resize(out.size());
  const AxisView data(in[0]->shape, axis_of(n)), idx(shape, axis_of(n));
  const auto read = [&](i64 o, i64 j, i64 i) { return j >= 0 && j < data.length ? in[0]->at(data.at(o, j, i)) : 0.0; };
  idx.each([&](i64 o, i64 k, i64 i) {
    const std::size_t to = idx.at(o, k, i);
    const i64 j = in[1]->i[to];
    if (j >= 0 && j < data.length) copy_element(*in[0], data.at(o, j, i), out, to);
    const Deviations moved = shift_at(*in[1], to);
    if (exact(moved)) return;
    for (std::size_t l = 0; l < kSamples; ++l) {  // a sample that reads another place
      if (moved[l] == 0) continue;
      const i64 other = std::isnan(moved[l]) ? 0 : j + std::llround(moved[l]);
      const bool inside = other >= 0 && other < data.length;
      const double more = inside ? shift_at(*in[0], data.at(o, other, i))[l] : 0;
      out.shift[to][l] = std::isnan(moved[l]) ? kNaN : deviation(read(o, other, i) + more, out.at(to));
    }
  });
  return out;
}

Value scatter(const Node& n, Operands in, const EvalConfig& config) {
  Value out = *in[0];
  const bool replaces = is(n, builtin::scatter()), adds = !replaces && is_float(n.dtype);
  if (out.shift.empty() && (sampled(in) || (config.noise && adds))) out.shift.resize(out.size());
  const AxisView base(in[0]->shape, axis_of(n)), idx(in[1]->shape, axis_of(n));
  bool undecided = false;
  idx.each([&](i64 o, i64 k, i64 i) {
    const std::size_t from = idx.at(o, k, i);
    const i64 j = in[1]->i[from];
    undecided = undecided || !exact(shift_at(*in[1], from));
    if (j < 0 || j >= base.length) return;
    const std::size_t to = base.at(o, j, i);
    if (replaces) {
      copy_element(*in[2], from, out, to);
    } else if (is_float(n.dtype)) {
      const double term = in[2]->f[from], before = out.f[to];
      out.f[to] = rounded(n.dtype, before + term, config.rounding);
      if (!config.noise) return;
      Deviations& s = out.shift[to];
      const Deviations t = shift_at(*in[2], from);
      for (std::size_t l = 0; l < kSamples; ++l) s[l] = deviation(before + s[l] + (term + t[l]), out.f[to]);
      round_samples(n.dtype, unit_of_sum(n.dtype) * 2, out.f[to], std::fabs(before) + std::fabs(term),
                    config.bits(out.size() + from), s);
    } else {
      out.i[to] = wrapped(n.dtype, eval::add(out.i[to], in[2]->i[from]));
      if (!exact(shift_at(*in[2], from))) out.shift[to] = kUnknown;
    }
  });
  if (undecided) std::fill(out.shift.begin(), out.shift.end(), kUnknown);
  return out;
}

Value slice_scatter(const Node& n, Operands in, const Bindings& env) {
  Value out = *in[0];
  if (sampled(in)) out.shift.resize(out.size());
  const AxisView base(in[0]->shape, axis_of(n)), src(in[1]->shape, axis_of(n));
  const i64 start = n.attributes.dim("start").eval(env);
  if (start < 0 || start + src.length > base.length)
    throw Error("slice_scatter", str_cat("[", start, ", ", start + src.length, ") leaves an axis of ", base.length));
  src.each([&](i64 o, i64 k, i64 i) { copy_element(*in[1], src.at(o, k, i), out, base.at(o, start + k, i)); });
  return out;
}

// Which places of a sorted row are certain: those that nothing on one side can pass to the other.
void mark_ties(const Value& in, const AxisView& rows, i64 o, i64 i, std::span<const i64> order, bool descending,
               Value& out) {
  const std::size_t length = order.size();
  const auto bound = [&](std::size_t k, int side) {
    const std::size_t at = rows.at(o, order[k], i);
    const double x = std::isnan(in.at(at)) ? kInf : in.at(at);
    const double far = spread(in.shift[at].data());
    if (std::isinf(far)) return side * kInf;
    return (descending ? -x : x) + side * kReach * far;
  };
  const auto moved = [&](std::size_t k) -> std::size_t { return !exact(in.shift[rows.at(o, order[k], i)]); };
  // The most of what came and the least of what follows, of exact elements, whose ties their places decide, and of
  // others, which may not even tie. NaN: there are none.
  using Pair = std::array<double, 2>;
  std::vector<Pair> least(length + 1, Pair{kNaN, kNaN});
  for (std::size_t k = length; k-- > 0;) {
    least[k] = least[k + 1];
    double& least_now = least[k][moved(k)];
    least_now = std::fmin(least_now, bound(k, -1));
  }
  Pair most{kNaN, kNaN};
  for (std::size_t k = 0, first = 0; k < length; ++k) {
    double& most_now = most[moved(k)];
    most_now = std::fmax(most_now, bound(k, 1));
    const Pair& next = least[k + 1];
    if (most[0] > next[0] || most[0] >= next[1] || most[1] >= next[0] || most[1] >= next[1]) continue;
    for (std::size_t p = first; k > first && p <= k; ++p) out.shift[rows.at(o, static_cast<i64>(p), i)] = kUnknown;
    first = k + 1;
  }
}

Value argsort(const Node& n, const Value& in) {
  Value out = make_value(DType::I64, in.shape);
  if (!in.shift.empty()) out.shift.resize(out.size());
  const AxisView rows(in.shape, axis_of(n));
  const bool descending = n.attributes.integer("descending") != 0;
  std::vector<i64> order(static_cast<std::size_t>(rows.length));
  for (i64 o = 0; o < rows.outer; ++o)
    for (i64 i = 0; i < rows.inner; ++i) {
      std::iota(order.begin(), order.end(), 0);
      const auto less = [&](i64 a, i64 b) {
        const std::size_t p = rows.at(o, descending ? b : a, i), q = rows.at(o, descending ? a : b, i);
        if (!is_float(in.dtype)) return on_integers(Op::LessThan, in.dtype)(in.i[p], in.i[q], 0) != 0;
        if (std::isnan(in.f[q])) return !std::isnan(in.f[p]);
        return in.f[p] < in.f[q];
      };
      std::stable_sort(order.begin(), order.end(), less);
      for (i64 k = 0; k < rows.length; ++k) out.i[rows.at(o, k, i)] = order[static_cast<std::size_t>(k)];
      if (!in.shift.empty()) mark_ties(in, rows, o, i, order, descending, out);
    }
  return out;
}

Value dequantize(const Node& n, const Value& in, const IntList& shape) {
  const QuantInfo& q = info(static_cast<QuantFormat>(n.attributes.integer("format")));
  Value out = make_value(DType::F32, shape);
  for (std::size_t k = 0; k < out.size(); ++k) {
    const auto block = static_cast<i64>(k) / q.elements;
    const i64* p = in.i.data() + block * q.bytes;
    out.f[k] = quant_value(q.format, static_cast<i64>(k) % q.elements, [&](i64 at) { return p[at]; });
  }
  const auto inexact = [](const Deviations& s) { return !exact(s); };
  if (std::any_of(in.shift.begin(), in.shift.end(), inexact)) out.shift.assign(out.size(), kUnknown);
  return out;
}

Value random_bits(const Node& n, const Value& step, const IntList& shape) {
  Value out = make_value(DType::I32, shape);
  const Philox::Key key = Philox::key(n.attributes.integer("seed"), n.attributes.integer("stream"));
  Philox::Block block{};
  for (std::size_t k = 0; k < out.size(); ++k) {
    if (k % 4 == 0) block = Philox::words(Philox::counter(k / 4, step.i[0]), key);
    out.i[k] = static_cast<std::int32_t>(block[k % 4]);
  }
  if (!exact(shift_at(step, 0))) out.shift.assign(out.size(), kUnknown);
  return out;
}

// The definition, evaluated with the operands' samples: what it rounds is found as everywhere.
std::vector<Value> defined(const Node& n, Operands in, const Bindings& env, const EvalConfig& config) {
  Graph g;
  std::vector<Tensor> operands;
  std::map<std::string, Value> given;
  for (std::size_t k = 0; k < in.size(); ++k) {
    const std::string name = str_cat("operand ", k);
    operands.push_back(g.input(name, Shape(in[k]->shape.begin(), in[k]->shape.end()), in[k]->dtype));
    given[name] = *in[k];
  }
  Node at_these_sizes = n;
  std::vector<Attributes::Entry> attributes;
  for (Attributes::Entry e : n.attributes.entries()) {
    if (const Dim* d = std::get_if<Dim>(&e.value)) e.value = Dim(d->eval(env));
    attributes.push_back(std::move(e));
  }
  at_these_sizes.attributes = Attributes(std::move(attributes));
  std::vector<std::string> names;
  for (const Tensor& t : define_all(at_these_sizes, operands)) {
    names.push_back(str_cat("result ", names.size()));
    g.output(names.back(), t);
  }
  Results r = interpret_samples(g, given, config);
  std::vector<Value> results;
  for (const std::string& name : names) results.push_back(std::move(r.outputs.at(name)));
  return results;
}

using Evaluate = Value (*)(const Evaluation& e);
std::shared_ptr<const ReferenceRule> rule(Evaluate f) {
  return std::make_shared<const ReferenceRule>(
      ReferenceRule{[f](const Evaluation& e) { return std::vector<Value>{f(e)}; }});
}

}  // namespace

const ReferenceRule* reference_rule(const Composite& c) {
  if (c.reference) return c.reference.get();
  static const std::map<const Composite*, std::shared_ptr<const ReferenceRule>> rules = {
      {builtin::gather().get(), rule([](const Evaluation& e) { return gather(e.node, e.in, e.shape); })},
      {builtin::scatter().get(), rule([](const Evaluation& e) {
         return scatter(e.node, e.in, {e.rounding, e.noise, e.products});
       })},
      {builtin::scatter_add().get(), rule([](const Evaluation& e) {
         return scatter(e.node, e.in, {e.rounding, e.noise, e.products});
       })},
      {builtin::slice_scatter().get(), rule([](const Evaluation& e) { return slice_scatter(e.node, e.in, e.sizes); })},
      {builtin::argsort().get(), rule([](const Evaluation& e) { return argsort(e.node, *e.in[0]); })},
      {builtin::dequantize().get(), rule([](const Evaluation& e) { return dequantize(e.node, *e.in[0], e.shape); })},
      {builtin::random_bits().get(), rule([](const Evaluation& e) { return random_bits(e.node, *e.in[0], e.shape); })},
  };
  const auto it = rules.find(&c);
  return it == rules.end() ? nullptr : it->second.get();
}

Value composite(const Node& n, Operands in, const IntList& shape, const Bindings& env, const EvalConfig& config) {
  const ReferenceRule* own = reference_rule(*n.composite);
  std::vector<Value> results = own ? own->evaluate({n, in, shape, env, config.rounding, config.noise, config.products})
                               : n.composite->loop ? looped(*n.composite->loop, in, config)
                                                   : defined(n, in, env, config);
  const std::size_t wanted = n.results.empty() ? 1 : n.results.size();
  if (results.size() != wanted)
    throw Error(n.composite->name, str_cat("its evaluation gives ", results.size(), " results, its infer() ", wanted));
  for (std::size_t k = 0; k < wanted; ++k) {
    const DType t = n.results.empty() ? n.dtype : n.results[k].dtype;
    const IntList s = n.results.empty() ? shape : numbers(n.results[k].shape, env);
    if (results[k].dtype != t || results[k].shape != s)
      throw Error(n.composite->name, str_cat("result ", k, " of its evaluation is not what its infer() says"));
  }
  if (n.results.empty()) return std::move(results[0]);
  Value all;
  all.dtype = n.dtype;
  all.parts = std::move(results);
  return all;
}

}  // namespace lc
