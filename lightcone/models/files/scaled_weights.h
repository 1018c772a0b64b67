// Weights of 8 bits whose scales are tensors of their own, as quantization_config of config.json names them.
//
// Known are bitsandbytes with load_in_8bit (int8 and SCB), compressed-tensors with 8 bits (int8 or floats, and
// weight_scale), fp8 of DeepSeek and transformers (weight_scale_inv for blocks), and fbgemm_fp8. What these programs
// round of activations in a run is not rounded here.
#pragma once

#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/models/files/config_file.h"

namespace lc {

// Returns the checkpoint with each scaled weight as the f32 numbers that it stands for, without the scales; the same if
// config.json names no such quantisation. Throws Error for a method, a setting or a shape of scales that is not known.
Weights scaled_weights(const Weights& w, const ConfigFile& c);

}  // namespace lc
