#include "lightcone/onnx/microsoft/microsoft.h"

namespace lc::onnx {

Tensor activated(Call& c, const Tensor& x, std::string_view name, double alpha, double beta) {
  if (name.empty()) return x;
  if (name == "Relu") return relu(x);
  if (name == "Sigmoid") return sigmoid(x);
  if (name == "Tanh") return tanh(x);
  if (name == "LeakyRelu") return leaky_relu(x, alpha);
  if (name == "HardSigmoid") return clamp(x * alpha + beta, 0.0, 1.0);
  if (name == "HardSwish") return hardswish(x);
  if (name == "Clip") return clamp(x, alpha, beta);
  if (name == "Gelu") return gelu(x);
  c.refuse(str_cat("has the activation ", name, ", which is not known"));
}

void add_microsoft(Operators& t) {
  for (const auto add : {add_microsoft_layers, add_microsoft_attention, add_microsoft_products, add_microsoft_bytes,
                         add_microsoft_refused})
    add(t);
}

}  // namespace lc::onnx
