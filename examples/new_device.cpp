// A graph on the device of new_device.h, checked by verify().
#include "new_device.h"

#include <iostream>

#include "lightcone/lightcone.h"

using namespace lc;

int main() {
  Graph g;
  const Tensor x = g.input("x", {Dim::symbol("n", 1, 64), 8}), w = g.input("w", {8, 8});
  g.output("y", softmax(gelu(matmul(x, w)), 1));
  const auto device = std::make_shared<example::NewDevice>();
  const Compiler compiler = generic() | example::new_device(device);

  const Program program = compile(g, compiler);
  std::cout << "kernels on the " << program.device()->name() << ": " << program.kernels()
            << ", nodes left to the interpreter: " << program.interpreted() << '\n';
  Context run(program);
  run.bind("n", 2).set("x", std::vector<float>(16, 1)).set("w", std::vector<float>(64, 0.5f)).run();
  std::cout << "softmax of equal numbers: " << run.get("y")[0] << '\n';
  const VerifyReport checked = verify(g, compiler);  // against f64
  std::cout << (checked.ok() ? "verified\n" : checked.str());
  return checked.ok() ? 0 : 1;
}
