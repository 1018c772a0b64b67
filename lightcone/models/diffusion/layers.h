// Layers that the networks of diffusion models share. Parameters have the names of Hugging Face's diffusers.
//
// J. Ho et al., "Denoising diffusion probabilistic models", 2020; R. Rombach et al., "High-resolution image synthesis
// with latent diffusion models", 2022.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lightcone/models/files/loaded_model.h"
#include "lightcone/nn/conv.h"
#include "lightcone/nn/linear.h"
#include "lightcone/nn/module.h"

namespace lc::diffusion {

constexpr std::size_t kMostLevels = 16;  // that a network may have; each halves the picture
constexpr std::int64_t kLargestLatent = 1
                                        << 7;  // largest open height and width of latents, for which memory is planned

// The extent of an input of a loaded model: `size`, or, if it is 0, an open one of this name from `least` to `most`.
// Throws Error for a size below 0 and for one above 2^15.
Dim extent_of_input(LoadedModel& m, const char* name, std::int64_t size, std::int64_t least, std::int64_t most);

// Group normalisation with a number of groups that a file states (torch.nn.GroupNorm). Parameters: weight, bias.
class GroupNorm {
 public:
  // Throws Error if the groups do not divide the channels.
  GroupNorm(std::int64_t groups, std::int64_t channels, double eps);
  void visit(nn::Visitor& v);
  Tensor operator()(const Tensor& x) const;  // [batch, channels, ...] -> the same shape
  // The same of [batch, channels, h, w], in means over the axes of a group. It is for a sum that nothing else reads, of
  // values that lie in different orders, as a spatial transformer gives: the norm by its name would add anew for every
  // element.
  Tensor by_means(const Tensor& x) const;

 private:
  std::int64_t groups_, channels_;
  double eps_;
  Tensor weight_, bias_;
};

// How timesteps become sines and cosines.
struct SinusoidOptions {
  std::int64_t width = 0;     // numbers of each timestep
  bool cosines_first = true;  // flip_sin_to_cos
  double shift = 0;           // downscale_freq_shift: frequency i of n is max_period^(-i / (n - shift))
  double max_period = 10000;
};
// Sinusoids of timesteps f32 [n], fractions included: [n, width]; the last number of an odd width is 0
// (diffusers.models.embeddings.get_timestep_embedding).
Tensor sinusoids(const Tensor& timesteps, const SinusoidOptions& o);

// Two products with an activation between them, which make a vector of sinusoids. Parameters: linear_1, linear_2 and,
// with a condition, cond_proj.
class TimestepEmbedding {
 public:
  TimestepEmbedding(std::int64_t in, std::int64_t out, std::string activation = "silu", std::string last = "",
                    std::int64_t condition = 0);
  void visit(nn::Visitor& v);
  // x [n, in], condition [n, condition] or undefined -> [n, out].
  Tensor operator()(const Tensor& x, const Tensor& condition = {}) const;

 private:
  nn::Linear<> linear_1_, linear_2_;
  std::optional<nn::Linear<>> cond_proj_;
  std::string activation_, last_;
};

// Options of ResnetBlock.
struct ResnetBlockOptions {
  std::int64_t in = 0, out = 0;  // channels
  std::int64_t time = 0;         // width of the time embedding; 0: the block has none
  std::int64_t groups = 32;
  double eps = 1e-5;
  std::string activation = "silu";
  bool scale_shift = false;  // the time scales and shifts the second norm's result; otherwise it is added before it
  double output_scale = 1;   // the sum is divided by it
};
// norm, activation, convolution, time, norm, activation, convolution, and the input added. Parameters: norm1, conv1,
// time_emb_proj, norm2, conv2 and, where the channels differ, conv_shortcut.
class ResnetBlock {
 public:
  explicit ResnetBlock(const ResnetBlockOptions& o);
  void visit(nn::Visitor& v);
  // x [batch, in, h, w], time [batch, time] -> [batch, out, h, w].
  Tensor operator()(const Tensor& x, const Tensor& time = {}) const;

 private:
  ResnetBlockOptions o_;
  GroupNorm norm1_, norm2_;
  nn::Conv2d<> conv1_, conv2_;
  std::optional<nn::Linear<>> time_emb_proj_;
  std::optional<nn::Conv2d<>> conv_shortcut_;
};

// Halves height and width by a convolution with stride 2. A padding of 0 pads below and to the right by 1, as
// autoencoders do. Parameter: conv.
class Downsample {
 public:
  Downsample(std::int64_t channels, int padding);
  void visit(nn::Visitor& v) { v("conv", conv_); }
  Tensor operator()(const Tensor& x) const;  // [batch, channels, h, w] -> [batch, channels, ceil(h / 2), ...]

 private:
  int padding_;
  nn::Conv2d<> conv_;
};

// Each pixel four times, then a convolution. Parameter: conv.
class Upsample {
 public:
  explicit Upsample(std::int64_t channels) : conv_(channels, channels, 3, {.padding = 1}) {}
  void visit(nn::Visitor& v) { v("conv", conv_); }
  // [batch, channels, h, w] -> [batch, channels, 2 h, 2 w]; with `like`, cut to that tensor's height and width.
  Tensor operator()(const Tensor& x, const Tensor& like = {}) const;

 private:
  nn::Conv2d<> conv_;
};

// Each pixel `times` times along height and width: torch.nn.Upsample(scale_factor=times), mode "nearest".
Tensor repeat_pixels(const Tensor& x, std::int64_t times);

// [batch, channels, h, w] -> [batch, h w, channels], and back to the height and width of `like`.
Tensor pixels_as_tokens(const Tensor& x);
Tensor tokens_as_pixels(const Tensor& x, const Tensor& like);

}  // namespace lc::diffusion
