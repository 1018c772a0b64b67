// Queries of a module in memory.
#include "lightcone/stablehlo/module.h"

#include <algorithm>

#include "lightcone/base/error.h"

namespace lc::stablehlo {
namespace {

// clang-format off
constexpr std::pair<DType, std::string_view> kElements[] = {
  {DType::F32, "f32"}, {DType::F64, "f64"}, {DType::F16, "f16"}, {DType::BF16, "bf16"},
  {DType::F8E4M3FN, "f8E4M3FN"}, {DType::F8E5M2, "f8E5M2"},
  {DType::I8, "i8"},   {DType::I16, "i16"},  {DType::I32, "i32"},  {DType::I64, "i64"},
  {DType::U8, "ui8"},  {DType::U16, "ui16"}, {DType::U32, "ui32"}, {DType::U64, "ui64"}, {DType::Bool, "i1"},
};
// clang-format on

void count(const Block& b, bool entry, Instructions& all) {
  for (const Operation& o : b.operations) {
    Instructions::Count& c = all.by_name[o.name];
    c.entry += entry, all.all.entry += entry;
    ++c.total, ++all.all.total;
    for (const Block& r : o.regions) count(r, false, all);
  }
}

}  // namespace

std::string str(Place at) { return at.line > 0 ? str_cat("line ", at.line) : str_cat("byte ", at.column); }

std::string str(const Type& t) {
  if (!t.is_tensor) return t.element;
  const auto number = [](std::int64_t d) { return d == kDynamic ? "?" : std::to_string(d); };
  std::string s = "tensor<", bounds;
  for (const std::int64_t d : t.shape) s += number(d) + "x";
  for (const std::int64_t d : t.bounds) bounds += (bounds.empty() ? ", #stablehlo.bounds<" : ", ") + number(d);
  return s + t.element + bounds + (bounds.empty() ? ">" : ">>");
}

std::optional<DType> dtype_of(std::string_view element) {
  for (const auto& [dtype, name] : kElements)
    if (name == element) return dtype;
  return std::nullopt;
}

std::string_view element_of(DType t) {
  const auto* row = std::ranges::find(kElements, t, &std::pair<DType, std::string_view>::first);
  check(row != std::end(kElements), "every element type has a name in StableHLO");
  return row->second;
}

std::size_t memory_of(const Type& t) {
  return sizeof(Type) + t.element.size() + 8 * (t.shape.size() + t.bounds.size());
}
std::size_t memory_of(const Attribute& a) {
  std::size_t m =
      sizeof(Attribute) + a.text.size() + a.name.size() + memory_of(a.type) + 8 * a.integers.size() + a.data.size();
  for (const Attribute& each : a.list) m += memory_of(each);
  for (const auto& [name, each] : a.fields) m += sizeof(NamedAttribute) + name.size() + memory_of(each);
  return m;
}

const Attribute* Operation::find(std::string_view attribute) const {
  for (const auto& [name, value] : attributes)
    if (name == attribute) return &value;
  return nullptr;
}

const Function* Module::function(std::string_view wanted) const {
  for (const Function& f : functions)
    if (f.name == wanted) return &f;
  return nullptr;
}

ValueId Module::value(Type type, std::string value_name) {
  values.push_back({std::move(type), std::move(value_name)});
  return static_cast<ValueId>(values.size() - 1);
}

Instructions instructions(const Module& m) {
  Instructions all;
  for (const Function& f : m.functions) count(f.body, true, all);
  return all;
}

}  // namespace lc::stablehlo
