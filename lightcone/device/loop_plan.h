// A loop whose body is compiled: where the values of a step lie, and which kernels make them. What it takes to run it
// is the device's business.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lightcone/core/composite.h"
#include "lightcone/device/kernel.h"
#include "lightcone/device/plan.h"
#include "lightcone/device/prepared.h"
#include "lightcone/passes/compiler.h"

namespace lc {

// The states lie in scratch memory twice, for even and for odd steps; so does what the body computes.
class LoopPlan {
 public:
  // Where a value of a step lies.
  struct Ref {
    enum Base : std::uint8_t {
      Scratch,  // `at` bytes from the start of it
      Operand,  // of the loop, whole
      Slice,    // of this step
      State,    // before this step
    } base = Scratch;
    std::size_t at = 0;  // or which one
  };
  // A kernel of the body, and where it reads and writes.
  struct Step {
    const Kernel* kernel;
    std::vector<Ref> in;
    Ref out;
    std::vector<std::int64_t> sizes;
    std::size_t scratch;
    std::size_t first;  // of all operands of all steps
  };

  // All sizes of the body are numbers (compiled_whole()).
  LoopPlan(const LoopBody& body, Graph compiled, int workers, std::span<const TensorType> results);

  std::size_t states = 0, slices = 0, ys = 0;
  std::int64_t length = 0;
  bool reverse = false, keeps = false;
  std::vector<Step> once, steps;         // before the first step; in each
  std::vector<Ref> next;                 // states behind a step, then ys
  std::vector<std::size_t> bytes;        // of a state, then of a slice, then of a y
  std::vector<std::int64_t> result_at;   // in the result
  std::vector<std::size_t> state_at[2];  // in the scratch memory, for even and odd steps
  std::size_t operands = 0;              // of all steps
  std::size_t scratch_bytes = 0;
  Dim flops = 0;

 private:
  Ref ref(NodeId id) const;
  void place_states(const LoopBody& body);
  void add_kernels();
  Graph graph_;
  MemoryPlan plan_;
  Prepared prepared_;
  std::map<NodeId, std::size_t> operand_;  // of an input of the body
  std::size_t prepared_at_;
};

bool has_loops(const Graph& g);
// Every loop whose body `compiler` turns into kernels that run for its sizes gets a kernel of its own on `device`, by
// its name in KernelRule.
Graph compile_loops(const Graph& g, PassLog& log, const std::string& device, const Compiler& compiler, int workers,
                    const std::function<std::shared_ptr<Kernel>(LoopPlan)>& kernel);

}  // namespace lc
