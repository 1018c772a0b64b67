#include "lightcone/models/vision_transformer/dinov3.h"

#include <cmath>
#include <numbers>

#include "lightcone/models/blocks/activation.h"
#include "lightcone/models/blocks/table.h"
#include "lightcone/models/vision_transformer/tower_config.h"
#include "lightcone/ops/creation.h"
#include "lightcone/ops/shape.h"

namespace lc {
namespace {

struct Dinov3Config : TowerConfig {
  std::int64_t registers = 0;
  double theta = 100;
  bool query_bias = true, key_bias = false, value_bias = true, output_bias = true, network_bias = true;
  std::int64_t head() const { return block.width / block.heads; }
};

Dinov3Config read_dinov3(const ConfigFile& file) {
  Dinov3Config c;
  static_cast<TowerConfig&>(c) = read_tower(
      file, {.block = {.width = 384, .heads = 6, .inner = 1536, .eps = 1e-5}, .patches = {.patch_height = 16}});
  const PictureSize patch = size_of_key(file, "patch_size", 16), picture = trained_size(file, 224);
  c.patches.channels = file.size("num_channels", 3);
  c.patches.patch_height = patch.height, c.patches.patch_width = patch.width;
  c.patches.height = picture.height, c.patches.width_of_picture = picture.width;
  c.registers = file.id("num_register_tokens", 0), c.theta = file.number("rope_theta", 100);
  c.query_bias = file.flag("query_bias", true), c.key_bias = file.flag("key_bias", false);
  c.value_bias = file.flag("value_bias", true), c.output_bias = file.flag("proj_bias", true);
  c.network_bias = file.flag("mlp_bias", true), c.block.gated = file.flag("use_gated_mlp", false);
  if (c.head() % 4 != 0)
    file.fail("heads of ", c.head(), " numbers are not turned by rows and columns: 4 divides them");
  if (constexpr std::int64_t kMost = 1 << 16; c.registers > kMost) file.fail("num_register_tokens is ", c.registers);
  if (!(c.theta > 0)) file.fail("rope_theta is ", c.theta, ", and not above 0");
  // these concern training, or what a backbone returns
  file.neutral({"layerscale_value", "drop_path_rate", "pos_embed_shift", "pos_embed_jitter", "pos_embed_rescale",
                "apply_layernorm", "reshape_hidden_states", "out_features", "out_indices", "stage_names",
                "return_class_token"});
  file.require_all_known("dinov3_vit");
  return c;
}

// Cosines and sines of the places of patches, [patches, head] each.
struct Dinov3Turns {
  Tensor cos, sin;
};
Dinov3Turns turns_of(Graph& g, std::int64_t rows, std::int64_t columns, const Dinov3Config& c) {
  const std::int64_t quarter = c.head() / 4;
  std::vector<double> frequencies;
  for (std::int64_t k = 0; k < quarter; ++k)
    frequencies.push_back(2 * std::numbers::pi *
                          std::pow(c.theta, -4 * static_cast<double>(k) / static_cast<double>(c.head())));
  const Tensor table = to(table_of(g, frequencies), DType::F32).reshape({1, 1, quarter});
  // from -1 to 1, the middles of the patches
  const auto places = [&](std::int64_t n) {
    return (to(arange(g, n), DType::F32) + 0.5) * (2 / static_cast<double>(n)) - 1.0;
  };
  const Shape all{rows, columns, quarter};
  const Tensor by_row = (places(rows).reshape({rows, 1, 1}) * table).expand(all),
               by_column = (places(columns).reshape({1, columns, 1}) * table).expand(all);
  const Tensor angles = cat({by_row, by_column, by_row, by_column}, 2).reshape({rows * columns, c.head()});
  return {cos(angles), sin(angles)};
}

class Dinov3Layer {
 public:
  explicit Dinov3Layer(const Dinov3Config& c)
      : c_(c),
        query_(c.width(), c.width(), {.bias = c.query_bias}),
        key_(c.width(), c.width(), {.bias = c.key_bias}),
        value_(c.width(), c.width(), {.bias = c.value_bias}),
        output_(c.width(), c.width(), {.bias = c.output_bias}),
        gate_(c.width(), c.block.inner, {.bias = c.network_bias}),
        up_(c.width(), c.block.inner, {.bias = c.network_bias}),
        down_(c.block.inner, c.width(), {.bias = c.network_bias}),
        norm1_(c.width(), {.eps = c.block.eps}),
        norm2_(c.width(), {.eps = c.block.eps}) {}
  void visit(nn::Visitor& v) {
    v("norm1", norm1_)("attention.q_proj", query_)("attention.k_proj", key_)("attention.v_proj", value_);
    v("attention.o_proj", output_)("norm2", norm2_)("mlp.up_proj", up_)("mlp.down_proj", down_);
    if (c_.block.gated) v("mlp.gate_proj", gate_);
    v.parameter("layer_scale1.lambda1", scale1_, {c_.width()}, nn::constant_init(1));
    v.parameter("layer_scale2.lambda1", scale2_, {c_.width()}, nn::constant_init(1));
  }
  Tensor operator()(const Tensor& x, const Dinov3Turns& turns) const {
    const Tensor y = x + attend(norm1_(x), turns) * scale1_;
    return y + network(norm2_(y)) * scale2_;
  }

 private:
  Tensor attend(const Tensor& x, const Dinov3Turns& turns) const {
    const auto heads = [&](const Tensor& t) {
      return t.reshape({t.extent(0), t.extent(1), c_.block.heads, c_.head()}).permute({0, 2, 1, 3});
    };
    const Tensor y = scaled_dot_product_attention(turned(heads(query_(x)), turns), turned(heads(key_(x)), turns),
                                                  heads(value_(x)), AttentionOptions{});
    return output_(y.permute({0, 2, 1, 3}).reshape({x.extent(0), x.extent(1), c_.width()}));
  }
  // Dinov3Turns the patches; the class token and the registers have no place.
  Tensor turned(const Tensor& x, const Dinov3Turns& turns) const {
    const std::int64_t before = 1 + c_.registers, half = c_.head() / 2;
    const Tensor patches = narrow(x, 2, before, x.extent(2) - before);
    const Tensor crossed = cat({-narrow(patches, 3, half, half), narrow(patches, 3, 0, half)}, 3);
    return cat({narrow(x, 2, 0, before), patches * turns.cos + crossed * turns.sin}, 2);
  }
  Tensor network(const Tensor& x) const {
    if (!c_.block.gated) return down_(activate(c_.block.activation, up_(x)));
    return down_(activate(c_.block.activation, gate_(x)) * up_(x));
  }

  Dinov3Config c_;
  nn::Linear<> query_, key_, value_, output_, gate_, up_, down_;
  nn::LayerNorm<> norm1_, norm2_;
  Tensor scale1_, scale2_;
};

class Dinov3 {
 public:
  explicit Dinov3(const Dinov3Config& c)
      : c_(c),
        patches_(c.patches.channels, c.width(), {c.patches.patch_height, c.patches.patch_width},
                 {.stride = {static_cast<int>(c.patches.patch_height), static_cast<int>(c.patches.patch_width)}}),
        layers_(static_cast<std::size_t>(c.layers), Dinov3Layer(c)),
        norm_(c.width(), {.eps = c.block.eps}) {}
  void visit(nn::Visitor& v) {
    const nn::Init zero = nn::constant_init(0);
    v.parameter("embeddings.cls_token", class_token_, {1, 1, c_.width()}, zero);
    if (c_.registers > 0) v.parameter("embeddings.register_tokens", registers_, {1, c_.registers, c_.width()}, zero);
    v("embeddings.patch_embeddings", patches_)("layer", layers_)("norm", norm_);
  }
  Tensor operator()(const Tensor& pictures) const {
    const Dim batch = pictures.extent(0);
    const std::int64_t rows = number_of(pictures, 2, "Dinov3") / c_.patches.patch_height,
                       columns = number_of(pictures, 3, "Dinov3") / c_.patches.patch_width;
    std::vector<Tensor> parts{class_token_.expand({batch, 1, c_.width()})};
    if (c_.registers > 0) parts.push_back(registers_.expand({batch, c_.registers, c_.width()}));
    parts.push_back(patches_(pictures).reshape({batch, c_.width(), rows * columns}).permute({0, 2, 1}));
    Tensor x = cat(parts, 1);
    const Dinov3Turns turns = turns_of(x.graph(), rows, columns, c_);
    for (const Dinov3Layer& layer : layers_) x = layer(x, turns);
    return norm_(x);
  }

 private:
  Dinov3Config c_;
  nn::Conv2d<> patches_;
  Tensor class_token_, registers_;
  std::vector<Dinov3Layer> layers_;
  nn::LayerNorm<> norm_;
};

constexpr WeightName kDinov3Names[] = {
    {"embeddings.mask_token", ""},
    {"rope_embeddings.inv_freq", ""},
    {"embeddings.register_tokens", "embeddings.register_tokens", true},
    {"embeddings", "embeddings"},
    {"layer", "layer"},
    {"model.layer", "layer"},  // since transformers 5
    {"norm", "norm"},
};

}  // namespace

LoadedModel load_dinov3(const Weights& w, const ConfigFile& config, const LoadModelOptions& o) {
  const Dinov3Config c = read_dinov3(config);
  if (c.layers > std::ssize(w.tensors())) config.fail(c.layers, " layers, and ", w.tensors().size(), " weights");
  const std::vector<std::string> all = config.texts("architectures");
  if (!all.empty() && all.front() != "DINOv3ViTModel" && all.front() != "DINOv3ViTBackbone")
    config.fail("the architecture '", all.front(), "' is not known for model_type dinov3_vit; known is DINOv3ViTModel");
  const PictureSize size = picture_size(config, o, {c.patches.height, c.patches.width_of_picture});
  if (size.height < c.patches.patch_height || size.width < c.patches.patch_width)
    config.fail("a picture of ", size.height, " x ", size.width, " has no patch of ", c.patches.patch_height, " x ",
                c.patches.patch_width);
  LoadedModel m("dinov3_vit", WeightTable(w, {}, kDinov3Names));
  m.architecture = "DINOv3ViTModel";
  const Dinov3& net = m.add(Dinov3(c));
  m.weights.require_all_used("a DINOv3ViTModel");
  const Tensor hidden = net(picture_input(m, o, c.patches.channels, size));
  m.give("hidden", hidden), m.give("pooled", select(hidden, 1, 0));
  m.retrieve(o);
  return m;
}

}  // namespace lc
