#include "lightcone/models/yolo/convolutions.h"

#include <optional>

#include "lightcone/io/printable.h"
#include "lightcone/models/blocks/activation.h"
#include "lightcone/models/blocks/conv_norm.h"
#include "lightcone/nn/conv.h"

namespace lc {
namespace {

constexpr double kEps = 1e-3;  // batch norms have it in all of Ultralytics' files

// The activation of a Conv by the class of its part "act".
std::string activation_of(const YoloSource& s, const std::string& path, const char* otherwise) {
  constexpr std::pair<std::string_view, std::string_view> kClasses[] = {
      {"SiLU", "silu"},           {"Identity", "linear"}, {"ReLU", "relu"}, {"ReLU6", "relu6"},
      {"Hardswish", "hardswish"}, {"Mish", "mish"},       {"GELU", "gelu"}, {"Sigmoid", "sigmoid"}};
  const std::string type = s.type(path);
  if (type.empty()) return otherwise;
  for (const auto& [name, ours] : kClasses)
    if (name == type) return std::string(ours);
  s.refuse(str_cat("the activation ", in_quotes(path), " is a ", in_quotes(type), ", which is not supported"));
}

// One number of a list of equal ones, within bounds.
int one(const YoloSource& s, const std::string& path, const char* key, int otherwise, int least) {
  const std::vector<int> all = s.wholes(path, key, {otherwise});
  constexpr int kMost = 64;
  bool fits = !all.empty();
  for (const int n : all) fits = fits && n == all[0] && n >= least && n <= kMost;
  if (!fits) s.refuse(str_cat(in_quotes(path), ": ", key, " like this is not supported"));
  return all[0];
}

// Sizes of the convolution whose weight is path.weight.
ConvNormOptions sizes_of(const YoloSource& s, const std::string& path, std::int64_t in, int stride) {
  const std::vector<std::int64_t>& w = s.shape(path + ".weight", 4);
  constexpr std::int64_t kLargest = 63;
  if (in % w[1] != 0 || w[0] % (in / w[1]) != 0 || w[2] > kLargest || w[3] > kLargest)
    s.refuse(str_cat(in_quotes(path + ".weight"), " takes groups of ", w[1], " channels, and there are ", in));
  if (const std::string mode = s.text(path, "padding_mode", "zeros"); mode != "zeros")
    s.refuse(str_cat(in_quotes(path), ": padding_mode ", in_quotes(mode), " is not supported"));
  ConvNormOptions o{.in = in,
                    .out = w[0],
                    .kernel = {w[2], w[3]},
                    .stride = one(s, path, "stride", stride, 1),
                    .groups = static_cast<int>(in / w[1]),
                    .dilation = one(s, path, "dilation", 1, 1)};
  if (s.type(path).empty() && w[2] == 6) o.padding = 2;  // YOLOv5's first layer
  else o.padding = one(s, path, "padding", o.dilation * (static_cast<int>(w[2]) - 1) / 2, 0);
  if (w[2] != w[3]) s.refuse(str_cat(in_quotes(path + ".weight"), " is not square"));
  o.bias = s.has(path + ".bias");
  return o;
}

class Conv : public YoloPart {
 public:
  Conv(const YoloSource& s, const std::string& path, std::int64_t in, int stride, const char* activation)
      : conv_(options(s, path, in, stride, activation)) {
    out = s.shape(path + ".conv.weight", 4)[0];
  }
  void visit(nn::Visitor& v) override { conv_.visit(v); }
  Tensor operator()(const Tensor& x) const override { return conv_(x); }
  const ConvNorm& conv() const { return conv_; }

 private:
  static ConvNormOptions options(const YoloSource& s, const std::string& path, std::int64_t in, int stride,
                                 const char* activation) {
    ConvNormOptions o = sizes_of(s, path + ".conv", in, stride);
    o.norm = s.has(path + ".bn.weight");  // a fused file has none
    o.eps = s.number(path + ".bn", "eps", kEps);
    o.activation = activation_of(s, path + ".act", activation);
    if (!o.norm && !o.bias) s.refuse(str_cat("there is no weight ", in_quotes(path + ".bn.weight")));
    if (!(o.eps > 0)) s.refuse(str_cat(in_quotes(path + ".bn"), ": eps is ", o.eps));
    return o;
  }
  ConvNorm conv_;
};

// A convolution without norm and activation: the last ones of heads.
class Plain : public YoloPart {
 public:
  Plain(const YoloSource& s, const std::string& path, std::int64_t in, int stride)
      : Plain(sizes_of(s, path, in, stride)) {}
  void visit(nn::Visitor& v) override { conv_.visit(v); }
  Tensor operator()(const Tensor& x) const override { return conv_(x); }

 private:
  explicit Plain(const ConvNormOptions& o)
      : conv_(o.in, o.out, o.kernel,
              {.stride = {o.stride}, .padding = {*o.padding}, .dilation = {o.dilation}, .groups = o.groups}, o.bias) {
    out = o.out;
  }
  nn::Conv2d<> conv_;
};

// Two convolutions and maybe a norm whose results are added; trained so, and equal to one convolution.
class RepConv : public YoloPart {
 public:
  RepConv(const YoloSource& s, const std::string& path, std::int64_t in, int stride)
      : large_(s, path + ".conv1", in, stride, "linear"),
        small_(s, path + ".conv2", in, stride, "linear"),
        activation_(activation_of(s, path + ".act", "silu")) {
    out = large_.out;
    if (small_.out != out) s.refuse(str_cat(in_quotes(path), " adds ", out, " channels to ", small_.out));
    if (s.has(path + ".bn.weight")) identity_.emplace(in, s.number(path + ".bn", "eps", kEps));
  }
  void visit(nn::Visitor& v) override {
    v("conv1", large_)("conv2", small_);
    if (identity_) v("bn", *identity_);
  }
  Tensor operator()(const Tensor& x) const override {
    Tensor y = both(x);
    if (identity_) y = y + (*identity_)(x);
    return activate(activation_, y);
  }

 private:
  // Where the smaller kernel lies in the middle of the larger one, the sum of both kernels is made when weights are
  // loaded.
  Tensor both(const Tensor& x) const {
    const ConvNorm &l = large_.conv(), &s = small_.conv();
    const ConvNormOptions &a = l.options(), &b = s.options();
    const auto more = static_cast<int>(a.kernel[0] - b.kernel[0]), rim = more / 2;
    const bool in_the_middle = more >= 0 && more % 2 == 0 && *a.padding - *b.padding == rim && a.stride == b.stride &&
                               a.groups == b.groups && a.dilation == 1 && b.dilation == 1 && a.activation == "linear" &&
                               b.activation == "linear";
    if (!in_the_middle) return l(x) + s(x);
    return l.with(x, l.weight() + s.weight().pad(2, rim, rim).pad(3, rim, rim), l.bias() + s.bias());
  }

  Conv large_, small_;
  std::optional<FrozenBatchNorm> identity_;
  std::string activation_;
};

}  // namespace

YoloPartPtr yolo_convolution(const YoloSource& s, const std::string& path, const std::string& type, std::int64_t in,
                             int stride) {
  if (type == "Conv" || type == "DWConv") return std::make_shared<Conv>(s, path, in, stride, "silu");
  if (type == "Conv2d") return std::make_shared<Plain>(s, path, in, stride);
  if (type == "RepConv" || type == "RepConvN")
    return s.has(path + ".conv1.conv.weight") ? YoloPartPtr(std::make_shared<RepConv>(s, path, in, stride))
                                              : std::make_shared<Conv>(s, path, in, stride, "silu");
  return nullptr;
}

}  // namespace lc
