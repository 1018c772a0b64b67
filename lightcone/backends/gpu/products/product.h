// Sums of products as the kernels here see them: a contraction and a convolution are one thing, C[batch, rows, columns]
// = sum over k of A[batch, rows, k] * B[batch, columns, k], where each of the four is any number of axes with strides,
// and one of the operands may be read through windows that reach beyond it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "lightcone/lowering/convolution.h"

namespace lc::backends::gpu {

using lowering::WeightType;

// An operand: strides in elements along the axes of the product.
struct Operand {
  NodeId node = 0;
  WeightType type = WeightType::F32;
  Dim offset;
  std::vector<Dim> batch, own, sum;  // own: rows of A, columns of B
  // Where it is an image: how a step along an own axis or a summed one moves a coordinate, and between which bounds
  // that coordinate must be; zero is read elsewhere.
  struct Bound {
    std::vector<std::int64_t> own, sum;
    Dim lo, hi;
  };
  std::vector<Bound> bounds;
  bool repacked = false;  // of a block format, kept as blocks.h has it,
  Dim blocks = 0;         // and how many there are
};

struct Product {
  std::vector<Dim> batch, rows, columns, sum;   // extents, innermost last
  std::vector<Dim> c_batch, c_rows, c_columns;  // strides of the result, which is dense
  Operand a, b;
  Dim row = 1;                     // what lies side by side in the result, as epilogues see it
  bool exact = false;              // bytes, summed as numbers of 32 bits
  bool to_f32 = false;             // and these wanted in f32
  bool needs_64bit_index = false;  // places need 64 bits

  Dim results() const { return product(batch) * product(rows) * product(columns); }
};

// The factors of a sum, where they were widened from a float of 16 or 8 bits as they were before.
lowering::Factors before_widening(const Graph& g, lowering::Factors f);
// A convolution that kernels here compute: not one that is a product of matrices already, and with a filter for each
// channel where channels lie last only what windows.cpp takes.
std::optional<lowering::Convolution> find_convolution(const Graph& g, const lowering::Factors& f);

Product make_product(const Graph& g, const lowering::Contraction& c);
Product make_product(const Graph& g, const lowering::Convolution& c);

// Is it a convolution of few taps with a filter for each channel (windows.cpp)? Then of how many lines a thread makes
// results, at most, else 0; and how many threads that takes.
int window_lines(const Product& p);
Dim window_threads(const Product& p, int lines);

// Is the number a multiple of n, whatever its symbols are?
bool multiple(const Dim& d, std::int64_t n);

}  // namespace lc::backends::gpu
