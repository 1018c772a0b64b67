// Sums of products as GPU kernels see them. A contraction and a convolution are one thing, C[batch, rows, columns] =
// sum over k of A[batch, rows, k] * B[batch, columns, k]: each of the four is any number of strided axes, and one
// operand may be read through windows that reach beyond it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "lightcone/lowering/convolution.h"

namespace lc::backends::gpu {

// An operand: its strides, in elements, along the axes of the product.
struct Operand {
  NodeId node = 0;
  WeightType type = WeightType::F32;
  Dim offset;
  std::vector<Dim> batch, own, sum;  // own: the free axes, rows of A or columns of B
  // For an image: how a step along a free or a contracted axis moves a coordinate, and the bounds of that coordinate.
  // Elements outside of them are zero.
  struct Bound {
    std::vector<std::int64_t> own, sum;
    Dim lo, hi;
  };
  std::vector<Bound> bounds;
  bool repacked = false;  // a block format, in the layout of blocks.h
  Dim blocks = 0;         // number of blocks, if repacked
};

struct Product {
  std::vector<Dim> batch, rows, columns, sum;   // extents, innermost last
  std::vector<Dim> c_batch, c_rows, c_columns;  // strides of the result, which is dense
  Operand a, b;
  Dim row = 1;                     // length of a row of the result, as epilogues see it
  bool exact = false;              // bytes, summed in 32-bit integers
  bool to_f32 = false;             // exact, with the result in f32
  bool needs_64bit_index = false;  // element indices need 64 bits

  Dim results() const { return product(batch) * product(rows) * product(columns); }
};

// Replaces factors that were widened from a float of 16 or 8 bits by the values before the conversion.
lowering::Factors before_widening(const Graph& g, lowering::Factors f);
// Matches a convolution that these kernels compute: none that is a product of matrices already, and a depthwise one
// with channels last only if windows.cpp takes it.
std::optional<lowering::Convolution> find_convolution(const Graph& g, const lowering::Factors& f);

Product make_product(const Graph& g, const lowering::Contraction& c);
Product make_product(const Graph& g, const lowering::Convolution& c);

// Returns, for a depthwise convolution of few taps (windows.cpp), in how many lines a thread makes results, at most;
// else 0.
int window_lines(const Product& p);
// Returns how many threads that takes.
Dim window_threads(const Product& p, int lines);

// Returns true if `d` is a multiple of n for all values of its symbols.
bool multiple(const Dim& d, std::int64_t n);

}  // namespace lc::backends::gpu
