// Numbers to text and back independently of the locale, and integers to floats with one rounding.
//
// printf, strtod and streams use the decimal point of the program's locale, and a program that calls setlocale(LC_ALL,
// "") gets a comma in half of Europe. Files, generated source and cache keys would change or fail to parse. So the
// library formats numbers only with append_number (error.h) and these functions, which use std::to_chars and
// std::from_chars; tools/check_numbers.py enforces this.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lc {

// std::snprintf in the C locale: d i u x X o c s and a e f g, with flags, width, precision and length.
std::string formatted(const char* how, ...) __attribute__((format(printf, 1, 2)));

// Parses a whole text as a number, rounded once to F (float or double): decimal with an optional sign, "0x1.8p3",
// "inf", "nan". Overflow gives infinity, underflow zero. Returns nullopt for any other text.
template <class F>
std::optional<F> real_of(std::string_view text);

// Converts an integer (U64 as its bits) to f64 with round-to-odd beyond 2^53, so that rounding the result to a narrower
// float equals rounding the integer directly.
double odd_f64(std::int64_t value, bool is_unsigned);

}  // namespace lc
