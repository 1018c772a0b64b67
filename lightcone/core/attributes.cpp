#include "lightcone/core/attributes.h"

#include <bit>

#include "lightcone/base/error.h"

namespace lc {
namespace {

template <class T>
const T& typed(const Attributes::Value* v, std::string_view name, const char* kind) {
  if (const T* found = v ? std::get_if<T>(v) : nullptr) return *found;
  throw Error("composite", str_cat("it has no attribute '", name, "' that is ", kind));
}

std::size_t hash_of(const Attributes::Value& v) {
  if (const auto* i = std::get_if<std::int64_t>(&v)) return static_cast<std::size_t>(*i);
  if (const auto* d = std::get_if<double>(&v)) return std::bit_cast<std::uint64_t>(*d);
  if (const auto* d = std::get_if<Dim>(&v)) return d->hash();
  return std::hash<std::string>{}(std::get<std::string>(v));
}

bool same_value(const Attributes::Value& a, const Attributes::Value& b) {
  if (const auto* x = std::get_if<double>(&a))
    if (const auto* y = std::get_if<double>(&b))
      return std::bit_cast<std::uint64_t>(*x) == std::bit_cast<std::uint64_t>(*y);
  return a == b;
}

}  // namespace

const Attributes::Value* Attributes::find(std::string_view name) const {
  for (const Entry& e : entries_)
    if (e.name == name) return &e.value;
  return nullptr;
}
std::int64_t Attributes::integer(std::string_view name) const {
  return typed<std::int64_t>(find(name), name, "a whole number");
}
double Attributes::real(std::string_view name) const { return typed<double>(find(name), name, "a number"); }
const Dim& Attributes::dim(std::string_view name) const { return typed<Dim>(find(name), name, "an extent"); }
const std::string& Attributes::text(std::string_view name) const {
  return typed<std::string>(find(name), name, "a text");
}

std::size_t Attributes::hash() const {
  std::size_t h = entries_.size();
  for (const Entry& e : entries_) h = mix(mix(h, std::hash<std::string>{}(e.name)), hash_of(e.value));
  return h;
}

std::string Attributes::str() const {
  std::string s;
  for (const Entry& e : entries_)
    s += (s.empty() ? "" : ", ") + e.name + "=" + std::visit([](const auto& v) { return str_cat(v); }, e.value);
  return s;
}

bool operator==(const Attributes& a, const Attributes& b) {
  if (a.entries_.size() != b.entries_.size()) return false;
  for (std::size_t k = 0; k < a.entries_.size(); ++k)
    if (a.entries_[k].name != b.entries_[k].name || !same_value(a.entries_[k].value, b.entries_[k].value)) return false;
  return true;
}

}  // namespace lc
