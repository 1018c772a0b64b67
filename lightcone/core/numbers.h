// Numbers as text and back, and whole numbers as floats, rounded once.
//
// Texts are the same under every locale. printf, strtod and streams use the decimal point of the locale
// that the program has chosen, and a program that calls setlocale(LC_ALL, "") has a comma in half of Europe: files,
// texts of kernels and keys of caches would be others there, or none. So no number of ours passes through the C locale:
// append_number (of error.h) and these use std::to_chars and std::from_chars, and tools/check_numbers.py refuses the
// rest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lc {

// What std::snprintf writes in the C locale: d i u x X o c s and a e f g with flags, width, precision and length.
std::string formatted(const char* how, ...) __attribute__((format(printf, 1, 2)));

// A whole text as a number, rounded once to F (float or double): decimal with or without a sign, "0x1.8p3", "inf",
// "nan". Beyond F's range it is an infinity, or a zero; nothing where the text is something else or has anything
// beside.
template <class F>
std::optional<F> real_of(std::string_view text);

// A whole number (of U64: its bits) as a double that a narrower float is rounded from as from the number itself: exact
// below 2^53, beyond it the odd one of the two neighbours.
double odd_f64(std::int64_t value, bool is_unsigned);

}  // namespace lc
