// Writes graphs as StableHLO with inputs and with what the f64 reference makes of them, for xla_check.py:
//
//   stablehlo_cases FOLDER [first random graph] [how many]
//
// A folder for each case: program.mlir, in0.npy ..., want0.npy ..., error0.npy ... (how far a right answer may be), and
// types.txt, the element types of arguments and results. Numbers are f64, whole ones i64.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "graphs.h"
#include "lightcone/stablehlo/write.h"
#include "lightcone/verify/random_graph.h"

namespace {

using namespace lc;

// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html, version 1.0
template <class T>
void save(const std::filesystem::path& to, const std::vector<std::int64_t>& shape, const std::vector<T>& values) {
  const char* kind = std::is_floating_point_v<T> ? "f8" : "i8";
  std::string header = cat("{'descr': '<", kind, "', 'fortran_order': False, 'shape': (");
  for (const std::int64_t n : shape) header += cat(n, ", ");
  header += "), }";
  header.append(63 - (header.size() + 10) % 64, ' ');
  header += '\n';
  std::ofstream file(to, std::ios::binary);
  file << "\x93NUMPY" << '\x01' << '\0' << static_cast<char>(header.size() % 256)
       << static_cast<char>(header.size() / 256) << header;
  file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
}
void save(const std::filesystem::path& to, const Value& v) {
  if (is_float(v.dtype)) save(to, v.shape, v.f);
  else save(to, v.shape, v.i);
}

void write_case(const std::filesystem::path& folder, const Graph& g, const Bindings& sizes,
                const std::map<std::string, Value>& inputs) {
  const Results want = interpret(g, inputs, sizes, Rounding::Wide, true);
  const StableHloExport e = export_stablehlo(g, sizes);
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "program.mlir") << e.text();
  std::ofstream types(folder / "types.txt");
  int k = 0;
  for (const auto& a : e.arguments) {
    types << "in " << hlo::element_of(a.type.dtype) << '\n';
    save(folder / cat("in", k++, ".npy"), inputs.at(a.name));
  }
  k = 0;
  for (const auto& r : e.results) {
    const Value& v = (r.state ? want.states : want.outputs).at(r.name);
    types << "out " << hlo::element_of(r.type.dtype) << ' ' << r.name << '\n';
    save(folder / cat("want", k, ".npy"), v);
    save(folder / cat("error", k++, ".npy"), v.shape, v.error.empty() ? std::vector<double>(v.size(), 0.0) : v.error);
  }
}

// XLA takes a square of whole numbers for positive, and divides it by a shift, also where it has wrapped around.
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
  for (const test::Named& n : test::named_graphs())
    attempt(n.name, [&] { write_case(folder / n.name, n.graph, n.sizes, fitting_inputs(n.graph, n.sizes, 1, false)); });
  for (std::uint64_t k = first; k < first + many; ++k)
    attempt(cat("random graph ", k), [&] {
      const Graph g = random_graph(k, {.nodes = 4 + static_cast<int>(k % 14)});
      if (divides_a_square(g)) return;
      const Bindings sizes = random_bindings(g, k);
      write_case(folder / cat("random", k), g, sizes, random_inputs(g, sizes, k, k % 3 == 0));
    });
  return failed > 0;
}
