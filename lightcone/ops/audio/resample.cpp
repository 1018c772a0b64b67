#include <cmath>
#include <numbers>
#include <numeric>

#include "lightcone/ops/audio/audio.h"
#include "lightcone/ops/internal.h"

namespace lc::audio {
namespace {

constexpr std::int64_t kMostWeights = 1 << 24;

// One period: `from` samples become `to`. Filter j, of 2 width + from weights, is centred on sample j from / to.
struct Phases {
  std::int64_t from, to, width;
  double cutoff;  // in periods
  std::int64_t taps() const { return 2 * width + from; }
};

Tensor filters(Graph& g, const Phases& p, const ResampleOptions& o, DType type) {  // [taps, to]
  const Shape s{p.taps(), p.to};
  const auto from = static_cast<double>(p.from), to = static_cast<double>(p.to);
  const double half = o.lowpass_filter_width;
  // The distance k / from - j / to, as one quotient of whole numbers: 0 is exact.
  const Dim apart = (Dim::index(0, p.taps()) - p.width) * p.to - Dim::index(1, p.to) * p.from;
  const Tensor t = clamp(g.index(s, apart, DType::F64) * (p.cutoff / (from * to)), -half, half);
  const Tensor window = square(cos(t * (std::numbers::pi / (2 * half))));
  const Tensor angle = t * std::numbers::pi, here = eq(t, 0.0);
  const Tensor sinc = where(here, 1.0, sin(angle) / where(here, 1.0, angle));
  return prim::contiguous(prim::cast(sinc * window * (p.cutoff / from), type));
}

}  // namespace

Tensor resample(Operand a, std::int64_t from, std::int64_t to, const ResampleOptions& o) {
  const OpScope scope("resample", a.at);
  if (from < 1 || to < 1) throw Error("resample", str_cat("from ", from, " Hz to ", to, " Hz: rates are at least 1"));
  if (o.lowpass_filter_width < 1 || !(o.rolloff > 0 && o.rolloff <= 1))
    throw Error("resample", str_cat("a filter of ", o.lowpass_filter_width, " crossings that ends at ", o.rolloff,
                                    ": it has at least one, and ends in (0, 1]"));
  if (a->rank() == 0) throw Error("resample", "a scalar has no samples");
  const Tensor x = a->dtype() == DType::F64 ? a.tensor : prim::cast(a, DType::F32);
  const std::int64_t common = std::gcd(from, to);
  if (from == to) return x;
  Phases p{from / common, to / common, 0, 0};
  p.cutoff = static_cast<double>(std::min(p.from, p.to)) * o.rolloff;
  const double width = std::ceil(o.lowpass_filter_width * static_cast<double>(p.from) / p.cutoff);
  if ((2 * width + static_cast<double>(p.from)) * static_cast<double>(p.to) > kMostWeights)
    throw Error("resample", str_cat("from ", from, " Hz to ", to, " Hz there are ", p.to, " filters of ",
                                    2 * width + static_cast<double>(p.from),
                                    " weights, which is too much: take rates with a larger common divisor"));
  p.width = static_cast<std::int64_t>(width);
  const Dim samples = x.extent(-1), wanted = (samples * Dim(p.to) + (p.from - 1)) / Dim(p.from);
  const Tensor framed = x.pad(x.rank() - 1, p.width, p.width + p.from).unfold(-1, p.taps(), p.from);
  const Tensor y = matmul(framed, filters(x.graph(), p, o, x.dtype()));  // [.., periods, to]
  Shape s = x.shape();
  s.back() = y.extent(-2) * Dim(p.to);
  return narrow(y.reshape(s), -1, 0, wanted);
}

}  // namespace lc::audio
