// Modules that leave extents open ('?'), bound to numbers, with what the f64 reference makes of them, for xla_check.py:
//
//   stablehlo_open_cases MODULES FOLDER
//
// MODULES is a folder of .mlir files, as StableHLO's own test modules; those that cannot be read are left out. XLA is
// given the module as it was, and a new @main of static shapes that calls what was @main.
#include <cstdio>

#include "case_files.h"
#include "lightcone/verify/random_graph.h"
#include "module_checks.h"

namespace {

using namespace lc;

// A function of static types that calls the module's own: sizes are constants, arrays are converted to types with '?'.
std::string with_static_main(hlo::Module m, const StableHloOptions& bound) {
  const hlo::Function open = *m.function("main");
  hlo::Function f{.results = open.results};
  hlo::Operation call, end;
  call.name = "func.call", end.name = "func.return";
  call.attributes = {{"callee", {.kind = hlo::Attribute::Kind::Symbol, .text = "open"}}};
  for (int k = 0; const hlo::ValueId v : open.body.arguments) {
    const hlo::Type type = m.values[static_cast<std::size_t>(v)].type;
    call.operands.push_back(m.value(type));
    hlo::Operation given;
    given.name = "stablehlo.convert", given.results = {call.operands.back()};
    if (const auto n = bound.sizes.find(k); n != bound.sizes.end()) {
      const auto* bytes = reinterpret_cast<const std::byte*>(&n->second);
      given.name = "stablehlo.constant";
      given.attributes = {{"value", {.kind = hlo::Attribute::Kind::Dense, .type = type, .data = {bytes, bytes + 8}}}};
    } else {
      hlo::Type fixed = type;
      if (const auto s = bound.shapes.find(k); s != bound.shapes.end()) fixed.shape = s->second, fixed.bounds.clear();
      f.body.arguments.push_back(m.value(fixed));
      given.operands = {f.body.arguments.back()};
    }
    f.body.operations.push_back(given);
    ++k;
  }
  for (const hlo::Type& t : open.results) call.results.push_back(m.value(t));
  end.operands = call.results;
  f.body.operations.push_back(call);
  f.body.operations.push_back(end);
  for (hlo::Function& each : m.functions)
    if (each.name == "main") each.name = "open", each.is_public = false;
  m.functions.push_back(f);
  return hlo::print(m);
}

void write_module(const std::filesystem::path& folder, const hlo::Module& m) {
  const hlo::Function& main = *m.function("main");
  StableHloOptions bound;
  const StableHloProgram s = test::read_open(m, main, &bound);
  std::map<std::string, Value> inputs = fitting_inputs(s.graph, {}, 1, false);
  for (const auto& c : s.constants) inputs[c.name] = read_value(c.bytes->data(), c.dtype, c.shape);
  const Results want = interpret(s.graph, inputs, {}, Rounding::Wide, true);
  test::Case c{.program = with_static_main(m, bound)};
  for (std::size_t k = 0; k < s.inputs.size(); ++k)
    if (!s.inputs[k].empty())
      c.in.emplace_back(m.values[static_cast<std::size_t>(main.body.arguments[k])].type.element,
                        inputs.at(s.inputs[k]));
  for (std::size_t k = 0; k < s.outputs.size(); ++k)
    c.out.push_back({main.results[k].element, s.outputs[k], want.outputs.at(s.outputs[k])});
  test::write_case(folder, c);
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) return std::fprintf(stderr, "usage: stablehlo_open_cases MODULES FOLDER\n"), 2;
  int written = 0, refused = 0;
  for (const auto& e : std::filesystem::recursive_directory_iterator(words[1])) {
    if (e.path().extension() != ".mlir") continue;
    std::ifstream file(e.path(), std::ios::binary);
    try {
      const hlo::Module m = hlo::parse(std::string{std::istreambuf_iterator<char>(file), {}});
      const hlo::Function* main = m.function("main");
      if (!main || !test::leaves_open(m, *main)) continue;
      write_module(std::filesystem::path(words[2]) / e.path().stem(), m);
      ++written;
    } catch (const Error&) {
      ++refused;
    }
  }
  std::printf("%d modules with '?' are bound, %d other files are not read\n", written, refused);
}
