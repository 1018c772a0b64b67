// KernelRule: a device's kernel for a composite.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "lightcone/core/composite.h"
#include "lightcone/device/kernel.h"

namespace lc {

// Creates kernels for the nodes of one composite on one device.
struct KernelRule {
  std::string device;  // "cpu"
  // Returns the kernel of a node, or null if there is none for these types and attributes; the node is then computed
  // from its definition. Operands are contiguous. Several results are placed at result_offsets().
  std::function<std::shared_ptr<Kernel>(const Node& n, std::span<const TensorType> operands)> make;
};

// Returns the rule of a composite for a device, or null.
inline const KernelRule* kernel_rule(const Composite& c, std::string_view device) {
  for (const auto& rule : c.kernels)
    if (rule->device == device) return rule.get();
  return nullptr;
}

// Returns a kernel whose value is the part of its operand that starts at byte `offset`.
std::shared_ptr<Kernel> part_kernel(Dim offset, Dim bytes);

}  // namespace lc
