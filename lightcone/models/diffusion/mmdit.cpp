#include "lightcone/models/diffusion/mmdit.h"

#include "lightcone/io/printable.h"
#include "lightcone/models/diffusion/dit.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"

namespace lc::diffusion {
namespace {

constexpr std::int64_t kMostTokens = 1 << 14;  // that a text may have, and a picture for one block

void read_block(const ConfigFile& c, MMDiTConfig& m) {
  m.one_block = true, m.layers = 1, m.dual = {false};
  m.heads = c.size("num_attention_heads"), m.head_width = c.size("attention_head_dim");
  if (c.size("hidden_size", m.width()) != m.width())
    c.fail("hidden_size is ", c.size("hidden_size"), ", and ", m.heads, " heads of ", m.head_width, " are ", m.width());
  m.inner = c.size("mlp_hidden", 4 * m.width());
  m.eps = c.number("layer_norm_eps", 1e-6);
  c.neutral({"img_len", "txt_len"});  // both are open
}

void read_model(const ConfigFile& c, std::size_t weights, MMDiTConfig& m) {
  m.heads = c.size("num_attention_heads", 18), m.head_width = c.size("attention_head_dim", 64);
  m.layers = c.size("num_layers", 18);
  if (m.layers > static_cast<std::int64_t>(weights)) c.fail(m.layers, " layers, and ", weights, " weights");
  m.inner = 4 * m.width();
  m.patch = c.size("patch_size", 2), m.in_channels = c.size("in_channels", 16);
  if (m.patch > 1024) c.fail("patch_size is ", m.patch, ", and at most 1024 is supported");
  m.out_channels = c.size("out_channels", m.in_channels);
  m.context = c.size("joint_attention_dim", 4096), m.pooled = c.size("pooled_projection_dim", 2048);
  m.most_patches = c.size("pos_embed_max_size", 96);
  if (m.most_patches > 4096) c.fail("pos_embed_max_size is ", m.most_patches, ", and at most 4096 is supported");
  if (const std::int64_t width = c.size("caption_projection_dim", 1152); width != m.width())
    c.fail("caption_projection_dim is ", width, ", and the model's width ", m.width());
  m.dual.assign(static_cast<std::size_t>(m.layers), false);
  for (const double k : c.numbers("dual_attention_layers")) {
    if (!(k >= 0 && k < static_cast<double>(m.layers)))
      c.fail("dual_attention_layers has ", k, ", and there are ", m.layers, " layers");
    m.dual[static_cast<std::size_t>(k)] = true;
  }
  const std::string norm = c.text("qk_norm");
  if (!norm.empty() && norm != "rms_norm") c.fail("qk_norm is ", in_quotes(norm), ", and only rms_norm is supported");
  m.norm_queries = !norm.empty();
  c.neutral({"sample_size"});  // that the training had
}

constexpr WeightName kBlockNames[] = {
    {"norm1.linear", "norm1"},
    {"norm1_context.linear", "norm1_context"},
    {"attn", "attn"},
    {"attn2", "attn2"},
    {"ff", "ff"},
    {"ff_context", "ff_context"},
};
constexpr WeightName kModelNames[] = {
    {"pos_embed.proj", "pos_embed.proj"},
    {"pos_embed.pos_embed", "pos_embed.pos_embed"},
    {"time_text_embed", "time_text_embed"},
    {"context_embedder", "context_embedder"},
    {"transformer_blocks.#.norm1.linear", "transformer_blocks.#.norm1"},
    {"transformer_blocks.#.norm1_context.linear", "transformer_blocks.#.norm1_context"},
    {"transformer_blocks", "transformer_blocks"},
    {"norm_out.linear", "norm_out"},
    {"proj_out", "proj_out"},
};

}  // namespace

Tensor scaled_first(const Tensor& normed, const Tensor& both) {
  const std::vector<Tensor> m = chunk(both, 2, 1);
  return modulated(normed, m[1], m[0]);
}

Tensor Rotation::operator()(const Tensor& x) const { return cos.defined() ? rope(x, cos, sin, true) : x; }

MMDiTConfig MMDiTConfig::from(const ConfigFile& c, std::size_t weights) {
  MMDiTConfig m;
  if (c.has("img_len") && !c.has("num_layers")) read_block(c, m);
  else read_model(c, weights, m);
  if (!(m.eps > 0)) c.fail("layer_norm_eps is ", m.eps, ", and not above 0");
  c.require_all_known("SD3Transformer2DModel");
  return m;
}

JointBlock::Stream::Stream(const MMDiTConfig& c)
    : query(c.width(), c.width()),
      key(c.width(), c.width()),
      value(c.width(), c.width()),
      output(c.width(), c.width()),
      up(c.width(), c.inner),
      down(c.inner, c.width()) {
  if (c.norm_queries)
    query_norm.emplace(c.head_width, nn::RmsNormOptions{.eps = 1e-6}),
        key_norm.emplace(c.head_width, nn::RmsNormOptions{.eps = 1e-6});
}

JointBlock::JointBlock(const MMDiTConfig& c, bool dual, bool picture_only)
    : heads_(c.heads),
      dual_(dual),
      picture_only_(picture_only),
      norms_(c.norm_queries),
      norm_(c.width(), {.eps = c.eps, .affine = false}),
      modulation_(c.width(), (dual ? 9 : 6) * c.width()),
      text_modulation_(c.width(), (picture_only ? 2 : 6) * c.width()),
      picture_(c),
      text_(c) {
  if (dual) second_.emplace(c);
}

void JointBlock::visit(nn::Visitor& v) {
  v("norm1", modulation_)("norm1_context", text_modulation_);
  v("attn.to_q", picture_.query)("attn.to_k", picture_.key)("attn.to_v", picture_.value);
  v("attn.to_out.0", picture_.output);
  v("attn.add_q_proj", text_.query)("attn.add_k_proj", text_.key)("attn.add_v_proj", text_.value);
  if (!picture_only_) v("attn.to_add_out", text_.output);
  if (norms_) {
    v("attn.norm_q", *picture_.query_norm)("attn.norm_k", *picture_.key_norm);
    v("attn.norm_added_q", *text_.query_norm)("attn.norm_added_k", *text_.key_norm);
  }
  if (second_) {
    v("attn2.to_q", second_->query)("attn2.to_k", second_->key)("attn2.to_v", second_->value);
    v("attn2.to_out.0", second_->output);
    if (norms_) v("attn2.norm_q", *second_->query_norm)("attn2.norm_k", *second_->key_norm);
  }
  v("ff.net.0.proj", picture_.up)("ff.net.2", picture_.down);
  if (!picture_only_) v("ff_context.net.0.proj", text_.up)("ff_context.net.2", text_.down);
}

Tensor JointBlock::heads_of(const nn::Linear<>& projection, const std::optional<nn::RMSNorm<>>& norm,
                            const Tensor& x) const {
  const Tensor h = split_heads(projection(x), heads_);
  return norm ? (*norm)(h) : h;
}

JointBlock::Streams JointBlock::operator()(const Streams& x, const Tensor& condition, const Rotation& turn) const {
  const Tensor seen = silu(condition);
  const std::vector<Tensor> p = chunk(modulation_(seen), dual_ ? 9 : 6, 1);
  const Tensor normed = norm_(x.picture), picture = modulated(normed, p[0], p[1]);
  std::vector<Tensor> t;
  Tensor text;
  if (picture_only_) {
    text = scaled_first(norm_(x.text), text_modulation_(seen));
  } else {
    t = chunk(text_modulation_(seen), 6, 1);
    text = modulated(norm_(x.text), t[0], t[1]);
  }
  const Tensor q =
      cat({heads_of(picture_.query, picture_.query_norm, picture), heads_of(text_.query, text_.query_norm, text)}, 2);
  const Tensor k =
      cat({heads_of(picture_.key, picture_.key_norm, picture), heads_of(text_.key, text_.key_norm, text)}, 2);
  const Tensor v = cat({heads_of(picture_.value, {}, picture), heads_of(text_.value, {}, text)}, 2);
  const Tensor y = join_heads(scaled_dot_product_attention(turn(q), turn(k), v));
  const Dim n = x.picture.extent(1), m = x.text.extent(1);
  Streams out;
  out.picture = x.picture + p[2].unsqueeze(1) * picture_.output(narrow(y, 1, 0, n));
  if (second_) {
    const Tensor again = modulated(normed, p[6], p[7]);
    const Tensor z = join_heads(scaled_dot_product_attention(heads_of(second_->query, second_->query_norm, again),
                                                             heads_of(second_->key, second_->key_norm, again),
                                                             heads_of(second_->value, {}, again)));
    out.picture = out.picture + p[8].unsqueeze(1) * second_->output(z);
  }
  const auto fed = [&](const Stream& s, const Tensor& h, const std::vector<Tensor>& with) {
    return h + with[5].unsqueeze(1) * s.down(gelu_tanh(s.up(modulated(norm_(h), with[3], with[4]))));
  };
  out.picture = fed(picture_, out.picture, p);
  if (!picture_only_) out.text = fed(text_, x.text + t[2].unsqueeze(1) * text_.output(narrow(y, 1, n, m)), t);
  return out;
}

MMDiT::MMDiT(MMDiTConfig c)
    : c_(c),
      patches_(c.in_channels, c.width(), c.patch, {.stride = static_cast<int>(c.patch)}),
      time_(256, c.width()),
      text_(c.pooled, c.width()),
      context_(c.context, c.width()),
      norm_(c.width(), {.eps = 1e-6, .affine = false}),
      modulation_(c.width(), 2 * c.width()),
      out_(c.width(), c.patch * c.patch * c.out_channels) {
  for (std::int64_t k = 0; k < c.layers; ++k)
    blocks_.emplace_back(c, c.dual[static_cast<std::size_t>(k)], k + 1 == c.layers);
}
void MMDiT::visit(nn::Visitor& v) {
  v("pos_embed.proj", patches_);
  v.parameter("pos_embed.pos_embed", positions_, {1, c_.most_patches * c_.most_patches, c_.width()},
              nn::constant_init(0));
  v("time_text_embed.timestep_embedder", time_)("time_text_embed.text_embedder", text_)("context_embedder", context_);
  v("transformer_blocks", blocks_)("norm_out", modulation_)("proj_out", out_);
}
Tensor MMDiT::operator()(const Tensor& sample, const Tensor& timestep, const Tensor& states, const Tensor& pooled,
                         const nn::At& at) const {
  const OpScope scope("MMDiT", at);
  const Tensor patches = patches_(sample);
  const Dim rows = patches.extent(2), columns = patches.extent(3), most = c_.most_patches;
  // the middle of the table of positions
  const Dim top = (most - rows) / Dim(2), left = (most - columns) / Dim(2);
  Tensor table = positions_.reshape({most, most, c_.width()});
  table = narrow(narrow(table, 0, top, rows), 1, left, columns);
  Tensor x = pixels_as_tokens(patches) + table.reshape({1, rows * columns, c_.width()});
  const Tensor condition = time_(sinusoids(timestep, {.width = 256})) + text_(pooled);
  JointBlock::Streams s{x, context_(states)};
  for (const JointBlock& block : blocks_) s = block(s, condition);
  const Tensor y = out_(scaled_first(norm_(s.picture), modulation_(silu(condition))));
  return patches_as_picture(y, rows, columns, c_.patch, c_.out_channels);
}

namespace {

LoadedModel load_block(const Weights& w, const MMDiTConfig& c, const LoadModelOptions& o) {
  LoadedModel m("SD3Transformer2DModel", WeightTable(w, {}, kBlockNames));
  m.architecture = "JointTransformerBlock";
  m.limits = {{"batch", o.batch}, {"image_length", kMostTokens}, {"length", kMostTokens}};
  const JointBlock& block = m.add(JointBlock(c, false, false));
  m.weights.require_all_used("a JointTransformerBlock");
  const Dim batch = Dim::symbol("batch", 1, o.batch);
  const auto add = [&](const char* name, const Shape& shape) { return m.inputs[name] = m.graph().input(name, shape); };
  const Tensor picture = add("hidden_states", {batch, Dim::symbol("image_length", 1, kMostTokens), c.width()});
  const Tensor text = add("encoder_hidden_states", {batch, Dim::symbol("length", 1, kMostTokens), c.width()});
  const JointBlock::Streams out = block({picture, text}, add("temb", {batch, c.width()}));
  m.give("hidden", out.picture);
  m.give("encoder_hidden", out.text);
  m.retrieve(o);
  return m;
}

}  // namespace

std::span<const WeightName> mmdit_weight_names() { return kModelNames; }

LoadedModel load_mmdit(const Weights& w, const ConfigFile& config, const LoadModelOptions& o) {
  const MMDiTConfig c = MMDiTConfig::from(config, w.tensors().size());
  if (c.one_block) return load_block(w, c, o);
  LoadedModel m("SD3Transformer2DModel", WeightTable(w, {}, kModelNames));
  m.architecture = m.type;
  m.limits = {{"batch", o.batch}, {"length", kMostTokens}};
  const MMDiT& net = m.add(MMDiT(c));
  m.weights.require_all_used("an SD3Transformer2DModel");
  const auto add = [&](const char* name, const Shape& shape) { return m.inputs[name] = m.graph().input(name, shape); };
  const Dim batch = Dim::symbol("batch", 1, o.batch);
  const auto patches = [&](const char* name, std::int64_t size) {
    if (size % c.patch != 0 || size > c.most_patches * c.patch)
      config.fail("latents of ", size, " along a side are asked for; multiples of ", c.patch, " up to ",
                  c.most_patches * c.patch, " are possible");
    return extent_of_input(m, name, size / c.patch, 1, c.most_patches) * Dim(c.patch);
  };
  const Tensor sample = add("sample", {batch, c.in_channels, patches("rows", o.height), patches("columns", o.width)});
  const Tensor timestep = add("timestep", {batch});
  const Tensor states = add("encoder_hidden_states", {batch, Dim::symbol("length", 1, kMostTokens), c.context});
  const Tensor pooled = add("pooled_projections", {batch, c.pooled});
  m.give("prediction", net(sample, timestep, states, pooled));
  m.retrieve(o);
  return m;
}

}  // namespace lc::diffusion
