#include "lightcone/codegen/sizes.h"

#include <map>
#include <string_view>

#include "lightcone/codegen/symbols.h"

namespace lc::codegen {

std::vector<Dim> size_symbols(const Kernel& k) {
  std::map<std::string_view, Bounds> bounds;
  const auto collect = [&](const Dim& d) {
    each_symbol(d, [&](const Dim::Atom& s) { bounds.emplace(s.name, s.bounds); });
  };
  for (const Instr& i : k.instrs)
    for (const Dim* d : {&i.offset, &i.valid, &i.stride, &i.extent}) collect(*d);
  for (const Tile& t : k.tiles) collect(t.offset);
  for (const Loop& l : k.loops) collect(l.extent);
  collect(k.store_offset);
  std::vector<Dim> sizes;
  for (const std::string& s : k.sizes) {
    const auto b = bounds.find(s);
    sizes.push_back(b == bounds.end() ? Dim(0) : Dim::symbol(s, b->second.lo, b->second.hi));
  }
  return sizes;
}

}  // namespace lc::codegen
