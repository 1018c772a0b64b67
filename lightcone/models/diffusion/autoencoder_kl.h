// AutoencoderKL, which makes latents of pictures and pictures of latents, as a module and as a loaded model.
//
// A loaded one has two halves; a file may have only one. The encoder takes "image" f32 [batch, 3, image_height,
// image_width] with values from -1 to 1. Its outputs are "mean" and "logvar" f32 [batch, latent channels, h, w] of the
// distribution of the latents, h and w those of the picture divided by 2 for each level but one, and "encoded": the
// mean as diffusion models take it, less shift_factor and times scaling_factor. The decoder takes "latent" f32 [batch,
// latent channels, height, width] as diffusion models give it, undoes that scaling, and gives "decoded" f32 [batch, 3,
// scale height, scale width]. Symbols: "batch", "image_height", "image_width", "height" and "width".
// LoadModelOptions::outputs chooses a half.
//
// D. P. Kingma and M. Welling, "Auto-encoding variational Bayes", 2013; R. Rombach et al., "High-resolution image
// synthesis with latent diffusion models", 2022.
#pragma once

#include <optional>
#include <vector>

#include "lightcone/models/diffusion/attention.h"
#include "lightcone/models/files/config_file.h"
#include "lightcone/models/files/loaded_model.h"

namespace lc::diffusion {

// Hyperparameters of an AutoencoderKL.
struct AutoencoderConfig {
  std::int64_t in_channels = 3, out_channels = 3, latent_channels = 4;
  std::vector<std::int64_t> channels;  // each level has its own
  std::int64_t layers = 1;             // residual blocks of a level of the encoder; the decoder has one more
  std::int64_t groups = 32;
  double eps = 1e-6;
  std::string activation = "silu";
  bool quant = true, post_quant = true;  // a product of each pixel's latents after the encoder, before the decoder
  bool attention = true;                 // pixels in the middle attend to each other
  double scaling_factor = 0.18215, shift_factor = 0;

  // How many times larger a picture is than its latents.
  std::int64_t scale() const { return std::int64_t{1} << (channels.size() - 1); }
  // Reads config.json; `weights` is the number of tensors in the file. Throws Error that names a key.
  static AutoencoderConfig from(const ConfigFile& c, std::size_t weights);
};

// Two residual blocks with attention of one head between them. Parameters: resnets, attentions.0.
class AutoencoderMiddle {
 public:
  explicit AutoencoderMiddle(const AutoencoderConfig& a);
  void visit(nn::Visitor& v);
  Tensor operator()(const Tensor& x) const;

 private:
  struct PixelAttention {
    GroupNorm group_norm;
    Attention attention;
    explicit PixelAttention(const AutoencoderConfig& a);
    void visit(nn::Visitor& v);
    Tensor operator()(const Tensor& x) const;
  };
  std::vector<ResnetBlock> resnets_;
  std::optional<PixelAttention> attention_;
};

// Pictures [batch, in_channels, h, w] -> [batch, 2 latent_channels, h / scale, w / scale]: mean and logarithm of the
// variance. Parameters: encoder, quant_conv.
class AutoencoderEncoder {
 public:
  explicit AutoencoderEncoder(const AutoencoderConfig& a);
  void visit(nn::Visitor& v);
  Tensor operator()(const Tensor& image) const;

 private:
  struct Level {
    std::vector<ResnetBlock> resnets;
    std::optional<Downsample> down;
    void visit(nn::Visitor& v);
  };
  AutoencoderConfig a_;
  nn::Conv2d<> conv_in_, conv_out_, quant_conv_;
  std::vector<Level> levels_;
  AutoencoderMiddle middle_;
  GroupNorm norm_;
};

// Latents [batch, latent_channels, h, w] -> pictures [batch, out_channels, scale h, scale w]. Parameters: decoder,
// post_quant_conv.
class AutoencoderDecoder {
 public:
  explicit AutoencoderDecoder(const AutoencoderConfig& a);
  void visit(nn::Visitor& v);
  Tensor operator()(const Tensor& latent) const;

 private:
  struct Level {
    std::vector<ResnetBlock> resnets;
    std::optional<Upsample> up;
    void visit(nn::Visitor& v);
  };
  AutoencoderConfig a_;
  nn::Conv2d<> post_quant_conv_, conv_in_, conv_out_;
  AutoencoderMiddle middle_;
  std::vector<Level> levels_;
  GroupNorm norm_;
};

// Extents of an autoencoder's inputs: numbers, or symbols where a size is 0. Latents have this height and width.
struct AutoencoderSizes {
  std::int64_t batch = 0, height = 0, width = 0;
};

// Makes the loaded model of an opened checkpoint. Throws Error for the reasons of load_model().
LoadedModel load_autoencoder_kl(const Weights& w, const ConfigFile& config, const LoadModelOptions& o,
                                const AutoencoderSizes& sizes);
LoadedModel load_autoencoder_kl(const Weights& w, const ConfigFile& config, const LoadModelOptions& o);

// The extents of an autoencoder's inputs, shared by its kinds.
struct AutoencoderShapes {
  Shape image, latent;
};
AutoencoderShapes autoencoder_shapes(LoadedModel& m, const LoadModelOptions& o, const AutoencoderSizes& sizes,
                                     std::int64_t in_channels, std::int64_t latent_channels, std::int64_t scale);

}  // namespace lc::diffusion
