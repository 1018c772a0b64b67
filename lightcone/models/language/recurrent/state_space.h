// The selective state space of Mamba (A. Gu and T. Dao, 2023): a short convolution and a linear recurrence whose step
// depends on the token. Falcon Mamba (J. Zuo et al., 2024) normalises what the recurrence is made of.
//
// Parameters: in [2 inner, width], conv.weight [inner, 1, kernel] and conv.bias, select [rank + 2 state, inner],
// step.weight [inner, rank] and step.bias, decay [inner, state] (log(-rate), or the rate), skip [inner], output.
#pragma once

#include "lightcone/models/blocks/projection.h"
#include "lightcone/models/language/config/decoder_states.h"
#include "lightcone/models/language/config/language_config.h"

namespace lc {

// A convolution of each channel over rows, as a part of a state space: each row reads itself and the kernel - 1 rows
// before it. Parameters: weight [channels, 1, kernel], bias.
class RowConvolution {
 public:
  RowConvolution(std::int64_t channels, const StateSpace& s)
      : channels_(channels), kernel_(s.kernel), has_bias_(s.conv_bias) {}
  void visit(nn::Visitor& v);
  // x [..., rows, channels] -> the same shape.
  Tensor operator()(const Tensor& x, const DecoderStates& states) const;

 private:
  std::int64_t channels_, kernel_;
  bool has_bias_;
  Tensor weight_, bias_;
};

// The mixer of one layer: x [..., rows, width] -> the same shape. The work grows as the number of rows.
class StateSpaceLayer {
 public:
  StateSpaceLayer(std::int64_t width, const StateSpace& s);
  void visit(nn::Visitor& v);
  // `shown`, bool [batch, rows, 1] or undefined: rows that are not are taken for zeros.
  Tensor operator()(const Tensor& x, const Tensor& shown, const DecoderStates& states) const;

 private:
  Tensor recurrence(const Tensor& x, const Tensor& step, const Tensor& in, const Tensor& out,
                    const DecoderStates& states) const;
  Tensor normed(const Tensor& x) const;

  StateSpace s_;
  Projection in_, select_, step_, output_;
  RowConvolution conv_;
  Tensor decay_, skip_;
};

}  // namespace lc
