// torch.nn.init: the first values of parameters, computed on the host.
//
//   nn::init::Source s{.seed = 42, .parameter = "layers.0.weight"};
//   const std::vector<float> w = nn::init::kaiming_uniform({256, 784}, s, {.a = std::sqrt(5.0)});
//   program.load(s.parameter, w.data(), w.size() * sizeof(float));
//
// Each function gives the elements of a tensor of `shape` in row-major order. What is random is a function of the seed,
// the parameter's name and the shape: the order in which parameters are initialised does not matter, and a model has
// the same bits on every machine. That holds because nothing here comes from a mathematical library: words of Philox
// (random/random_bits.h, with a step that no run reaches) become doubles through additions, products, quotients and
// square roots, which IEEE 754 rounds in one way only, in an order that is written down; logarithms are a series of
// such steps. Each double is then rounded to f32 once.
//
// Every function throws an lc::Error for an extent below 0, for more elements than fit into 2^48, and as it says.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lc::nn::init {

using Extents = std::vector<std::int64_t>;
using Values = std::vector<float>;

struct Source {
  std::int64_t seed = 0;
  std::string parameter;  // its path
};

// ---- constants ----------------------------------------------------------------------------------------

Values constant(const Extents& shape, float value);
Values zeros(const Extents& shape);
Values ones(const Extents& shape);
// The identity, [rows, columns]; ones on the diagonal. Error for another rank.
Values eye(const Extents& shape);
// [out, in / groups, k...] with 1 to 3 spatial axes: a convolution that gives its inputs back, in each of `groups` as
// many as there are. Error for another rank, or where `groups` does not divide out.
Values dirac(const Extents& shape, std::int64_t groups = 1);

// ---- distributions ------------------------------------------------------------------------------------

// [low, high) in f32; low where both are the same. Error where high < low or one is not finite.
Values uniform(const Extents& shape, const Source& source, double low = 0, double high = 1);
// By the inverse of the distribution: M. J. Wichura, algorithm AS 241 (PPND16), Appl. Stat. 37, 1988. Error where std
// is negative or a number is not finite.
Values normal(const Extents& shape, const Source& source, double mean = 0, double std = 1);
// trunc_normal_: what lies in [low, high] of a normal distribution. Error where low < high does not hold, std is not
// positive, or the interval begins more than 8 std from the mean.
Values trunc_normal(const Extents& shape, const Source& source, double mean = 0, double std = 1, double low = -2,
                    double high = 2);

// ---- by the number of connections: [out, in, k...], rank 2 or more -------------------------------------

struct Fans {
  std::int64_t in, out;  // in * k..., out * k...
};
Fans calculate_fans(const Extents& shape);  // torch's _calculate_fan_in_and_fan_out

enum class Nonlinearity : std::uint8_t { Linear, Sigmoid, Tanh, Relu, LeakyRelu, Selu };  // Linear: convolutions too
// What keeps the size of a signal through the function: 1, 1, 5/3, sqrt(2), sqrt(2 / (1 + slope^2)), 3/4.
double calculate_gain(Nonlinearity f, double negative_slope = 0.01);

// X. Glorot and Y. Bengio, "Understanding the difficulty of training deep feedforward neural networks", AISTATS 2010:
// std = gain sqrt(2 / (in + out)), uniform in +- sqrt(3) std.
Values xavier_uniform(const Extents& shape, const Source& source, double gain = 1);
Values xavier_normal(const Extents& shape, const Source& source, double gain = 1);

enum class Fan : std::uint8_t { In, Out };
struct Kaiming {
  double a = 0;  // negative slope of LeakyRelu
  Fan mode = Fan::In;
  Nonlinearity nonlinearity = Nonlinearity::LeakyRelu;
};
// K. He et al., "Delving deep into rectifiers", ICCV 2015: std = gain / sqrt(fan), uniform in +- sqrt(3) std.
Values kaiming_uniform(const Extents& shape, const Source& source, const Kaiming& k = {});
Values kaiming_normal(const Extents& shape, const Source& source, const Kaiming& k = {});

// ---- structures ---------------------------------------------------------------------------------------

// A. M. Saxe et al., "Exact solutions to the nonlinear dynamics of learning in deep linear neural networks", ICLR 2014:
// the matrix [shape[0], the rest] has orthonormal rows or, where it is tall, columns, times `gain`. It is the Q of the
// QR decomposition of normal numbers with a positive diagonal in R, hence evenly distributed. Rank 2 or more. Takes
// about 2 * rows * columns * min(rows, columns) operations.
Values orthogonal(const Extents& shape, const Source& source, double gain = 1);
// J. Martens, "Deep learning via Hessian-free optimization", ICML 2010: [rows, columns]; in each column ceil(sparsity *
// rows) elements are 0, in random places, the others normal. Error for another rank or a sparsity outside [0, 1].
Values sparse(const Extents& shape, const Source& source, double sparsity, double std = 0.01);

}  // namespace lc::nn::init
