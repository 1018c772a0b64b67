// Discrete Fourier transforms: torch.fft and torch.stft on pairs of real tensors (complex.h).
//
// Transformed lengths must be numbers; symbolic ones throw Error (other axes may be symbolic). A given length cuts the
// axis or zero-pads it. Types are f32 and f64; integers and 16-bit floats are computed in f32.
//
// A transform of n elements is a sequence of products with small matrices of sines and cosines: n is split into factors
// of at most 64 (J. W. Cooley and J. W. Tukey, 1965), and a prime factor above that becomes a convolution of
// power-of-two length (L. I. Bluestein, 1970). The matrices are constants, computed once when a program is compiled.
#pragma once

#include "lightcone/macros_off.h"

#include <cstdint>
#include <optional>
#include <vector>

#include "lightcone/ops/complex/complex.h"

namespace lc::fft {

// Scale factors of the forward and inverse transform: 1 and 1 / n, 1 / sqrt(n) twice, 1 / n and 1.
enum class Norm : std::uint8_t { Backward, Ortho, Forward };
using Length = std::optional<std::int64_t>;

// The discrete Fourier transform along `dim` (torch.fft.fft).
Complex fft(const Complex& x, Length n = {}, int dim = -1, Norm norm = Norm::Backward);
// The inverse transform (torch.fft.ifft).
Complex ifft(const Complex& x, Length n = {}, int dim = -1, Norm norm = Norm::Backward);
// The transform of real numbers: n / 2 + 1 elements; the others are their conjugates (torch.fft.rfft).
Complex rfft(Operand x, Length n = {}, int dim = -1, Norm norm = Norm::Backward);
// The inverse of rfft() with n real results (default: 2 (extent - 1)). Ignores the imaginary parts of the first element
// and, for even n, of the middle one.
Tensor irfft(const Complex& x, Length n = {}, int dim = -1, Norm norm = Norm::Backward);
// The transform over several axes (torch.fft.fftn).
Complex fftn(const Complex& x, const IntList& dims, Norm norm = Norm::Backward);
// The inverse of fftn().
Complex ifftn(const Complex& x, const IntList& dims, Norm norm = Norm::Backward);

// Moves the zero frequency to the middle (torch.fft.fftshift).
Tensor fftshift(Operand x, const IntList& dims);
// The inverse of fftshift().
Tensor ifftshift(Operand x, const IntList& dims);
Complex fftshift(const Complex& z, const IntList& dims);
Complex ifftshift(const Complex& z, const IntList& dims);

struct StftOptions {
  std::int64_t n_fft = 0;               // length of a frame; required
  std::int64_t hop_length = 0;          // 0: n_fft / 4
  bool center = true;                   // centres frames on multiples of the hop: adds n_fft / 2 elements at both ends
  bool normalized = false;              // divides by sqrt(n_fft)
  PadMode pad_mode = PadMode::Reflect;  // what `center` adds
  bool onesided = true;                 // the first n_fft / 2 + 1 elements alone; the others are their conjugates
};
// Maps [.., samples] to [.., n_fft / 2 + 1, frames] (n_fft, if not onesided) like torch.stft(return_complex=True). The
// optional `window` [win_length] is zero-padded on both sides if it is shorter than n_fft.
Complex stft(Operand x, const StftOptions& o, OptionalOperand window = {});
// The inverse of stft() with the same options and window -> [.., length], by least squares: D. W. Griffin and J. S.
// Lim, "Signal estimation from modified short-time Fourier transform" (1984), as torch.istft. It reads the first n_fft
// / 2 + 1 frequencies alone. The default length is hop (frames - 1), and n_fft more without `center`; a longer one is
// filled with zeros. Samples over which no window reaches are NaN or infinite (torch.istft is an error), as the first
// and last without `center` if the window begins with 0.
Tensor istft(const Complex& z, const StftOptions& o, OptionalOperand window = {}, std::optional<Dim> length = {});

// Windows [n] as torch's functions of the same names: with period n, or n - 1 if not periodic. They are computed in f64
// and rounded once.
Tensor hann_window(GraphOf in, std::int64_t n, bool periodic = true, DType dtype = DType::F32);
Tensor hamming_window(GraphOf in, std::int64_t n, bool periodic = true, DType dtype = DType::F32);
Tensor blackman_window(GraphOf in, std::int64_t n, bool periodic = true, DType dtype = DType::F32);
Tensor bartlett_window(GraphOf in, std::int64_t n, bool periodic = true, DType dtype = DType::F32);
// The frequencies of fft() in cycles per unit, for samples `d` apart.
Tensor fftfreq(GraphOf in, std::int64_t n, double d = 1);
// The frequencies of rfft(); see fftfreq().
Tensor rfftfreq(GraphOf in, std::int64_t n, double d = 1);

}  // namespace lc::fft
#include "lightcone/macros_on.h"
