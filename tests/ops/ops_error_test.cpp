// Every wrong call of an operation gives one sentence with the caller's line.
#include <gtest/gtest.h>

#include <functional>

#include "lightcone/ops/ops.h"

using namespace lc;

namespace {

void says(const std::function<void()>& f, const std::string& call, const std::string& sentence) {
  try {
    f();
    ADD_FAILURE() << call << " is no error";
  } catch (const Error& e) {
    const std::string what = e.what();
    EXPECT_EQ(what.substr(0, what.find(" (at ")), sentence) << call;
    EXPECT_NE(what.find(" (at ops_error_test.cpp:"), std::string::npos)
        << call << ": '" << what << "' lacks the caller's line";
  }
}
#define SAYS(sentence, ...) says([&] { __VA_ARGS__; }, #__VA_ARGS__, sentence)

}  // namespace

// clang-format off
TEST(OpsErrors, SayWhatIsWrongAndWhere) {
  Graph g, other;
  const Dim n = Dim::symbol("n", 1, 8), m = Dim::symbol("m", 1, 8);
  const Tensor a = g.input("a", {2, 3, 4}), v = g.input("v", {5}), x = g.input("x", {1, 4, 8, 8}),
               i = g.input("i", {3}, DType::I64), b = g.input("b", {2, 3}, DType::Bool), s = g.input("s", {n, 3}), z = g.input("z", {}), e = g.input("e", {0, 3}), d = g.input("d", {4}, DType::F64),
               mm = g.input("mm", {m, 3}), big = g.input("big", {32, 784}), bw = g.input("bw", {512, 10});
  const Tensor o = other.input("o", {5});
  SAYS("operator+: [2, 3, 4] and [5] differ at axis 2: 4 vs 5", a + v);
  SAYS("operator-: [2, 3, 4] and [3] differ at axis 2: 4 vs 3", a - i);
  SAYS("operator-: bool has no subtraction; logical_xor and logical_not say what is meant", b - b);
  SAYS("neg: bool has no negative; logical_not says what is meant", -b);
  SAYS("operator+: [n, 3] and [m, 3] differ at axis 0: n vs m", s + mm);
  SAYS("matmul: [32, 784] x [512, 10]: inner dimensions differ: 784 vs 512", matmul(big, bw));
  SAYS("matmul: [] x [2, 3, 4]: both need at least one axis", matmul(z, a));
  SAYS("matmul: [2, 3, 4] x [2, 3, 4]: inner dimensions differ: 4 vs 3", matmul(a, a));
  SAYS("matmul: [n, 3] x [n, 3]: inner dimensions differ: 3 vs n", matmul(s, s));
  SAYS("linear: the weight has rank 2, not [5]", linear(a, v));
  SAYS("linear: [32, 784] with a weight [512, 10]: the last axis must be 10", linear(big, bw));
  SAYS("linear: a bias [5] does not fit a weight [32, 784]", linear(big, big, v));
  SAYS("pow: whole numbers have no negative powers; convert to a floating type", pow(i, -1));
  SAYS("where: [2, 3] and [2, 3, 4] differ at axis 2: 3 vs 4", where(b, a, a));
  SAYS("where: [2, 3, 4] and [5] differ at axis 2: 4 vs 5", where(b, a, v));
  SAYS("masked_fill: [2, 3, 4] and [5] differ at axis 2: 4 vs 5", masked_fill(a, v, 0));
  SAYS("clamp: this Tensor was never given a value", clamp(Tensor(), 0, 1));
  SAYS("exp: this Tensor was never given a value", exp(Tensor()));
  SAYS("frac: whole numbers have no fraction", frac(i));
  SAYS("prelu: a weight [5] does not fit the channels of [2, 3, 4]", prelu(a, v));
  SAYS("prelu: a weight [4] does not fit the channels of [2, 3, 4]", prelu(a, d));
  SAYS("glu: axis 1 of [2, 3, 4] has no halves", glu(a, 1));
  SAYS("atan2: [2, 3, 4] and [5] differ at axis 2: 4 vs 5", atan2(a, v));
  SAYS("sum: axis 3 is not an axis of [2, 3, 4]", sum(a, {3}));
  SAYS("sum: an axis is named twice", sum(a, {0, 0}));
  SAYS("sum: axis -4 is not an axis of [2, 3, 4]", sum(a, {-4}));
  SAYS("mean: axis 5 is not an axis of [2, 3, 4]", mean(a, {5}));
  SAYS("amax: axis 0 of [0, 3] has no elements", amax(e, {0}));
  SAYS("amin: axis 0 of [0, 3] has no elements", amin(e));
  SAYS("argmax: axis 0 of [0, 3] has no elements", argmax(e, 0));
  SAYS("argmax: axis 7 is not an axis of [2, 3, 4]", argmax(a, 7));
  SAYS("prod: axis 3 is not an axis of [2, 3, 4]", prod(a, 3));
  SAYS("var: axis 9 is not an axis of [2, 3, 4]", var(a, {9}));
  SAYS("any: axis 4 is not an axis of [2, 3, 4]", any(a, {4}));
  SAYS("logsumexp: axis 3 is not an axis of [2, 3, 4]", logsumexp(a, {3}));
  SAYS("softmax: axis 1 is not an axis of []", softmax(z, 1));
  SAYS("softmax: axis 3 is not an axis of [2, 3, 4]", softmax(a, 3));
  SAYS("log_softmax: axis -4 is not an axis of [2, 3, 4]", log_softmax(a, -4));
  SAYS("cumsum: axis 3 is not an axis of [2, 3, 4]", cumsum(a, 3));
  SAYS("cummax: axis 9 is not an axis of [2, 3, 4]", cummax(a, 9));
  SAYS("norm: axis 3 is not an axis of [2, 3, 4]", norm(a, 2, {3}));
  SAYS("broadcast_to: [2, 3, 4] does not stretch to [3, 4]", broadcast_to(a, {3, 4}));
  SAYS("broadcast_to: [2, 3, 4] does not stretch to [2, 3, 5]", broadcast_to(a, {2, 3, 5}));
  SAYS("flatten: axis 2 comes after axis 1", flatten(a, 2, 1));
  SAYS("flatten: axis 5 is not an axis of [2, 3, 4]", flatten(a, 5));
  SAYS("concat: needs at least one tensor", concat({}, 0));
  SAYS("concat: [2, 3, 4] and [5] have different ranks", concat({a, v}, 0));
  SAYS("concat: [2, 3, 4] and [1, 4, 8, 8] have different ranks", concat({a, x}, 1));
  SAYS("concat: [2, 3, 4] and [1, 3, 4] differ at axis 0: 2 vs 1", concat({a, a.slice(0, 0, 1)}, 1));
  SAYS("stack: needs at least one tensor", stack({}, 0));
  SAYS("stack: [2, 3, 4] and [5] differ", stack({a, v}, 0));
  SAYS("stack: axis 5 is not an axis of [2, 3, 4]", stack({a, a}, 5));
  SAYS("split: the sizes add up to 2, the axis has 3", split(a, {1, 1}, 1));
  SAYS("split: [0 : +4 : step 1] leaves axis 1 of [2, 3, 4]", split(a, {4}, 1));
  SAYS("split: a size is -1", split(a, {-1, 4}, 1));
  SAYS("split: pieces of 0 need an extent known when the graph is built, not 3", split(a, 0, 1));
  SAYS("chunk: needs a known extent and at least one chunk", chunk(a, 0, 1));
  SAYS("chunk: needs a known extent and at least one chunk", chunk(s, 2, 0));
  SAYS("slice: axis 3 is not an axis of [2, 3, 4]", slice(a, 3, 0, 1));
  SAYS("slice: the step is zero", slice(a, 0, 0, 1, 0));
  SAYS("slice: a symbolic extent is sliced with Dims: Tensor::slice", slice(s, 0, 0, 1));
  SAYS("slice: [0 : +5 : step 1] leaves axis 0 of [2, 3, 4]", a.slice(0, 0, 5));
  SAYS("slice: the end 1 is before the beginning 2", a.slice(0, 2, 1));
  SAYS("pad: axis 5 is not an axis of [2, 3, 4]", pad(a, 5, 1, 1));
  SAYS("pad: reflecting 4 elements needs an extent above that, not 4", pad(a, 2, 4, 0, PadMode::Reflect));
  SAYS("pad: wrapping 5 elements around needs as many, not 4", pad(a, 2, 5, 0, PadMode::Circular));
  SAYS("pad: only constant padding may be negative", pad(a, 2, -1, 0, PadMode::Reflect));
  SAYS("pad: cutting (-3, -3) from 4 elements", pad(a, 2, -3, -3));
  SAYS("pad: axis 0 of [0, 3] has no elements to repeat", pad(e, 0, 1, 1, PadMode::Replicate));
  SAYS("roll: axis 3 is not an axis of [2, 3, 4]", roll(a, 1, 3));
  SAYS("repeat: 1 counts for the axes of [2, 3, 4]", repeat(a, {2}));
  SAYS("repeat: a count is negative", repeat(a, {1, 1, -1}));
  SAYS("repeat_interleave: a count of -1", repeat_interleave(a, -1, 0));
  SAYS("tril: needs a matrix, not [5]", tril(v));
  SAYS("movedim: axis 5 is not an axis of [2, 3, 4]", movedim(a, 0, 5));
  SAYS("unbind: needs an extent known when the graph is built", unbind(s));
  SAYS("diff: axis 4 is not an axis of [2, 3, 4]", diff(a, 1, 4));
  SAYS("diagonal: the two axes are one", diagonal(a, 0, 1, 1));
  SAYS("diagonal: axis 1 is not an axis of [5]", diagonal(v));
  SAYS("arange: the step is zero", arange(g, 0, 5, 0));
  SAYS("arange: a step of -1 does not lead from 0 to 5", arange(g, 0, 5, -1));
  SAYS("arange: -3 elements", arange(g, -3));
  SAYS("linspace: -2 steps", linspace(g, 0, 1, -2));
  SAYS("eye: -1 rows and -1 columns", eye(g, -1));
  SAYS("flip: axis 4 is not an axis of [2, 3, 4]", flip(a, {4}));
  SAYS("unfold: a window of 9 does not fit axis 2 of [2, 3, 4]", a.unfold(2, 9));
  SAYS("unfold: stride 0 and dilation 1 must be positive", a.unfold(2, 2, 0));
  SAYS("reshape: [2, 3, 4] has 24 elements, [5, 5] has 25", a.reshape({5, 5}));
  SAYS("permute: the axes are not an order of all axes of [2, 3, 4]", a.permute({0, 0, 1}));
  SAYS("permute: the axes are not an order of all axes of [2, 3, 4]", a.permute({0, 1}));
  SAYS("expand: [2, 3, 4] does not stretch to [4, 3, 4]", a.expand({4, 3, 4}));
  SAYS("squeeze: axis 0 of [2, 3, 4] is not 1", a.squeeze(0));
  SAYS("unsqueeze: axis 7 is not an axis of [2, 3, 4]", a.unsqueeze(7));
  SAYS("transpose: axis 3 is not an axis of [2, 3, 4]", a.transpose(0, 3));
  SAYS("gather: [2, 3, 4] and [3] have different ranks", gather(a, 0, i));
  SAYS("gather: axis 3 is not an axis of [2, 3, 4]", gather(a, 3, a));
  SAYS("gather: the index must be an integer", gather(v, 0, v));
  SAYS("gather: [5] and [2, 3] have different ranks", gather(v, 0, b));
  SAYS("gather: an index [2, 5, 4] leaves [2, 3, 4] at axis 1", gather(a, 0, g.input("gi", {2, 5, 4}, DType::I64)));
  SAYS("index_select: the index has rank 1, not [2, 3, 4]", index_select(a, 0, a));
  SAYS("index_select: the index must be an integer", index_select(a, 0, v));
  SAYS("embedding: the weight has rank 2, not [2, 3, 4]", embedding(i, a));
  SAYS("embedding: ids come first, and are integers, not f32 [5]", embedding(v, big));
  SAYS("one_hot: the classes are integers, not f32", one_hot(v, 3));
  SAYS("one_hot: -3 classes", one_hot(i, -3));
  SAYS("scatter: [2, 3, 4], index [3] and source [5] have different ranks", scatter(a, 0, i, v));
  SAYS("scatter: the source is f64, the tensor f32; convert one", scatter(v, 0, i, d));
  SAYS("scatter: [5], index [3] and source [] have different ranks", scatter(v, 0, i, z));
  SAYS("scatter: the index must be an integer", scatter(v, 0, v, v));
  SAYS("scatter: a source [2] is smaller than its index [3]", scatter(v, 0, i, v.slice(0, 0, 2)));
  SAYS("scatter_add: axis 1 is not an axis of [5]", scatter_add(v, 1, i, v));
  SAYS("index_add: a source [2, 3, 4] does not fit 3 places of axis 0 of [2, 3, 4]", index_add(a, 0, i, a));
  SAYS("argsort: axis 3 is not an axis of [2, 3, 4]", argsort(a, 3));
  SAYS("sort: axis -2 is not an axis of []", sort(z, -2));
  SAYS("topk: k is 6, axis 0 of [5] has fewer elements", topk(v, 6));
  SAYS("topk: k is -1", topk(v, -1));
  SAYS("einsum: 'ij,jk->ik': 'j' is both 784 and 512", einsum("ij,jk->ik", {big, bw}));
  SAYS("einsum: 'ij': 'ij' does not name the axes of [2, 3, 4]", einsum("ij", {a}));
  SAYS("einsum: 'i1': letters, commas, one ... an operand and an arrow are understood, not '1'", einsum("i1", {s}));
  SAYS("einsum: 'ij,jk': names 2 operands, 1 were given", einsum("ij,jk", {s}));
  SAYS("einsum: 'ij->ik': 'k' of the result is in no operand", einsum("ij->ik", {s}));
  SAYS("einsum: 'ij->ii': 'i' is twice in the result", einsum("ij->ii", {s}));
  SAYS("einsum: needs at least one tensor", einsum("", {}));
  SAYS("einsum: '......': letters, commas, one ... an operand and an arrow are understood, not '.'", einsum("......", {a}));
  SAYS("einsum: needs at least one tensor", einsum("ij->", {}));
  SAYS("einsum: 'i.j': letters, commas, one ... an operand and an arrow are understood, not '.'", einsum("i.j", {s}));
  SAYS("outer: [2, 3, 4] and [5]: both have rank 1", outer(a, v));
  SAYS("trace: needs a matrix, not [2, 3, 4]", trace(a));
  SAYS("conv: needs [batch, channels, 1 to 3 spatial axes], not [5]", conv(v, v));
  SAYS("conv: a weight [5] does not fit [1, 4, 8, 8]", conv(x, v));
  SAYS("conv: a weight [2, 3, 4] does not fit [1, 4, 8, 8]", conv(x, a));
  SAYS(
      "conv: a weight [16, 3, 2, 2] takes 3 channels, and [1, 8, 8, 3] has 8; channels come second, [N, C, H, W]: "
      "permute the axes to 0, 3, 1, 2",
      conv(g.input("nhwc", {1, 8, 8, 3}), g.input("w16", {16, 3, 2, 2})));
  SAYS("conv: a weight [3, 5, 2, 2] takes 5 channels, and [1, 4, 8, 8] has 4", conv(x, g.input("w1", {3, 5, 2, 2})));
  SAYS("conv: filter [3, 4, 9, 9] is larger than the padded image [1, 4, 8, 8]", conv(x, g.input("w2", {3, 4, 9, 9})));
  SAYS("conv: a weight [3, 2, 2, 2] in 2 groups: they do not divide its 3 channels out", conv(x, g.input("w3", {3, 2, 2, 2}), {.groups = 2}));
  SAYS("conv: a weight [4, 3, 2, 2] in 2 groups takes 6 channels, and [1, 4, 8, 8] has 4", conv(x, g.input("w3b", {4, 3, 2, 2}), {.groups = 2}));
  SAYS("conv: stride and dilation are at least 1, padding at least 0", conv(x, g.input("w4", {4, 4, 2, 2}), {.stride = {0}}));
  SAYS("conv: stride has 3 numbers for 2 spatial axes", conv(x, g.input("w4b", {4, 4, 2, 2}), {.stride = {1, 2, 3}}));
  SAYS("conv: stride and dilation are at least 1, padding at least 0", conv(x, g.input("w5", {4, 4, 2, 2}), {.padding = {-1}}));
  SAYS("conv: stride and dilation are at least 1, padding at least 0", conv(x, g.input("w6", {4, 4, 2, 2}), {.dilation = {0}}));
  SAYS("conv: a bias [5] does not fit 4 output channels", conv(x, g.input("w7", {4, 4, 2, 2}), v));
  SAYS("conv: x is f32, the weight f64; convert one", conv(x, g.input("w8", {4, 4, 2, 2}, DType::F64)));
  SAYS("conv: 0 groups: there is at least one", conv(x, g.input("w9", {4, 4, 2, 2}), {.groups = 0}));
  SAYS("conv_transpose: a weight [3, 5, 2, 2] takes 3 channels in, and [1, 4, 8, 8] has 4", conv_transpose(x, g.input("t1", {3, 5, 2, 2})));
  SAYS("conv_transpose: a weight [3, 4, 2, 2] takes 3 channels in, and [1, 4, 8, 8] has 4: its first axis is the channels in, not out",
       conv_transpose(x, g.input("t1b", {3, 4, 2, 2})));
  SAYS("conv_transpose: a weight [5] does not fit [1, 4, 8, 8]: it is [channels in, channels out / groups, an extent for each spatial axis]",
       conv_transpose(x, v));
  SAYS("conv_transpose: 3 groups do not divide [1, 4, 8, 8]", conv_transpose(x, g.input("t2", {4, 5, 2, 2}), {.groups = 3}));
  SAYS("conv_transpose: output_padding is smaller than the stride or the dilation", conv_transpose(x, g.input("t3", {4, 5, 2, 2}), {.output_padding = {1}}));
  SAYS("conv_transpose: stride and dilation are at least 1, padding at least 0", conv_transpose(x, g.input("t4", {4, 5, 2, 2}), {.stride = {0}}));
  SAYS("conv_transpose: a padding of 9 leaves nothing of [1, 4, 8, 8]", conv_transpose(x, g.input("t5", {4, 5, 2, 2}), {.padding = {9}}));
  SAYS("max_pool: needs [batch, channels, 1 to 3 spatial axes], not [5]", max_pool(v, {2}));
  SAYS("max_pool: a window of 9 is larger than the padded image [1, 4, 8, 8]", max_pool(x, {9}));
  SAYS("max_pool: kernel has 3 numbers for 2 spatial axes", max_pool(x, {2, 2, 2}));
  SAYS("max_pool: kernel, stride and dilation are at least 1, padding at least 0", max_pool(x, {0}));
  SAYS("max_pool: kernel, stride and dilation are at least 1, padding at least 0", max_pool(x, {2}, {0}));
  SAYS("max_pool: a padding of 2 is more than half of the kernel's 2", max_pool(x, {2}, {1}, {2}));
  SAYS("avg_pool: kernel, stride and dilation are at least 1, padding at least 0", avg_pool(x, {3}, {}, {-1}));
  SAYS("adaptive_avg_pool: needs known extents and outputs of 1 or more", adaptive_avg_pool(x, {0}));
  SAYS("adaptive_avg_pool: output has 2 numbers for 1 spatial axes", adaptive_avg_pool(a, {1, 2}));
  SAYS("interpolate: [1, 4, 8, 8] to a size of 0", interpolate(x, {0, 3}, Interpolation::Nearest));
  SAYS("interpolate: needs [batch, channels, 1 to 3 spatial axes], not [5]", interpolate(v, {3}, Interpolation::Nearest));
  SAYS("pixel_shuffle: 9 does not divide the channels of [1, 4, 8, 8]", pixel_shuffle(x, 3));
  SAYS("pixel_shuffle: a factor of 2 for [5]", pixel_shuffle(v, 2));
  SAYS("pixel_unshuffle: 3 does not divide [1, 4, 8, 8]", pixel_unshuffle(x, 3));
  SAYS("interpolate: between i64 there is nothing; convert to a floating type", interpolate(g.input("xi", {1, 1, 4}, DType::I64), {3}, Interpolation::Bilinear));
  SAYS("layer_norm: [2, 3, 4] does not end with the normalized shape [5]", layer_norm(a, {5}));
  SAYS("layer_norm: [2, 3, 4] does not end with the normalized shape []", layer_norm(a, Shape{}));
  SAYS("layer_norm: a weight or bias [5] does not fit the normalized shape [4]", layer_norm(a, {4}, v, v));
  SAYS("rms_norm: [] does not end with the normalized shape [1]", rms_norm(z, {1}));
  SAYS("rms_norm: a weight or bias [5] does not fit the normalized shape [4]", rms_norm(a, {4}, v));
  SAYS("group_norm: 3 groups do not divide 4 channels", group_norm(x, 3));
  SAYS("group_norm: needs [batch, channels, ...], not [5]", group_norm(v, 1));
  SAYS("group_norm: statistics, a weight or a bias of [5] do not fit the channels of [1, 4, 8, 8]", group_norm(x, 2, v, v));
  SAYS("instance_norm: needs [batch, channels, ...], not [5]", instance_norm(v));
  SAYS("batch_norm: statistics, a weight or a bias of [5] do not fit the channels of [1, 4, 8, 8]", batch_norm(x, v, v, v, v));
  SAYS("normalize: axis 1 is not an axis of [5]", normalize(v));
  SAYS("cosine_similarity: [2, 3, 4] and [5] differ at axis 2: 4 vs 5", cosine_similarity(a, v));
  SAYS("scaled_dot_product_attention: q [5], k [5] and v [5] have one rank, at least 2", scaled_dot_product_attention(v, v, v));
  SAYS("scaled_dot_product_attention: q [2, 3, 4], k [2, 3, 4] and v [5] have one rank, at least 2", scaled_dot_product_attention(a, a, v));
  SAYS("scaled_dot_product_attention: q [2, 3, 4], k [1, 4, 8, 8] and v [1, 4, 8, 8] have one rank, at least 2", scaled_dot_product_attention(a, x, x));
  SAYS("scaled_dot_product_attention: 3 key heads do not divide 2 query heads", scaled_dot_product_attention(a, g.input("k3", {3, 3, 4}), a));
  SAYS("scaled_dot_product_attention: q [2, 3, 4], k [2, 3, 5], v [2, 3, 4]: head sizes differ: 4 vs 5", scaled_dot_product_attention(a, g.input("k4", {2, 3, 5}), a));
  SAYS("scaled_dot_product_attention: q [2, 3, 4], k [2, 3, 4], v [2, 4, 4]: keys and values differ: 3 vs 4", scaled_dot_product_attention(a, a, g.input("v4", {2, 4, 4})));
  SAYS("scaled_dot_product_attention: [2, 3, 3] and [5] differ at axis 2: 3 vs 5", scaled_dot_product_attention(a, a, a, v));
  SAYS("rope: angles of [2, 3, 4] do not fit [2, 3, 4]", rope(a, a, a, true));
  SAYS("rope: angles of [2, 3, 4] do not fit [3, 5]", rope(g.input("r", {3, 5}), a, a, true));
  SAYS("rope: cosines [] and sines [] do not fit []", rope(z, z, z, false));
  SAYS("rope: cosines [3, 2] and sines [5] do not fit [2, 3, 4]", rope(a, g.input("c", {3, 2}), v, false));
  // operands of two graphs, and of no graph
  SAYS("operator+: the operands belong to different graphs", v + o);
  SAYS("matmul: the operands belong to different graphs", matmul(v, o));
  SAYS("concat: the operands belong to different graphs", concat({v, o}, 0));
  SAYS("linear: [32, 784] with a weight [512, 10]: the last axis must be 10", linear(big, bw));
  SAYS("sum: this Tensor was never given a value", sum(Tensor()));
  SAYS("matmul: this Tensor was never given a value", matmul(Tensor(), a));
}
