// Rewrites integers of 2 and 4 bits before a module is read: they become bytes, and results of arithmetic are wrapped.
#include <algorithm>
#include <set>

#include "lightcone/ops/special/special.h"
#include "lightcone/stablehlo/read/reader.h"

namespace lc::stablehlo {
namespace {

constexpr const char* kWrap = "lightcone.wrap";

// Returns the number of bits, or 0 for other types.
int bits(const Type& t) {
  if (!t.is_tensor) return 0;
  const std::string& e = t.element;
  return e == "i4" || e == "ui4" ? 4 : e == "i2" || e == "ui2" ? 2 : 0;
}
std::string byte(const Type& t) { return t.element[0] == 'u' ? "ui8" : "i8"; }

// Returns true for operations whose result depends on the bits above.
bool sees_width(const Operation& op) {
  static const std::set<std::string_view> names = {"stablehlo.bitcast_convert", "stablehlo.shift_right_logical",
                                                   "stablehlo.count_leading_zeros", "stablehlo.popcnt"};
  return names.contains(op.name);
}
bool stays_within(const Operation& op) { return hands_on(op) || moves(op) || op.name == "stablehlo.constant"; }

class Widener {
 public:
  explicit Widener(Module m) : m_(std::move(m)) {
    for (Value& v : m_.values) {
      bits_.push_back(bits(v.type));
      widen(v.type);
    }
    for (Function& f : m_.functions) {
      block(f.body);
      for (Type& t : f.results) widen(t);
    }
  }
  Module take() { return std::move(m_); }

 private:
  static void widen(Type& t) {
    if (bits(t)) t.element = byte(t);
  }
  int bits_of(ValueId v) const { return static_cast<std::size_t>(v) < bits_.size() ? bits_[v] : 0; }
  void block(Block& b) {
    std::vector<Operation> made;
    for (Operation& op : b.operations) operation(std::move(op), made);
    b.operations = std::move(made);
  }
  void operation(Operation op, std::vector<Operation>& made) {
    const auto narrow = [&](ValueId v) { return bits_of(v) > 0; };
    for (Block& b : op.regions) block(b);
    for (auto& [name, a] : op.attributes) widen(a.type);
    if (sees_width(op) && (std::ranges::any_of(op.operands, narrow) || std::ranges::any_of(op.results, narrow)))
      op.name += " (of 2 or 4 bits)";  // no rule has this name
    std::vector<Operation> behind;
    for (ValueId& v : op.results) {
      if (!narrow(v) || stays_within(op)) continue;
      const Type t = m_.values[v].type;
      const ValueId wide = m_.value(t);
      Attribute width;
      width.kind = Attribute::Kind::Integer;
      width.integer = bits_of(v);
      behind.push_back({.name = kWrap,
                        .operands = {wide},
                        .results = {v},
                        .attributes = {{"bits", width}},
                        .regions = {},
                        .at = op.at});
      v = wide;
    }
    made.push_back(std::move(op));
    std::ranges::move(behind, std::back_inserter(made));
  }

  Module m_;
  std::vector<int> bits_;  // by value: bits of a narrow one
};

// Keeps the lower bits and fills the upper ones with the sign.
std::vector<Tensor> wrap(const Call& c) {
  const double above = static_cast<double>(8 - c.integer("bits", 8));
  const Tensor places = scalar_like(c.x(), above);
  return {bitwise_right_shift(bitwise_left_shift(c.x(), places), places)};
}

}  // namespace

bool has_narrow_integers(const Module& m) {
  return std::ranges::any_of(m.values, [](const Value& v) { return bits(v.type) > 0; });
}
Module widen_integers(Module m) { return Widener(std::move(m)).take(); }

void add_narrow_integers(Rules& r) { r[kWrap] = wrap; }

}  // namespace lc::stablehlo
