// The kernels of sums of products, as text that CUDA C, OpenCL C and Metal share (codegen/simt/dialect.h).
//
// Each has the order of its sums from the product's sizes alone, so that results have the same bits on any grid. Their
// first two numbers are given with each start: in how many parts the sum is split, and how long a part is. Where it is
// split, parts are written one behind the other and added by another kernel.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/backends/gpu/products/epilogue.h"
#include "lightcone/backends/gpu/products/operand_map.h"

namespace lc::backends::gpu {

inline constexpr std::size_t kGivenSizes = 2;

struct KernelText {
  std::string text;        // of a kernel called "@"
  int threads = 0;         // of a group
  std::vector<Dim> sizes;  // behind those that are given
  // What a group makes, and at what multiples a sum may be split.
  int rows = 1, columns = 1, depth = 1;
  std::vector<OperandMap> maps = {};  // that a start takes,
  std::size_t shared = 0;             // and bytes of shared memory beyond what the text declares
};

struct ProductTexts {
  const Product& p;
  const Epilogue& epilogue;
  codegen::simt::Language language;
  int warp;    // threads that exchange registers
  bool parts;  // the sum is split: what is written are parts, without the tail

  // Groups of 256 threads make tiles of 64 x 64 or 128 x 128 by way of shared memory.
  KernelText tiles(int side) const;
  // For up to `rows` rows. Threads read B once, side by side.
  KernelText skinny_gemm(int rows) const;
  // Where window_lines() is not 0: threads of a group make four results side by side of so many lines each.
  KernelText windows(int lines) const;
  // Adds the parts.
  KernelText add_parts() const;

  // ---- what they share
  std::vector<codegen::simt::Parameter> places() const;
  std::string functions() const;
  // The whole kernel around what was written, with parameters in front of the places.
  std::string finished(Writer& w, int threads, std::string_view first = "", int resident = 1) const;
  // Stores `sum` for the result at `place`, within a scope of its own.
  void store(Writer& w, const std::string& place, const std::string& sum) const;
  // Do two neighbours of a row that begin at an even column lie side by side, both inside or none, at a multiple of
  // their size? Then store_two() stores those at `place` and behind it at once.
  bool pairs() const;
  void store_two(Writer& w, const std::string& place, const std::string& first, const std::string& second) const;
  // Of a thread that has sums of neighbours: `sum(e)` for e of 0 and 1 is that of `column` + e, within the row that
  // begins at c_row. `column` is even.
  void store_neighbours(Writer& w, const std::string& column, const std::function<std::string(int e)>& sum) const;
  std::string sum_type() const { return p.exact ? "int" : "float"; }
  // Of a group: which tile, part and batch. Defines tile_m, tile_n, part, and the bases of A, B and C, and gives the
  // names of the batch's indices.
  std::vector<std::string> locate(Writer& w, int rows, int columns) const;
};

// Can few_rows() read B?
bool reads_side_by_side(const Product& p);

}  // namespace lc::backends::gpu
