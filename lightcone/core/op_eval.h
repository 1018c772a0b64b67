// Reference semantics of the operations for all back ends, as functions of doubles and of 64-bit integers.
#pragma once

#include "lightcone/macros_off.h"

#include <array>
#include <cmath>

#include "lightcone/core/op.h"

namespace lc {
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

struct OpEval {
  Op op;
  D (*f)(D, D, D);            // for floats; null: not defined
  I (*i)(I, I, I);            // for integers; null: not defined
  I (*u)(I, I, I) = nullptr;  // for U64 bit patterns; null: same as `i`
};
inline constexpr OpEval kEvals[] = {
    {Op::Log2, [](D a, D, D) { return std::log2(a); }, nullptr},
    {Op::Exp2, [](D a, D, D) { return std::exp2(a); }, nullptr},
    {Op::Sin, [](D a, D, D) { return std::sin(a); }, nullptr},
    {Op::Sqrt, [](D a, D, D) { return std::sqrt(a); }, nullptr},
    {Op::Recip, [](D a, D, D) { return 1.0 / a; }, nullptr},
    {Op::Add, [](D a, D b, D) { return a + b; }, [](I a, I b, I) { return add(a, b); }},
    {Op::Mul, [](D a, D b, D) { return a * b; }, [](I a, I b, I) { return mul(a, b); }},
    {Op::Mod, [](D a, D b, D) { return std::fmod(a, b); }, [](I a, I b, I) { return mod(a, b); },
     [](I a, I b, I) { return wrap(b ? bits(a) % bits(b) : 0); }},
    {Op::LessThan, [](D a, D b, D) { return a < b ? 1.0 : 0.0; }, [](I a, I b, I) { return I{a < b}; },
     [](I a, I b, I) { return I{bits(a) < bits(b)}; }},
    {Op::SumReduce, [](D a, D b, D) { return a + b; }, [](I a, I b, I) { return add(a, b); }},
    {Op::MaxReduce, [](D a, D b, D) { return max(a, b); }, [](I a, I b, I) { return a < b ? b : a; },
     [](I a, I b, I) { return bits(a) < bits(b) ? b : a; }},
    {Op::Contiguous, [](D a, D, D) { return a; }, [](I a, I, I) { return a; }},
    {Op::Where, [](D c, D a, D b) { return c != 0 ? a : b; }, [](I c, I a, I b) { return c ? a : b; }},
    {Op::Maximum, [](D a, D b, D) { return max(a, b); }, [](I a, I b, I) { return a < b ? b : a; },
     [](I a, I b, I) { return bits(a) < bits(b) ? b : a; }},
    {Op::Minimum, [](D a, D b, D) { return min(a, b); }, [](I a, I b, I) { return b < a ? b : a; },
     [](I a, I b, I) { return bits(b) < bits(a) ? b : a; }},
    {Op::Div, [](D a, D b, D) { return a / b; }, [](I a, I b, I) { return div(a, b); },
     [](I a, I b, I) { return wrap(b ? bits(a) / bits(b) : 0); }},
    {Op::Pow, [](D a, D b, D) { return std::pow(a, b); }, [](I a, I b, I) { return pow(a, b); },
     [](I a, I b, I) { return power(a, bits(b)); }},
    {Op::Equal, [](D a, D b, D) { return a == b ? 1.0 : 0.0; }, [](I a, I b, I) { return I{a == b}; }},
    {Op::Exp, [](D a, D, D) { return std::exp(a); }, nullptr},
    {Op::Cos, [](D a, D, D) { return std::cos(a); }, nullptr},
    {Op::Floor, [](D a, D, D) { return std::floor(a); }, nullptr},
    {Op::Round, [](D a, D, D) { return std::nearbyint(a); }, nullptr},
    {Op::BitAnd, nullptr, [](I a, I b, I) { return a & b; }},
    {Op::BitOr, nullptr, [](I a, I b, I) { return a | b; }},
    {Op::BitXor, nullptr, [](I a, I b, I) { return a ^ b; }},
};

consteval bool every_operation_has_values() {
  std::size_t k = 0;
  for (const OpInfo& row : kOps) {
    const bool computes = row.kind == Kind::Elementwise || row.kind == Kind::Reduce || row.kind == Kind::Copy;
    if (computes && row.types != Types::Bits && (k >= std::size(kEvals) || kEvals[k++].op != row.op)) return false;
  }
  return k == std::size(kEvals);
}
static_assert(every_operation_has_values(), "each operation that computes has a row in kEvals, in order");

inline constexpr auto kByOp = [] {
  std::array<OpEval, std::size(kOps)> all{};
  for (const OpEval& row : kEvals) all[static_cast<std::size_t>(row.op)] = row;
  return all;
}();

}  // namespace eval

// Returns the reference semantics of an operation; all members are null if it computes nothing.
constexpr const eval::OpEval& eval_of(Op op) { return eval::kByOp[static_cast<std::size_t>(op)]; }

// Returns the semantics of an operation for integers of a type.
constexpr auto on_integers(Op op, DType t) {
  const eval::OpEval& row = eval_of(op);
  return t == DType::U64 && row.u ? row.u : row.i;
}

}  // namespace lc
#include "lightcone/macros_on.h"
