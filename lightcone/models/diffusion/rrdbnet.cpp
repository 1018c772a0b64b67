#include "lightcone/models/diffusion/rrdbnet.h"

#include "lightcone/models/diffusion/layers.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"

namespace lc::diffusion {
namespace {

constexpr double kSlope = 0.2;                     // left of 0
constexpr std::int64_t kLargestPicture = 1 << 11;  // largest open height and width

constexpr WeightName kUpscalerNames[] = {
    {"conv_first", "conv_first"}, {"body", "body"},       {"conv_body", "conv_body"}, {"conv_up1", "conv_up1"},
    {"conv_up2", "conv_up2"},     {"conv_hr", "conv_hr"}, {"conv_last", "conv_last"},
};

nn::Conv2d<> convolution3(std::int64_t in, std::int64_t out) { return nn::Conv2d<>(in, out, 3, {.padding = 1}); }

}  // namespace

RRDBNet::Dense::Dense(const Sizes& s) {
  for (std::int64_t k = 0; k < 5; ++k)
    convolutions.push_back(convolution3(s.features + k * s.growth, k < 4 ? s.growth : s.features));
}
void RRDBNet::Dense::visit(nn::Visitor& v) {
  for (std::size_t k = 0; k < convolutions.size(); ++k) v("conv" + std::to_string(k + 1), convolutions[k]);
}
Tensor RRDBNet::Dense::operator()(const Tensor& x) const {
  std::vector<Tensor> all{x};
  for (std::size_t k = 0; k + 1 < convolutions.size(); ++k)
    all.push_back(leaky_relu(convolutions[k](cat(all, 1)), kSlope));
  return x + convolutions.back()(cat(all, 1)) * 0.2;
}

RRDBNet::RRDBNet(const Sizes& s)
    : s_(s),
      first_(convolution3(s.in * s.unshuffled() * s.unshuffled(), s.features)),
      body_end_(convolution3(s.features, s.features)),
      up1_(convolution3(s.features, s.features)),
      up2_(convolution3(s.features, s.features)),
      fine_(convolution3(s.features, s.features)),
      last_(convolution3(s.features, s.out)),
      body_(static_cast<std::size_t>(s.blocks), Block(s)) {}
void RRDBNet::visit(nn::Visitor& v) {
  v("conv_first", first_)("body", body_)("conv_body", body_end_)("conv_up1", up1_)("conv_up2", up2_);
  v("conv_hr", fine_)("conv_last", last_);
}
Tensor RRDBNet::operator()(const Tensor& image) const {
  const auto factor = static_cast<int>(s_.unshuffled());
  const Tensor first = first_(factor > 1 ? pixel_unshuffle(image, factor) : image);
  Tensor x = first;
  for (const Block& block : body_) x = block(x);
  x = first + body_end_(x);
  x = leaky_relu(up1_(repeat_pixels(x, 2)), kSlope);
  x = leaky_relu(up2_(repeat_pixels(x, 2)), kSlope);
  return last_(leaky_relu(fine_(x), kSlope));
}

LoadedModel load_rrdbnet(const Weights& w, const ConfigFile& config, const LoadModelOptions& o) {
  RRDBNet::Sizes s;
  s.in = config.size("num_in_ch", 3), s.out = config.size("num_out_ch", 3), s.features = config.size("num_feat", 64);
  s.blocks = config.size("num_block", 23), s.growth = config.size("num_grow_ch", 32), s.scale = config.size("scale", 4);
  if (s.scale != 1 && s.scale != 2 && s.scale != 4) config.fail("scale is ", s.scale, ", and neither 1, 2 nor 4");
  if (s.blocks > std::ssize(w.tensors())) config.fail(s.blocks, " blocks, and ", w.tensors().size(), " weights");
  config.neutral({"input_size"});
  config.require_all_known("rrdbnet");
  LoadedModel m("rrdbnet", WeightTable(w, {}, kUpscalerNames));
  m.architecture = "RRDBNet";
  m.limits = {{"batch", o.batch}, {"rows", kLargestPicture}, {"columns", kLargestPicture}};
  const RRDBNet& net = m.add(RRDBNet(s));
  m.weights.require_all_used("an RRDBNet");
  const Dim by = s.unshuffled();
  const Tensor image = m.inputs["image"] =
      m.graph().input("image", {Dim::symbol("batch", 1, o.batch), s.in, Dim::symbol("rows", 1, kLargestPicture) * by,
                                Dim::symbol("columns", 1, kLargestPicture) * by});
  m.give("image_upscaled", net(image));
  m.retrieve(o);
  return m;
}

}  // namespace lc::diffusion
