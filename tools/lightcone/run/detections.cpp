// Boxes: the heads of detectors, decoded by the shapes and names of their outputs.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "../command.h"
#include "draw.h"
#include "lightcone/base/numbers.h"
#include "lightcone/io/images/draw.h"
#include "lightcone/io/printable.h"

namespace lc::tool {
namespace {

struct Detection {
  double x1, y1, x2, y2, score;
  std::int64_t label;
};
using Detections = std::vector<Detection>;

constexpr std::size_t kMost = 30'000;  // candidates that suppression compares
constexpr double kNormalised = 2;      // coordinates up to it are shares of the input

// Rows of numbers: [1, n, columns], [n, columns], or the transpose [1, columns, n].
struct Rows {
  const ArrayView* view = nullptr;
  std::size_t n = 0, columns = 0;
  bool transposed = false;
  double at(std::size_t row, std::size_t column) const {
    return number_at(*view, transposed ? column * n + row : row * columns + column);
  }
};
std::optional<Rows> rows_of(const ArrayView& a) {
  std::vector<std::int64_t> s = a.shape;
  if (s.size() == 3 && s[0] == 1) s.erase(s.begin());
  if (s.size() != 2) return std::nullopt;
  return Rows{&a, static_cast<std::size_t>(s[0]), static_cast<std::size_t>(s[1])};
}
Rows transposed(Rows r) {
  std::swap(r.n, r.columns);
  r.transposed = true;
  return r;
}

bool contains(std::string_view text, std::initializer_list<std::string_view> words) {
  std::string small(text);
  std::ranges::transform(small, small.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::ranges::any_of(words, [&](std::string_view w) { return small.find(w) != small.npos; });
}
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

struct Range {
  double least = kInf, most = -kInf;
};
Range range_of(const Rows& r, std::size_t from, std::size_t to) {
  Range x;
  for (std::size_t k = 0; k < r.n; ++k)
    for (std::size_t c = from; c < to; ++c)
      x.least = std::min(x.least, r.at(k, c)), x.most = std::max(x.most, r.at(k, c));
  return x;
}

// Four numbers as corners, in pixels of the model's input.
class Boxes {
 public:
  Boxes(std::string order, const Range& values, const Drawing& d) : order_(std::move(order)) {
    normalised_ = values.most <= kNormalised && !d.picture_pixels;
    in_picture_ = d.picture_pixels;
    if (normalised_ && d.placed) w_ = static_cast<double>(d.placed->width), h_ = static_cast<double>(d.placed->height);
  }
  Detection corners(double a, double b, double c, double e) const {
    if (order_ == "cxcywh") return {(a - c / 2) * w_, (b - e / 2) * h_, (a + c / 2) * w_, (b + e / 2) * h_, 0, 0};
    if (order_ == "xywh") return {a * w_, b * h_, (a + c) * w_, (b + e) * h_, 0, 0};
    if (order_ == "yxyx") return {b * w_, a * h_, e * w_, c * h_, 0, 0};
    return {a * w_, b * h_, c * w_, e * h_, 0, 0};
  }
  std::string said() const {
    return str_cat(order_, normalised_   ? " as shares of the input"
                           : in_picture_ ? " in pixels of the picture"
                                         : " in pixels of the input");
  }

 private:
  std::string order_;
  bool normalised_ = false, in_picture_ = false;
  double w_ = 1, h_ = 1;
};
std::string order_or(const Drawing& d, const char* otherwise) {
  return d.options.boxes.empty() ? otherwise : d.options.boxes;
}

// Keeps boxes that no better one of their class overlaps by more.
Detections suppressed(Detections all, double overlap) {
  std::ranges::stable_sort(all, [](const Detection& a, const Detection& b) { return a.score > b.score; });
  if (all.size() > kMost) all.resize(kMost);
  const auto area = [](const Detection& b) { return std::max(0.0, b.x2 - b.x1) * std::max(0.0, b.y2 - b.y1); };
  Detections kept;
  for (const Detection& b : all) {
    const bool covered = std::ranges::any_of(kept, [&](const Detection& k) {
      if (k.label != b.label) return false;
      const double w = std::min(k.x2, b.x2) - std::max(k.x1, b.x1), h = std::min(k.y2, b.y2) - std::max(k.y1, b.y1);
      const double both = std::max(0.0, w) * std::max(0.0, h);
      return both > overlap * (area(k) + area(b) - both);
    });
    if (!covered) kept.push_back(b);
  }
  return kept;
}

// ---- heads ----------------------------------------------------------------------------------------

// [1, n, 6] of a model that suppresses: corners, score, class.
bool finished(const Rows& r) {
  if (r.columns != 6) return false;
  for (std::size_t k = 0; k < r.n; ++k)
    if (const double c = r.at(k, 5); c != std::floor(c) || c < 0 || r.at(k, 4) < 0 || r.at(k, 4) > 1) return false;
  return true;
}

// The centre and size that a raw grid head states for each cell: offsets in cells, logarithms of sizes in cells.
class Grid {
 public:
  // Empty unless a head has one row for each cell of the strides 8, 16 and 32, and values that are no pixels.
  Grid(const Rows& r, const Drawing& d) {
    if (!d.placed) return;
    std::size_t cells = 0;
    for (const std::int64_t s : {8, 16, 32})
      cells += static_cast<std::size_t>(d.placed->height / s * (d.placed->width / s));
    constexpr double kPixels = 32;
    if (cells != r.n || range_of(r, 0, 2).most > kPixels) return;
    for (const std::int64_t s : {8, 16, 32})
      for (std::int64_t y = 0; y < d.placed->height / s; ++y)
        for (std::int64_t x = 0; x < d.placed->width / s; ++x)
          cells_.push_back({static_cast<double>(x), static_cast<double>(y), static_cast<double>(s)});
  }
  bool is_raw() const { return !cells_.empty(); }
  Detection box(std::size_t k, const Rows& r) const {
    const auto [x, y, stride] = cells_[k];
    const double cx = (r.at(k, 0) + x) * stride, cy = (r.at(k, 1) + y) * stride;
    const double w = std::exp(r.at(k, 2)) * stride, h = std::exp(r.at(k, 3)) * stride;
    return {cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2, 0, 0};
  }

 private:
  struct Cell {
    double x, y, stride;
  };
  std::vector<Cell> cells_;
};

// The only output that is rows of numbers, and the channels of masks' prototypes beside it, of which each row has as
// many coefficients. Null if there are several.
const NamedOutput* head_of(const Drawing& d, std::size_t& coefficients) {
  const NamedOutput* head = nullptr;
  for (const NamedOutput& o : d.outputs) {
    const auto& s = o.view.shape;
    if (s.size() == 4) coefficients = static_cast<std::size_t>(s[1]);
    if (!is_float(o.view.dtype) || s.size() > 3 || !rows_of(o.view)) continue;
    if (head) return nullptr;
    head = &o;
  }
  return head;
}

void take_finished(Drawing& d, const NamedOutput& head, const Rows& r, Detections& to) {
  const Boxes boxes(order_or(d, "xyxy"), range_of(r, 0, 4), d);
  for (std::size_t k = 0; k < r.n; ++k) {
    Detection b = boxes.corners(r.at(k, 0), r.at(k, 1), r.at(k, 2), r.at(k, 3));
    b.score = r.at(k, 4), b.label = static_cast<std::int64_t>(r.at(k, 5));
    if (b.score >= d.options.confidence) to.push_back(b);
  }
  d.assumed = str_cat(printable(head.name, 100), " [n, 6] is boxes ", boxes.said(), ", score, class");
}

// What the columns of a row are: a box, maybe that it is an object, scores of classes, maybe coefficients of masks.
struct Columns {
  std::size_t first_class = 4, classes = 0;
  bool objectness = false, logits = false;
};
std::optional<Columns> columns_of(const Drawing& d, const Rows& r, std::size_t coefficients) {
  const std::size_t without = r.columns - std::min(r.columns, 4 + coefficients);
  Columns c;
  c.objectness = !r.transposed && d.labels.size() != without;
  if (c.objectness) c.first_class = 5;
  if (r.n < r.columns || r.columns < c.first_class + 1 + coefficients) return std::nullopt;
  c.classes = r.columns - c.first_class - coefficients;
  const Range scores = range_of(r, 4, c.first_class + c.classes);
  c.logits = scores.least < 0 || scores.most > 1 + 1e-3;
  return c;
}

// The likeliest class of a row and its score.
std::pair<std::size_t, double> best_class(const Rows& r, std::size_t row, const Columns& c) {
  std::size_t best = 0;
  for (std::size_t k = 1; k < c.classes; ++k)
    if (r.at(row, c.first_class + k) > r.at(row, c.first_class + best)) best = k;
  const auto score = [&](std::size_t column) { return c.logits ? sigmoid(r.at(row, column)) : r.at(row, column); };
  return {best, (c.objectness ? score(4) : 1) * score(c.first_class + best)};
}

// YOLO's heads.
bool yolo(Drawing& d, Detections& to) {
  std::size_t coefficients = 0;
  const NamedOutput* head = head_of(d, coefficients);
  if (!head) return false;
  Rows r = *rows_of(head->view);
  if (finished(r)) {
    take_finished(d, *head, r, to);
    return true;
  }
  if (r.n >= 5 && r.n < r.columns) r = transposed(r);
  else coefficients = 0;
  const auto columns = columns_of(d, r, coefficients);
  if (!columns) return false;
  const Grid grid(r, d);
  const Boxes boxes(order_or(d, "cxcywh"), range_of(r, 0, 4), d);
  for (std::size_t k = 0; k < r.n; ++k) {
    const auto [best, score] = best_class(r, k, *columns);
    if (score < d.options.confidence) continue;
    Detection b = grid.is_raw() ? grid.box(k, r) : boxes.corners(r.at(k, 0), r.at(k, 1), r.at(k, 2), r.at(k, 3));
    b.score = score, b.label = static_cast<std::int64_t>(best);
    to.push_back(b);
  }
  d.assumed = str_cat(printable(head->name, 100), " is a YOLO head: ", r.n, " boxes ",
                      grid.is_raw() ? "as offsets and logarithms on grids of strides 8, 16, 32" : boxes.said(),
                      columns->objectness ? ", objectness" : "", ", ", columns->classes, " classes",
                      columns->logits ? " as logits" : "");
  return true;
}

// Boxes and scores in outputs of their own, and maybe classes: SSD, DETR and their kin.
bool pairs(Drawing& d, Detections& to) {
  const NamedOutput *boxes = nullptr, *scores = nullptr, *labels = nullptr;
  for (const NamedOutput& o : d.outputs) {
    const auto r = rows_of(o.view);
    if (r && r->columns == 4 && is_float(o.view.dtype) && (!boxes || contains(o.name, {"box"}))) boxes = &o;
  }
  if (!boxes) return false;
  const Rows b = *rows_of(boxes->view);
  for (const NamedOutput& o : d.outputs) {
    if (&o == boxes || b.n == 0 || count_of(o.view) % b.n != 0) continue;
    const bool one_each = count_of(o.view) == b.n;
    if (one_each && (!is_float(o.view.dtype) || contains(o.name, {"class", "label"}))) labels = labels ? labels : &o;
    else if (is_float(o.view.dtype) && (!scores || contains(o.name, {"score", "conf", "logit"}))) scores = &o;
  }
  if (b.n != 0 && !scores) return false;
  const char* order = contains(boxes->name, {"detection_boxes"}) ? "yxyx"
                      : contains(boxes->name, {"pred_boxes"})    ? "cxcywh"
                                                                 : "xyxy";
  const Boxes corners(order_or(d, order), range_of(b, 0, 4), d);
  const std::size_t columns = b.n ? count_of(scores->view) / b.n : 1;
  Rows s{b.n ? &scores->view : nullptr, b.n, columns};
  if (b.n && columns > 1) {  // [1, classes, n]
    const auto& shape = scores->view.shape;
    const auto n = static_cast<std::int64_t>(b.n);
    s.transposed = shape.back() == n && (shape.size() < 2 || shape[shape.size() - 2] != n);
  }
  const Range values = b.n ? range_of(s, 0, columns) : Range{0, 1};
  const bool logits = values.least < 0 || values.most > 1 + 1e-3;
  bool background = columns > 1 && !logits;  // softmax, of which the first is none of the classes
  for (std::size_t k = 0; background && k < std::min<std::size_t>(b.n, 100); ++k) {
    double sum = 0;
    for (std::size_t c = 0; c < columns; ++c) sum += s.at(k, c);
    background = std::fabs(sum - 1) < 1e-2;
  }
  for (std::size_t k = 0; k < b.n; ++k)
    for (std::size_t c = background ? 1 : 0; c < columns; ++c) {
      const double score = logits ? sigmoid(s.at(k, c)) : s.at(k, c);
      if (score < d.options.confidence) continue;
      Detection box = corners.corners(b.at(k, 0), b.at(k, 1), b.at(k, 2), b.at(k, 3));
      box.score = score;
      box.label = columns == 1 && labels ? static_cast<std::int64_t>(number_at(labels->view, k))
                                         : static_cast<std::int64_t>(c) - (background ? 1 : 0);
      to.push_back(box);
    }
  d.assumed = str_cat(printable(boxes->name, 100), " is boxes ", corners.said(), scores ? ", " : "",
                      scores ? printable(scores->name, 100) : "", scores ? " is scores" : "",
                      background ? " of which the first is the background's"
                      : logits   ? " as logits"
                                 : "",
                      labels && columns == 1 ? ", " + printable(labels->name, 100) + " is classes" : "");
  return true;
}

// A cls_S, an obj_S and a bbox_S for each stride S, on one box a cell (YuNet).
bool strides(Drawing& d, Detections& to) {
  std::map<std::int64_t, std::map<std::string, const NamedOutput*>> heads;
  for (const NamedOutput& o : d.outputs) {
    const std::size_t at = o.name.rfind('_');
    const auto stride = at == o.name.npos ? std::nullopt : real_of<double>(std::string_view(o.name).substr(at + 1));
    if (stride && *stride >= 1 && *stride <= 256) heads[static_cast<std::int64_t>(*stride)][o.name.substr(0, at)] = &o;
  }
  bool any = false;
  for (const auto& [stride, by_name] : heads) {
    const auto find = [&](const char* name) {
      const auto o = by_name.find(name);
      return o == by_name.end() ? std::optional<Rows>() : rows_of(o->second->view);
    };
    const auto cls = find("cls"), obj = find("obj"), box = find("bbox");
    if (!cls || !obj || !box || !d.placed || box->columns != 4 || cls->n != box->n || obj->n != box->n) continue;
    const auto columns = static_cast<std::size_t>(std::max<std::int64_t>(d.placed->width / stride, 1));
    any = true;
    for (std::size_t k = 0; k < box->n; ++k) {
      const double score = std::sqrt(std::clamp(cls->at(k, 0), 0.0, 1.0) * std::clamp(obj->at(k, 0), 0.0, 1.0));
      if (score < d.options.confidence) continue;
      const auto s = static_cast<double>(stride);
      const double cx = (static_cast<double>(k % columns) + box->at(k, 0)) * s,
                   cy = (static_cast<double>(k / columns) + box->at(k, 1)) * s;
      const double w = std::exp(box->at(k, 2)) * s, h = std::exp(box->at(k, 3)) * s;
      to.push_back({cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2, score, 0});
    }
  }
  if (any) d.assumed = "cls_S, obj_S and bbox_S are a head for each stride S: the score is the root of cls * obj";
  return any;
}

}  // namespace

bool show_detections(Drawing& d) {
  Detections all;
  if (!strides(d, all) && !pairs(d, all) && !yolo(d, all)) return false;
  d.assumed = str_cat("drawn as detections: ", d.assumed, "; --confidence ", formatted("%g", d.options.confidence),
                      ", --overlap ", formatted("%g", d.options.overlap));
  for (Detection b : suppressed(std::move(all), d.options.overlap)) {
    if (d.placed) {
      const auto w = static_cast<double>(d.placed->picture_width()),
                 h = static_cast<double>(d.placed->picture_height());
      const auto x = [&](double v) { return std::clamp(d.picture_pixels ? v : d.placed->picture_x(v), 0.0, w); };
      const auto y = [&](double v) { return std::clamp(d.picture_pixels ? v : d.placed->picture_y(v), 0.0, h); };
      b.x1 = x(b.x1), b.x2 = x(b.x2), b.y1 = y(b.y1), b.y2 = y(b.y2);
    }
    write_stdout(str_cat(d.label(b.label), " ", formatted("%.3f", b.score), " [", formatted("%.0f", b.x1), ", ",
                         formatted("%.0f", b.y1), ", ", formatted("%.0f", b.x2), ", ", formatted("%.0f", b.y2), "]\n"));
    if (d.placed)
      draw_box(d.canvas, b.x1, b.y1, b.x2, b.y2,
               colour_of_class(static_cast<std::size_t>(std::max<std::int64_t>(b.label, 0))),
               str_cat(d.label(b.label), " ", formatted("%.2f", b.score)));
  }
  return true;
}

}  // namespace lc::tool
