// Lightcone's workloads.
#pragma once

#include <cstring>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/base/error.h"
#include "lightcone/core/graph.h"
#include "lightcone/device/memory.h"
#include "lightcone/io/data/array.h"
#include "lightcone/nn/parameter.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "protocol.h"

namespace lc::bench {

CpuOptions cpu_options(const Json& w);

// A graph with named parameters, compiled, with its inputs and parameters set.
class Net {
 public:
  explicit Net(const Json& w);
  Graph& graph() { return graph_; }
  // Adds a parameter with the values of parameter_values(), stored in the workload's dtype (vectors always as f32).
  Tensor parameter(const std::string& name, std::vector<std::int64_t> shape);
  Tensor input(const std::string& name, std::vector<std::int64_t> shape, float scale = 1, DType dtype = DType::F32);
  DType dtype() const { return dtype_; }
  Tensor ids(const std::string& name, std::vector<std::int64_t> shape, std::int64_t below);  // i32
  enum class Bound { Unknown, Copy };  // the known limit of the workload
  std::unique_ptr<Workload> finish(Tensor y, Bound bound = Bound::Unknown);

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

// The values of an input of a model file: those of input_values(), whole numbers below a bound, or one number
// everywhere.
Array values_of(const Json& in);

// ---- one for each kind of workload ----------------------------------------------------------------------------
std::unique_ptr<Workload> make_gemm(const Json& w);
std::unique_ptr<Workload> make_fused(const Json& w);
std::unique_ptr<Workload> make_net(const Json& w);      // mlp, scalar, vgg19, resnet50, mobilenet, depthwise, bert, gpt
std::unique_ptr<Workload> make_llama(const Json& w);    // decode, prompt
std::unique_ptr<Workload> make_train(const Json& w);    // a training step: mlp, gpt, llama, resnet18
std::unique_ptr<Workload> make_compile(const Json& w);  // compile-llama, compile-nodes
std::unique_ptr<Workload> make_onnx(const Json& w);     // an ONNX file
std::unique_ptr<Workload> make_model(const Json& w);    // a folder that load_model() opens
std::unique_ptr<Workload> make_whisper(const Json& w);  // a Whisper's decoder, or all of it
std::unique_ptr<Workload> make_limit(const Json& w);    // limits of the machine

// Returns the limit of reading existing memory or, with `to`, copying it. A process's speed depends on the pages that
// it was given.
std::unique_ptr<Workload> limit_of(const std::byte* from, std::byte* to, std::size_t bytes, int threads);

// Writes a GGUF checkpoint with random weights; see model_file.cpp.
void write_model(const Json& w);

}  // namespace lc::bench
