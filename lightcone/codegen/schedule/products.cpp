// Cheaper forms of arithmetic, the same in every loop that has the same expression: sums of products are contracted to
// MulAdds, and a remainder by a power of two is exact without fmod().
#include <cmath>

#include "lightcone/codegen/kernel_ir.h"

namespace lc::codegen {

namespace {

// Returns true if `id` depends on instruction `of`, as far as the first 64 instructions show. In p - floor(p) or p - p
// mod 1 both must be the same rounded product: otherwise the remainder of an integer would not be 0, nor that of a half
// a half.
bool reads(const Kernel& k, int id, int of) {
  std::vector<int> open{id};
  for (std::size_t at = 0; at < open.size() && at < 64; ++at) {
    if (open[at] == of) return true;
    const Instr& i = k.instrs[open[at]];
    if (open[at] < of || (i.code != Code::Apply && i.code != Code::MulAdd)) continue;
    for (const int operand : {i.a, i.b, i.c})
      if (operand >= 0) open.push_back(operand);
  }
  return false;
}

}  // namespace

std::optional<double> exact_divisor(const Kernel& k, const Instr& i) {
  constexpr double kMost = 0x1p60;
  if (i.code != Code::Apply || i.op != Op::Mod || !is_float(i.dtype)) return std::nullopt;
  const Instr& by = k.instrs[i.b];
  int exponent = 0;
  const bool power =
      by.code == Code::Constant && by.value >= 1 && by.value <= kMost && std::frexp(by.value, &exponent) == 0.5;
  return power ? std::optional(by.value) : std::nullopt;
}

void fuse_products(Kernel& k) {
  const auto product = [&](int id, DType t) {
    const Instr& i = k.instrs[id];
    return i.code == Code::Apply && i.op == Op::Mul && i.dtype == t && id != k.result;  // the stored value is rounded
  };
  for (Instr& i : k.instrs) {
    if (i.code != Code::Apply || i.op != Op::Add || (i.dtype != DType::F32 && i.dtype != DType::F64)) continue;
    const bool first = product(i.a, i.dtype);
    if (!first && !product(i.b, i.dtype)) continue;
    if (reads(k, first ? i.b : i.a, first ? i.a : i.b)) continue;
    const Instr& p = k.instrs[first ? i.a : i.b];
    i.c = first ? i.b : i.a;
    i.a = p.a, i.b = p.b;
    i.code = Code::MulAdd;
  }
}

}  // namespace lc::codegen
