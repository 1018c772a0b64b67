// Integer division that rounds up, for non-negative numbers.
#pragma once

#include <cstdint>

namespace lc::backends::cpu {

constexpr std::int64_t ceil_div(std::int64_t v, std::int64_t of) { return (v + of - 1) / of; }
constexpr std::int64_t round_up(std::int64_t v, std::int64_t to) { return ceil_div(v, to) * to; }

}  // namespace lc::backends::cpu
