// Short-time Fourier transforms and their windows.
#include <cmath>
#include <numbers>

#include "lightcone/ops/complex/fft.h"
#include "lightcone/ops/internal.h"

namespace lc::fft {
namespace {

// Zero-pads a window on both sides to the length of a frame.
Tensor of_frame(const Tensor& window, std::int64_t n_fft, const char* op) {
  const auto n = window.rank() == 1 ? window.extent(0).constant() : std::nullopt;
  if (!n || *n < 1 || *n > n_fft)
    throw Error(op, str_cat("a window ", str(window.shape()), " for frames of n_fft = ", n_fft,
                            ": it has one axis of 1 to ", n_fft, " elements"));
  const std::int64_t before = (n_fft - *n) / 2;
  return *n == n_fft ? window : pad(window, {static_cast<int>(before), static_cast<int>(n_fft - *n - before)});
}

std::int64_t hop_of(const StftOptions& o, const char* op) {
  const std::int64_t hop = o.hop_length ? o.hop_length : o.n_fft / 4;
  if (o.n_fft == 0) throw Error(op, "it needs the length of a frame: {.n_fft = 400}");
  if (o.n_fft < 1 || hop < 1) throw Error(op, "n_fft and hop_length are at least 1");
  return hop;
}

// Sums frames [.., frames, n], each of which begins `hop` after the one before -> [.., at least hop (frames - 1) + n].
Tensor overlap_add(const Tensor& frames, std::int64_t hop) {
  const std::int64_t n = frames.extent(-1).constant().value(), pieces = (n + hop - 1) / hop;
  const Dim count = frames.extent(-2);
  const Tensor filled = pad(frames, {0, static_cast<int>(pieces * hop - n)});
  Shape s = frames.shape();
  s.pop_back(), s.back() = count * Dim(hop);
  Tensor total;
  for (std::int64_t k = 0; k < pieces; ++k) {  // the k-th pieces of all frames follow each other without a gap
    const Tensor row = narrow(filled, -1, k * hop, hop).reshape(s);
    const Tensor placed = row.pad(row.rank() - 1, k * hop, (pieces - 1 - k) * hop);
    total = k ? prim::add(total, placed) : placed;
  }
  return total;
}

Tensor cosines(GraphOf in, std::int64_t n, bool periodic, DType dtype, const char* op,
               std::initializer_list<double> a) {
  const OpScope scope(op, in.at);
  if (n < 1) throw Error(op, str_cat("a window has at least one element, not ", n));
  if (n == 1) return full(in, {1}, 1, dtype);
  const double turn = 2 * std::numbers::pi / static_cast<double>(periodic ? n : n - 1);
  const Tensor k = arange(in, Dim(n), DType::F64);
  Tensor total;
  for (std::size_t i = a.size() - 1; i > 0; --i) {  // the last first, so that Blackman's window begins with 0 exactly
    const Tensor term = detail::mul(cos(detail::mul(k, turn * static_cast<double>(i))), a.begin()[i]);
    total = total.defined() ? prim::add(total, term) : term;
  }
  total = detail::add(total, *a.begin());
  return prim::cast(total, dtype);
}

}  // namespace

Complex stft(Operand a, const StftOptions& o, OptionalOperand window) {
  const OpScope scope("stft", a.at);
  const std::int64_t hop = hop_of(o, "stft");
  if (a->rank() == 0) throw Error("stft", "a scalar has no samples");
  Tensor x = a;
  if (o.center) {
    const int edge = static_cast<int>(o.n_fft / 2);
    x = pad(x, {edge, edge}, o.pad_mode);
  }
  Tensor frames = x.unfold(-1, o.n_fft, static_cast<int>(hop));  // [.., frames, n_fft]
  if (window.given()) frames = frames * of_frame(*window, o.n_fft, "stft");
  const Norm norm = o.normalized ? Norm::Ortho : Norm::Backward;
  const Complex y = o.onesided ? rfft(frames, {}, -1, norm) : fft(complex(frames, zeros_like(frames)), {}, -1, norm);
  return y.transpose(-1, -2);
}

Tensor istft(const Complex& z, const StftOptions& o, OptionalOperand window, std::optional<Dim> length) {
  const OpScope scope("istft", Tensor::At::current());
  const std::int64_t hop = hop_of(o, "istft"), n = o.n_fft;
  if (z.rank() < 2 || !(z.extent(-2) == Dim(o.onesided ? n / 2 + 1 : n)))
    throw Error("istft", str_cat(str(z.shape()), " are not [.., ", o.onesided ? n / 2 + 1 : n,
                                 ", frames] for n_fft = ", n, o.onesided ? "" : " (not onesided)"));
  const Norm norm = o.normalized ? Norm::Ortho : Norm::Backward;
  const Complex transposed = z.transpose(-1, -2);
  Tensor frames = irfft(transposed, n, -1, norm);
  const Tensor w = window.given() ? prim::cast(of_frame(*window, n, "istft"), frames.dtype())
                                  : full(frames.graph(), {n}, 1, frames.dtype());
  frames = frames * w;
  const Tensor weight = overlap_add(prim::mul(w, w).unsqueeze(0).expand({frames.extent(-2), n}), hop);
  const Tensor whole = overlap_add(frames, hop) / weight;
  const Dim from = o.center ? n / 2 : 0, end = Dim(hop) * (frames.extent(-2) - 1) + Dim(n);
  const Dim all = end - from - (length ? Dim(0) : from);
  const Dim kept = length ? min(*length, all) : all;
  const Tensor y = narrow(whole, -1, from, kept);
  return length ? y.pad(y.rank() - 1, 0, *length - kept) : y;
}

Tensor hann_window(GraphOf in, std::int64_t n, bool periodic, DType dtype) {
  const OpScope scope("hann_window", in.at);
  if (n < 1) throw Error("hann_window", str_cat("a window has at least one element, not ", n));
  const double period = static_cast<double>(periodic ? n : std::max<std::int64_t>(n - 1, 1));
  const Tensor half = sin(detail::mul(arange(in, Dim(n), DType::F64), std::numbers::pi / period));
  return prim::cast(n == 1 ? full(in, {1}, 1.0, DType::F64) : half * half, dtype);
}
Tensor hamming_window(GraphOf in, std::int64_t n, bool periodic, DType dtype) {
  return cosines(in, n, periodic, dtype, "hamming_window", {0.54, -0.46});
}
Tensor blackman_window(GraphOf in, std::int64_t n, bool periodic, DType dtype) {
  return cosines(in, n, periodic, dtype, "blackman_window", {0.42, -0.5, 0.08});
}
Tensor bartlett_window(GraphOf in, std::int64_t n, bool periodic, DType dtype) {
  const OpScope scope("bartlett_window", in.at);
  if (n < 1) throw Error("bartlett_window", str_cat("a window has at least one element, not ", n));
  if (n == 1) return full(in, {1}, 1, dtype);
  const Tensor k = detail::mul(arange(in, Dim(n), DType::F64), 2 / static_cast<double>(periodic ? n : n - 1));
  return prim::cast(detail::add(detail::neg(abs(detail::add(k, -1))), 1), dtype);
}

}  // namespace lc::fft
