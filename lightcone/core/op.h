// The operations, in one table.
//
// Leaves, the twelve primitive operations, and a few composites: functions that arithmetic alone
// cannot express exactly (inf * 0 is NaN, so `where` is not c*a + (1-c)*b). A composite is a
// named node that also has a definition in the twelve (composite.cpp); a compiler that knows the
// name emits the exact kernel, every other one inlines the definition. Those that are elementwise have
// a row here; any other is a value (composite.h).
//
// Code asks a row for its kind and never lists operations again.
#pragma once

#include "lightcone/macros_off.h"

#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string_view>

#include "lightcone/core/dtype.h"

namespace lc {

// clang-format off
enum class Op : std::uint8_t {
  Input, Constant, Index,                                                  // leaves
  Log2, Exp2, Sin, Sqrt, Recip,                                            // the twelve: unary
  Add, Mul, Mod, LessThan,                                                 // binary
  SumReduce, MaxReduce,                                                    // over Node::axis
  Contiguous,                                                              // a view made real; a cast
  Where, Maximum, Minimum, Div, Pow, Equal, Exp, Cos,                      // elementwise composites
  BitAnd, BitOr, BitXor, Bitcast,
  Composite, Result,                                                       // a composite that is a value; one of several results
  Kernel,                                                                  // what a back end emits
};

// clang-format on

enum class Kind : std::uint8_t { Leaf, Elementwise, Reduce, Copy, Composite, Result, Kernel };

// Operand and result types an operation accepts.
enum class Types : std::uint8_t {
  Any,      // all operands alike, result the same
  Float,    // floating operands, result the same
  Integer,  // operands of integers or bool, result the same
  Compare,  // all operands alike, result bool
  Select,   // (bool, T, T) -> T
  Bits,     // an integer or a float, as another one of the same size
  Free,     // checked by the operation itself
};

struct OpInfo {
  Op op;
  std::string_view name;
  Kind kind;
  int arity;
  bool primitive;  // one of the twelve
  bool commutes;
  Types types;
  double identity;                                                        // reductions: the value of an empty one
  double (*f)(double, double, double);                                    // reference semantics on floats
  std::int64_t (*i)(std::int64_t, std::int64_t, std::int64_t);            // and on integers
  std::string_view c;                                                     // C spelling; $0, $1, $2 are the operands
  std::int64_t (*u)(std::int64_t, std::int64_t, std::int64_t) = nullptr;  // on the bits of U64; null: as `i`
};

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

namespace eval {
using D = double;
using I = std::int64_t;
using U = std::uint64_t;
inline I wrap(U v) { return static_cast<I>(v); }
inline U bits(I v) { return static_cast<U>(v); }
inline I add(I a, I b) { return wrap(bits(a) + bits(b)); }
inline I mul(I a, I b) { return wrap(bits(a) * bits(b)); }
inline I div(I a, I b) { return b == 0 ? 0 : b == -1 ? wrap(0 - bits(a)) : a / b; }
inline I mod(I a, I b) { return b == 0 || b == -1 ? 0 : a % b; }
inline D max(D a, D b) {
  return std::isnan(a) || a > b ? a : std::isnan(b) || b > a ? b : a == 0 && std::signbit(a) ? b : a;
}
inline D min(D a, D b) {
  return std::isnan(a) || a < b ? a : std::isnan(b) || b < a ? b : b == 0 && std::signbit(b) ? b : a;
}
inline I power(I a, U n) {
  I r = 1;
  for (; n > 0; n >>= 1, a = mul(a, a))
    if (n & 1) r = mul(r, a);
  return r;
}
inline I pow(I a, I b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
  return power(a, bits(b));
}
}  // namespace eval

// clang-format off
inline constexpr OpInfo kOps[] = {
  // op               name            kind              n  prim   comm.  types           identity  on floats                                                  on integers                                                C
  {Op::Input,        "input",        Kind::Leaf,        0, false, false, Types::Free,    0,     nullptr,                                                      nullptr,                                                   ""},
  {Op::Constant,     "constant",     Kind::Leaf,        0, false, false, Types::Free,    0,     nullptr,                                                      nullptr,                                                   ""},
  {Op::Index,        "index",        Kind::Leaf,        0, false, false, Types::Free,    0,     nullptr,                                                      nullptr,                                                   ""},
  {Op::Log2,         "log2",         Kind::Elementwise, 1, true,  false, Types::Float,   0,     [](double a, double, double) { return std::log2(a); },        nullptr,                                                   "lc_log2($0)"},
  {Op::Exp2,         "exp2",         Kind::Elementwise, 1, true,  false, Types::Float,   0,     [](double a, double, double) { return std::exp2(a); },        nullptr,                                                   "lc_exp2($0)"},
  {Op::Sin,          "sin",          Kind::Elementwise, 1, true,  false, Types::Float,   0,     [](double a, double, double) { return std::sin(a); },         nullptr,                                                   "lc_sin($0)"},
  {Op::Sqrt,         "sqrt",         Kind::Elementwise, 1, true,  false, Types::Float,   0,     [](double a, double, double) { return std::sqrt(a); },        nullptr,                                                   "lc_sqrt($0)"},
  {Op::Recip,        "recip",        Kind::Elementwise, 1, true,  false, Types::Float,   0,     [](double a, double, double) { return 1.0 / a; },             nullptr,                                                   "lc_recip($0)"},
  {Op::Add,          "add",          Kind::Elementwise, 2, true,  true,  Types::Any,     0,     [](double a, double b, double) { return a + b; },             [](eval::I a, eval::I b, eval::I) { return eval::add(a, b); }, "lc_add($0, $1)"},
  {Op::Mul,          "mul",          Kind::Elementwise, 2, true,  true,  Types::Any,     0,     [](double a, double b, double) { return a * b; },             [](eval::I a, eval::I b, eval::I) { return eval::mul(a, b); }, "lc_mul($0, $1)"},
  {Op::Mod,          "mod",          Kind::Elementwise, 2, true,  false, Types::Any,     0,     [](double a, double b, double) { return std::fmod(a, b); },   [](eval::I a, eval::I b, eval::I) { return eval::mod(a, b); }, "lc_mod($0, $1)", [](eval::I a, eval::I b, eval::I) { return eval::wrap(b ? eval::bits(a) % eval::bits(b) : 0); }},
  {Op::LessThan,     "less_than",    Kind::Elementwise, 2, true,  false, Types::Compare, 0,     [](double a, double b, double) { return a < b ? 1.0 : 0.0; }, [](eval::I a, eval::I b, eval::I) { return eval::I{a < b}; }, "lc_less($0, $1)", [](eval::I a, eval::I b, eval::I) { return eval::I{eval::bits(a) < eval::bits(b)}; }},
  {Op::SumReduce,    "sum",          Kind::Reduce,      1, true,  true,  Types::Any,     0,     [](double a, double b, double) { return a + b; },             [](eval::I a, eval::I b, eval::I) { return eval::add(a, b); }, "lc_add($0, $1)"},
  {Op::MaxReduce,    "max",          Kind::Reduce,      1, true,  true,  Types::Any,     -kInf, [](double a, double b, double) { return eval::max(a, b); },   [](eval::I a, eval::I b, eval::I) { return a < b ? b : a; },   "lc_max($0, $1)", [](eval::I a, eval::I b, eval::I) { return eval::bits(a) < eval::bits(b) ? b : a; }},
  {Op::Contiguous,   "contiguous",   Kind::Copy,        1, true,  false, Types::Free,    0,     [](double a, double, double) { return a; },                   [](eval::I a, eval::I, eval::I) { return a; },             "$0"},
  {Op::Where,        "where",        Kind::Elementwise, 3, false, false, Types::Select,  0,     [](double c, double a, double b) { return c != 0 ? a : b; },  [](eval::I c, eval::I a, eval::I b) { return c ? a : b; }, "lc_where($0, $1, $2)"},
  {Op::Maximum,      "maximum",      Kind::Elementwise, 2, false, true,  Types::Any,     0,     [](double a, double b, double) { return eval::max(a, b); },   [](eval::I a, eval::I b, eval::I) { return a < b ? b : a; }, "lc_max($0, $1)", [](eval::I a, eval::I b, eval::I) { return eval::bits(a) < eval::bits(b) ? b : a; }},
  {Op::Minimum,      "minimum",      Kind::Elementwise, 2, false, true,  Types::Any,     0,     [](double a, double b, double) { return eval::min(a, b); },   [](eval::I a, eval::I b, eval::I) { return b < a ? b : a; }, "lc_min($0, $1)", [](eval::I a, eval::I b, eval::I) { return eval::bits(b) < eval::bits(a) ? b : a; }},
  {Op::Div,          "div",          Kind::Elementwise, 2, false, false, Types::Any,     0,     [](double a, double b, double) { return a / b; },             [](eval::I a, eval::I b, eval::I) { return eval::div(a, b); }, "lc_div($0, $1)", [](eval::I a, eval::I b, eval::I) { return eval::wrap(b ? eval::bits(a) / eval::bits(b) : 0); }},
  {Op::Pow,          "pow",          Kind::Elementwise, 2, false, false, Types::Any,     0,     [](double a, double b, double) { return std::pow(a, b); },    [](eval::I a, eval::I b, eval::I) { return eval::pow(a, b); }, "lc_pow($0, $1)", [](eval::I a, eval::I b, eval::I) { return eval::power(a, eval::bits(b)); }},
  {Op::Equal,        "equal",        Kind::Elementwise, 2, false, true,  Types::Compare, 0,     [](double a, double b, double) { return a == b ? 1.0 : 0.0; }, [](eval::I a, eval::I b, eval::I) { return eval::I{a == b}; }, "lc_equal($0, $1)"},
  {Op::Exp,          "exp",          Kind::Elementwise, 1, false, false, Types::Float,   0,     [](double a, double, double) { return std::exp(a); },         nullptr,                                                   "lc_exp($0)"},
  {Op::Cos,          "cos",          Kind::Elementwise, 1, false, false, Types::Float,   0,     [](double a, double, double) { return std::cos(a); },         nullptr,                                                   "lc_cos($0)"},
  {Op::BitAnd,       "bitwise_and",   Kind::Elementwise, 2, false, true,  Types::Integer, 0,     nullptr,                                           [](eval::I a, eval::I b, eval::I) { return a & b; },         "lc_and($0, $1)"},
  {Op::BitOr,        "bitwise_or",    Kind::Elementwise, 2, false, true,  Types::Integer, 0,     nullptr,                                           [](eval::I a, eval::I b, eval::I) { return a | b; },         "lc_or($0, $1)"},
  {Op::BitXor,       "bitwise_xor",   Kind::Elementwise, 2, false, true,  Types::Integer, 0,     nullptr,                                           [](eval::I a, eval::I b, eval::I) { return a ^ b; },         "lc_xor($0, $1)"},
  {Op::Bitcast,      "bitcast",       Kind::Elementwise, 1, false, false, Types::Bits,    0,     nullptr,                                           nullptr,                                                   ""},
  {Op::Composite,    "composite",    Kind::Composite,   0, false, false, Types::Free,    0,     nullptr,                                                      nullptr,                                                   ""},
  {Op::Result,       "result",       Kind::Result,      1, false, false, Types::Free,    0,     nullptr,                                                      nullptr,                                                   ""},
  {Op::Kernel,       "kernel",       Kind::Kernel,      0, false, false, Types::Free,    0,     nullptr,                                                      nullptr,                                                   ""},
};
// clang-format on

consteval bool rows_follow_the_enum() {
  int primitives = 0;
  for (int i = 0; const OpInfo& row : kOps) {
    if (static_cast<int>(row.op) != i++) return false;
    primitives += row.primitive;
  }
  return primitives == 12 && std::size(kOps) == static_cast<std::size_t>(Op::Kernel) + 1;
}
static_assert(rows_follow_the_enum(), "one row an operation, in order, and exactly twelve primitives");

constexpr const OpInfo& info(Op op) { return kOps[static_cast<int>(op)]; }

// What it computes of integers of a type.
constexpr auto on_integers(Op op, DType t) { return t == DType::U64 && info(op).u ? info(op).u : info(op).i; }

}  // namespace lc
#include "lightcone/macros_on.h"
