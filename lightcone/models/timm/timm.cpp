#include "lightcone/models/timm/timm.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "lightcone/io/printable.h"
#include "lightcone/models/convnet/classifiers.h"
#include "lightcone/models/convnet/convnext.h"
#include "lightcone/models/swin/swin.h"
#include "lightcone/models/vision_transformer/vit.h"
#include "lightcone/runtime/names.h"

namespace lc {
namespace {

constexpr std::string_view kResNets[] = {"resnet18",        "resnet34",        "resnet50",         "resnet101",
                                         "resnet152",       "resnext50_32x4d", "resnext101_32x8d", "resnext101_64x4d",
                                         "wide_resnet50_2", "wide_resnet101_2"};

// A checkpoint of timm's that becomes one of transformers'.
class Translation {
 public:
  Translation(const Weights& w, const ConfigFile& config) : w_(w), config_(config) {}

  // The extent of an axis of a weight. Throws Error if there is none.
  std::int64_t extent(const std::string& name, std::size_t axis) const {
    const StoredTensor* t = w_.find(name);
    if (!t || t->shape.size() <= axis || t->shape[axis] < 1)
      config_.fail("there is no weight ", in_quotes(name), " of ", axis + 1, " axes or more, which a ",
                   in_quotes(config_.text("architecture")), " has");
    return t->shape[axis];
  }
  bool has(const std::string& name) const { return w_.find(name) != nullptr; }
  // How many weights there are named before + number + after.
  std::int64_t count(const std::string& before, const std::string& after) const {
    std::int64_t n = 0;
    while (has(str_cat(before, n, after))) ++n;
    return n;
  }
  // Splits a fused weight or bias along its first axis. It is then f32.
  void split(const std::string& name, const std::array<std::string, 3>& into) {
    const StoredTensor* t = w_.find(name);
    if (!t) return;
    std::vector<std::int64_t> shape = t->shape;
    if (shape.empty() || shape[0] % 3 != 0)
      config_.fail(in_quotes(name), " has a shape that queries, keys and values do not share");
    shape[0] /= 3;
    const std::vector<float> all = Weights::read(*t);
    const auto each = static_cast<std::ptrdiff_t>(all.size() / 3);
    for (std::ptrdiff_t k = 0; k < 3; ++k)
      added_[into[static_cast<std::size_t>(k)]] = {shape, {all.begin() + k * each, all.begin() + (k + 1) * each}};
    dropped_.push_back(name);
  }
  // Gives a weight another shape of as many elements. It is then f32.
  void reshape(const std::string& name, const std::string& into, const std::vector<std::int64_t>& shape) {
    if (const StoredTensor* t = w_.find(name)) added_[into] = {shape, Weights::read(*t)}, dropped_.push_back(name);
  }
  // The checkpoint with the names of a table, and a config.json with these members.
  Weights finished(std::span<const WeightName> names, const std::string& members) const {
    const std::int64_t classes = has_head() ? config_.size("num_classes", 1000) : 0;
    const std::string json =
        str_cat("{", members, classes > 0 ? str_cat(", \"num_labels\": ", classes) : std::string(), "}");
    return w_
        .part([&](std::string_view name) -> std::optional<std::string> {
          if (std::ranges::count(dropped_, name) > 0) return std::nullopt;
          for (const WeightName& row : names)
            if (auto now = rewritten(name, row.theirs, row.ours)) return now;
          return std::string(name);
        })
        .with(json, added_);
  }
  bool has_head() const { return has("head.weight") || has("head.fc.weight"); }

 private:
  const Weights& w_;
  const ConfigFile& config_;
  std::map<std::string, NewTensor> added_ = {};
  std::vector<std::string> dropped_ = {};
};

std::string listed_numbers(const std::vector<std::int64_t>& all) {
  std::string s = "[";
  for (std::size_t k = 0; k < all.size(); ++k) s += str_cat(k ? ", " : "", all[k]);
  return s + "]";
}

// The side of the pictures that the file says.
std::int64_t picture_side(const ConfigFile& config) {
  constexpr std::int64_t kUsual = 224;
  if (config.is_object("model_args"))
    if (const auto size = config.section("model_args").sizes("img_size"); !size.empty()) return size[0];
  const std::vector<std::int64_t> size = config.section("pretrained_cfg").sizes("input_size");
  return size.size() == 3 ? size[1] : kUsual;
}

constexpr WeightName kVitNames[] = {
    {"cls_token", "embeddings.cls_token"},
    {"dist_token", "embeddings.distillation_token"},
    {"pos_embed", "embeddings.position_embeddings"},
    {"patch_embed.proj", "embeddings.patch_embeddings.projection"},
    {"blocks.#.norm1", "encoder.layer.#.layernorm_before"},
    {"blocks.#.norm2", "encoder.layer.#.layernorm_after"},
    {"blocks.#.attn.proj", "encoder.layer.#.attention.output.dense"},
    {"blocks.#.mlp.fc1", "encoder.layer.#.intermediate.dense"},
    {"blocks.#.mlp.fc2", "encoder.layer.#.output.dense"},
    {"norm", "layernorm"},
};

LoadedModel load_timm_vit(const Weights& w, const ConfigFile& config, const LoadModelOptions& o) {
  Translation t(w, config);
  const std::string name = config.text("architecture");
  const std::int64_t layers = t.count("blocks.", ".attn.qkv.weight"), width = t.extent("pos_embed", 2);
  const bool distilled = t.has("dist_token"), bias = t.has("blocks.0.attn.qkv.bias");
  const std::int64_t places = t.extent("pos_embed", 1) - (distilled ? 2 : 1);
  const std::int64_t patch = t.extent("patch_embed.proj.weight", 2);
  const std::int64_t side = std::llround(std::sqrt(static_cast<double>(std::max<std::int64_t>(0, places))));
  if (places < 1 || side * side != places)
    config.fail("pos_embed is for ", places, " patches beside the class token, which are no square");
  if (const std::string pool = config.text("global_pool", "token"); pool != "token")
    config.fail("global_pool is ", in_quotes(pool), ", and only 'token' is supported for ", in_quotes(name));
  const bool large = name.find("huge") != name.npos || name.find("giga") != name.npos ||
                     name.find("giant") != name.npos || name.find("so400m") != name.npos;
  for (std::int64_t k = 0; k < layers; ++k)
    for (const char* part : {"weight", "bias"}) {
      const auto to = [&](const char* which) {
        return str_cat("encoder.layer.", k, ".attention.attention.", which, ".", part);
      };
      t.split(str_cat("blocks.", k, ".attn.qkv.", part), {to("query"), to("key"), to("value")});
    }
  std::vector<WeightName> names(std::begin(kVitNames), std::end(kVitNames));
  names.push_back({"head_dist", "distillation_classifier"});
  names.push_back({"head", distilled ? "cls_classifier" : "classifier"});
  const std::string base = distilled ? "DeiT" : "ViT";
  const std::string head = distilled ? "ForImageClassificationWithTeacher" : "ForImageClassification";
  const Weights translated = t.finished(
      names,
      str_cat("\"model_type\": \"", distilled ? "deit" : "vit", "\", \"architectures\": [\"", base,
              t.has_head() ? head : "Model", "\"], \"hidden_size\": ", width, ", \"num_hidden_layers\": ", layers,
              ", \"num_attention_heads\": ", large ? 16 : std::max<std::int64_t>(1, width / 64),
              ", \"intermediate_size\": ", t.extent("blocks.0.mlp.fc1.weight", 0), ", \"image_size\": ", side * patch,
              ", \"patch_size\": ", patch, ", \"num_channels\": ", t.extent("patch_embed.proj.weight", 1),
              ", \"layer_norm_eps\": 1e-6, \"qkv_bias\": ", bias ? "true" : "false"));
  return load_vit(translated, ConfigFile(translated), o);
}

constexpr WeightName kNextNames[] = {
    {"stem.0", "embeddings.patch_embeddings"},
    {"stem.1", "embeddings.layernorm"},
    {"stages.#.downsample", "encoder.stages.#.downsampling_layer"},
    {"stages.#.blocks.#.conv_dw", "encoder.stages.#.layers.#.dwconv"},
    {"stages.#.blocks.#.norm", "encoder.stages.#.layers.#.layernorm"},
    {"stages.#.blocks.#.mlp.fc1", "encoder.stages.#.layers.#.pwconv1"},
    {"stages.#.blocks.#.mlp.fc2", "encoder.stages.#.layers.#.pwconv2"},
    {"stages.#.blocks.#.gamma", "encoder.stages.#.layers.#.layer_scale_parameter"},
    {"head.norm", "layernorm"},
    {"head.fc", "classifier"},
};

LoadedModel load_timm_convnext(const Weights& w, const ConfigFile& config, const LoadModelOptions& o) {
  Translation t(w, config);
  const bool second = t.has("stages.0.blocks.0.mlp.grn.weight");
  std::vector<std::int64_t> depths, widths;
  for (std::int64_t s = 0; t.has(str_cat("stages.", s, ".blocks.0.conv_dw.weight")); ++s) {
    const std::string stage = str_cat("stages.", s, ".blocks.");
    depths.push_back(t.count(stage, ".conv_dw.weight"));
    widths.push_back(t.extent(stage + "0.conv_dw.weight", 0));
    for (std::int64_t k = 0; k < depths.back(); ++k) {
      const std::string theirs = str_cat(stage, k, ".mlp."), ours = str_cat("encoder.stages.", s, ".layers.", k, ".");
      for (const char* part : {"weight", "bias"})
        if (second)
          t.reshape(str_cat(theirs, "grn.", part), str_cat(ours, "grn.", part),
                    {1, 1, 1, t.extent(str_cat(theirs, "grn.", part), 0)});
      for (const auto& [fc, conv] : {std::pair{"fc1.weight", "pwconv1.weight"}, {"fc2.weight", "pwconv2.weight"}})
        if (const StoredTensor* matrix = w.find(theirs + fc); matrix && matrix->shape.size() == 4)  // as a convolution
          t.reshape(theirs + fc, ours + conv, {matrix->shape[0], matrix->shape[1]});
    }
  }
  if (depths.empty()) config.fail("there is no weight 'stages.0.blocks.0.conv_dw.weight', which a ConvNeXt has");
  const bool scaled = t.has("stages.0.blocks.0.gamma");
  const Weights translated = t.finished(
      kNextNames,
      str_cat("\"model_type\": \"", second ? "convnextv2" : "convnext", "\", \"depths\": ", listed_numbers(depths),
              ", \"hidden_sizes\": ", listed_numbers(widths), ", \"patch_size\": ", t.extent("stem.0.weight", 2),
              ", \"num_channels\": ", t.extent("stem.0.weight", 1), ", \"image_size\": ", picture_side(config),
              ", \"layer_norm_eps\": 1e-6",
              second   ? ""
              : scaled ? ", \"layer_scale_init_value\": 1"
                       : ", \"layer_scale_init_value\": 0"));
  return load_convnext(translated, ConfigFile(translated), o);
}

constexpr WeightName kSwinNames[] = {
    {"patch_embed.proj", "embeddings.patch_embeddings.projection"},
    {"patch_embed.norm", "embeddings.norm"},
    {"layers.#.blocks.#.norm1", "encoder.layers.#.blocks.#.layernorm_before"},
    {"layers.#.blocks.#.norm2", "encoder.layers.#.blocks.#.layernorm_after"},
    {"layers.#.blocks.#.attn.proj", "encoder.layers.#.blocks.#.attention.output.dense"},
    {"layers.#.blocks.#.attn.relative_position_bias_table",
     "encoder.layers.#.blocks.#.attention.self.relative_position_bias_table"},
    {"layers.#.blocks.#.attn.relative_position_index",
     "encoder.layers.#.blocks.#.attention.self.relative_position_index"},
    {"layers.#.blocks.#.mlp.fc1", "encoder.layers.#.blocks.#.intermediate.dense"},
    {"layers.#.blocks.#.mlp.fc2", "encoder.layers.#.blocks.#.output.dense"},
    // patches are joined before the stage here, and after the stage before it there
    {"layers.1.downsample", "encoder.layers.0.downsample"},
    {"layers.2.downsample", "encoder.layers.1.downsample"},
    {"layers.3.downsample", "encoder.layers.2.downsample"},
    {"norm", "layernorm"},
    {"head.fc", "classifier"},
};

LoadedModel load_timm_swin(const Weights& w, const ConfigFile& config, const LoadModelOptions& o) {
  Translation t(w, config);
  std::vector<std::int64_t> depths, heads;
  const std::string table = ".attn.relative_position_bias_table";
  for (std::int64_t s = 0; t.has(str_cat("layers.", s, ".blocks.0", table)); ++s) {
    const std::string stage = str_cat("layers.", s, ".blocks.");
    depths.push_back(t.count(stage, table)), heads.push_back(t.extent(stage + "0" + table, 1));
    for (std::int64_t k = 0; k < depths.back(); ++k)
      for (const char* part : {"weight", "bias"}) {
        const auto to = [&](const char* which) {
          return str_cat("encoder.", stage, k, ".attention.self.", which, ".", part);
        };
        t.split(str_cat(stage, k, ".attn.qkv.", part), {to("query"), to("key"), to("value")});
      }
  }
  constexpr std::size_t kMostStages = 4;
  if (depths.empty() || depths.size() > kMostStages) config.fail("it has ", depths.size(), " stages of windows");
  const std::int64_t distances = t.extent("layers.0.blocks.0" + table, 0);
  const std::int64_t window = (std::llround(std::sqrt(static_cast<double>(distances))) + 1) / 2;
  const std::int64_t width = t.extent("patch_embed.proj.weight", 0);
  const double ratio =
      static_cast<double>(t.extent("layers.0.blocks.0.mlp.fc1.weight", 0)) / static_cast<double>(width);
  const Weights translated = t.finished(
      kSwinNames, str_cat("\"model_type\": \"swin\", \"depths\": ", listed_numbers(depths),
                          ", \"num_heads\": ", listed_numbers(heads), ", \"embed_dim\": ", width,
                          ", \"patch_size\": ", t.extent("patch_embed.proj.weight", 2),
                          ", \"num_channels\": ", t.extent("patch_embed.proj.weight", 1), ", \"window_size\": ", window,
                          ", \"mlp_ratio\": ", ratio, ", \"image_size\": ", picture_side(config),
                          ", \"qkv_bias\": ", t.has("layers.0.blocks.0.attn.qkv.bias") ? "true" : "false"));
  return load_swin(translated, ConfigFile(translated), o);
}

}  // namespace

bool is_timm(const ConfigFile& config) { return config.has("architecture") && config.has("pretrained_cfg"); }

LoadedModel load_timm(const Weights& w, const ConfigFile& config, const LoadModelOptions& o) {
  const std::string name = config.text("architecture"), plain = name.substr(0, name.find('.'));
  if (config.is_object("model_args")) {
    const ConfigFile args = config.section("model_args");
    args.neutral({"num_classes", "in_chans", "global_pool", "img_size"});
    args.require_all_known(name);
  }
  config.neutral({"model_args", "architecture", "pretrained_cfg", "num_features", "num_classes", "global_pool",
                  "label_names", "label_descriptions", "license"});
  config.require_all_known(name);
  const std::vector<std::string> labels =
      config.is_object("label_names") ? std::vector<std::string>() : config.texts("label_names");
  const auto made = [&](LoadedModel m) {
    if (labels.size() == m.labels.size()) m.labels = labels;
    return m;
  };
  if (plain.starts_with("vit_") || plain.starts_with("deit_")) return made(load_timm_vit(w, config, o));
  if (plain.starts_with("convnext")) return made(load_timm_convnext(w, config, o));
  if (plain.starts_with("swin_")) return made(load_timm_swin(w, config, o));
  if (std::ranges::count(kResNets, plain) > 0) {
    LoadModelOptions of_size = o;
    if (o.height == 0 && o.width == 0) of_size.height = of_size.width = picture_side(config);
    return made(load_torchvision(w.with("", {}), of_size));
  }
  config.fail("the architecture ", in_quotes(name),
              " of timm is not supported; vit_*, deit_*, convnext*, swin_* and torchvision's ResNets are");
}

}  // namespace lc
