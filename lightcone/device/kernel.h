// Kernel: what a back end puts into a graph node, and what every device knows of it. How it is run is the device's
// business: host_kernel.h is how the host does it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lightcone/core/dim.h"
#include "lightcone/core/error.h"
#include "lightcone/passes/origin.h"

namespace lc {

class Device;

// The iterations of a kernel that do not depend on each other.
struct Iterations {
  std::int64_t count = 0;
  std::int64_t multiple = 1;  // a thread begins at a multiple of this, for what shares a cache line
  double work = 1;            // of each, in rough operations
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual std::string name() const = 0;
  virtual std::vector<Dim> sizes() const { return {}; }
  virtual Dim scratch_bytes(int /*workers*/) const { return 0; }
  // May the result be written over operand k, when nothing else reads that afterwards?
  virtual bool in_place(std::size_t /*k*/) const { return false; }
  // The result is nothing but a piece of operand 0, from this byte on: it needs no memory and no run, unless it is
  // wanted somewhere else.
  virtual std::optional<std::int64_t> part() const { return std::nullopt; }

  // A kernel that can be run iteration by iteration may share a fork with others (fork.h). It has no scratch.
  virtual bool divisible() const { return false; }
  virtual Iterations iterations(std::span<const std::int64_t> /*sizes*/, int /*workers*/) const { return {}; }

  // For profiles. An operation of the graph counts as one a number it makes, exp2 as well as add.
  virtual std::string source() const { return {}; }  // generated code, for people
  virtual Dim flops() const { return 0; }
  // Bytes of operand k and of the result that a run touches; nothing said: the whole buffer.
  virtual std::optional<Dim> bytes_read(std::size_t k) const { return static_cast<void>(k), std::nullopt; }
  virtual std::optional<Dim> bytes_written() const { return std::nullopt; }

  // Set by what made the kernel, before anyone shares it:
  Origin origin;
  std::shared_ptr<Device> device;  // where it runs by default; null: on the host's one thread
};

}  // namespace lc
