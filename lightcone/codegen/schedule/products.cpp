// Sums of products, rounded once, in every loop where the same expression stands.
#include "lightcone/codegen/kernel_ir.h"

namespace lc::ir {

void fuse_products(Kernel& k) {
  const auto product = [&](int id, DType t) {
    const Instr& i = k.instrs[static_cast<std::size_t>(id)];
    return i.code == Code::Apply && i.op == Op::Mul && i.dtype == t && id != k.result;  // what is stored is rounded
  };
  for (Instr& i : k.instrs) {
    if (i.code != Code::Apply || i.op != Op::Add || (i.dtype != DType::F32 && i.dtype != DType::F64)) continue;
    const bool first = product(i.a, i.dtype);
    if (!first && !product(i.b, i.dtype)) continue;
    const Instr& p = k.instrs[static_cast<std::size_t>(first ? i.a : i.b)];
    i.c = first ? i.b : i.a;
    i.a = p.a, i.b = p.b;
    i.code = Code::MulAdd;
  }
}

}  // namespace lc::ir
