#include "lightcone/backends/gpu/products/tail.h"

#include <map>

#include "lightcone/codegen/symbols.h"

namespace lc::gpu {

std::vector<NodeId> Tail::operands() const {
  std::vector<NodeId> all;
  if (loop)
    for (NodeId k : loop->operands)
      if (k != loop->producer) all.push_back(k);
  return all;
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
  std::map<std::string_view, Bounds> bounds;
  const auto collect = [&](const Dim& d) {
    ir::each_symbol(d, [&](const Dim::Atom& s) { bounds.emplace(s.name, s.bounds); });
  };
  for (const ir::Instr& i : k.instrs)
    for (const Dim* d : {&i.offset, &i.valid, &i.stride, &i.extent}) collect(*d);
  simt::Inlined in;
  const std::string row = w.number(p.row);
  in.row = p.row == p.results() ? "0" : "(" + place + ") / " + row;
  in.column = p.row == p.results() ? place : "(" + place + ") % " + row;
  for (std::size_t i = 0; i < loop->operands.size(); ++i)
    if (loop->operands[i] == loop->producer) in.made = static_cast<int>(i);
  in.value = p.exact && p.to_f32 ? "(float)(" + sum + ")" : sum;
  in.size = [&](std::size_t i) {
    if (i == loop->begin_size) return std::string("0");
    const auto b = bounds.find(k.sizes[i]);
    return b == bounds.end() ? std::string("0") : w.number(Dim::symbol(k.sizes[i], b->second.lo, b->second.hi));
  };
  in.operand = [](int i) { return "more" + std::to_string(i); };
  return simt::render_inlined(k, in, w.index() == "long", language);
}

}  // namespace lc::gpu
