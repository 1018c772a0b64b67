// Kernel: what a back end puts into a graph node, and all it must know to run there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lightcone/core/dim.h"

namespace lc {

// Spreads the tasks of one kernel over threads. Results may not depend on which worker runs a
// task, nor on how many there are: that is how the same bits come out for any thread count.
class Parallel {
 public:
  virtual ~Parallel() = default;
  virtual int workers() const = 0;
  virtual void run(int tasks, void (*task)(void* arg, int task, int worker), void* arg) = 0;
};
std::shared_ptr<Parallel> one_thread();

struct Launch {
  std::span<const void* const> in;  // whole operand buffers; views are the kernel's business
  void* out;
  std::span<const std::int64_t> sizes;  // the values of Kernel::sizes(), in order
  std::byte* scratch;                   // scratch_bytes(), 64-byte aligned
  Parallel& parallel;
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual std::string name() const = 0;
  virtual std::vector<Dim> sizes() const { return {}; }
  virtual Dim scratch_bytes(int /*workers*/) const { return 0; }
  // May the result be written over operand k, when nothing else reads that afterwards?
  virtual bool in_place(std::size_t /*k*/) const { return false; }
  // Must not allocate, lock or throw, except for an Error about the sizes given.
  virtual void run(const Launch& launch) const = 0;

  virtual std::string source() const { return {}; }  // generated code, for people
  virtual Dim flops() const { return 0; }
  virtual std::shared_ptr<Parallel> parallel() const { return nullptr; }  // where it runs by default
};

}  // namespace lc
