// The names by the number of spatial axes.
#include "lightcone/ops/conv.h"
#include "lightcone/ops/internal.h"

namespace lc {
using namespace detail;

namespace {
void check_axes(const Operand& x, int n, const char* op) {
  if (x->rank() != n + 2)
    throw Error(op, str_cat("needs [batch, channels, ", n, n == 1 ? " spatial axis" : " spatial axes", "], not ",
                            str(x->shape())));
}
}  // namespace

#define LC_NAMED(N)                                                                                                 \
  Tensor conv##N##d(Operand x, Operand weight, OptionalOperand bias, const IntList& stride, const IntList& padding, \
                    const IntList& dilation, int groups) {                                                          \
    const OpScope scope("conv" #N "d", x.at);                                                                       \
    check_axes(x, N, "conv" #N "d");                                                                                \
    return conv(x, weight, bias, {stride, padding, dilation, groups});                                              \
  }                                                                                                                 \
  Tensor conv_transpose##N##d(Operand x, Operand weight, OptionalOperand bias, const IntList& stride,               \
                              const IntList& padding, const IntList& output_padding, int groups,                    \
                              const IntList& dilation) {                                                            \
    const OpScope scope("conv_transpose" #N "d", x.at);                                                             \
    check_axes(x, N, "conv_transpose" #N "d");                                                                      \
    return conv_transpose(x, weight, bias, {stride, padding, dilation, groups, output_padding});                    \
  }                                                                                                                 \
  Tensor max_pool##N##d(Operand x, const IntList& kernel_size, const IntList& stride, const IntList& padding,       \
                        const IntList& dilation, bool ceil_mode) {                                                  \
    const OpScope scope("max_pool" #N "d", x.at);                                                                   \
    check_axes(x, N, "max_pool" #N "d");                                                                            \
    return max_pool(x, kernel_size, stride, padding, dilation, ceil_mode);                                          \
  }                                                                                                                 \
  Tensor avg_pool##N##d(Operand x, const IntList& kernel_size, const IntList& stride, const IntList& padding,       \
                        bool ceil_mode, bool count_include_pad) {                                                   \
    const OpScope scope("avg_pool" #N "d", x.at);                                                                   \
    check_axes(x, N, "avg_pool" #N "d");                                                                            \
    return avg_pool(x, kernel_size, stride, padding, ceil_mode, count_include_pad);                                 \
  }                                                                                                                 \
  Tensor adaptive_max_pool##N##d(Operand x, const IntList& output_size) {                                           \
    const OpScope scope("adaptive_max_pool" #N "d", x.at);                                                          \
    check_axes(x, N, "adaptive_max_pool" #N "d");                                                                   \
    return adaptive_max_pool(x, output_size);                                                                       \
  }                                                                                                                 \
  Tensor adaptive_avg_pool##N##d(Operand x, const IntList& output_size) {                                           \
    const OpScope scope("adaptive_avg_pool" #N "d", x.at);                                                          \
    check_axes(x, N, "adaptive_avg_pool" #N "d");                                                                   \
    return adaptive_avg_pool(x, output_size);                                                                       \
  }
LC_NAMED(1)
LC_NAMED(2)
LC_NAMED(3)
#undef LC_NAMED

}  // namespace lc
