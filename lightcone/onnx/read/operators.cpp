#include "lightcone/onnx/read/operators.h"

#include <algorithm>
#include <tuple>

namespace lc::onnx {

const Operators& operators() {
  static const Operators all = [] {
    Operators t;
    for (const auto& add :
         {add_elementwise,  add_arithmetic, add_shapes,           add_slices,    add_constants, add_reductions,
          add_norms,        add_products,   add_indexing,         add_random,    add_training,  add_convolutions,
          add_pooling,      add_images,     add_regions,          add_recurrent, add_signal,    add_attention,
          add_quantization, add_microsoft,  add_machine_learning, add_control,   add_sequences})
      add(t);
    std::ranges::sort(t, {}, [](const Operator& o) { return std::tuple(o.domain, o.name); });
    return t;
  }();
  return all;
}

const Operator* find_operator(std::string_view domain, std::string_view name) {
  const Operators& all = operators();
  const auto at = std::ranges::lower_bound(all, std::tuple(domain, name), {},
                                           [](const Operator& o) { return std::tuple(o.domain, o.name); });
  return at != all.end() && at->domain == domain && at->name == name ? &*at : nullptr;
}

}  // namespace lc::onnx
