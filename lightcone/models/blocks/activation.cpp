#include "lightcone/models/blocks/activation.h"

#include <utility>

#include "lightcone/ops/ops.h"
#include "lightcone/runtime/names.h"

namespace lc {
namespace {

using Function = Tensor (*)(const Tensor&);
Tensor gelu_exact(const Tensor& x) { return gelu(x); }
Tensor gelu_by_tanh(const Tensor& x) { return gelu_tanh(x); }

constexpr std::pair<std::string_view, Function> kActivations[] = {
    {"gelu", gelu_exact},
    {"gelu_python", gelu_exact},
    {"gelu_new", gelu_by_tanh},
    {"gelu_fast", gelu_by_tanh},
    {"gelu_pytorch_tanh", gelu_by_tanh},
    {"gelu_python_tanh", gelu_by_tanh},
    {"quick_gelu", [](const Tensor& x) { return x * sigmoid(x * 1.702); }},
    {"relu", [](const Tensor& x) { return relu(x); }},
    {"relu6", [](const Tensor& x) { return relu6(x); }},
    {"relu2", [](const Tensor& x) { return relu(x) * relu(x); }},
    {"silu", [](const Tensor& x) { return silu(x); }},
    {"swish", [](const Tensor& x) { return silu(x); }},
    {"mish", [](const Tensor& x) { return mish(x); }},
    {"tanh", [](const Tensor& x) { return tanh(x); }},
    {"sigmoid", [](const Tensor& x) { return sigmoid(x); }},
    {"hardswish", [](const Tensor& x) { return hardswish(x); }},
    {"hardsigmoid", [](const Tensor& x) { return hardsigmoid(x); }},
    {"leaky_relu", [](const Tensor& x) { return leaky_relu(x); }},
    {"elu", [](const Tensor& x) { return elu(x); }},
    {"linear", [](const Tensor& x) { return x; }},
};

}  // namespace

const std::vector<std::string_view>& activation_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const auto& [name, f] : kActivations) all.push_back(name);
    return all;
  }();
  return names;
}

Tensor activate(std::string_view name, const Tensor& x) {
  for (const auto& [known, f] : kActivations)
    if (known == name) return f(x);
  throw Error("activate", str_cat("there is no activation '", name, "'; the nearest is '",
                                  nearest_name(name, activation_names()), "'"));
}

}  // namespace lc
