#include "lightcone/reference/interpreter.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <numeric>

#include "lightcone/core/graph_impl.h"
#include "lightcone/core/quant.h"

namespace lc {
namespace {

using i64 = std::int64_t;
using Ints = std::vector<i64>;

i64 count(const Ints& shape) {
  i64 n = 1;
  for (i64 d : shape) n *= d;
  return n;
}

i64 wrapped(DType t, i64 v) {
  i64 raw = 0;
  store_i64(&raw, t, 0, v);
  return load_i64(&raw, t, 0);
}
i64 whole(DType t, double v) {  // what a conversion to an integer gives
  i64 raw = 0;
  store_f64(&raw, t, 0, v);
  return load_i64(&raw, t, 0);
}
double rounded(DType t, double v, Rounding r) {
  if (r == Rounding::Wide && (t == DType::F32 || t == DType::F64)) return v;
  std::uint64_t raw = 0;
  store_f64(&raw, t, 0, v);
  return load_f64(&raw, t, 0);
}

Value result(DType t, const Ints& shape, bool track) {
  Value v = make_value(t, shape);
  if (track) v.error.assign(v.size(), 0);
  return v;
}

// Positions in the base buffer, -1 where padding is read: the moves applied to plain numbers, so
// that the judge does not share Dim's algebra with the compilers it judges.
Ints positions(const View& view, const Bindings& env) {
  Ints from = numbers(view.base(), env);
  Ints at(static_cast<std::size_t>(count(from)));
  std::iota(at.begin(), at.end(), 0);
  for (const Move& m : view.moves()) {
    const Ints to = numbers(m.to, env), before = numbers(m.before, env);
    for (i64 d : to)
      if (d < 0) throw Error("view", "an extent is negative for these sizes: " + str(m.to));
    if (m.kind == MoveKind::Reshape) {
      if (count(to) != count(from)) throw Error("reshape", "the element counts differ for these sizes");
      from = to;
      continue;
    }
    Ints next(static_cast<std::size_t>(count(to)));
    Ints out(to.size(), 0), in(from.size(), 0);
    for (std::size_t flat = 0; flat < next.size(); ++flat) {
      bool valid = true;
      for (std::size_t i = 0; i < in.size(); ++i) switch (m.kind) {
          case MoveKind::Permute: in[m.axes[i]] = out[i]; break;
          case MoveKind::Expand: in[i] = from[i] == 1 ? 0 : out[i]; break;
          case MoveKind::Slice: in[i] = before[i] + out[i] * m.step[i]; break;
          case MoveKind::Pad: in[i] = out[i] - before[i]; break;
          case MoveKind::Unfold:
            in[i] = static_cast<int>(i) == m.axes[0] ? out[i] * m.step[0] + out.back() * m.step[1] : out[i];
            break;
          case MoveKind::Reshape: break;
        }
      i64 pos = 0;
      for (std::size_t i = 0; i < in.size(); ++i) {
        if (in[i] < 0 || in[i] >= from[i]) {
          if (m.kind != MoveKind::Pad) throw Error("view", "an index leaves the tensor for these sizes");
          valid = false;
        }
        pos = pos * from[i] + in[i];
      }
      next[flat] = valid ? at[static_cast<std::size_t>(pos)] : -1;
      for (std::size_t i = to.size(); i-- > 0;) {
        if (++out[i] < to[i]) break;
        out[i] = 0;
      }
    }
    at = std::move(next);
    from = to;
  }
  return at;
}

// Rounding units of a result: generous enough for a polynomial exp2 and a reordered sum.
double unit(DType t) {
  switch (t) {
    case DType::F64: return 0x1p-50;
    case DType::F16: return 0x1p-10;
    case DType::BF16: return 0x1p-7;
    default: return 0x1p-21;
  }
}

// How far apart an implementation may be at `result`, beyond what its operands bring.
double own_error(DType t, double result) {
  if (!is_float(t) || std::isnan(result) || std::isinf(result)) return 0;
  const double m = std::fabs(result);
  const bool wide = t == DType::F64 || t == DType::BF16 || t == DType::F32;
  if (m > (t == DType::F64 ? DBL_MAX / 4 : wide ? FLT_MAX / 4 : 65000.0)) return kInf;
  return unit(t) * m + (t == DType::F64 ? 1e-300 : t == DType::F16 ? 0x1p-24 : 1e-37);
}

double spread(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double d = std::fabs(a - b);
  return std::isnan(d) ? kInf : d;
}

// Largest change of an elementwise function over the corners of its operands' error boxes.
template <class F>
double corner_error(const F& f, const double (&x)[3], const double (&e)[3], int arity, double result) {
  double worst = 0;
  for (int k = 0; k < arity; ++k)
    if (std::isinf(e[k])) return kInf;
  for (int corner = 0; corner < (1 << arity); ++corner) {
    double y[3];
    for (int k = 0; k < arity; ++k) y[k] = x[k] + ((corner >> k & 1) ? e[k] : -e[k]);
    worst = std::max(worst, spread(f(y[0], y[1], y[2]), result));
  }
  return worst;
}

// These give one of their operands as it is: nothing is rounded.
bool selects(Op op) { return op == Op::Maximum || op == Op::Minimum || op == Op::Where; }

// Does the function jump inside the box, between its corners? Boxes are taken four times as wide:
// that is how far comparisons let a result stray.
bool on_an_edge(Op op, const double (&x)[3], const double (&e)[3]) {
  switch (op) {
    case Op::Equal:
    case Op::LessThan: return std::fabs(x[0] - x[1]) <= 4 * (e[0] + e[1]);
    case Op::Recip: return std::fabs(x[0]) <= 4 * e[0];
    case Op::Div: return std::fabs(x[1]) <= 4 * e[1];
    case Op::Mod: {  // the divisor's error counts as often as it fits
      const double y = std::fabs(std::fmod(x[0], x[1])), off = 4 * (e[0] + e[1] * std::fabs(x[0] / x[1]));
      return std::fabs(x[1]) <= 4 * e[1] || y < off || std::fabs(x[1]) - y < off;
    }
    case Op::Pow: return std::fabs(x[0]) <= 4 * e[0] || (e[1] != 0 && x[0] < 0);  // whole exponents only
    default: return false;
  }
}

Value elementwise(const Node& n, std::span<const Value> in, const Ints& shape, Rounding r, bool track) {
  const OpInfo& op = info(n.op);
  Value out = make_value(n.dtype, shape);
  const DType type = in.back().dtype;  // of the operands; the condition of Where comes first
  const bool floats = is_float(type);
  if (track) out.error.assign(out.size(), 0);
  for (std::size_t k = 0; k < out.size(); ++k) {
    double x[3] = {}, e[3] = {};
    i64 v[3] = {};
    for (std::size_t a = 0; a < in.size(); ++a) {
      x[a] = in[a].at(k);
      e[a] = in[a].error_at(k);
      if (!is_float(in[a].dtype)) v[a] = in[a].i[k];
    }
    if (floats) {
      const double y = op.f(x[0], x[1], x[2]);
      if (is_float(n.dtype)) out.f[k] = rounded(n.dtype, y, r);
      else out.i[k] = y != 0;
    } else {
      out.i[k] = wrapped(n.dtype, op.i(v[0], v[1], v[2]));
    }
    if (!track) continue;
    double bound = selects(n.op) ? 0 : own_error(n.dtype, out.at(k));
    if (e[0] != 0 || e[1] != 0 || e[2] != 0) {
      if (floats) {
        bound += corner_error([&](double a, double b, double c) { return rounded(n.dtype, op.f(a, b, c), r); }, x, e,
                              static_cast<int>(in.size()), out.at(k));
        // a box wider than the operand itself says nothing about a periodic function
        if (on_an_edge(n.op, x, e)) bound = kInf;
        if ((n.op == Op::Sin || n.op == Op::Cos) && e[0] > 0.5) bound = kInf;
      } else {
        bound = kInf;
      }
    }
    out.error[k] = bound;
  }
  return out;
}

struct Rows {  // an axis of a tensor seen as outer x length x inner
  i64 outer = 1, length, inner = 1;
  Rows(const Ints& s, int axis) : length(s[static_cast<std::size_t>(axis)]) {
    for (int i = 0; i < axis; ++i) outer *= s[static_cast<std::size_t>(i)];
    for (std::size_t i = static_cast<std::size_t>(axis) + 1; i < s.size(); ++i) inner *= s[i];
  }
  std::size_t at(i64 o, i64 k, i64 i) const { return static_cast<std::size_t>((o * length + k) * inner + i); }
  template <class F>
  void each(const F& f) const {
    for (i64 o = 0; o < outer; ++o)
      for (i64 k = 0; k < length; ++k)
        for (i64 i = 0; i < inner; ++i) f(o, k, i);
  }
};

Value reduce(const Node& n, const Value& in, const Ints& shape, Rounding r, bool track) {
  const OpInfo& op = info(n.op);
  Value out = result(n.dtype, shape, track);
  const Rows rows(in.shape, n.axis);
  const i64 least = n.op == Op::MaxReduce ? info(n.dtype).lowest : 0;
  for (std::size_t o = 0; o < out.size(); ++o) {
    double acc = op.identity, magnitude = 0, error = 0;
    i64 iacc = least;
    for (i64 k = 0; k < rows.length; ++k) {
      const std::size_t at = rows.at(static_cast<i64>(o) / rows.inner, k, static_cast<i64>(o) % rows.inner);
      if (is_float(n.dtype)) acc = op.f(acc, in.f[at], 0);
      else iacc = op.i(iacc, in.i[at], 0);
      if (!track) continue;
      const double e = in.error_at(at);
      error = n.op == Op::SumReduce ? error + e : std::max(error, e);
      if (std::isfinite(in.at(at))) magnitude += std::fabs(in.at(at));
    }
    if (is_float(n.dtype)) out.f[o] = rounded(n.dtype, acc, r);
    else out.i[o] = wrapped(n.dtype, iacc);
    if (!track) continue;
    if (!is_float(n.dtype)) error = error == 0 ? 0 : kInf;
    else if (n.op == Op::SumReduce)
      error += own_error(n.dtype, magnitude) * (1 + 0.25 * std::log2(1.0 + static_cast<double>(rows.length)));
    out.error[o] = std::isnan(error) ? kInf : error;
  }
  return out;
}

Value convert(const Node& n, const Value& in, Rounding r, bool track) {
  Value out = result(n.dtype, in.shape, track);
  const auto as = [&](double v) {  // what a conversion of v gives, as a number
    return is_float(n.dtype) ? rounded(n.dtype, v, r) : static_cast<double>(whole(n.dtype, v));
  };
  for (std::size_t k = 0; k < out.size(); ++k) {
    if (is_float(n.dtype)) out.f[k] = as(in.at(k));
    else out.i[k] = is_float(in.dtype) ? whole(n.dtype, in.f[k]) : wrapped(n.dtype, in.i[k]);
    if (!track) continue;
    const double x[3] = {in.at(k)}, e[3] = {in.error_at(k)};
    const bool same_type = in.dtype == n.dtype;
    out.error[k] = same_type ? e[0] : own_error(n.dtype, out.at(k));
    if (!same_type && e[0] != 0) {
      out.error[k] += corner_error([&](double a, double, double) { return as(a); }, x, e, 1, out.at(k));
      const bool zero = n.dtype == DType::Bool && std::fabs(x[0]) <= 4 * e[0];  // between corners that are not zero
      if (!is_float(n.dtype) && (zero || out.error[k] != 0)) out.error[k] = kInf;
    }
  }
  return out;
}

// Copies element `from` of a to `to` of b, whatever the dtype.
void copy_element(const Value& a, std::size_t from, Value& b, std::size_t to) {
  if (is_float(b.dtype)) b.f[to] = a.f[from];
  else b.i[to] = a.i[from];
  if (!b.error.empty()) b.error[to] = a.error_at(from);
}

Value gather(const Node& n, std::span<const Value> in, const Ints& shape, bool track) {
  Value out = result(n.dtype, shape, track);
  const Rows data(in[0].shape, n.axis), idx(shape, n.axis);
  idx.each([&](i64 o, i64 k, i64 i) {
    const std::size_t to = idx.at(o, k, i);
    const i64 j = in[1].i[to];
    if (j >= 0 && j < data.length) copy_element(in[0], data.at(o, j, i), out, to);
    if (in[1].error_at(to) != 0) out.error[to] = kInf;
  });
  return out;
}

Value scatter(const Node& n, std::span<const Value> in, Rounding r, bool track) {
  Value out = in[0];
  if (track && out.error.empty()) out.error.assign(out.size(), 0);
  const Rows base(in[0].shape, n.axis), idx(in[1].shape, n.axis);
  bool undecided = false;
  idx.each([&](i64 o, i64 k, i64 i) {
    const std::size_t from = idx.at(o, k, i);
    const i64 j = in[1].i[from];
    undecided = undecided || in[1].error_at(from) != 0;
    if (j < 0 || j >= base.length) return;
    const std::size_t to = base.at(o, j, i);
    if (n.op == Op::Scatter) {
      copy_element(in[2], from, out, to);
    } else if (is_float(n.dtype)) {
      out.f[to] = rounded(n.dtype, out.f[to] + in[2].f[from], r);
      if (track)
        out.error[to] += in[2].error_at(from) + own_error(n.dtype, std::fabs(out.f[to]) + std::fabs(in[2].f[from]));
    } else {
      out.i[to] = wrapped(n.dtype, eval::add(out.i[to], in[2].i[from]));
    }
  });
  if (undecided) std::fill(out.error.begin(), out.error.end(), kInf);
  return out;
}

Value slice_scatter(const Node& n, std::span<const Value> in, const Bindings& env, bool track) {
  Value out = in[0];
  if (track && out.error.empty()) out.error.assign(out.size(), 0);
  const Rows base(in[0].shape, n.axis), src(in[1].shape, n.axis);
  const i64 start = n.index.eval(env);
  if (start < 0 || start + src.length > base.length)
    throw Error("slice_scatter", cat("[", start, ", ", start + src.length, ") leaves an axis of ", base.length));
  src.each([&](i64 o, i64 k, i64 i) { copy_element(in[1], src.at(o, k, i), out, base.at(o, start + k, i)); });
  return out;
}

Value argsort(const Node& n, const Value& in, bool track) {
  Value out = result(DType::I64, in.shape, track);
  const Rows rows(in.shape, n.axis);
  std::vector<i64> order(static_cast<std::size_t>(rows.length));
  for (i64 o = 0; o < rows.outer; ++o)
    for (i64 i = 0; i < rows.inner; ++i) {
      std::iota(order.begin(), order.end(), 0);
      const auto less = [&](i64 a, i64 b) {
        const std::size_t p = rows.at(o, n.mode ? b : a, i), q = rows.at(o, n.mode ? a : b, i);
        if (!is_float(in.dtype)) return in.i[p] < in.i[q];
        if (std::isnan(in.f[q])) return !std::isnan(in.f[p]);
        return in.f[p] < in.f[q];
      };
      std::stable_sort(order.begin(), order.end(), less);
      bool undecided = false;
      for (i64 k = 0; k < rows.length; ++k) {
        out.i[rows.at(o, k, i)] = order[static_cast<std::size_t>(k)];
        undecided = undecided || in.error_at(rows.at(o, k, i)) != 0;
      }
      for (i64 k = 0; undecided && k < rows.length; ++k) out.error[rows.at(o, k, i)] = kInf;
    }
  return out;
}

Value dequantize(const Node& n, const Value& in, const Ints& shape, bool track) {
  const QuantInfo& q = info(static_cast<QuantFormat>(n.mode));
  Value out = result(DType::F32, shape, track);
  for (std::size_t k = 0; k < out.size(); ++k) {
    const auto block = static_cast<std::int64_t>(k) / q.elements;
    const i64* p = in.i.data() + block * q.bytes;
    out.f[k] = quant_value(q.format, static_cast<std::int64_t>(k) % q.elements, [&](i64 at) { return p[at]; });
  }
  return out;
}

Value leaf(const Node& n, const Ints& shape, const Bindings& env) {
  Value out = make_value(n.dtype, shape);
  Bindings at = env;
  Ints index(shape.size(), 0);
  for (std::size_t k = 0; k < out.size(); ++k) {
    for (std::size_t a = 0; a < index.size(); ++a) at["i" + std::to_string(a)] = index[a];
    const bool constant = n.op == Op::Constant;
    const i64 v = constant ? 0 : n.index.eval(at);
    if (is_float(n.dtype)) out.f[k] = rounded(n.dtype, constant ? n.value : static_cast<double>(v), Rounding::Storage);
    else out.i[k] = constant ? whole(n.dtype, n.value) : wrapped(n.dtype, v);
    for (std::size_t i = shape.size(); i-- > 0;) {
      if (++index[i] < shape[i]) break;
      index[i] = 0;
    }
  }
  return out;
}

}  // namespace

std::vector<i64> numbers(const Shape& s, const Bindings& env) {
  Ints r;
  for (const Dim& d : s) r.push_back(d.eval(env));
  return r;
}

Value make_value(DType t, Ints shape) {
  Value v;
  v.dtype = t;
  v.shape = std::move(shape);
  const auto n = static_cast<std::size_t>(count(v.shape));
  if (is_float(t)) v.f.resize(n);
  else v.i.resize(n);
  return v;
}

Value read_value(const void* data, DType t, Ints shape) {
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
  if (view.identity()) return base;
  const Ints at = positions(view, env);
  Value v = make_value(base.dtype, numbers(view.shape(), env));
  if (!base.error.empty()) v.error.assign(v.size(), 0);
  for (std::size_t k = 0; k < at.size(); ++k)
    if (at[k] >= 0) copy_element(base, static_cast<std::size_t>(at[k]), v, k);
  return v;
}

Value evaluate(const Node& n, std::span<const Value> in, const Bindings& env, Rounding r, bool track) {
  const Ints shape = numbers(n.shape, env);
  switch (info(n.op).kind) {
    case Kind::Leaf: return leaf(n, shape, env);
    case Kind::Elementwise:
      for (const Value& v : in)
        if (v.size() != in[0].size()) throw Error(info(n.op).name, "operands differ in size for these sizes");
      return elementwise(n, in, shape, r, track);
    case Kind::Reduce: return reduce(n, in[0], shape, r, track);
    case Kind::Copy: return convert(n, in[0], r, track);
    case Kind::Structured: break;
    case Kind::Kernel: throw Error("interpreter", "a kernel of a back end has no reference meaning");
  }
  switch (n.op) {
    case Op::Gather: return gather(n, in, shape, track);
    case Op::Scatter:
    case Op::ScatterAdd: return scatter(n, in, r, track);
    case Op::SliceScatter: return slice_scatter(n, in, env, track);
    case Op::ArgSort: return argsort(n, in[0], track);
    default: return dequantize(n, in[0], shape, track);
  }
}

Results interpret(const Graph& g, const std::map<std::string, Value>& inputs, const Bindings& env, Rounding rounding,
                  bool track) {
  std::vector<Value> values(g.size());
  const auto live = g.live();
  auto uses = g.uses();
  for (NodeId id = 0; id < g.size(); ++id) {
    if (!live[id]) continue;
    const Node& n = g[id];
    if (n.op == Op::Input) {
      const auto it = inputs.find(n.name);
      if (it == inputs.end()) throw Error("run", "input '" + n.name + "' has no value");
      if (it->second.shape != numbers(n.shape, env) || it->second.dtype != n.dtype)
        throw Error("run", cat("input '", n.name, "' does not have the shape ", str(n.shape)));
      values[id] = it->second;
      continue;
    }
    std::vector<Value> in;
    for (const Edge& e : n.in) in.push_back(look_through(values[e.node], e.view, env));
    values[id] = evaluate(n, in, env, rounding, track);
    for (const Edge& e : n.in)
      if (--uses[e.node] == 0) values[e.node] = {};
  }
  Results r;
  for (const Root& root : g.roots()) r.outputs[root.name] = look_through(values[root.edge.node], root.edge.view, env);
  for (const Assignment& a : g.assignments())
    r.states[g[a.state].name] = look_through(values[a.next.node], a.next.view, env);
  return r;
}

}  // namespace lc
