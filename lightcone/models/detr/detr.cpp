#include "lightcone/models/detr/detr.h"

#include "lightcone/io/printable.h"
#include "lightcone/models/blocks/config.h"
#include "lightcone/models/convnet/torchvision.h"
#include "lightcone/models/convnet/transformers_residual.h"
#include "lightcone/models/detr/detr_transformer.h"
#include "lightcone/models/files/pictures.h"
#include "lightcone/ops/shape.h"

namespace lc {
namespace {

constexpr std::int64_t kPicture = 800;

#define LC_ATTENTION(theirs, ours)                                                                       \
  {theirs ".q_proj", ours ".query"}, {theirs ".k_proj", ours ".key"}, {theirs ".v_proj", ours ".value"}, \
      {theirs ".out_proj", ours ".output"}, {                                                            \
    theirs ".o_proj", ours ".output"                                                                     \
  }
#define LC_NETWORK(theirs, ours)                                                               \
  {theirs ".fc1", ours ".up"}, {theirs ".fc2", ours ".down"}, {theirs ".mlp.fc1", ours ".up"}, \
      {theirs ".mlp.fc2", ours ".down"}, {theirs ".final_layer_norm", ours ".norm"}, {         \
    theirs ".self_attn_layer_norm", ours ".attention_norm"                                     \
  }
constexpr WeightName kDetrNames[] = {
    {"model.backbone.model.embedder.embedder", "backbone.embedder"},
    {"model.backbone.model.encoder.stages", "backbone.stages"},
    {"model.backbone.conv_encoder.model.embedder.embedder", "backbone.embedder"},
    {"model.backbone.conv_encoder.model.encoder.stages", "backbone.stages"},
    {"model.input_projection", "projection"},
    {"model.query_position_embeddings.weight", "transformer.queries"},
    LC_ATTENTION("model.encoder.layers.#.self_attn", "transformer.encoder.#.attention"),
    LC_NETWORK("model.encoder.layers.#", "transformer.encoder.#"),
    LC_ATTENTION("model.decoder.layers.#.self_attn", "transformer.decoder.#.attention"),
    LC_ATTENTION("model.decoder.layers.#.encoder_attn", "transformer.decoder.#.cross"),
    LC_NETWORK("model.decoder.layers.#", "transformer.decoder.#"),
    {"model.decoder.layers.#.encoder_attn_layer_norm", "transformer.decoder.#.cross_norm"},
    {"model.decoder.layernorm", "transformer.norm"},
    {"class_labels_classifier", "classes"},
    {"bbox_predictor.layers", "boxes"},
};
#undef LC_ATTENTION
#undef LC_NETWORK

// What stands before the names of a backbone of timm, which are torchvision's; "": the backbone is transformers'.
std::string timm_prefix(const Weights& w) {
  for (const char* prefix : {"model.backbone.conv_encoder.model.", "model.backbone.model."})
    if (w.find(str_cat(prefix, "conv1.weight"))) return prefix;
  return "";
}

ResidualOptions read_backbone(const ConfigFile& file, const Weights& w) {
  const std::string prefix = timm_prefix(w);
  file.neutral({"backbone", "use_timm_backbone", "use_pretrained_backbone", "backbone_kwargs", "backbone_config"});
  if (!prefix.empty()) return torchvision_resnet(w, prefix);  // the shapes say what backbone it is
  const ConfigFile section = file.section("backbone_config");
  ResidualOptions o = read_residual(section, w);
  section.require_all_known("the backbone of a DETR");
  return o;
}

DetrTransformerOptions read_transformer(const ConfigFile& file, const Weights& w) {
  DetrTransformerOptions t;
  t.width = file.size("d_model", 256), t.queries = file.size("num_queries", 100);
  t.encoder_layers = file.size("encoder_layers", 6), t.decoder_layers = file.size("decoder_layers", 6);
  t.encoder_heads = file.size("encoder_attention_heads", 8), t.decoder_heads = file.size("decoder_attention_heads", 8);
  t.encoder_inner = file.size("encoder_ffn_dim", 2048), t.decoder_inner = file.size("decoder_ffn_dim", 2048);
  t.activation = known_activation(file, "activation_function", "relu");
  const std::vector<std::int64_t> layers{t.encoder_layers, t.decoder_layers};
  require_fewer_layers(file, layers, w);
  for (const std::int64_t heads : {t.encoder_heads, t.decoder_heads})
    if (t.width % heads != 0) file.fail(heads, " attention heads do not divide a width of ", t.width);
  if (t.width % 4 != 0) file.fail("d_model is ", t.width, ", and positions need a multiple of 4");
  file.only("position_embedding_type", "sine");
  file.lacks({"dilation"});
  // these concern training, or repeat what is read
  file.neutral({"encoder_layerdrop",
                "decoder_layerdrop",
                "init_std",
                "init_xavier_std",
                "auxiliary_loss",
                "class_cost",
                "bbox_cost",
                "giou_cost",
                "mask_loss_coefficient",
                "dice_loss_coefficient",
                "bbox_loss_coefficient",
                "giou_loss_coefficient",
                "eos_coefficient",
                "is_encoder_decoder",
                "num_hidden_layers",
                "hidden_size",
                "num_attention_heads",
                "max_position_embeddings",
                "scale_embedding",
                "classifier_dropout"});
  return t;
}

struct Detr {
  ResidualNet backbone;
  nn::Conv2d<> projection;
  DetrTransformer transformer;
  nn::Linear<> classes;
  std::vector<nn::Linear<>> boxes;
  void visit(nn::Visitor& v) {
    v("backbone", backbone)("projection", projection)("transformer", transformer)("classes", classes)("boxes", boxes);
  }
};

}  // namespace

LoadedModel load_detr(const Weights& w, const ConfigFile& config, const LoadModelOptions& o) {
  const ResidualOptions backbone = read_backbone(config, w);
  const DetrTransformerOptions t = read_transformer(config, w);
  const std::vector<std::string> labels = config.labels();
  const PictureSize size = picture_size(config, o, trained_size(config, kPicture));
  if (config.size("num_channels", backbone.channels) != backbone.channels)
    config.fail("num_channels is not that of the backbone, ", backbone.channels);
  config.require_all_known("detr");
  std::vector<WeightName> names(std::begin(kDetrNames), std::end(kDetrNames));
  if (const std::string prefix = timm_prefix(w); !prefix.empty())
    for (const WeightName& n : torchvision_resnet_names(prefix, "backbone.")) names.push_back(n);
  LoadedModel m("detr", WeightTable(w, {}, names));
  m.architecture = "DetrForObjectDetection", m.labels = labels;
  const ResidualNet net(backbone);
  const Detr& d = m.add(Detr{net,
                             nn::Conv2d<>(net.width(), t.width, 1),
                             DetrTransformer(t),
                             nn::Linear<>(t.width, std::ssize(labels) + 1),
                             {{t.width, t.width}, {t.width, t.width}, {t.width, 4}}});
  m.weights.require_all_used("a DETR");
  const Tensor features = d.projection(d.backbone(picture_input(m, o, backbone.channels, size)).back());
  const Tensor hidden = d.transformer(features);
  const Tensor boxes = sigmoid(d.boxes[2](relu(d.boxes[1](relu(d.boxes[0](hidden))))));
  m.give("hidden", hidden), m.give("logits", d.classes(hidden)), m.give("pred_boxes", boxes);
  m.retrieve(o);
  return m;
}

}  // namespace lc
