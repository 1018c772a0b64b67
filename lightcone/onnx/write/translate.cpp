#include "lightcone/onnx/write/translate.h"

#include <algorithm>

#include "lightcone/base/error.h"

namespace lc::onnx {

const stablehlo::Attribute& attribute(const Operation& o, std::string_view name) {
  const stablehlo::Attribute* a = o.find(name);
  check(a != nullptr, "an operation lacks an attribute");
  return *a;
}

Extents integers_of(const Operation& o, std::string_view name) {
  const stablehlo::Attribute& a = attribute(o, name);
  if (a.kind != stablehlo::Attribute::Kind::Dense) return a.integers;
  Extents all;
  for (std::size_t k = 0; k < a.data.size() / sizeof(std::int64_t); ++k)
    all.push_back(load_i64(a.data.data(), DType::I64, k));
  return all;
}

Extents field_of(const stablehlo::Attribute& a, std::string_view name) {
  const auto f = std::ranges::find(a.fields, name, [](const auto& field) { return std::string_view(field.first); });
  return f == a.fields.end() ? Extents() : f->second.integers;
}

std::string_view combiner(const Operation& o) {
  check(!o.regions.empty() && !o.regions[0].operations.empty(), "a reduction has no body");
  return o.regions[0].operations[0].name;
}

Ref Translator::operator[](ValueId v) const {
  const auto r = refs_.find(v);
  check(r != refs_.end(), "a value is read before it is written");
  return r->second;
}

void Translator::operation(const Operation& o) {
  static const std::map<std::string_view, Handler> handlers = [] {
    std::map<std::string_view, Handler> all;
    for (const auto entries : {elementwise_entries(), shape_entries(), reduction_entries(), product_entries(),
                               index_entries(), loop_entries(), named_entries()})
      for (const Entry& e : entries) all.emplace(e.name, e.write);
    return all;
  }();
  const auto h = handlers.find(o.name);
  if (h == handlers.end()) throw Error("export_onnx", str_cat(o.name, " has no counterpart in ONNX"));
  h->second(*this, o);
}

Ref Translator::origin(Ref x) const {
  const auto it = reshaped.find(x);
  return it == reshaped.end() ? x : it->second;
}

Ref Translator::reshape(Ref x, const Type& type, Ref list) {
  if (const Ref s = e_.respread(x, type, list); s >= 0) return s;
  if (const auto it = reshaped.find(x); it != reshaped.end()) x = it->second;
  if (e_.shape(x) == type.shape && std::ranges::count(type.shape, stablehlo::kDynamic) < 2) return x;
  const auto open = std::ranges::count(type.shape, stablehlo::kDynamic);
  const bool needs_list = open > 1 || (open == 1 && std::ranges::find(type.shape, 0) != type.shape.end());
  const Ref y = e_.value(e_.reshape(e_.name(x), type.shape, needs_list ? e_.name(list) : std::string()), type);
  reshaped[y] = x;
  return y;
}

Ref Translator::transpose(Ref x, std::vector<std::size_t> permutation, const Type& type) {
  if (const auto it = transposed.find(x); it != transposed.end()) {
    for (std::size_t& p : permutation) p = it->second.permutation[p];
    x = it->second.x;
  }
  if (std::ranges::is_sorted(permutation)) return x;
  const Ref y = e_.value(e_.transpose(e_.name(x), permutation), type);
  transposed[y] = {x, std::move(permutation)};
  return y;
}

std::vector<Ref> Translator::block(const Block& b) {
  for (const Operation& o : b.operations) {
    if (&o == &b.operations.back()) break;
    const OpScope scope(o.where);
    try {
      operation(o);
    } catch (const Error& e) {
      const std::string at = o.where.known() ? str_cat(" (", o.where.op, *o.where.op ? " at " : "", o.where, ")") : "";
      std::string sentence = str_cat(e.problem(), at);
      if (std::ranges::find(unsaid_, sentence) == unsaid_.end()) unsaid_.push_back(std::move(sentence));
      for (const ValueId v : o.results) give(v, e_.value(e_.fresh(), type(v)));
    }
  }
  std::vector<Ref> results;
  for (const ValueId v : b.operations.back().operands) results.push_back((*this)[v]);
  return results;
}

void Translator::require_all_said() const {
  if (unsaid_.empty()) return;
  std::string all = "not all of the graph can be said in ONNX:";
  for (const std::string& s : unsaid_) all += "\n  " + s;
  throw Error("export_onnx", all);
}

}  // namespace lc::onnx
