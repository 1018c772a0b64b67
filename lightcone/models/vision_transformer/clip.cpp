#include "lightcone/models/vision_transformer/clip.h"

#include "lightcone/io/printable.h"
#include "lightcone/models/vision_transformer/clip_towers.h"
#include "lightcone/ops/shape.h"
#include "lightcone/runtime/names.h"

namespace lc {
namespace {

constexpr WeightName kClipNames[] = {
    {"vision_model.embeddings.position_ids", ""},
    {"text_model.embeddings.position_ids", ""},
    {"vision_model.embeddings.class_embedding", "vision.patches.cls_token"},
    {"vision_model.embeddings.patch_embedding", "vision.patches.projection"},
    {"vision_model.embeddings.position_embedding.weight", "vision.patches.positions"},
    {"vision_model.pre_layrnorm", "vision.norm_before"},
    {"vision_model.post_layernorm", "vision.norm"},
    {"vision_model.head.probe", "vision.pool.probe"},
    {"vision_model.head.attention.in_proj_weight", "vision.pool.in_weight"},
    {"vision_model.head.attention.in_proj_bias", "vision.pool.in_bias"},
    {"vision_model.head.attention.out_proj", "vision.pool.output"},
    {"vision_model.head.layernorm", "vision.pool.norm"},
    {"vision_model.head.mlp.fc1", "vision.pool.up"},
    {"vision_model.head.mlp.fc2", "vision.pool.down"},
    {"text_model.embeddings.token_embedding", "text.tokens"},
    {"text_model.embeddings.position_embedding", "text.positions"},
    {"text_model.final_layer_norm", "text.norm"},
    {"text_model.head", "text.head"},
    {"visual_projection", "vision_projection"},
    {"text_projection", "text_projection"},
    {"logit_scale", "logit_scale"},
    {"logit_bias", "logit_bias"},
    {"classifier", "classifier"},
#define LC_TOWER(theirs, ours)                                                      \
  {theirs ".encoder.layers.#.self_attn.q_proj", ours ".layers.#.query"},            \
      {theirs ".encoder.layers.#.self_attn.k_proj", ours ".layers.#.key"},          \
      {theirs ".encoder.layers.#.self_attn.v_proj", ours ".layers.#.value"},        \
      {theirs ".encoder.layers.#.self_attn.out_proj", ours ".layers.#.output"},     \
      {theirs ".encoder.layers.#.layer_norm1", ours ".layers.#.attention_norm"},    \
      {theirs ".encoder.layers.#.layer_norm2", ours ".layers.#.feed_forward_norm"}, \
      {theirs ".encoder.layers.#.mlp.fc1", ours ".layers.#.up"}, {                  \
    theirs ".encoder.layers.#.mlp.fc2", ours ".layers.#.down"                       \
  }
    LC_TOWER("vision_model", "vision"),
    LC_TOWER("text_model", "text"),
#undef LC_TOWER
};

// What a class of transformers consists of.
struct Class {
  std::string_view type, name;
  ClipKind kind;
  bool pictures, texts, projects, classifies;
};
constexpr Class kClasses[] = {
    {"clip", "CLIPModel", ClipKind::Clip, true, true, true, false},
    {"clip_vision_model", "CLIPVisionModel", ClipKind::Clip, true, false, false, false},
    {"clip_vision_model", "CLIPVisionModelWithProjection", ClipKind::Clip, true, false, true, false},
    {"clip_text_model", "CLIPTextModel", ClipKind::Clip, false, true, false, false},
    {"clip_text_model", "CLIPTextModelWithProjection", ClipKind::Clip, false, true, true, false},
    {"siglip", "SiglipModel", ClipKind::Siglip, true, true, false, false},
    {"siglip", "SiglipForImageClassification", ClipKind::Siglip, true, false, false, true},
    {"siglip_vision_model", "SiglipVisionModel", ClipKind::Siglip, true, false, false, false},
    {"siglip_text_model", "SiglipTextModel", ClipKind::Siglip, false, true, false, false},
};

// The class that `architectures` names, or the first of the type.
const Class& class_of(const ConfigFile& c) {
  const std::string type = c.text("model_type");
  const std::vector<std::string> all = c.texts("architectures");
  std::vector<std::string> known;
  for (const Class& k : kClasses) {
    if (k.type != type) continue;
    if (all.empty() || all.front() == k.name) return k;
    known.emplace_back(k.name);
  }
  c.fail("the architecture ", in_quotes(all.front()), " is not known for model_type ", in_quotes(type), "; known are ",
         listed(known));
}

// The names of weights; files of one tower may leave out which one it is.
std::vector<WeightName> names_of(bool pictures, bool texts) {
  std::vector<WeightName> names(std::begin(kClipNames), std::end(kClipNames));
  if (pictures && texts) return names;
  const std::string_view tower = pictures ? "vision_model." : "text_model.";
  for (const WeightName& n : kClipNames)
    if (n.theirs.starts_with(tower)) names.push_back({n.theirs.substr(tower.size()), n.ours});
  return names;
}

// The section of a tower in the file of a pair. Files of 2022 have a second one, which counts.
ConfigFile section_of(const ConfigFile& c, const char* key, const char* dict) {
  c.neutral({key, dict});
  return c.section(c.has(dict) ? dict : key);
}

// Both towers with what joins them.
class Pair {
 public:
  Pair(const Class& k, std::int64_t labels) : class_(k), labels_(labels) {}
  Class class_;
  std::int64_t labels_, dim_ = 0;
  std::optional<PictureTower> vision_;
  std::optional<TextTower> text_;
  nn::Linear<> vision_projection_{1, 1}, text_projection_{1, 1}, classifier_{1, 1};
  Tensor scale_, bias_;

  void visit(nn::Visitor& v) {
    if (vision_) v("vision", *vision_);
    if (text_) v("text", *text_);
    if (class_.projects && vision_) {
      vision_projection_ = nn::Linear<>(vision_->config().width(), dim_, {.bias = false});
      v("vision_projection", vision_projection_);
    }
    if (class_.projects && text_) {
      text_projection_ = nn::Linear<>(text_->config().width(), dim_, {.bias = false});
      v("text_projection", text_projection_);
    }
    if (class_.classifies) {
      classifier_ = nn::Linear<>(vision_->config().width(), labels_);
      v("classifier", classifier_);
    }
    if (!vision_ || !text_) return;
    const bool clip = class_.kind == ClipKind::Clip;
    v.parameter("logit_scale", scale_, clip ? Shape{} : Shape{1}, nn::constant_init(0));
    if (!clip) v.parameter("logit_bias", bias_, {1}, nn::constant_init(0));
  }

  std::map<std::string, Tensor> operator()(const Tensor& pictures, const Tensor& ids, const Tensor& mask) const {
    std::map<std::string, Tensor> out;
    const auto give = [&](const char* name, const Tensor& x) {
      if (x.defined()) out[name] = x;
    };
    Tensor image, text;
    if (vision_) {
      const TowerOutput o = (*vision_)(pictures);
      give("image_hidden", o.hidden), give("image_pooled", o.pooled);
      image = class_.projects ? vision_projection_(o.pooled) : o.pooled;
      if (class_.classifies) give("logits", classifier_(mean(o.hidden, {1})));
    }
    if (text_) {
      const TowerOutput o = (*text_)(ids, mask);
      give("text_hidden", o.hidden), give("text_pooled", o.pooled), give("text_penultimate", o.penultimate);
      text = class_.projects ? text_projection_(o.pooled) : o.pooled;
    }
    if (vision_ && text_) {
      give("image_features", image), give("text_features", text);
      image = unit(image), text = unit(text);
      Tensor logits = matmul(text, image.t()) * exp(scale_);
      if (bias_.defined()) logits = logits + bias_;
      give("logits_per_text", logits), give("logits_per_image", logits.t());
    }
    if (class_.projects || (vision_ && text_)) give("image_embeds", image), give("text_embeds", text);
    return out;
  }

 private:
  static Tensor unit(const Tensor& x) { return x / sqrt(sum(x * x, {1}, true)); }
};

// The keys of a pair beside its sections, and whether the towers' vectors can be compared.
void read_joint(const ConfigFile& config, const Class& k, Pair& made) {
  if (k.kind == ClipKind::Clip) made.dim_ = config.size("projection_dim", 512);
  config.neutral({"logit_scale_init_value", "initializer_factor", "text_config", "text_config_dict", "vision_config",
                  "vision_config_dict"});
  config.require_all_known(k.type);
  if (k.kind != ClipKind::Siglip || k.classifies) return;
  if (!made.vision_->config().pooler) config.fail("vision_use_head is false, and pairs compare what the head gives");
  if (made.vision_->config().width() != made.text_->config().projection)
    config.fail("vectors of pictures have ", made.vision_->config().width(), " numbers, and those of texts ",
                made.text_->config().projection);
}

// The towers of a class by config.json.
Pair read_pair(const Weights& w, const ConfigFile& config, const LoadModelOptions& o, const Class& k) {
  const bool pair = k.type == "clip" || k.type == "siglip";
  Pair made(k, k.classifies ? std::ssize(config.labels()) : 0);
  const auto tower = [&](const char* key, const char* dict, bool texts) {
    const ConfigFile section = pair ? section_of(config, key, dict) : config;
    const ClipTowerConfig c = read_clip_tower(section, k.kind, texts, o);
    if (c.layers > std::ssize(w.tensors())) config.fail(c.layers, " layers, and ", w.tensors().size(), " weights");
    if (!pair && k.projects) made.dim_ = c.projection;
    return c;
  };
  if (k.pictures) made.vision_.emplace(tower("vision_config", "vision_config_dict", false));
  if (k.texts) made.text_.emplace(tower("text_config", "text_config_dict", true));
  if (pair) read_joint(config, k, made);
  return made;
}

}  // namespace

std::vector<WeightName> picture_tower_names() { return names_of(true, false); }

LoadedModel load_clip(const Weights& w, const ConfigFile& config, const LoadModelOptions& o) {
  const Class& k = class_of(config);
  Pair made = read_pair(w, config, o, k);
  LoadedModel m(std::string(k.type), WeightTable(w, {}, names_of(k.pictures, k.texts)));
  m.architecture = k.name;
  if (k.classifies) m.labels = config.labels();
  const Pair& towers = m.add(std::move(made));
  m.weights.require_all_used(str_cat("a ", k.name));
  Tensor pictures, ids, mask;
  if (k.pictures) {
    const PatchEmbeddingOptions& p = towers.vision_->config().patches;
    pictures = picture_input(m, o, p.channels, picture_size(config, o, {p.height, p.width_of_picture}));
  }
  if (k.texts) {
    const std::int64_t length = towers.text_->config().positions;
    m.limits["texts"] = o.batch, m.limits["length"] = length;
    const Shape shape{Dim::symbol("texts", 1, o.batch), Dim::symbol("length", 1, length)};
    ids = m.inputs["input_ids"] = m.graph().input("input_ids", shape, DType::I64);
    mask = m.inputs["attention_mask"] = m.graph().input("attention_mask", shape, DType::I64);
  }
  for (const auto& [name, value] : towers(pictures, ids, mask)) m.give(name, value);
  m.retrieve(o);
  return m;
}

}  // namespace lc
