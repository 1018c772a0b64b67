// Op: the operations, described by one table.
//
// There are leaves, twelve primitives, and a few composites: functions that arithmetic alone cannot express exactly
// (inf * 0 is NaN, so `where` is not c*a + (1-c)*b). A composite is a named node with a definition in primitives
// (composites/elementwise.cpp); a compiler that supports the name emits the exact kernel, any other inlines the
// definition. Elementwise composites have a row here; others are values (composite.h).
//
// Code tests a row's kind instead of listing operations.
#pragma once

#include "lightcone/macros_off.h"

#include <cstdint>
#include <iterator>
#include <limits>
#include <string_view>

#include "lightcone/core/dtype.h"

namespace lc {

// clang-format off
enum class Op : std::uint8_t {
  Input, Constant, Index,                                                  // leaves
  Log2, Exp2, Sin, Sqrt, Recip,                                            // the primitives: unary
  Add, Mul, Mod, LessThan,                                                 // the primitives: binary
  SumReduce, MaxReduce,                                                    // reductions over Node::axis
  Contiguous,                                                              // materializes a view; casts
  Where, Maximum, Minimum, Div, Pow, Equal, Exp, Cos, Floor, Round,        // elementwise composites
  BitAnd, BitOr, BitXor, Bitcast,
  Composite, Result,                                                       // a composite as a value; one of its results
  Kernel,                                                                  // emitted by a back end
};

// clang-format on

enum class Kind : std::uint8_t { Leaf, Elementwise, Reduce, Copy, Composite, Result, Kernel };

// Operand and result types that an operation accepts.
enum class Types : std::uint8_t {
  Any,      // operands of one type, result the same
  Float,    // floats, result the same
  Integer,  // integers or bool, result the same
  Compare,  // operands of one type, result bool
  Select,   // (bool, T, T) -> T
  Bits,     // an integer or float, reinterpreted in another of the same size
  Free,     // checked by the operation itself
};

// Properties of an operation, as bits.
enum OpFlags : unsigned {
  kPrimitive = 1,           // one of the twelve primitives
  kCommutes = 2,            // f(a, b) == f(b, a)
  kRoundsNothing = 4,       // its result is one of its operands, or their bits
  kPeriodic = 8,            // takes an angle: an error of a radian may give any result
  kVectorised = 16,         // the C prelude has a function for vectors of f32
  kPiecewiseConstant = 32,  // its derivative is zero
};

struct OpInfo {
  Op op;
  std::string_view name;
  Kind kind;
  int arity;
  Types types;
  int cost;                    // per element, in additions; every schedule uses it
  double identity;             // for reductions: the result over an empty axis
  std::string_view c;          // C spelling; $0, $1, $2 are the operands. "": devices compute the definition
  std::string_view stablehlo;  // the same function's name in StableHLO; "": its writer has code for it
  unsigned flags;
  constexpr bool has(OpFlags f) const { return (flags & f) != 0; }
};

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// clang-format off
inline constexpr OpInfo kOps[] = {
  // op             name            kind              n  types         cost identity C spelling, StableHLO, flags
  {Op::Input,       "input",        Kind::Leaf,        0, Types::Free,    0, 0,    "", "", 0},
  {Op::Constant,    "constant",     Kind::Leaf,        0, Types::Free,    0, 0,    "", "", 0},
  {Op::Index,       "index",        Kind::Leaf,        0, Types::Free,    0, 0,    "", "", 0},
  {Op::Log2,        "log2",         Kind::Elementwise, 1, Types::Float,   8, 0,    "lc_log2($0)", "", kPrimitive},
  {Op::Exp2,        "exp2",         Kind::Elementwise, 1, Types::Float,   8, 0,    "lc_exp2($0)", "",
    kPrimitive | kVectorised},
  {Op::Sin,         "sin",          Kind::Elementwise, 1, Types::Float,   8, 0,    "lc_sin($0)", "sine",
    kPrimitive | kPeriodic | kVectorised},
  {Op::Sqrt,        "sqrt",         Kind::Elementwise, 1, Types::Float,   4, 0,    "lc_sqrt($0)", "sqrt", kPrimitive},
  {Op::Recip,       "recip",        Kind::Elementwise, 1, Types::Float,   4, 0,    "lc_recip($0)", "", kPrimitive},
  {Op::Add,         "add",          Kind::Elementwise, 2, Types::Any,     1, 0,    "lc_add($0, $1)", "",
    kPrimitive | kCommutes},
  {Op::Mul,         "mul",          Kind::Elementwise, 2, Types::Any,     1, 0,    "lc_mul($0, $1)", "",
    kPrimitive | kCommutes},
  {Op::Mod,         "mod",          Kind::Elementwise, 2, Types::Any,     8, 0,    "lc_mod($0, $1)", "", kPrimitive},
  {Op::LessThan,    "less_than",    Kind::Elementwise, 2, Types::Compare, 1, 0,    "lc_less($0, $1)", "", kPrimitive},
  {Op::SumReduce,   "sum",          Kind::Reduce,      1, Types::Any,     1, 0,    "lc_add($0, $1)", "",
    kPrimitive | kCommutes},
  {Op::MaxReduce,   "max",          Kind::Reduce,      1, Types::Any,     1, -kInf, "lc_max($0, $1)", "",
    kPrimitive | kCommutes},
  {Op::Contiguous,  "contiguous",   Kind::Copy,        1, Types::Free,    1, 0,    "$0", "", kPrimitive},
  {Op::Where,       "where",        Kind::Elementwise, 3, Types::Select,  1, 0,    "lc_where($0, $1, $2)", "",
    kRoundsNothing},
  {Op::Maximum,     "maximum",      Kind::Elementwise, 2, Types::Any,     1, 0,    "lc_max($0, $1)", "maximum",
    kCommutes | kRoundsNothing},
  {Op::Minimum,     "minimum",      Kind::Elementwise, 2, Types::Any,     1, 0,    "lc_min($0, $1)", "minimum",
    kCommutes | kRoundsNothing},
  {Op::Div,         "div",          Kind::Elementwise, 2, Types::Any,     4, 0,    "lc_div($0, $1)", "", 0},
  {Op::Pow,         "pow",          Kind::Elementwise, 2, Types::Any,     8, 0,    "lc_pow($0, $1)", "power", 0},
  {Op::Equal,       "equal",        Kind::Elementwise, 2, Types::Compare, 1, 0,    "lc_equal($0, $1)", "", kCommutes},
  {Op::Exp,         "exp",          Kind::Elementwise, 1, Types::Float,   8, 0,    "lc_exp($0)", "exponential",
    kVectorised},
  {Op::Cos,         "cos",          Kind::Elementwise, 1, Types::Float,   8, 0,    "lc_cos($0)", "cosine",
    kPeriodic | kVectorised},
  {Op::Floor,       "floor",        Kind::Elementwise, 1, Types::Float,   1, 0,    "lc_floor($0)", "floor",
    kPiecewiseConstant},
  {Op::Round,       "round",        Kind::Elementwise, 1, Types::Float,   1, 0,    "lc_round($0)",
    "round_nearest_even", kPiecewiseConstant},
  {Op::BitAnd,      "bitwise_and",  Kind::Elementwise, 2, Types::Integer, 1, 0,    "lc_and($0, $1)", "", kCommutes},
  {Op::BitOr,       "bitwise_or",   Kind::Elementwise, 2, Types::Integer, 1, 0,    "lc_or($0, $1)", "or", kCommutes},
  {Op::BitXor,      "bitwise_xor",  Kind::Elementwise, 2, Types::Integer, 1, 0,    "lc_xor($0, $1)", "xor", kCommutes},
  {Op::Bitcast,     "bitcast",      Kind::Elementwise, 1, Types::Bits,    1, 0,    "lc_bitcast($0)", "",
    kRoundsNothing},
  {Op::Composite,   "composite",    Kind::Composite,   0, Types::Free,    0, 0,    "", "", 0},
  {Op::Result,      "result",       Kind::Result,      1, Types::Free,    0, 0,    "", "", 0},
  {Op::Kernel,      "kernel",       Kind::Kernel,      0, Types::Free,    0, 0,    "", "", 0},
};
// clang-format on

consteval bool rows_follow_the_enum() {
  int primitives = 0;
  for (int i = 0; const OpInfo& row : kOps) {
    if (static_cast<int>(row.op) != i++) return false;
    primitives += row.has(kPrimitive);
  }
  return primitives == 12 && std::size(kOps) == static_cast<std::size_t>(Op::Kernel) + 1;
}
static_assert(rows_follow_the_enum(), "one row an operation, in order, and exactly twelve primitives");

constexpr const OpInfo& info(Op op) { return kOps[static_cast<int>(op)]; }

}  // namespace lc
#include "lightcone/macros_on.h"
