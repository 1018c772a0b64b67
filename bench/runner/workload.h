// What the runner of Lightcone's side of bench/compare shares: workloads, data every peer can make too, answers.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/core/error.h"
#include "lightcone/core/graph.h"
#include "lightcone/nn/parameter.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/memory.h"
#include "lightcone/runtime/program.h"

namespace lc::bench {

using Json = nlohmann::ordered_json;

class Workload {
 public:
  virtual ~Workload() = default;
  virtual void call() = 0;
  // Seconds of one call, where that is not the time from outside (a compile that prepares first).
  virtual double timed_call();
  virtual Json answer() { return nullptr; }
  // What the table shows in addition: {"kernels": 3, ...}.
  virtual Json facts() { return Json::object(); }
};

double now();  // seconds
double peak_rss_bytes();

// ---- data -------------------------------------------------------------------------------------------------
// Number i of the array `name`, uniform in [-1, 1) and exact in f32: a hash that is the same three lines in C++,
// numpy and Rust, so every peer computes on the same numbers without a file of gigabytes.
inline float uniform(std::uint32_t seed, std::uint32_t i) {
  std::uint32_t h = i * 0x9E3779B1u + seed;
  h = (h ^ (h >> 16)) * 0x7FEB352Du;
  h = (h ^ (h >> 15)) * 0x846CA68Bu;
  h ^= h >> 16;
  return static_cast<float>(h >> 8) * 0x1p-23f - 1.0f;
}
std::uint32_t seed_of(std::string_view name);  // FNV-1a

// The values of a parameter by the rule of bench/peers/data.py: the name and the shape decide.
std::vector<float> parameter_values(const std::string& name, const std::vector<std::int64_t>& shape);
std::vector<float> input_values(const std::string& name, std::size_t count, float scale = 1);

// First and spread-out values and the root of the mean square: what the driver compares.
Json summary(std::span<const float> values);

CpuOptions cpu_options(const Json& w);

// A graph with named parameters, compiled and fed.
class Net {
 public:
  explicit Net(const Json& w);
  Graph& graph() { return graph_; }
  // A parameter with values by the rule, stored as the workload's dtype (vectors always as f32).
  Tensor parameter(const std::string& name, std::vector<std::int64_t> shape);
  Tensor input(const std::string& name, std::vector<std::int64_t> shape, float scale = 1);
  std::unique_ptr<Workload> finish(Tensor y);

 private:
  struct Given {
    std::string name;
    DType dtype;
    std::vector<float> values;
    bool weight;
  };
  Graph graph_;
  CpuOptions options_;
  DType dtype_;
  std::vector<Given> given_;
};

// ---- one for each kind of workload ----------------------------------------------------------------------------
std::unique_ptr<Workload> make_gemm(const Json& w);
std::unique_ptr<Workload> make_fused(const Json& w);
std::unique_ptr<Workload> make_net(const Json& w);      // mlp, scalar, vgg19, resnet50, bert, gpt
std::unique_ptr<Workload> make_llama(const Json& w);    // decode, prompt
std::unique_ptr<Workload> make_compile(const Json& w);  // compile-llama, compile-nodes
std::unique_ptr<Workload> make_limit(const Json& w);    // what the machine can do

// A GGUF checkpoint with random weights of a kind; see model_file.cpp.
void write_model(const Json& w);

}  // namespace lc::bench
