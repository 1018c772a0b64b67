#include "lightcone/models/vision_transformer/vit.h"

#include "lightcone/io/printable.h"
#include "lightcone/models/blocks/activation.h"
#include "lightcone/models/vision_transformer/tower_config.h"
#include "lightcone/ops/shape.h"
#include "lightcone/runtime/names.h"

namespace lc {
namespace {

struct Family {
  std::string_view type, class_name;
  std::int64_t class_tokens;
  bool dino, registers;
};
constexpr Family kFamilies[] = {{"vit", "ViT", 1, false, false},
                                {"deit", "DeiT", 2, false, false},
                                {"dinov2", "Dinov2", 1, true, false},
                                {"dinov2_with_registers", "Dinov2WithRegisters", 1, true, true}};

enum class Head : std::uint8_t { None, Classifier, WithTeacher };

struct Config : TowerConfig {
  Family family = {};
  Head head = Head::None;
  bool pooler = false;
  std::int64_t pooled = 0;  // width of the pooler
  std::string pooler_activation = "tanh";
  std::vector<std::string> labels = {};
  std::string architecture = {};
};

const Family& family_of(const ConfigFile& c) {
  const std::string type = c.text("model_type");
  for (const Family& f : kFamilies)
    if (f.type == type) return f;
  c.fail("model_type ", in_quotes(type), " is no transformer of pictures");
}

// The head by the class in `architectures`, or, where the file names none, by its weights.
void read_head(const ConfigFile& c, const Weights& w, Config& v) {
  const std::vector<std::string> all = c.texts("architectures");
  const std::string base(v.family.class_name);
  const bool classifies = w.find("classifier.weight") != nullptr;
  v.architecture = !all.empty() ? all.front() : base + (classifies ? "ForImageClassification" : "Model");
  if (v.architecture == base + "ForImageClassification") v.head = Head::Classifier;
  else if (v.architecture == "DeiTForImageClassificationWithTeacher") v.head = Head::WithTeacher;
  else if (v.architecture != base + "Model" && v.architecture != base + "Backbone")
    c.fail("the architecture ", in_quotes(v.architecture), " is not known for model_type ", in_quotes(v.family.type),
           "; known are ", base, "Model and ", base, "ForImageClassification");
}

Config read_config(const ConfigFile& file, const Weights& w, const LoadModelOptions& o) {
  Config v;
  v.family = family_of(file);
  const bool dino = v.family.dino;
  static_cast<TowerConfig&>(v) =
      read_tower(file, {.block = {.width = 768, .heads = 12, .inner = dino ? -1 : 3072, .eps = dino ? 1e-6 : 1e-12},
                        .patches = {.patch_height = dino ? 14 : 16, .height = 224}});
  v.patches.class_tokens = v.family.class_tokens;
  v.block.query_key_value_bias = file.flag("qkv_bias", true);
  if (dino) {
    v.block.layer_scale = true, v.block.gated = file.flag("use_swiglu_ffn", false);
    const double ratio = file.number("mlp_ratio", 4);
    if (constexpr double kMost = 1000; !(ratio > 0 && ratio <= kMost)) file.fail("mlp_ratio is ", ratio);
    v.block.inner = static_cast<std::int64_t>(static_cast<double>(v.width()) * ratio);
    if (v.block.gated) {
      v.block.activation = "silu";
      v.block.inner = (v.block.inner * 2 / 3 + 7) / 8 * 8;  // a multiple of 8, as transformers rounds
    }
    if (v.block.inner < 1) file.fail("mlp_ratio leaves no width of the network");
    v.patches.antialias = v.family.registers;
    if (v.family.registers) v.patches.registers = file.size("num_register_tokens", 4);
    // these concern training, or what a backbone returns
    file.neutral({"layerscale_value", "drop_path_rate", "use_mask_token", "apply_layernorm", "reshape_hidden_states",
                  "out_features", "out_indices", "stage_names"});
  } else {
    v.pooled = file.size("pooler_output_size", v.width());
    v.pooler_activation = file.text("pooler_act", "tanh");
    file.neutral({"encoder_stride"});
  }
  read_patches(file, v, o);
  read_head(file, w, v);
  if (v.head != Head::None) v.labels = file.labels();
  file.require_all_known(v.family.type);
  return v;
}

constexpr WeightName kNames[] = {
    {"embeddings.mask_token", ""},
    {"embeddings.cls_token", "patches.cls_token"},
    {"embeddings.distillation_token", "patches.distillation_token"},
    {"embeddings.register_tokens", "patches.register_tokens"},
    {"embeddings.position_embeddings", "patches.positions"},
    {"embeddings.patch_embeddings.projection", "patches.projection"},
    {"encoder.layer.#.attention.attention.query", "layers.#.query"},
    {"encoder.layer.#.attention.attention.key", "layers.#.key"},
    {"encoder.layer.#.attention.attention.value", "layers.#.value"},
    {"encoder.layer.#.attention.output.dense", "layers.#.output"},
    {"encoder.layer.#.layernorm_before", "layers.#.attention_norm"},
    {"encoder.layer.#.layernorm_after", "layers.#.feed_forward_norm"},
    {"encoder.layer.#.intermediate.dense", "layers.#.up"},
    {"encoder.layer.#.output.dense", "layers.#.down"},
    {"encoder.layer.#.norm1", "layers.#.attention_norm"},
    {"encoder.layer.#.norm2", "layers.#.feed_forward_norm"},
    {"encoder.layer.#.layer_scale1.lambda1", "layers.#.attention_scale"},
    {"encoder.layer.#.layer_scale2.lambda1", "layers.#.feed_forward_scale"},
    {"encoder.layer.#.mlp.fc1", "layers.#.up"},
    {"encoder.layer.#.mlp.fc2", "layers.#.down"},
    {"encoder.layer.#.mlp.weights_in", "layers.#.up"},
    {"encoder.layer.#.mlp.weights_out", "layers.#.down"},
    // transformers 5 has other names
    {"layers.#.attention.q_proj", "layers.#.query"},
    {"layers.#.attention.k_proj", "layers.#.key"},
    {"layers.#.attention.v_proj", "layers.#.value"},
    {"layers.#.attention.o_proj", "layers.#.output"},
    {"layers.#.layernorm_before", "layers.#.attention_norm"},
    {"layers.#.layernorm_after", "layers.#.feed_forward_norm"},
    {"layers.#.mlp.fc1", "layers.#.up"},
    {"layers.#.mlp.fc2", "layers.#.down"},
    {"encoder.layer.#.attention.q_proj", "layers.#.query"},
    {"encoder.layer.#.attention.k_proj", "layers.#.key"},
    {"encoder.layer.#.attention.v_proj", "layers.#.value"},
    {"encoder.layer.#.attention.o_proj", "layers.#.output"},
    {"layernorm", "norm"},
    {"pooler.dense", "pooler", true},
    {"cls_classifier", "cls_classifier", true},
    {"distillation_classifier", "distillation_classifier", true},
    {"classifier", "classifier", true},
};
constexpr std::string_view kPrefixes[] = {"vit.", "deit.", "dinov2.", "dinov2_with_registers."};

// A tower with its head as a module.
class Vit {
 public:
  explicit Vit(const Config& c)
      : c_(c),
        patches_(c.patches),
        layers_(static_cast<std::size_t>(c.layers), TransformerBlock(c.block)),
        norm_(c.width(), {.eps = c.block.eps}),
        pooler_(c.width(), c.pooled),
        classifier_(c.family.dino ? 2 * c.width() : c.width(), std::ssize(c.labels)),
        teacher_(c.width(), std::ssize(c.labels)) {}
  void visit(nn::Visitor& v) {
    v("patches", patches_)("layers", layers_)("norm", norm_);
    if (c_.pooler) v("pooler", pooler_);
    if (c_.head == Head::Classifier) v("classifier", classifier_);
    if (c_.head == Head::WithTeacher) v("cls_classifier", classifier_)("distillation_classifier", teacher_);
  }
  std::map<std::string, Tensor> operator()(const Tensor& pictures) const {
    Tensor x = patches_(pictures);
    for (const TransformerBlock& layer : layers_) x = layer(x);
    x = norm_(x);
    const auto token = [&](std::int64_t k) { return select(x, 1, k); };
    std::map<std::string, Tensor> out{{"hidden", x}};
    if (c_.pooler) out["pooled"] = activate(c_.pooler_activation, pooler_(token(0)));
    if (c_.family.dino) out["pooled"] = token(0);
    if (c_.head == Head::Classifier) out["logits"] = classifier_(c_.family.dino ? with_patches(x) : token(0));
    if (c_.head == Head::WithTeacher) {
      const Tensor cls = out["cls_logits"] = classifier_(token(0));
      const Tensor distilled = out["distillation_logits"] = teacher_(token(1));
      out["logits"] = (cls + distilled) / 2;
    }
    return out;
  }

 private:
  // The class token beside the mean of the patches, which DINOv2 classifies.
  Tensor with_patches(const Tensor& x) const {
    const std::int64_t before = 1 + c_.patches.registers;
    const Tensor patches = narrow(x, 1, before, x.extent(1) - before);
    return cat({select(x, 1, 0), mean(patches, {1})}, 1);
  }

  Config c_;
  PatchEmbedding patches_;
  std::vector<TransformerBlock> layers_;
  nn::LayerNorm<> norm_;
  nn::Linear<> pooler_, classifier_, teacher_;
};

}  // namespace

LoadedModel load_vit(const Weights& w, const ConfigFile& config, const LoadModelOptions& o) {
  Config c = read_config(config, w, o);
  LoadedModel m(config.text("model_type"), WeightTable(w, kPrefixes, kNames));
  if (c.layers > std::ssize(w.tensors())) config.fail(c.layers, " layers, and ", w.tensors().size(), " weights");
  // as in transformers, a classifier has no pooler, whatever its file holds
  c.pooler = !c.family.dino && c.head == Head::None && m.weights.has("pooler.weight");
  m.architecture = c.architecture, m.labels = c.labels;
  const Vit& vit = m.add(Vit(c));
  m.weights.require_all_used(str_cat("a ", c.architecture));
  const PictureSize size = picture_size(config, o, {c.patches.height, c.patches.width_of_picture});
  for (const auto& [name, value] : vit(picture_input(m, o, c.patches.channels, size))) m.give(name, value);
  m.retrieve(o);
  return m;
}

}  // namespace lc
