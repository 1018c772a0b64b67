#include "lightcone/base/numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdarg>
#include <cstdint>
#include <limits>

#include "lightcone/base/error.h"

namespace lc {
namespace {

// A conversion specification of a format string, e.g. "%-8.3f".
struct Conversion {
  bool left = false, plus = false, space = false, zeros = false;
  bool wide = false;  // 64 bits
  int width = 0, precision = -1;
  char kind = 0;
};

// Pads to the width; zeros go after a sign and "0x".
std::string padded(const Conversion& c, std::string text, bool zeros) {
  const std::size_t width = static_cast<std::size_t>(c.width);
  if (text.size() >= width) return text;
  const std::size_t missing = width - text.size();
  if (c.left) return text.append(missing, ' ');
  if (!zeros) return text.insert(0, missing, ' ');
  std::size_t at = !text.empty() && (text[0] == '-' || text[0] == '+' || text[0] == ' ');
  if (text.compare(at, 2, "0x") == 0) at += 2;
  return text.insert(at, missing, '0');
}

std::string signed_text(const Conversion& c, bool negative, const std::string& size) {
  return (negative ? "-" : c.plus ? "+" : c.space ? " " : "") + size;
}

std::string chars(auto... number) {
  std::string text(400, 0);  // the largest double has 309 digits
  for (;;) {
    const auto [end, problem] = std::to_chars(text.data(), text.data() + text.size(), number...);
    if (problem == std::errc()) return text.substr(0, static_cast<std::size_t>(end - text.data()));
    text.resize(2 * text.size());
  }
}

std::string real(const Conversion& c, double v) {
  const double size = std::fabs(v);
  const int digits = c.precision < 0 ? 6 : c.precision;
  std::string text;
  switch (c.kind | 0x20) {
    case 'a':
      text = c.precision < 0 ? chars(size, std::chars_format::hex) : chars(size, std::chars_format::hex, digits);
      break;
    case 'e': text = chars(size, std::chars_format::scientific, digits); break;
    case 'f': text = chars(size, std::chars_format::fixed, digits); break;
    default: text = chars(size, std::chars_format::general, digits);
  }
  if ((c.kind | 0x20) == 'a' && std::isfinite(v)) text.insert(0, "0x");
  if (c.kind < 'a')
    for (char& x : text) x = x >= 'a' && x <= 'z' ? static_cast<char>(x - 32) : x;
  return padded(c, signed_text(c, std::signbit(v), text), c.zeros && std::isfinite(v));
}

std::string whole(const Conversion& c, std::uint64_t size, bool negative) {
  std::string text = chars(size, c.kind == 'o' ? 8 : (c.kind | 0x20) == 'x' ? 16 : 10);
  if (c.kind == 'X')
    for (char& x : text) x = x >= 'a' ? static_cast<char>(x - 32) : x;
  if (c.precision > static_cast<int>(text.size()))
    text.insert(0, static_cast<std::size_t>(c.precision) - text.size(), '0');
  return padded(c, c.kind == 'd' ? signed_text(c, negative, text) : text, c.zeros && c.precision < 0);
}

// True if an out-of-range number overflows, false if it underflows, by first digit and exponent.
bool is_large(std::string_view text, bool hexadecimal) {
  const std::size_t e = std::min(text.find_first_of(hexadecimal ? "pP" : "eE"), text.size());
  const std::string_view digits = text.substr(0, e);
  const auto point = static_cast<std::ptrdiff_t>(std::min(digits.find('.'), e));
  const auto first = static_cast<std::ptrdiff_t>(std::min(digits.find_first_not_of("0."), e));
  std::string_view power = text.substr(std::min(e + 1, text.size()));
  if (power.starts_with('+')) power.remove_prefix(1);
  std::int64_t n = 0;
  if (std::from_chars(power.data(), power.data() + power.size(), n).ec == std::errc::result_out_of_range)
    return power[0] != '-';
  return (hexadecimal ? 4 : 1) * (point - first) + n > 0;
}

// Parses a conversion after '%' up to its letter; a '*' takes width or precision from the arguments.
Conversion conversion(const char*& how, std::va_list& parts) {
  const auto count = [&](const char*& at) {
    int n = 0;
    if (*at == '*') return ++at, va_arg(parts, int);
    for (; *at >= '0' && *at <= '9'; ++at) n = std::min(n, 100'000) * 10 + (*at - '0');
    return n;
  };
  Conversion c;
  for (;; ++how) {
    if (*how == '-') c.left = true;
    else if (*how == '+') c.plus = true;
    else if (*how == ' ') c.space = true;
    else if (*how == '0') c.zeros = true;
    else break;
  }
  c.width = count(how);
  if (c.width < 0) c.left = true, c.width = -c.width;
  if (*how == '.') c.precision = count(++how);
  for (; *how == 'l' || *how == 'z' || *how == 'j' || *how == 't'; ++how) c.wide = true;
  c.kind = *how == 'i' ? 'd' : *how;
  return c;
}

std::string converted(const Conversion& c, std::va_list& parts) {
  switch (c.kind) {
    case 'd': {
      const std::int64_t v = c.wide ? va_arg(parts, long long) : va_arg(parts, int);
      return whole(c, v < 0 ? 0 - static_cast<std::uint64_t>(v) : static_cast<std::uint64_t>(v), v < 0);
    }
    case 'u':
    case 'x':
    case 'X':
    case 'o': return whole(c, c.wide ? va_arg(parts, unsigned long long) : va_arg(parts, unsigned), false);
    case 'c': return padded(c, std::string(1, static_cast<char>(va_arg(parts, int))), false);
    case 's': {
      const std::string_view s = va_arg(parts, const char*);
      const std::size_t most = c.precision < 0 ? s.npos : static_cast<std::size_t>(c.precision);
      return padded(c, std::string(s.substr(0, most)), false);
    }
    case 'a':
    case 'A':
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G': return real(c, va_arg(parts, double));
    default: check(false, "a format has a conversion that is not known"); return {};
  }
}

}  // namespace

std::string formatted(const char* how, ...) {
  std::string out;
  std::va_list parts;
  va_start(parts, how);
  for (; *how; ++how) {
    if (*how != '%' || *++how == '%') {
      out += *how;
    } else {
      const Conversion c = conversion(how, parts);
      out += converted(c, parts);
    }
  }
  va_end(parts);
  return out;
}

template <class F>
std::optional<F> real_of(std::string_view text) {
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) negative = text[0] == '-', text.remove_prefix(1);
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (hexadecimal) text.remove_prefix(2);
  const std::string_view begins = hexadecimal ? ".0123456789abcdefABCDEF" : ".0123456789iInN";
  if (text.empty() || begins.find(text[0]) == begins.npos) return {};
  F v = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), v,
                                              hexadecimal ? std::chars_format::hex : std::chars_format::general);
  if (problem == std::errc::invalid_argument || end != text.data() + text.size()) return {};
  if (problem == std::errc::result_out_of_range)
    v = is_large(text, hexadecimal) ? std::numeric_limits<F>::infinity() : 0;
  return negative ? -v : v;
}
double odd_f64(std::int64_t value, bool is_unsigned) {
  const bool negative = value < 0 && !is_unsigned;
  std::uint64_t m = negative ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  constexpr std::uint64_t kLost = 0x7ff;  // the low 11 bits, which a double cannot hold
  if (m >> 53) m = (m & ~kLost) | (m & kLost ? kLost + 1 : 0);
  return negative ? -static_cast<double>(m) : static_cast<double>(m);
}

template std::optional<float> real_of(std::string_view);
template std::optional<double> real_of(std::string_view);

}  // namespace lc
