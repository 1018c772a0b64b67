// lightcone_bench_workload: Lightcone's side of bench/compare.
#include "workload.h"

namespace lc::bench {

CpuOptions cpu_options(const Json& w) {
  return {.threads = w.at("threads").get<int>(),
          .precision = w.value("precision", "") == "medium" ? Precision::Medium : Precision::Highest};
}

// ---- a net ------------------------------------------------------------------------------------------------------
namespace {

class Compiled final : public Workload {
 public:
  Compiled(Program p, std::vector<Memory> memory) : program_(std::move(p)), memory_(std::move(memory)), c_(program_) {}
  Context& context() { return c_; }
  void call() override { c_.run(); }
  Json answer() override { return summary(c_.get("y")); }
  Json facts() override {
    return {{"kernels", program_.kernels()},
            {"interpreted", program_.interpreted()},
            {"arena", program_.plan().arena_bytes}};
  }
  // Declares that the workload is a copy with arithmetic on the way, from the input to the output.
  void is_copy_of(const std::byte* input, int threads) { copied_ = input, threads_ = threads; }
  Workload* limit() override {
    if (copied_ && !limit_) {
      const std::span<const std::byte> y = c_.bytes("y");
      limit_ = limit_of(copied_, const_cast<std::byte*>(y.data()), y.size(), threads_);
    }
    return limit_.get();
  }

 private:
  Program program_;
  std::vector<Memory> memory_;
  Context c_;
  const std::byte* copied_ = nullptr;
  int threads_ = 0;
  std::unique_ptr<Workload> limit_;
};

}  // namespace

Net::Net(const Json& w)
    : options_(cpu_options(w)), dtype_(w.value("dtype", "f32") == "bf16" ? DType::BF16 : DType::F32) {}

Tensor Net::parameter(const std::string& name, std::vector<std::int64_t> shape) {
  const DType stored = shape.size() > 1 ? dtype_ : DType::F32;
  given_.push_back({name, stored, parameter_values(name, shape), true});
  return nn::parameter(graph_, name, Shape(shape.begin(), shape.end()), stored).value();
}

Tensor Net::input(const std::string& name, std::vector<std::int64_t> shape, float scale, DType dtype) {
  std::size_t count = 1;
  for (const std::int64_t n : shape) count *= static_cast<std::size_t>(n);
  given_.push_back({name, dtype, input_values(name, count, scale), false});
  return graph_.input(name, Shape(shape.begin(), shape.end()), dtype);
}

Tensor Net::ids(const std::string& name, std::vector<std::int64_t> shape, std::int64_t below) {
  constexpr std::int64_t kPrime = 7919;  // far apart, as words are
  std::int64_t count = 1;
  for (const std::int64_t n : shape) count *= n;
  std::vector<float> values;
  for (std::int64_t k = 0; k < count; ++k) values.push_back(static_cast<float>(k * kPrime % below));
  given_.push_back({name, DType::I32, std::move(values), false});
  return graph_.input(name, Shape(shape.begin(), shape.end()), DType::I32);
}

std::unique_ptr<Workload> Net::finish(Tensor y, Bound bound) {
  graph_.output("y", y);
  Program p = compile(graph_, generic() | cpu(options_));
  std::vector<Memory> memory;
  std::vector<std::pair<std::string, std::size_t>> inputs;
  for (const Given& v : given_) {
    Memory m(v.values.size() * size_of(v.dtype));
    if (v.dtype == DType::F32) std::memcpy(m.data(), v.values.data(), m.size());
    else
      for (std::size_t i = 0; i < v.values.size(); ++i)
        store_f64(m.data(), v.dtype, i, static_cast<double>(v.values[i]));
    if (v.weight) p.load(v.name, m.data(), m.size());
    else inputs.emplace_back(v.name, memory.size());
    memory.push_back(std::move(m));
  }
  std::vector<std::pair<std::string, std::pair<void*, std::size_t>>> use;
  for (const auto& [name, at] : inputs) use.push_back({name, {memory[at].data(), memory[at].size()}});
  auto done = std::make_unique<Compiled>(std::move(p), std::move(memory));
  for (const auto& [name, bytes] : use) done->context().use(name, bytes.first, bytes.second);
  if (bound == Bound::Copy) done->is_copy_of(static_cast<const std::byte*>(use.at(0).second.first), options_.threads);
  given_.clear();
  return done;
}

static std::unique_ptr<Workload> make(const Json& w) {
  const auto kind = w.at("kind").get<std::string>();
  if (kind == "gemm") return make_gemm(w);
  if (kind == "fused") return make_fused(w);
  if (kind == "decode" || kind == "prompt") return make_llama(w);
  if (kind == "train") return make_train(w);
  if (kind.starts_with("compile")) return make_compile(w);
  if (kind == "onnx") return make_onnx(w);
  if (kind == "model") return make_model(w);
  if (kind == "whisper") return make_whisper(w);
  if (kind == "limit") return make_limit(w);
  return make_net(w);
}

}  // namespace lc::bench

int main() { return lc::bench::serve({lc::bench::make, "lightcone " LIGHTCONE_VERSION, lc::bench::write_model}); }
