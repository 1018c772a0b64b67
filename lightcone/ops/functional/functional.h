// More of torch.nn.functional: windows as columns, sampling of images, bags of embeddings, multi-head attention.
//
// Images are [batch, channels, n...]; numbers for spatial axes are one for all or one each. Extents that positions are
// computed from (images that are sampled or resized, windows that are folded) are numbers; batches and channels may be
// symbolic.
#pragma once

#include <string_view>
#include <vector>

#include "lightcone/ops/ops.h"
#include "lightcone/ops/random.h"

namespace lc {

// ---- windows ------------------------------------------------------------------------------------
// im2col: [b, c, h, w] -> [b, c kh kw, windows], windows row by row.
Tensor unfold(Operand x, std::vector<int> kernel, std::vector<int> dilation = {1}, std::vector<int> padding = {0},
              std::vector<int> stride = {1});
// col2im, its transpose: [b, c kh kw, windows] -> [b, c, output...]; where windows overlap they add up.
Tensor fold(Operand x, std::vector<int> output, std::vector<int> kernel, std::vector<int> dilation = {1},
            std::vector<int> padding = {0}, std::vector<int> stride = {1});
// lp_pool1d to 3d: the p-th root of the sum of x^p in each window (of negative sums of odd powers NaN, as in torch).
Tensor lp_pool(Operand x, double p, std::vector<int> kernel, std::vector<int> stride = {}, bool ceil_mode = false);
// max_pool1d to 3d with return_indices: where each value was in its image, i64, the spatial axes as one.
Extreme max_pool_with_indices(Operand x, std::vector<int> kernel, std::vector<int> stride = {},
                              std::vector<int> padding = {0}, std::vector<int> dilation = {1});
// max_unpool1d to 3d: values back to where they were, 0 elsewhere; `output` none given: (n - 1) stride - 2 padding +
// kernel.
Tensor max_unpool(Operand x, Operand indices, std::vector<int> kernel, std::vector<int> stride = {},
                  std::vector<int> padding = {0}, std::vector<int> output = {});
// x / (k + alpha mean(x^2 of `size` neighbouring channels))^beta
Tensor local_response_norm(Operand x, int size, double alpha = 1e-4, double beta = 0.75, double k = 1);
Tensor channel_shuffle(Operand x, int groups);  // [b, groups n, ...]: channels of the groups in turn

// ---- images -------------------------------------------------------------------------------------
struct InterpolateOptions {
  std::vector<int> size = {};  // or
  std::vector<double> scale_factor = {};
  // "nearest", "nearest-exact", "linear", "bilinear" and "trilinear" (of 1, 2 and 3 spatial axes), "bicubic" (of 2),
  // "area"
  std::string_view mode = "nearest";
  bool align_corners = false;
  bool recompute_scale_factor = false;  // by the size that comes out, not the factor that was given
};
Tensor interpolate(Operand x, const InterpolateOptions& o);
// Samples [b, c, h, w] at grid [b, oh, ow, 2] -> [b, c, oh, ow], or [b, c, d, h, w] at [b, od, oh, ow, 3]; the last
// axis of the grid is (x, y) or (x, y, z) from -1 to 1. mode: "bilinear" or "nearest"; padding_mode, what lies outside:
// "zeros", "border" or "reflection"; align_corners: -1 and 1 are centres of the outermost pixels, not their edges.
Tensor grid_sample(Operand x, Operand grid, std::string_view mode = "bilinear", std::string_view padding_mode = "zeros",
                   bool align_corners = false);
// The grid for an image of size [b, c, h, w] (or [b, c, d, h, w]) under theta [b, 2, 3] (or [b, 3, 4]).
Tensor affine_grid(Operand theta, const Shape& size, bool align_corners = false);

// ---- vectors ------------------------------------------------------------------------------------
Tensor pairwise_distance(Operand a, Operand b, double p = 2, double eps = 1e-6, bool keepdim = false);  // last axis
// softmax((logits + Gumbel noise) / tau); `hard`: a one where it is largest, whose derivative is the softmax's.
Tensor gumbel_softmax(Random& random, Operand logits, double tau = 1, bool hard = false, int axis = -1);

// ---- embeddings ---------------------------------------------------------------------------------
struct EmbeddingBagOptions {
  std::string_view mode = "mean";    // "sum", "mean" or "max"
  bool include_last_offset = false;  // the last offset is where the last bag ends
  std::int64_t padding_idx = -1;     // ids that count for nothing; negative: none
};
// The sum, mean or largest elements of the embeddings of each bag, 0 of an empty one. ids [b, n] are b bags; ids [n]
// are cut by offsets [b] where bags begin. weight [ids, d] -> [b, d].
Tensor embedding_bag(Operand ids, Operand weight, const EmbeddingBagOptions& o = {});
Tensor embedding_bag(Operand ids, Operand weight, Operand offsets, const EmbeddingBagOptions& o = {});
// Each embedding times a weight of its own, of the shape of ids; "sum" alone.
Tensor embedding_bag_weighted(Operand ids, Operand weight, Operand per_sample_weights);
Tensor embedding_bag_weighted(Operand ids, Operand weight, Operand offsets, Operand per_sample_weights);

// ---- attention ----------------------------------------------------------------------------------
// What torch.nn.functional.multi_head_attention_forward takes beside its inputs; tensors that are left out are not
// there.
struct MultiHeadAttentionArguments {
  int num_heads = 1;
  Tensor in_proj_weight = {}, in_proj_bias = {};                      // [3 e, e], [3 e]; or, of other widths,
  Tensor q_proj_weight = {}, k_proj_weight = {}, v_proj_weight = {};  // [e, e], [e, kdim], [e, vdim]
  Tensor out_proj_weight = {}, out_proj_bias = {};                    // [e, e], [e]
  Tensor bias_k = {}, bias_v = {};                                    // [1, 1, e]: one more key and value
  bool add_zero_attn = false;                                         // and one of zeros
  Tensor key_padding_mask = {};                                       // [n, s]; bool: true is not looked at
  Tensor attn_mask = {};                                              // [l, s] or [n heads, l, s]; the same
  bool is_causal = false;                                             // query i looks at keys 0 to i
  bool average_attn_weights = true;
  double dropout_p = 0;      // of the weights, while training; needs
  Random* random = nullptr;  // where it comes from
};
struct Attended {
  Tensor output;   // [l, n, e]
  Tensor weights;  // [n, l, s], averaged over the heads, or [n, heads, l, s]
};
// query [l, n, e], key [s, n, kdim], value [s, n, vdim], or without the batch n. Masks are added where they are floats.
Attended multi_head_attention_forward(Operand query, Operand key, Operand value, const MultiHeadAttentionArguments& o);

}  // namespace lc
