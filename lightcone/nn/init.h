// Initial values of parameters, computed on the host (torch.nn.init).
//
//   nn::init::Source s{.seed = 42, .parameter = "layers.0.weight"};
//   const std::vector<float> w = nn::init::kaiming_uniform({256, 784}, s, {.a = std::sqrt(5.0)});
//   program.load(s.parameter, w.data(), w.size() * sizeof(float));
//
// Each function returns the elements of a tensor of `shape` in row-major order. Random values are a function of the
// seed, the name of the parameter and the shape only. So the order in which parameters are initialised does not matter,
// and a model begins with the same bits on every machine. To guarantee this, no function of a mathematical library is
// used: words of Philox (random/random_bits.h, with a step that no run reaches) become doubles by additions, products,
// quotients and square roots in a fixed order, which IEEE 754 rounds in exactly one way. Logarithms are a series of
// such operations. Finally each double is rounded to f32 once.
//
// Every function throws Error for a negative extent, for more than 2^48 elements, and for the reasons given at it.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace lc::nn::init {

using Extents = std::vector<std::int64_t>;
using Values = std::vector<float>;

// The origin of the random numbers of one parameter.
struct Source {
  std::int64_t seed = 0;
  std::string parameter;  // path of the parameter
};

// ---- constants ----------------------------------------------------------------------------------------

// Every element is `value`.
Values constant(const Extents& shape, float value);
// Every element is 0.
Values zeros(const Extents& shape);
// Every element is 1.
Values ones(const Extents& shape);
// Identity matrix [rows, columns]. Throws Error if the rank is not 2.
Values eye(const Extents& shape);
// Weights [out, in / groups, k...], with 1 to 3 spatial axes, of a convolution that copies its inputs to its outputs:
// in each group the first min(out / groups, in / groups) channels. Throws Error for another rank, or if `groups` does
// not divide out.
Values dirac(const Extents& shape, std::int64_t groups = 1);

// ---- distributions ------------------------------------------------------------------------------------

// Uniform in [low, high) after rounding to f32; `low` if both bounds are equal. Throws Error if high < low or if a
// bound is not finite.
Values uniform(const Extents& shape, const Source& source, double low = 0, double high = 1);
// Normal distribution, computed by inversion: M. J. Wichura, algorithm AS 241 (PPND16), Appl. Stat. 37, 1988. Throws
// Error if std is negative or if a number is not finite.
Values normal(const Extents& shape, const Source& source, double mean = 0, double std = 1);
// torch.nn.init.trunc_normal_: a normal distribution restricted to [low, high]. Throws Error if low >= high, if std is
// not positive, or if the interval begins more than 8 std from the mean.
Values trunc_normal(const Extents& shape, const Source& source, double mean = 0, double std = 1, double low = -2,
                    double high = 2);

// ---- by the number of connections: [out, in, k...], rank 2 or more -------------------------------------

// Numbers of inputs and outputs of one unit.
struct Fans {
  std::int64_t in, out;  // in * k... and out * k...
};
// Fan-in and fan-out of a weight (torch's _calculate_fan_in_and_fan_out). Throws Error for a rank below 2.
Fans calculate_fans(const Extents& shape);

// The function after the layer. Linear also stands for convolutions.
enum class Nonlinearity : std::uint8_t { Linear, Sigmoid, Tanh, Relu, LeakyRelu, Selu };
// The recommended gain of a function, which preserves the scale of the signal: Linear 1, Sigmoid 1, Tanh 5/3, Relu
// sqrt(2), LeakyRelu sqrt(2 / (1 + slope^2)), Selu 3/4.
double calculate_gain(Nonlinearity f, double negative_slope = 0.01);

// Glorot initialisation with std = gain sqrt(2 / (in + out)); the uniform one is in +-sqrt(3) std. X. Glorot and Y.
// Bengio, "Understanding the difficulty of training deep feedforward neural networks", AISTATS 2010.
Values xavier_uniform(const Extents& shape, const Source& source, double gain = 1);
Values xavier_normal(const Extents& shape, const Source& source, double gain = 1);

// The fan of kaiming_uniform() and kaiming_normal(): fan-in or fan-out.
enum class Fan : std::uint8_t { In, Out };
// Options of kaiming_uniform() and kaiming_normal(), with torch's names and defaults.
struct Kaiming {
  double a = 0;  // negative slope of LeakyRelu
  Fan mode = Fan::In;
  Nonlinearity nonlinearity = Nonlinearity::LeakyRelu;
};
// He initialisation with std = gain / sqrt(fan); the uniform one is in +-sqrt(3) std. K. He et al., "Delving deep into
// rectifiers", ICCV 2015.
Values kaiming_uniform(const Extents& shape, const Source& source, const Kaiming& k = {});
Values kaiming_normal(const Extents& shape, const Source& source, const Kaiming& k = {});

// ---- structures ---------------------------------------------------------------------------------------

// A random matrix [shape[0], product of the other extents] with orthonormal rows or, if it has more rows than columns,
// orthonormal columns, times `gain`. It is the Q of the QR decomposition of a matrix of normal numbers, with a positive
// diagonal of R, which makes Q uniformly distributed. Throws Error for a rank below 2. The cost is about 2 * rows *
// columns * min(rows, columns) operations. A. M. Saxe et al., "Exact solutions to the nonlinear dynamics of learning in
// deep linear neural networks", ICLR 2014.
Values orthogonal(const Extents& shape, const Source& source, double gain = 1);
// A matrix [rows, columns] of normal numbers; in each column ceil(sparsity * rows) elements at random positions are 0.
// Throws Error for another rank or a sparsity outside [0, 1]. J. Martens, "Deep learning via Hessian-free
// optimization", ICML 2010.
Values sparse(const Extents& shape, const Source& source, double sparsity, double std = 0.01);

}  // namespace lc::nn::init
