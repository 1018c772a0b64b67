// The table of all f32 functions of one number that round: their value in double precision (accurate to 2^-40, which
// ops_accuracy_test proves with MPFR), and the allowed error in units in the last place. ops_accuracy_test uses it for
// samples, `accuracy` for all 2^32 numbers.
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
  void (*exact)(const float* x, double* y, long n);  // a loop that the compiler vectorizes
  Big (*digits)(const Big& x);
  double bound;              // in units in the last place of the result
  int least = -149;          // 2^least is the smallest unit: near 0, a product of small parts has no more digits
  bool of_argument = false;  // units of the larger of argument and result: the formula subtracts such numbers
};

// Returns the distance in units in the last place of the f32 nearest to `want`, where infinity is the number after the
// largest. Returns infinity if only one of the two is NaN.
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
