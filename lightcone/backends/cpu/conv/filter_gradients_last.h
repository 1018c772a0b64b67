// Filter gradients whose factors have contiguous pixels instead of contiguous channels. Both factors are copied to
// channels-last order, which reads each once; materializing the windows of one would write nine times its size.
#pragma once

#include "lightcone/backends/cpu/conv/conv.h"
#include "lightcone/passes/compiler.h"
#include "lightcone/passes/precision.h"

namespace lc::backends::cpu {

// Returns whether filter_gradients_last() may change the graph.
bool may_have_filter_gradients(const Graph& g, const Target& target = {}, Precision precision = Precision::Highest);
// A pass: copies the factors of filter gradients to a layout with contiguous channels if they have another.
Graph filter_gradients_last(const Graph& g, PassLog& log, const Target& target = {},
                            Precision precision = Precision::Highest);
// Returns whether `c` resembles a filter gradient: it has so many sums per result that it is not computed as an
// ordinary convolution.
bool like_filter_gradient(const Graph& g, const lowering::Convolution& c);
// Returns whether `c` sums over more pixels than its result has, as the gradient of filters does: the distinction on
// tile registers, which compute ordinary convolutions of few pixels well.
bool sums_over_pixels(const Graph& g, const lowering::Convolution& c);

}  // namespace lc::backends::cpu
