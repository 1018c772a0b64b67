#include "lightcone/ops/vision/pictures.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "lightcone/ops/internal.h"
#include "lightcone/ops/shape.h"
#include "lightcone/ops/vision/boxes.h"
#include "lightcone/ops/vision/resize.h"

namespace lc {
using namespace detail;

namespace {

void check_picture(const Tensor& x, const char* op) {
  if (x.rank() < 3 || !is_float(x.dtype()))
    throw Error(op, str_cat("a picture is floating [.., channels, h, w], not ", name(x.dtype()), " ", str(x.shape())));
}

// A matrix times the channels, plus an offset: three colours from three.
Tensor mixed(const Operand& x, const std::array<std::array<double, 3>, 3>& by, const std::array<double, 3>& before,
             const std::array<double, 3>& after, const char* op) {
  check_picture(x, op);
  if (!(x->extent(-3) == Dim(3)))
    throw Error(op, str_cat("a picture has 3 colours along axis -3, and ", str(x->shape()), " has ", x->extent(-3)));
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < 3; ++i) {
    Tensor sum;
    for (std::size_t k = 0; k < 3; ++k) {
      const Tensor colour = x->select(-3, static_cast<std::int64_t>(k));
      const Tensor part = detail::mul(before[k] == 0 ? colour : detail::add(colour, before[k]), by[i][k]);
      sum = k ? prim::add(sum, part) : part;
    }
    out.push_back(after[i] == 0 ? sum : detail::add(sum, after[i]));
  }
  return stack(out, -3);
}
constexpr double kGrey = 128.0 / 255;

// Bars of an axis: a value at both ends.
Tensor barred(const Tensor& x, int axis, std::int64_t before, std::int64_t after, double value) {
  if (before == 0 && after == 0) return x;
  return pad(x, axis, static_cast<int>(before), static_cast<int>(after), PadMode::Constant, value);
}

}  // namespace

Tensor picture_of_bytes(Operand bytes) {
  const OpScope scope("picture_of_bytes", bytes.at);
  if (bytes->rank() != 3 || bytes->dtype() != DType::U8)
    throw Error("picture_of_bytes",
                str_cat("needs u8 [h, w, channels], not ", name(bytes->dtype()), " ", str(bytes->shape())));
  const Tensor x = prim::cast(bytes->permute({2, 0, 1}).unsqueeze(0), DType::F32);
  return prim::div(x, full_like(x, 255));
}

Tensor bytes_of_picture(Operand x) {
  const OpScope scope("bytes_of_picture", x.at);
  check_picture(x, "bytes_of_picture");
  if (x->rank() > 4 || (x->rank() == 4 && !(x->extent(0) == Dim(1))))
    throw Error("bytes_of_picture", str_cat("needs one picture, not ", str(x->shape())));
  const Tensor one = x->rank() == 4 ? x->select(0, 0) : x.tensor;
  const Tensor wide = is_narrow(one.dtype()) ? prim::cast(one, DType::F32) : one;
  return prim::cast(clamp(round(detail::mul(wide, 255)), 0, 255), DType::U8).permute({1, 2, 0});
}

Letterbox letterbox(Operand x, const LetterboxOptions& o) {
  const char* op = "letterbox";
  const OpScope scope(op, x.at);
  check_picture(x, op);
  const std::int64_t h = known(x->extent(-2), op), w = known(x->extent(-1), op);
  if (h < 1 || w < 1 || o.height < 1 || o.width < 1 || o.stride < 0)
    throw Error(op, str_cat(str(x->shape()), " into ", o.height, " x ", o.width, " with a stride of ", o.stride));
  Letterbox l;
  l.height = h, l.width = w;
  l.scale = std::min(static_cast<double>(o.height) / static_cast<double>(h),
                     static_cast<double>(o.width) / static_cast<double>(w));
  if (!o.scale_up) l.scale = std::min(l.scale, 1.0);
  const auto scaled = [&](std::int64_t n) {  // to the nearest, ties to even, as Python's round()
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::nearbyint(static_cast<double>(n) * l.scale)));
  };
  const std::int64_t to_h = scaled(h), to_w = scaled(w);
  const auto bars = [&](std::int64_t size, std::int64_t inside) {
    const std::int64_t all = size - inside;
    return o.stride > 0 ? all % o.stride : all;
  };
  const std::int64_t high = bars(o.height, to_h), wide = bars(o.width, to_w);
  if (o.centred) l.top = high / 2, l.left = wide / 2;
  Tensor t = resize(x, {.sizes = {to_h, to_w},
                        .axes = {-2, -1},
                        .mode = "linear",
                        .antialias = o.antialias,
                        .exclude_outside = o.antialias});
  t = barred(t, t.rank() - 2, l.top, high - l.top, o.pad_value);
  l.picture = barred(t, t.rank() - 1, l.left, wide - l.left, o.pad_value);
  return l;
}

Tensor boxes_of_picture(Operand boxes, const Letterbox& l) {
  const OpScope scope("boxes_of_picture", boxes.at);
  if (boxes->rank() < 1 || !(boxes->extent(-1) == Dim(4)) || !is_float(boxes->dtype()))
    throw Error("boxes_of_picture",
                str_cat("boxes are floating [.., 4], not ", name(boxes->dtype()), " ", str(boxes->shape())));
  const Tensor x = boxes, odd = x.graph().index(x.shape(), Dim::index(x.rank() - 1, 4) % Dim(2), x.dtype());
  // x and y in turn
  const auto from = detail::add(detail::mul(odd, static_cast<double>(l.top - l.left)), static_cast<double>(l.left));
  return clip_boxes(prim::div(prim::add(x, neg(from)), full_like(x, l.scale)), static_cast<double>(l.height),
                    static_cast<double>(l.width));
}

Tensor center_crop(Operand x, std::int64_t height, std::int64_t width) {
  const char* op = "center_crop";
  const OpScope scope(op, x.at);
  check_picture(x, op);
  if (height < 1 || width < 1) throw Error(op, str_cat("to ", height, " x ", width));
  Tensor t = x;
  for (const auto& [axis, size] : {std::pair{x->rank() - 2, height}, std::pair{x->rank() - 1, width}}) {
    const std::int64_t n = known(t.extent(axis), op), missing = std::max<std::int64_t>(0, size - n);
    t = barred(t, axis, missing / 2, missing - missing / 2, 0);
    // torchvision rounds half to even
    const auto first = static_cast<std::int64_t>(std::nearbyint(static_cast<double>(n + missing - size) / 2));
    t = t.slice(axis, first, first + size);
  }
  return t;
}

Tensor normalize_picture(Operand x, const std::vector<double>& mean, const std::vector<double>& std) {
  const char* op = "normalize_picture";
  const OpScope scope(op, x.at);
  check_picture(x, op);
  const std::int64_t channels = known(x->extent(-3), op);
  if (mean.size() != static_cast<std::size_t>(channels) || std.size() != mean.size())
    throw Error(op, str_cat(mean.size(), " means and ", std.size(), " deviations for ", channels, " channels"));
  std::vector<Tensor> out;
  for (std::size_t k = 0; k < mean.size(); ++k) {
    if (!(std[k] > 0)) throw Error(op, str_cat("a deviation of ", std[k]));
    const Tensor one = detail::add(x->select(-3, static_cast<std::int64_t>(k)), -mean[k]);
    out.push_back(prim::div(one, full_like(one, std[k])));
  }
  return stack(out, -3);
}

Tensor reverse_channels(Operand x) {
  const OpScope scope("reverse_channels", x.at);
  check_picture(x, "reverse_channels");
  return flip(x, {-3});
}
Tensor rgb_to_gray(Operand x) {
  const OpScope scope("rgb_to_gray", x.at);
  return mixed(x, {{{0.2989, 0.587, 0.114}, {0, 0, 0}, {0, 0, 0}}}, {}, {}, "rgb_to_gray").slice(-3, 0, 1);
}
Tensor rgb_to_ycbcr(Operand x) {
  const OpScope scope("rgb_to_ycbcr", x.at);
  return mixed(x,
               {{{0.299, 0.587, 0.114}, {-0.299 / 1.772, -0.587 / 1.772, 0.5}, {0.5, -0.587 / 1.402, -0.114 / 1.402}}},
               {}, {0, kGrey, kGrey}, "rgb_to_ycbcr");
}
Tensor ycbcr_to_rgb(Operand x) {
  const OpScope scope("ycbcr_to_rgb", x.at);
  const double green_b = -0.114 * 1.772 / 0.587, green_r = -0.299 * 1.402 / 0.587;
  return mixed(x, {{{1, 0, 1.402}, {1, green_b, green_r}, {1, 1.772, 0}}}, {0, -kGrey, -kGrey}, {}, "ycbcr_to_rgb");
}

}  // namespace lc
