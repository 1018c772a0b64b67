// Writes graphs as StableHLO, with inputs and the f64 reference's results, for xla_check.py. A graph with symbolic
// extents is written twice, with numbers and with '?':
//
//   stablehlo_cases FOLDER [first random graph] [how many]
//
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "case_files.h"
#include "graphs.h"
#include "lightcone/passes/symbols.h"
#include "lightcone/stablehlo/write.h"
#include "lightcone/verify/random_graph.h"
#include "static_main.h"

namespace {

using namespace lc;

void write_graph(const std::filesystem::path& folder, const Graph& g, const Bindings& sizes,
                 const std::map<std::string, Value>& inputs, UnboundSizes unbound = UnboundSizes::Error) {
  const Results want = interpret(g, inputs, sizes, Rounding::Wide, true);
  const bool open = unbound == UnboundSizes::Open;
  const StableHloExport e = export_stablehlo(g, open ? Bindings() : sizes, Precision::Highest, unbound);
  test::Case c{.program = open ? test::with_static_main(e.module, test::bound(e, sizes)) : e.text()};
  for (const auto& a : e.arguments)
    if (a.kind != StableHloExport::Argument::Kind::Size)
      c.in.emplace_back(std::string(stablehlo::element_of(a.type.dtype)), inputs.at(a.name));
  for (const auto& r : e.results)
    c.out.push_back(
        {std::string(stablehlo::element_of(r.type.dtype)), r.name, (r.state ? want.states : want.outputs).at(r.name)});
  test::write_case(folder, c);
}

// XLA assumes that a square of integers is positive and divides it by a shift, even if the square overflowed.
bool divides_a_square(const Graph& g) {
  for (NodeId id = 0; id < g.size(); ++id) {
    const Node& n = g[id];
    if ((n.op != Op::Div && n.op != Op::Mod) || !is_integer(n.dtype)) continue;
    const Node& of = g[n.in[0].node];
    if (of.op == Op::Mul && of.in[0] == of.in[1]) return true;
  }
  return false;
}

std::uint64_t number(const char* text) { return std::strtoull(text, nullptr, 10); }

}  // namespace

int main(int count, char** words) {
  if (count < 2) {
    std::cerr << "usage: stablehlo_cases FOLDER [first random graph] [how many]\n";
    return 2;
  }
  const std::filesystem::path folder = words[1];
  const std::uint64_t first = count > 2 ? number(words[2]) : 0, many = count > 3 ? number(words[3]) : 60;
  int failed = 0;
  const auto attempt = [&](const std::string& name, const auto& write) {
    try {
      write();
    } catch (const Error& e) {
      std::cerr << name << ": " << e.what() << '\n';
      ++failed;
    }
  };
  for (const test::Named& n : test::named_graphs()) {
    const auto inputs = fitting_inputs(n.graph, n.sizes, 1, false);
    attempt(n.name, [&] { write_graph(folder / n.name, n.graph, n.sizes, inputs); });
    if (n.sizes.empty()) continue;
    const std::string open = n.name + "_open";
    attempt(open, [&] { write_graph(folder / open, n.graph, n.sizes, inputs, UnboundSizes::Open); });
  }
  for (std::uint64_t k = first; k < first + many; ++k)
    attempt(str_cat("random graph ", k), [&] {
      const Graph g = random_graph(k, {.nodes = 4 + static_cast<int>(k % 14)});
      if (divides_a_square(g)) return;
      const Bindings sizes = random_bindings(g, k);
      const auto inputs = random_inputs(g, sizes, k, k % 3 == 0);
      write_graph(folder / str_cat("random", k), g, sizes, inputs);
      if (!symbols_of(g).empty())
        write_graph(folder / str_cat("random", k, "_open"), g, sizes, inputs, UnboundSizes::Open);
    });
  return failed > 0;
}
