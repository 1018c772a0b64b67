// Convolutions in which every channel has a filter of its own (depthwise). As a matrix product each channel has one row
// or one column, and nearly all of a tile would be empty. Here a thread makes four adjacent results, in one line of the
// result or in four; a line is a row of pixels, or a pixel if channels are last. It reads once what its results share:
// the filter, and each line of the image for all results whose windows reach it, by vectors if lines are aligned.
//
// Predicted for 3 x 3 taps and four lines: 18 reads of the image and 144 multiply-adds for 16 results, so that the
// image comes from memory once and eight times less often from the cache than tap by tap. The compiler takes 40
// registers with adjacent pixels and 80 with adjacent channels, whose 36 numbers of a filter stay in registers.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "lightcone/backends/gpu/products/kernels.h"
#include "lightcone/backends/gpu/products/operand.h"

namespace lc::backends::gpu {

using std::to_string;

namespace {

using i64 = std::int64_t;

constexpr int kWindowThreads = 256, kSide = 4;
constexpr i64 kMostTaps = 49;
constexpr i64 kNear = 16;  // taps closer than this share a line

bool is_plain(WeightType t) {
  return t == WeightType::F32 || t == WeightType::F16 || t == WeightType::BF16 || is_f8(t);
}
bool is_finite(const Dim& d) {
  return !(d == Dim(-lowering::Convolution::kFar)) && !(d == Dim(lowering::Convolution::kFar));
}

// The product as a convolution over windows. Adjacent results are `step` apart in the image. Taps along the result's
// innermost axis are in the same line of the image, all others in lines of their own.
struct Windows {
  struct Axis {  // an axis of the result
    Dim extent, image, weight, out;
    std::vector<i64> steps;  // steps of each bound's coordinate
  };
  struct Tap {
    Dim image;                // offset of its line
    std::vector<i64> coords;  // how far it moves each coordinate of a line
    i64 near = 0, weight = 0;
  };
  const Operand *image, *weight;
  bool image_is_b;
  std::vector<Axis> axes = {};    // innermost last
  i64 step = 1, weight_step = 0;  // along the innermost axis
  int bound = -1;                 // the image's bound that the innermost axis moves
  std::vector<Tap> taps = {};

  const Axis& last() const { return axes.back(); }
  const Axis& next() const { return axes[axes.size() - 2]; }
};

std::vector<i64> steps_of(const Operand& s, std::size_t axis) {
  std::vector<i64> steps;
  for (const Operand::Bound& b : s.bounds) steps.push_back(b.own[axis]);
  return steps;
}

// Adds all taps of the sum. Returns false if they are too many or not constant, or if taps in other
// lines move the innermost axis's coordinate.
bool add_taps(Windows& w, const std::vector<Dim>& sum) {
  const Operand& s = *w.image;
  std::vector<bool> near;
  i64 count = 1;
  for (std::size_t t = 0; t < sum.size(); ++t) {
    const auto extent = sum[t].constant(), stride = s.sum[t].constant();
    if (!extent || !stride || !w.weight->sum[t].constant()) return false;
    if (*extent > kMostTaps || (count *= *extent) > kMostTaps) return false;
    bool is_near = w.weight_step == 0 && std::abs(*stride) < kNear;
    for (std::size_t j = 0; j < s.bounds.size() && is_near; ++j)
      is_near = s.bounds[j].sum[t] == (static_cast<int>(j) == w.bound ? *stride : 0);
    if (!is_near && w.bound >= 0 && s.bounds[w.bound].sum[t] != 0) return false;
    near.push_back(is_near);
  }
  for (i64 flat = 0; flat < count; ++flat) {
    Windows::Tap tap{0, std::vector<i64>(s.bounds.size(), 0)};
    i64 rest = flat;
    for (std::size_t t = sum.size(); t-- > 0;) {
      const i64 extent = *sum[t].constant(), at = rest % extent;
      rest /= extent;
      tap.weight += at * *w.weight->sum[t].constant();
      if (near[t]) tap.near += at * *s.sum[t].constant();
      else tap.image = tap.image + Dim(at) * s.sum[t];
      for (std::size_t j = 0; j < s.bounds.size(); ++j)
        if (static_cast<int>(j) != w.bound) tap.coords[j] += at * s.bounds[j].sum[t];
    }
    w.taps.push_back(std::move(tap));
  }
  return count > 0;
}

std::optional<Windows> windows_of(const Product& p) {
  const bool pixels_last = p.rows.empty() && !p.columns.empty();
  if (!pixels_last && !(p.columns.empty() && !p.rows.empty())) return std::nullopt;
  if (p.batch.empty() || p.exact || skinny_gemm_reads(p)) return std::nullopt;
  Windows w{pixels_last ? &p.b : &p.a, pixels_last ? &p.a : &p.b, pixels_last};
  if (!is_plain(p.a.type) || !is_plain(p.b.type) || !w.weight->bounds.empty()) return std::nullopt;
  const auto add_batch = [&] {
    for (std::size_t i = 0; i < p.batch.size(); ++i)
      w.axes.push_back({p.batch[i], w.image->batch[i], w.weight->batch[i], p.c_batch[i],
                        std::vector<i64>(w.image->bounds.size(), 0)});
  };
  if (pixels_last) add_batch();
  const auto& extents = pixels_last ? p.columns : p.rows;
  const auto& out = pixels_last ? p.c_columns : p.c_rows;
  for (std::size_t i = 0; i < extents.size(); ++i)
    w.axes.push_back({extents[i], w.image->own[i], 0, out[i], steps_of(*w.image, i)});
  if (!pixels_last) add_batch();
  const auto step = w.last().image.constant(), weight_step = w.last().weight.constant();
  if (w.axes.size() < 2 || !(w.last().out == Dim(1)) || !step || !weight_step) return std::nullopt;
  if (!w.next().image.constant()) return std::nullopt;  // a symbolic one takes a size for each line
  w.step = *step, w.weight_step = *weight_step;
  if (w.step < 1 || w.step > (pixels_last ? 4 : 1)) return std::nullopt;
  for (std::size_t j = 0; j < w.image->bounds.size(); ++j) {
    if (w.last().steps[j] == 0) continue;
    const auto moved = std::ranges::count_if(w.axes, [&](const auto& x) { return x.steps[j] != 0; });
    if (w.bound >= 0 || w.last().steps[j] != w.step || moved != 1) return std::nullopt;
    w.bound = static_cast<int>(j);
  }
  if (!add_taps(w, p.sum)) return std::nullopt;
  return w;
}

class Text {
 public:
  Text(const ProductTexts& t, Windows windows, int lines)
      : t_(t), p_(t.p), s_(std::move(windows)), lines_(lines), w_(p_.needs_64bit_index, kGivenSizes) {}
  KernelText text();

 private:
  struct Line {  // a line of the image
    Dim offset;
    std::vector<i64> coords;
    int first;  // the first line of results that reads it
  };
  struct Use {
    int line, result;
    std::size_t tap;
  };
  struct Numbers {  // adjacent in memory, in registers NAME_0, NAME_1, ...
    std::string name, pointer, offset;
    WeightType type;
    std::map<i64, i64> wanted;  // offset: the first of the adjacent results that needs it
    int vector = 1, shift = 0;  // width of the vectors read; the first offset that is a multiple of it
    bool beyond = false;        // vectors may include elements that are not wanted
  };
  static void want(Numbers& n, i64 offset, i64 result) {
    const auto [at, fresh] = n.wanted.try_emplace(offset, result);
    at->second = std::min(at->second, result);
  }
  std::string extent(const Windows::Axis& x) { return w_.number(x.extent); }
  bool whole(const Windows::Axis& x, int n) const { return multiple(x.extent, n); }
  std::string coordinate(std::size_t j) const { return "coord" + to_string(j); }
  void find_lines();
  void locate();
  bool aligned(const Operand& s, const Dim Windows::Axis::*stride, int n, int shift) const;
  void choose_vector(Numbers& n, bool image) const;
  std::string inside(const Numbers& n, i64 from, bool image);
  void read(const Numbers& n, const std::string& condition, bool image);
  void read_filter();
  void add_line(int line);
  void store(int result);
  static std::string number(const std::string& name, i64 offset) {
    return name + (offset < 0 ? "_m" + to_string(-offset) : "_" + to_string(offset));
  }

  const ProductTexts& t_;
  const Product& p_;
  Windows s_;
  int lines_;  // lines of results of a thread
  Writer w_;
  std::vector<Line> image_;
  std::vector<Use> uses_;
};

// Finds the lines of the image, each of which is read once for all results of the thread.
void Text::find_lines() {
  for (int r = 0; r < lines_; ++r)
    for (std::size_t t = 0; t < s_.taps.size(); ++t) {
      Line line{Dim(r) * s_.next().image + s_.taps[t].image, s_.taps[t].coords, r};
      for (std::size_t j = 0; j < line.coords.size(); ++j) line.coords[j] += r * s_.next().steps[j];
      const auto at = std::ranges::find_if(
          image_, [&](const Line& x) { return x.offset == line.offset && x.coords == line.coords; });
      uses_.push_back({static_cast<int>(at - image_.begin()), r, t});
      if (at == image_.end()) image_.push_back(std::move(line));
    }
}

// Computes which results are the thread's, and the offsets of these, of their filter and of their part of the image.
void Text::locate() {
  std::vector<Dim> extents;
  for (const Windows::Axis& x : s_.axes) extents.push_back(x.extent);
  extents.back() = (s_.last().extent + Dim(kSide - 1)) / Dim(kSide);
  Dim& next = extents[extents.size() - 2];
  next = (next + Dim(lines_ - 1)) / Dim(lines_);
  w_.let("unit", "(" + w_.index() + ")LC_GROUP * " + to_string(kWindowThreads) + " + LC_THREAD");
  w_.line("if (unit >= " + w_.number(product(extents)) + ") return;");
  std::vector<std::string> at = w_.indices(extents, "unit", "u");
  w_.let("last", at.back() + " * " + to_string(kSide));
  w_.let("next", at[at.size() - 2] + " * " + to_string(lines_));
  at.back() = "last", at[at.size() - 2] = "next";
  const auto along = [&](const Dim Windows::Axis::*stride) {
    std::vector<Dim> strides;
    for (const Windows::Axis& x : s_.axes) strides.push_back(x.*stride);
    return strides;
  };
  w_.let("image_p", w_.offset(w_.number(s_.image->offset), at, along(&Windows::Axis::image)));
  w_.let("filter_p", w_.offset(w_.number(s_.weight->offset), at, along(&Windows::Axis::weight)));
  w_.let("result_p", w_.offset("0", at, along(&Windows::Axis::out)));
  for (std::size_t j = 0; j < s_.image->bounds.size(); ++j) {
    std::vector<Dim> steps;
    for (const Windows::Axis& x : s_.axes) steps.emplace_back(x.steps[j]);
    w_.let(coordinate(j), w_.offset("", at, steps));
  }
}

// Returns true if each line of an operand begins `shift` before a multiple of n, for every thread.
bool Text::aligned(const Operand& s, const Dim Windows::Axis::*stride, int n, int shift) const {
  return multiple(s.offset + Dim(shift), n) &&
         std::all_of(s_.axes.begin(), s_.axes.end() - 1, [&](const auto& x) { return multiple(x.*stride, n); });
}

// Chooses vectors of up to four, if each lies inside or outside of the image's bounds as a whole.
void Text::choose_vector(Numbers& numbers, bool image) const {
  const Operand& s = image ? *s_.image : *s_.weight;
  const auto stride = image ? &Windows::Axis::image : &Windows::Axis::weight;
  const auto fits = [&](int n, int shift) {
    if (!aligned(s, stride, n, shift)) return false;
    if (!image) return true;
    for (const Line& line : image_)
      if (!multiple(line.offset, n)) return false;
    if (s_.bound < 0) return true;
    const Operand::Bound& b = s.bounds[s_.bound];
    return (!is_finite(b.lo) || multiple(b.lo - Dim(shift), n)) && (!is_finite(b.hi) || multiple(b.hi - Dim(shift), n));
  };
  for (int n = kSide; n > 1; n /= 2)
    for (int shift = 0; shift < n; ++shift)
      if (numbers.vector == 1 && fits(n, shift)) numbers.vector = n, numbers.shift = shift;
  if (!image || s_.bound < 0) return;
  const Operand::Bound& b = s.bounds[s_.bound];
  numbers.beyond = is_finite(b.lo) && is_finite(b.hi);
}

// Returns the condition for reading the number at `from`, or the vector that begins there; "" for always.
std::string Text::inside(const Numbers& n, i64 from, bool image) {
  std::string test;
  const auto also = [&](const std::string& more) { test += (test.empty() ? "" : " && ") + more; };
  if (const auto at = n.wanted.find(from); !whole(s_.last(), kSide) && !n.beyond && at != n.wanted.end() && at->second)
    also("last + " + to_string(at->second) + " < " + extent(s_.last()));
  if (!image || s_.bound < 0) return test;
  const auto j = static_cast<std::size_t>(s_.bound);
  const Operand::Bound& b = s_.image->bounds[j];
  const std::string c = coordinate(j) + " + " + w_.number(from);
  if (is_finite(b.lo)) also(c + " >= " + w_.number(b.lo));
  if (is_finite(b.hi)) also(c + " < " + w_.number(b.hi));
  return test;
}

// Reads the wanted numbers into registers: by whole vectors where these may be read, one by one elsewhere.
void Text::read(const Numbers& n, const std::string& condition, bool image) {
  const i64 first = n.wanted.begin()->first, end = n.wanted.rbegin()->first + 1;
  const auto floor = [&](i64 x) {
    const i64 over = ((x - n.shift) % n.vector + n.vector) % n.vector;
    return x - over;
  };
  const auto test = [&](i64 from) {
    const std::string more = inside(n, from, image);
    return condition.empty() || more.empty() ? condition + more : condition + " && " + more;
  };
  std::set<i64> vectors;
  for (const auto& [offset, result] : n.wanted) {
    const i64 from = floor(offset);
    const bool covered = from >= first && from + n.vector <= end && whole(s_.last(), kSide);
    if (n.vector > 1 && (n.beyond || covered)) {
      vectors.insert(from);
      w_.line("float " + number(n.name, offset) + " = 0.0f;");
      continue;
    }
    const std::string value = widened(n.type, n.pointer + "[" + n.offset + " + " + w_.number(offset) + "]");
    const std::string t = test(offset), guarded = t.empty() ? value : t + " ? " + value + " : 0.0f";
    w_.line("const float " + number(n.name, offset) + " = " + guarded + ";");
  }
  for (const i64 from : vectors) {
    const std::string t = test(from);
    w_.open(t.empty() ? "{" : "if (" + t + ") {");
    w_.line("LC_LOADV(" + element_type(n.type) + ", " + to_string(n.vector) + ", v_, " + n.pointer + " + " + n.offset +
            " + " + w_.number(from) + ");");
    for (int l = 0; l < n.vector; ++l)
      if (n.wanted.contains(from + l))
        w_.line(number(n.name, from + l) + " = " + widened(n.type, "LC_AT(v_, " + to_string(l) + ")") + ";");
    w_.close();
  }
}

void Text::read_filter() {
  Numbers n{"f", s_.image_is_b ? "in_a" : "in_b", "filter_p", s_.weight->type, {}};
  for (const Windows::Tap& tap : s_.taps)
    for (int v = 0; v < (s_.weight_step ? kSide : 1); ++v) want(n, v * s_.weight_step + tap.weight, v);
  choose_vector(n, false);
  read(n, "", false);
}

// Reads a line of the image and adds it to each result.
void Text::add_line(int line) {
  const Line& at = image_[line];
  Numbers n{"x", s_.image_is_b ? "in_b" : "in_a", "line_p", s_.image->type, {}};
  for (const Use& use : uses_)
    for (int v = 0; v < kSide && use.line == line; ++v) want(n, v * s_.step + s_.taps[use.tap].near, v);
  choose_vector(n, true);
  std::string test;
  const auto also = [&](const std::string& more) { test += (test.empty() ? "" : " && ") + more; };
  if (at.first > 0 && !whole(s_.next(), lines_)) also("next + " + to_string(at.first) + " < " + extent(s_.next()));
  for (std::size_t j = 0; j < at.coords.size(); ++j) {
    if (static_cast<int>(j) == s_.bound) continue;
    const Operand::Bound& b = s_.image->bounds[j];
    const std::string c = coordinate(j) + " + " + w_.number(at.coords[j]);
    if (is_finite(b.lo)) also(c + " >= " + w_.number(b.lo));
    if (is_finite(b.hi)) also(c + " < " + w_.number(b.hi));
  }
  w_.open("{");
  w_.let("line_p", "image_p + " + w_.number(at.offset));
  if (!test.empty()) w_.line("const int there = " + test + ";");
  read(n, test.empty() ? "" : "there", true);
  for (const Use& use : uses_)
    for (int v = 0; v < kSide && use.line == line; ++v) {
      const Windows::Tap& tap = s_.taps[use.tap];
      const std::string sum = "c_[" + to_string(use.result * kSide + v) + "]";
      w_.line(sum + " = lc_mul_add_f(" + number("x", v * s_.step + tap.near) + ", " +
              number("f", v * s_.weight_step + tap.weight) + ", " + sum + ");");
    }
  w_.close();
}

// Stores four adjacent results, as one vector if all of them exist and it is aligned.
void Text::store(int result) {
  const bool partial = result > 0 && !whole(s_.next(), lines_);
  w_.open(partial ? "if (next + " + to_string(result) + " < " + extent(s_.next()) + ") {" : "{");
  w_.let("side_p", "result_p + " + w_.times(to_string(result), s_.next().out));
  const auto sum = [&](int v) { return "c_[" + to_string(result * kSide + v) + "]"; };
  const auto result_at = [](int v) { return "side_p + " + to_string(v); };
  const bool vector =
      whole(s_.last(), kSide) && size_of(t_.epilogue.result) <= 4 &&
      std::all_of(s_.axes.begin(), s_.axes.end() - 1, [](const Windows::Axis& x) { return multiple(x.out, kSide); });
  const std::string type(info(t_.epilogue.result).c);
  if (vector) w_.line("LC_VECTOR(" + type + ", " + to_string(kSide) + ", side_);");
  for (int v = 0; v < kSide; ++v) {
    const bool sure = v == 0 || whole(s_.last(), kSide);
    w_.open(sure ? "{" : "if (last + " + to_string(v) + " < " + extent(s_.last()) + ") {");
    if (vector) {
      w_.let("c_at", result_at(v));
      const codegen::simt::InlinedLines lines = t_.epilogue.at(w_, p_, "c_at", sum(v), t_.language);
      w_.raw(lines.text);
      w_.line("LC_AT(side_, " + to_string(v) + ") = " + lines.result + ";");
    } else {
      t_.store(w_, result_at(v), sum(v));
    }
    w_.close();
  }
  if (vector) w_.line("LC_STOREV(" + type + ", " + to_string(kSide) + ", out_ + side_p, side_);");
  w_.close();
}

KernelText Text::text() {
  find_lines();
  locate();
  const std::string sums = to_string(lines_ * kSide);
  w_.line("float c_[" + sums + "];");
  w_.line("LC_UNROLL");
  w_.line("for (int i = 0; i < " + sums + "; ++i) c_[i] = 0.0f;");
  read_filter();
  for (int line = 0; line < static_cast<int>(image_.size()); ++line) add_line(line);
  for (int r = 0; r < lines_; ++r) store(r);
  KernelText k{t_.finished(w_, kWindowThreads), kWindowThreads, w_.sizes()};
  k.columns = kWindowThreads;
  return k;
}

}  // namespace

int window_lines(const Product& p) {
  const auto w = windows_of(p);
  if (!w) return 0;
  // Several lines share a filter if its numbers stay in registers.
  const std::size_t kept = w->taps.size() * (w->weight_step ? kSide : 1);
  return w->next().weight == Dim(0) && kept <= kMostTaps ? 4 : 1;
}

Dim window_threads(const Product& p, int lines) {
  const auto w = windows_of(p);
  if (!w) return 0;
  Dim threads = (w->last().extent + Dim(kSide - 1)) / Dim(kSide) * ((w->next().extent + Dim(lines - 1)) / Dim(lines));
  for (std::size_t i = 0; i + 2 < w->axes.size(); ++i) threads = threads * w->axes[i].extent;
  return threads;
}

KernelText ProductTexts::windows(int lines) const { return Text(*this, *windows_of(p), lines).text(); }

}  // namespace lc::backends::gpu
