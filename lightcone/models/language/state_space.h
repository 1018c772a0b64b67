// The selective state space of Mamba (A. Gu and T. Dao, 2023): a short convolution and a linear recurrence whose step
// depends on the token.
//
// Parameters: in [2 inner, width], conv.weight [inner, 1, kernel] and conv.bias, select [rank + 2 state, inner],
// step.weight [inner, rank] and step.bias, decay [inner, state] (log(-rate), or the rate), skip [inner], output.
#pragma once

#include "lightcone/models/blocks/projection.h"
#include "lightcone/models/language/config/language_config.h"
#include "lightcone/models/language/decoder_states.h"

namespace lc {

// The mixer of one layer: x [..., rows, width] -> the same shape. The recurrence is summed for all rows at once, by the
// decay between each two of them: the work is rows^2 * inner * state, and nothing of that size is stored.
class StateSpaceLayer {
 public:
  StateSpaceLayer(std::int64_t width, const StateSpace& s);
  void visit(nn::Visitor& v);
  // `shown`, bool [batch, rows, 1] or undefined: rows that are not are taken for zeros.
  Tensor operator()(const Tensor& x, const Tensor& shown, const DecoderStates& states) const;

 private:
  Tensor convolved(const Tensor& x, const DecoderStates& states) const;
  Tensor recurrence(const Tensor& x, const Tensor& step, const Tensor& in, const Tensor& out,
                    const DecoderStates& states) const;

  StateSpace s_;
  Projection in_, select_, step_, output_;
  Tensor conv_, conv_bias_, decay_, skip_;
};

}  // namespace lc
