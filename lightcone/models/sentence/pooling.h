// The operations behind an encoder: from the vectors of tokens to the vector of a text.
#pragma once

#include <span>

#include "lightcone/models/sentence/sentence_config.h"
#include "lightcone/nn/linear.h"

namespace lc {

// hidden [batch, length, width] and mask i64 [batch, length], 1 for a token -> [batch, kinds * width].
Tensor pooled(const Tensor& hidden, const Tensor& mask, std::span<const Pooling> kinds);

// A dense layer of sentence-transformers as a module: parameters linear.weight and linear.bias.
class SentenceDenseLayer {
 public:
  explicit SentenceDenseLayer(const SentenceDense& d)
      : activation_(d.activation), linear_(d.in, d.out, {.bias = d.bias}) {}
  void visit(nn::Visitor& v) { v("linear", linear_); }
  Tensor operator()(const Tensor& x) const;

 private:
  std::string activation_;
  nn::Linear<> linear_;
};

}  // namespace lc
