// The epilogue fused into a product kernel: operations on a sum before it is stored.
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

  // Returns the operands that are read from memory, in order.
  std::vector<NodeId> operands() const;
  // Returns true if the result is the sum, rounded to the result's type, and nothing else.
  bool only_rounds() const;
  std::vector<codegen::simt::Parameter> parameters() const;
  // Returns lines that compute the result's element at index `index` from `sum`, and the expression that memory stores.
  codegen::simt::InlinedLines at(Writer& w, const Product& p, const std::string& index, const std::string& sum,
                                 codegen::simt::Language language) const;
};

}  // namespace lc::backends::gpu
