// Makes a function's arguments inputs of the graph, with the caller's extents in place of '?'.
#include <algorithm>
#include <set>

#include "lightcone/stablehlo/read/reader.h"

namespace lc::stablehlo {
namespace {

bool open(const Type& t) { return std::ranges::find(t.shape, kDynamic) != t.shape.end(); }

// Checks the index of an argument in the options.
void expect_argument(const Function& f, int k, const char* what) {
  const auto n = static_cast<int>(f.body.arguments.size());
  if (k < 0 || k >= n)
    throw Error("stablehlo", str_cat("argument ", k, " is to ", what, ", and @", f.name, " has ", n, " arguments"));
}

bool fits(std::int64_t v, DType t) {
  const auto bits = static_cast<int>(8 * size_of(t));
  if (t == DType::U64) return v >= 0;
  if (bits == 64) return true;
  const bool has_sign = t == DType::I8 || t == DType::I16 || t == DType::I32;
  const std::int64_t most = (std::int64_t{1} << (has_sign ? bits - 1 : bits)) - 1;
  return v <= most && v >= (has_sign ? -most - 1 : 0);
}

}  // namespace

// Returns the type with the shape given by the caller, if there is one.
Type Reader::bound_type(const std::string& name, int k, const Type& t) const {
  const auto given = o_.shapes.find(k);
  if (given == o_.shapes.end()) return t;
  const Integers& s = given->second;
  bool same = t.is_tensor && s.size() == t.shape.size();
  for (std::size_t a = 0; same && a < s.size(); ++a) {
    const std::int64_t most = t.bounds.empty() ? kDynamic : t.bounds[a];
    same = t.shape[a] == kDynamic ? s[a] >= 0 && (most == kDynamic || s[a] <= most) : s[a] == t.shape[a];
  }
  if (!same)
    throw Error("stablehlo",
                str_cat("argument %", name, " of ", str(t), " cannot have the shape ", lc::str(shape_of(s))));
  return {.element = t.element, .shape = s};
}

Tensor Reader::size(const std::string& name, std::int64_t value, const Type& t) {
  const auto dtype = is_scalar(t) ? dtype_of(t.element) : std::nullopt;
  if (!dtype || is_float(*dtype) || *dtype == DType::Bool)
    throw Error("stablehlo", str_cat("argument %", name, " of ", str(t), " cannot be a size: a whole number can"));
  if (!fits(value, *dtype)) throw Error("stablehlo", str_cat("argument %", name, " of ", str(t), " cannot be ", value));
  return full(graph(), {}, value, *dtype);
}

void Reader::inputs(const Function& f) {
  for (const int k : o_.parameters) expect_argument(f, k, "be a parameter");
  for (const auto& [k, shape] : o_.shapes) expect_argument(f, k, "have a shape");
  for (const auto& [k, value] : o_.sizes) expect_argument(f, k, "be a size");
  std::set<std::string> taken;
  for (std::size_t place = 0; place < f.body.arguments.size(); ++place) {
    const auto k = static_cast<int>(place);
    const auto id = static_cast<std::size_t>(f.body.arguments[place]);
    const Value& v = m_.values[id];
    std::string name = v.name.empty() ? str_cat("arg", k) : v.name;
    while (!taken.insert(name).second) name += "_";
    if (const auto value = o_.sizes.find(k); value != o_.sizes.end()) {
      values_[id] = size(name, value->second, v.type);
      program_.inputs.emplace_back();
      continue;
    }
    program_.inputs.push_back(name);
    const Type t = bound_type(name, k, v.type);
    const auto dtype = t.is_tensor ? dtype_of(t.element) : std::nullopt;
    if (!dtype || open(t) || too_large(t.shape)) {
      problem(f.at, str_cat("argument %", name, " of ", str(t),
                            open(t) ? " has extents that are not known: StableHloOptions::shapes gives them numbers"
                                    : " is not supported"));
      continue;
    }
    const bool stays = std::ranges::find(o_.parameters, k) != o_.parameters.end();
    values_[id] = graph().input(name, shape_of(t.shape), *dtype, Tensor::At::current(), stays);
    if (place < f.argument_attributes.size())
      for (const auto& [key, value] : f.argument_attributes[place])
        if (key == "tf.aliasing_output") program_.donated.emplace_back(k, static_cast<int>(value.integer));
  }
}

}  // namespace lc::stablehlo
