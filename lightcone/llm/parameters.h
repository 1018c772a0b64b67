// The parameters of a model as files store them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace lc::llm {

// A parameter of a model.
struct ParameterInfo {
  std::string path;  // its name in PyTorch's state_dict
  std::vector<std::int64_t> shape;
  // The number of heads into which the rows of a query or key layer fall, if RoPE rotates the neighbours (2i, 2i + 1)
  // of a head. 0: the rows are in the order of Hugging Face's checkpoints, where RoPE rotates (i, i + head_dim / 2).
  std::int64_t interleaved_heads = 0;
};

// Maps the path of a parameter to its f32 values. It wraps any function that returns a span or a vector
// (Trainer::values, Trainer::merged).
class ParameterValues {
 public:
  template <class F>
    requires(!std::is_same_v<F, ParameterValues>)
  ParameterValues(F f)
      : of_([f = std::move(f)](const std::string& path) {
          const auto& values = f(path);
          return std::vector<float>(values.begin(), values.end());
        }) {}
  std::vector<float> operator()(const std::string& path) const { return of_(path); }

 private:
  std::function<std::vector<float>(const std::string&)> of_;
};

}  // namespace lc::llm
