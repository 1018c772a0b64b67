// Rewrites complex numbers before a module is read: every complex value becomes two values, its real and its imaginary
// part.
//
// Operations that move data or add are applied to each part; products become products of parts; calls, loops, branches
// and reducers carry both. Every other operation becomes one on pairs, for instance "stablehlo.exponential (complex)",
// with rules in complex.cpp. Arguments and results of the entry point stay one array with a last axis of two: the
// layout of complex numbers in memory.
#include <algorithm>
#include <set>

#include "lightcone/stablehlo/read/reader.h"

namespace lc::stablehlo {
namespace {

std::string part_of(const std::string& element) { return element.substr(8, element.size() - 9); }

bool carries_both(const Operation& op) {
  static const std::set<std::string_view> names = {"stablehlo.sort", "stablehlo.map", "stablehlo.reduce",
                                                   "stablehlo.scatter", "stablehlo.reduce_window"};
  return hands_on(op) || names.contains(op.name);
}
bool is_done_to_each(const Operation& op) {
  static const std::set<std::string_view> names = {"stablehlo.constant", "chlo.constant",    "stablehlo.add",
                                                   "stablehlo.subtract", "stablehlo.negate", "stablehlo.custom_call"};
  return moves(op) || names.contains(op.name) || op.name.starts_with("check.");
}
bool is_product(const Operation& op) {
  return op.name == "stablehlo.dot_general" || op.name == "stablehlo.dot" || op.name == "stablehlo.convolution";
}

// Returns the real (k = 0) or the imaginary parts of complex elements.
Attribute part(const Attribute& dense, std::size_t k) {
  Attribute r = dense;
  r.type.element = part_of(dense.type.element);
  const auto type = dtype_of(r.type.element);
  if (!type) return dense;  // refused when it is read
  const std::size_t n = size_of(*type);
  r.data.clear();
  for (std::size_t at = k * n; at + n <= dense.data.size(); at += 2 * n)
    r.data.insert(r.data.end(), dense.data.begin() + static_cast<std::ptrdiff_t>(at),
                  dense.data.begin() + static_cast<std::ptrdiff_t>(at + n));
  return r;
}

class Splitter {
 public:
  Splitter(Module m, std::string_view entry) : m_(std::move(m)) {
    imaginary_.assign(m_.values.size(), -1);
    for (std::size_t v = 0; v < imaginary_.size(); ++v) {
      if (!is_complex(m_.values[v].type)) continue;
      m_.values[v].type.element = part_of(m_.values[v].type.element);
      const Type t = m_.values[v].type;
      imaginary_[v] = m_.value(t);
    }
    for (Function& f : m_.functions) f.name == entry ? of_entry(f) : of_function(f);
  }
  Module take() { return std::move(m_); }

 private:
  bool split(ValueId v) const { return static_cast<std::size_t>(v) < imaginary_.size() && imaginary(v) >= 0; }
  ValueId imaginary(ValueId v) const { return imaginary_[v]; }
  std::vector<ValueId> both(const std::vector<ValueId>& values) const {
    std::vector<ValueId> r;
    for (const ValueId v : values) {
      r.push_back(v);
      if (split(v)) r.push_back(imaginary(v));
    }
    return r;
  }
  std::vector<ValueId> parts(const std::vector<ValueId>& values, std::size_t k) const {
    std::vector<ValueId> r;
    for (const ValueId v : values) r.push_back(k && split(v) ? imaginary(v) : v);
    return r;
  }

  void of_function(Function& f) {
    of_block(f.body, false);
    std::vector<Type> results;
    for (Type t : f.results) {
      const bool two = is_complex(t);
      if (two) t.element = part_of(t.element);
      results.insert(results.end(), two ? 2 : 1, t);
    }
    f.results = std::move(results);
    f.argument_attributes.clear(), f.result_attributes.clear();  // only those of the entry point are read
  }

  static Type with_parts(Type t) {
    t.shape.push_back(2);
    if (!t.bounds.empty()) t.bounds.push_back(kDynamic);
    return t;
  }
  void of_entry(Function& f) {
    std::vector<ValueId> arguments = f.body.arguments;
    std::vector<Operation> made;
    for (ValueId& a : arguments) {
      if (!split(a)) continue;
      const Value& v = m_.values[a];
      const ValueId whole = m_.value(with_parts(v.type), v.name);
      made.push_back({.name = kSplitComplex,
                      .operands = {whole},
                      .results = {a, imaginary(a)},
                      .attributes = {},
                      .regions = {},
                      .at = f.at});
      a = whole;
    }
    of_block(f.body, false, std::move(made), true);
    f.body.arguments = std::move(arguments);
    for (Type& t : f.results)
      if (is_complex(t)) t.element = part_of(t.element), t = with_parts(t);
  }

  void of_block(Block& b, bool comparator, std::vector<Operation> made = {}, bool entry = false) {
    std::vector<Operation> before = std::move(b.operations);
    for (Operation& op : before) {
      const bool joins = entry && (op.name == "func.return" || op.name == "stablehlo.return");
      if (joins) join(op, made);
      else operation(std::move(op), made);
    }
    b.operations = std::move(made);
    b.arguments = comparator ? of_comparator(b.arguments) : both(b.arguments);
  }
  // A comparator takes the first and the second element of each operand next to each other.
  std::vector<ValueId> of_comparator(const std::vector<ValueId>& arguments) const {
    std::vector<ValueId> r;
    for (std::size_t k = 0; k + 1 < arguments.size(); k += 2)
      for (std::size_t n = 0; n < (split(arguments[k]) ? 2u : 1u); ++n)
        for (const ValueId v : parts({arguments[k], arguments[k + 1]}, n)) r.push_back(v);
    return r;
  }
  void join(Operation& op, std::vector<Operation>& made) {
    for (ValueId& v : op.operands) {
      if (!split(v)) continue;
      const ValueId whole = m_.value(with_parts(type(v)));
      made.push_back({.name = kJoinComplex,
                      .operands = {v, imaginary(v)},
                      .results = {whole},
                      .attributes = {},
                      .regions = {},
                      .at = op.at});
      v = whole;
    }
    made.push_back(std::move(op));
  }

  // Returns true if real and complex numbers are mixed among operands and results. Indices and conditions are real.
  bool mixes(const Operation& op) const {
    for (const ValueId v : op.operands)
      if (!split(v) && is_real_number(type(v))) return true;
    for (const ValueId v : op.results)
      if (!split(v)) return true;
    for (const auto& [name, a] : op.attributes)
      if (a.kind == Attribute::Kind::Dense && is_real_number(a.type)) return true;
    const std::size_t from = op.name == "stablehlo.select" ? 1 : 0;
    return op.operands.size() > from && !split(op.operands[from]);
  }
  static bool is_real_number(const Type& t) {
    const auto known = t.is_tensor ? dtype_of(t.element) : std::nullopt;
    return known && is_float(*known);
  }
  bool touches(const Operation& op) const {
    const auto is_split = [&](ValueId v) { return split(v); };
    return std::ranges::any_of(op.operands, is_split) || std::ranges::any_of(op.results, is_split);
  }
  // Returns true for reducers (sums, selection of one of two) that can be applied to the parts separately.
  static bool adds(const Operation& op) {
    return op.name != "stablehlo.sort" && op.regions.size() == 1 && op.operands.size() >= 2 &&
           (simple_reducer(op.regions[0]) == "stablehlo.add" || simple_reducer(op.regions[0]) == "second");
  }

  void operation(Operation op, std::vector<Operation>& made) {
    if (touches(op)) {
      if (op.name == "stablehlo.real" || op.name == "stablehlo.imag") return one_part(std::move(op), made);
      if (op.name == "stablehlo.complex" && op.operands.size() == 2 && op.results.size() == 1 && split(op.results[0]))
        return from_parts(op, made);
      if (op.name == "stablehlo.get_dimension_size") return made.push_back(std::move(op));
      if (is_product(op)) return product(op, made);
      if (!mixes(op) && (is_done_to_each(op) || adds(op) || same_bits(op))) return each(op, made);
      if (!carries_both(op)) op.name += " (complex)";
    }
    const bool sorts = op.name == "stablehlo.sort";
    for (Block& b : op.regions) of_block(b, sorts);
    op.operands = both(op.operands), op.results = both(op.results);
    made.push_back(std::move(op));
  }
  const Type& type(ValueId v) const { return m_.values[v].type; }
  bool same_bits(const Operation& op) const {
    return (op.name == "stablehlo.bitcast_convert" || op.name == "stablehlo.convert") && op.operands.size() == 1 &&
           op.results.size() == 1 && split(op.operands[0]) && split(op.results[0]) &&
           (op.name == "stablehlo.convert" || type(op.operands[0]) == type(op.results[0]));
  }

  void each(const Operation& op, std::vector<Operation>& made) {
    for (std::size_t k = 0; k < 2; ++k) {
      Operation one = op;
      one.operands = parts(op.operands, k), one.results = parts(op.results, k);
      for (auto& [name, a] : one.attributes)
        if (a.kind == Attribute::Kind::Dense && is_complex(a.type)) a = part(a, k);
      made.push_back(std::move(one));
    }
  }
  void one_part(Operation op, std::vector<Operation>& made) {
    op.operands = parts(op.operands, op.name == "stablehlo.imag");
    op.name = "stablehlo.real";  // identity on real numbers
    made.push_back(std::move(op));
  }
  void from_parts(const Operation& op, std::vector<Operation>& made) {
    for (std::size_t k = 0; k < 2; ++k)
      made.push_back({.name = "stablehlo.real",
                      .operands = {op.operands[k]},
                      .results = parts(op.results, k),
                      .attributes = {},
                      .regions = {},
                      .at = op.at});
  }
  void product(const Operation& op, std::vector<Operation>& made) {
    if (op.operands.size() != 2 || op.results.size() != 1 || !split(op.results[0])) return made.push_back(op);
    const Type t = type(op.results[0]);
    const auto of = [&](std::size_t left, std::size_t right) {
      Operation one = op;
      one.operands = {parts({op.operands[0]}, left)[0], parts({op.operands[1]}, right)[0]};
      one.results = {m_.value(t)};
      made.push_back(one);
      return one.results[0];
    };
    const auto joined = [&](const char* name, ValueId a, ValueId b, ValueId to) {
      made.push_back({.name = name, .operands = {a, b}, .results = {to}, .attributes = {}, .regions = {}, .at = op.at});
    };
    const ValueId squares[] = {of(0, 0), of(1, 1)}, crossed[] = {of(0, 1), of(1, 0)};
    joined("stablehlo.subtract", squares[0], squares[1], op.results[0]);
    joined("stablehlo.add", crossed[0], crossed[1], imaginary(op.results[0]));
  }

  Module m_;
  std::vector<ValueId> imaginary_;  // the imaginary part of each value; -1: real
};

}  // namespace

bool is_complex(const Type& t) { return t.is_tensor && t.element.starts_with("complex<") && t.element.ends_with(">"); }
bool has_complex(const Module& m) {
  return std::ranges::any_of(m.values, [](const Value& v) { return is_complex(v.type); });
}
Module split_complex(Module m, std::string_view entry) { return Splitter(std::move(m), entry).take(); }

}  // namespace lc::stablehlo
