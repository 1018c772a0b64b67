// Rotations of heads by their positions (RoPE), as config.json describes them.
#pragma once

#include "lightcone/core/tensor.h"
#include "lightcone/models/blocks/positions/rope_config.h"

namespace lc {

// Sine and cosine, f32 [rows, pairs].
struct RopeAngles {
  Tensor cos, sin;
};
// The angles of the positions past, past + 1, ..., past + rows - 1.
RopeAngles rope_angles(Graph& g, const RopeConfig& r, const Dim& rows, const Dim& past = 0);

// Rotates the first 2 * pairs elements of each head of x [..., rows, head].
Tensor rotated(const Tensor& x, const RopeAngles& a, bool interleaved);

}  // namespace lc
