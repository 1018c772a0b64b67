// Every function of one number that rounds, in f32: what it is in double precision (to 2^-40, which ops_accuracy_test
// proves with MPFR), and by how many units in the last place ours may miss it. Used by ops_accuracy_test on samples and
// by `accuracy` on all 2^32 numbers.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <numbers>
#include <string>
#include <vector>

#include "big.h"
#include "lightcone/ops/ops.h"

namespace lc::accuracy {

struct Function {
  const char* name;
  Tensor (*build)(Operand);
  void (*exact)(const float* x, double* y, long n);  // a loop, which a compiler turns into vectors
  Big (*digits)(const Big& x);
  double bound;              // in units in the last place of the result
  int least = -149;          // 2^least is the smallest unit: nearer to 0 a product of small parts has no more digits
  bool of_argument = false;  // units of the larger of argument and result: the formula subtracts numbers of that size
};

// The distance in units in the last place of the f32 nearest to `want`, where infinity is the number after the largest.
// Infinite where one of the two is NaN.
double ulps(const Function& f, float x, float got, double want);

struct Worst {
  double ulps = 0;
  std::size_t at = 0;
  std::size_t off = 0;  // how many are not the nearest number
};
Worst worst(const Function& f, const std::vector<float>& x, const std::vector<float>& got,
            const std::vector<double>& want);

const std::vector<Function>& functions();

}  // namespace lc::accuracy
