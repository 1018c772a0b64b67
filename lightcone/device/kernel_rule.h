// A device's kernel for a composite.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "lightcone/core/composite.h"
#include "lightcone/device/kernel.h"

namespace lc {

struct KernelRule {
  std::string device;  // "cpu"
  // The kernel of such a node; null where there is none for these types and attributes: then the definition is
  // computed. Its operands are whole; several results lie where result_offsets() says.
  std::function<std::shared_ptr<Kernel>(const Node& n, std::span<const TensorType> operands)> make;
};

inline const KernelRule* kernel_rule(const Composite& c, std::string_view device) {
  for (const auto& rule : c.kernels)
    if (rule->device == device) return rule.get();
  return nullptr;
}

// The value of a node that is a piece of its operand, from byte `offset` on.
std::shared_ptr<Kernel> part_kernel(std::int64_t offset, Dim bytes);

}  // namespace lc
