#include "lightcone/stablehlo/write/sizes.h"

#include <algorithm>

#include "lightcone/base/error.h"

namespace lc::stablehlo {
namespace {

constexpr std::int64_t kFirstTicket = kDynamic - 1;  // tickets count downwards

}  // namespace

bool is_open(const Sizes& s) {
  return std::ranges::any_of(s, [](std::int64_t n) { return is_open(n); });
}

bool is_empty(const Sizes& s) { return std::ranges::find(s, 0) != s.end(); }

std::int64_t SizeTable::of(const Dim& d) {
  if (const auto n = d.constant()) {
    check(*n >= 0, "a negative extent");
    return *n;
  }
  const auto [at, is_new] = tickets_.try_emplace(d, kFirstTicket - static_cast<std::int64_t>(open_.size()));
  if (is_new) open_.push_back(d);
  return at->second;
}

Sizes SizeTable::of(const Shape& s) {
  Sizes all;
  for (const Dim& d : s) all.push_back(of(d));
  return all;
}

Dim SizeTable::dim(std::int64_t size) const {
  return is_open(size) ? open_.at(static_cast<std::size_t>(kFirstTicket - size)) : Dim(size);
}

std::int64_t SizeTable::product(const Sizes& s) {
  Dim all = 1;
  for (const std::int64_t n : s) all = all * dim(n);
  return of(all);
}

Type SizeTable::sealed(Type t, bool bounded) const {
  if (!is_open(t.shape)) return t;
  if (bounded) t.bounds.assign(t.shape.size(), kDynamic);
  for (std::size_t i = 0; i < t.shape.size(); ++i) {
    if (!is_open(t.shape[i])) continue;
    if (bounded) t.bounds[i] = dim(t.shape[i]).bounds().hi;
    t.shape[i] = kDynamic;
  }
  return t;
}

}  // namespace lc::stablehlo
