#include "lightcone/backends/gpu/products/tail.h"

#include "lightcone/codegen/sizes.h"

namespace lc::gpu {

std::vector<NodeId> Tail::operands() const {
  std::vector<NodeId> all;
  if (loop)
    for (NodeId k : loop->operands)
      if (k != loop->producer) all.push_back(k);
  return all;
}

bool Tail::only_rounds() const {
  if (!loop) return true;
  const ir::Kernel& k = loop->kernel;
  if (k.result < 0 || loop->operands.size() != 1) return false;
  const ir::Instr* i = &k.instrs[static_cast<std::size_t>(k.result)];
  while (i->code == ir::Code::Convert && i->dtype == result) i = &k.instrs[static_cast<std::size_t>(i->a)];
  return i->code == ir::Code::Load && i->dtype == DType::F32;
}

std::vector<simt::Parameter> Tail::places() const {
  std::vector<simt::Parameter> all;
  if (loop)
    for (std::size_t k = 0; k < loop->operands.size(); ++k)
      if (loop->operands[k] != loop->producer)
        all.push_back({std::string(info(loop->kernel.buffers[k]).c), "more" + std::to_string(k)});
  return all;
}

simt::InlinedLines Tail::at(Writer& w, const Product& p, const std::string& place, const std::string& sum,
                            simt::Language language) const {
  if (!loop) return {"", p.exact && p.to_f32 ? "(float)(" + sum + ")" : sum};
  const ir::Kernel& k = loop->kernel;
  const std::vector<Dim> sizes = ir::size_symbols(k);
  simt::Inlined in;
  const std::string row = w.number(p.row);
  in.row = p.row == p.results() ? "0" : "(" + place + ") / " + row;
  in.column = p.row == p.results() ? place : "(" + place + ") % " + row;
  for (std::size_t i = 0; i < loop->operands.size(); ++i)
    if (loop->operands[i] == loop->producer) in.made = static_cast<int>(i);
  in.value = p.exact && p.to_f32 ? "(float)(" + sum + ")" : sum;
  in.size = [&](std::size_t i) { return i == loop->begin_size ? std::string("0") : w.number(sizes[i]); };
  in.operand = [](int i) { return "more" + std::to_string(i); };
  return simt::render_inlined(k, in, w.index() == "long", language);
}

}  // namespace lc::gpu
