// Classes of operations that the rewriting of modules distinguishes, whatever their elements are.
#include <set>

#include "lightcone/stablehlo/read/reader.h"

namespace lc::stablehlo {

bool hands_on(const Operation& op) {
  static const std::set<std::string_view> names = {
      "func.call",    "func.return",    "stablehlo.return",    "stablehlo.while",
      "stablehlo.if", "stablehlo.case", "stablehlo.composite", "stablehlo.optimization_barrier"};
  return names.contains(op.name);
}

bool moves(const Operation& op) {
  static const std::set<std::string_view> names = {"stablehlo.broadcast_in_dim",
                                                   "stablehlo.broadcast",
                                                   "stablehlo.dynamic_broadcast_in_dim",
                                                   "stablehlo.reshape",
                                                   "stablehlo.dynamic_reshape",
                                                   "stablehlo.transpose",
                                                   "stablehlo.slice",
                                                   "stablehlo.real_dynamic_slice",
                                                   "stablehlo.dynamic_slice",
                                                   "stablehlo.dynamic_update_slice",
                                                   "stablehlo.concatenate",
                                                   "stablehlo.reverse",
                                                   "stablehlo.pad",
                                                   "stablehlo.dynamic_pad",
                                                   "stablehlo.gather",
                                                   "stablehlo.dynamic_gather",
                                                   "stablehlo.torch_index_select",
                                                   "stablehlo.select",
                                                   "sdy.sharding_constraint"};
  return names.contains(op.name);
}

}  // namespace lc::stablehlo
