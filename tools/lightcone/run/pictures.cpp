#include "pictures.h"

#include <algorithm>
#include <cmath>

#include "../train/table.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/base/error.h"
#include "lightcone/base/numbers.h"
#include "lightcone/io/images/images.h"
#include "lightcone/io/printable.h"
#include "lightcone/ops/vision/pictures.h"
#include "lightcone/ops/vision/resize.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"

namespace lc::tool {
namespace {

// The axes of an input that takes pictures.
struct Layout {
  bool channels_last = false, batch = true;
  std::int64_t channels = 3, height = -1, width = -1;  // -1: the model leaves it open
};

std::string shape_text(const FileDescription::Port& p) { return str_cat(in_quotes(p.name), ", ", p.type); }

bool is_channels(std::int64_t n) { return n == 1 || n == 3; }

Layout layout_of(const FileDescription::Port& port, const PictureOptions& o) {
  if (!port.shape || port.shape->size() < 3 || port.shape->size() > 4)
    throw Error("run", str_cat("a picture is for an input of three or four axes, and the input ", shape_text(port),
                               " is no such: give an array (.npy)"));
  std::vector<std::int64_t> s = *port.shape;
  Layout l{.batch = s.size() == 4};
  if (l.batch) s.erase(s.begin());
  const bool first = is_channels(s[0]), last = is_channels(s[2]);
  if (o.layout.empty() && first == last)
    throw Error("run", str_cat("the input ", shape_text(port),
                               " does not say which axis is that of the colours: "
                               "--layout nchw or --layout nhwc decides"));
  l.channels_last = o.layout.empty() ? last : o.layout == "nhwc";
  const std::int64_t channels = l.channels_last ? s[2] : s[0];
  if (channels > 0 && !is_channels(channels))
    throw Error("run",
                str_cat("pictures have one or three channels, and the input ", shape_text(port), " has ", channels,
                        l.channels_last ? " (--layout nchw if its first axis is theirs)"
                                        : " (--layout nhwc if its last axis is theirs)"));
  l.channels = channels > 0 ? channels : 3;
  l.height = l.channels_last ? s[0] : s[1], l.width = l.channels_last ? s[1] : s[2];
  return l;
}

std::int64_t up(std::int64_t n, std::int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// The size of the input: the model's, else the user's, else the picture's.
void choose_size(Layout& l, const Array& picture, const PictureOptions& o) {
  const std::int64_t m = std::max<std::int64_t>(o.multiple, 1);
  if (l.height < 0) l.height = up(o.height ? o.height : picture.shape[1], m);
  if (l.width < 0) l.width = up(o.width ? o.width : picture.shape[2], m);
}

std::vector<double> for_channels(const char* option, const std::vector<double>& given, std::int64_t channels,
                                 double otherwise) {
  if (given.empty()) return std::vector<double>(static_cast<std::size_t>(channels), otherwise);
  if (given.size() == 1) return std::vector<double>(static_cast<std::size_t>(channels), given[0]);
  if (static_cast<std::int64_t>(given.size()) != channels)
    throw Error("run", str_cat(option, " has ", given.size(), " numbers, and the input ", channels, " channels"));
  return given;
}

// The picture in the pixels of the input, [1, 3, height, width] with bytes as floats, and where it lies.
Tensor fitted(const Tensor& x, const Layout& l, const PictureOptions& o, Placed& p) {
  const std::int64_t h = p.picture_height(), w = p.picture_width();
  const auto stretched = [&](std::int64_t height, std::int64_t width) {
    p.scale_y = static_cast<double>(height) / static_cast<double>(h);
    p.scale_x = static_cast<double>(width) / static_cast<double>(w);
    if (height == h && width == w) return x;
    return resize(x, {.sizes = {height, width},
                      .axes = {2, 3},
                      .mode = "linear",
                      .antialias = o.antialias,
                      .exclude_outside = o.antialias});
  };
  if (o.fit == "stretch") return stretched(l.height, l.width);
  if (o.fit == "crop") {
    const double scale = std::max(static_cast<double>(l.height) / static_cast<double>(h),
                                  static_cast<double>(l.width) / static_cast<double>(w));
    const auto size = [&](std::int64_t n) {
      return static_cast<std::int64_t>(std::lround(static_cast<double>(n) * scale));
    };
    const Tensor covering = stretched(std::max(size(h), l.height), std::max(size(w), l.width));
    p.top = -std::floor(static_cast<double>(*covering.extent(2).constant() - l.height) / 2);
    p.left = -std::floor(static_cast<double>(*covering.extent(3).constant() - l.width) / 2);
    return center_crop(covering, l.height, l.width);
  }
  const Letterbox box = letterbox(
      x,
      {.height = l.height, .width = l.width, .pad_value = 114, .centred = o.fit != "corner", .antialias = o.antialias});
  p.scale_x = p.scale_y = box.scale;
  p.left = static_cast<double>(box.left), p.top = static_cast<double>(box.top);
  return box.picture;
}

std::string described(const std::string& file, const Layout& l, const Placed& p, const PictureOptions& o, double scale,
                      bool bytes) {
  std::string s = str_cat(printable(file, 200), ", ", p.picture_width(), " x ", p.picture_height());
  if (p.picture_width() != l.width || p.picture_height() != l.height)
    s += str_cat(", fitted (--fit ", o.fit, ") into ", l.width, " x ", l.height);
  s += str_cat(", ", l.channels == 1 ? "grey" : o.colour == "bgr" ? "BGR" : "RGB", bytes ? " bytes" : "");
  if (scale != 1) s += str_cat(", times ", formatted("%.4g", scale));
  if (!o.mean.empty()) s += ", minus --mean";
  if (!o.std.empty()) s += ", over --std";
  return s + (l.channels_last ? ", channels last" : ", channels first");
}

// Computes a graph's one output.
Array computed(const Graph& g, const Array& picture) {
  const Program program = compile(g, generic() | cpu());
  Context c(program);
  c.set("picture", picture);
  c.run();
  Array r = Array::zeros(program.graph()[program.graph().roots()[0].edge.node].dtype, c.shape("input"));
  std::ranges::copy(c.bytes("input"), r.bytes.begin());
  return r;
}

}  // namespace

PictureInput picture_input(const std::string& file, const FileDescription::Port& port, const PictureOptions& o) {
  PictureInput r;
  r.placed.picture = read_image(file, kOwnFiles);
  Layout l = layout_of(port, o);
  choose_size(l, r.placed.picture, o);
  r.placed.height = l.height, r.placed.width = l.width;
  const DType dtype = port.dtype.value_or(DType::F32);
  const double scale = o.scale.value_or(is_float(dtype) ? 1.0 / 255 : 1.0);
  Graph g;
  const std::vector<std::int64_t>& s = r.placed.picture.shape;
  Tensor x = unsqueeze(to(g.input("picture", {s[0], s[1], s[2]}, DType::U8), DType::F32), 0);
  x = fitted(x, l, o, r.placed);
  if (l.channels == 1) x = rgb_to_gray(x);
  else if (o.colour == "bgr") x = reverse_channels(x);
  if (scale != 1) x = x * scale;
  if (!o.mean.empty() || !o.std.empty())
    x = normalize_picture(x, for_channels("--mean", o.mean, l.channels, 0),
                          for_channels("--std", o.std, l.channels, 1));
  if (l.channels_last) x = permute(x, {0, 2, 3, 1});
  if (!l.batch) x = squeeze(x, 0);
  g.output("input", is_float(dtype) ? to(x, dtype) : to(round(x), dtype));
  r.array = computed(g, r.placed.picture);
  r.said = described(file, l, r.placed, o, scale, !is_float(dtype));
  return r;
}

}  // namespace lc::tool
