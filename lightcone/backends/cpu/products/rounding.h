// Division that rounds up, of what is not negative.
#pragma once

#include <cstdint>

namespace lc::host {

constexpr std::int64_t parts(std::int64_t v, std::int64_t of) { return (v + of - 1) / of; }
constexpr std::int64_t up(std::int64_t v, std::int64_t to) { return parts(v, to) * to; }

}  // namespace lc::host
