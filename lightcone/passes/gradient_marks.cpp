#include "lightcone/passes/gradient_marks.h"

namespace lc {
namespace {

std::vector<TensorType> same_type(const Attributes&, std::span<const TensorType> in) { return {in[0]}; }
std::vector<Tensor> operand(const Attributes&, std::span<const Tensor> in) { return {in[0]}; }

}  // namespace

const CompositeRef& gradient_seed() {
  static const CompositeRef c =
      std::make_shared<const Composite>(Composite{.name = "gradient_seed", .infer = same_type, .define = operand});
  return c;
}

const CompositeRef& gradient_result() {
  static const CompositeRef c =
      std::make_shared<const Composite>(Composite{.name = "gradient_result", .infer = same_type, .define = operand});
  return c;
}

}  // namespace lc
