// The graphs of the cases in tests/goldens/ops.txt. A case whose name ends in an element type or in "odd" (NaN,
// infinities, zeros of both signs) and that has no line of its own uses the builder of the name before that suffix.
#pragma once

#include <string>
#include <vector>

#include "lightcone/ops/ops.h"

namespace lc::cases {

using T = const std::vector<Tensor>&;
struct Case {
  const char* name;
  std::vector<Tensor> (*build)(T);
};

// clang-format off
#define U(f) {#f, [](T t) { return std::vector{f(t[0])}; }}
#define S(n, e) {n, [](T t) { const auto s = e; return std::vector<Tensor>{s.values, s.indices}; }}
#define I(n, ...)                                                                                                        \
  B("interpolate nearest " n, interpolate(t[0], __VA_ARGS__, Interpolation::Nearest)),                                    \
      B("interpolate bilinear " n, interpolate(t[0], __VA_ARGS__, Interpolation::Bilinear)),                              \
      B("interpolate bilinear corners " n, interpolate(t[0], __VA_ARGS__, Interpolation::Bilinear, true))
#define B(n, ...) {n, [](T t) { return std::vector<Tensor>{__VA_ARGS__}; }}
inline const std::vector<Case> kCases{
      U(abs), U(sign), U(square), U(exp), U(exp2), U(expm1), U(log), U(log2), U(log1p), U(sqrt), U(rsqrt), U(reciprocal), U(tanh), U(erf), U(floor), U(ceil),
      U(trunc), U(round), U(isnan), U(isinf), U(isfinite), U(logical_not), U(sigmoid), U(sin), U(cos), U(tan), U(logsigmoid), U(relu), U(relu6), U(selu), U(gelu),
      U(silu), U(mish), U(softplus), U(softsign), U(hardtanh), U(hardsigmoid), U(hardswish), U(leaky_relu), U(elu), U(gelu_tanh),
      B("elu alpha", elu(t[0], 0.5)), B("celu", celu(t[0], 1.5)), B("celu f64", celu(t[0])), B("softplus beta", softplus(t[0], 2, 5)), B("neg", -t[0]),
      B("abs i64", abs(t[0])), B("sign i64", sign(t[0])), B("square i64", square(t[0])), B("exp i64", exp(t[0])), B("sqrt i64", sqrt(t[0])), B("sin i64", sin(t[0])), B("floor i64", floor(t[0])),
      B("cast to i64", to(t[0], DType::I64)), B("cast to bool", to(t[0], DType::Bool)),
      B("add", t[0] + t[1]), B("sub", t[0] - t[1]), B("mul", t[0] * t[1]), B("div", t[0] / t[1]), B("remainder", t[0] % t[1]), B("fmod", fmod(t[0], t[1])), B("pow", pow(t[0], t[1])),
      B("maximum", maximum(t[0], t[1])), B("minimum", minimum(t[0], t[1])), B("lt", t[0] < t[1]), B("gt", t[0] > t[1]), B("le", t[0] <= t[1]), B("ge", t[0] >= t[1]), B("eq", eq(t[0], t[1])), B("ne", ne(t[0], t[1])),
      B("eq odd", eq(t[0], t[1])),
      B("add i64", t[0] + t[1]), B("mul i64", t[0] * t[1]), B("div i64", t[0] / t[1]), B("remainder i64", t[0] % t[1]), B("fmod i64", fmod(t[0], t[1])), B("maximum i64", maximum(t[0], t[1])), B("lt i64", t[0] < t[1]), B("eq i64", eq(t[0], t[1])),
      B("floor_divide i64", floor_divide(t[0], t[1])), B("floor_divide", floor_divide(t[0], t[1])), B("add i64 f32", t[0] + t[1]), B("add f32 f64", t[0] + t[1]), B("add bool i32", t[0] + t[1]),
      B("add scalar", t[0] + 2.5), B("scalar sub", 2.5 - t[0]), B("scalar div", 2.5 / t[0]), B("pow scalar", pow(t[0], 3)), B("i64 div scalar", t[0] / 2.0), B("clamp", clamp(t[0], -1, 1.5)),
      B("logical_and", logical_and(t[0], t[1])), B("logical_or", logical_or(t[0], t[1])), B("logical_xor", logical_xor(t[0], t[1])), B("where", where(t[0], t[1], t[2])), B("where scalar", where(t[0], t[1], -kInf)), B("masked_fill", masked_fill(t[0], t[1], 5)),
      B("sum all", sum(t[0])), B("sum 1", sum(t[0], {1})), B("sum 0 2 keep", sum(t[0], {0, 2}, true)), B("sum bool", sum(t[0], {0})), B("sum empty", sum(t[0], {0})), B("mean -1", mean(t[0], {-1})), B("amax 1", amax(t[0], {1})), B("amin 0 1", amin(t[0], {0, 1})), B("amax nan", amax(t[0], {-1})),
      B("var 1", var(t[0], {1})), B("var 0 correction", var(t[0], {0, 2}, 0, true)), B("std all", stddev(t[0])), B("prod 1", prod(t[0], 1)), B("logsumexp", logsumexp(t[0], {-1})), B("argmax ties", argmax(t[0], 1)), B("argmin", argmin(t[0], 0)), B("any", any(t[0], {1})), B("all", all(t[0], {1})),
      B("softmax", softmax(t[0], 1)), B("log_softmax", log_softmax(t[0], -1)), B("cumsum", cumsum(t[0], 1)), B("cumprod", cumprod(t[0], -1)), B("cummax", cummax(t[0], 0).values),
      B("flatten", flatten(t[0], 1)), B("concat", concat({t[0], t[1]}, 1)), B("stack", stack({t[0], t[1]}, 1)), {"split", [](T t) { return split(t[0], {1, 2}, 1); }}, {"chunk", [](T t) { return chunk(t[0], 3, 2); }},
      B("slice", slice(t[0], 1, 1, 1000)), B("slice step", slice(t[0], 2, 0, 4, 2)), B("slice negative", slice(t[0], -1, -3, -1)), B("flip", t[0].flip(2)), B("pad", pad(t[0], 2, 1, 2, PadMode::Constant, 1.5)), B("pad reflect", pad(t[0], 2, 2, 3, PadMode::Reflect)), B("pad replicate", pad(t[0], 2, 2, 3, PadMode::Replicate)),
      B("roll", roll(t[0], 3, 2)), B("roll negative", roll(t[0], -1, 1)), B("repeat", repeat(t[0], {2, 1, 3})), B("repeat_interleave", repeat_interleave(t[0], 2, 1)), B("tril", tril(t[0], 1)), B("triu", triu(t[0], -1)), B("unfold", t[0].unfold(2, 3)),
      B("gather", gather(t[0], 1, t[1])), B("index_select", index_select(t[0], 2, t[1])), B("embedding", embedding(t[1], t[0])), B("one_hot", one_hot(t[0], 4)), B("scatter", scatter(t[0], 1, t[1], t[2])), B("scatter_add", scatter_add(t[0], 0, t[1], t[2])),
      {"sort", [](T t) { const Sorted s = sort(t[0], 1); return std::vector{s.values, s.indices}; }}, {"sort descending", [](T t) { const Sorted s = sort(t[0], 1, true); return std::vector{s.values, s.indices}; }}, B("argsort", argsort(t[0], 0)), {"topk", [](T t) { const Sorted s = topk(t[0], 2, 1); return std::vector{s.values, s.indices}; }},
      B("linear", linear(t[0], t[1], t[2])), B("conv1d", conv(t[0], t[1], t[2], {.stride = {2}, .padding = {1}})), B("conv2d", conv(t[0], t[1])), B("conv2d all", conv(t[0], t[1], t[2], {.stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}, .groups = 2})), B("conv2d depthwise", conv(t[0], t[1], {.padding = {1}, .groups = 3})), B("conv3d", conv(t[0], t[1], {.padding = {1}})),
      B("conv_transpose1d", conv_transpose(t[0], t[1], {.stride = {2}, .padding = {1}, .output_padding = {1}})), B("conv_transpose2d", conv_transpose(t[0], t[1], t[2], {.stride = {2}, .padding = {1}})), B("conv_transpose2d groups", conv_transpose(t[0], t[1], {.stride = {2}, .groups = 2})),
      B("max_pool2d", max_pool(t[0], {3}, {2}, {1})), B("avg_pool2d", avg_pool(t[0], {2})), B("avg_pool2d padding", avg_pool(t[0], {3}, {2}, {1})), B("max_pool1d", max_pool(t[0], {2})), B("adaptive_avg_pool2d", adaptive_avg_pool(t[0], {3, 2})), B("adaptive_max_pool2d", adaptive_max_pool(t[0], {2, 3})),
      B("interpolate nearest", interpolate(t[0], {6, 5}, Interpolation::Nearest)), B("interpolate bilinear", interpolate(t[0], {6, 5}, Interpolation::Bilinear)), B("interpolate bilinear corners", interpolate(t[0], {6, 5}, Interpolation::Bilinear, true)),
      B("layer_norm", layer_norm(t[0], {t[0].extent(-1)})), B("layer_norm 2", layer_norm(t[0], {t[0].extent(-2), t[0].extent(-1)})), B("rms_norm", rms_norm(t[0], {t[0].extent(-1)}, {}, 1e-5)), B("group_norm", group_norm(t[0], 2)), B("batch_norm", batch_norm(t[0], t[1], t[2], t[3], t[4])),
      B("attention", scaled_dot_product_attention(t[0], t[1], t[2])), B("attention causal grouped", scaled_dot_product_attention(t[0], t[1], t[2], t[3])), B("rope", rope(t[0], t[1], t[2], false)), B("rope interleaved", rope(t[0], t[1], t[2], true)),

      // arithmetic
      B("u8 sub", t[0] - t[1]), B("u8 sub number", t[0] - 2), B("u8 number sub", 2 - t[0]), B("i32 mul wraps", t[0] * t[0]), B("mul broadcast", t[0] * t[1]), B("add empty", t[0] + t[1]), B("add 0-d", t[0] + t[1]),
      B("lt mixed", t[0] < t[1]), B("eq mixed", eq(t[0], t[1])), B("pow i64 2", pow(t[0], 2)), B("pow bool 2", pow(t[0], 2)), B("pow i64 number 0.5", pow(t[0], 0.5)), B("square bool", t[0] * t[0]),
      B("pow number 0", pow(t[0], 0)), B("pow number 0.5", pow(t[0], 0.5)), B("pow number 2", pow(t[0], 2)), B("pow number -1", pow(t[0], -1)), B("pow number 1", pow(t[0], 1)), B("pow number -0.5", pow(t[0], -0.5)), B("pow number 2.5", pow(t[0], 2.5)),
      B("remainder number", t[0] % 3), B("remainder number i64", t[0] % -3), B("remainder by zero", t[0] % 0.0), B("lt number", t[0] < 0.5), B("gt number", t[0] > 0.5), B("le number", t[0] <= 0.5), B("ge number", t[0] >= 0.5), B("eq number", eq(t[0], 0.5)), B("le number i64", t[0] <= 2.5),
      B("number mul", 2.5 * t[0]), B("number add i64", 2 + t[0]), B("clamp low", clamp(t[0], -1, kInf)), B("clamp high", clip(t[0], -kInf, 1.5)), B("clamp i64", clamp(t[0], -2, 6)), B("clamp i64 float", clamp(t[0], -1.5, 1.5)), B("clamp crossed", clamp(t[0], 2, 1)),
      B("where i64", where(t[0], t[1], t[2])), B("where bool", where(t[0], t[1], t[2])), B("where mixed", where(t[0], t[1], t[2])), B("masked_fill inf", masked_fill(t[0], t[1], -kInf)),
      // reductions
      B("sum -1 -3", sum(t[0], {-1, -3})), B("sum i32", sum(t[0], {0})), B("sum u8", sum(t[0])), B("sum odd", sum(t[0], {1})), B("sum 0-d", sum(t[0])), B("sum f64", sum(t[0], {1})),
      B("mean all", mean(t[0])), B("mean 0 1 keep", mean(t[0], {0, 1}, true)), B("mean empty", mean(t[0], {0})),
      B("amax all", amax(t[0])), B("amax i64", amax(t[0], {0})), B("amax u8", amax(t[0], {0})), B("amax bool", amax(t[0], {0})), B("amin keep", amin(t[0], {-1}, true)), B("amin nan", amin(t[0], {-1})), B("amin i64", amin(t[0], {0})), B("amin i32", amin(t[0], {0})), B("amin u8", amin(t[0], {0})), B("amin bool", amin(t[0], {0})),
      B("var one", var(t[0], {0})), B("var far", var(t[0], {0})), B("var all keep", var(t[0], {}, 1, true)), B("std 1 keep", stddev(t[0], {1}, 1, true)), B("std population", stddev(t[0], {0, 2}, 0)),
      B("prod keep", prod(t[0], -1, true)), B("prod i64", prod(t[0], 0)), B("prod bool", prod(t[0], 0)), B("prod i32", prod(t[0], 0)), B("prod empty", prod(t[0], 0)), B("prod odd", prod(t[0], 1)),
      B("logsumexp all", logsumexp(t[0])), B("logsumexp keep", logsumexp(t[0], {0, 2}, true)), B("logsumexp odd", logsumexp(t[0], {1})),
      B("argmax keep", argmax(t[0], 0, true)), B("argmax i64", argmax(t[0], 1)), B("argmax odd", argmax(t[0], 1)), B("argmin odd", argmin(t[0], 1)), B("argmin i64", argmin(t[0], 1)), B("argmin u8", argmin(t[0], 1)),
      B("any all axes", any(t[0])), B("any empty", any(t[0], {0})), B("all empty", all(t[0], {0})), B("all f32 keep", all(t[0], {0}, true)), B("any i64", any(t[0], {1})),
      B("softmax 0", softmax(t[0], 0)), B("softmax one", softmax(t[0], 1)), B("softmax empty", softmax(t[0], 1)), B("softmax f64", softmax(t[0], -1)), B("softmax bf16", softmax(t[0], -1)), B("log_softmax odd", log_softmax(t[0], 1)), B("log_softmax f64", log_softmax(t[0], 0)),
      B("cumsum 0", cumsum(t[0], 0)), B("cumsum long", cumsum(t[0], 0)), B("cumsum i64", cumsum(t[0], 0)), B("cumsum bool", cumsum(t[0], 0)), B("cumsum odd", cumsum(t[0], 0)), B("cumsum one", cumsum(t[0], 1)), B("cumsum empty", cumsum(t[0], 0)),
      B("cumprod i64", cumprod(t[0], 0)), B("cumprod odd", cumprod(t[0], 0)), B("cummax odd", cummax(t[0], 0).values), B("cummax i64", cummax(t[0], 1).values),
      // shapes
      B("concat three", concat(t, 0)), B("concat types", concat(t, -1)), B("concat odd", concat(t, 0)), B("concat bool", concat(t, 0)), B("concat one", concat(t, 0)), B("stack 0", stack(t, 0)), B("stack last", stack(t, -1)),
      {"split 0", [](T t) { return split(t[0], {3, 0, 2}, 0); }}, {"chunk uneven", [](T t) { return chunk(t[0], 4, 0); }}, {"chunk even", [](T t) { return chunk(t[0], 2, -1); }},
      B("slice 0", slice(t[0], 0, 0, 7)), B("slice 1", slice(t[0], 0, 2, 5)), B("slice 2", slice(t[0], 0, -3, 7)), B("slice 3", slice(t[0], 0, 0, -5)), B("slice 4", slice(t[0], 0, -100, 100)), B("slice 5", slice(t[0], 0, 5, 2)), B("slice 6", slice(t[0], 0, 1, 6, 2)), B("slice 7", slice(t[0], 0, 0, 7, 3)), B("slice 8", slice(t[0], 0, 6, 7, 5)), B("slice 9", slice(t[0], 0, 9, 12)),
      B("slice back 0", slice(t[0], 0, 6, -8, -1)), B("slice back 1", slice(t[0], 0, 5, 1, -2)), B("slice back 2", slice(t[0], 0, -1, 2, -3)), B("slice back 3", slice(t[0], 0, 100, -100, -4)), B("slice back 4", slice(t[0], 0, 1, 5, -1)), B("slice back 5", slice(t[0], 0, 3, 2, -1)),
      B("flip odd", t[0].flip(0)), B("broadcast_to", broadcast_to(t[0], {2, 3, 4})), B("flatten all", flatten(t[0])), B("flatten 0 1", flatten(t[0], 0, 1)), B("flatten -2", flatten(t[0], -2)),
      B("pad i64", pad(t[0], 1, 2, 1, PadMode::Constant, -7)), B("pad bool", pad(t[0], 1, 2, 1, PadMode::Constant, 1)), B("pad inf", pad(t[0], 0, 1, 1, PadMode::Constant, -kInf)), B("pad zero", pad(t[0], 1, 2, 1)), B("pad reflect left", pad(t[0], -1, 3, 0, PadMode::Reflect)), B("pad replicate odd", pad(t[0], 1, 4, 5, PadMode::Replicate)), B("pad replicate one", pad(t[0], 1, 2, 3, PadMode::Replicate)),
      B("roll far", roll(t[0], -9, 0)), B("repeat zero", repeat(t[0], {2, 0})), B("repeat i64", repeat(t[0], {3})), B("repeat_interleave last", repeat_interleave(t[0], 3, -1)),
      B("tril -2", tril(t[0], -2)), B("tril 0", tril(t[0])), B("tril 3", tril(t[0], 3)), B("triu -2", triu(t[0], -2)), B("triu 0", triu(t[0])), B("triu 3", triu(t[0], 3)), B("tril odd", tril(t[0])), B("triu bool", triu(t[0], 1)), B("unfold stride", t[0].unfold(0, 3, 2)),
      // indexing
      B("gather 0", gather(t[0], 0, t[1])), B("gather small", gather(t[0], -1, t[1])), B("gather odd", gather(t[0], 0, t[1])), B("gather bool", gather(t[0], 0, t[1])), B("index_select 0", index_select(t[0], 0, t[1])), B("index_select empty", index_select(t[0], 0, t[1])),
      B("embedding one", embedding(t[1], t[0])), B("embedding i32", embedding(t[1], t[0])), B("one_hot 2", one_hot(t[0], 3)),
      B("scatter 0", scatter(t[0], 0, t[1], t[2])), B("scatter small", scatter(t[0], 1, t[1], t[2])), B("scatter i64", scatter(t[0], -1, t[1], t[2])), B("scatter_add duplicates", scatter_add(t[0], -1, t[1], t[2])), B("scatter_add small", scatter_add(t[0], 0, t[1], t[2])),
      S("sort stable", sort(t[0], 1)), S("sort stable descending", sort(t[0], 1, true)), S("sort i64", sort(t[0], 0)), S("sort long", sort(t[0], 0)), S("sort empty", sort(t[0], 1)), B("argsort descending", argsort(t[0], -1, true)), S("topk all", topk(t[0], 4, 0)),
      // linear algebra
      B("linear vector", linear(t[0], t[1], t[2])), B("linear plain", linear(t[0], t[1])),
      // convolution and pooling
      B("conv1d plain", conv(t[0], t[1])), B("conv1d dilated groups", conv(t[0], t[1], t[2], {.padding = {2}, .dilation = {2}, .groups = 2})), B("conv1d f64", conv(t[0], t[1])), B("conv2d 1x1", conv(t[0], t[1])), B("conv2d stride", conv(t[0], t[1], {.stride = {3}})), B("conv2d big", conv(t[0], t[1], {.padding = {1}})), B("conv2d multiplier", conv(t[0], t[1], {.groups = 2})), B("conv2d no batch", conv(t[0], t[1])),
      B("conv3d all", conv(t[0], t[1], t[2], {.stride = {1, 2, 1}, .padding = {0, 1, 1}, .dilation = {1, 1, 2}, .groups = 2})),
      B("conv_transpose1d plain", conv_transpose(t[0], t[1])), B("conv_transpose1d padded", conv_transpose(t[0], t[1], {.padding = {3}})), B("conv_transpose2d all", conv_transpose(t[0], t[1], t[2], {.stride = {2, 3}, .padding = {1, 2}, .dilation = {2, 1}, .groups = 2, .output_padding = {1, 0}})), B("conv_transpose3d", conv_transpose(t[0], t[1], {.stride = {2}, .padding = {1}})),
      B("max_pool2d tuple", max_pool(t[0], {3, 2}, {1, 2}, {1, 0})), B("max_pool2d odd", max_pool(t[0], {2}, {1}, {1})), B("max_pool3d", max_pool(t[0], {2})), B("avg_pool1d", avg_pool(t[0], {3}, {1}, {1})), B("avg_pool2d tuple", avg_pool(t[0], {3, 2}, {1, 2}, {1, 0})), B("avg_pool3d", avg_pool(t[0], {2})),
      B("adaptive_avg_pool1d", adaptive_avg_pool(t[0], {3})), B("adaptive_avg_pool2d grow", adaptive_avg_pool(t[0], {5, 1})), B("adaptive_avg_pool3d", adaptive_avg_pool(t[0], {2, 1, 3})), B("adaptive_max_pool1d", adaptive_max_pool(t[0], {4})), B("adaptive_max_pool2d odd", adaptive_max_pool(t[0], {2})),
      I("1d", {7}), I("down", {2, 3}), I("3d", {3, 5, 2}), I("one", {1}), I("same", {3, 4}),
      // norms and attention
      B("layer_norm far", layer_norm(t[0], {t[0].extent(-1)})), B("layer_norm constant", layer_norm(t[0], {t[0].extent(-1)})), B("layer_norm vector", layer_norm(t[0], {t[0].extent(-1)})), B("group_norm 4d", group_norm(t[0], 3)), B("group_norm one", group_norm(t[0], 1)),
      B("batch_norm 2d", batch_norm(t[0], t[1], t[2], t[3], t[4])), B("batch_norm 4d", batch_norm(t[0], t[1], t[2], t[3], t[4], false, 0.1, 1e-3)),
      B("attention scale", scaled_dot_product_attention(t[0], t[1], t[2], {}, 0, false, 0.3)), B("attention multi-query", scaled_dot_product_attention(t[0], t[1], t[2])), B("attention mask heads", scaled_dot_product_attention(t[0], t[1], t[2], t[3])), B("rope batch", rope(t[0], t[1], t[2], false)),
      // the rest of the vocabulary
      S("max", max(t[0], 1)), S("max keep", max(t[0], -1, true)), S("min", min(t[0], 1)),
      U(asin), U(acos), U(atan), U(sinh), U(cosh), U(asinh), U(acosh), U(atanh), U(log10), U(erfc), U(frac), U(logit), U(nan_to_num), B("nan_to_num 7", nan_to_num(t[0], 7)),
      B("atan2", atan2(t[0], t[1])), B("hypot", hypot(t[0], t[1])), B("logaddexp", logaddexp(t[0], t[1])), B("xlogy", xlogy(t[0], t[1])), B("lerp", lerp(t[0], t[1], 0.25)), B("lerp ends", lerp(t[0], t[1], 1)),
      U(hardshrink), U(softshrink), U(tanhshrink), B("threshold", threshold(t[0], 0.5, 20)), B("prelu", prelu(t[0], t[1])), B("prelu one", prelu(t[0], t[1])), U(glu), B("glu 0", glu(t[0], 0)),
      B("prod all", prod(t[0])), B("norm 0", norm(t[0], 0, {0, 2})), B("norm 1", norm(t[0], 1, {0, 2})), B("norm 2", norm(t[0], 2, {0, 2})), B("norm 3", norm(t[0], 3, {0, 2})), B("norm 0.5", norm(t[0], 0.5, {0, 2})), B("norm inf", norm(t[0], kInf, {0, 2})), B("norm -inf", norm(t[0], -kInf, {0, 2})), B("norm all keep", norm(t[0], 2, {}, true)),
      B("count_nonzero", count_nonzero(t[0], {0})), B("argmax all", argmax(t[0])), B("argmin all", argmin(t[0])), B("cummin", cummin(t[0], 1).values), B("cummin odd", cummin(t[0], 0).values), B("cummin i64", cummin(t[0], 0).values), B("cummin u8", cummin(t[0], 0).values), B("logcumsumexp", logcumsumexp(t[0], 1)), B("logcumsumexp odd", logcumsumexp(t[0], 0)), B("softmin", softmin(t[0], 1)),
      B("flip two", flip(t[0], {0, -1})), B("movedim", movedim(t[0], 0, -1)), B("movedim back", movedim(t[0], 2, 0)), {"unbind", [](T t) { return unbind(t[0], 1); }}, U(diff), B("diff i64", diff(t[0], 1, 0)),
      B("diagonal 0", diagonal(t[0])), B("diagonal 1", diagonal(t[0], 1)), B("diagonal -2", diagonal(t[0], -2)), B("diagonal 5", diagonal(t[0], 5)), B("diagonal axes", diagonal(t[0], -1, 2, 0)),
      B("pad circular", pad(t[0], 2, 3, 4, PadMode::Circular)), B("pad negative", pad(t[0], 2, -1, 2)), B("pad negative both", pad(t[0], 2, -1, -2, PadMode::Constant, 3)),
      B("scatter number", scatter(t[0], 1, t[1], 5.5)), B("index_add", index_add(t[0], 1, t[1], t[2])), B("index_copy", index_copy(t[0], 0, t[1], t[2])), S("topk smallest", topk(t[0], 3, -1, false)), B("outer", outer(t[0], t[1])), U(trace),
      B("max_pool2d dilation", max_pool(t[0], {2}, {1}, {1}, {2})), B("max_pool2d ceil", max_pool(t[0], {3}, {2}, {1}, {1}, true)), B("max_pool1d ceil", max_pool(t[0], {2}, {3}, {1}, {1}, true)), B("avg_pool2d ceil", avg_pool(t[0], {3}, {2}, {1}, true)), B("avg_pool2d inside", avg_pool(t[0], {3}, {2}, {1}, false, false)), B("avg_pool2d ceil inside", avg_pool(t[0], {3, 2}, {2, 3}, {1, 0}, true, false)),
      B("pixel_shuffle", pixel_shuffle(t[0], 2)), B("pixel_unshuffle", pixel_unshuffle(t[0], 3)), B("layer_norm affine", layer_norm(t[0], t[1].shape(), t[1], t[2])), B("rms_norm affine", rms_norm(t[0], t[1].shape(), t[1], 1e-6)), B("group_norm affine", group_norm(t[0], 2, t[1], t[2])), U(instance_norm), U(normalize), B("normalize l1 zero", normalize(t[0], 1, 0)), B("cosine_similarity", cosine_similarity(t[0], t[1])),
      B("attention float mask", scaled_dot_product_attention(t[0], t[1], t[2], t[3])), B("attention causal", scaled_dot_product_attention(t[0], t[1], t[2], {.is_causal = true})), B("attention no heads", scaled_dot_product_attention(t[0], t[1], t[2])),
};
#undef U
#undef B
#undef S
#undef I
// clang-format on

}  // namespace lc::cases
