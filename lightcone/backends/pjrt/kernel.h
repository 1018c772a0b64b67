// A whole graph as one kernel: StableHLO text, which a plugin compiles once for each binding of the graph's sizes.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lightcone/backends/pjrt/client.h"
#include "lightcone/core/graph.h"
#include "lightcone/device/device.h"
#include "lightcone/passes/precision.h"

namespace lc::backends::pjrt {

class PjrtDevice;

class ProgramKernel final : public Kernel {
 public:
  // `operands`: the names of the graph's inputs, in the order of a launch's operands.
  ProgramKernel(const Graph& g, std::vector<std::string> operands, std::vector<std::int64_t> offsets,
                Precision precision, std::size_t programs);
  std::string name() const override { return "program"; }
  std::vector<Dim> sizes() const override { return sizes_; }

  void run(const Launch& l, PjrtDevice& device) const;  // called by the device
  // Compiles the program for these sizes, unless it is compiled already.
  void prepare(const Bindings& sizes, PjrtDevice& device) const { static_cast<void>(compiled(sizes, device)); }

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled(const Bindings& sizes, PjrtDevice& device) const;
  std::shared_ptr<const Compiled> compile(const Bindings& sizes, PjrtDevice& device) const;

  Graph graph_;
  std::map<std::string, std::size_t, std::less<>> operands_;
  std::vector<std::int64_t> offsets_;  // offsets of the results, within the kernel's value
  Precision precision_;
  std::size_t programs_;    // compiled programs that are kept, at most
  std::vector<Dim> sizes_;  // its symbols, in the order of their names
  mutable std::mutex mutex_;
  mutable std::vector<std::pair<Bindings, std::shared_ptr<const Compiled>>> kept_;  // least recently used first
};

}  // namespace lc::backends::pjrt
