#include "lightcone/core/composite.h"

namespace lc {

std::vector<Dim> extents(const Attributes& a) {
  std::vector<Dim> all;
  for (const Attributes::Entry& e : a.entries())
    if (const Dim* d = std::get_if<Dim>(&e.value)) all.push_back(*d);
  return all;
}

std::vector<std::int64_t> result_offsets(std::span<const TensorType> results) {
  std::vector<std::int64_t> at{0};
  for (const TensorType& r : results) {
    constexpr std::int64_t kMost = std::int64_t{1} << 48;
    const std::int64_t elements = product(r.shape).bounds().hi;
    if (elements > kMost || at.back() > kMost)
      throw Error("", str_cat("results of ", str(r.shape), " lie behind each other: give their sizes an upper bound"));
    at.push_back((at.back() + elements * static_cast<std::int64_t>(size_of(r.dtype)) + 63) / 64 * 64);
  }
  return at;
}

}  // namespace lc
