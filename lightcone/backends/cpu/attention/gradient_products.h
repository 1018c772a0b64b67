// The five products of attention's gradients: scores and slopes of a block of queries, and what weights and slopes add
// to the gradients. They are computed in f32 from the operands as they lie, or in bf16 by a microkernel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "lightcone/backends/cpu/kernels/abi/attention_abi.h"
#include "lightcone/backends/cpu/kernels/abi/gemm_abi.h"

namespace lc::backends::cpu {

// Some queries of a head and the keys they see. All arrays are row-major and contiguous, but rows of scores and slopes
// are `row` apart, and hold at least 64 * ceil(keys / 64) numbers.
struct GradientBlock {
  std::int64_t keys = 0, depth = 0, width = 0;  // sizes of a head
  bool all = true;                              // every query sees every key; else it sees those up to its own
  const float *q = nullptr, *k = nullptr, *v = nullptr, *g = nullptr;
  float *dq = nullptr, *dk = nullptr, *dv = nullptr;  // dq is written, dk and dv are added to
  float *scores = nullptr, *slopes = nullptr;
  std::int64_t row = 0;
  float* packed = nullptr;           // GradientProducts::floats()
  std::int64_t first = 0, rows = 0;  // queries [first, first + rows)

  // Keys whose scores a tile of `tile` queries that ends before query r needs: those it sees and a tile more, because a
  // tile of keys may extend past the last.
  std::int64_t needed(std::int64_t r, std::int64_t tile) const { return all ? keys : std::min(keys, r + tile); }
};

class GradientProducts {
 public:
  static constexpr std::int64_t kLanes = 16;  // scores of needed keys are complete to a multiple of these
  virtual ~GradientProducts() = default;
  // Queries or keys that are computed together.
  virtual std::int64_t rows() const = 0;
  // Scratch for blocks of up to `queries` queries, in floats.
  virtual std::int64_t floats(std::int64_t keys, std::int64_t depth, std::int64_t width,
                              std::int64_t queries) const = 0;
  // Prepares the keys and values of a head for all its blocks.
  virtual void pack(const GradientBlock& b) const = 0;
  // scores = q k^T and slopes = g v^T, for the keys that are needed, to a multiple of kLanes.
  void scores(const GradientBlock& b) const;
  // dq = slopes k, dk += slopes^T q, dv += scores^T g.
  void gradients(const GradientBlock& b) const;

 protected:
  static constexpr std::int64_t kPanel = 64;  // keys whose scores are computed before those of the next ones

 private:
  // Called before and after the products of scores and of gradients.
  virtual void begin_scores(const GradientBlock&) const {}
  virtual void begin_gradients(const GradientBlock&) const {}
  virtual void end() const {}
  // Scores and slopes of `count` queries from row `r` of the block on, and `columns` keys from `key` on.
  virtual void score(const GradientBlock& b, std::int64_t r, std::int64_t count, std::int64_t key,
                     std::int64_t columns) const = 0;
  // Gradients of these queries, from the first `keys` keys.
  virtual void to_queries(const GradientBlock& b, std::int64_t r, std::int64_t count, std::int64_t keys) const = 0;
  // Adds to the gradients of `count` keys and values from `key` on what rows [from, b.rows) of the block give.
  virtual void to_keys(const GradientBlock& b, std::int64_t key, std::int64_t count, std::int64_t from) const = 0;
};

// In f32.
std::shared_ptr<const GradientProducts> gradient_products(const AttentionGradientsTable& t);
// In the arithmetic of `u`.
std::shared_ptr<const GradientProducts> gradient_products(const Microkernel& u);

}  // namespace lc::backends::cpu
