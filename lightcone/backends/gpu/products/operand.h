// How a thread reads its part of an operand's tile: some neighbours at a time, along the sum or along the operand's own
// axes, as registers of the product's type, zero where the tile reaches beyond the operand.
#pragma once

#include <functional>
#include <string>

#include "lightcone/backends/gpu/products/product.h"
#include "lightcone/backends/gpu/products/writer.h"

namespace lc::backends::gpu {

// The C type of an operand in memory: a block format is read byte by byte.
std::string element_type(WeightType t);
// Definitions of functions that value() calls; "" for plain types. They may stand in a text more than once.
std::string value_functions(WeightType t);
// What memory holds of a plain type as a number.
std::string widened(WeightType t, const std::string& v);
// The element at a place, counted in elements.
std::string value(WeightType t, const std::string& pointer, const std::string& place);
// The same of an operand, which may lie in planes.
std::string value(Writer& w, const Operand& s, const std::string& pointer, const std::string& place);

class TileReader {
 public:
  // A tile of `own` places and `depth` numbers of the sum for each, read by `threads` threads, of which each has
  // own * depth / threads elements, a multiple of `width`: the neighbours. `name` is the prefix of its variables.
  TileReader(const Product& p, bool is_b, int own, int depth, int threads, std::string name, int width = 4);
  // Before the loop: where the thread's elements lie. `first` is the tile's first own place.
  void prepare(Writer& w, const std::string& first);
  // Into registers NAME_r[...]: the tile whose sum begins at `k`; zero from `end` on.
  void read(Writer& w, const std::string& k, const std::string& end) const;
  // Instead of read(), where vectors are whole: for each vector what is to be done with it, "{" and lines that may use
  // `from`, its address, and an else behind them.
  void each(Writer& w, const std::string& k, const std::string& end,
            const std::function<void(int v, const std::string& from)>& inside,
            const std::function<void(int v)>& outside) const;
  // What read() brought, as element [k][own] of a tile in shared memory, rows of which are `pitch` apart.
  void keep(Writer& w, const std::string& tile, int pitch) const;

  bool along_sum() const { return along_sum_; }
  bool whole_vectors() const { return vector_; }
  int elements() const { return own_ * depth_ / threads_; }
  int vectors() const { return elements() / width_; }
  std::string place_own(int v) const;  // of the v-th vector, within the tile
  std::string place_sum(int v) const;

 private:
  bool fits_vectors() const;
  std::string inside(Writer& w, const std::string& own, const std::string& sum, const std::string& end) const;
  void sum_place(Writer& w, const std::string& k, const std::string& name) const;

  const Product& p_;
  const Operand& s_;
  const std::vector<Dim>& extents_;  // of the own axes
  int own_, depth_, threads_, width_;
  std::string n_;
  bool along_sum_, vector_;
};

}  // namespace lc::backends::gpu
