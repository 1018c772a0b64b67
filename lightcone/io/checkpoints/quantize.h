// Writes ggml's block formats: numbers to blocks, for GGUF files and parameters of graphs.
//
// Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, TQ1_0, TQ2_0 and MXFP4 are rounded as ggml rounds them, to the same bits. Q2_K to Q6_K,
// IQ4_NL and IQ4_XS leave a choice of scales. Here they minimise the sum of squared errors: several steps between codes
// are tried for each group of values, each with the scale and the minimum that fit its codes best (least squares); then
// scales and minima are rounded to their bits, neighbours of the rounded ones are tried, and the codes are chosen
// again.
#pragma once

#include "lightcone/macros_off.h"

#include <cstddef>
#include <span>

#include "lightcone/formats/block_formats.h"

namespace lc {

// True for the formats that quantize() writes. The others are for activations (Q8_1, Q8_K), have grids that need
// weights of importance (IQ1, IQ2, IQ3), or have no published way to choose their scales (Q1_0, Q2_0, NVFP4).
bool can_quantize(QuantFormat f);

// Writes blocks: info(f).bytes for each info(f).elements values, which a row of a matrix has a multiple of. `to` has
// room for all of them. Throws Error for another number of values, for values that are not finite or so large that a
// scale of 16 bits cannot hold them, and for a format that can_quantize() refuses.
void quantize(QuantFormat f, std::span<const float> values, std::span<std::byte> to);

}  // namespace lc
#include "lightcone/macros_on.h"
