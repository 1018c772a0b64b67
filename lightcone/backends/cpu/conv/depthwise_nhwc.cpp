// Depthwise convolution, channels-last: vectors are channels, and a tap of a pixel is an address. Taps outside the
// image point to zeros.
#include <algorithm>

#include "lightcone/backends/cpu/conv/depthwise.h"
#include "lightcone/backends/cpu/conv/nhwc.h"
#include "lightcone/backends/cpu/conv/plan/conv_kernel.h"
#include "lightcone/backends/cpu/products/rounding.h"

namespace lc::backends::cpu {
namespace {

using i64 = std::int64_t;
constexpr i64 kSegment = 16;         // pixels whose tap addresses are computed at a time
constexpr i64 kAddresses = 1 << 10;  // maximum addresses
constexpr i64 kTaskWork = 1 << 14;   // multiplications worth a task
constexpr i64 kTasksOfWorker = 4;    // tasks per worker, about

class DepthwiseNhwcKernel final : public ConvKernel {
 public:
  DepthwiseNhwcKernel(const ConvPlan& c, const Depthwise& d, std::shared_ptr<const Epilogue> epilogue,
                      const Target& target)
      : ConvKernel(BatchSizes<Dim>{c.image_offset, c.pixels[0].extent}, std::move(epilogue)),
        d_(d),
        batch_(*c.pixels[0].image.constant()),
        table_(kernel_tables(target.isa).depthwise),
        nr_(kernel_tables(target.isa).nhwc->nr),
        segment_(std::min(kSegment, kAddresses / d.taps())) {
    set_figures("conv_depthwise_nhwc", Dim(2 * d.taps() * d.pixels() * d.filters) * c.pixels[0].extent);
    set_scratch(d.filters * 4, 0);
  }
  void run(const HostLaunch& l) const override;

 private:
  struct Job {
    const DepthwiseNhwcKernel& k;
    const HostLaunch& l;
    const float* image;
    i64 pixels, each;
  };
  void addresses(const Job& j, i64 first, i64 count, const float** at) const;
  void segment(const Job& j, i64 first, i64 count) const;

  Depthwise d_;
  i64 batch_;  // floats between images
  const DepthwiseTable* table_;
  i64 nr_, segment_;
};

// Computes the address of each tap of each pixel, [tap][segment].
void DepthwiseNhwcKernel::addresses(const Job& j, i64 first, i64 count, const float** at) const {
  const auto* zeros = reinterpret_cast<const float*>(j.l.scratch);
  i64 x = first % d_.x.extent, y = first / d_.x.extent % d_.y.extent;
  const float* image = j.image + first / d_.pixels() * batch_;
  for (i64 q = 0; q < count; ++q) {
    const float** to = at + q;
    for (i64 t = 0; t < d_.y.taps; ++t) {
      const i64 row = y * d_.y.step + t * d_.y.dilation;
      const bool inside = row >= d_.y.lo && row < d_.y.hi;
      const float* from = image + row * d_.y.unit;
      for (i64 k = 0; k < d_.x.taps; ++k, to += segment_) {
        const i64 column = x * d_.x.step + k * d_.x.dilation;
        *to = inside && column >= d_.x.lo && column < d_.x.hi ? from + column * d_.x.unit : zeros;
      }
    }
    if (++x == d_.x.extent) x = 0, ++y;
    if (y == d_.y.extent) y = 0, image += batch_;
  }
}

void DepthwiseNhwcKernel::segment(const Job& j, i64 first, i64 count) const {
  const float* at[kAddresses];
  addresses(j, first, count, at);
  const i64 channels = d_.filters, taps = d_.taps(), tiles = ceil_div(count, table_->last_mr);
  const auto* weights = static_cast<const float*>(j.l.in[1]);
  auto* whole = static_cast<float*>(j.l.out);
  for (i64 c = 0; c < channels; c += nr_, weights += taps * nr_)
    for (i64 i = 0; i < tiles; ++i) {
      const i64 q = count * i / tiles, n = count * (i + 1) / tiles - q;
      table_->pixels(at + q, segment_, c, weights, nr_, taps, whole + (first + q) * channels + c, channels, n,
                     std::min(nr_, channels - c));
    }
  if (epilogue()) epilogue()->run(j.l.in.data() + 2, whole, epilogue_sizes(j.l), first, count, 0, channels);
}

void DepthwiseNhwcKernel::run(const HostLaunch& l) const {
  BatchSizes<i64> s;
  read_sizes(l.sizes.data(), s);
  Job j{*this, l, static_cast<const float*>(l.in[0]) + s.image_offset, d_.pixels() * s.images, 1};
  if (j.pixels <= 0) return;
  std::fill_n(reinterpret_cast<float*>(l.scratch), d_.filters, 0.0f);
  j.each =
      std::max(ceil_div(j.pixels, kTasksOfWorker * l.parallel.workers()), ceil_div(kTaskWork, d_.taps() * d_.filters));
  const auto task = [](void* arg, int number, int) {
    const Job& j = *static_cast<Job*>(arg);
    const i64 end = std::min(j.pixels, (number + 1) * j.each), most = j.k.segment_;
    for (i64 q = number * j.each; q < end; q += most) j.k.segment(j, q, std::min(most, end - q));
  };
  l.parallel.run(static_cast<int>(ceil_div(j.pixels, j.each)), task, &j);
}

}  // namespace

std::shared_ptr<HostKernel> depthwise_nhwc_kernel(const ConvPlan& c, std::shared_ptr<const Epilogue> epilogue,
                                                  const Target& target) {
  return std::make_shared<DepthwiseNhwcKernel>(c, *depthwise_nhwc_shape(c), std::move(epilogue), target);
}

}  // namespace lc::backends::cpu
