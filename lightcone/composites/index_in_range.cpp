// index_in_range: identity on an index that must lie in [0, below). passes/index_checks.h makes programs check it.
#include "lightcone/composites/composites.h"

namespace lc::builtin {

const CompositeRef& index_in_range() {
  static const CompositeRef c = std::make_shared<const Composite>(Composite{
      .name = "index",
      .infer = [](const Attributes&, std::span<const TensorType> in) { return std::vector<TensorType>{in[0]}; },
      .define = [](const Attributes&, std::span<const Tensor> in) { return std::vector<Tensor>{in[0]}; }});
  return c;
}

}  // namespace lc::builtin
