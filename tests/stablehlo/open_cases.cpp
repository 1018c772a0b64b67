// Writes modules with open extents ('?'), bound to numbers, and the f64 reference's results, for xla_check.py:
//
//   stablehlo_open_cases MODULES FOLDER
//
// MODULES is a folder of .mlir files, such as StableHLO's own test modules. Modules that cannot be read are left out.
// XLA gets the module as it was, with a new @main of static shapes that calls the original @main.
#include <cstdio>

#include "case_files.h"
#include "lightcone/verify/random_graph.h"
#include "module_checks.h"
#include "static_main.h"

namespace {

using namespace lc;

void write_module(const std::filesystem::path& folder, const stablehlo::Module& m) {
  const stablehlo::Function& main = *m.function("main");
  StableHloOptions bound;
  const StableHloProgram s = test::read_open(m, main, &bound);
  std::map<std::string, Value> inputs = fitting_inputs(s.graph, {}, 1, false);
  for (const auto& c : s.constants) inputs[c.name] = read_value(c.bytes->data(), c.dtype, c.shape);
  const Results want = interpret(s.graph, inputs, {}, Rounding::Wide, true);
  test::Case c{.program = test::with_static_main(m, bound)};
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
      const stablehlo::Module m = stablehlo::parse(std::string{std::istreambuf_iterator<char>(file), {}});
      const stablehlo::Function* main = m.function("main");
      if (!main || !test::leaves_open(m, *main)) continue;
      write_module(std::filesystem::path(words[2]) / e.path().stem(), m);
      ++written;
    } catch (const Error&) {
      ++refused;
    }
  }
  std::printf("%d modules with '?' are bound, %d other files are not read\n", written, refused);
}
