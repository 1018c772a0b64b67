// A new operation with a CPU kernel of its own: RMS normalisation over the last axis.
#include <cmath>
#include <iostream>

#include "lightcone/backends/cpu/composite_kernel.h"
#include "lightcone/lightcone.h"

using namespace lc;

// The kernel: a function of pointers and sizes. It may not throw or allocate.
void rms_norm_on_cpu(const CpuCall& call) {
  const std::int64_t n = call.in_shape(0)[1];
  const auto eps = static_cast<float>(call.attributes().real("eps"));
  call.parallel(call.in_shape(0)[0], [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const float* x = call.in<float>(0) + row * n;
      float* y = call.out<float>() + row * n;
      float sum = 0;
      for (std::int64_t k = 0; k < n; ++k) sum += x[k] * x[k];
      const float scale = 1 / std::sqrt(sum / static_cast<float>(n) + eps);
      for (std::int64_t k = 0; k < n; ++k) y[k] = x[k] * scale;
    }
  });
}

// The operation: a name, the types of its results, its definition in primitives, and a faster kernel.
Tensor rms_norm(const Tensor& x, double eps = 1e-5) {
  static const auto op = std::make_shared<const Composite>(
      Composite{.name = "rms_norm",
                .infer = [](const Attributes&, std::span<const TensorType> in) -> std::vector<TensorType> {
                  if (in[0].dtype != DType::F32 || in[0].shape.size() != 2) throw Error("", "needs a matrix of f32");
                  return {in[0]};
                },
                .define = [](const Attributes& a, std::span<const Tensor> in) -> std::vector<Tensor> {
                  return {in[0] / sqrt(mean(in[0] * in[0], {1}, true) + a.real("eps"))};
                },
                .kernels = {cpu_kernel(rms_norm_on_cpu)}});
  return call(op, {x}, {{"eps", eps}})[0];
}

int main() {
  Graph g;
  g.output("y", rms_norm(g.input("x", {Dim::symbol("rows", 1, 64), 4})));
  const Compiler compiler = generic() | cpu();
  // Checks on random inputs that the kernel computes what the definition does, against f64.
  const VerifyReport checked = verify(g, compiler);
  std::cout << (checked.ok() ? "verified\n" : checked.str());
  Context run(compile(g, compiler));
  run.bind("rows", 1).set("x", std::vector<float>{1, 2, 3, 4}).run();
  for (const float y : run.get("y")) std::cout << y << ' ';
  std::cout << '\n';
  return checked.ok() ? 0 : 1;
}
