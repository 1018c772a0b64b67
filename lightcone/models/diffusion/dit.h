// DiT, a transformer that denoises latents of a class, as a module and as a loaded model. Two kinds of files are read:
// those of its authors, whose config.json says `_class_name: DiT`, and diffusers' DiTTransformer2DModel.
//
// Inputs: "sample" f32 [batch, in_channels, size, size], "timestep" f32 [batch] and "class_labels" i64 [batch]; the
// class behind the last one, where the file has it, is none. The output "prediction" [batch, out_channels, size, size]
// is the noise, followed by numbers between 0 and 1 for its variance if the model learned them. Symbol: "batch".
//
// W. Peebles and S. Xie, "Scalable diffusion models with transformers", 2022.
#pragma once

#include <optional>
#include <vector>

#include "lightcone/models/diffusion/attention.h"
#include "lightcone/models/files/config_file.h"
#include "lightcone/models/files/loaded_model.h"

namespace lc::diffusion {

// Hyperparameters of a DiT.
struct DiTConfig {
  bool of_diffusers = false;  // each block embeds timestep and class by itself
  std::int64_t width = 0, layers = 0, heads = 0, inner = 0;
  std::int64_t patch = 2, in_channels = 4, out_channels = 8, size = 32;
  std::int64_t classes = 1000;  // rows of the table of classes
  std::int64_t sinusoid_width = 256;
  double eps = 1e-6, feed_forward_eps = 1e-6;
  bool attention_bias = true;

  // Reads config.json; the file's tensors say how many rows the table of classes has and how wide sinusoids are.
  // Throws Error that names a key.
  static DiTConfig from(const ConfigFile& c, const Weights& w);
};

// A DiT as a module.
class DiT {
 public:
  explicit DiT(DiTConfig c);
  void visit(nn::Visitor& v);
  Tensor operator()(const Tensor& sample, const Tensor& timestep, const Tensor& labels,
                    const nn::At& at = nn::At::current()) const;

 private:
  // Timestep and class as one vector.
  struct Condition {
    TimestepEmbedding time;
    nn::Embedding<> table;
    explicit Condition(const DiTConfig& c);
    void visit(nn::Visitor& v) { v("time", time)("class", table); }
    Tensor operator()(const Tensor& sinusoids, const Tensor& labels) const { return time(sinusoids) + table(labels); }
  };
  struct Block {
    std::optional<Condition> condition;
    nn::Linear<> modulation, up, down;
    nn::LayerNorm<> norm, feed_forward_norm;
    std::optional<nn::Linear<>> query_key_value, projection;  // the authors' files have these
    std::optional<Attention> attention;                       // diffusers' files have it
    explicit Block(const DiTConfig& c);
    void visit(nn::Visitor& v);
    Tensor attend(const Tensor& x, std::int64_t heads) const;
  };
  Tensor positions(const Tensor& like) const;

  DiTConfig c_;
  nn::Conv2d<> patches_;
  std::optional<Condition> condition_;
  std::vector<Block> blocks_;
  nn::LayerNorm<> norm_;
  nn::Linear<> modulation_, out_;
  Tensor positions_;
};

// x (1 + scale) + shift for x [batch, n, width] and vectors [batch, width].
Tensor modulated(const Tensor& x, const Tensor& shift, const Tensor& scale);
// Patches [batch, h w, patch patch channels], the channels last -> pictures [batch, channels, h patch, w patch].
Tensor patches_as_picture(const Tensor& x, const Dim& h, const Dim& w, std::int64_t patch, std::int64_t channels);

// Makes the loaded model of an opened checkpoint. Throws Error for the reasons of load_model().
LoadedModel load_dit(const Weights& w, const ConfigFile& config, const LoadModelOptions& o);

}  // namespace lc::diffusion
