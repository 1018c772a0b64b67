// Matrix products: x [m, n] times a weight [n, n] that is loaded once, so that the library may pack it once.
#include <cmath>

#include "workload.h"

namespace lc::bench {
namespace {

// Rows of x: "m", or as many as columns.
std::int64_t rows_of(const Json& w) {
  return w.contains("m") ? w.at("m").get<std::int64_t>() : w.at("n").get<std::int64_t>();
}

// Signed bytes times signed bytes, summed as integers, as the peers compute it.
class ExactProduct final : public Workload {
 public:
  explicit ExactProduct(const Json& w) {
    const auto n = w.at("n").get<std::int64_t>(), rows = rows_of(w);
    Graph g;
    const Tensor x = g.input("x", {rows, n}, DType::I8), weight = g.parameter("w", {n, n}, DType::I8);
    g.output("y", matmul(to(x, DType::I32), to(weight, DType::I32).transpose(0, 1)));
    program_ = compile(g, generic() | cpu(cpu_options(w)));
    for (const bool input : {false, true}) {
      const auto count = static_cast<std::size_t>(input ? rows * n : n * n);
      Memory& m = input ? x_ : weight_;
      const std::vector<float> values = input_values(input ? "x" : "w", count, 127);
      m = Memory(count);
      for (std::size_t i = 0; i < count; ++i)
        m.data()[i] = static_cast<std::byte>(static_cast<std::int8_t>(std::trunc(values[i])));
    }
    program_.load("w", weight_.data(), weight_.size());
    context_ = std::make_unique<Context>(program_);
    context_->use("x", x_.data(), x_.size());
  }
  void call() override { context_->run(); }
  Json answer() override { return summary(context_->get("y")); }
  Json facts() override { return {{"kernels", program_.kernels()}, {"interpreted", program_.interpreted()}}; }

 private:
  Program program_;
  Memory weight_, x_;
  std::unique_ptr<Context> context_;
};

// The same as in quantised models: a Q8_0 weight with one scale for all its blocks, and f32 activations that the call
// rounds to 8 bits. They hold integers, so the answer is close to a peer's integer product.
class Int8Product final : public Workload {
 public:
  explicit Int8Product(const Json& w) {
    const auto n = w.at("n").get<std::int64_t>();
    Graph g;
    const Tensor x = g.input("x", {n, n});
    g.output("y", nn::linear(x, nn::parameter(g, "w", {n, n}, DType::U8, QuantFormat::Q8_0)));
    program_ = compile(g, generic() | cpu(cpu_options(w)));
    const auto side = static_cast<std::size_t>(n), blocks = side * side / 32;
    weight_ = Memory(blocks * 34);
    const std::vector<float> values = input_values("w", side * side, 127), xs = input_values("x", side * side, 127);
    for (std::size_t b = 0; b < blocks; ++b) {
      store_f64(weight_.data() + b * 34, DType::F16, 0, 1);
      for (std::size_t i = 0; i < 32; ++i)
        weight_.data()[b * 34 + 2 + i] =
            static_cast<std::byte>(static_cast<std::int8_t>(std::trunc(values[b * 32 + i])));
    }
    x_ = Memory(side * side * 4);
    for (std::size_t i = 0; i < side * side; ++i)
      store_f64(x_.data(), DType::F32, i, std::trunc(static_cast<double>(xs[i])));
    program_.load("w", weight_.data(), weight_.size());
    context_ = std::make_unique<Context>(program_);
    context_->use("x", x_.data(), x_.size());
  }
  void call() override { context_->run(); }
  Json answer() override { return summary(context_->get("y")); }
  Json facts() override { return {{"note", "Q8_0 weight, f32 activations rounded in the call"}}; }

 private:
  Program program_;
  Memory weight_, x_;
  std::unique_ptr<Context> context_;
};

}  // namespace

std::unique_ptr<Workload> make_gemm(const Json& w) {
  const auto dtype = w.at("dtype").get<std::string>();
  if (dtype == "int8") return std::make_unique<ExactProduct>(w);
  if (dtype == "q8_0") return std::make_unique<Int8Product>(w);
  const auto n = w.at("n").get<std::int64_t>();
  Net net(w);
  // y = x w^T, as torch.nn.Linear: x and the weight in the workload's dtype, the result in f32
  const Tensor weight = net.parameter("w", {n, n});
  const Tensor x = net.input("x", {rows_of(w), n}, 1, net.dtype());
  return net.finish(matmul(to(x, DType::F32), weight.transpose(0, 1)));
}

}  // namespace lc::bench
