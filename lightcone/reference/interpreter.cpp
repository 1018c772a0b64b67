#include "lightcone/reference/interpreter.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lightcone/base/numbers.h"
#include "lightcone/core/graph_impl.h"
#include "lightcone/core/op_eval.h"
#include "lightcone/reference/internal.h"

namespace lc {
namespace {

double most_whole(DType t) {  // a float holds all integers up to here
  return std::exp2(info(t).digits);
}
// True if an Add or Mul of integers is exact in the float type: indices, masks, counts.
bool stays_whole(const Node& n, std::span<const Sampled> x, double y) {
  if (n.op != Op::Add && n.op != Op::Mul) return false;
  const double most = most_whole(n.dtype);
  const auto is_whole = [&](double v) { return std::fabs(v) <= most && v == std::nearbyint(v); };
  return is_whole(x[0].x) && is_whole(x[1].x) && is_whole(y);
}

// Computes the samples of element k of an elementwise result.
Deviations sampled_result(const Node& n, DType operands, std::span<const Sampled> x, const Value& out, std::size_t k,
                          const EvalConfig& config) {
  const auto inexact = [](const Sampled& v) {
    return v.s && std::any_of(v.s, v.s + kSamples, [](double d) { return d != 0; });
  };
  const bool carries = std::any_of(x.begin(), x.end(), inexact);
  const double y = out.at(k);
  Deviations s = carries || n.op == Op::Bitcast
                     ? carried(n, operands, x, y, is_float(n.dtype) ? 0 : out.i[k], config.bits(k))
                     : kNoDeviation;
  // A power is a product of several factors, each of which is rounded: it may miss the zero that its exact value rounds
  // to.
  const bool underflows = n.op == Op::Pow && y == 0 && x[0].x != 0 && std::isfinite(x[0].x) && std::isfinite(x[1].x);
  if (!is_float(n.dtype) || !rounds(n.op) || (!carries && stays_whole(n, x, y))) return s;
  if (y == 0 && exact(s) && !underflows) return s;
  const double magnitude = underflows ? std::numeric_limits<double>::min() : 0;
  round_samples(n.dtype, unit_of(n.op, n.dtype), y, std::max(magnitude, y == 0 ? spread(s.data()) : std::fabs(y)),
                noise_bits(config.noise + 1, k), s);
  return s;
}

Value elementwise(const Node& n, Operands in, const Integers& shape, const EvalConfig& config) {
  Value out = make_value(n.dtype, shape);
  const DType type = in.back()->dtype;  // the operands' type; Where's condition comes first
  const bool floats = is_float(type);
  const bool sampled_operands = std::any_of(in.begin(), in.end(), [](const Value* v) { return !v->shift.empty(); });
  const bool bits = n.op == Op::Bitcast;
  const bool samples = config.noise && (sampled_operands || bits || (is_float(n.dtype) && rounds(n.op)));
  if (samples) out.shift.resize(out.size());
  Sampled x[3];
  for (std::size_t k = 0; k < out.size(); ++k) {
    for (std::size_t a = 0; a < in.size(); ++a) x[a] = sampled(*in[a], k);
    if (bits) {
      const Element y = bitcast({x[0].x, x[0].i}, type, n.dtype);
      if (is_float(n.dtype)) out.f[k] = y.f;
      else out.i[k] = y.i;
    } else if (floats) {
      const double y = eval_of(n.op).f(x[0].x, x[1].x, x[2].x);
      if (is_float(n.dtype)) out.f[k] = rounded(n.dtype, y, config.rounding);
      else out.i[k] = y != 0;
    } else {
      out.i[k] = wrapped(n.dtype, on_integers(n.op, type)(x[0].i, x[1].i, x[2].i));
    }
    if (samples) out.shift[k] = sampled_result(n, type, {x, in.size()}, out, k, config);
  }
  return out;
}

class Sum {  // the sum of one row and its rounding magnitude
 public:
  explicit Sum(i64 length) : length_(static_cast<std::size_t>(length)), blocks_(length_ > kLongSum) {}
  void add(double term) {
    terms_ += std::isfinite(term) ? std::fabs(term) : 0;
    partial_ += square(sum_ += term);
    if (!blocks_ || ++count_ % kSumBlock != 0) return;
    of_blocks_ += square(all_ += sum_);
    sum_ = 0;
  }
  double magnitude() const {
    return length_ < 2 ? 0 : terms_ + std::sqrt(partial_ + of_blocks_ * part_of_block_sums(length_));
  }

 private:
  static double square(double v) { return std::isfinite(v) ? v * v : 0; }
  std::size_t length_, count_ = 0;
  bool blocks_;
  double terms_ = 0, sum_ = 0, all_ = 0, partial_ = 0, of_blocks_ = 0;
};

// Samples of an integer maximum with value y, kept in i64 because f64 would round 64-bit numbers.
template <class Place>
Deviations greatest_samples(const Node& n, const Value& in, i64 length, const Place& place, i64 y) {
  Deviations s = kNoDeviation;
  const auto greater = on_integers(n.op, n.dtype);
  for (std::size_t l = 0; l < kSamples; ++l) {
    i64 greatest = info(n.dtype).lowest;
    bool known = true;
    for (i64 k = 0; k < length; ++k) {
      const double e = in.shift[place(k)][l];
      known = known && !std::isnan(e);
      if (known) greatest = greater(greatest, eval::add(in.i[place(k)], std::llround(e)), 0);
    }
    s[l] = known ? deviation(greatest, y) : kNaN;
  }
  return s;
}

// Samples of a reduced row with value y; place(k) is the index of its k-th element.
template <class Place>
Deviations reduced_samples(const Node& n, const Value& in, i64 length, const Place& place, double y,
                           const EvalConfig& config, std::size_t o) {
  const OpInfo& op = info(n.op);
  const bool floats = is_float(n.dtype);
  Deviations s = kNoDeviation, acc;
  acc.fill(floats ? op.identity : 0);
  bool moved = false, known[kSamples];
  std::fill(known, known + kSamples, true);
  for (i64 k = 0; k < length && !in.shift.empty(); ++k) {
    const Deviations& e = in.shift[place(k)];
    const double x = in.at(place(k));
    moved = moved || !exact(e);
    if (n.op == Op::MaxReduce && std::isnan(x) && exact(e)) return kNoDeviation;  // a certain NaN is the maximum
    for (std::size_t l = 0; l < kSamples; ++l) {
      known[l] = known[l] && !std::isnan(e[l]);
      if (n.op == Op::SumReduce) acc[l] += floats ? x + e[l] : e[l];
      else acc[l] = k == 0 ? x + e[l] : eval::max(acc[l], x + e[l]);
    }
  }
  for (std::size_t l = 0; moved && l < kSamples; ++l) s[l] = !known[l] ? kNaN : floats ? deviation(acc[l], y) : acc[l];
  if (!floats || n.op == Op::MaxReduce) return s;
  Sum sum(length);
  double other_way = 0;
  for (i64 k = 0; k < length; ++k) {
    const double term = in.f[place(k)];
    sum.add(term);
    other_way += opposing(y, term);
  }
  if (overflows(n.dtype, other_way)) return kUnknown;
  round_samples(n.dtype, unit_of_sum(n.dtype), y, sum.magnitude(), config.bits(o), s);
  return s;
}

Value reduce(const Node& n, const Value& in, const Integers& shape, const EvalConfig& config) {
  const OpInfo& op = info(n.op);
  Value out = make_value(n.dtype, shape);
  const bool samples = config.noise && (!in.shift.empty() || (is_float(n.dtype) && n.op == Op::SumReduce));
  if (samples) out.shift.resize(out.size());
  const AxisView rows(in.shape, n.axis);
  const i64 least = n.op == Op::MaxReduce ? info(n.dtype).lowest : 0;
  for (std::size_t o = 0; o < out.size(); ++o) {
    const i64 at = static_cast<i64>(o);
    const auto place = [&](i64 k) { return rows.at(at / rows.inner, k, at % rows.inner); };
    double acc = op.identity;
    i64 iacc = least;
    for (i64 k = 0; k < rows.length; ++k) {
      if (is_float(n.dtype)) acc = eval_of(n.op).f(acc, in.f[place(k)], 0);
      else iacc = on_integers(n.op, n.dtype)(iacc, in.i[place(k)], 0);
    }
    if (is_float(n.dtype)) out.f[o] = rounded(n.dtype, acc, config.rounding);
    else out.i[o] = wrapped(n.dtype, iacc);
    if (!samples) continue;
    const bool whole_greatest = n.op == Op::MaxReduce && !is_float(n.dtype);
    out.shift[o] = whole_greatest ? greatest_samples(n, in, rows.length, place, out.i[o])
                                  : reduced_samples(n, in, rows.length, place, out.at(o), config, o);
  }
  return out;
}

// Converts an integer so that one rounding follows.
double as_float(DType to, i64 v, DType from) {
  return to == DType::F64 ? to_f64(v, from) : odd_f64(v, from == DType::U64);
}

Value convert(const Node& n, const Value& in, const EvalConfig& config) {
  if (in.dtype == n.dtype) return in;
  Value out = make_value(n.dtype, in.shape);
  // implementations may round f64 to f32 and large integers at different points; narrow floats convert exactly here
  const bool narrows = in.dtype == DType::F64 && n.dtype == DType::F32;
  const bool rounding = narrows || (is_float(n.dtype) && !is_float(in.dtype));
  const bool samples = config.noise && (rounding || !in.shift.empty());
  if (samples) out.shift.resize(out.size());
  for (std::size_t k = 0; k < out.size(); ++k) {
    if (!is_float(n.dtype)) out.i[k] = is_float(in.dtype) ? whole(n.dtype, in.f[k]) : wrapped(n.dtype, in.i[k]);
    else if (is_float(in.dtype)) out.f[k] = rounded(n.dtype, in.f[k], config.rounding);
    else out.f[k] = rounded(n.dtype, as_float(n.dtype, in.i[k], in.dtype), config.rounding);
    if (!samples) continue;
    const Sampled x = sampled(in, k);
    Deviations& s = out.shift[k];
    const i64 i = is_float(n.dtype) ? 0 : out.i[k];
    if (x.s && !exact(in.shift[k])) s = converted(in.dtype, n.dtype, x, out.at(k), i, config.bits(k));
    if (rounding && (narrows || std::fabs(out.f[k]) > most_whole(n.dtype)))
      round_samples(n.dtype, unit_of(Op::Add, n.dtype), out.f[k], std::fabs(out.f[k]), noise_bits(config.noise + 1, k),
                    s);
  }
  return out;
}

// Evaluates the expression only when an index that it uses changes.
Value leaf(const Node& n, const Integers& shape, const Bindings& env) {
  Value out = make_value(n.dtype, shape);
  const auto put = [&](std::size_t k, double v, i64 w, bool constant) {
    if (is_float(n.dtype))
      out.f[k] = rounded(n.dtype, constant ? v : as_float(n.dtype, w, DType::I64), Rounding::Storage);
    else out.i[k] = constant ? whole(n.dtype, v) : wrapped(n.dtype, w);
  };
  if (n.op == Op::Constant) {
    for (std::size_t k = 0; k < out.size(); ++k) put(k, n.value, 0, true);
    return out;
  }
  Bindings at = env;
  std::vector<i64*> slot(shape.size(), nullptr);
  const auto symbols = n.index.symbols();
  for (std::size_t a = 0; a < shape.size(); ++a)
    if (const std::string name = Dim::index_name(static_cast<int>(a)); symbols.contains(name)) slot[a] = &at[name];
  Integers index(shape.size(), 0);
  i64 v = 0;
  bool fresh = true;
  for (std::size_t k = 0; k < out.size(); ++k) {
    if (fresh) v = n.index.eval(at);
    put(k, 0, v, false);
    fresh = false;
    for (std::size_t i = shape.size(); i-- > 0;) {
      const bool carry = ++index[i] >= shape[i];
      if (carry) index[i] = 0;
      if (slot[i]) *slot[i] = index[i], fresh = true;
      if (!carry) break;
    }
  }
  return out;
}

// Reads a value through a view. With noise, perturbs it, since a kernel may recompute it with other rounding.
Value seen(const Value& base, const View& view, const Bindings& env, std::uint64_t noise) {
  Value v = make_value(base.dtype, numbers(view.shape(), env));
  if (!base.shift.empty()) v.shift.resize(v.size());
  const Integers at = Access(view, env).positions();
  for (std::size_t k = 0; k < at.size(); ++k) {
    if (at[k] < 0) continue;
    const auto from = static_cast<std::size_t>(at[k]);
    if (is_float(v.dtype)) v.f[k] = base.f[from];
    else v.i[k] = base.i[from];
    if (v.shift.empty()) continue;
    v.shift[k] = base.shift[from];
    if (noise && is_float(v.dtype)) reread(v.dtype, v.f[k], noise_bits(noise, from), v.shift[k]);
  }
  return v;
}

Value computed(const Node& n, Operands in, const Bindings& env, const EvalConfig& config) {
  const Integers shape = numbers(n.shape, env);
  switch (info(n.op).kind) {
    case Kind::Leaf: return leaf(n, shape, env);
    case Kind::Elementwise:
      for (const Value* v : in)
        if (v->size() != in[0]->size()) throw Error(info(n.op).name, "operands differ in size for these sizes");
      return elementwise(n, in, shape, config);
    case Kind::Reduce: return reduce(n, *in[0], shape, config);
    case Kind::Copy: return convert(n, *in[0], config);
    case Kind::Composite: return composite(n, in, shape, env, config);
    case Kind::Result: return in[0]->parts.at(static_cast<std::size_t>(n.axis));
    case Kind::Kernel: break;
  }
  throw Error("interpreter", "a kernel of a back end has no reference meaning");
}

// Converts samples of a result to an error bound.
void compute_error_bounds(Value& v) {
  if (v.shift.empty()) return;
  v.error.resize(v.size());
  for (std::size_t k = 0; k < v.size(); ++k) {
    const double far = spread(v.shift[k].data());
    v.error[k] = far == 0 ? 0 : !is_float(v.dtype) ? kInf : far;
  }
  v.shift.clear();
}

class Interpreter {
 public:
  // `config.noise` seeds all samples. If `judged`, results carry error bounds instead of samples.
  Interpreter(const Graph& g, const Bindings& env, const EvalConfig& config, bool judged)
      : g_(g),
        env_(env),
        way_(config),
        judged_(judged),
        values_(g.size()),
        live_(g.live()),
        uses_(g.uses()),
        later_(g.size(), false) {
    find_products();
  }
  Results run(const std::map<std::string, Value>& inputs);

 private:
  // Marks float products that only sums read; each sum computes them on the fly.
  void find_products() {
    for (NodeId id = 0; id < g_.size(); ++id)
      later_[id] = live_[id] && g_[id].op == Op::Mul && (g_[id].dtype == DType::F32 || g_[id].dtype == DType::F64);
    for (NodeId id = 0; id < g_.size(); ++id)
      if (live_[id] && g_[id].op != Op::SumReduce)
        for (const Edge& e : g_[id].in) later_[e.node] = false;
    for (const Root& r : g_.roots()) later_[r.edge.node] = false;
    for (const Assignment& a : g_.assignments()) later_[a.next.node] = false;
  }
  void release(const Node& n) {
    for (const Edge& e : n.in)
      if (--uses_[e.node] == 0) {
        if (later_[e.node]) release(g_[e.node]);
        values_[e.node] = {};
      }
  }
  EvalConfig config(NodeId id) const {
    return {way_.rounding, way_.noise ? noise_bits(way_.noise, id) | 1 : 0, way_.products};
  }
  Value compute(NodeId id);
  Value sum(NodeId id);
  Value final_value(const Edge& e) {
    Value v = e.view.identity() ? values_[e.node] : seen(values_[e.node], e.view, env_, 0);
    if (judged_) compute_error_bounds(v);
    return v;
  }

  const Graph& g_;
  const Bindings& env_;
  EvalConfig way_;
  bool judged_;
  std::vector<Value> values_;
  std::vector<bool> live_;
  std::vector<int> uses_;
  std::vector<bool> later_;
};

Value Interpreter::sum(NodeId id) {
  const Node& n = g_[id];
  const Edge& edge = n.in[0];
  const Node& product = g_[edge.node];
  const auto factor = [&](std::size_t k) {
    const Edge& e = product.in[k];
    Factor f{&values_[e.node], Access(e.view, env_)};
    f.at.apply(edge.view, env_);
    return f;
  };
  return sum_of_products(n, factor(0), factor(1), numbers(n.shape, env_), config(id));
}

Value Interpreter::compute(NodeId id) {
  const Node& n = g_[id];
  if (n.op == Op::SumReduce && later_[n.in[0].node]) return sum(id);
  const bool again = n.op == Op::Add || n.op == Op::LessThan || n.op == Op::Equal || n.op == Op::Mod ||
                     info(n.op).has(kPiecewiseConstant);
  std::vector<Value> made(n.in.size());
  std::vector<const Value*> in;
  for (std::size_t k = 0; k < n.in.size(); ++k) {
    const Edge& e = n.in[k];
    const Value& base = values_[e.node];
    const std::uint64_t noise = way_.noise && again ? noise_bits(0xED6E + k, id) | 1 : 0;
    if (e.view.identity() && (!noise || base.shift.empty())) {
      in.push_back(&base);
      continue;
    }
    made[k] = seen(base, e.view, env_, noise);
    in.push_back(&made[k]);
  }
  return computed(n, in, env_, config(id));
}

Results Interpreter::run(const std::map<std::string, Value>& inputs) {
  for (NodeId id = 0; id < g_.size(); ++id) {
    if (!live_[id] || later_[id]) continue;
    const Node& n = g_[id];
    if (n.op != Op::Input) {
      values_[id] = compute(id);
      release(n);
      continue;
    }
    const auto it = inputs.find(n.name);
    if (it == inputs.end()) throw Error("run", "input '" + n.name + "' has no value");
    if (it->second.shape != numbers(n.shape, env_) || it->second.dtype != n.dtype)
      throw Error("run", str_cat("input '", n.name, "' does not have the shape ", str(n.shape)));
    values_[id] = it->second;
    values_[id].error.clear();
  }
  Results r;
  for (const Root& root : g_.roots()) r.outputs[root.name] = final_value(root.edge);
  for (const Assignment& a : g_.assignments()) r.states[g_[a.state].name] = final_value(a.next);
  return r;
}

}  // namespace

Value make_value(DType t, Integers shape) {
  Value v;
  v.dtype = t;
  v.shape = std::move(shape);
  const auto n = static_cast<std::size_t>(count(v.shape));
  if (is_float(t)) v.f.resize(n);
  else v.i.resize(n);
  return v;
}

Value read_value(const void* data, DType t, Integers shape) {
  Value v = make_value(t, std::move(shape));
  for (std::size_t k = 0; k < v.f.size(); ++k) v.f[k] = load_f64(data, t, k);
  for (std::size_t k = 0; k < v.i.size(); ++k) v.i[k] = load_i64(data, t, k);
  return v;
}

void write_value(const Value& v, void* data) {
  for (std::size_t k = 0; k < v.f.size(); ++k) store_f64(data, v.dtype, k, v.f[k]);
  for (std::size_t k = 0; k < v.i.size(); ++k) store_i64(data, v.dtype, k, v.i[k]);
}

Value look_through(const Value& base, const View& view, const Bindings& env) {
  return view.identity() ? base : seen(base, view, env, 0);
}

Value evaluate(const Node& n, std::span<const Value> in, const Bindings& env, Rounding r) {
  std::vector<const Value*> operands;
  for (const Value& v : in) operands.push_back(&v);
  return computed(n, operands, env, {.rounding = r});
}

Results interpret(const Graph& g, const std::map<std::string, Value>& inputs, const Bindings& env, Rounding rounding,
                  bool track, double products) {
  return Interpreter(g, env, {rounding, track ? 0x5EEDu : 0u, products}, true).run(inputs);
}

Results interpret_samples(const Graph& g, const std::map<std::string, Value>& inputs, const EvalConfig& config) {
  return Interpreter(g, {}, config, false).run(inputs);
}

}  // namespace lc
