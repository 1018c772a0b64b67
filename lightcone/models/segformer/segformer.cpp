#include "lightcone/models/segformer/segformer.h"

#include "lightcone/models/blocks/config.h"
#include "lightcone/models/blocks/conv_norm.h"
#include "lightcone/models/files/pictures.h"
#include "lightcone/models/segformer/mix_transformer.h"
#include "lightcone/ops/functional/functional.h"
#include "lightcone/ops/shape.h"

namespace lc {
namespace {

constexpr std::int64_t kPicture = 512;

enum class Task : std::uint8_t { None, Classes, Segments };

struct SegformerConfig {
  std::vector<MixStage> stages = {};
  std::int64_t channels = 3, decoder = 256, labels = 0;
  Task task = Task::None;
};

SegformerConfig read_segformer(const ConfigFile& file, const Weights& w) {
  const auto list = [&](const char* key, std::vector<std::int64_t> otherwise, std::size_t count) {
    std::vector<std::int64_t> all = file.sizes(key);
    if (all.empty()) all = std::move(otherwise);
    if (count > 0 && all.size() != count) file.fail(key, " has ", all.size(), " numbers for ", count, " stages");
    return all;
  };
  const auto widths = list("hidden_sizes", {32, 64, 160, 256}, 0);
  const std::size_t n = widths.size();
  const auto depths = list("depths", {2, 2, 2, 2}, n), heads = list("num_attention_heads", {1, 2, 5, 8}, n);
  const auto reductions = list("sr_ratios", {8, 4, 2, 1}, n), patches = list("patch_sizes", {7, 3, 3, 3}, n);
  const auto strides = list("strides", {4, 2, 2, 2}, n), wider = list("mlp_ratios", {4, 4, 4, 4}, n);
  require_fewer_layers(file, depths, w);
  SegformerConfig c;
  c.channels = file.size("num_channels", 3);
  const std::string activation = known_activation(file, "hidden_act", "gelu");
  for (std::size_t k = 0; k < n; ++k) {
    constexpr std::int64_t kMost = 255;
    if (patches[k] > kMost || strides[k] > kMost || reductions[k] > kMost || wider[k] > kMost)
      file.fail("patches, strides and ratios of stage ", k, " are above ", kMost);
    if (widths[k] % heads[k] != 0) file.fail(heads[k], " attention heads do not divide a width of ", widths[k]);
    c.stages.push_back({.in = k == 0 ? c.channels : widths[k - 1],
                        .width = widths[k],
                        .layers = depths[k],
                        .heads = heads[k],
                        .inner = widths[k] * wider[k],
                        .patch = static_cast<int>(patches[k]),
                        .stride = static_cast<int>(strides[k]),
                        .reduction = static_cast<int>(reductions[k]),
                        .activation = activation});
  }
  c.decoder = file.size("decoder_hidden_size", 256);
  if (!file.flag("reshape_last_stage", true)) file.fail("reshape_last_stage is false, which is not supported");
  c.task = w.find("decode_head.classifier.weight") ? Task::Segments
           : w.find("classifier.weight")           ? Task::Classes
                                                   : Task::None;
  if (c.task != Task::None) c.labels = std::ssize(file.labels());
  if (file.size("num_encoder_blocks", std::ssize(c.stages)) != std::ssize(c.stages))
    file.fail("num_encoder_blocks is not ", c.stages.size(), ", the number of hidden_sizes");
  // transformers does not read the epsilon: norms have 1e-5
  file.neutral({"layer_norm_eps", "drop_path_rate", "semantic_loss_ignore_index", "downsampling_rates",
                "classifier_dropout_prob"});
  return c;
}

// A linear layer for each map, all at the size of the first, and two convolutions of 1 x 1 on them.
struct SegmentHead {
  std::vector<nn::Linear<>> projections = {};
  ConvNorm fuse;
  nn::Conv2d<> classifier;
  void visit(nn::Visitor& v) { v("projections", projections)("fuse", fuse)("classifier", classifier); }
  Tensor operator()(const std::vector<Tensor>& maps) const {
    std::vector<Tensor> all;
    const auto extent = [&](int axis) { return static_cast<int>(maps[0].extent(axis).constant().value_or(0)); };
    for (std::size_t k = maps.size(); k-- > 0;) {  // the last map is first
      const Tensor x = projections[k](maps[k].permute({0, 2, 3, 1})).permute({0, 3, 1, 2});
      all.push_back(k == 0 ? x
                           : interpolate(x, InterpolateOptions{.size = {extent(2), extent(3)}, .mode = "bilinear"}));
    }
    return classifier(fuse(cat(all, 1)));
  }
};

struct Segformer {
  MixTransformer encoder;
  SegmentHead head;
  nn::Linear<> classifier;
  Task task;
  void visit(nn::Visitor& v) {
    encoder.visit(v);
    if (task == Task::Segments) v("head", head);
    if (task == Task::Classes) v("classifier", classifier);
  }
};

Segformer segformer(const SegformerConfig& c) {
  const std::int64_t stages = std::ssize(c.stages);
  SegmentHead head{.fuse = ConvNorm({.in = stages * c.decoder, .out = c.decoder, .activation = "relu"}),
                   .classifier = nn::Conv2d<>(c.decoder, c.labels, 1)};
  for (const MixStage& s : c.stages) head.projections.emplace_back(s.width, c.decoder);
  return {MixTransformer(c.stages), std::move(head), nn::Linear<>(c.stages.back().width, c.labels), c.task};
}

constexpr WeightName kSegformerNames[] = {
    {"encoder.patch_embeddings.#.proj", "stages.#.patches"},
    {"encoder.patch_embeddings.#.layer_norm", "stages.#.patch_norm"},
    {"encoder.block.#.#.layer_norm_1", "stages.#.blocks.#.attention_norm"},
    {"encoder.block.#.#.attention.self.query", "stages.#.blocks.#.query"},
    {"encoder.block.#.#.attention.self.key", "stages.#.blocks.#.key"},
    {"encoder.block.#.#.attention.self.value", "stages.#.blocks.#.value"},
    {"encoder.block.#.#.attention.self.sr", "stages.#.blocks.#.reduction"},
    {"encoder.block.#.#.attention.self.layer_norm", "stages.#.blocks.#.reduction_norm"},
    {"encoder.block.#.#.attention.output.dense", "stages.#.blocks.#.output"},
    {"encoder.block.#.#.layer_norm_2", "stages.#.blocks.#.network_norm"},
    {"encoder.block.#.#.mlp.dense1", "stages.#.blocks.#.up"},
    {"encoder.block.#.#.mlp.dwconv.dwconv", "stages.#.blocks.#.depthwise"},
    {"encoder.block.#.#.mlp.dense2", "stages.#.blocks.#.down"},
    {"encoder.layer_norm.#", "stages.#.norm"},
    {"decode_head.linear_c.#.proj", "head.projections.#"},
    // transformers 5 has other names
    {"stages.#.patch_embeddings.proj", "stages.#.patches"},
    {"stages.#.patch_embeddings.layer_norm", "stages.#.patch_norm"},
    {"stages.#.blocks.#.layernorm_before", "stages.#.blocks.#.attention_norm"},
    {"stages.#.blocks.#.attention.q_proj", "stages.#.blocks.#.query"},
    {"stages.#.blocks.#.attention.k_proj", "stages.#.blocks.#.key"},
    {"stages.#.blocks.#.attention.v_proj", "stages.#.blocks.#.value"},
    {"stages.#.blocks.#.attention.o_proj", "stages.#.blocks.#.output"},
    {"stages.#.blocks.#.attention.sequence_reduction.sequence_reduction", "stages.#.blocks.#.reduction"},
    {"stages.#.blocks.#.attention.sequence_reduction.layer_norm", "stages.#.blocks.#.reduction_norm"},
    {"stages.#.blocks.#.layernorm_after", "stages.#.blocks.#.network_norm"},
    {"stages.#.blocks.#.mlp.fc1", "stages.#.blocks.#.up"},
    {"stages.#.blocks.#.mlp.dwconv.dwconv", "stages.#.blocks.#.depthwise"},
    {"stages.#.blocks.#.mlp.fc2", "stages.#.blocks.#.down"},
    {"stages.#.layer_norm", "stages.#.norm"},
    {"decode_head.linear_projections.#.proj", "head.projections.#"},
    {"decode_head.linear_fuse", "head.fuse.conv"},
    {"decode_head.batch_norm", "head.fuse.bn"},
    {"decode_head.classifier", "head.classifier"},
    {"classifier", "classifier"},
};
constexpr std::string_view kSegformerPrefixes[] = {"segformer."};

}  // namespace

LoadedModel load_segformer(const Weights& w, const ConfigFile& config, const LoadModelOptions& o) {
  const SegformerConfig c = read_segformer(config, w);
  const PictureSize size = picture_size(config, o, trained_size(config, kPicture));
  LoadedModel m("segformer", WeightTable(w, kSegformerPrefixes, kSegformerNames));
  if (c.task != Task::None) m.labels = config.labels();
  config.require_all_known("segformer");
  m.architecture = c.task == Task::Segments  ? "SegformerForSemanticSegmentation"
                   : c.task == Task::Classes ? "SegformerForImageClassification"
                                             : "SegformerModel";
  const Segformer& s = m.add(segformer(c));
  m.weights.require_all_used(str_cat("a ", m.architecture));
  const std::vector<Tensor> maps = s.encoder(picture_input(m, o, c.channels, size));
  m.give("hidden", maps.back());
  if (c.task == Task::Segments) m.give("logits", s.head(maps));
  if (c.task == Task::Classes) m.give("logits", s.classifier(mean(maps.back(), {2, 3})));
  m.retrieve(o);
  return m;
}

}  // namespace lc
