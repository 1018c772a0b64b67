#include "lightcone/models/diffusion/dit.h"

#include <cmath>

#include "lightcone/ops/creation.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"

namespace lc::diffusion {
namespace {

constexpr std::int64_t kDiTLargest = 1 << 12;  // latents' height and width

// The authors' names and diffusers'.
constexpr WeightName kAuthors[] = {
    {"x_embedder.proj", "patches"},
    {"pos_embed", "positions"},
    {"t_embedder.mlp.0", "condition.time.linear_1"},
    {"t_embedder.mlp.2", "condition.time.linear_2"},
    {"y_embedder.embedding_table", "condition.class"},
    {"blocks.#.adaLN_modulation.1", "blocks.#.modulation"},
    {"blocks.#.attn.qkv", "blocks.#.query_key_value"},
    {"blocks.#.attn.proj", "blocks.#.projection"},
    {"blocks.#.mlp.fc1", "blocks.#.up"},
    {"blocks.#.mlp.fc2", "blocks.#.down"},
    {"final_layer.adaLN_modulation.1", "modulation"},
    {"final_layer.linear", "out"},
};
constexpr WeightName kDiffusers[] = {
    {"pos_embed.proj", "patches"},
    {"transformer_blocks.#.norm1.emb.timestep_embedder.linear_1", "blocks.#.condition.time.linear_1"},
    {"transformer_blocks.#.norm1.emb.timestep_embedder.linear_2", "blocks.#.condition.time.linear_2"},
    {"transformer_blocks.#.norm1.emb.class_embedder.embedding_table", "blocks.#.condition.class"},
    {"transformer_blocks.#.norm1.linear", "blocks.#.modulation"},
    {"transformer_blocks.#.attn1", "blocks.#.attention"},
    {"transformer_blocks.#.ff.net.0.proj", "blocks.#.up"},
    {"transformer_blocks.#.ff.net.2", "blocks.#.down"},
    {"proj_out_1", "modulation"},
    {"proj_out_2", "out"},
};

// One of the axes of a tensor of the file; `otherwise` where it is missing, which the table of weights then says.
std::int64_t extent_in(const Weights& w, std::string_view name, std::size_t axis, std::int64_t otherwise) {
  const StoredTensor* t = w.find(name);
  return t && axis < t->shape.size() && t->shape[axis] > 0 ? t->shape[axis] : otherwise;
}

void read_authors(const ConfigFile& c, const Weights& w, DiTConfig& d) {
  d.width = c.size("hidden_size", 1152), d.layers = c.size("depth", 28), d.heads = c.size("num_heads", 16);
  const double inner = static_cast<double>(d.width) * c.number("mlp_ratio", 4);
  if (!(inner >= 1 && inner <= 1e12)) c.fail("mlp_ratio gives feed-forward networks of a width of ", inner);
  d.inner = static_cast<std::int64_t>(inner);
  d.patch = c.size("patch_size", 2), d.in_channels = c.size("in_channels", 4), d.size = c.size("input_size", 32);
  d.out_channels = c.flag("learn_sigma", true) ? 2 * d.in_channels : d.in_channels;
  const std::int64_t classes = c.size("num_classes", 1000);
  d.classes = extent_in(w, "y_embedder.embedding_table.weight", 0, classes);
  if (d.classes != classes && d.classes != classes + 1)
    c.fail("num_classes is ", classes, ", and the table of classes has ", d.classes, " rows");
  d.sinusoid_width = extent_in(w, "t_embedder.mlp.0.weight", 1, 256);
  d.eps = d.feed_forward_eps = c.number("layer_norm_eps", 1e-6);
  c.neutral({"class_dropout_prob"});
}

void read_diffusers(const ConfigFile& c, const Weights& w, DiTConfig& d) {
  d.of_diffusers = true;
  d.heads = c.size("num_attention_heads", 16);
  d.width = d.heads * c.size("attention_head_dim", 72), d.layers = c.size("num_layers", 28);
  d.inner = 4 * d.width;
  d.patch = c.size("patch_size", 2), d.in_channels = c.size("in_channels", 4), d.size = c.size("sample_size", 32);
  d.out_channels = c.size("out_channels", d.in_channels);
  const std::int64_t classes = c.size("num_embeds_ada_norm", 1000);
  d.classes = extent_in(w, "transformer_blocks.0.norm1.emb.class_embedder.embedding_table.weight", 0, classes + 1);
  if (d.classes != classes && d.classes != classes + 1)
    c.fail("num_embeds_ada_norm is ", classes, ", and the table of classes has ", d.classes, " rows");
  d.attention_bias = c.flag("attention_bias", true);
  d.feed_forward_eps = c.number("norm_eps", 1e-5);
  c.only("activation_fn", "gelu-approximate");
  c.only("norm_type", "ada_norm_zero");
  c.lacks({"norm_elementwise_affine", "cross_attention_dim", "double_self_attention", "num_vector_embeds",
           "only_cross_attention", "use_linear_projection"});
  c.neutral({"norm_num_groups", "upcast_attention"});
}

// Sines and cosines of positions: the first half of the width counts columns, the second rows.
Tensor sinusoids_of_grid(const Tensor& like, std::int64_t side, std::int64_t width) {
  const std::int64_t quarter = width / 4;
  const Tensor frequencies =
      exp(arange(like, Dim(quarter), DType::F32) * (-std::log(10000.0) / static_cast<double>(quarter)));
  const Tensor angles = arange(like, Dim(side), DType::F32).unsqueeze(1) * frequencies.unsqueeze(0);
  const Tensor one = cat({sin(angles), cos(angles)}, 1);  // [side, width / 2]
  const Tensor columns = one.unsqueeze(0).expand({side, side, width / 2});
  const Tensor rows = one.unsqueeze(1).expand({side, side, width / 2});
  return cat({columns, rows}, 2).reshape({side * side, width});
}

}  // namespace

DiTConfig DiTConfig::from(const ConfigFile& c, const Weights& w) {
  DiTConfig d;
  if (c.text("_class_name") == "DiT") read_authors(c, w, d);
  else read_diffusers(c, w, d);
  if (d.layers > std::ssize(w.tensors())) c.fail(d.layers, " layers, and ", w.tensors().size(), " weights");
  if (d.heads > d.width || d.width % d.heads != 0) c.fail(d.heads, " heads do not divide a width of ", d.width);
  if (d.width % 4 != 0) c.fail("a width of ", d.width, ", which positions of rows and columns do not divide");
  if (d.size > kDiTLargest || d.size % d.patch != 0)
    c.fail("pictures of ", d.size, " x ", d.size, " latents in patches of ", d.patch);
  if (!(d.eps > 0) || !(d.feed_forward_eps > 0)) c.fail("an epsilon of a norm is not above 0");
  c.require_all_known(c.text("_class_name"));
  return d;
}

Tensor modulated(const Tensor& x, const Tensor& shift, const Tensor& scale) {
  return x * (scale.unsqueeze(1) + 1.0) + shift.unsqueeze(1);
}

Tensor patches_as_picture(const Tensor& x, const Dim& h, const Dim& w, std::int64_t patch, std::int64_t channels) {
  return x.reshape({x.extent(0), h, w, patch, patch, channels})
      .permute({0, 5, 1, 3, 2, 4})
      .reshape({x.extent(0), channels, h * Dim(patch), w * Dim(patch)});
}

DiT::Condition::Condition(const DiTConfig& c) : time(c.sinusoid_width, c.width), table(c.classes, c.width) {}

DiT::Block::Block(const DiTConfig& c)
    : modulation(c.width, 6 * c.width),
      up(c.width, c.inner),
      down(c.inner, c.width),
      norm(c.width, {.eps = c.eps, .affine = false}),
      feed_forward_norm(c.width, {.eps = c.feed_forward_eps, .affine = false}) {
  if (c.of_diffusers) {
    condition.emplace(c);
    attention.emplace(AttentionSizes{.width = c.width, .heads = c.heads, .bias = c.attention_bias});
  } else {
    query_key_value.emplace(c.width, 3 * c.width), projection.emplace(c.width, c.width);
  }
}
void DiT::Block::visit(nn::Visitor& v) {
  if (condition) v("condition", *condition);
  v("modulation", modulation)("up", up)("down", down);
  if (attention) v("attention", *attention);
  else v("query_key_value", *query_key_value)("projection", *projection);
}
Tensor DiT::Block::attend(const Tensor& x, std::int64_t heads) const {
  if (attention) return (*attention)(x);
  const Tensor all = (*query_key_value)(x);
  const auto part = [&](int k) {
    const Dim width = x.extent(2);
    return split_heads(narrow(all, 2, width * Dim(k), width), heads);
  };
  return (*projection)(join_heads(scaled_dot_product_attention(part(0), part(1), part(2))));
}

DiT::DiT(DiTConfig c)
    : c_(c),
      patches_(c.in_channels, c.width, c.patch, {.stride = static_cast<int>(c.patch)}),
      blocks_(static_cast<std::size_t>(c.layers), Block(c)),
      norm_(c.width, {.eps = 1e-6, .affine = false}),
      modulation_(c.width, 2 * c.width),
      out_(c.width, c.patch * c.patch * c.out_channels) {
  if (!c.of_diffusers) condition_.emplace(c);
}
void DiT::visit(nn::Visitor& v) {
  v("patches", patches_);
  if (condition_) v("condition", *condition_);
  const std::int64_t side = c_.size / c_.patch;
  if (!c_.of_diffusers) v.parameter("positions", positions_, {1, side * side, c_.width}, nn::constant_init(0));
  v("blocks", blocks_)("modulation", modulation_)("out", out_);
}
Tensor DiT::operator()(const Tensor& sample, const Tensor& timestep, const Tensor& labels, const nn::At& at) const {
  const OpScope scope("DiT", at);
  const std::int64_t side = c_.size / c_.patch;
  Tensor x = pixels_as_tokens(patches_(sample));
  x = x + (positions_.defined() ? positions_ : sinusoids_of_grid(sample, side, c_.width).unsqueeze(0));
  const Tensor waves = sinusoids(timestep, {.width = c_.sinusoid_width, .shift = c_.of_diffusers ? 1.0 : 0.0});
  Tensor first;  // the condition of the whole, or of the first block
  for (const Block& block : blocks_) {
    const Tensor condition = block.condition   ? (*block.condition)(waves, labels)
                             : first.defined() ? first
                                               : (*condition_)(waves, labels);
    if (!first.defined()) first = condition;
    const std::vector<Tensor> m = chunk(block.modulation(silu(condition)), 6, 1);
    x = x + m[2].unsqueeze(1) * block.attend(modulated(block.norm(x), m[0], m[1]), c_.heads);
    x = x + m[5].unsqueeze(1) * block.down(gelu_tanh(block.up(modulated(block.feed_forward_norm(x), m[3], m[4]))));
  }
  const std::vector<Tensor> last = chunk(modulation_(silu(first)), 2, 1);
  return patches_as_picture(out_(modulated(norm_(x), last[0], last[1])), side, side, c_.patch, c_.out_channels);
}

LoadedModel load_dit(const Weights& w, const ConfigFile& config, const LoadModelOptions& o) {
  const DiTConfig c = DiTConfig::from(config, w);
  const std::span<const WeightName> names = c.of_diffusers ? std::span<const WeightName>(kDiffusers) : kAuthors;
  LoadedModel m(config.text("_class_name"), WeightTable(w, {}, names));
  m.architecture = m.type;
  m.limits["batch"] = o.batch;
  const DiT& net = m.add(DiT(c));
  m.weights.require_all_used(str_cat("a ", m.type));
  const Dim batch = Dim::symbol("batch", 1, o.batch);
  const Tensor sample = m.inputs["sample"] = m.graph().input("sample", {batch, c.in_channels, c.size, c.size});
  const Tensor timestep = m.inputs["timestep"] = m.graph().input("timestep", {batch});
  const Tensor labels = m.inputs["class_labels"] = m.graph().input("class_labels", {batch}, DType::I64);
  m.give("prediction", net(sample, timestep, labels));
  m.retrieve(o);
  return m;
}

}  // namespace lc::diffusion
