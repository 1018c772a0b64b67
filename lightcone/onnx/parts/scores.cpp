#include "lightcone/onnx/parts/scores.h"

#include <cmath>
#include <cstring>
#include <numbers>

#include "lightcone/ops/special/special.h"

namespace lc::onnx {
namespace {

template <class T>
Tensor constant_bytes(Call& c, const std::vector<T>& v, std::vector<std::int64_t> shape, ElementType type) {
  std::int64_t n = 1;
  for (const std::int64_t d : shape) n *= d;
  if (n != std::ssize(v)) c.refuse(str_cat("has ", v.size(), " numbers where ", n, " are needed"));
  const auto bytes = std::make_shared<std::vector<std::byte>>(v.size() * sizeof(T));
  if (!v.empty()) std::memcpy(bytes->data(), v.data(), bytes->size());
  return c.importer.constant({.name = {}, .type = type, .shape = std::move(shape), .bytes = *bytes, .owner = bytes}, {})
      .tensor;
}

}  // namespace

Tensor floats(Call& c, const std::vector<double>& v, const std::vector<std::int64_t>& shape, DType dtype) {
  if (dtype == DType::F64) return constant_bytes(c, v, shape, ElementType::Double);
  return constant_bytes(c, std::vector<float>(v.begin(), v.end()), shape, ElementType::Float);
}
Tensor whole_numbers(Call& c, const Integers& v) { return constant_bytes(c, v, {std::ssize(v)}, ElementType::Int64); }

ClassLabels class_labels(Call& c, std::string_view name) {
  ClassLabels l{.integers = c.integers(name, {})};
  for (const std::string_view text : c.texts("classlabels_strings")) l.texts.emplace_back(text);
  if (!l.texts.empty() && !l.integers.empty()) c.refuse("has labels that are texts, and others that are integers");
  l.count = std::ssize(l.texts) + std::ssize(l.integers);
  return l;
}
Value ClassLabels::choose(Call& c, const Tensor& classes) const {
  if (!texts.empty()) {
    Value v;
    v.labels = std::make_shared<const Value::Labels>(Value::Labels{classes.to(DType::I64), texts});
    return v;
  }
  if (integers.empty()) return {};
  return {index_select(whole_numbers(c, integers), 0, classes)};
}

Tensor transformed(Call& c, const Tensor& scores, std::string_view transform) {
  if (transform.empty() || transform == "NONE") return scores;
  if (scores.extent(-1) == Dim(1) && transform != "PROBIT") return scores;
  if (transform == "LOGISTIC") return sigmoid(scores);
  if (transform == "SOFTMAX") return softmax(scores, -1);
  if (transform == "PROBIT") return erfinv(scores * 2.0 - 1.0) * std::numbers::sqrt2;
  if (transform != "SOFTMAX_ZERO") c.refuse(str_cat("has the transform ", transform));
  // A softmax in which scores of 0 stay close to 0.
  const Tensor most = amax(scores, {-1}, true), shifted = exp(scores - most);
  const Tensor e = where(abs(scores) > 1e-7, shifted, scores * exp(-most)), all = sum(e, {-1}, true);
  return e / where(eq(all, 0), full_like(all, 1), all);
}

Tensor two_scores(Call& c, const Tensor& second, std::string_view transform, BinaryScores how) {
  if (transform == "PROBIT") return transformed(c, second, transform).unsqueeze(1);
  if (transform == "LOGISTIC") return stack({sigmoid(-second), sigmoid(second)}, 1);
  return stack({how == BinaryScores::Negative ? -second : 1.0 - second, second}, 1);
}

}  // namespace lc::onnx
