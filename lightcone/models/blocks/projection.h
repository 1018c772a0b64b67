// Projection: a product with a weight in the layout of a file, and a bias.
#pragma once

#include <cstdint>

#include "lightcone/nn/module.h"

namespace lc {

// Options of Projection.
struct ProjectionOptions {
  bool bias = false;
  bool transposed = false;  // the weight is [in, out], as in GPT-2's files (transformers' Conv1D), not [out, in]
};

// x [..., in] -> [..., out], as torch.nn.Linear. Parameters: weight, and bias [out].
class Projection {
 public:
  Projection(std::int64_t in, std::int64_t out, const ProjectionOptions& o = {}) : in_(in), out_(out), o_(o) {}
  void visit(nn::Visitor& v);
  Tensor operator()(const Tensor& x, const nn::At& at = nn::At::current()) const;

  Tensor weight, bias;

 private:
  std::int64_t in_, out_;
  ProjectionOptions o_;
};

}  // namespace lc
