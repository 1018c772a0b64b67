// Discrete Fourier transforms: torch.fft and torch.stft, of pairs of real tensors (complex.h).
//
// Lengths are numbers: symbolic ones are an Error (other axes may be symbolic). A length that is given cuts the axis or
// fills it with zeros. f32 and f64; integers and halves are computed in f32.
//
// A transform of n elements is products with small matrices of sines and cosines: n is taken apart into factors of at
// most 64 (J. W. Cooley and J. W. Tukey, 1965), and a prime factor above that is a convolution of a power of two
// (L. I. Bluestein, 1970). The matrices depend on no input and are laid out once, when a program is compiled.
#pragma once

#include "lightcone/macros_off.h"

#include <cstdint>
#include <optional>
#include <vector>

#include "lightcone/ops/complex/complex.h"

namespace lc::fft {

// What the sums are multiplied by, forward and back: 1 and 1 / n, 1 / sqrt(n) twice, 1 / n and 1.
enum class Norm : std::uint8_t { Backward, Ortho, Forward };
using Length = std::optional<std::int64_t>;

Complex fft(const Complex& x, Length n = {}, int dim = -1, Norm norm = Norm::Backward);
Complex ifft(const Complex& x, Length n = {}, int dim = -1, Norm norm = Norm::Backward);
// Of real numbers: n / 2 + 1 elements, for the others are their conjugates.
Complex rfft(Operand x, Length n = {}, int dim = -1, Norm norm = Norm::Backward);
// Back to n real numbers (2 (extent - 1) unless n is given). What the imaginary parts of the first and, of an even n,
// the middle element say is not read.
Tensor irfft(const Complex& x, Length n = {}, int dim = -1, Norm norm = Norm::Backward);
// Over several axes in turn.
Complex fftn(const Complex& x, const IntList& dims, Norm norm = Norm::Backward);
Complex ifftn(const Complex& x, const IntList& dims, Norm norm = Norm::Backward);

// The middle of the spectrum first, or last again: torch.fft.fftshift.
Tensor fftshift(Operand x, const IntList& dims);
Tensor ifftshift(Operand x, const IntList& dims);
Complex fftshift(const Complex& z, const IntList& dims);
Complex ifftshift(const Complex& z, const IntList& dims);

struct StftOptions {
  std::int64_t n_fft = 0;       // the length of a frame; there is no default
  std::int64_t hop_length = 0;  // 0: n_fft / 4
  bool center = true;           // frames around multiples of the hop: n_fft / 2 elements are reflected at both ends
  bool normalized = false;      // divided by sqrt(n_fft)
};
// [.., samples] -> [.., n_fft / 2 + 1, frames]; `window` may be left out. torch.stft(return_complex=True), whose
// win_length is how many elements the window has: one shorter than n_fft stands in the middle of zeros.
Complex stft(Operand x, const StftOptions& o, OptionalOperand window = {});
// torch.hann_window: [n], of a period of n, or of n - 1 where it is not periodic.
Tensor hann_window(GraphOf in, std::int64_t n, bool periodic = true, DType dtype = DType::F32);
// The frequencies of fft() and of rfft() in cycles a sample distance `d`.
Tensor fftfreq(GraphOf in, std::int64_t n, double d = 1);
Tensor rfftfreq(GraphOf in, std::int64_t n, double d = 1);

}  // namespace lc::fft
#include "lightcone/macros_on.h"
