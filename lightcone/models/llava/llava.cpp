#include "lightcone/models/llava/llava.h"

#include <algorithm>

#include "lightcone/io/printable.h"
#include "lightcone/models/blocks/activation.h"
#include "lightcone/models/blocks/config.h"
#include "lightcone/models/language/language_net.h"
#include "lightcone/models/language/load_language.h"
#include "lightcone/models/vision_transformer/clip.h"
#include "lightcone/models/vision_transformer/clip_towers.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"

namespace lc {
namespace {

// Where a part of the model stands in files: of this version of transformers, of versions up to 4.51, ...
struct Place {
  std::string_view theirs, ours;
};
constexpr Place kText[] = {{"model.language_model.", "model."},
                           {"language_model.model.", "model."},
                           {"language_model.lm_head.", "lm_head."},
                           {"lm_head.", "lm_head."}};
constexpr Place kVision[] = {{"model.vision_tower.", ""}, {"vision_tower.", ""}};
constexpr Place kProjector[] = {{"model.multi_modal_projector.", ""}, {"multi_modal_projector.", ""}};
constexpr WeightName kProjectorNames[] = {{"linear_1", "projector.linear_1"}, {"linear_2", "projector.linear_2"}};

Weights part_of(const Weights& w, std::span<const Place> places) {
  return w.part([&](std::string_view name) -> std::optional<std::string> {
    for (const Place& p : places)
      if (name.starts_with(p.theirs)) return str_cat(p.ours, name.substr(p.theirs.size()));
    return std::nullopt;
  });
}

void require_known_places(const Weights& w) {
  for (const auto& [name, t] : w.tensors()) {
    const auto here = [&, &name = name](std::span<const Place> places) {
      return std::ranges::any_of(places, [&](const Place& p) { return name.starts_with(p.theirs); });
    };
    if (!here(kText) && !here(kVision) && !here(kProjector))
      throw file_error("load_model", w.path(), "the weight ", in_quotes(name), " is no part of a LLaVA: those begin ",
                       "with vision_tower, multi_modal_projector, language_model and lm_head");
  }
}

struct Config {
  std::int64_t token = 0;
  std::vector<std::size_t> layers = {};  // their states are read, side by side
  bool class_token = false;              // the first token is kept
  bool bias = true;
  std::string activation = "gelu";
};

// The tower and the two layers after it.
class Eyes {
 public:
  Eyes(const ClipTowerConfig& tower, const Config& c, std::int64_t width)
      : c_(c),
        tower_(tower),
        first_(tower.width() * std::ssize(c.layers), width, {.bias = c.bias}),
        second_(width, width, {.bias = c.bias}) {}
  void visit_tower(nn::Visitor& v) { v("vision", tower_); }
  void visit_projector(nn::Visitor& v) { v("projector.linear_1", first_)("projector.linear_2", second_); }
  Tensor operator()(const Tensor& pictures) const {
    const std::vector<Tensor> states = tower_.states(pictures);
    std::vector<Tensor> parts;
    for (const std::size_t k : c_.layers) {
      const Tensor& x = states[k];
      parts.push_back(c_.class_token ? x : narrow(x, 1, 1, x.extent(1) - 1));
    }
    return second_(activate(c_.activation, first_(parts.size() == 1 ? parts[0] : cat(parts, 2))));
  }

 private:
  Config c_;
  PictureTower tower_;
  nn::Linear<> first_, second_;
};

// A module's two halves, whose weights have names of their own.
struct Tower {
  std::shared_ptr<Eyes> eyes;
  void visit(nn::Visitor& v) { eyes->visit_tower(v); }
};
struct Projector {
  std::shared_ptr<Eyes> eyes;
  void visit(nn::Visitor& v) { eyes->visit_projector(v); }
};

LanguageFile open_text(const Weights& w, const ConfigFile& config) {
  const ConfigFile section = config.section("text_config");
  LanguageFile text = open_language(part_of(w, kText), section);
  LanguageConfig& c = text.config;
  if (c.embedding_scale != 1 || c.embedding_width > 0)
    config.fail("a language model of type ", in_quotes(section.text("model_type")),
                " changes its rows of tokens, and pictures in it are not supported");
  if (c.top != LanguageHead::Words) config.fail("text_config is no language model with a head for words");
  // the whole model's key counts, and files whose key is wrong have the head
  if (text.weights.has("head.weight")) c.tied = false;
  else if (config.flag("tie_word_embeddings", false)) c.tied = true;
  return text;
}

ClipTowerConfig read_tower_of(const ConfigFile& config, const LoadModelOptions& o) {
  const ConfigFile section = config.section("vision_config");
  const std::string type = section.text("model_type", "clip_vision_model");
  const bool clip = type == "clip_vision_model";
  if (!clip && type != "siglip_vision_model")
    config.fail("a tower of pictures of type ", in_quotes(type),
                " is not supported; clip_vision_model and siglip_vision_model are");
  section.neutral({"vocab_size"});
  return read_clip_tower(section, clip ? ClipKind::Clip : ClipKind::Siglip, false, o);
}

Config read_llava(const ConfigFile& file, std::int64_t layers) {
  Config c;
  file.neutral({"vision_config", "text_config", "image_seq_length", "image_token_index", "image_token_id",
                "tie_word_embeddings", "pad_token_id", "vocab_size"});
  c.token = file.id(file.has("image_token_id") ? "image_token_id" : "image_token_index", 32000);
  c.bias = file.flag("multimodal_projector_bias", true);
  c.activation = known_activation(file, "projector_hidden_act", "gelu");
  const std::string strategy = file.text("vision_feature_select_strategy", "default");
  if (strategy != "default" && strategy != "full")
    file.fail("vision_feature_select_strategy is ", in_quotes(strategy), ", and known are default and full");
  c.class_token = strategy == "full";
  std::vector<double> chosen = file.numbers("vision_feature_layer");
  if (chosen.empty()) chosen = {-2};
  for (const double k : chosen) {
    const double at = k < 0 ? static_cast<double>(layers) + 1 + k : k;
    if (!(at >= 0 && at <= static_cast<double>(layers)))
      file.fail("vision_feature_layer names layer ", k, " of a tower of ", layers);
    c.layers.push_back(static_cast<std::size_t>(at));
  }
  file.require_all_known("llava");
  return c;
}

// The rows of a table of tokens with the vectors of pictures, in order, where the ids are those of pictures.
Tensor with_pictures(const Tensor& rows, const Tensor& ids, std::int64_t token, const Tensor& features) {
  const Dim count = ids.extent(0) * ids.extent(1), width = rows.extent(2);
  const Tensor here = eq(ids, token).reshape({count});
  const Tensor number = cumsum(to(here, DType::I64), 0) - 1;
  const Tensor vectors = features.reshape({features.extent(0) * features.extent(1), width});
  const Tensor found = index_select(vectors, 0, where(here, number, full_like(number, 0)));
  return where(here.unsqueeze(1), found, rows.reshape({count, width})).reshape(rows.shape());
}

}  // namespace

LoadedModel load_llava(const Weights& w, const ConfigFile& config, const LoadModelOptions& o) {
  require_known_places(w);
  const std::vector<std::string> all = config.texts("architectures");
  if (!all.empty() && all.front() != "LlavaForConditionalGeneration")
    config.fail("the architecture ", in_quotes(all.front()),
                " is not known for model_type llava; known is LlavaForConditionalGeneration");
  const LanguageFile text = open_text(w, config);
  const LanguageConfig& c = text.config;
  const ClipTowerConfig tower = read_tower_of(config, o);
  if (tower.layers > std::ssize(w.tensors()))
    config.fail(tower.layers, " layers, and ", w.tensors().size(), " weights");
  const Config own = read_llava(config, tower.layers);
  if (tower.kind == ClipKind::Siglip && !own.class_token)
    config.fail("vision_feature_select_strategy is default, which leaves out a class token that SigLIP has not");

  LoadedModel m("llava", text.weights);
  m.architecture = "LlavaForConditionalGeneration", m.padding = c.padding.value_or(0);
  const LanguageNet& net = m.add(LanguageNet(c));
  take_blocks(c, m.weights);
  m.weights.require_all_used(str_cat("a ", c.architecture));
  const auto eyes = std::make_shared<Eyes>(tower, own, c.width);
  const WeightTable vision(part_of(w, kVision), {}, picture_tower_names()),
      projector(part_of(w, kProjector), {}, kProjectorNames);
  m.add(Tower{eyes}, "", vision), m.add(Projector{eyes}, "", projector);
  vision.require_all_used("its tower of pictures"), projector.require_all_used("its projector");

  const PatchEmbeddingOptions& p = tower.patches;
  const PictureSize size = picture_size(config, o, {p.height, p.width_of_picture});
  m.limits = {{"batch", o.batch}, {"length", c.length}, {"pictures", o.batch}};
  const Shape shape{Dim::symbol("batch", 1, o.batch), Dim::symbol("length", 1, c.length)};
  for (const char* name : {"input_ids", "attention_mask"}) m.inputs[name] = m.graph().input(name, shape, DType::I64);
  const Tensor pictures = m.inputs["pixel_values"] =
      m.graph().input("pixel_values", {Dim::symbol("pictures", 1, o.batch), p.channels, size.height, size.width});
  const Tensor ids = m.inputs["input_ids"], features = (*eyes)(pictures);
  for (const auto& [name, value] : net(ids, m.inputs["attention_mask"], [&](const Tensor& rows) {
         return with_pictures(rows, ids, own.token, features);
       }))
    m.give(name, value);
  m.give("image_features", features);
  m.retrieve(o);
  return m;
}

}  // namespace lc
