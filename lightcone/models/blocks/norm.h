// Norm: the normalisation layers of transformers behind one type, chosen by config.json.
#pragma once

#include <cstdint>

#include "lightcone/nn/module.h"

namespace lc {

// How a row is normalised: torch.nn.LayerNorm, torch.nn.RMSNorm, or RMSNorm with a factor of 1 + weight (Gemma).
enum class NormKind : std::uint8_t { Layer, Rms, RmsPlusOne };

// The kind of a Norm.
struct NormOptions {
  NormKind kind = NormKind::Layer;
  double eps = 1e-5;
  bool affine = true;  // there is a weight
  bool bias = true;    // a LayerNorm with a weight has one, too
};

// Normalises x over its last axes: [..., width], or [..., rows, width] with a weight for each row. Parameters: weight,
// bias.
class Norm {
 public:
  Norm(std::int64_t width, const NormOptions& o) : over_{width}, o_(o) {}
  void visit(nn::Visitor& v);
  Tensor operator()(const Tensor& x, const nn::At& at = nn::At::current()) const;

  Tensor weight, bias;

 private:
  Shape over_;
  NormOptions o_;
};

}  // namespace lc
