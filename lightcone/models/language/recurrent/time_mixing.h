// RWKV 4 (B. Peng et al., "RWKV: reinventing RNNs for the transformer era", 2023): each channel averages the values of
// all rows so far by weights that decay with the distance, and a network that reads the row before, too.
//
// Parameters of the average: mix_key, mix_value and mix_receptance [1, 1, width], key, value, receptance, output, decay
// and bonus [inner]. Of the network: mix_key, mix_receptance, key [network, width], receptance, value.
#pragma once

#include <string>

#include "lightcone/models/blocks/projection.h"
#include "lightcone/models/language/config/decoder_states.h"
#include "lightcone/models/language/config/language_config.h"

namespace lc {

// The average: x [..., rows, width] -> the same shape. The work grows as the number of rows.
class TimeMixingLayer {
 public:
  TimeMixingLayer(std::int64_t width, const TimeMixing& m);
  void visit(nn::Visitor& v);
  // `shown`, bool [batch, rows, 1] or undefined: rows that are not are read by none.
  Tensor operator()(const Tensor& x, const Tensor& shown, const DecoderStates& states) const;

 private:
  Tensor average(const Tensor& key, const Tensor& value, const DecoderStates& states) const;

  std::int64_t width_, inner_;
  Tensor mix_key_, mix_value_, mix_receptance_, decay_, bonus_;
  Projection key_, value_, receptance_, output_;
};

// The network: x [..., rows, width] -> the same shape.
class ChannelMixingLayer {
 public:
  ChannelMixingLayer(std::int64_t width, const TimeMixing& m);
  void visit(nn::Visitor& v);
  Tensor operator()(const Tensor& x, const Tensor& shown, const DecoderStates& states) const;

 private:
  std::int64_t width_;
  Tensor mix_key_, mix_receptance_;
  Projection key_, receptance_, value_;
};

}  // namespace lc
