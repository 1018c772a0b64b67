// The algorithms that compute convolutions on the CPU: one table, and the choice among its rows.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/backends/cpu/conv/conv.h"
#include "lightcone/passes/precision.h"

namespace lc::backends::cpu {

// What the choice depends on besides the convolution.
struct ConvContext {
  const Graph& graph;
  Target target;
  Blocking blocking = Blocking();
  Precision precision = Precision::Highest;
  bool winograd = true;            // CpuOptions::winograd
  bool rounded = false;            // the factors are read before they are rounded to bf16: ConvPlan::rounded
  bool nhwc_bf16 = false;          // the graph's convolutions with channels last are multiplied in bf16
  std::span<const int> uses = {};  // Graph::uses(); read for Precision::Medium
};

// How a kernel reads its filters.
enum class FilterLayout : std::uint8_t {
  AsStored,
  PanelsIfPossible,  // packed by pack_weights_kernel() if they are a parameter that convolutions alone read
  Panels,            // packed by pack_weights_kernel()
  Bf16Panels,        // packed by pack_weights_kernel(), in pairs
  Bf16Registers,     // as RegisterFilters, by pack_weights_kernel() if they are a parameter, otherwise in each run
  Bf16Strips,        // packed by pack_nchw_bf16_kernel()
};

struct ConvAlgorithm {
  std::string_view name;
  FilterLayout filters;
  bool is_gradient = false;  // a sum over pixels, which runs no epilogue
  bool registers = false;    // on tile registers, for which it rounds both factors to bf16
  // Returns why the algorithm does not compute the convolution; nullopt: it does.
  std::optional<std::string> (*refuses)(const ConvPlan& c, const ConvContext& x);
  // Estimates the cycles of a core that multiplies two vectors per cycle, for the largest sizes. 0: wherever the
  // algorithm does not refuse, it is faster than all others.
  double (*cost)(const ConvPlan& c, const ConvContext& x);
  // Makes the kernel. `epilogue` may be null.
  std::shared_ptr<HostKernel> (*make)(const ConvPlan& c, std::shared_ptr<const Epilogue> epilogue,
                                      const ConvContext& x);
  // Returns whether it reads the image as it is stored if its numbers are bf16; null: it never does. Such an algorithm
  // also keeps its sums apart from an epilogue's result in bf16.
  bool (*reads_bf16)(const ConvPlan& c) = nullptr;
  // Completes the plan when the algorithm is chosen; may be null.
  void (*prepare)(ConvPlan& c, const ConvContext& x) = nullptr;
  // Null: the choice is final when the kernel is made. Otherwise sizes may be symbolic: the rows that have this share a
  // kernel, which chooses among them again in each run, by the run's sizes.
  const ConvInRun* in_run = nullptr;
};
// Among the algorithms that do not refuse, the cheapest is chosen, and of equally cheap ones the first.
extern const std::array<ConvAlgorithm, 12> kConvAlgorithms;
// The algorithm of this name, which must exist.
const ConvAlgorithm& conv_algorithm(std::string_view name);

// Chooses the algorithm of `c`; null if all refuse.
const ConvAlgorithm* choose(const ConvPlan& c, const ConvContext& x);
// Chooses the algorithm of a run.
const ConvInRun& choose_in_run(const ConvRun& run);
// Explains the choice for `c`, whose algorithm is set: the algorithm's name, then a line for each other one, "winograd:
// the stride is 2".
std::vector<std::string> explain(const ConvPlan& c, const ConvContext& x);

// Returns whether a sum of products runs on tile registers if an algorithm for them computes it: the target has them,
// and the precision is Medium or the graph rounds both factors to bf16.
bool multiplied_on_registers(const Graph& g, const lowering::Factors& f, const Target& target, Precision precision);

struct FoundConvolution : lowering::Convolution {
  bool rounded = false;  // ConvPlan::rounded
};
// Matches a convolution that an algorithm computes; nullopt if there is none.
std::optional<FoundConvolution> find_convolution(const Graph& g, const lowering::Factors& f, const Target& target,
                                                 Precision precision = Precision::Highest);

}  // namespace lc::backends::cpu
