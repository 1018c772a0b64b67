// A back end in one file: a device, one kind of kernel for it, and the compiler that puts such kernels into a graph.
// docs/adding-a-device.md explains it. Its memory is out of the host's reach, as a card's is, and its "processor" is
// the interpreter of kernel IR: replace the three marked lines by your own.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "lightcone/base/error.h"
#include "lightcone/codegen/interpret/interpret.h"
#include "lightcone/codegen/sizes.h"
#include "lightcone/composites/composites.h"
#include "lightcone/device/device.h"
#include "lightcone/lowering/partition.h"
#include "lightcone/passes/canonical.h"
#include "lightcone/passes/composites.h"

namespace example {

using namespace lc;

// ---- memory -----------------------------------------------------------------------------------

class Memory final : public Buffer {
 public:
  // It gives Buffer no address, so that host() is null; and an empty tensor has a place, too.
  explicit Memory(std::size_t size) : Buffer(size), bytes(size + 64) {}
  std::vector<std::byte> bytes;  // (1) a handle of your device's memory
};
inline std::byte* at(BufferSlice p) { return static_cast<Memory*>(p.buffer)->bytes.data() + p.offset; }

// ---- kernels ----------------------------------------------------------------------------------

// A loop nest. Every node of the graph but the leaves becomes one of these.
class LoopKernel final : public Kernel {
 public:
  explicit LoopKernel(codegen::Kernel ir) : ir_(std::move(ir)), sizes_(codegen::size_symbols(ir_)) {
    // The sizes that it gets in each run: the symbols of the nest, and how often its outermost loop runs.
    sizes_.push_back(ir_.output_loops ? ir_.loops[0].extent : Dim(1));
    Dim elements = 1;
    for (int k = 0; k < ir_.output_loops; ++k)
      elements = elements * codegen::times(ir_.loops[static_cast<std::size_t>(k)]);
    sizes_.push_back(elements);
  }
  std::string name() const override { return ir_.name; }
  std::vector<Dim> sizes() const override { return sizes_; }
  void run(const Launch& l) const {
    std::vector<const void*> in;
    for (const BufferSlice& p : l.in) in.push_back(at(p));
    const std::int64_t outermost = l.sizes[ir_.sizes.size()], elements = l.sizes.back();
    if (elements == 0) return;
    codegen::interpret(ir_, in.data(), at(l.out), l.sizes.data(), 0, outermost);  // (2) what runs a kernel
  }

 private:
  codegen::Kernel ir_;
  std::vector<Dim> sizes_;
};

// ---- the device -------------------------------------------------------------------------------

class NewDevice final : public Device {
 public:
  std::string name() const override { return "new device"; }
  std::unique_ptr<Buffer> allocate(std::size_t bytes) override { return std::make_unique<Memory>(bytes); }
  // (3) its copies
  void copy_in(BufferSlice to, const void* from, std::size_t bytes) override { std::memcpy(at(to), from, bytes); }
  void copy_out(void* to, BufferSlice from, std::size_t bytes) override { std::memcpy(to, at(from), bytes); }
  void copy(BufferSlice to, BufferSlice from, std::size_t bytes) override { std::memcpy(at(to), at(from), bytes); }
  void zero(BufferSlice to, std::size_t bytes) override { std::memset(at(to), 0, bytes); }
  void launch(const Launch& l) override {
    const auto* kernel = dynamic_cast<const LoopKernel*>(l.kernel);
    if (!kernel) throw Error("device", str_cat("the kernel '", l.kernel->name(), "' is not for the ", name()));
    kernel->run(l);
  }
};

// ---- the compiler -----------------------------------------------------------------------------

// The partition decides which values are in memory and which loop nest makes each; every nest becomes a kernel.
inline Graph lower(const Graph& g, PassLog& log, const std::shared_ptr<Device>& device) {
  lowering::PartitionRules rules;
  rules.match = [](const Graph&, const lowering::Factors&) {
    return lowering::PartitionRules::Match();
  };  // none but loops
  const lowering::Partition partition(g, std::move(rules));
  Graph made;
  std::vector<NodeId> to(g.size(), ~NodeId{0});
  for (NodeId id = 0; id < g.size(); ++id) {
    Node n = g[id];
    if (n.op == Op::Input ? !partition.is_live(id) : !partition.results().contains(id)) continue;
    if (const auto* loop = partition.get<lowering::Loop>(id)) {
      const std::vector<NodeId> operands = partition.operands(id);
      auto kernel = std::make_shared<LoopKernel>(*loop->kernel);
      kernel->origin = {"new device: loop", steps(g, id, operands)};  // for profiles: which of the user's operations
      kernel->device = device;
      n = {.op = Op::Kernel, .dtype = n.dtype, .shape = n.shape, .kernel = std::move(kernel), .where = n.where};
      for (const NodeId k : operands) n.in.push_back({to[k], View(g[k].shape)});
      ++log.fired["loop"];
    } else {  // no kernel: the reference interpreter runs it on the host, through copies
      for (Edge& e : n.in) e.node = to[e.node];
    }
    to[id] = made.add(std::move(n));
  }
  copy_results(g, to, made);
  return made;
}

// Returns true for composites that loop nests cannot compute: all but the elementwise ones and gather. They are
// replaced by their definitions in primitives.
inline bool has_no_loop(const Graph&, const Node& n) { return n.op == Op::Composite && !is(n, builtin::gather()); }

inline Compiler new_device(std::shared_ptr<Device> device) {
  const auto define = [](const Graph& g, PassLog& log) { return inline_composites(g, log, has_no_loop); };
  return Compiler({"inline-composites", define, {}, true}) |
         Compiler({"materialize-views", [](const Graph& g, PassLog&) { return make_contiguous(g); }, {}, true}) |
         Compiler({"new device", [device](const Graph& g, PassLog& log) { return lower(g, log, device); }, {}, true});
}

}  // namespace example
