// A StableHLO module of other origin, run on the arrays next to it: Lightcone's side of bench/jax_programs.
#include <fstream>
#include <iterator>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/io/data/readers.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "lightcone/stablehlo/read.h"
#include "protocol.h"

namespace lc::bench {
namespace {

// Reads the module. The first w["parameters"] arguments are weights, which are loaded once.
StableHloProgram read(const Json& w, const Arrays& given) {
  std::ifstream file(w.at("module").get<std::string>(), std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  StableHloOptions options;
  for (int k = 0; k < w.at("parameters").get<int>(); ++k) options.parameters.push_back(k);
  for (int k = 0; given.contains(str_cat("arg", k)); ++k) options.shapes[k] = given.at(str_cat("arg", k)).shape;
  return read_stablehlo(text, options);
}

class Module final : public Workload {
 public:
  explicit Module(const Json& w)
      : given_(read_npz(w.at("arrays").get<std::string>())),
        module_(read(w, given_)),
        program_(compile(module_.graph, generic() | cpu({.threads = w.at("threads").get<int>()}))),
        context_(program_) {
    const auto view = [&](std::size_t k) {
      const Array& a = given_.at(str_cat("arg", k));
      return ArrayView{a.dtype, a.shape, a.bytes};
    };
    const auto parameters = w.at("parameters").get<std::size_t>();
    module_.load_constants(program_);
    for (std::size_t k = 0; k < parameters; ++k) program_.load(module_.inputs[k], view(k));
    for (std::size_t k = parameters; k < module_.inputs.size(); ++k) context_.set(module_.inputs[k], view(k));
  }
  void call() override { context_.run(); }
  Json answer() override { return summary(context_.get(module_.outputs.front())); }
  Json facts() override { return {{"kernels", program_.kernels()}, {"nodes", module_.graph.size()}}; }

 private:
  Arrays given_;  // the program reads them in place
  StableHloProgram module_;
  Program program_;
  Context context_;
};

}  // namespace
}  // namespace lc::bench

int main() {
  const auto make = [](const lc::bench::Json& w) -> std::unique_ptr<lc::bench::Workload> {
    return std::make_unique<lc::bench::Module>(w);
  };
  return lc::bench::serve({make, "lightcone " LIGHTCONE_VERSION, {}});
}
