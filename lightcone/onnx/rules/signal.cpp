// Fourier transforms, windows and filter banks.
#include <cmath>
#include <numbers>
#include <optional>

#include "lightcone/onnx/read/call.h"
#include "lightcone/ops/complex/fft.h"

namespace lc::onnx {
namespace {

// Real [.., 1] or complex [.., 2] numbers as parts [..]. A real number has no imaginary part.
Complex parts_of(Call& c, const Tensor& x) {
  const auto n = x.rank() > 0 ? x.extent(-1).constant() : std::nullopt;
  if (n != 1 && n != 2) c.refuse(str_cat(str(x.shape()), " does not end with real and imaginary parts"));
  return {x.select(-1, 0), n == 2 ? x.select(-1, 1) : Tensor()};
}
bool is_real(const Complex& z) { return !z.imag.defined(); }
Complex with_imaginary(const Complex& z) { return is_real(z) ? Complex{z.real, zeros_like(z.real)} : z; }
Tensor as_f32_or_f64(const Tensor& x) { return x.dtype() == DType::F64 ? x : x.to(DType::F32); }

// Transforms pad to three times their length, which has to be an int.
void require_length(const Call& c, const Dim& n) {
  constexpr std::int64_t kLongest = 1 << 28;
  if (n.bounds().lo > kLongest) c.refuse(str_cat("transforms ", n, " elements, and can ", kLongest));
}

Values dft(Call& c) {
  const Tensor x = c.x(0);
  const bool inverse = c.flag("inverse"), onesided = c.flag("onesided");
  if (x.rank() < 2) c.refuse(str_cat("needs [.., n, 1 or 2], not ", str(x.shape())));
  const int axis = c.opset < 20 ? c.axis("axis", 1, x.rank()) : c.wrap(c.has(2) ? c.integer(2) : -2, x.rank());
  if (axis == x.rank() - 1) c.refuse("transforms the axis of real and imaginary parts");
  std::optional<std::int64_t> length;
  if (c.has(1)) length = c.integer(1);
  if (length && *length < 1) c.refuse(str_cat("has a length of ", *length));
  require_length(c, x.extent(axis)), require_length(c, length.value_or(1));
  const Complex z = parts_of(c, as_f32_or_f64(x));
  if (inverse && onesided) {
    if (is_real(z)) c.refuse("is one-sided and inverse, and its operand is real");
    return {fft::irfft(z, length, axis).unsqueeze(-1).to(x.dtype())};
  }
  if (onesided && !is_real(z)) c.refuse("is one-sided, and its operand is complex");
  const Complex r = onesided  ? fft::rfft(z.real, length, axis)
                    : inverse ? fft::ifft(with_imaginary(z), length, axis)
                              : fft::fft(with_imaginary(z), length, axis);
  return {view_as_real(r).to(x.dtype())};
}

Values stft_(Call& c) {  // [batch, samples, 1 or 2] -> [batch, frames, bins, 2]
  const Tensor window = c.optional(2);
  Tensor x = c.x(0);
  if (x.rank() == 2) x = x.unsqueeze(2);  // as onnxruntime reads it, beyond the specification
  if (x.rank() != 3) c.refuse(str_cat("needs [batch, samples, 1 or 2], not ", str(x.shape())));
  const std::int64_t step = c.integer(1);
  const std::int64_t length = c.has(3)           ? c.integer(3)
                              : window.defined() ? fixed(c, window.extent(0), "the length of the window")
                                                 : fixed(c, x.extent(1), "the length of the signal");
  if (step < 1 || length < 1) c.refuse(str_cat("has a step of ", step, " and a length of ", length));
  if (x.extent(1).bounds().hi < length) c.refuse(str_cat("a frame of ", length, " is longer than the signal"));
  require_length(c, length);
  const Complex z = parts_of(c, as_f32_or_f64(x));
  const bool onesided = c.flag("onesided", true);
  if (onesided && !is_real(z)) c.refuse("is one-sided, and its operand is complex");
  const auto framed = [&](const Tensor& t) {
    const Tensor frames = t.unfold(1, length, step);
    return window.defined() ? frames * expand_to(c, window.to(frames.dtype()), frames.shape()) : frames;
  };
  const Complex r = onesided ? fft::rfft(framed(z.real)) : fft::fft(with_imaginary(z).each(framed));
  return {view_as_real(r).to(x.dtype())};
}

// a - b cos(2 pi k / n) + d cos(4 pi k / n).
Values window(Call& c, double a, double b, double d) {
  const std::vector<Dim> size = c.dims(0);
  if (size.size() != 1) c.refuse("needs one size");
  const DType type = c.dtype("output_datatype", ElementType::Float);
  const Dim n = size[0], period = c.flag("periodic", true) ? n : n - 1;
  Graph& g = c.graph();
  const Tensor k = g.index({n}, Dim::index(0, n), DType::F64);
  const Tensor angle = k * (2 * std::numbers::pi) / g.index({n}, period, DType::F64);
  const Tensor w = a - b * cos(angle);
  return {(d == 0 ? w : w + d * cos(angle * 2.0)).to(type)};
}
Values hann(Call& c) { return window(c, 0.5, 0.5, 0); }
Values hamming(Call& c) { return window(c, 25.0 / 46.0, 21.0 / 46.0, 0); }
Values blackman(Call& c) { return window(c, 0.42, 0.5, 0.08); }

double number_operand(Call& c, std::size_t k) {
  const std::vector<double> v = c.numbers(k);
  if (v.size() != 1 || !std::isfinite(v[0])) c.refuse(str_cat("operand ", k, " is not one number"));
  return v[0];
}
// Triangles [bins, bands] whose corners are equally far apart in mel, rounded to bins.
Values mel_weight_matrix(Call& c) {
  const std::int64_t bands = c.integer(0), length = c.integer(1), rate = c.integer(2);
  if (bands < 1 || length < 1 || rate < 1 || bands > 1 << 16) c.refuse("has sizes that are not 1 or more");
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = mel(number_operand(c, 3)),
               step = (mel(number_operand(c, 4)) - low) / static_cast<double>(bands + 2);
  const std::int64_t bins = length / 2 + 1;
  std::vector<Dim> corners;
  for (std::int64_t k = 0; k < bands + 2; ++k) {
    const double hertz = 700 * (std::pow(10, (low + step * static_cast<double>(k)) / 2595) - 1);
    const double bin = std::floor((static_cast<double>(length) + 1) * hertz / static_cast<double>(rate));
    if (!(bin >= 0 && bin < 0x1p40)) c.refuse("has an edge outside of the spectrum");
    corners.push_back(static_cast<std::int64_t>(bin));
  }
  const Shape s{bins, bands};
  c.importer.spend(bands / 4);
  const Tensor all = tensor_of(c, corners, DType::F64), bin = c.graph().index(s, Dim::index(0, bins), DType::F64);
  const auto corner = [&](std::int64_t k) { return all.slice(0, k, k + bands).unsqueeze(0).expand(s); };
  const Tensor left = corner(0), middle = corner(1), right = corner(2);
  const Tensor rises =
      where(logical_and(bin >= left, bin <= middle), (bin - left) / maximum(middle - left, ones_like(left)), 0.0);
  const Tensor peak = where(logical_and(eq(left, middle), eq(bin, middle)), 1.0, rises);
  const Tensor falls = (right - bin) / maximum(right - middle, ones_like(left));
  const Tensor r = where(logical_and(bin >= middle, bin < right), falls, peak);
  return {r.to(c.dtype("output_datatype", ElementType::Float))};
}

}  // namespace

void add_signal(Operators& t) {
  const Operator rows[] = {
      {"", "BlackmanWindow", 17, blackman, "cosines"},
      {"", "DFT", 17, dft, "fft, ifft, rfft, irfft"},
      {"", "HammingWindow", 17, hamming, "cosines"},
      {"", "HannWindow", 17, hann, "cosines"},
      {"", "MelWeightMatrix", 17, mel_weight_matrix, "triangles"},
      {"", "STFT", 17, stft_, "unfold and rfft or fft"},
  };
  t.insert(t.end(), std::begin(rows), std::end(rows));
}

}  // namespace lc::onnx
