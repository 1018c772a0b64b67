// Extents while a module is written: numbers, and tickets for extents that are unknown until the module runs.
//
// A ticket stands for an expression over the graph's symbols. Equal expressions have equal tickets, so shapes can be
// compared as lists of numbers. In the finished module a ticket is `?`.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "lightcone/core/dim.h"
#include "lightcone/stablehlo/module.h"

namespace lc::stablehlo {

using Sizes = std::vector<std::int64_t>;

inline bool is_open(std::int64_t size) { return size < kDynamic; }  // a ticket
bool is_open(const Sizes& s);                                       // whether any extent is a ticket
bool is_empty(const Sizes& s);                                      // certainly without elements

class SizeTable {
 public:
  // True if convolutions and pools may move along open axes. StableHLO's may not, as their types have to be inferred.
  bool open_windows = false;
  std::int64_t of(const Dim& d);
  Sizes of(const Shape& s);
  Dim dim(std::int64_t size) const;
  std::int64_t product(const Sizes& s);
  std::int64_t sum(std::int64_t a, std::int64_t b) { return of(dim(a) + dim(b)); }
  // Returns the type for the module: `?` for tickets, with bounds if `bounded`.
  Type sealed(Type t, bool bounded) const;

 private:
  struct Hash {
    std::size_t operator()(const Dim& d) const { return d.hash(); }
  };
  std::vector<Dim> open_;
  std::unordered_map<Dim, std::int64_t, Hash> tickets_;
};

}  // namespace lc::stablehlo
