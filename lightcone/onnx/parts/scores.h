// Scores of classes and regressions as ai.onnx.ml gives them out, and constants made of attributes.
#pragma once

#include <string_view>
#include <vector>

#include "lightcone/onnx/read/call.h"

namespace lc::onnx {

void add_trees(Operators& t);

// Numbers as a constant f32 or f64 tensor.
Tensor floats(Call& c, const std::vector<double>& v, const std::vector<std::int64_t>& shape, DType dtype = DType::F32);
// Integers as a constant i64 tensor [n].
Tensor whole_numbers(Call& c, const Integers& v);

// The attributes classlabels_strings and `name`, which has integers.
struct ClassLabels {
  std::int64_t count = 0;
  Integers integers = {};  // empty if they are texts
  std::vector<std::string> texts = {};
  // The labels of classes [n]; nothing if there are none.
  Value choose(Call& c, const Tensor& classes) const;
};
ClassLabels class_labels(Call& c, std::string_view name);

// Applies NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT to scores [n, e]. As in onnxruntime, a single score is
// changed by PROBIT alone.
Tensor transformed(Call& c, const Tensor& scores, std::string_view transform);
// Scores [n, 2] of two classes from the second class's: 1 - s and s, or -s and s; probabilities with LOGISTIC.
// A softmax leaves them as they are, as onnxruntime does.
enum class BinaryScores : std::uint8_t { Complement, Negative };
Tensor two_scores(Call& c, const Tensor& second, std::string_view transform, BinaryScores how);

}  // namespace lc::onnx
