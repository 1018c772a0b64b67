// Kernels in two halves, between which other kernels run: for work that waits for others, such as other ranks.
#pragma once

#include <memory>
#include <optional>

#include "lightcone/device/kernel.h"

namespace lc {

// `start` begins the work, and `wait` returns when it is done (XLA's all-reduce-start and all-reduce-done). `start` has
// the operands of the whole; the bytes that it returns are complete after `wait`, which has these bytes as its operand
// 0, works in place on them, and has the operands of the whole behind it, which stay until then.
struct Halves {
  std::shared_ptr<Kernel> start, wait;
};

// A kernel implements this if it can be split.
class Splittable {
 public:
  virtual ~Splittable() = default;
  // Returns nothing if it waits for nobody.
  virtual std::optional<Halves> halves() const = 0;
};

// Both halves implement this.
class Half {
 public:
  virtual ~Half() = default;
  virtual bool is_wait() const = 0;
  // A run ended early, by an Error: returns when nothing that has been started uses the run's memory any more.
  virtual void abandon() const = 0;
};

inline std::optional<Halves> halves(const Node& n) {
  const auto* s = dynamic_cast<const Splittable*>(n.kernel.get());
  return s ? s->halves() : std::nullopt;
}
inline bool is_wait(const Node& n) {
  const auto* half = dynamic_cast<const Half*>(n.kernel.get());
  return half && half->is_wait();
}

}  // namespace lc
