#include "lightcone/backends/gpu/products/epilogue.h"

#include "lightcone/codegen/sizes.h"

namespace lc::backends::gpu {

std::vector<NodeId> Epilogue::operands() const {
  std::vector<NodeId> all;
  if (loop)
    for (NodeId k : loop->operands)
      if (k != loop->producer) all.push_back(k);
  return all;
}

bool Epilogue::only_rounds() const {
  if (!loop) return true;
  const codegen::Kernel& k = loop->kernel;
  if (k.result < 0 || loop->operands.size() != 1) return false;
  const codegen::Instr* i = &k.instrs[k.result];
  while (i->code == codegen::Code::Convert && i->dtype == result) i = &k.instrs[i->a];
  return i->code == codegen::Code::Load && i->dtype == DType::F32;
}

std::vector<codegen::simt::Parameter> Epilogue::parameters() const {
  std::vector<codegen::simt::Parameter> all;
  if (loop)
    for (std::size_t k = 0; k < loop->operands.size(); ++k)
      if (loop->operands[k] != loop->producer)
        all.push_back({std::string(info(loop->kernel.buffers[k]).c), "more" + std::to_string(k)});
  return all;
}

codegen::simt::InlinedLines Epilogue::at(Writer& w, const Product& p, const std::string& index, const std::string& sum,
                                         codegen::simt::Language language) const {
  if (!loop) return {"", p.exact && p.to_f32 ? "(float)(" + sum + ")" : sum};
  const codegen::Kernel& k = loop->kernel;
  const std::vector<Dim> sizes = codegen::size_symbols(k);
  codegen::simt::Inlined in;
  const std::string row = w.number(p.row);
  in.row = p.row == p.results() ? "0" : "(" + index + ") / " + row;
  in.column = p.row == p.results() ? index : "(" + index + ") % " + row;
  for (std::size_t i = 0; i < loop->operands.size(); ++i)
    if (loop->operands[i] == loop->producer) in.made = static_cast<int>(i);
  in.value = p.exact && p.to_f32 ? "(float)(" + sum + ")" : sum;
  in.size = [&](std::size_t i) { return i == loop->begin_size ? std::string("0") : w.number(sizes[i]); };
  in.operand = [](int i) { return "more" + std::to_string(i); };
  return codegen::simt::render_inlined(k, in, w.index() == "long", language);
}

}  // namespace lc::backends::gpu
