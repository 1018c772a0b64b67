// Functions that one kernel or a few compute, written with the library's own.
#include "bench/runner/protocol.h"
#include "lightcone/core/graph.h"
#include "lightcone/nn/parameter.h"
#include "lightcone/ops/ops.h"
#include "lightcone/optim/optim.h"
#include "lightcone/passes/passes.h"
#include "rows.h"

namespace lc::gpu_bench {
namespace {

using i64 = std::int64_t;
using Build = std::function<void(Graph& g)>;

// A graph, compiled for the device. Inputs hold random numbers, and parameters values that are valid for their format.
class Net {
 public:
  Net(const Setting& s, const Build& build, Precision precision = Precision::Highest)
      : program_([&] {
          Graph g;
          build(g);
          return compile(g, generic() | backends::gpu::compiler(s.device, {.precision = precision}));
        }()) {
    const Graph& g = program_.graph();
    for (const std::string& name : program_.inputs()) fill(g, name);
    context_ = std::make_unique<Context>(program_);
    for (const auto& [name, values] : values_) context_->set(name, values);
  }
  double seconds(const Setting& s) {
    return time_of(s, [&] { context_->run(); });
  }
  std::size_t kernels() const { return program_.kernels(); }

 private:
  void fill(const Graph& g, const std::string& name) {
    for (NodeId id = 0; id < g.size(); ++id) {
      const Node& n = g[id];
      if (n.op != Op::Input || n.name != name) continue;
      const auto elements = static_cast<std::size_t>(*product(n.shape).constant());
      if (!program_.is_parameter(name)) {
        if (is_float(n.dtype)) values_[name] = bench::input_values(name, elements);
        continue;
      }
      // small bytes: as bf16 and f16 numbers and as scales of blocks they are finite
      std::vector<unsigned char> bytes(elements * size_of(n.dtype));
      for (std::size_t k = 0; k < bytes.size(); ++k) bytes[k] = static_cast<unsigned char>(k * 2654435761u >> 26);
      program_.load(name, bytes.data(), bytes.size());
    }
  }
  Program program_;
  std::map<std::string, std::vector<float>> values_;
  std::unique_ptr<Context> context_;
};

// A function that is bound by memory: `bytes` are read and written for an element of [rows, columns].
Row streaming(std::string name, double bytes, DType type, std::function<void(Graph&, const Shape&, DType)> build) {
  return {
      std::move(name), [=](const Setting& s) -> Json {
        const i64 rows = s.tiny ? 16 : 8192, columns = s.tiny ? 64 : 4096;
        Net net(s, [&](Graph& g) { build(g, {rows, columns}, type); });
        const double t = net.seconds(s);
        return {{"gbytes_per_s", 1e-9 * bytes * static_cast<double>(rows * columns) / t}, {"kernels", net.kernels()}};
      }};
}
Row streaming(std::string name, double bytes, DType type, Tensor (*f)(const Tensor&)) {
  return streaming(std::move(name), bytes, type,
                   [=](Graph& g, const Shape& s, DType t) { g.output("y", f(g.input("x", s, t))); });
}

struct ProductSize {
  i64 rows, in, out;
  int weights = 1;  // read in turn, so that no cache holds them
};

// y = x w^T, for x [rows, in] and each w [out, in]. Activations have the type of the weights if that is f16 or bf16.
Row product(std::string name, ProductSize size, DType type, std::optional<QuantFormat> quant = {},
            Precision precision = Precision::Highest) {
  return {std::move(name), [=](const Setting& s) -> Json {
            const i64 m = s.tiny ? std::min<i64>(size.rows, 16) : size.rows;
            const i64 k = s.tiny ? (quant ? 256 : 64) : size.in, n = s.tiny ? 64 : size.out;
            const DType given = is_half(type) && !quant ? type : DType::F32;
            Net net(
                s,
                [&](Graph& g) {
                  const Tensor x = g.input("x", {m, k}, given);
                  for (int w = 0; w < size.weights; ++w)
                    g.output("y" + std::to_string(w),
                             nn::linear(x, nn::parameter(g, "w" + std::to_string(w), {n, k}, type, quant)));
                },
                precision);
            const double t = net.seconds(s) / size.weights;
            const double bits =
                quant ? 8.0 * info(*quant).bytes / info(*quant).elements : 8.0 * static_cast<double>(size_of(type));
            const double rest = static_cast<double>(size_of(given)) * static_cast<double>(m * (k + n));
            return {{"tflops", 2e-12 * static_cast<double>(m * n) * static_cast<double>(k) / t},
                    {"gbytes_per_s", 1e-9 * (bits / 8 * static_cast<double>(n * k) + rest) / t},
                    {"us", 1e6 * t},
                    {"kernels", net.kernels()}};
          }};
}

struct AttentionSize {
  i64 batch, heads, kv_heads, queries, keys, width;
  bool causal = false;
};

Row attention(std::string name, AttentionSize z, DType type, Precision precision = Precision::Highest) {
  return {std::move(name), [=](const Setting& s) -> Json {
            const i64 keys = s.tiny ? 64 : z.keys, queries = s.tiny ? std::min<i64>(z.queries, 64) : z.queries;
            Net net(
                s,
                [&](Graph& g) {
                  const Tensor q = g.input("q", {z.batch, z.heads, queries, z.width}, type);
                  const Tensor k = g.input("k", {z.batch, z.kv_heads, keys, z.width}, type);
                  const Tensor v = g.input("v", {z.batch, z.kv_heads, keys, z.width}, type);
                  g.output("y", scaled_dot_product_attention(q, k, v, {.is_causal = z.causal}));
                },
                precision);
            const double t = net.seconds(s);
            const double flops =
                4.0 * static_cast<double>(z.batch * z.heads * queries) * static_cast<double>(keys * z.width);
            return {{"tflops", 1e-12 * flops / (z.causal ? 2 : 1) / t}, {"us", 1e6 * t}, {"kernels", net.kernels()}};
          }};
}

}  // namespace

std::vector<Row> functions() {
  const auto norm = [](Graph& g, const Shape& s, DType t) {
    g.output("y", layer_norm(g.input("x", s, t), Shape{s[1]}, g.input("w", {s[1]}, t), g.input("b", {s[1]}, t)));
  };
  return {
      streaming("gelu f32", 8, DType::F32, [](const Tensor& x) { return gelu(x); }),
      streaming("gelu bf16", 4, DType::BF16, [](const Tensor& x) { return gelu(x); }),
      streaming("add f32", 12, DType::F32,
                [](Graph& g, const Shape& s, DType t) { g.output("y", g.input("a", s, t) + g.input("b", s, t)); }),
      streaming("softmax f32", 8, DType::F32, [](const Tensor& x) { return softmax(x, 1); }),
      streaming("softmax bf16", 4, DType::BF16, [](const Tensor& x) { return softmax(x, 1); }),
      streaming("layer norm f32", 8, DType::F32, norm),
      streaming("layer norm bf16", 4, DType::BF16, norm),
      streaming("sums of rows f32", 4, DType::F32, [](const Tensor& x) { return sum(x, 1); }),
      streaming("sums of columns f32", 4, DType::F32, [](const Tensor& x) { return sum(x, 0); }),
      streaming("transposed f32", 8, DType::F32, [](const Tensor& x) { return x.transpose(0, 1) * 2.0; }),
      streaming("AdamW f32", 28, DType::F32,
                [](Graph& g, const Shape& s, DType t) {
                  optim::step(optim::AdamW{}, {{g.input("w", s, t), g.input("gradient", s, t)}});
                }),
      product("gemv bf16 4096 x 14336", {1, 4096, 14336, 4}, DType::BF16),
      product("gemv bf16 14336 x 4096", {1, 14336, 4096, 4}, DType::BF16),
      product("gemv bf16 4096 x 4096", {1, 4096, 4096, 8}, DType::BF16),
      product("gemv Q8_0 4096 x 14336", {1, 4096, 14336, 4}, DType::F32, QuantFormat::Q8_0),
      product("gemv Q8_0 14336 x 4096", {1, 14336, 4096, 4}, DType::F32, QuantFormat::Q8_0),
      product("gemv Q4_0 4096 x 14336", {1, 4096, 14336, 4}, DType::F32, QuantFormat::Q4_0),
      product("gemv Q4_K 4096 x 14336", {1, 4096, 14336, 4}, DType::F32, QuantFormat::Q4_K),
      product("gemv Q6_K 4096 x 14336", {1, 4096, 14336, 4}, DType::F32, QuantFormat::Q6_K),
      product("few rows bf16 4 x 4096 x 14336", {4, 4096, 14336, 4}, DType::BF16),
      product("few rows bf16 4 x 14336 x 4096", {4, 14336, 4096, 4}, DType::BF16),
      product("few rows Q8_0 4 x 4096 x 14336", {4, 4096, 14336, 4}, DType::F32, QuantFormat::Q8_0),
      product("gemm bf16 512 x 4096 x 4096", {512, 4096, 4096}, DType::BF16),
      product("gemm bf16 4096^3", {4096, 4096, 4096}, DType::BF16),
      product("gemm bf16 8192^3", {8192, 8192, 8192}, DType::BF16),
      product("gemm f32 2048^3", {2048, 2048, 2048}, DType::F32),
      product("gemm f32 2048^3, High", {2048, 2048, 2048}, DType::F32, {}, Precision::High),
      product("gemm f32 2048^3, Medium", {2048, 2048, 2048}, DType::F32, {}, Precision::Medium),
      attention("attention bf16 [4, 16, 4096, 128]", {4, 16, 16, 4096, 4096, 128}, DType::BF16),
      attention("attention bf16 [4, 16, 4096, 128] causal", {4, 16, 16, 4096, 4096, 128, true}, DType::BF16),
      attention("attention bf16 [4, 16, 4096, 128], Medium", {4, 16, 16, 4096, 4096, 128}, DType::BF16,
                Precision::Medium),
      attention("attention bf16 [4, 16, 4096, 128] causal, Medium", {4, 16, 16, 4096, 4096, 128, true}, DType::BF16,
                Precision::Medium),
      attention("attention bf16, one query of 32 heads, 8192 keys", {1, 32, 8, 1, 8192, 128}, DType::BF16),
  };
}

}  // namespace lc::gpu_bench
