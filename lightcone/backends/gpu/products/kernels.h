// The kernels of sums of products, as text that CUDA C, OpenCL C and Metal share (codegen/simt/dialect.h).
//
// The order in which a kernel adds depends on the product's sizes alone, so that results have the same bits on any
// grid. The first two size arguments are given at each launch: the number of parts into which the sum is split, and the
// length of a part. If it is split, the parts are written one after the other and added by another kernel.
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
  std::string text;        // text of a kernel named "@"
  int threads = 0;         // threads of a block
  std::vector<Dim> sizes;  // arguments after the given ones
  // Rows and columns of the result that a block makes, and the multiple at which the sum may be split.
  int rows = 1, columns = 1, depth = 1;
  std::vector<OperandMap> maps = {};  // tensor maps of a launch
  std::size_t shared = 0;             // bytes of shared memory beyond what the text declares
};

struct ProductTexts {
  const Product& p;
  const Epilogue& epilogue;
  codegen::simt::Language language;
  int warp;    // threads that exchange registers
  bool parts;  // the sum is split: partial sums are written, without the epilogue

  // Blocks of 256 threads make tiles of 64 x 64 or 128 x 128 by way of shared memory.
  KernelText tiles(int side) const;
  // A product of up to `rows` rows. The threads read B once, adjacent threads reading adjacent elements.
  KernelText skinny_gemm(int rows) const;
  // For products with window_lines() above 0: each thread makes four adjacent results in each of `lines` lines.
  KernelText windows(int lines) const;
  // Adds the parts and applies the epilogue.
  KernelText add_parts() const;

  // ---- what they share
  std::vector<codegen::simt::Parameter> parameters() const;
  std::string functions() const;
  // Returns the whole kernel around the lines written so far, with the parameters `first` before the buffers.
  std::string finished(Writer& w, int threads, std::string_view first = "", int resident = 1) const;
  // Stores `sum` as the result at index `index`. The lines need a scope of their own, which the caller opens.
  void store(Writer& w, const std::string& index, const std::string& sum) const;
  // Returns true if two adjacent columns that begin at an even one are always contiguous in the result, aligned to
  // their size, and both inside or both outside of it.
  bool pairs() const;
  // Requires pairs(). Stores the results at `index` and `index` + 1 at once.
  void store_two(Writer& w, const std::string& index, const std::string& first, const std::string& second) const;
  // Stores a thread's sums of two adjacent columns: `sum(e)`, for e of 0 and 1, is the one of `column` + e in the row
  // that begins at c_row. `column` is even.
  void store_neighbours(Writer& w, const std::string& column, const std::function<std::string(int e)>& sum) const;
  std::string sum_type() const { return p.exact ? "int" : "float"; }
  // Computes which tile, part and batch the thread block makes. Defines tile_m, tile_n, part, and the bases of A, B and
  // C, and returns the names of the batch's indices.
  std::vector<std::string> locate(Writer& w, int rows, int columns) const;
};

// Returns true if skinny_gemm() can read B.
bool skinny_gemm_reads(const Product& p);

}  // namespace lc::backends::gpu
