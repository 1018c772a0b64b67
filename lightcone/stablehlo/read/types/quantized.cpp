// Rewrites quantised types before a module is read. A value becomes its stored integers. Operations that move data move
// these; others use the numbers they stand for, as the specification defines: dequantize, compute, quantize.
#include <algorithm>
#include <set>

#include "lightcone/stablehlo/read/reader.h"

namespace lc::stablehlo {
namespace {

constexpr const char *kDequantize = "lightcone.dequantize", *kQuantize = "lightcone.quantize";

// Returns true for operations that use the stored integers directly.
bool keeps_stored(const Operation& op) {
  static const std::set<std::string_view> names = {"stablehlo.constant", "stablehlo.custom_call",
                                                   "stablehlo.get_dimension_size"};
  return hands_on(op) || names.contains(op.name);
}

class Expander {
 public:
  explicit Expander(Module m) : m_(std::move(m)) {
    for (Value& v : m_.values) {
      spelling_.push_back(is_quantized(v.type) ? v.type.element : "");
      if (is_quantized(v.type)) v.type.element = stored(v.type);
    }
    for (Function& f : m_.functions) {
      block(f.body);
      for (Type& t : f.results)
        if (is_quantized(t)) t.element = stored(t);
    }
  }
  Module take() { return std::move(m_); }
  static bool is_quantized(const Type& t) { return t.is_tensor && t.element.starts_with("!quant."); }

 private:
  // An unsupported type stays as it is; the operation that creates it is refused.
  static std::string stored(const Type& t) {
    try {
      const auto q = quantization_of(t.element);
      return q ? q->storage : t.element;
    } catch (const Error&) {
      return t.element;
    }
  }
  const std::string& spelling(ValueId v) const {
    static const std::string none;
    const auto at = static_cast<std::size_t>(v);
    return at < spelling_.size() ? spelling_[at] : none;
  }
  bool quantized(ValueId v) const { return !spelling(v).empty(); }

  void block(Block& b) {
    std::vector<Operation> made;
    for (Operation& op : b.operations) operation(std::move(op), made);
    b.operations = std::move(made);
  }
  // Returns true if all quantised values have one type, so that their integers may be moved.
  bool one_type(const Operation& op) const {
    std::set<std::string> all;
    for (const ValueId v : op.operands)
      if (quantized(v)) all.insert(spelling(v));
    for (const ValueId v : op.results) all.insert(spelling(v));
    return all.size() == 1 && all.begin()->find('{') == std::string::npos;
  }

  void operation(Operation op, std::vector<Operation>& made) {
    const auto is_one = [&](ValueId v) { return quantized(v); };
    for (Block& b : op.regions) block(b);
    const bool touches = std::ranges::any_of(op.operands, is_one) || std::ranges::any_of(op.results, is_one);
    const bool converts = op.name == "stablehlo.uniform_quantize" || op.name == "stablehlo.uniform_dequantize";
    if (!converts && (!touches || keeps_stored(op) || (moves(op) && one_type(op))))
      return made.push_back(std::move(op));
    for (ValueId& v : op.operands)
      if (quantized(v)) v = between(kDequantize, v, spelling(v), op.at, made);
    std::vector<Operation> behind;
    for (ValueId& v : op.results)
      if (quantized(v)) {
        const ValueId number = m_.value(expressed(v));
        behind.push_back(step(kQuantize, number, v, spelling(v), op.at));
        v = number;
      }
    made.push_back(std::move(op));
    std::ranges::move(behind, std::back_inserter(made));
  }
  Type expressed(ValueId v) const {
    Type t = m_.values[v].type;
    try {
      if (const auto q = quantization_of(spelling(v))) t.element = q->expressed;
    } catch (const Error&) {  // reported by the step itself
    }
    return t;
  }
  ValueId between(const char* name, ValueId from, const std::string& type, Place at, std::vector<Operation>& made) {
    const ValueId to = m_.value(expressed(from));
    made.push_back(step(name, from, to, type, at));
    return to;
  }
  static Operation step(const char* name, ValueId from, ValueId to, const std::string& type, Place at) {
    Attribute a;
    a.kind = Attribute::Kind::String;
    a.text = type;
    return {.name = name, .operands = {from}, .results = {to}, .attributes = {{"type", a}}, .regions = {}, .at = at};
  }

  Module m_;
  std::vector<std::string> spelling_;  // text of each value's quantised type; empty: another type
};

// ---- rules --------------------------------------------------------------------------------------------

Quantization quantization(const Call& c) {
  const auto q = quantization_of(c.word("type"));
  if (!q) c.refuse(str_cat(c.word("type"), " is not supported"));
  if (q->axis >= c.x().rank()) c.refuse(str_cat("has scales along axis ", q->axis, " of ", lc::str(c.x().shape())));
  return *q;
}
// Returns one number for each index along the axis, or one for all, in x's shape.
Tensor spread(const Call& c, const Quantization& q, const std::vector<double>& v, DType type) {
  const Shape& s = c.x().shape();
  if (q.axis < 0) return full(c.graph(), s, v[0], type);
  const auto axis = static_cast<std::size_t>(q.axis);
  if (!(s[axis] == Dim(static_cast<std::int64_t>(v.size()))))
    c.refuse(str_cat("has ", v.size(), " scales along an axis of ", s[axis].str()));
  Attribute a;
  a.kind = Attribute::Kind::Dense;
  a.type = {.element = std::string(element_of(type)), .shape = {static_cast<std::int64_t>(v.size())}};
  a.data.resize(v.size() * size_of(type));
  for (std::size_t k = 0; k < v.size(); ++k) store_f64(a.data.data(), type, k, v[k]);
  Shape along(s.size(), 1);
  along[axis] = s[axis];
  return c.reader.constant(a).reshape(along).expand(s);
}
Tensor scales(const Call& c, const Quantization& q, DType type) { return spread(c, q, q.scales, type); }
Tensor zero_points(const Call& c, const Quantization& q, DType type) {
  return spread(c, q, {q.zero_points.begin(), q.zero_points.end()}, type);
}

// Computes (stored - zero_point) * scale.
std::vector<Tensor> dequantize(const Call& c) {
  const Quantization q = quantization(c);
  const DType type = *dtype_of(q.expressed);
  const Tensor off = prim::cast(c.x(), DType::I64) - zero_points(c, q, DType::I64);
  return {prim::mul(prim::cast(off, type), scales(c, q, type))};
}
// Computes x / scale + zero_point, clamped, rounded to even.
std::vector<Tensor> quantize(const Call& c) {
  const Quantization q = quantization(c);
  const DType type = *dtype_of(q.expressed);
  if (c.x().dtype() != type) c.refuse(str_cat("takes ", q.expressed, ", not ", name(c.x().dtype())));
  const Tensor scaled = prim::add(prim::div(c.x(), scales(c, q, type)), zero_points(c, q, type));
  const Tensor within = clamp(scaled, static_cast<double>(q.least), static_cast<double>(q.most));
  return {prim::cast(round(within), *dtype_of(q.storage))};
}
std::vector<Tensor> same(const Call& c) { return {c.x()}; }

}  // namespace

bool has_quantized(const Module& m) {
  return std::ranges::any_of(m.values, [](const Value& v) { return Expander::is_quantized(v.type); });
}
Module expand_quantized(Module m) { return Expander(std::move(m)).take(); }

void add_quantized(Rules& r) {
  r[kDequantize] = dequantize;
  r[kQuantize] = quantize;
  // Their work is done by the steps inserted before or after them.
  r["stablehlo.uniform_quantize"] = same;
  r["stablehlo.uniform_dequantize"] = same;
}

}  // namespace lc::stablehlo
