// Attention over a text of which each rank holds a part (sequence parallelism, context parallelism).
//
// Two ways compute the same numbers. In a ring (Liu et al., arXiv 2310.01889) keys and values travel from rank to rank,
// and each rank keeps the running maximum, sum and weighted sum of its queries: no rank has the whole text. With heads
// divided anew (DeepSpeed-Ulysses, Jacobs et al., arXiv 2309.14509) an all_to_all gives each rank the whole text for a
// part of the heads. shard() takes the one that sends fewer bytes, the second if both send as many, and the first where
// the ranks do not divide the heads.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lightcone/distributed/collectives.h"
#include "lightcone/distributed/sharding/sharding.h"

namespace lc {

struct TextAttentionOptions {
  bool is_causal = false;            // query i attends to the keys 0 to i of the whole text
  std::optional<double> scale = {};  // 1 / sqrt(d) by default
  // Broadcasts to [..., h, s, t] with this rank's queries s and the keys t of all ranks, or of this rank alone (one
  // column holds for all keys): bool (true: attend), or floating, which is added to the scores.
  Tensor attn_mask = {};
};

// scaled_dot_product_attention() of q [..., h, s / n, d], k [..., kv, t / n, d] and v [..., kv, t / n, e]: each of the
// n ranks along a mesh axis has its part of one text, in the order of their places, and gets that part of the result,
// [..., h, s / n, e]. kv divides h. Sums are f32 for narrow types. The derivative is a ring, too, which computes the
// probabilities once more. Throws Error for shapes that do not fit, and if the head size is symbolic and there is no
// scale.
Tensor ring_attention(const Collectives& ranks, const std::string& axis, Operand q, Operand k, Operand v,
                      const TextAttentionOptions& o = {});
// The same by all_to_all. Throws Error as well unless n divides h and kv.
Tensor all_to_all_attention(const Collectives& ranks, const std::string& axis, Operand q, Operand k, Operand v,
                            const TextAttentionOptions& o = {});

namespace distributed {

// An attention() or attention_gradients() node on this rank: `in` are its operands there, the mask with all keys.
struct TextAttention {
  const Collectives& ranks;
  Axes axes;                     // the mesh axes along which queries are divided
  bool keys = true;              // keys and values, too, and then these are axes of `ranks`
  int place = 0;                 // this rank's along them
  const Attributes& attributes;  // scale, causal
};
std::vector<Tensor> text_attention(const TextAttention& a, const std::vector<Tensor>& in);
// Sums of parts for keys and values, if they are not divided.
std::vector<Tensor> text_attention_gradients(const TextAttention& a, const std::vector<Tensor>& in);

}  // namespace distributed
}  // namespace lc
