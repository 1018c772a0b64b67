// Attributes: the named constants of a composite, part of its node in addition to the operands.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lightcone/core/dim.h"

namespace lc {

class Attributes {
 public:
  using Value = std::variant<std::int64_t, double, Dim, std::string>;
  struct Entry {
    std::string name;
    Value value;
  };
  Attributes() = default;
  Attributes(std::initializer_list<Entry> entries) : entries_(entries) {}
  explicit Attributes(std::vector<Entry> entries) : entries_(std::move(entries)) {}

  bool empty() const { return entries_.empty(); }
  const std::vector<Entry>& entries() const { return entries_; }
  // The four accessors throw Error if there is no attribute of that name and type.
  std::int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  const Dim& dim(std::string_view name) const;
  const std::string& text(std::string_view name) const;

  std::size_t hash() const;
  std::string str() const;                                           // "axis=1, start=n + 2"
  friend bool operator==(const Attributes& a, const Attributes& b);  // NaN equals NaN: this decides node identity

 private:
  const Value* find(std::string_view name) const;
  std::vector<Entry> entries_;
};

}  // namespace lc
