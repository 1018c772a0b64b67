// The state space of Mamba 2 (T. Dao and A. Gu, "Transformers are SSMs", 2024): heads of channels with one rate and one
// step each, so that a block of rows is a few products of matrices.
//
// Parameters: in [2 inner + 2 groups state + heads, width], conv, step_bias [heads], decay [heads] (log of the rate),
// skip [heads], gate_norm.weight [inner], output.
#pragma once

#include "lightcone/models/blocks/projection.h"
#include "lightcone/models/language/config/decoder_states.h"
#include "lightcone/models/language/config/language_config.h"
#include "lightcone/models/language/recurrent/state_space.h"

namespace lc {

// The mixer of one layer: x [..., rows, width] -> the same shape. The work grows as the number of rows, up to thousands
// of blocks.
class StateSpaceDualLayer {
 public:
  StateSpaceDualLayer(std::int64_t width, const StateSpace& s, double eps);
  void visit(nn::Visitor& v);
  // `shown`, bool [batch, rows, 1] or undefined: rows that are not are taken for zeros.
  Tensor operator()(const Tensor& x, const Tensor& shown, const DecoderStates& states) const;

 private:
  std::int64_t mixed() const { return s_.inner + 2 * s_.groups * s_.state; }  // channels of the convolution
  std::int64_t head() const { return s_.inner / s_.heads; }
  Tensor recurrence(const Tensor& x, const Tensor& step, const Tensor& in, const Tensor& out,
                    const DecoderStates& states) const;
  Tensor gated(const Tensor& y, const Tensor& gate) const;

  StateSpace s_;
  double eps_;
  Projection in_, output_;
  RowConvolution conv_;
  Tensor step_bias_, decay_, skip_, norm_;
};

}  // namespace lc
