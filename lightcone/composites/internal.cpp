#include "lightcone/composites/internal.h"

#include <algorithm>

namespace lc::definitions {

void refuse(const std::string& problem) { throw Error("", problem); }

std::string shapes(OperandTypes in) {
  std::string s;
  for (const TensorType& t : in) s += (s.empty() ? "" : " and ") + str(t.shape);
  return s;
}

void axis_exists(int axis, const Shape& s) {
  if (axis < 0 || axis >= static_cast<int>(s.size())) refuse(str_cat("axis ", axis, " is not an axis of ", str(s)));
}

void along_axis(OperandTypes in, int axis) {
  const Shape &data = in[0].shape, &index = in[1].shape;
  axis_exists(axis, data);
  if (data.size() != index.size()) refuse(shapes(in) + " have different ranks");
  for (std::size_t i = 0; i < data.size(); ++i)
    if (static_cast<int>(i) != axis && !(data[i] == index[i]))
      refuse(str_cat(shapes(in), " differ at axis ", i, ": ", versus(data[i], index[i])));
}

void integer_index(const TensorType& t) {
  if (is_float(t.dtype) || t.dtype == DType::Bool) refuse("the index must be an integer");
}

void same_types(const TensorType& base, const TensorType& source) {
  if (source.dtype != base.dtype) refuse("base and source have different element types");
}

Tensor hits(const Tensor& index, int axis, const Dim& n) {
  Tensor j = index.unsqueeze(axis + 1);
  Shape s = j.shape();
  s[axis + 1] = n;
  j = j.expand(s);
  return equal(j, index_of(j, axis + 1, j.dtype()));
}

std::vector<Tensor> no_vjp(const VjpCall& c) { return std::vector<Tensor>(c.in.size()); }

Deviations shift_at(const Value& v, std::size_t k) { return v.shift.empty() ? kNoDeviation : v.shift[k]; }

void copy_element(const Value& a, std::size_t from, Value& b, std::size_t to) {
  if (is_float(b.dtype)) b.f[to] = a.f[from];
  else b.i[to] = a.i[from];
  if (!b.shift.empty()) b.shift[to] = shift_at(a, from);
}

bool sampled(lc::Operands in) {
  return std::any_of(in.begin(), in.end(), [](const Value* v) { return !v->shift.empty(); });
}

std::shared_ptr<const ReferenceRule> reference(Value (*f)(const Evaluation& e)) {
  return std::make_shared<const ReferenceRule>(
      ReferenceRule{[f](const Evaluation& e) { return std::vector<Value>{f(e)}; }});
}

Tensor along(const CompositeRef& c, std::vector<Tensor> in, const Operand& first, int axis,
             std::vector<Attributes::Entry> more) {
  const OpScope scope(c->name.c_str(), first.at);
  more.insert(more.begin(), {"axis", wrap_axis(axis, first->rank(), first->shape(), c->name.c_str())});
  return call(c, std::move(in), Attributes(std::move(more)), first.at)[0];
}

}  // namespace lc::definitions
