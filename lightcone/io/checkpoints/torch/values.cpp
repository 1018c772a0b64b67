#include "lightcone/io/checkpoints/torch/values.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "lightcone/io/printable.h"

namespace lc::io::torch {
namespace {

constexpr std::size_t kSmallIntegers = 256;
// A deque takes whole blocks and a pointer for each of them.
constexpr std::size_t kInDeque = 8;
constexpr std::size_t kKeysLookedAt = 256;  // a module has its own attributes among the first twenty

constexpr ElementType kTypes[] = {
    {"F64", "float64", "DoubleStorage", 8, DType::F64},
    {"F32", "float32", "FloatStorage", 4, DType::F32},
    {"F16", "float16", "HalfStorage", 2, DType::F16},
    {"BF16", "bfloat16", "BFloat16Storage", 2, DType::BF16},
    {"I64", "int64", "LongStorage", 8, DType::I64},
    {"I32", "int32", "IntStorage", 4, DType::I32},
    {"I16", "int16", "ShortStorage", 2, DType::I16},
    {"I8", "int8", "CharStorage", 1, DType::I8},
    {"U8", "uint8", "ByteStorage", 1, DType::U8},
    {"BOOL", "bool", "BoolStorage", 1, DType::Bool},
    {"U16", "uint16", "", 2, DType::U16},
    {"U32", "uint32", "", 4, DType::U32},
    {"U64", "uint64", "", 8, DType::U64},
    {"F8_E4M3", "float8_e4m3fn", "", 1, DType::F8E4M3FN},
    {"F8_E5M2", "float8_e5m2", "", 1, DType::F8E5M2},
    {"F8_E4M3FNUZ", "float8_e4m3fnuz", "", 1},
    {"F8_E5M2FNUZ", "float8_e5m2fnuz", "", 1},
    {"F8_E8M0", "float8_e8m0fnu", "", 1},
    {"C32", "complex32", "ComplexHalfStorage", 4, std::nullopt, 2},
    {"C64", "complex64", "ComplexFloatStorage", 8, std::nullopt, 4},
    {"C128", "complex128", "ComplexDoubleStorage", 16, std::nullopt, 8},
    {"QINT8", "qint8", "QInt8Storage", 1},
    {"QUINT8", "quint8", "QUInt8Storage", 1},
    {"QINT32", "qint32", "QInt32Storage", 4},
};
constexpr ElementType kUntyped{"U8", "uint8", "UntypedStorage", 1, DType::U8};

const ElementType* found(auto matches) {
  const auto row = std::ranges::find_if(kTypes, matches);
  return row == std::end(kTypes) ? nullptr : row;
}

}  // namespace

const ElementType* type_of_storage(std::string_view name) {
  if (name == kUntyped.storage_name) return &kUntyped;
  return name.empty() ? nullptr : found([&](const ElementType& t) { return t.storage_name == name; });
}
const ElementType* type_of_dtype(std::string_view name) {
  return found([&](const ElementType& t) { return t.dtype_name == name; });
}
const ElementType* type_of(DType type) {
  return found([&](const ElementType& t) { return t.dtype == type; });
}

Values::Values(std::string where, Budget& budget) : where_(std::move(where)), budget_(budget) {
  add({.kind = Kind::None});
  add({.kind = Kind::Bool, .integer = 0});
  add({.kind = Kind::Bool, .integer = 1});
  add({.kind = Kind::None});
  add({.kind = Kind::Tuple});
}

void Values::wrong(std::string_view what) const { throw file_error("load", where_, what); }

Id Values::add(Value v) {
  if (values_.size() >= std::numeric_limits<Id>::max()) wrong("its pickle has more values than can be counted");
  budget_.take(sizeof(Value) + kInDeque);
  values_.push_back(v);
  return static_cast<Id>(values_.size() - 1);
}

Id Values::container(Kind kind, std::span<const Id> items) {
  if (kind == Kind::Tuple && items.empty()) return kEmptyTuple;
  const Id id = add({.kind = kind});
  for (Id item : items) push(id, item);
  return id;
}

Id Values::integer(std::int64_t v) {
  const bool small = v >= 0 && v < static_cast<std::int64_t>(kSmallIntegers);
  if (!small) return add({.kind = Kind::Int, .integer = v});
  while (small_.size() <= static_cast<std::size_t>(v))
    append(small_, add({.kind = Kind::Int, .integer = static_cast<std::int64_t>(small_.size())}), budget_);
  return small_[static_cast<std::size_t>(v)];
}

Id Values::real(double v) { return add({.kind = Kind::Real, .integer = std::bit_cast<std::int64_t>(v)}); }

Id Values::text(Kind kind, std::string_view view) {
  if (view.size() > std::numeric_limits<std::uint32_t>::max()) wrong("a text of its pickle has more than 4 GB");
  return add({.kind = kind, .length = static_cast<std::uint32_t>(view.size()), .text = view.data()});
}

Id Values::object(Id of, Id arguments) {
  const Id id = add({.kind = Kind::Object, .of = of});
  push(id, arguments);
  push(id, kNone);
  return id;
}

Id Values::tensor(TensorRecord t) {
  budget_.take(sizeof(TensorRecord) + kInDeque + 16 * t.shape.size());
  tensors.push_back(std::move(t));
  return add({.kind = Kind::Tensor, .integer = static_cast<std::int64_t>(tensors.size() - 1)});
}

Id Values::storage(StorageRecord s) {
  budget_.take(sizeof(StorageRecord) + kInDeque);
  storages.push_back(s);
  return add({.kind = Kind::Storage, .integer = static_cast<std::int64_t>(storages.size() - 1)});
}

void Values::push(Id container, Id item) {
  Value& v = values_[container];
  if (v.items == 0) {
    budget_.take(sizeof(std::vector<Id>) + kInDeque);
    lists_.emplace_back();
    v.items = static_cast<std::uint32_t>(lists_.size());
  }
  append(lists_[v.items - 1], item, budget_);
}

std::string_view Values::keep(std::string s) {
  budget_.take(sizeof(std::string) + kInDeque + s.capacity());
  return texts_.emplace_back(std::move(s));
}

std::span<const Id> Values::items(Id id) const {
  const std::uint32_t n = values_[id].items;
  return n ? std::span<const Id>(lists_[n - 1]) : std::span<const Id>();
}

void Values::set_state(Id object, Id state) { lists_[values_[object].items - 1][1] = state; }

double Values::real_number(Id id) const { return std::bit_cast<double>(values_[id].integer); }

std::string_view Values::text(Id id) const {
  const Value& v = values_[id];
  const bool has = v.kind == Kind::Text || v.kind == Kind::Bytes || v.kind == Kind::BigInt || v.kind == Kind::Global;
  return has ? std::string_view(v.text, v.length) : std::string_view();
}

std::optional<std::int64_t> Values::whole(Id id) const {
  const Value& v = values_[id];
  if (v.kind != Kind::Int && v.kind != Kind::Bool) return std::nullopt;
  return v.integer;
}

Id Values::at(Id dict, std::string_view key) const {
  if (!is(dict, Kind::Dict)) return kNoKey;
  const auto all = items(dict);
  for (std::size_t i = 0; i + 1 < std::min(all.size(), 2 * kKeysLookedAt); i += 2)
    if (is(all[i], Kind::Text) && text(all[i]) == key) return all[i + 1];
  return kNoKey;
}

}  // namespace lc::io::torch
