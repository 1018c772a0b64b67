#include "lightcone/backends/cpu/conv_last.h"

#include <algorithm>

#include "lightcone/backends/cpu/depthwise.h"
#include "lightcone/backends/cpu/epilogue.h"
#include "lightcone/backends/cpu/lower.h"

namespace lc::host {
namespace {

using i64 = std::int64_t;
constexpr i64 kStep = 128;      // taps added before a tile is stored: their weights stay in the first-level cache
constexpr i64 kPixels = 384;    // of a task, at most
constexpr i64 kFewest = 48;     // and where a pixel is long
constexpr i64 kPart = 1 << 17;  // floats of the image a task reads, about: they stay in the second-level cache
constexpr i64 kChunk = 4;       // panels after which the epilogue runs, while they are in the cache
constexpr i64 kCopy = 1 << 20;  // floats of images copied at a time, about
constexpr i64 kCopyTask = 1 << 13;
constexpr i64 kMostImages = i64{1} << 32;  // scratch and the way do not change beyond
constexpr i64 kWeights = 16;               // cycles that a tap's weights cost a task
constexpr i64 kTask = 20;                  // what a task costs beside, for each tap
constexpr i64 kRounds = 4;                 // more rounds of smaller tasks than the fewest that are tried

i64 parts(i64 v, i64 of) { return (v + of - 1) / of; }

std::optional<i64> number(const Dim& d) { return d.constant(); }

// One of the two axes of pixels. Padded ones are read from a copy, and must say how they are padded.
bool padded_axis(const Convolution& c, int j, LastShape::Axis& a) {
  const Convolution::Pixel& p = c.pixels[j];
  const auto image = number(p.image);
  if (p.step <= 0 || !image || *image % p.step != 0) return false;
  a.unit = *image / p.step;
  i64 reach = 0;
  for (const auto& s : c.sums) {
    if (s.dilation[j] == 0) continue;
    const auto stride = number(s.image), extent = number(s.extent);
    if (s.dilation[j] < 0 || reach > 0 || !stride || !extent || *stride != a.unit * s.dilation[j]) return false;
    reach = s.dilation[j] * (*extent - 1);
  }
  const auto lo = number(p.lo), hi = number(p.hi);
  if (!lo || !hi) return false;
  a.length = p.step * (a.extent - 1) + reach + 1;
  a.lo = std::clamp<i64>(*lo, 0, a.length), a.hi = std::clamp<i64>(*hi, a.lo, a.length);
  return true;
}

bool is_padded(const Convolution::Pixel& p) {
  return p.step != 0 || !(p.lo == Dim(-Convolution::kFar)) || !(p.hi == Dim(Convolution::kFar));
}

// Read from a copy [image][y][x][channel].
bool copied(const Convolution& c, LastShape& s) {
  if (!padded_axis(c, 1, s.y) || !padded_axis(c, 2, s.x)) return false;
  for (std::size_t i = 0; i < c.sums.size(); ++i) {
    const auto& sum = c.sums[i];
    if (sum.dilation[1] != 0 || sum.dilation[2] != 0 || s.sums[i].extent == 1) continue;
    if (s.channels != 1) return false;
    s.channels = s.sums[i].extent, s.channel_step = s.sums[i].read;
  }
  const i64 row = s.x.length * s.channels;
  for (std::size_t i = 0; i < c.sums.size(); ++i) {
    const auto& d = c.sums[i].dilation;
    if (d[1] != 0 && d[2] != 0) return false;
    s.sums[i].read = d[1] != 0 ? d[1] * row : d[2] != 0 ? d[2] * s.channels : 1;
  }
  s.y.step = c.pixels[1].step * row, s.x.step = c.pixels[2].step * s.channels;
  s.batch_step = s.y.length * row;
  s.copy = true;
  return true;
}

// How a run is cut: task by task, some pixels and some panels of weights each.
struct Split {
  i64 pixels = 1, panels = 1, across = 1, tasks = 0;
};

class ConvLastKernel final : public Kernel {
 public:
  ConvLastKernel(const Convolution& c, const LastShape& s, ConvWay way, std::shared_ptr<Parallel> parallel,
                 std::shared_ptr<const Epilogue> epilogue, Isa isa)
      : s_(s), parallel_(std::move(parallel)), epilogue_(std::move(epilogue)), table_(&conv_last_table(isa)) {
    sizes_ = {c.image_offset, c.pixels[0].extent};
    if (epilogue_)
      for (const Dim& d : epilogue_->sizes()) sizes_.push_back(d);
    flops_ = Dim(2 * s.rows * s.depth * s.y.extent * s.x.extent) * c.pixels[0].extent;
    largest_ = std::min(c.pixels[0].extent.bounds().hi, kMostImages);
    winograd_ = LastWinograd::make(s, largest_, way, *table_);
    find_runs();
  }
  std::string name() const override {
    const std::string way = winograd_ ? "conv_winograd_last" : "conv_last";
    return epilogue_ ? way + "+" + epilogue_->loop()->name() : way;
  }
  std::vector<Dim> sizes() const override { return sizes_; }
  Dim scratch_bytes(int) const override {
    return std::max(s_.copy ? group(largest_) * s_.batch_step : 0, winograd_ ? winograd_->floats() : 0) * 4;
  }
  std::string source() const override { return epilogue_ ? epilogue_->loop()->source() : std::string(); }
  std::shared_ptr<Parallel> parallel() const override { return parallel_; }
  Dim flops() const override { return flops_; }
  void run(const Launch& l) const override;

 private:
  struct Block {
    std::size_t first, count;
    i64 begin, depth;
  };
  struct Job {
    const ConvLastKernel& k;
    const Launch& l;
    const float *image, *read;  // of the first image of the group
    float *copy, *out;
    i64 pixels;
    Split split;
    i64 copy_rows;
  };
  void find_runs();
  i64 group(i64 images) const {
    return s_.copy ? std::clamp<i64>(kCopy / s_.batch_step, 1, std::max<i64>(images, 1)) : images;
  }
  Split split(i64 pixels, int workers) const;
  void copy_row(const Job& j, i64 row) const;
  void panels(const Job& j, const float* const* at, i64 first, i64 count, i64 begin, i64 end) const;
  void part(const Job& j, int task) const;

  LastShape s_;
  std::shared_ptr<Parallel> parallel_;
  std::shared_ptr<const Epilogue> epilogue_;
  const ConvLastTable* table_;
  std::optional<LastWinograd> winograd_;
  std::vector<Dim> sizes_;
  Dim flops_;
  i64 largest_ = 0;
  std::vector<TapRun> runs_;
  std::vector<Block> blocks_;
};

// Taps that lie side by side are runs, of one block at most; blocks decide bits and follow from the shape alone.
void ConvLastKernel::find_runs() {
  std::vector<LastShape::Sum> sums = s_.sums;
  i64 length = 1;
  while (!sums.empty() && sums.back().read == length) length *= sums.back().extent, sums.pop_back();
  i64 count = 1;
  for (const auto& s : sums) count *= s.extent;
  const i64 pieces = parts(length, kStep), piece = parts(length, pieces);
  for (i64 n = 0; n < count; ++n) {
    i64 at = 0, rest = n;
    for (std::size_t i = sums.size(); i-- > 0; rest /= sums[i].extent) at += rest % sums[i].extent * sums[i].read;
    for (i64 k = 0; k < length; k += piece) {
      const i64 some = std::min(piece, length - k);
      if (blocks_.empty() || blocks_.back().depth + some > kStep)
        blocks_.push_back({runs_.size(), 0, n * length + k, 0});
      runs_.push_back({at + k, some});
      ++blocks_.back().count, blocks_.back().depth += some;
    }
  }
}

// The least time, in cycles of a core that multiplies two vectors in each.
Split ConvLastKernel::split(i64 pixels, int workers) const {
  const i64 all = parts(s_.rows, table_->nr), length = s_.copy ? 2 * s_.channels : s_.depth;
  const i64 most = std::clamp<i64>(kPart / length, kFewest, kPixels), fewest = parts(pixels, most);
  const i64 vectors = 2;  // half of a tile's: cycles for a pixel
  Split best;
  i64 least = 0;
  for (i64 pieces = 1; pieces <= std::min<i64>(all, 4 * workers); ++pieces) {
    const i64 height = parts(all, pieces), across = parts(all, height), rounds = parts(fewest * across, workers);
    for (i64 r = rounds; r < rounds + kRounds; ++r) {  // the smallest tasks that are done in so many rounds
      const i64 n = parts(pixels, std::clamp(r * workers / across, fewest, pixels)), tasks = parts(pixels, n) * across;
      const i64 cost = parts(tasks, workers) * (height * (n * vectors + kWeights) + kTask);
      if (least > 0 && cost >= least) continue;
      least = cost, best = {n, height, across, tasks};
    }
  }
  return best;
}

void ConvLastKernel::copy_row(const Job& j, i64 row) const {
  const i64 image = row / s_.y.length, y = row % s_.y.length, c = s_.channels;
  float* to = j.copy + image * s_.batch_step + y * s_.x.length * c;
  const bool inside = y >= s_.y.lo && y < s_.y.hi;
  const i64 lo = inside ? s_.x.lo : s_.x.length, hi = inside ? s_.x.hi : s_.x.length;
  const float* from = j.image + image * s_.batch_image + y * s_.y.unit;
  std::fill(to, to + lo * c, 0.0f);
  if (s_.channel_step == 1) {
    for (i64 x = lo; x < hi; ++x) std::copy_n(from + x * s_.x.unit, c, to + x * c);
  } else {
    for (i64 x = lo; x < hi; ++x)
      for (i64 i = 0; i < c; ++i) to[x * c + i] = from[x * s_.x.unit + i * s_.channel_step];
  }
  std::fill(to + hi * c, to + s_.x.length * c, 0.0f);
}

// Panels [begin, end) of weights over some pixels.
void ConvLastKernel::panels(const Job& j, const float* const* at, i64 first, i64 count, i64 begin, i64 end) const {
  const ConvLastTable& t = *table_;
  const auto* weights = static_cast<const float*>(j.l.in[1]);
  const i64 tiles = parts(count, t.mr);
  const bool residual = epilogue_ && epilogue_->largest() >= 0;
  const auto* beside =
      residual ? static_cast<const float*>(j.l.in[2 + static_cast<std::size_t>(epilogue_->largest())]) : nullptr;
  const i64 shift = j.out - static_cast<const float*>(j.l.out);
  for (i64 p = begin; p < end; ++p)
    for (const Block& b : blocks_) {
      const float* w = weights + (p * s_.depth + b.begin) * t.nr;
      const i64 floats = b.depth * t.nr;  // what comes next is as long, and lies behind
      for (i64 i = 0; i < tiles; ++i) {
        const i64 q = count * i / tiles, rows = count * (i + 1) / tiles - q;
        const float* next = w;
        if (i * 16 < t.nr) next = w + floats + i * 16 * b.depth;
        else if (b.begin == 0 && p == begin) next = at[std::min(q + 2 * t.mr, count - 1)];
        const i64 to = (first + q) * s_.rows + p * t.nr, columns = std::min<i64>(t.nr, s_.rows - p * t.nr);
        for (i64 r = 0; b.begin == 0 && r < rows; ++r)  // far apart: nothing else asks for them ahead
          for (i64 c = 0; c < columns; c += 16) {
            __builtin_prefetch(j.out + to + r * s_.rows + c, 1, 2);
            if (residual) __builtin_prefetch(beside + shift + to + r * s_.rows + c, 0, 2);
          }
        t.tile(at + q, runs_.data() + b.first, static_cast<i64>(b.count), w, next, j.out + to, s_.rows, rows, columns,
               b.begin > 0);
      }
    }
}

void ConvLastKernel::part(const Job& j, int task) const {
  const i64 first = task / j.split.across * j.split.pixels, panel = task % j.split.across * j.split.panels;
  const i64 count = std::min(j.split.pixels, j.pixels - first), nr = table_->nr;
  const i64 last = std::min(panel + j.split.panels, parts(s_.rows, nr));
  const float* at[kPixels];
  i64 x = first % s_.x.extent, y = first / s_.x.extent % s_.y.extent, image = first / s_.x.extent / s_.y.extent;
  for (i64 q = 0; q < count; ++q) {
    at[q] = j.read + image * s_.batch_step + y * s_.y.step + x * s_.x.step;
    if (++x == s_.x.extent) x = 0, ++y;
    if (y == s_.y.extent) y = 0, ++image;
  }
  auto* whole = static_cast<float*>(j.l.out);
  const i64 before = (j.out - whole) / s_.rows;
  for (i64 p = panel; p < last; p += kChunk) {
    const i64 end = std::min(p + kChunk, last);
    panels(j, at, first, count, p, end);
    if (epilogue_)
      epilogue_->run(j.l.in.data() + 2, whole, j.l.sizes.data() + 2, before + first, count, p * nr,
                     std::min(end * nr, s_.rows));
  }
}

void ConvLastKernel::run(const Launch& l) const {
  const i64 images = l.sizes[1], pixels = s_.y.extent * s_.x.extent;
  const int workers = l.parallel.workers();
  if (winograd_ && winograd_->run(l, static_cast<const float*>(l.in[0]) + l.sizes[0], images, epilogue_.get(),
                                  l.sizes.data() + 2, reinterpret_cast<float*>(l.scratch)))
    return;
  for (i64 first = 0, n = 0; first < images; first += n) {
    n = std::min(group(images), images - first);
    const float* image = static_cast<const float*>(l.in[0]) + l.sizes[0] + first * s_.batch_image;
    Job j{*this, l, image, image, nullptr, static_cast<float*>(l.out) + first * pixels * s_.rows, n * pixels, {}, 0};
    if (s_.copy) {
      j.read = j.copy = reinterpret_cast<float*>(l.scratch);
      j.copy_rows = parts(kCopyTask, s_.x.length * s_.channels);
      const auto task = [](void* arg, int number, int) {
        const Job& k = *static_cast<const Job*>(arg);
        const i64 all = k.pixels / (k.k.s_.y.extent * k.k.s_.x.extent) * k.k.s_.y.length;
        for (i64 r = number * k.copy_rows; r < std::min(all, (number + 1) * k.copy_rows); ++r) k.k.copy_row(k, r);
      };
      l.parallel.run(static_cast<int>(parts(n * s_.y.length, j.copy_rows)), task, &j);
    }
    j.split = split(j.pixels, workers);
    const auto task = [](void* arg, int number, int) {
      const Job& k = *static_cast<const Job*>(arg);
      k.k.part(k, number);
    };
    l.parallel.run(static_cast<int>(j.split.tasks), task, &j);
  }
}

}  // namespace

const ConvLastTable& conv_last_table(Isa isa) {
  switch (isa) {
    case Isa::Avx512: return kConvLastAvx512;
    case Isa::Avx2: return kConvLastAvx2;
    default: return kConvLastGeneric;
  }
}

std::optional<LastShape> last_shape(const Convolution& c) {
  LastShape s = {};
  const auto batch = number(c.pixels[0].image), y = number(c.pixels[1].extent), x = number(c.pixels[2].extent);
  const auto y_step = number(c.pixels[1].image), x_step = number(c.pixels[2].image), rows = number(c.rows.extent);
  if (!c.outer.empty() || is_padded(c.pixels[0]) || !batch || !y || !x || !y_step || !x_step || !rows)
    return std::nullopt;
  s.batch_image = s.batch_step = *batch, s.rows = *rows;
  s.y.extent = *y, s.x.extent = *x, s.y.step = *y_step, s.x.step = *x_step;
  for (const auto& sum : c.sums) {
    const auto extent = number(sum.extent), read = number(sum.image), weight = number(sum.weight);
    if (!extent || !read || !weight || sum.dilation[0] != 0) return std::nullopt;
    s.sums.push_back({*extent, *read, *weight}), s.depth *= *extent;
  }
  if (s.depth == 0 || s.rows == 0 || s.y.extent == 0 || s.x.extent == 0) return std::nullopt;
  if ((is_padded(c.pixels[1]) || is_padded(c.pixels[2])) && !copied(c, s)) return std::nullopt;
  std::stable_sort(s.sums.begin(), s.sums.end(), [](const auto& a, const auto& b) { return a.read > b.read; });
  std::erase_if(s.sums, [](const auto& a) { return a.extent == 1; });
  if (!s.sums.empty() && s.sums.back().read != 1) return std::nullopt;
  return s;
}

std::shared_ptr<const Kernel> convolution_last_kernel(const Convolution& c, ConvWay way,
                                                      std::shared_ptr<Parallel> parallel,
                                                      std::shared_ptr<const Epilogue> epilogue, Isa isa) {
  if (is_depthwise_last(c)) return depthwise_last_kernel(c, std::move(parallel), std::move(epilogue), isa);
  return std::make_shared<ConvLastKernel>(c, *last_shape(c), way, std::move(parallel), std::move(epilogue), isa);
}

}  // namespace lc::host
