#include "lightcone/stablehlo/write/builder.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "lightcone/base/error.h"
#include "lightcone/stablehlo/write/index.h"

namespace lc::stablehlo {
namespace {

std::size_t bytes_of(std::string_view element) {
  if (const auto t = dtype_of(element)) return size_of(*t);
  throw Error("export_stablehlo", str_cat("a constant of ", element, ", whose size is unknown"));
}

// Removes operations whose results nothing reads. No operation written here has another effect, and no region reads
// values from outside of it.
std::vector<Operation> without_unread(std::vector<Operation> all) {
  std::set<ValueId> read;
  std::vector<Operation> kept;
  for (; !all.empty(); all.pop_back()) {  // from the last one, which returns
    Operation& o = all.back();
    const bool needed = kept.empty() || std::ranges::any_of(o.results, [&](ValueId v) { return read.contains(v); });
    if (!needed) continue;
    read.insert(o.operands.begin(), o.operands.end());
    kept.push_back(std::move(o));
  }
  std::ranges::reverse(kept);
  return kept;
}

}  // namespace

Attribute flag(bool v) {
  Attribute a;
  a.kind = Attribute::Kind::Bool, a.integer = v;
  return a;
}

Attribute whole(std::int64_t v, std::string element) {
  Attribute a;
  a.kind = Attribute::Kind::Integer, a.integer = v, a.type.element = std::move(element);
  return a;
}

Attribute integers(Sizes v) {
  Attribute a;
  a.kind = Attribute::Kind::Integers, a.integers = std::move(v), a.type.element = "i64";
  return a;
}

Attribute bools(const std::vector<bool>& v) {
  Attribute a = integers({v.begin(), v.end()});
  a.type.element = "i1";
  return a;
}

Attribute dense_pairs(const Sizes& v) {
  Attribute a;
  a.kind = Attribute::Kind::Dense, a.type = {true, "i64", {static_cast<std::int64_t>(v.size() / 2), 2}};
  a.data.resize(v.size() * sizeof(std::int64_t));
  for (std::size_t k = 0; k < v.size(); ++k) store_i64(a.data.data(), DType::I64, k, v[k]);
  return a;
}

Attribute enumerated(std::string_view name, std::string_view text) {
  Attribute a;
  a.kind = Attribute::Kind::Enum, a.name = name, a.text = text;
  return a;
}

bool is_float_element(std::string_view element) { return element.starts_with('f') || element.starts_with("bf"); }
bool is_unsigned_element(std::string_view element) { return element == "i1" || element.starts_with("ui"); }

Block Builder::block_of(std::vector<ValueId> arguments, const std::function<std::vector<ValueId>()>& write,
                        std::string_view terminator) {
  Scope outside = std::exchange(scope_, {});
  std::vector<ValueId> results = write();
  operation(terminator, std::move(results), {});
  scope_ = std::exchange(outside, std::move(scope_));
  return {std::move(arguments), without_unread(std::move(outside.operations))};
}

Block Builder::block(const std::vector<Type>& arguments,
                     const std::function<std::vector<ValueId>(const std::vector<ValueId>&)>& write,
                     std::string_view terminator) {
  std::vector<ValueId> values;
  for (const Type& t : arguments) values.push_back(module_.value(t));
  return block_of(
      values, [&] { return write(values); }, terminator);
}

Block Builder::combining(std::string_view element, std::string_view combine) {
  const Type scalar{.element = std::string(element)};
  return block({scalar, scalar},
               [&](const std::vector<ValueId>& v) { return std::vector{binary(combine, v[0], v[1])}; });
}

std::vector<ValueId> Builder::operation(std::string_view name, std::vector<ValueId> operands, std::vector<Type> results,
                                        AttributeList attributes, std::vector<Block> regions) {
  Operation o;
  o.name = name;
  o.operands = std::move(operands);
  for (Type& t : results) o.results.push_back(module_.value(std::move(t)));
  o.attributes = std::move(attributes);
  o.regions = std::move(regions);
  o.where = OpScope::current();
  std::vector<ValueId> made = o.results;
  scope_.operations.push_back(std::move(o));
  return made;
}

ValueId Builder::one(std::string_view name, std::vector<ValueId> operands, Type result, AttributeList attributes,
                     std::vector<Block> regions) {
  return operation(name, std::move(operands), {std::move(result)}, std::move(attributes), std::move(regions))[0];
}

ValueId Builder::constant(std::string_view element, const Sizes& shape, std::vector<std::byte> data) {
  const auto [at, is_new] = scope_.constants.try_emplace({std::string(element), shape, data}, ValueId{0});
  if (!is_new) return at->second;
  if (is_open(shape)) return at->second = broadcast(constant(element, {}, std::move(data)), shape, {});
  Attribute a;
  a.kind = Attribute::Kind::Dense, a.type = {true, std::string(element), shape};
  a.splat = true;
  if (!is_empty(shape)) a.data = std::move(data);
  const Type type = a.type;
  return at->second = one("stablehlo.constant", {}, type, {{"value", std::move(a)}});
}

ValueId Builder::splat(std::string_view element, const Sizes& shape, double v) {
  const auto t = dtype_of(element);
  if (!t) return splat_whole(element, shape, static_cast<std::int64_t>(v));
  std::vector<std::byte> data(size_of(*t));
  store_f64(data.data(), *t, 0, v);
  return constant(element, shape, std::move(data));
}

ValueId Builder::splat_whole(std::string_view element, const Sizes& shape, std::int64_t v) {
  if (is_float_element(element)) return splat(element, shape, static_cast<double>(v));
  std::vector<std::byte> data(bytes_of(element));
  if (element == "i1") v = v != 0;
  for (std::size_t k = 0; k < data.size(); ++k)
    data[k] = static_cast<std::byte>(static_cast<std::uint64_t>(v) >> (8 * k) & 255);
  return constant(element, shape, std::move(data));
}

ValueId Builder::scalar(std::int64_t size) {
  if (!is_open(size)) return splat_whole("i64", {}, size);
  if (const auto known = scope_.scalars.find(size); known != scope_.scalars.end()) return known->second;
  return scope_.scalars[size] = write_size(*this, sizes_.dim(size));
}

ValueId Builder::list(const Sizes& s) {
  if (const auto known = scope_.lists.find(s); known != scope_.lists.end()) return known->second;
  std::vector<ValueId> parts;
  for (const std::int64_t n : s) parts.push_back(is_open(n) ? reshape(scalar(n), {1}) : splat_whole("i64", {1}, n));
  return scope_.lists[s] = concatenate(parts, 0);
}

ValueId Builder::like_size(ValueId x, std::int64_t size) {
  if (!is_open(size)) return like_whole(x, size);
  return broadcast(convert(scalar(size), element(x)), shape(x), {});
}

ValueId Builder::iota(std::string_view element, const Sizes& shape, std::size_t axis) {
  const Type type{true, std::string(element), shape};
  AttributeList along{{"iota_dimension", whole(static_cast<std::int64_t>(axis))}};
  if (is_open(shape)) return one("stablehlo.dynamic_iota", {list(shape)}, type, std::move(along));
  return one("stablehlo.iota", {}, type, std::move(along));
}

ValueId Builder::compare(ValueId a, ValueId b, std::string_view direction) {
  const std::string& e = element(a);
  const std::string_view type = is_float_element(e) ? "FLOAT" : is_unsigned_element(e) ? "UNSIGNED" : "SIGNED";
  return one("stablehlo.compare", {a, b}, {true, "i1", shape(a)},
             {{"comparison_direction", enumerated("comparison_direction", direction)},
              {"compare_type", enumerated("comparison_type", type)}});
}

ValueId Builder::convert(ValueId x, std::string_view to) {
  if (element(x) == to) return x;
  if (to == "i1") return compare(x, like_whole(x, 0), "NE");
  // The graph's casts saturate, whereas StableHLO's turn too large numbers into NaN.
  if (to == "f8E4M3FN" && (is_float_element(element(x)) || size_of(*dtype_of(element(x))) > 1))
    x = one("stablehlo.clamp", {splat(element(x), {}, -448), x, splat(element(x), {}, 448)},
            {true, element(x), shape(x)});
  return one("stablehlo.convert", {x}, {true, std::string(to), shape(x)});
}

ValueId Builder::bitcast(ValueId x, std::string_view to) {
  return element(x) == to ? x : one("stablehlo.bitcast_convert", {x}, {true, std::string(to), shape(x)});
}

ValueId Builder::reshape(ValueId x, const Sizes& to) {
  if (const auto from = scope_.reshaped.find(x); from != scope_.reshaped.end()) x = from->second;
  if (shape(x) == to) return x;
  const Type type{true, element(x), to};
  const ValueId y =
      is_open(to) ? one("stablehlo.dynamic_reshape", {x, list(to)}, type) : one("stablehlo.reshape", {x}, type);
  scope_.reshaped[y] = x;
  return y;
}

ValueId Builder::transpose(ValueId x, const std::vector<std::size_t>& permutation) {
  if (std::is_sorted(permutation.begin(), permutation.end())) return x;
  Sizes to;
  for (const std::size_t a : permutation) to.push_back(shape(x)[a]);
  return one("stablehlo.transpose", {x}, {true, element(x), to},
             {{"permutation", integers({permutation.begin(), permutation.end()})}});
}

ValueId Builder::broadcast(ValueId x, const Sizes& to, const std::vector<std::size_t>& axes) {
  if (shape(x) == to && std::is_sorted(axes.begin(), axes.end())) return x;
  const Type type{true, element(x), to};
  AttributeList where{{"broadcast_dimensions", integers({axes.begin(), axes.end()})}};
  if (is_open(to)) return one("stablehlo.dynamic_broadcast_in_dim", {x, list(to)}, type, std::move(where));
  return one("stablehlo.broadcast_in_dim", {x}, type, std::move(where));
}

ValueId Builder::slice(ValueId x, const Sizes& begin, const Sizes& end, const Sizes& step) {
  Sizes to;
  for (std::size_t i = 0; i < begin.size(); ++i)
    to.push_back(sizes_.of((sizes_.dim(end[i]) - sizes_.dim(begin[i]) + (step[i] - 1)) / Dim(step[i])));
  if (to == shape(x)) return x;
  if (is_open(begin) || is_open(end))
    return one("stablehlo.real_dynamic_slice", {x, list(begin), list(end), list(step)}, {true, element(x), to});
  return one("stablehlo.slice", {x}, {true, element(x), to},
             {{"start_indices", integers(begin)}, {"limit_indices", integers(end)}, {"strides", integers(step)}});
}

ValueId Builder::pad(ValueId x, ValueId value, const Sizes& low, const Sizes& high) {
  Sizes to = shape(x);
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = sizes_.sum(to[i], sizes_.sum(low[i], high[i]));
  const Sizes none(to.size(), 0);
  if (low == none && high == none) return x;
  if (is_open(low) || is_open(high))
    return one("stablehlo.dynamic_pad", {x, value, list(low), list(high), list(none)}, {true, element(x), to});
  return one("stablehlo.pad", {x, value}, {true, element(x), to},
             {{"edge_padding_low", integers(low)},
              {"edge_padding_high", integers(high)},
              {"interior_padding", integers(none)}});
}

ValueId Builder::reverse(ValueId x, const std::vector<std::size_t>& axes) {
  if (axes.empty()) return x;
  return one("stablehlo.reverse", {x}, type(x), {{"dimensions", integers({axes.begin(), axes.end()})}});
}

ValueId Builder::concatenate(const std::vector<ValueId>& parts, std::size_t axis) {
  if (parts.size() == 1) return parts[0];
  Type t = type(parts[0]);
  t.shape[axis] = 0;
  for (const ValueId p : parts) t.shape[axis] = sizes_.sum(t.shape[axis], shape(p)[axis]);
  return one("stablehlo.concatenate", parts, std::move(t), {{"dimension", whole(static_cast<std::int64_t>(axis))}});
}

ValueId Builder::gather(ValueId x, ValueId index, Attribute dimension_numbers, const Sizes& sizes, const Sizes& to) {
  const Type type{true, element(x), to};
  AttributeList how{{"dimension_numbers", std::move(dimension_numbers)}};
  if (!is_open(sizes)) how.push_back({"slice_sizes", integers(sizes)});
  how.push_back({"indices_are_sorted", flag(false)});
  if (is_open(sizes)) return one("stablehlo.dynamic_gather", {x, index, list(sizes)}, type, std::move(how));
  return one("stablehlo.gather", {x, index}, type, std::move(how));
}

ValueId Builder::reduce(ValueId x, ValueId initial, const std::vector<std::size_t>& axes, std::string_view combine) {
  if (axes.empty()) return x;
  Type t{true, element(x), {}};
  for (std::size_t i = 0; i < shape(x).size(); ++i)
    if (std::ranges::find(axes, i) == axes.end()) t.shape.push_back(shape(x)[i]);
  std::vector<Block> body;
  body.push_back(combining(element(x), combine));
  return one("stablehlo.reduce", {x, initial}, std::move(t), {{"dimensions", integers({axes.begin(), axes.end()})}},
             std::move(body));
}

}  // namespace lc::stablehlo
