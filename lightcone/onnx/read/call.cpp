#include "lightcone/onnx/read/call.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <span>

#include "lightcone/io/printable.h"
#include "lightcone/onnx/read/extents.h"

namespace lc::onnx {
namespace {

constexpr const char* kDataDependent = "has a size that depends on data";

std::string operand(std::size_t k) { return str_cat("operand ", k); }

}  // namespace

Graph& Call::graph() const { return importer.graph(); }
void Call::refuse(const std::string& why) const { throw Error("", why); }

// ---- operands -------------------------------------------------------------------------------------

const Value& Call::value(std::size_t k) const {
  if (!has(k)) refuse(str_cat(operand(k), " is missing"));
  return in[k];
}
Tensor Call::x(std::size_t k) const {
  const Value& v = value(k);
  if (v.count) refuse(str_cat(operand(k), " ", kDataDependent));
  if (!v.tensor.defined())
    refuse(str_cat(operand(k), v.sequence              ? " is a sequence"
                               : v.strings || v.labels ? " holds strings, which are not supported"
                                                       : " is an optional without a value"));
  return v.tensor;
}
Tensor Call::optional(std::size_t k) const { return has(k) && !in[k].none ? x(k) : Tensor(); }

std::optional<std::vector<Dim>> Call::known(std::size_t k) const {
  return has(k) ? importer.known().integers(x(k)) : std::nullopt;
}
std::vector<Dim> Call::dims(std::size_t k) const {
  const Tensor t = x(k);
  const auto r = importer.known().integers(t);
  if (!r) refuse(str_cat(operand(k), " depends on data, and sizes cannot"));
  return *r;
}
Integers Call::integers(std::size_t k) const {
  Integers r;
  for (const Dim& d : dims(k)) {
    if (!d.constant())
      refuse(
          str_cat(operand(k), " depends on ", d, ", and has to be a number; give the shapes of inputs when reading"));
    r.push_back(*d.constant());
  }
  return r;
}
std::vector<double> Call::numbers(std::size_t k) const {
  const auto r = importer.known().numbers(x(k));
  if (!r) refuse(str_cat(operand(k), " has to be known when the model is read"));
  return *r;
}
std::int64_t Call::integer(std::size_t k) const {
  const Integers r = integers(k);
  if (r.size() != 1) refuse(str_cat(operand(k), " has ", r.size(), " elements, not one"));
  return r[0];
}

Dim Call::dim(std::size_t k) const {
  const std::vector<Dim> r = dims(k);
  if (r.size() != 1) refuse(str_cat(operand(k), " has ", r.size(), " elements, not one"));
  return r[0];
}
double Call::number(std::size_t k) const {
  const std::vector<double> r = numbers(k);
  if (r.size() != 1) refuse(str_cat(operand(k), " has ", r.size(), " elements, not one"));
  return r[0];
}

// ---- attributes -----------------------------------------------------------------------------------

const Attribute* Call::find(std::string_view name) const {
  for (const Attribute& a : node.attributes) {
    if (a.name != name) continue;
    read_.insert(a.name);
    return a.reference.empty() ? &a : importer.bound(a.reference);
  }
  return nullptr;
}
const Attribute* Call::find(std::string_view name, Attribute::Type type) const {
  const Attribute* a = find(name);
  if (a && a->type != type) refuse(str_cat("its attribute ", name, " has another type than expected"));
  return a;
}
std::optional<std::string_view> Call::unread() const {
  for (const Attribute& a : node.attributes)
    if (!read_.contains(a.name)) return a.name;
  return std::nullopt;
}

std::int64_t Call::integer(std::string_view name) const {
  const Attribute* a = find(name, Attribute::Type::Int);
  if (!a) refuse(str_cat("has no attribute ", name));
  return a->i;
}
std::int64_t Call::integer(std::string_view name, std::int64_t otherwise) const {
  const Attribute* a = find(name, Attribute::Type::Int);
  return a ? a->i : otherwise;
}
double Call::number(std::string_view name, double otherwise) const {
  const Attribute* a = find(name, Attribute::Type::Float);
  return a ? a->f : otherwise;
}
std::string_view Call::text(std::string_view name, std::string_view otherwise) const {
  const Attribute* a = find(name, Attribute::Type::String);
  return a ? a->s : otherwise;
}
Integers Call::integers(std::string_view name) const {
  const Attribute* a = find(name, Attribute::Type::Ints);
  if (!a) refuse(str_cat("has no attribute ", name));
  return a->ints;
}
Integers Call::integers(std::string_view name, const Integers& otherwise) const {
  const Attribute* a = find(name, Attribute::Type::Ints);
  return a ? a->ints : otherwise;
}
std::vector<double> Call::numbers(std::string_view name, const std::vector<double>& otherwise) const {
  const Attribute* a = find(name, Attribute::Type::Floats);
  return a ? std::vector<double>(a->floats.begin(), a->floats.end()) : otherwise;
}
std::vector<std::string_view> Call::texts(std::string_view name) const {
  const Attribute* a = find(name, Attribute::Type::Strings);
  return a ? a->strings : std::vector<std::string_view>();
}
const TensorData& Call::tensor(std::string_view name) const {
  const Attribute* a = find(name, Attribute::Type::Tensor);
  if (!a || a->tensors.empty()) refuse(str_cat("has no attribute ", name));
  return a->tensors[0];
}
const GraphData& Call::graph(std::string_view name) const {
  const Attribute* a = find(name, Attribute::Type::Graph);
  if (!a || a->graphs.empty()) refuse(str_cat("has no attribute ", name));
  return *a->graphs[0];
}
ElementType Call::element_type(std::string_view name, ElementType otherwise) const {
  const std::int64_t number = integer(name, static_cast<int>(otherwise));
  const ElementType type = element_type_of(number);
  if (number != 0 && type == ElementType::Undefined)
    refuse(str_cat("its attribute ", name, " is ", number, ", which is no element type that is known"));
  return type;
}
DType Call::dtype(std::string_view name, ElementType otherwise) const {
  const ElementType type = element_type(name, otherwise);
  const auto dtype = dtype_of(type);
  if (!dtype) refuse(str_cat("has elements of type ", onnx::name(type), ", which are not supported"));
  return *dtype;
}

int Call::wrap(std::int64_t axis, int rank) const {
  if (axis < -rank || axis >= rank) refuse(str_cat("has axis ", axis, " for a tensor with ", rank, " axes"));
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}
int Call::axis(std::string_view name, std::int64_t otherwise, int rank) const {
  return wrap(integer(name, otherwise), rank);
}
std::vector<int> Call::wrap(const Integers& axes, int rank) const {
  std::vector<int> r;
  for (const std::int64_t a : axes) r.push_back(wrap(a, rank));
  std::ranges::sort(r);
  if (std::ranges::adjacent_find(r) != r.end()) refuse("names an axis twice");
  return r;
}

// ---- words that several rules use -----------------------------------------------------------------

Shape broadcast_shape(Call& c, const std::vector<Tensor>& tensors) {
  std::size_t rank = 0;
  for (const Tensor& t : tensors) rank = std::max(rank, static_cast<std::size_t>(t.rank()));
  Shape r(rank, 1);
  for (const Tensor& t : tensors) {
    const Shape s = t.shape();
    for (std::size_t k = 0; k < s.size(); ++k) {
      Dim& to = r[rank - s.size() + k];
      if (s[k] == Dim(1) || s[k] == to) continue;
      if (to == Dim(1)) to = s[k];
      else if (provably_different(s[k], to)) c.refuse(str_cat("its operands do not broadcast: ", versus(s[k], to)));
      else c.importer.same_extent(s[k], to);
    }
  }
  return r;
}
std::vector<Tensor> broadcast(Call& c, std::vector<Tensor> tensors) {
  const Shape s = broadcast_shape(c, tensors);
  for (Tensor& t : tensors) t = expand_to(c, t, s);
  return tensors;
}
Tensor expand_to(Call& c, const Tensor& t, const Shape& shape) {
  Shape from = t.shape();
  if (from.size() > shape.size()) c.refuse(str_cat(str(from), " does not broadcast to ", str(shape)));
  from.insert(from.begin(), shape.size() - from.size(), 1);
  for (std::size_t k = 0; k < from.size(); ++k)
    if (!(from[k] == Dim(1)) && !(from[k] == shape[k])) c.importer.same_extent(from[k], shape[k]);
  return from == shape && t.shape() == shape ? t : t.reshape(from).expand(shape);
}
Tensor tensor_of(Call& c, const std::vector<Dim>& dims, DType dtype) {
  constexpr std::size_t kShort = 16;  // as graph code
  if (dims.size() > kShort && std::ranges::all_of(dims, [](const Dim& d) { return d.is_constant(); })) {
    const auto numbers = std::make_shared<std::vector<std::int64_t>>();
    for (const Dim& d : dims) numbers->push_back(*d.constant());
    const auto count = static_cast<std::int64_t>(numbers->size());
    TensorData data;
    data.type = ElementType::Int64, data.shape = {count};
    data.bytes = std::as_bytes(std::span(*numbers)), data.owner = numbers;
    return prim::cast(c.importer.constant(data, {}).tensor, dtype);
  }
  c.importer.spend(static_cast<std::int64_t>(dims.size() / 4));
  return value_tensor(c.graph(), dims, {Dim(static_cast<std::int64_t>(dims.size()))}, dtype);
}
std::vector<int> all_axes(int rank) {
  std::vector<int> r(static_cast<std::size_t>(rank));
  for (int k = 0; k < rank; ++k) r[static_cast<std::size_t>(k)] = k;
  return r;
}
std::int64_t fixed(const Call& c, const Dim& d, const char* what) {
  const auto n = d.constant();
  if (!n) c.refuse(str_cat(what, " is ", d, ", and has to be a number; give the shapes of inputs when reading"));
  return *n;
}
std::vector<int> fixed(const Call& c, const Shape& s, const char* what) {
  std::vector<int> r;
  for (const Dim& d : s) r.push_back(narrow_int(c, fixed(c, d, what), what));
  return r;
}
int narrow_int(const Call& c, std::int64_t n, const char* what) {
  if (n < std::numeric_limits<int>::min() || n > std::numeric_limits<int>::max())
    c.refuse(str_cat(what, " is ", n, ", which is too large"));
  return static_cast<int>(n);
}

}  // namespace lc::onnx
