// The functions named after the number of spatial axes.
#include "lightcone/ops/conv.h"
#include "lightcone/ops/internal.h"

namespace lc {
using namespace detail;

namespace {
// Calls f on a batch; a single sample gets a batch axis for the call.
template <class F>
Tensor of_samples(const Operand& x, int n, const char* op, const F& f) {
  const OpScope scope(op, x.at);
  if (x->rank() == n + 1) return f(batch_of_one(x)).squeeze(0);
  if (x->rank() != n + 2)
    throw Error(op, str_cat("needs [batch, channels, ", n, n == 1 ? " spatial axis" : " spatial axes",
                            "], or one sample without a batch, not ", str(x->shape())));
  return f(x);
}
}  // namespace

#define LC_NAMED(N)                                                                                                 \
  Tensor conv##N##d(Operand x, Operand weight, OptionalOperand bias, const IntList& stride, const IntList& padding, \
                    const IntList& dilation, int groups) {                                                          \
    return of_samples(x, N, "conv" #N "d", [&](const Operand& sample) {                                             \
      return conv(sample, weight, bias, {stride, padding, dilation, groups});                                       \
    });                                                                                                             \
  }                                                                                                                 \
  Tensor conv_transpose##N##d(Operand x, Operand weight, OptionalOperand bias, const IntList& stride,               \
                              const IntList& padding, const IntList& output_padding, int groups,                    \
                              const IntList& dilation) {                                                            \
    return of_samples(x, N, "conv_transpose" #N "d", [&](const Operand& sample) {                                   \
      return conv_transpose(sample, weight, bias, {stride, padding, dilation, groups, output_padding});             \
    });                                                                                                             \
  }                                                                                                                 \
  Tensor max_pool##N##d(Operand x, const IntList& kernel_size, const IntList& stride, const IntList& padding,       \
                        const IntList& dilation, bool ceil_mode) {                                                  \
    return of_samples(x, N, "max_pool" #N "d", [&](const Operand& sample) {                                         \
      return max_pool(sample, kernel_size, stride, padding, dilation, ceil_mode);                                   \
    });                                                                                                             \
  }                                                                                                                 \
  Tensor avg_pool##N##d(Operand x, const IntList& kernel_size, const IntList& stride, const IntList& padding,       \
                        bool ceil_mode, bool count_include_pad) {                                                   \
    return of_samples(x, N, "avg_pool" #N "d", [&](const Operand& sample) {                                         \
      return avg_pool(sample, kernel_size, stride, padding, ceil_mode, count_include_pad);                          \
    });                                                                                                             \
  }                                                                                                                 \
  Tensor adaptive_max_pool##N##d(Operand x, const IntList& output_size) {                                           \
    return of_samples(x, N, "adaptive_max_pool" #N "d",                                                             \
                      [&](const Operand& sample) { return adaptive_max_pool(sample, output_size); });               \
  }                                                                                                                 \
  Tensor adaptive_avg_pool##N##d(Operand x, const IntList& output_size) {                                           \
    return of_samples(x, N, "adaptive_avg_pool" #N "d",                                                             \
                      [&](const Operand& sample) { return adaptive_avg_pool(sample, output_size); });               \
  }
LC_NAMED(1)
LC_NAMED(2)
LC_NAMED(3)
#undef LC_NAMED

}  // namespace lc
