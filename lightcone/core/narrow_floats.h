// Rounding to floats of 16 bits and fewer. dtype.h declares the conversions.
#pragma once

#include <cstdint>

namespace lc {

// Rounds a double to `mantissa` explicit bits and the exponent range of an IEEE type whose smallest normal exponent is
// `emin`; returns the bits with f16's sign at bit 15.
std::uint16_t narrow(double v, int mantissa, int emin, int emax, int bias);

}  // namespace lc
