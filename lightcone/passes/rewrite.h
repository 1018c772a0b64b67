// Patterns and rules: rewriting as data.
//
//   const Pat x = any();
//   Compiler tidy = rewrite("tidy", {{"double negation", x * -1.0 * -1.0, x}});
//
// A rule whose both sides are patterns is checked by machine (tests/verify/verify_test.cpp evaluates it
// on NaN, infinities, zeros of both signs, huge and tiny numbers of every dtype).
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
class Pat {  // a handle that copies share; a pattern lives as long as a rule or another pattern that it is part of
 public:
  Pat(double literal);  // implicit: x * 1.0
  explicit Pat(PatNode n);
  const PatNode* operator->() const { return node_.get(); }
  const PatNode* get() const { return node_.get(); }
  friend bool operator==(const Pat&, const Pat&) = default;  // the same variable

 private:
  std::shared_ptr<const PatNode> node_;
};

struct PatNode {
  enum class Kind : std::uint8_t { Any, Literal, Node } kind = Kind::Any;
  Op op = Op::Input;
  double value = 0;
  std::vector<Pat> in = {};
};

Pat any();
Pat op(Op op, std::vector<Pat> in);  // any operation, e.g. op(Op::Where, {c, x, x})
inline Pat log2(Pat a) { return op(Op::Log2, {a}); }
inline Pat exp2(Pat a) { return op(Op::Exp2, {a}); }
inline Pat sin(Pat a) { return op(Op::Sin, {a}); }
inline Pat sqrt(Pat a) { return op(Op::Sqrt, {a}); }
inline Pat recip(Pat a) { return op(Op::Recip, {a}); }
inline Pat maximum(Pat a, Pat b) { return op(Op::Maximum, {a, b}); }
inline Pat minimum(Pat a, Pat b) { return op(Op::Minimum, {a, b}); }
inline Pat where(Pat c, Pat a, Pat b) { return op(Op::Where, {c, a, b}); }
inline Pat operator+(Pat a, Pat b) { return op(Op::Add, {a, b}); }  // matches both ways round
inline Pat operator*(Pat a, Pat b) { return op(Op::Mul, {a, b}); }
inline Pat operator<(Pat a, Pat b) { return op(Op::LessThan, {a, b}); }

struct Match {
  Graph& graph;                                        // the graph being built
  Tensor root;                                         // what matched
  std::vector<std::pair<const PatNode*, Edge>> bound;  // the rule owns the patterns
  Tensor operator[](const Pat& p) const;
};

// What a rule may change. generic() takes exact rules only.
enum class Policy : std::uint8_t {
  Exact,         // the same bits (the payload of a NaN aside)
  Reassociates,  // rounding may differ
  IgnoresNaN,    // wrong where a NaN or an infinity flows
};
enum class For : std::uint8_t { All, Floats, Integers };  // dtypes a rule holds for

struct Rule {
  using Make = std::function<std::optional<Tensor>(const Match&)>;
  std::string name;
  Pat from;
  std::optional<Pat> to = {};
  Make make = {};  // used when `to` is not given
  For dtypes = For::All;
  Policy policy = Policy::Exact;

  Rule(std::string name, Pat from, Pat to, For dtypes = For::All, Policy policy = Policy::Exact)
      : name(std::move(name)), from(std::move(from)), to(std::move(to)), dtypes(dtypes), policy(policy) {}
  Rule(std::string name, Pat from, Make make, For dtypes = For::All, Policy policy = Policy::Exact)
      : name(std::move(name)), from(std::move(from)), make(std::move(make)), dtypes(dtypes), policy(policy) {}
};

// One sweep over the graph, trying the rules on every node as it is emitted.
Compiler rewrite(std::string name, std::vector<Rule> rules);

}  // namespace lc
