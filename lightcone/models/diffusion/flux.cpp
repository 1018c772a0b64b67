#include "lightcone/models/diffusion/flux.h"

#include <cmath>
#include <numbers>
#include <numeric>

#include "lightcone/models/diffusion/dit.h"
#include "lightcone/ops/creation.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"

namespace lc::diffusion {
namespace {

constexpr std::int64_t kMostFluxTokens = 1 << 14;  // that a picture or a text may have
constexpr std::size_t kMostAxes = 8;
constexpr double kSlowest = 10000;   // the wavelengths of the rotations reach up to 2 pi times it
constexpr double kTimeScale = 1000;  // times and guidance are this much larger in the sinusoids

constexpr WeightName kFluxNames[] = {
    {"transformer_blocks.#.norm1.linear", "transformer_blocks.#.norm1"},
    {"transformer_blocks.#.norm1_context.linear", "transformer_blocks.#.norm1_context"},
    {"transformer_blocks", "transformer_blocks"},
    {"single_transformer_blocks.#.norm.linear", "single_transformer_blocks.#.norm"},
    {"single_transformer_blocks", "single_transformer_blocks"},
    {"time_text_embed", "time_text_embed"},
    {"context_embedder", "context_embedder"},
    {"x_embedder", "x_embedder"},
    {"norm_out.linear", "norm_out"},
    {"proj_out", "proj_out"},
};

MMDiTConfig blocks_of(const FluxConfig& c) {
  MMDiTConfig m;
  m.heads = c.heads, m.head_width = c.head_width, m.inner = 4 * c.width(), m.norm_queries = true;
  return m;
}

}  // namespace

FluxConfig FluxConfig::from(const ConfigFile& c, std::size_t weights) {
  FluxConfig f;
  f.heads = c.size("num_attention_heads", f.heads), f.head_width = c.size("attention_head_dim", f.head_width);
  f.layers = c.id("num_layers", f.layers), f.single_layers = c.id("num_single_layers", f.single_layers);
  if (f.layers + f.single_layers > static_cast<std::int64_t>(weights))
    c.fail(f.layers, " and ", f.single_layers, " layers, and ", weights, " weights");
  const std::int64_t patch = c.size("patch_size", 1);
  if (patch > 1024) c.fail("patch_size is ", patch, ", and at most 1024 is supported");
  f.in_channels = c.size("in_channels", f.in_channels);
  f.out_channels = patch * patch * c.size("out_channels", f.in_channels);
  f.context = c.size("joint_attention_dim", f.context), f.pooled = c.size("pooled_projection_dim", f.pooled);
  f.guidance = c.flag("guidance_embeds", false);
  f.axes = c.sizes("axes_dims_rope");
  if (f.axes.empty()) f.axes = {16, 56, 56};
  if (f.axes.size() > kMostAxes)
    c.fail("axes_dims_rope has ", f.axes.size(), " axes; at most ", kMostAxes, " are supported");
  for (const std::int64_t n : f.axes)
    if (n % 2 != 0) c.fail("axes_dims_rope has ", n, ", and pairs are turned");
  if (const std::int64_t all = std::accumulate(f.axes.begin(), f.axes.end(), std::int64_t{0}); all != f.head_width)
    c.fail("axes_dims_rope turns ", all, " numbers, and attention_head_dim is ", f.head_width);
  c.require_all_known("FluxTransformer2DModel");
  return f;
}

ParallelBlock::ParallelBlock(const FluxConfig& c)
    : heads_(c.heads),
      norm_(c.width(), {.eps = 1e-6, .affine = false}),
      modulation_(c.width(), 3 * c.width()),
      query_(c.width(), c.width()),
      key_(c.width(), c.width()),
      value_(c.width(), c.width()),
      up_(c.width(), 4 * c.width()),
      out_(5 * c.width(), c.width()),
      query_norm_(c.head_width, {.eps = 1e-6}),
      key_norm_(c.head_width, {.eps = 1e-6}) {}
void ParallelBlock::visit(nn::Visitor& v) {
  v("norm", modulation_)("attn.to_q", query_)("attn.to_k", key_)("attn.to_v", value_);
  v("attn.norm_q", query_norm_)("attn.norm_k", key_norm_)("proj_mlp", up_)("proj_out", out_);
}
Tensor ParallelBlock::operator()(const Tensor& x, const Tensor& condition, const Rotation& turn) const {
  const std::vector<Tensor> m = chunk(modulation_(silu(condition)), 3, 1);
  const Tensor h = modulated(norm_(x), m[0], m[1]);
  const Tensor q = turn(query_norm_(split_heads(query_(h), heads_))), k = turn(key_norm_(split_heads(key_(h), heads_)));
  const Tensor attended = join_heads(scaled_dot_product_attention(q, k, split_heads(value_(h), heads_)));
  return x + m[2].unsqueeze(1) * out_(cat({attended, gelu_tanh(up_(h))}, 2));
}

FluxTransformer::FluxTransformer(FluxConfig c)
    : c_(std::move(c)),
      tokens_(c_.in_channels, c_.width()),
      context_(c_.context, c_.width()),
      time_(256, c_.width()),
      text_(c_.pooled, c_.width()),
      norm_(c_.width(), {.eps = 1e-6, .affine = false}),
      modulation_(c_.width(), 2 * c_.width()),
      out_(c_.width(), c_.out_channels) {
  if (c_.guidance) guidance_.emplace(256, c_.width());
  for (std::int64_t k = 0; k < c_.layers; ++k) blocks_.emplace_back(blocks_of(c_), false, false);
  for (std::int64_t k = 0; k < c_.single_layers; ++k) single_blocks_.emplace_back(c_);
}
void FluxTransformer::visit(nn::Visitor& v) {
  v("x_embedder", tokens_)("context_embedder", context_);
  v("time_text_embed.timestep_embedder", time_)("time_text_embed.text_embedder", text_);
  if (guidance_) v("time_text_embed.guidance_embedder", *guidance_);
  v("transformer_blocks", blocks_)("single_transformer_blocks", single_blocks_);
  v("norm_out", modulation_)("proj_out", out_);
}

// Angles are computed in f64, where place * frequency is accurate.
Rotation FluxTransformer::rotation(const Tensor& places) const {
  std::vector<Tensor> angles;
  for (std::size_t k = 0; k < c_.axes.size(); ++k) {
    const std::int64_t pairs = c_.axes[k] / 2;
    const Tensor order = places.graph().index({pairs}, Dim::index(0, pairs), DType::F64);
    const Tensor frequencies = exp2(order * (-std::log2(kSlowest) / static_cast<double>(pairs)));
    const Tensor place = prim::cast(narrow(places, 1, static_cast<std::int64_t>(k), 1), DType::F64);
    angles.push_back(place * frequencies.unsqueeze(0));
  }
  const Tensor all = cat(angles, 1);
  return {prim::cast(sin(all + std::numbers::pi / 2), DType::F32), prim::cast(sin(all), DType::F32)};
}

Tensor FluxTransformer::operator()(const Inputs& in, const nn::At& at) const {
  const OpScope scope("FluxTransformer", at);
  const auto embedded = [](const TimestepEmbedding& e, const Tensor& number) {
    return e(sinusoids(number * kTimeScale, {.width = 256}));
  };
  Tensor condition = embedded(time_, in.timestep) + text_(in.pooled);
  if (guidance_) condition = condition + embedded(*guidance_, in.guidance);
  const Rotation turn = rotation(cat({in.picture_places, in.text_places}, 0));
  JointBlock::Streams s{tokens_(in.tokens), context_(in.states)};
  for (const JointBlock& block : blocks_) s = block(s, condition, turn);
  Tensor x = cat({s.picture, s.text}, 1);
  for (const ParallelBlock& block : single_blocks_) x = block(x, condition, turn);
  const Tensor picture = narrow(x, 1, 0, in.tokens.extent(1));
  return out_(scaled_first(norm_(picture), modulation_(silu(condition))));
}

Tensor packed_latents(const Tensor& latents) {
  const Dim batch = latents.extent(0), channels = latents.extent(1);
  const Dim rows = latents.extent(2) / Dim(2), columns = latents.extent(3) / Dim(2);
  return latents.reshape({batch, channels, rows, 2, columns, 2})
      .permute({0, 2, 4, 1, 3, 5})
      .reshape({batch, rows * columns, channels * Dim(4)});
}
Tensor unpacked_latents(const Tensor& tokens, const Dim& rows, const Dim& columns) {
  const Dim batch = tokens.extent(0), channels = tokens.extent(2) / Dim(4);
  return tokens.reshape({batch, rows, columns, channels, 2, 2})
      .permute({0, 3, 1, 4, 2, 5})
      .reshape({batch, channels, rows * Dim(2), columns * Dim(2)});
}

std::span<const WeightName> flux_weight_names() { return kFluxNames; }

LoadedModel load_flux(const Weights& w, const ConfigFile& config, const LoadModelOptions& o) {
  const FluxConfig c = FluxConfig::from(config, w.tensors().size());
  LoadedModel m("FluxTransformer2DModel", WeightTable(w, {}, kFluxNames));
  m.architecture = m.type;
  m.limits = {{"batch", o.batch}, {"tokens", kMostFluxTokens}, {"length", kMostFluxTokens}};
  const FluxTransformer& net = m.add(FluxTransformer(c));
  m.weights.require_all_used("a FluxTransformer2DModel");
  const auto add = [&](const char* name, const Shape& shape) { return m.inputs[name] = m.graph().input(name, shape); };
  const Dim batch = Dim::symbol("batch", 1, o.batch), tokens = Dim::symbol("tokens", 1, kMostFluxTokens),
            length = Dim::symbol("length", 1, kMostFluxTokens), axes(static_cast<std::int64_t>(c.axes.size()));
  FluxTransformer::Inputs in{.tokens = add("hidden_states", {batch, tokens, c.in_channels}),
                             .states = add("encoder_hidden_states", {batch, length, c.context}),
                             .pooled = add("pooled_projections", {batch, c.pooled}),
                             .timestep = add("timestep", {batch}),
                             .picture_places = add("img_ids", {tokens, axes}),
                             .text_places = add("txt_ids", {length, axes})};
  if (c.guidance) in.guidance = add("guidance", {batch});
  m.give("prediction", net(in));
  m.retrieve(o);
  return m;
}

}  // namespace lc::diffusion
