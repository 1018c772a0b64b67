// Tiny autoencoders (O. Boer Bohan's TAESD, TAESDXL, TAESD3, TAEF1, TAEF2), which make pictures of latents in little
// time, as a module and as a loaded model.
//
// Two kinds of files are read: diffusers' AutoencoderTiny with its config.json, and the author's taesd_encoder.pth or
// taesd_decoder.pth, one half without config.json, whose layers follow from the names and shapes of their weights.
// Inputs and outputs are those of AutoencoderKL (autoencoder_kl.h) without "mean" and "logvar": "image" ->
// "encoded", and "latent" -> "decoded". Pictures of AutoencoderTiny have values from -1 to 1, those of the author's
// files from 0 to 1.
#pragma once

#include <optional>
#include <vector>

#include "lightcone/models/diffusion/autoencoder_kl.h"

namespace lc::diffusion {

// One layer of a tiny autoencoder.
struct TinyLayer {
  enum class Kind : std::uint8_t { Bound, Convolution, Activation, Block, Repeat };
  Kind kind = Kind::Convolution;
  std::int64_t in = 0, out = 0;  // channels
  int stride = 1;
  bool bias = true;
  std::int64_t pool = 0;  // channels of the wide network before a block; 0: there is none
};

// Layers one after the other. Parameters have the numbers of the layers: 0.weight, 1.conv.0.weight, ...
class TinyAutoencoder {
 public:
  TinyAutoencoder(std::vector<TinyLayer> layers, std::string activation, std::int64_t repeat);
  void visit(nn::Visitor& v);
  Tensor operator()(const Tensor& x) const;

 private:
  // Three convolutions, with the input added; before them, the sum with a wide network of 1x1 convolutions.
  struct Block {
    nn::Conv2d<> conv_0, conv_2, conv_4;
    std::optional<nn::Conv2d<>> skip, pool_0, pool_3;
    std::optional<GroupNorm> pool_1;
    explicit Block(const TinyLayer& l);
    void visit(nn::Visitor& v);
    Tensor operator()(const Tensor& x, const std::string& activation) const;
  };
  struct Step {
    std::optional<nn::Conv2d<>> convolution;
    std::optional<Block> block;
  };
  std::vector<TinyLayer> layers_;
  std::vector<Step> steps_;
  std::string activation_;
  std::int64_t repeat_;
};

// The layers of one half of the author's: `names` are those of a file's weights. Throws Error for a file of another
// kind.
bool is_taesd(const Weights& w);

// Makes the loaded models of opened checkpoints: of AutoencoderTiny, and of one half of the author's. Throws Error for
// the reasons of load_model().
LoadedModel load_autoencoder_tiny(const Weights& w, const ConfigFile& config, const LoadModelOptions& o,
                                  const AutoencoderSizes& sizes);
LoadedModel load_autoencoder_tiny(const Weights& w, const ConfigFile& config, const LoadModelOptions& o);
LoadedModel load_taesd(const Weights& w, const LoadModelOptions& o);

}  // namespace lc::diffusion
