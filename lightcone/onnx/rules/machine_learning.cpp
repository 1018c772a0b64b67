// Linear models, support vectors, and preparation of features: ai.onnx.ml. Trees are in trees.cpp.
#include <algorithm>
#include <cmath>
#include <map>

#include "lightcone/onnx/parts/scores.h"

namespace lc::onnx {
namespace {

// A feature's row of numbers, or one number for all features, along the last axis.
Tensor by_feature(Call& c, const std::vector<double>& v, const Tensor& x, double otherwise) {
  if (v.empty()) return full(x, {}, otherwise, DType::F32);
  if (v.size() == 1) return full(x, {}, v[0], DType::F32);
  return expand_to(c, floats(c, v, {static_cast<std::int64_t>(v.size())}), x.shape());
}

Values binarizer(Call& c) {
  const double threshold = c.number("threshold", 0);
  return {(c.x() > threshold).to(c.x().dtype())};
}
Values feature_vectorizer(Call& c) {
  c.ignore("inputdimensions");
  std::vector<Tensor> all;
  for (std::size_t k = 0; k < c.in.size(); ++k) {
    const Tensor x = c.x(k).to(DType::F32);
    all.push_back(x.rank() == 1 ? x.unsqueeze(0) : x);
  }
  if (all.empty()) c.refuse("has no operands");
  return {concat(all, 1)};
}
Values imputer(Call& c) {
  const Tensor x = c.x();
  if (!is_float(x.dtype())) {
    const Integers to = c.integers("imputed_value_int64s");
    const std::int64_t from = c.integer("replaced_value_int64", 0);
    c.ignore("replaced_value_float"), c.ignore("imputed_value_floats");
    const Tensor value = to.size() == 1 ? full(x, x.shape(), to[0], x.dtype())
                                        : expand_to(c, tensor_of(c, {to.begin(), to.end()}, x.dtype()), x.shape());
    return {where(eq(x, from), value, x)};
  }
  const std::vector<double> to = c.numbers("imputed_value_floats");
  const double from = c.number("replaced_value_float", 0);
  c.ignore("replaced_value_int64"), c.ignore("imputed_value_int64s");
  if (to.empty()) c.refuse("has no value to put in");
  const Tensor value = by_feature(c, to, x, 0).to(x.dtype());
  return {where(std::isnan(from) ? isnan(x) : eq(x, from), value, x)};
}
Values normalizer(Call& c) {
  const std::string_view norm = c.text("norm", "MAX");
  const Tensor x = c.x().to(DType::F32);
  Tensor by;
  if (norm == "MAX") by = amax(x, {-1}, true);
  else if (norm == "L1") by = sum(abs(x), {-1}, true);
  else if (norm == "L2") by = sqrt(sum(x * x, {-1}, true));
  else c.refuse(str_cat("has the norm ", norm));
  return {x / where(eq(by, 0), full_like(by, 1), by)};
}
Values scaler(Call& c) {
  const Tensor x = c.x().to(DType::F32);
  return {(x - by_feature(c, c.numbers("offset"), x, 0)) * by_feature(c, c.numbers("scale"), x, 1)};
}
Values one_hot_encoder(Call& c) {
  if (c.has_attribute("cats_strings")) c.refuse("has categories that are texts");
  c.ignore("zeros");  // a category that is not known would be an error of the data
  const Integers cats = c.integers("cats_int64s");
  const Tensor x = c.x().to(DType::I64), all = tensor_of(c, {cats.begin(), cats.end()});
  Shape s = x.shape();
  s.push_back(static_cast<std::int64_t>(cats.size()));
  return {eq(x.unsqueeze(x.rank()).expand(s), expand_to(c, all, s)).to(DType::F32)};
}

// ---- LabelEncoder -----------------------------------------------------------------------------------

// The attribute `what`_int64s, `what`_floats or `what`_tensor as a tensor [n]; undefined if there is none.
Tensor labels(Call& c, const std::string& what) {
  if (c.has_attribute(what + "_strings")) c.refuse("maps texts, which are not supported");
  if (c.has_attribute(what + "_int64s")) {
    const Integers v = c.integers(what + "_int64s");
    return tensor_of(c, {v.begin(), v.end()});
  }
  if (c.has_attribute(what + "_floats")) {
    const std::vector<double> v = c.numbers(what + "_floats");
    return floats(c, v, {static_cast<std::int64_t>(v.size())});
  }
  if (!c.has_attribute(what + "_tensor")) return {};
  const Tensor t = c.importer.constant(c.tensor(what + "_tensor"), {}).tensor;
  if (!t.defined()) c.refuse("maps texts, which are not supported");
  return t.reshape({product(t.shape())});
}
Values label_encoder(Call& c) {
  if (c.has_attribute("classes_strings")) c.refuse("maps texts, which are not supported");
  const Tensor x = c.x(), keys = labels(c, "keys"), values = labels(c, "values");
  if (!keys.defined() || !values.defined()) c.refuse("has no keys or no values");
  const std::int64_t n = fixed(c, keys.extent(0), "the number of keys");
  c.importer.same_extent(keys.extent(0), values.extent(0));
  c.ignore("default_string");
  Tensor otherwise = is_float(values.dtype()) ? full(x, {}, c.number("default_float", -0.0), values.dtype())
                                              : full(x, {}, c.integer("default_int64", -1), values.dtype());
  c.ignore("default_int64"), c.ignore("default_float");
  if (c.has_attribute("default_tensor")) otherwise = labels(c, "default").reshape({});
  if (n == 0) return {otherwise.expand(x.shape())};
  Shape s = x.shape();
  s.push_back(n);
  const Tensor key = expand_to(c, keys.to(x.dtype()), s), each = x.unsqueeze(x.rank()).expand(s);
  Tensor hit = eq(each, key);
  if (is_float(x.dtype()) && c.opset >= 4) hit = logical_or(hit, logical_and(isnan(each), isnan(key)));
  // The last of equal keys counts.
  const Tensor place = c.graph().index(s, Dim::index(x.rank(), n));
  const Tensor at = amax(where(hit, place, full_like(place, -1)), {-1});
  const Tensor found = index_select(values, 0, maximum(at, full_like(at, 0)).reshape({product(at.shape())}));
  return {where(at >= 0, found.reshape(x.shape()), otherwise.expand(x.shape()))};
}

// ---- linear models and support vectors ----------------------------------------------------------------

Tensor samples(Call& c) {
  const Tensor x = c.x().to(DType::F32);
  return x.rank() == 1 ? x.unsqueeze(0) : x;
}
// x [n, f] times coefficients [e, f], plus intercepts.
Tensor linear_scores(Call& c, const Tensor& x, std::int64_t e) {
  const std::vector<double> w = c.numbers("coefficients"), b = c.numbers("intercepts");
  if (e < 1 || w.empty() || w.size() % static_cast<std::size_t>(e) != 0)
    c.refuse(str_cat("has ", w.size(), " coefficients for ", e, " scores"));
  Tensor y = linear(x, floats(c, w, {e, static_cast<std::int64_t>(w.size()) / e}));
  if (!b.empty()) y = y + expand_to(c, floats(c, b, {static_cast<std::int64_t>(b.size())}), y.shape());
  return y;
}
Values linear_regressor(Call& c) {
  const Tensor y = linear_scores(c, samples(c), c.integer("targets", 1));
  return {transformed(c, y, c.text("post_transform", "NONE"))};
}
Values linear_classifier(Call& c) {
  c.ignore("multi_class");
  const Tensor x = samples(c);
  const auto e = static_cast<std::int64_t>(c.numbers("intercepts").size());
  const Tensor y = linear_scores(c, x, e);
  const ClassLabels l = class_labels(c, "classlabels_ints");
  const std::string_view transform = c.text("post_transform", "NONE");
  if (e == 1 && l.count == 2) {
    const Tensor first = y.select(1, 0);
    return {l.choose(c, (first > 0).to(DType::I64)), two_scores(c, first, transform, BinaryScores::Complement)};
  }
  const Tensor best = e == 1 ? (y.select(1, 0) > 0).to(DType::I64) : argmax(y, 1);
  return {l.choose(c, best), transformed(c, y, transform)};
}

// The kernel of each sample [n, f] with each support vector [s, f]: [n, s].
Tensor svm_kernel(Call& c, const Tensor& x, const Tensor& vectors) {
  const std::string_view type = c.text("kernel_type", "LINEAR");
  const std::vector<double> p = c.numbers("kernel_params", {0, 0, 0});
  if (p.size() != 3) c.refuse("needs gamma, coef0 and degree");
  if (type == "LINEAR") return linear(x, vectors);
  if (type == "POLY") return pow(linear(x, vectors) * p[0] + p[1], p[2]);
  if (type == "SIGMOID") return tanh(linear(x, vectors) * p[0] + p[1]);
  if (type != "RBF") c.refuse(str_cat("has the kernel ", type));
  const Tensor d = x.unsqueeze(1) - vectors.unsqueeze(0);
  return exp(sum(d * d, {2}) * -p[0]);
}
Values svm_regressor(Call& c) {
  const Tensor x = samples(c);
  const std::vector<double> w = c.numbers("coefficients"), v = c.numbers("support_vectors"), rho = c.numbers("rho");
  const std::int64_t n = c.integer("n_supports", 0);
  if (w.empty() || rho.empty()) c.refuse("has no coefficients");
  Tensor y;
  if (n > 0 && !v.empty()) {
    const std::int64_t f = static_cast<std::int64_t>(v.size()) / n;
    y = matmul(svm_kernel(c, x, floats(c, v, {n, f})), floats(c, w, {static_cast<std::int64_t>(w.size()), 1}));
  } else {
    c.ignore("kernel_type"), c.ignore("kernel_params");
    y = matmul(x, floats(c, w, {static_cast<std::int64_t>(w.size()), 1}));
  }
  y = y + rho[0];
  if (c.flag("one_class")) return {where(y > 0, full_like(y, 1), full_like(y, -1))};
  return {transformed(c, y, c.text("post_transform", "NONE"))};
}

// A list of maps from labels to scores, as the scores that it is made of: [n, labels].
Values zip_map(Call& c) {
  const Tensor x = c.x();
  const ClassLabels l = class_labels(c, "classlabels_int64s");
  if (x.rank() < 1 || !(x.extent(-1) == Dim(l.count)))
    c.refuse(str_cat("gives ", l.count, " labels to scores ", str(x.shape())));
  return {x};
}

}  // namespace

void add_machine_learning(Operators& t) {
  const char* const texts = "it maps texts, which are not supported";
  const Operator rows[] = {
      {kMl, "Binarizer", 1, binarizer, "a comparison"},
      {kMl, "CastMap", 1, nullptr, "maps are not supported"},
      {kMl, "CategoryMapper", 1, nullptr, texts},
      {kMl, "DictVectorizer", 1, nullptr, "maps are not supported"},
      {kMl, "FeatureVectorizer", 1, feature_vectorizer, "cat"},
      {kMl, "Imputer", 1, imputer, "where"},
      {kMl, "LabelEncoder", 2, label_encoder, "a comparison with all keys; numbers only"},
      {kMl, "LinearClassifier", 1, linear_classifier, "linear, argmax"},
      {kMl, "LinearRegressor", 1, linear_regressor, "linear"},
      {kMl, "Normalizer", 1, normalizer, "a quotient"},
      {kMl, "OneHotEncoder", 1, one_hot_encoder, "a comparison with all categories; numbers only"},
      {kMl, "SVMClassifier", 1, nullptr, "votes of pairs of classes are not supported"},
      {kMl, "SVMRegressor", 1, svm_regressor, "products with the support vectors"},
      {kMl, "Scaler", 1, scaler, "(x - offset) * scale"},
      {kMl, "ZipMap", 1, zip_map, "its operand, whose last axis has the labels in their order, for a list of maps"},
  };
  t.insert(t.end(), std::begin(rows), std::end(rows));
  add_trees(t);
}

}  // namespace lc::onnx
