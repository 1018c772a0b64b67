#include "lightcone/io/data/transforms.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace lc {
namespace {

// An image as contiguous planes of height x width.
struct Planes {
  std::size_t count = 1, height, width;
};
Planes planes(const std::vector<std::int64_t>& shape) {
  Planes p{1, static_cast<std::size_t>(shape[shape.size() - 2]), static_cast<std::size_t>(shape.back())};
  for (std::size_t axis = 0; axis + 2 < shape.size(); ++axis) p.count *= static_cast<std::size_t>(shape[axis]);
  return p;
}

void need(bool right, const char* transform, const std::string& what) {
  if (!right) throw Error(transform, what);
}
void need_image(const std::vector<std::int64_t>& shape, const char* transform) {
  need(shape.size() >= 2, transform, str_cat("a sample of ", shape.size(), " axes, an image has two or more"));
}

// ---- dtype and shape after a transform; Error if it does not accept its input -------------------------

using Shape = std::vector<std::int64_t>;
struct TransformKind {
  DType dtype;
  Shape shape;
};

TransformKind after(const ToFloat& t, TransformKind in) {
  need(t.divisor != 0 && std::isfinite(t.divisor), "ToFloat", "the divisor must be a number other than 0");
  return {DType::F32, in.shape};
}
TransformKind after(const ChannelsFirst&, TransformKind in) {
  need(in.shape.size() == 3, "ChannelsFirst", str_cat("a sample of ", in.shape.size(), " axes, it needs three"));
  return {in.dtype, {in.shape[2], in.shape[0], in.shape[1]}};
}
std::size_t channels(const Shape& shape) {
  return shape.size() < 3 ? 1 : static_cast<std::size_t>(shape[shape.size() - 3]);
}
TransformKind after(const Normalize& t, TransformKind in) {
  need(in.dtype == DType::F32, "Normalize", str_cat("samples of ", name(in.dtype), ": put ToFloat before it"));
  need_image(in.shape, "Normalize");
  const std::size_t c = channels(in.shape);
  need(t.mean.size() == c && t.std.size() == c, "Normalize",
       str_cat(t.mean.size(), " means and ", t.std.size(), " standard deviations for ", c, " channels"));
  need(std::find(t.std.begin(), t.std.end(), 0.f) == t.std.end(), "Normalize", "a standard deviation of 0");
  return in;
}
constexpr std::int64_t kMost = 1 << 20;  // maximum extent in pixels
TransformKind after(const RandomCrop& t, TransformKind in) {
  need_image(in.shape, "RandomCrop");
  std::int64_t &height = in.shape[in.shape.size() - 2], &width = in.shape.back();
  need(t.padding >= 0 && t.padding <= kMost && t.height >= 0 && t.width >= 0, "RandomCrop",
       str_cat(t.height, " x ", t.width, ", padding ", t.padding, ": these are no sizes"));
  need(t.height - height <= 2 * t.padding && t.width - width <= 2 * t.padding, "RandomCrop",
       str_cat(t.height, " x ", t.width, " from ", height, " x ", width, " and a padding of ", t.padding,
               ": too little"));
  height = t.height, width = t.width;
  return in;
}
TransformKind after(const RandomHorizontalFlip& t, TransformKind in) {
  need_image(in.shape, "RandomHorizontalFlip");
  need(t.probability >= 0 && t.probability <= 1, "RandomHorizontalFlip", "a probability lies between 0 and 1");
  return in;
}
TransformKind of_size(TransformKind in, std::int64_t height, std::int64_t width, const char* transform) {
  need_image(in.shape, transform);
  need(height > 0 && width > 0 && height <= kMost && width <= kMost, transform,
       str_cat(height, " x ", width, ": these are no sizes"));
  in.shape[in.shape.size() - 2] = height, in.shape.back() = width;
  return in;
}
TransformKind after(const Resize& t, TransformKind in) {
  need(in.dtype == DType::U8 || in.dtype == DType::F32, "Resize",
       str_cat("samples of ", name(in.dtype), ", it needs u8 or f32"));
  need_image(in.shape, "Resize");
  need(in.shape[in.shape.size() - 2] > 0 && in.shape.back() > 0, "Resize", "a picture without pixels");
  return of_size(std::move(in), t.height, t.width, "Resize");
}
TransformKind after(const CenterCrop& t, TransformKind in) {
  return of_size(std::move(in), t.height, t.width, "CenterCrop");
}
TransformKind after(const EachSample& t, TransformKind in) {
  need(static_cast<bool>(t.apply), "EachSample", "it has no function");
  return in;
}

// ---- applying a transform to one sample ------------------------------------------------------------

struct Work {
  DType dtype;         // dtype of the input
  const Shape& shape;  // shape of the input
  const std::byte* from;
  std::byte* to;
  std::size_t bytes;  // size of the result
  SeededRandom random;
};

void apply(const ToFloat& t, Work& w) {
  auto* to = reinterpret_cast<float*>(w.to);
  const std::size_t n = w.bytes / sizeof(float);
  if (w.dtype == DType::U8) {  // pictures: avoids a branch on the dtype per byte
    for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<float>(w.from[i]) / t.divisor;
    return;
  }
  for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<float>(load_f64(w.from, w.dtype, i)) / t.divisor;
}

void apply(const ChannelsFirst&, Work& w) {
  const std::size_t channels = static_cast<std::size_t>(w.shape[2]), each = size_of(w.dtype),
                    pixels = channels && each ? w.bytes / channels / each : 0;
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t p = 0; p < pixels; ++p)
      std::memcpy(w.to + (c * pixels + p) * each, w.from + (p * channels + c) * each, each);
}

void apply(const Normalize& t, Work& w) {
  const Planes p = planes(w.shape);
  const auto* from = reinterpret_cast<const float*>(w.from);
  auto* to = reinterpret_cast<float*>(w.to);
  for (std::size_t k = 0, i = 0; k < p.count; ++k) {
    const float mean = t.mean[k % t.mean.size()], std = t.std[k % t.std.size()];
    for (const std::size_t end = i + p.height * p.width; i < end; ++i) to[i] = (from[i] - mean) / std;
  }
}

// Copies the part of a picture that begins at (top, left). Positions outside the picture are zero.
void cut(Work& w, std::int64_t top, std::int64_t left, std::int64_t rows, std::int64_t columns) {
  const Planes p = planes(w.shape);
  const auto height = static_cast<std::int64_t>(p.height), width = static_cast<std::int64_t>(p.width);
  // The range of columns of the picture that is visible.
  const std::int64_t first = std::clamp<std::int64_t>(left, 0, width),
                     end = std::clamp<std::int64_t>(left + columns, 0, width);
  const std::size_t each = size_of(w.dtype);
  if (w.bytes) std::memset(w.to, 0, w.bytes);
  for (std::size_t k = 0; k < p.count; ++k)
    for (std::int64_t y = 0; y < rows; ++y) {
      if (top + y < 0 || top + y >= height || first >= end) continue;
      const auto from = (static_cast<std::int64_t>(k) * height + top + y) * width + first,
                 to = (static_cast<std::int64_t>(k) * rows + y) * columns + first - left;
      std::memcpy(w.to + static_cast<std::size_t>(to) * each, w.from + static_cast<std::size_t>(from) * each,
                  static_cast<std::size_t>(end - first) * each);
    }
}

void apply(const RandomCrop& t, Work& w) {
  const Planes p = planes(w.shape);
  const auto place = [&](std::size_t size, std::int64_t crop) {
    const std::int64_t places = static_cast<std::int64_t>(size) + 2 * t.padding - crop + 1;
    return static_cast<std::int64_t>(w.random.below(static_cast<std::uint64_t>(places))) - t.padding;
  };
  const std::int64_t top = place(p.height, t.height), left = place(p.width, t.width);
  cut(w, top, left, t.height, t.width);
}

void apply(const CenterCrop& t, Work& w) {
  const Planes p = planes(w.shape);
  const auto begin = [](std::size_t size, std::int64_t crop) {
    const std::int64_t rest = static_cast<std::int64_t>(size) - crop;
    if (rest < 0) return -(-rest / 2);
    return rest / 2 + (rest % 4 == 3);  // half of the rest, rounded to even as in Python
  };
  cut(w, begin(p.height, t.height), begin(p.width, t.width), t.height, t.width);
}

// For each position of the resampled axis, its source positions and their weights.
struct Weights {
  struct Span {
    std::size_t first, count;
  };
  std::vector<Span> spans;
  std::vector<double> weights;  // weights of all spans, concatenated
};
Weights triangle(std::size_t from, std::size_t to) {
  Weights w;
  const double scale = static_cast<double>(from) / static_cast<double>(to), wide = std::max(scale, 1.0);
  for (std::size_t k = 0; k < to; ++k) {
    const double center = (static_cast<double>(k) + 0.5) * scale;
    const auto first = static_cast<std::size_t>(std::max(0.0, center - wide + 0.5));
    const std::size_t end = std::min(from, static_cast<std::size_t>(center + wide + 0.5));
    w.spans.push_back({first, end - first});
    double sum = 0;
    const std::size_t begin = w.weights.size();
    for (std::size_t i = first; i < end; ++i) {
      w.weights.push_back(std::max(0.0, 1 - std::abs(static_cast<double>(i) - center + 0.5) / wide));
      sum += w.weights.back();
    }
    for (std::size_t i = begin; i < w.weights.size(); ++i) w.weights[i] /= sum;
  }
  return w;
}

// Resamples an axis of extent `from`, of which each position holds `inner` contiguous elements. Sums of u8 are in fixed
// point with 22 fractional bits, as in Pillow, so that the result has the same bytes.
template <class T>
void resample(const T* in, T* out, std::size_t outer, std::size_t from, std::size_t inner, const Weights& w) {
  constexpr int kBits = 22;
  using Sum = std::conditional_t<std::is_same_v<T, float>, double, std::int32_t>;
  std::vector<Sum> weights;
  for (const double v : w.weights)
    if constexpr (std::is_same_v<T, float>) weights.push_back(v);
    else weights.push_back(static_cast<std::int32_t>(0.5 + v * (1 << kBits)));
  for (std::size_t o = 0; o < outer; ++o, in += from * inner) {
    const Sum* weight = weights.data();
    for (const auto [first, count] : w.spans) {
      for (std::size_t i = 0; i < inner; ++i) {
        Sum sum = std::is_same_v<T, float> ? 0 : 1 << (kBits - 1);
        for (std::size_t k = 0; k < count; ++k) sum += static_cast<Sum>(in[(first + k) * inner + i]) * weight[k];
        if constexpr (std::is_same_v<T, float>) *out++ = static_cast<float>(sum);
        else *out++ = static_cast<T>(std::clamp(sum >> kBits, 0, 255));
      }
      weight += count;
    }
  }
}
template <class T>
void resize(const Resize& t, Work& w) {
  const Planes p = planes(w.shape);
  const auto height = static_cast<std::size_t>(t.height), width = static_cast<std::size_t>(t.width);
  const T* from = reinterpret_cast<const T*>(w.from);
  std::vector<T> rows;
  if (width != p.width) {
    rows.resize(p.count * p.height * width);
    resample(from, rows.data(), p.count * p.height, p.width, 1, triangle(p.width, width));
    from = rows.data();
  }
  if (height != p.height)
    resample(from, reinterpret_cast<T*>(w.to), p.count, p.height, width, triangle(p.height, height));
  else std::memcpy(w.to, from, w.bytes);
}
void apply(const Resize& t, Work& w) {
  if (w.bytes == 0) return;
  w.dtype == DType::U8 ? resize<std::uint8_t>(t, w) : resize<float>(t, w);
}

void apply(const RandomHorizontalFlip& t, Work& w) {
  if (w.bytes == 0) return;
  if (!(w.random.uniform() < t.probability)) {
    std::memcpy(w.to, w.from, w.bytes);
    return;
  }
  const std::size_t each = size_of(w.dtype), width = planes(w.shape).width, row = width * each;
  for (std::size_t begin = 0; begin < w.bytes; begin += row)
    for (std::size_t x = 0; x < width; ++x)
      std::memcpy(w.to + begin + x * each, w.from + begin + (width - 1 - x) * each, each);
}

void apply(const EachSample& t, Work& w) {
  Array sample = Array::zeros(w.dtype, w.shape);
  if (w.bytes) std::memcpy(sample.bytes.data(), w.from, w.bytes);
  t.apply(sample, w.random);
  if (sample.dtype != w.dtype || sample.shape != w.shape || sample.bytes.size() != w.bytes)
    throw Error("EachSample", "the function changed the shape or dtype of a sample");
  if (w.bytes) std::memcpy(w.to, sample.bytes.data(), w.bytes);
}

}  // namespace

Transforms::Transforms(std::vector<Transform> list, DType dtype, std::vector<std::int64_t> sample_shape)
    : list_(std::move(list)) {
  TransformKind kind{dtype, std::move(sample_shape)};
  const auto keep = [&] {
    stages_.push_back({kind.dtype, kind.shape, Array::zeros(kind.dtype, kind.shape).bytes.size()});
  };
  keep();
  for (const Transform& t : list_) {
    kind = std::visit([&](const auto& one) { return after(one, kind); }, t);
    keep();
  }
}

void Transforms::apply(const std::byte* from, std::byte* to, const std::uint64_t (&key)[3]) {
  if (list_.empty() && bytes()) std::memcpy(to, from, bytes());
  for (std::size_t k = 0; k < list_.size(); ++k) {
    const Stage &in = stages_[k], &out = stages_[k + 1];
    std::vector<std::byte>& scratch = scratch_[k % 2];
    std::byte* target = to;
    if (k + 1 < list_.size()) {
      scratch.resize(std::max(scratch.size(), out.bytes));
      target = scratch.data();
    }
    Work w{in.dtype, in.shape, from, target, out.bytes, SeededRandom({key[0], key[1], key[2], k})};
    std::visit([&](const auto& one) { lc::apply(one, w); }, list_[k]);
    from = target;
  }
}

}  // namespace lc
