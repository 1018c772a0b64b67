// The interface of kernels: what a back end stores in a graph node, as far as every device needs it. How a kernel runs
// is specific to its device: host_kernel.h has the host's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lightcone/base/error.h"
#include "lightcone/core/dim.h"
#include "lightcone/passes/origin.h"

namespace lc {

class Device;

// The independent iterations of a kernel.
struct Iterations {
  std::int64_t count = 0;
  std::int64_t multiple = 1;  // a thread's range begins at a multiple of this, so that threads do not share cache lines
  double work = 1;            // rough operations per iteration
};

// A kernel that computes one node of a graph. Several threads may run it at once.
class Kernel {
 public:
  virtual ~Kernel() = default;
  // Returns the kernel's name for profiles and messages.
  virtual std::string name() const = 0;
  // Returns the sizes that a launch needs; their values are in Launch::sizes, in this order.
  virtual std::vector<Dim> sizes() const { return {}; }
  // Returns the bytes of scratch memory for this many workers.
  virtual Dim scratch_bytes(int /*workers*/) const { return 0; }
  // Returns true if the result may overwrite operand k when nothing reads that operand afterwards.
  virtual bool in_place(std::size_t /*k*/) const { return false; }
  // Returns an offset in bytes if the result is merely the part of operand 0 that starts there. Such a result needs
  // neither memory nor a run unless it has to be stored elsewhere. The sizes of such a kernel are the bytes of the part
  // and its offset.
  virtual std::optional<Dim> part() const { return std::nullopt; }

  // Returns false if the result depends on more than the operands, such as what other ranks send. It is then computed
  // in every run, even if its operands are parameters.
  virtual bool same_every_run() const { return true; }

  // Returns true if a result made of parameters alone is kept from their loading on, however large it is: nothing would
  // have chosen a kernel that packs if it ran in every run.
  virtual bool packs() const { return false; }

  // Returns true if ranges of iterations can be run separately, so that the kernel may share a fork (fork.h). Such a
  // kernel has no scratch memory.
  virtual bool divisible() const { return false; }
  virtual Iterations iterations(std::span<const std::int64_t> /*sizes*/, int /*workers*/) const { return {}; }

  // Figures for profiles. Every operation of the graph counts as one per element, exp2 as well as add.
  virtual std::string source() const { return {}; }  // generated code, for people to read
  virtual Dim flops() const { return 0; }
  // Returns the bytes of operand k, or of the result, that a run touches; nullopt means the whole buffer.
  virtual std::optional<Dim> bytes_read(std::size_t k) const { return static_cast<void>(k), std::nullopt; }
  virtual std::optional<Dim> bytes_written() const { return std::nullopt; }

  // The creator sets these before it shares the kernel.
  Origin origin;
  // How the kernel's algorithm was chosen, for profiles: its name, then a line for each of the others, "winograd: the
  // stride is 2". Empty if there was no choice.
  std::vector<std::string> choice;
  std::shared_ptr<Device> device;  // device the kernel runs on by default; null: the host's one thread
};

}  // namespace lc
