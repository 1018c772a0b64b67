#include "lightcone/models/wav2vec2/wav2vec2_config.h"

#include "lightcone/io/printable.h"
#include "lightcone/models/blocks/config.h"
#include "lightcone/runtime/names.h"

namespace lc {
namespace {

void read_features(const ConfigFile& file, SpeechConfig& c) {
  std::vector<std::int64_t> widths = file.sizes("conv_dim"), kernels = file.sizes("conv_kernel"),
                            strides = file.sizes("conv_stride");
  if (widths.empty()) widths.assign(7, 512);
  if (kernels.empty()) kernels = {10, 3, 3, 3, 3, 2, 2};
  if (strides.empty()) strides = {5, 2, 2, 2, 2, 2, 2};
  constexpr std::size_t kMostLayers = 64;
  constexpr std::int64_t kLargest = 1 << 16;
  if (widths.size() != kernels.size() || widths.size() != strides.size() || widths.size() > kMostLayers)
    file.fail("there are ", widths.size(), " conv_dim, ", kernels.size(), " conv_kernel and ", strides.size(),
              " conv_stride");
  for (std::size_t k = 0; k < widths.size(); ++k) {
    if (kernels[k] > kLargest || strides[k] > kLargest)
      file.fail("a convolution of ", kernels[k], " samples every ", strides[k], " is not supported");
    c.features.push_back({widths[k], kernels[k], strides[k]});
  }
  c.feature_bias = file.flag("conv_bias", false);
  c.feature_activation = known_activation(file, "feat_extract_activation", "gelu");
  const std::string norm = file.text("feat_extract_norm", "group");
  if (norm != "group" && norm != "layer")
    file.fail("feat_extract_norm is ", in_quotes(norm), ", and known are group and layer");
  c.norm_each = norm == "layer";
  if (constexpr std::int64_t kMost = 1 << 22; c.least_samples() > kMost)
    file.fail("its convolutions need ", c.least_samples(), " samples for a frame");
}

void read_head(const ConfigFile& file, SpeechConfig& c, std::string_view base) {
  const std::vector<std::string> all = file.texts("architectures");
  c.architecture = all.empty() ? str_cat(base, "Model") : all.front();
  const std::pair<std::string_view, SpeechHead> known[] = {{"Model", SpeechHead::None},
                                                           {"ForPreTraining", SpeechHead::None},
                                                           {"ForCTC", SpeechHead::Ctc},
                                                           {"ForSequenceClassification", SpeechHead::Sequence},
                                                           {"ForAudioFrameClassification", SpeechHead::Frames}};
  std::vector<std::string> names;
  for (const auto& [suffix, head] : known) {
    names.push_back(str_cat(base, suffix));
    if (names.back() != c.architecture) continue;
    c.head = head;
    if (head == SpeechHead::Sequence || head == SpeechHead::Frames) c.labels = file.labels();
    return;
  }
  file.fail("the architecture ", in_quotes(c.architecture), " is not known; known are ", listed(names));
}

}  // namespace

std::int64_t SpeechConfig::least_samples() const {
  std::int64_t n = 1;
  for (auto f = features.rbegin(); f != features.rend(); ++f) {
    n = (n - 1) * f->stride + f->kernel;
    if (constexpr std::int64_t kStop = 1 << 30; n > kStop) break;
  }
  return n;
}

SpeechConfig read_speech(const ConfigFile& file, const Weights& w) {
  const bool hubert = file.text("model_type") == "hubert";
  SpeechConfig c;
  TransformerBlockOptions& b = c.block;
  b.width = file.size("hidden_size", 768), b.heads = file.size("num_attention_heads", 12);
  b.inner = file.size("intermediate_size", 3072), b.eps = file.number("layer_norm_eps", 1e-5);
  b.activation = known_activation(file, "hidden_act", "gelu"), b.norm_first = file.flag("do_stable_layer_norm", false);
  c.layers = file.size("num_hidden_layers", 12);
  if (b.heads > b.width || b.width % b.heads != 0)
    file.fail(b.heads, " attention heads do not divide a width of ", b.width);
  if (!(b.eps > 0)) file.fail("layer_norm_eps is ", b.eps, ", and not above 0");
  if (c.layers > std::ssize(w.tensors())) file.fail(c.layers, " layers, and ", w.tensors().size(), " weights");
  read_features(file, c);
  c.position_kernel = file.size("num_conv_pos_embeddings", 128);
  c.position_groups = file.size("num_conv_pos_embedding_groups", 16);
  if (constexpr std::int64_t kMost = 1 << 12; c.position_kernel > kMost || b.width % c.position_groups != 0)
    file.fail("positions of ", c.position_kernel, " frames in ", c.position_groups, " groups do not fit");
  c.adapter = file.has("adapter_attn_dim") ? file.size("adapter_attn_dim") : 0;
  if (c.adapter > 0 && !b.norm_first)
    file.fail("adapter_attn_dim is for models whose norms come first (do_stable_layer_norm)");
  c.projection_norm = !hubert || file.flag("feat_proj_layer_norm", true);
  c.vocab = file.size("vocab_size", 32), c.projector = file.size("classifier_proj_size", 256);
  read_head(file, c, hubert ? "Hubert" : "Wav2Vec2");
  file.lacks({"add_adapter", "use_weighted_layer_sum", "conv_pos_batch_norm"});
  // these concern training, heads for other tasks, and what add_adapter would add
  file.neutral({"hidden_dropout",
                "feat_proj_dropout",
                "feat_quantizer_dropout",
                "final_dropout",
                "layerdrop",
                "apply_spec_augment",
                "mask_time_prob",
                "mask_time_length",
                "mask_time_min_masks",
                "mask_feature_prob",
                "mask_feature_length",
                "mask_feature_min_masks",
                "num_codevectors_per_group",
                "num_codevector_groups",
                "contrastive_logits_temperature",
                "num_negatives",
                "codevector_dim",
                "proj_codevector_dim",
                "diversity_loss_weight",
                "ctc_loss_reduction",
                "ctc_zero_infinity",
                "tdnn_dim",
                "tdnn_kernel",
                "tdnn_dilation",
                "xvector_output_dim",
                "adapter_kernel_size",
                "adapter_stride",
                "num_adapter_layers",
                "output_hidden_size",
                "num_feat_extract_layers",
                "mask_channel_length",
                "mask_channel_min_space",
                "mask_channel_other",
                "mask_channel_prob",
                "mask_channel_selection",
                "mask_time_min_space",
                "mask_time_other",
                "mask_time_selection",
                "gradient_checkpointing",
                "feat_extract_dropout",
                "freeze_feat_extract_train",
                "no_mask_channel_overlap",
                "no_mask_time_overlap",
                "tokenizer_class"});
  file.require_all_known(file.text("model_type"));
  return c;
}

}  // namespace lc
