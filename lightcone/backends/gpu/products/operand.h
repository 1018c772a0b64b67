// Reads a thread's part of an operand's tile: several adjacent elements at a time, along the contracted or the free
// axes, into registers of the product's type. Elements beyond the operand are zero.
#pragma once

#include <functional>
#include <string>

#include "lightcone/backends/gpu/products/product.h"
#include "lightcone/backends/gpu/products/writer.h"

namespace lc::backends::gpu {

// Returns the C type of an operand in memory; block formats are read byte by byte.
std::string element_type(WeightType t);
// Returns definitions of the functions that value() calls; "" for plain types. A text may contain them more than once.
std::string value_functions(WeightType t);
// Returns the number that `v`, read from memory, stands for. Only for plain types.
std::string widened(WeightType t, const std::string& v);
// Returns the expression of an element; `index` counts elements.
std::string value(WeightType t, const std::string& pointer, const std::string& index);
// Returns the same of an operand, which may be repacked.
std::string value(Writer& w, const Operand& s, const std::string& pointer, const std::string& index);

class TileReader {
 public:
  // Reads a tile of `own` indices of the free axes and `depth` of the contracted ones with `threads` threads. Each
  // thread has own * depth / threads elements, in vectors of `width` adjacent ones. `name` is the prefix of its
  // variables.
  TileReader(const Product& p, bool is_b, int own, int depth, int threads, std::string name, int width = 4);
  // Computes, before the loop, the offsets of the thread's elements. `first` is the tile's first free index.
  void prepare(Writer& w, const std::string& first);
  // Reads the tile whose contraction begins at `k` into registers NAME_r[...], with zero from `end` on.
  void read(Writer& w, const std::string& k, const std::string& end) const;
  // Replaces read() if whole_vectors(): for each vector, writes `inside` with its address `from` if it lies inside of
  // the operand, else `outside`.
  void each(Writer& w, const std::string& k, const std::string& end,
            const std::function<void(int v, const std::string& from)>& inside,
            const std::function<void(int v)>& outside) const;
  // Stores the registers of read() as elements [k][own] of a tile in shared memory whose rows are `pitch` apart.
  void keep(Writer& w, const std::string& tile, int pitch) const;

  bool along_sum() const { return along_sum_; }
  bool whole_vectors() const { return vector_; }
  int elements() const { return own_ * depth_ / threads_; }
  int vectors() const { return elements() / width_; }
  std::string index_own(int v) const;  // free index of the v-th vector, within the tile
  std::string index_sum(int v) const;

 private:
  bool fits_vectors() const;
  std::string inside(Writer& w, const std::string& own, const std::string& sum, const std::string& end) const;
  void sum_offset(Writer& w, const std::string& k, const std::string& name) const;

  const Product& p_;
  const Operand& s_;
  const std::vector<Dim>& extents_;  // extents of the free axes
  int own_, depth_, threads_, width_;
  std::string n_;
  bool along_sum_, vector_;
};

}  // namespace lc::backends::gpu
