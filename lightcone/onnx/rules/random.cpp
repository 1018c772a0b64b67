// Random numbers. They are those of lightcone/ops/random.h: no two implementations of ONNX draw the same ones.
#include "lightcone/ops/random.h"
#include "lightcone/onnx/read/call.h"

namespace lc::onnx {
namespace {

// Each draw has a stream of its own, which the seed of its node is a part of.
std::string stream_of(Call& c) {
  return c.importer.random_stream(c.has_attribute("seed") ? str_cat(c.number("seed", 0)) : "");
}
DType type_of(Call& c, DType otherwise) {
  return c.has_attribute("dtype") ? c.dtype("dtype", ElementType::Undefined) : otherwise;
}
Shape shape_attribute(Call& c) {
  Shape s;
  for (const std::int64_t n : c.integers("shape")) {
    if (n < 0) c.refuse(str_cat("has an extent of ", n));
    s.emplace_back(n);
  }
  return s;
}

Values random_normal(Call& c, const Shape& shape, DType type) {
  const double mean = c.number("mean", 0), scale = c.number("scale", 1);
  return {c.importer.random().normal(shape, mean, scale, stream_of(c)).to(type)};
}
Values random_uniform(Call& c, const Shape& shape, DType type) {
  const double low = c.number("low", 0), high = c.number("high", 1);
  return {c.importer.random().uniform(shape, low, high, stream_of(c)).to(type)};
}
template <Values (*f)(Call&, const Shape&, DType)>
Values of_shape(Call& c) {
  return f(c, shape_attribute(c), type_of(c, DType::F32));
}
template <Values (*f)(Call&, const Shape&, DType)>
Values of_operand(Call& c) {
  const Tensor x = c.x();
  return f(c, x.shape(), type_of(c, x.dtype()));
}

Values random_bernoulli(Call& c) {
  const Tensor p = c.x();
  return {c.importer.random().bernoulli(p, stream_of(c)).to(type_of(c, p.dtype()))};
}
Values multinomial(Call& c) {  // unnormalized log-probabilities [n, classes] -> [n, samples]
  const Tensor x = c.x();
  if (x.rank() != 2) c.refuse("needs [n, classes]");
  const std::int64_t samples = c.integer("sample_size", 1);
  if (samples < 0) c.refuse("has no number of samples");
  const Tensor logits = x.unsqueeze(1).expand({x.extent(0), samples, x.extent(1)});
  return {c.importer.random().categorical(logits, stream_of(c)).to(type_of(c, DType::I32))};
}

// The probability is an attribute at first and an operand from operator set 12 on, where a flag says whether the model
// trains. Sets 7 to 11 have no training.
Values dropout_(Call& c) {
  const Tensor x = c.x();
  c.ignore("consumed_inputs");
  double ratio = c.number("ratio", 0.5);
  if (c.has(1)) ratio = c.number(1);
  const bool training = c.opset < 7 ? !c.flag("is_test") : c.has(2) && c.integer(2) != 0;
  if (!(ratio >= 0 && ratio < 1)) c.refuse(str_cat("has a ratio of ", ratio));
  const DType mask_type = c.opset < 10 ? x.dtype() : DType::Bool;
  if (!training || ratio == 0) {
    c.ignore("seed");
    return {x, full(x, x.shape(), 1, mask_type)};
  }
  const std::string stream = c.importer.random_stream(c.has_attribute("seed") ? str_cat(c.integer("seed")) : "");
  const Tensor kept = c.importer.random().bernoulli(x.shape(), 1 - ratio, stream);
  return {where(kept, x * (1 / (1 - ratio)), zeros_like(x)), kept.to(mask_type)};
}

}  // namespace

void add_random(Operators& t) {
  const Operator rows[] = {
      {"", "Bernoulli", 15, random_bernoulli, "Random::bernoulli"},
      {"", "Dropout", 1, dropout_, "the operand; Random::bernoulli if the model trains"},
      {"", "Multinomial", 7, multinomial, "Random::categorical"},
      {"", "RandomNormal", 1, of_shape<random_normal>, "Random::normal"},
      {"", "RandomNormalLike", 1, of_operand<random_normal>, "Random::normal"},
      {"", "RandomUniform", 1, of_shape<random_uniform>, "Random::uniform"},
      {"", "RandomUniformLike", 1, of_operand<random_uniform>, "Random::uniform"},
  };
  t.insert(t.end(), std::begin(rows), std::end(rows));
}

}  // namespace lc::onnx
