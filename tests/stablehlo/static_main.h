// Wraps modules with open extents in a function with static types, as XLA requires.
#pragma once

#include <algorithm>
#include <string>

#include "lightcone/stablehlo/read.h"
#include "lightcone/stablehlo/write.h"

namespace lc::test {

// Returns the extents and sizes for an exported module, from the bindings of the graph.
inline StableHloOptions bound(const StableHloExport& e, const Bindings& sizes) {
  StableHloOptions o;
  for (std::size_t k = 0; k < e.arguments.size(); ++k) {
    const auto& a = e.arguments[k];
    if (a.kind == StableHloExport::Argument::Kind::Size) {
      o.sizes[static_cast<int>(k)] = sizes.at(a.name);
    } else if (!std::ranges::all_of(a.type.shape, &Dim::is_constant)) {
      for (const Dim& d : a.type.shape) o.shapes[static_cast<int>(k)].push_back(d.eval(sizes));
    }
  }
  return o;
}

// Adds a main function with static types that calls the module's own main: sizes become constants, arrays are converted
// to types with '?'.
inline std::string with_static_main(stablehlo::Module m, const StableHloOptions& bound) {
  const stablehlo::Function open = *m.function("main");
  stablehlo::Function f{.results = open.results};
  stablehlo::Operation call, end;
  call.name = "func.call", end.name = "func.return";
  call.attributes = {{"callee", {.kind = stablehlo::Attribute::Kind::Symbol, .text = "open"}}};
  for (int k = 0; const stablehlo::ValueId v : open.body.arguments) {
    const stablehlo::Type type = m.values[static_cast<std::size_t>(v)].type;
    call.operands.push_back(m.value(type));
    stablehlo::Operation given;
    given.name = "stablehlo.convert", given.results = {call.operands.back()};
    if (const auto n = bound.sizes.find(k); n != bound.sizes.end()) {
      const auto* bytes = reinterpret_cast<const std::byte*>(&n->second);
      given.name = "stablehlo.constant";
      given.attributes = {
          {"value", {.kind = stablehlo::Attribute::Kind::Dense, .type = type, .data = {bytes, bytes + 8}}}};
    } else {
      stablehlo::Type fixed = type;
      if (const auto s = bound.shapes.find(k); s != bound.shapes.end()) fixed.shape = s->second, fixed.bounds.clear();
      f.body.arguments.push_back(m.value(fixed));
      given.operands = {f.body.arguments.back()};
    }
    f.body.operations.push_back(given);
    ++k;
  }
  for (const stablehlo::Type& t : open.results) call.results.push_back(m.value(t));
  end.operands = call.results;
  f.body.operations.push_back(call);
  f.body.operations.push_back(end);
  for (stablehlo::Function& each : m.functions)
    if (each.name == "main") each.name = "open", each.is_public = false;
  m.functions.push_back(f);
  return stablehlo::print(m);
}

}  // namespace lc::test
