// Patterns and rewrite rules as data.
//
//   const Pat x = any();
//   Compiler tidy = rewrite("tidy", {{"double negation", x * -1.0 * -1.0, x}});
//
// A rule with patterns on both sides is verified automatically: tests/verify/verify_test.cpp evaluates it on NaN,
// infinities, zeros of both signs, huge and tiny numbers of every dtype.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lightcone/core/tensor.h"
#include "lightcone/passes/compiler.h"

namespace lc {

struct PatNode;
// A shared handle. A pattern lives as long as a rule or another pattern that contains it.
class Pat {
 public:
  Pat(double literal);  // implicit: x * 1.0
  explicit Pat(PatNode n);
  const PatNode* operator->() const { return node_.get(); }
  const PatNode* get() const { return node_.get(); }
  friend bool operator==(const Pat&, const Pat&) = default;  // identity: the same variable

 private:
  std::shared_ptr<const PatNode> node_;
};

struct PatNode {
  enum class Kind : std::uint8_t { Any, Literal, Node } kind = Kind::Any;
  Op op = Op::Input;
  double value = 0;
  std::vector<Pat> in = {};
};

// Creates a variable, which matches any edge.
Pat any();
// Matches an operation, e.g. op(Op::Where, {c, x, x}).
Pat op(Op op, std::vector<Pat> in);
inline Pat log2(Pat a) { return op(Op::Log2, {a}); }
inline Pat exp2(Pat a) { return op(Op::Exp2, {a}); }
inline Pat sin(Pat a) { return op(Op::Sin, {a}); }
inline Pat sqrt(Pat a) { return op(Op::Sqrt, {a}); }
inline Pat recip(Pat a) { return op(Op::Recip, {a}); }
inline Pat maximum(Pat a, Pat b) { return op(Op::Maximum, {a, b}); }
inline Pat minimum(Pat a, Pat b) { return op(Op::Minimum, {a, b}); }
inline Pat where(Pat c, Pat a, Pat b) { return op(Op::Where, {c, a, b}); }
inline Pat operator+(Pat a, Pat b) { return op(Op::Add, {a, b}); }  // matches both operand orders
inline Pat operator*(Pat a, Pat b) { return op(Op::Mul, {a, b}); }
inline Pat operator<(Pat a, Pat b) { return op(Op::LessThan, {a, b}); }

struct Match {
  Graph& graph;                                        // the graph under construction
  Tensor root;                                         // the matched node
  std::vector<std::pair<const PatNode*, Edge>> bound;  // edges bound to variables; the rule owns the patterns
  Tensor operator[](const Pat& p) const;
};

// The changes a rule may make. generic() accepts only exact rules.
enum class Policy : std::uint8_t {
  Exact,         // same bits (except NaN payloads)
  Reassociates,  // rounding may differ
  IgnoresNaN,    // wrong results for NaN or infinities
};
enum class For : std::uint8_t { All, Floats, Integers };  // dtypes for which a rule holds

struct Rule {
  using Make = std::function<std::optional<Tensor>(const Match&)>;
  std::string name;
  Pat from;
  std::optional<Pat> to = {};
  Make make = {};  // used if `to` is not set
  For dtypes = For::All;
  Policy policy = Policy::Exact;

  Rule(std::string name, Pat from, Pat to, For dtypes = For::All, Policy policy = Policy::Exact)
      : name(std::move(name)), from(std::move(from)), to(std::move(to)), dtypes(dtypes), policy(policy) {}
  Rule(std::string name, Pat from, Make make, For dtypes = For::All, Policy policy = Policy::Exact)
      : name(std::move(name)), from(std::move(from)), make(std::move(make)), dtypes(dtypes), policy(policy) {}
};

// Returns a pass that sweeps once over the graph and tries the rules on every node as it is emitted.
Compiler rewrite(std::string name, std::vector<Rule> rules);

}  // namespace lc
