#include "lightcone/models/load/load_model.h"

#include <filesystem>
#include <map>
#include <mutex>
#include <shared_mutex>

#include "lightcone/io/printable.h"
#include "lightcone/models/convnet/classifiers.h"
#include "lightcone/models/convnet/convnext.h"
#include "lightcone/models/detr/detr.h"
#include "lightcone/models/diffusion/autoencoder_tiny.h"
#include "lightcone/models/diffusion/dit.h"
#include "lightcone/models/diffusion/flux.h"
#include "lightcone/models/diffusion/mmdit.h"
#include "lightcone/models/diffusion/rrdbnet.h"
#include "lightcone/models/diffusion/unet.h"
#include "lightcone/models/encoder/encoder.h"
#include "lightcone/models/files/scaled_weights.h"
#include "lightcone/models/gguf/gguf_config.h"
#include "lightcone/models/language/architectures/architectures.h"
#include "lightcone/models/language/load_language.h"
#include "lightcone/models/llava/llava.h"
#include "lightcone/models/sam/sam.h"
#include "lightcone/models/segformer/segformer.h"
#include "lightcone/models/seq2seq/seq2seq_model.h"
#include "lightcone/models/swin/swin.h"
#include "lightcone/models/timm/timm.h"
#include "lightcone/models/vision_transformer/clip.h"
#include "lightcone/models/vision_transformer/dinov3.h"
#include "lightcone/models/vision_transformer/vit.h"
#include "lightcone/models/wav2vec2/wav2vec2.h"
#include "lightcone/models/whisper/ggml_file.h"
#include "lightcone/models/yolo/yolo.h"
#include "lightcone/runtime/names.h"

namespace lc {
namespace {

using Loader = LoadedModel (*)(const Weights&, const ConfigFile&, const LoadModelOptions&);

// What register_model() added. Nothing is ever taken away, so that names and loaders stay where they are.
struct Registered {
  std::shared_mutex mutex;
  std::map<std::string, ModelLoader, std::less<>> loaders;
};
Registered& registered() {
  static Registered r;
  return r;
}

// A new architecture is a row here. Names are values of model_type, or of _class_name in diffusers' files.
constexpr std::pair<std::string_view, Loader> kTypes[] = {
    {"bert", load_encoder},
    {"roberta", load_encoder},
    {"xlm-roberta", load_encoder},
    {"camembert", load_encoder},
    {"distilbert", load_encoder},
    {"mpnet", load_encoder},
    {"electra", load_encoder},
    {"albert", load_encoder},
    {"deberta-v2", load_encoder},
    {"modernbert", load_encoder},
    {"nomic_bert", load_encoder},
    {"UNet2DConditionModel", diffusion::load_unet},
    {"ControlNetModel", diffusion::load_controlnet},
    {"AutoencoderKL", diffusion::load_autoencoder_kl},
    {"AutoencoderTiny", diffusion::load_autoencoder_tiny},
    {"DiT", diffusion::load_dit},
    {"DiTTransformer2DModel", diffusion::load_dit},
    {"SD3Transformer2DModel", diffusion::load_mmdit},
    {"FluxTransformer2DModel", diffusion::load_flux},
    {"rrdbnet", diffusion::load_rrdbnet},
    {"vit", load_vit},
    {"deit", load_vit},
    {"dinov2", load_vit},
    {"dinov2_with_registers", load_vit},
    {"dinov3_vit", load_dinov3},
    {"dinov3_convnext", load_convnext},
    {"clip", load_clip},
    {"clip_vision_model", load_clip},
    {"clip_text_model", load_clip},
    {"siglip", load_clip},
    {"siglip_vision_model", load_clip},
    {"siglip_text_model", load_clip},
    {"convnext", load_convnext},
    {"convnextv2", load_convnext},
    {"resnet", load_residual},
    {"regnet", load_residual},
    {"vgg", load_vgg},
    {"yolov8", load_yolo_v8},
    {"detr", load_detr},
    {"segformer", load_segformer},
    {"swin", load_swin},
    {"llava", load_llava},
    {"wav2vec2", load_wav2vec2},
    {"hubert", load_wav2vec2},
    {"sam", load_sam},
    {"sam_vision_model", load_sam_vision},
    {"mobilenet_v3", load_inverted_residual},
    {"efficientnet", load_inverted_residual},
    {"t5", load_seq2seq},
    {"mt5", load_seq2seq},
    {"umt5", load_seq2seq},
    {"bart", load_seq2seq},
    {"mbart", load_seq2seq},
    {"marian", load_seq2seq},
    {"pegasus", load_seq2seq},
    {"m2m_100", load_seq2seq},
    {"whisper", load_seq2seq},
};

// The function that makes models of a type; empty for a type that is not known.
ModelLoader loader_of(std::string_view type) {
  for (const auto& [known, load] : kTypes)
    if (known == type) return load;
  if (language_architecture(type)) return load_language;
  Registered& r = registered();
  const std::shared_lock lock(r.mutex);
  const auto at = r.loaders.find(type);
  return at == r.loaders.end() ? ModelLoader() : at->second;
}

}  // namespace

std::vector<std::string_view> loadable_model_types() {
  std::vector<std::string_view> all;
  for (const auto& [type, load] : kTypes) all.push_back(type);
  all.insert(all.end(), language_model_types().begin(), language_model_types().end());
  Registered& r = registered();
  const std::shared_lock lock(r.mutex);
  for (const auto& [type, load] : r.loaders) all.push_back(type);
  return all;
}

void register_model(const std::string& type, ModelLoader load) {
  if (type.empty() || !load) throw Error("register_model", "a type of models needs a name and a function");
  if (loader_of(type)) throw Error("register_model", str_cat("model_type ", in_quotes(type), " is known already"));
  Registered& r = registered();
  const std::unique_lock lock(r.mutex);
  r.loaders.emplace(type, std::move(load));
}

namespace {

LoadedModel load_by_config(const Weights& w, const ConfigFile& config, const LoadModelOptions& o) {
  if (is_timm(config)) return load_timm(w, config, o);
  const std::string type = config.text(config.has("_class_name") ? "_class_name" : "model_type");
  if (o.inputs && type != "sam") config.fail("a model of type ", in_quotes(type), " has no inputs to choose from");
  if (const ModelLoader load = loader_of(type)) return load(w, config, o);
  const std::vector<std::string_view> types = loadable_model_types();
  const std::string_view near = nearest_name(type, types);
  config.fail(
      type.empty() ? std::string("there is no model_type") : str_cat("model_type ", in_quotes(type), " is not known"),
      "; ", type.empty() ? "" : str_cat("the nearest is ", near, ", and "), "known are ",
      listed({types.begin(), types.end()}));
}

}  // namespace

LoadedModel load_model(const std::string& path, const LoadModelOptions& o) {
  std::error_code ec;
  if (std::filesystem::exists(std::filesystem::path(path) / "model_index.json", ec))
    throw file_error("load_model", path, "it is a whole pipeline of diffusers, which diffusion::StableDiffusion and ",
                     "`lightcone imagine` open; load_model() opens one of its parts, such as the folder unet in it");
  if (is_ggml_whisper(path)) return load_model(read_ggml_whisper(path, o.read).weights, o);
  return load_model(Weights::open(path, o.read), o);
}

LoadedModel load_model(const Weights& w, const LoadModelOptions& o) {
  if (o.batch < 1) throw Error("load_model", str_cat("LoadModelOptions::batch is ", o.batch, ", and not 1 or more"));
  if (diffusion::is_taesd(w)) return diffusion::load_taesd(w, o);
  if (!w.gguf() && w.config_json().empty() && is_yolo(w)) return load_yolo(w, o);
  if (!w.gguf() && w.config_json().empty() && is_torchvision(w)) return load_torchvision(w, o);
  const ConfigFile config = config_of(w, o.ignore);
  return load_by_config(scaled_weights(w, config), config, o);
}

}  // namespace lc
