// Convolutions and pools with PyTorch's names and arguments (torch.nn.functional), each a call of conv(),
// conv_transpose(), max_pool() and so on (ops.h, which says the shapes) that checks the number of spatial axes. Sizes
// are one number, or one for each axis. As in torch x may also be one sample, without the axis of a batch; so is the
// result then.
#pragma once

#include "lightcone/ops/ops.h"

namespace lc {

// x [batch, in, n...], weight [out, in / groups, k...], bias [out] or {}.
Tensor conv1d(Operand x, Operand weight, OptionalOperand bias = {}, const IntList& stride = 1,
              const IntList& padding = 0, const IntList& dilation = 1, int groups = 1);
Tensor conv2d(Operand x, Operand weight, OptionalOperand bias = {}, const IntList& stride = 1,
              const IntList& padding = 0, const IntList& dilation = 1, int groups = 1);
Tensor conv3d(Operand x, Operand weight, OptionalOperand bias = {}, const IntList& stride = 1,
              const IntList& padding = 0, const IntList& dilation = 1, int groups = 1);
// x [batch, in, n...], weight [in, out / groups, k...].
Tensor conv_transpose1d(Operand x, Operand weight, OptionalOperand bias = {}, const IntList& stride = 1,
                        const IntList& padding = 0, const IntList& output_padding = 0, int groups = 1,
                        const IntList& dilation = 1);
Tensor conv_transpose2d(Operand x, Operand weight, OptionalOperand bias = {}, const IntList& stride = 1,
                        const IntList& padding = 0, const IntList& output_padding = 0, int groups = 1,
                        const IntList& dilation = 1);
Tensor conv_transpose3d(Operand x, Operand weight, OptionalOperand bias = {}, const IntList& stride = 1,
                        const IntList& padding = 0, const IntList& output_padding = 0, int groups = 1,
                        const IntList& dilation = 1);

// Without a stride it is the kernel's size.
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
