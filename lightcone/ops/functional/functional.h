// More of torch.nn.functional: im2col, image sampling, embedding bags, multi-head attention.
//
// Images are [batch, channels, n...]. Arguments for spatial axes are one number for all axes or one each. Extents from
// which positions are computed (resized or sampled images, folded windows) must be numbers; batch and channels may be
// symbolic.
#pragma once

#include <string_view>
#include <vector>

#include "lightcone/ops/ops.h"
#include "lightcone/ops/random.h"

namespace lc {

// ---- windows ------------------------------------------------------------------------------------

// im2col: [b, c, h, w] -> [b, c kh kw, windows], with windows in row-major order.
Tensor unfold(Operand x, std::vector<int> kernel, std::vector<int> dilation = {1}, std::vector<int> padding = {0},
              std::vector<int> stride = {1});
// col2im, the transpose of unfold(): [b, c kh kw, windows] -> [b, c, output...]. Overlapping windows are summed.
Tensor fold(Operand x, std::vector<int> output, std::vector<int> kernel, std::vector<int> dilation = {1},
            std::vector<int> padding = {0}, std::vector<int> stride = {1});
// lp_pool1d to 3d: the p-th root of the sum of x^p in each window (NaN for negative sums of odd powers, as in PyTorch).
Tensor lp_pool(Operand x, double p, std::vector<int> kernel, std::vector<int> stride = {}, bool ceil_mode = false);
// max_pool1d to 3d with return_indices: i64 positions of the values in their images, with flattened spatial axes.
Extreme max_pool_with_indices(Operand x, std::vector<int> kernel, std::vector<int> stride = {},
                              std::vector<int> padding = {0}, std::vector<int> dilation = {1});
// max_unpool1d to 3d: puts values back at their positions, 0 elsewhere. The default `output` is (n - 1) stride - 2
// padding + kernel.
Tensor max_unpool(Operand x, Operand indices, std::vector<int> kernel, std::vector<int> stride = {},
                  std::vector<int> padding = {0}, std::vector<int> output = {});
// x / (k + alpha mean(x^2 of `size` neighbouring channels))^beta (torch.nn.functional.local_response_norm).
Tensor local_response_norm(Operand x, int size, double alpha = 1e-4, double beta = 0.75, double k = 1);
Tensor channel_shuffle(Operand x, int groups);  // [b, groups n, ...]: interleaves the groups

// ---- images -------------------------------------------------------------------------------------
struct InterpolateOptions {
  std::vector<int> size = {};  // target size; give either this or scale_factor
  std::vector<double> scale_factor = {};
  // "nearest", "nearest-exact", "linear", "bilinear" and "trilinear" (for 1, 2 and 3 spatial axes), "bicubic" (for 2),
  // "area".
  std::string_view mode = "nearest";
  bool align_corners = false;
  bool recompute_scale_factor = false;  // use the ratio of the actual sizes instead of the given factor
  bool antialias = false;  // widens the filter where an axis shrinks, as Pillow does; linear and cubic modes
};
// Resizes the spatial axes (torch.nn.functional.interpolate). resize() (ops/vision/resize.h) has more modes.
Tensor interpolate(Operand x, const InterpolateOptions& o);
// Samples [b, c, h, w] at grid [b, oh, ow, 2] -> [b, c, oh, ow], or [b, c, d, h, w] at [b, od, oh, ow, 3]. The last
// axis of the grid is (x, y) or (x, y, z) in [-1, 1]. mode is "bilinear", "nearest" or "bicubic" (which PyTorch has for
// images with two spatial axes only). padding_mode defines values outside: "zeros", "border" or "reflection". With
// align_corners, -1 and 1 are the centres of the outermost pixels instead of their edges.
Tensor grid_sample(Operand x, Operand grid, std::string_view mode = "bilinear", std::string_view padding_mode = "zeros",
                   bool align_corners = false);
// The sampling grid for an image of size [b, c, h, w] (or [b, c, d, h, w]) under theta [b, 2, 3] (or [b, 3, 4]).
Tensor affine_grid(Operand theta, const Shape& size, bool align_corners = false);

// ---- vectors ------------------------------------------------------------------------------------
// The p-norm of a - b + eps over the last axis.
Tensor pairwise_distance(Operand a, Operand b, double p = 2, double eps = 1e-6, bool keepdim = false);
// softmax((logits + Gumbel noise) / tau). If `hard`, a one-hot vector at its maximum with the softmax's derivative.
Tensor gumbel_softmax(Random& random, Operand logits, double tau = 1, bool hard = false, int axis = -1);

// ---- embeddings ---------------------------------------------------------------------------------
struct EmbeddingBagOptions {
  std::string_view mode = "mean";    // "sum", "mean" or "max"
  bool include_last_offset = false;  // the last offset is the end of the last bag
  std::int64_t padding_idx = -1;     // ids to ignore; negative: none
};
// Reduces the embeddings of each bag to their sum, mean or maximum; an empty bag gives 0. ids [b, n] are b bags. weight
// [ids, d] -> [b, d].
Tensor embedding_bag(Operand ids, Operand weight, const EmbeddingBagOptions& o = {});
// Like embedding_bag() above for ids [n], split into bags that begin at offsets [b].
Tensor embedding_bag(Operand ids, Operand weight, Operand offsets, const EmbeddingBagOptions& o = {});
// Multiplies each embedding by its own weight, of the shape of ids; mode "sum" only.
Tensor embedding_bag_weighted(Operand ids, Operand weight, Operand per_sample_weights);
// The same for ids [n] with offsets.
Tensor embedding_bag_weighted(Operand ids, Operand weight, Operand offsets, Operand per_sample_weights);

// ---- attention ----------------------------------------------------------------------------------
// Arguments of torch.nn.functional.multi_head_attention_forward other than its inputs; undefined tensors are absent.
struct MultiHeadAttentionArguments {
  int num_heads = 1;
  Tensor in_proj_weight = {}, in_proj_bias = {};                      // [3 e, e], [3 e]
  Tensor q_proj_weight = {}, k_proj_weight = {}, v_proj_weight = {};  // or [e, e], [e, kdim], [e, vdim]
  Tensor out_proj_weight = {}, out_proj_bias = {};                    // [e, e], [e]
  Tensor bias_k = {}, bias_v = {};                                    // [1, 1, e]: an extra key and value
  bool add_zero_attn = false;                                         // adds a key and value of zeros
  Tensor key_padding_mask = {};                                       // [n, s]; bool: true is ignored
  Tensor attn_mask = {};   // [l, s] or [n heads, l, s]; bool: true is ignored
  bool is_causal = false;  // query i attends to keys 0 to i
  bool average_attn_weights = true;
  double dropout_p = 0;      // dropout of the attention weights; needs `random`
  Random* random = nullptr;  // the random numbers of the dropout
};
struct Attended {
  Tensor output;   // [l, n, e]
  Tensor weights;  // [n, l, s], averaged over the heads, or [n, heads, l, s]
};
// query is [l, n, e], key [s, n, kdim], value [s, n, vdim], or without the batch n. Float masks are added to the
// scores.
Attended multi_head_attention_forward(Operand query, Operand key, Operand value, const MultiHeadAttentionArguments& o);

}  // namespace lc
