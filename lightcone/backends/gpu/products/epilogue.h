// What happens to a sum before it is stored: the epilogue, in the midst of the kernel that made the sum.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lightcone/backends/gpu/products/product.h"
#include "lightcone/backends/gpu/products/writer.h"
#include "lightcone/codegen/simt/grid.h"
#include "lightcone/lowering/partition.h"

namespace lc::backends::gpu {

struct Epilogue {
  DType result = DType::F32;
  std::shared_ptr<const lowering::EpilogueLoop> loop;  // null: the sum is the result

  // The operands that lie in memory, in order.
  std::vector<NodeId> operands() const;
  // Is the result the sum, rounded to the result's type, and nothing else?
  bool only_rounds() const;
  std::vector<codegen::simt::Parameter> places() const;
  // Lines that compute the result's element at `place` from `sum`, and its expression as memory has it.
  codegen::simt::InlinedLines at(Writer& w, const Product& p, const std::string& place, const std::string& sum,
                                 codegen::simt::Language language) const;
};

}  // namespace lc::backends::gpu
