// The plan of a loop with a compiled body: which kernels a step runs, and where they read and write. The device
// executes it.
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

// Scratch memory holds the states twice, for even and for odd steps, and the values that the body computes.
class LoopPlan {
 public:
  // The location of a value during a step.
  struct Ref {
    enum Base : std::uint8_t {
      Scratch,  // `at` bytes from the start of the scratch memory
      Operand,  // operand number `at` of the loop, whole
      Slice,    // this step's part of slice number `at`
      State,    // state number `at` before this step
    } base = Scratch;
    std::size_t at = 0;  // bytes or an index, see Base
  };
  // A kernel of the body with the locations it reads and writes.
  struct Step {
    const Kernel* kernel;
    std::vector<Ref> in;
    Ref out;
    std::vector<std::int64_t> sizes;
    std::size_t scratch;
    std::size_t first;  // index of its first operand among all operands of all steps
  };

  // The sizes of the compiled body must be constants (compiled_whole()).
  LoopPlan(const LoopBody& body, Graph compiled, int workers, std::span<const TensorType> results);

  std::size_t states = 0, slices = 0, ys = 0;
  std::int64_t length = 0;
  bool reverse = false, keeps = false;
  std::vector<Step> once, steps;         // kernels that run before the first step; kernels of each step
  std::vector<Ref> next;                 // locations of the states after a step, then of the ys
  std::vector<std::size_t> bytes;        // bytes of each state, then of each slice, then of each y
  std::vector<std::int64_t> result_at;   // byte offsets of the results
  std::vector<std::size_t> state_at[2];  // byte offsets in the scratch memory, for even and odd steps
  std::size_t operands = 0;              // number of operands of all steps
  std::size_t scratch_bytes = 0;
  Dim flops = 0;

 private:
  Ref ref(NodeId id) const;
  void place_states(const LoopBody& body);
  void add_kernels();
  Graph graph_;
  MemoryPlan plan_;
  Prepared prepared_;
  std::map<NodeId, std::size_t> operand_;  // index of each input of the body
  std::size_t prepared_at_;
};

// Returns true if the graph has a loop.
bool has_loops(const Graph& g);
// Gives every loop a kernel on `device` (a name as in KernelRule) if `compiler` turns its body into kernels with
// constant sizes.
Graph compile_loops(const Graph& g, PassLog& log, const std::string& device, const Compiler& compiler, int workers,
                    const std::function<std::shared_ptr<Kernel>(LoopPlan)>& kernel);

}  // namespace lc
