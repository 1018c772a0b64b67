// Convolutions and pools with PyTorch's names and arguments (torch.nn.functional). Each checks the number of spatial
// axes and calls conv(), conv_transpose(), max_pool() and so on (ops.h describes shapes). Sizes are one number, or one
// per axis. As in PyTorch, x may be a single sample without a batch axis; then the result has none either.
#pragma once

#include "lightcone/ops/ops.h"

namespace lc {

// Convolves x [batch, in, n] with weight [out, in / groups, k]; bias is [out] or {}.
Tensor conv1d(Operand x, Operand weight, OptionalOperand bias = {}, const IntList& stride = 1,
              const IntList& padding = 0, const IntList& dilation = 1, int groups = 1);
// Convolves x [batch, in, h, w] with weight [out, in / groups, kh, kw].
Tensor conv2d(Operand x, Operand weight, OptionalOperand bias = {}, const IntList& stride = 1,
              const IntList& padding = 0, const IntList& dilation = 1, int groups = 1);
// Convolves x [batch, in, d, h, w] with weight [out, in / groups, kd, kh, kw].
Tensor conv3d(Operand x, Operand weight, OptionalOperand bias = {}, const IntList& stride = 1,
              const IntList& padding = 0, const IntList& dilation = 1, int groups = 1);
// The transposed convolution of x [batch, in, n] with weight [in, out / groups, k]; bias is [out] or {}.
Tensor conv_transpose1d(Operand x, Operand weight, OptionalOperand bias = {}, const IntList& stride = 1,
                        const IntList& padding = 0, const IntList& output_padding = 0, int groups = 1,
                        const IntList& dilation = 1);
Tensor conv_transpose2d(Operand x, Operand weight, OptionalOperand bias = {}, const IntList& stride = 1,
                        const IntList& padding = 0, const IntList& output_padding = 0, int groups = 1,
                        const IntList& dilation = 1);
Tensor conv_transpose3d(Operand x, Operand weight, OptionalOperand bias = {}, const IntList& stride = 1,
                        const IntList& padding = 0, const IntList& output_padding = 0, int groups = 1,
                        const IntList& dilation = 1);

// Max pooling. The default stride is kernel_size.
Tensor max_pool1d(Operand x, const IntList& kernel_size, const IntList& stride = {}, const IntList& padding = 0,
                  const IntList& dilation = 1, bool ceil_mode = false);
Tensor max_pool2d(Operand x, const IntList& kernel_size, const IntList& stride = {}, const IntList& padding = 0,
                  const IntList& dilation = 1, bool ceil_mode = false);
Tensor max_pool3d(Operand x, const IntList& kernel_size, const IntList& stride = {}, const IntList& padding = 0,
                  const IntList& dilation = 1, bool ceil_mode = false);
Tensor avg_pool1d(Operand x, const IntList& kernel_size, const IntList& stride = {}, const IntList& padding = 0,
                  bool ceil_mode = false, bool count_include_pad = true);
Tensor avg_pool2d(Operand x, const IntList& kernel_size, const IntList& stride = {}, const IntList& padding = 0,
                  bool ceil_mode = false, bool count_include_pad = true);
Tensor avg_pool3d(Operand x, const IntList& kernel_size, const IntList& stride = {}, const IntList& padding = 0,
                  bool ceil_mode = false, bool count_include_pad = true);
Tensor adaptive_max_pool1d(Operand x, const IntList& output_size);
Tensor adaptive_max_pool2d(Operand x, const IntList& output_size);
Tensor adaptive_max_pool3d(Operand x, const IntList& output_size);
Tensor adaptive_avg_pool1d(Operand x, const IntList& output_size);
Tensor adaptive_avg_pool2d(Operand x, const IntList& output_size);
Tensor adaptive_avg_pool3d(Operand x, const IntList& output_size);

}  // namespace lc
