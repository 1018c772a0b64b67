// Outputs with a value for each place of the picture: masks, lines of text, pictures.
#include <algorithm>
#include <cmath>
#include <optional>

#include "../command.h"
#include "draw.h"
#include "lightcone/base/numbers.h"
#include "lightcone/io/images/draw.h"
#include "lightcone/io/printable.h"

namespace lc::tool {
namespace {

// An output as channels of rows of columns.
struct Map {
  const NamedOutput* output = nullptr;
  std::size_t channels = 1, height = 0, width = 0;
  bool channels_last = false;
  double least = kInf, most = -kInf;
  double at(std::size_t c, std::size_t y, std::size_t x) const {
    return number_at(output->view, channels_last ? (y * width + x) * channels + c : (c * height + y) * width + x);
  }
};

std::optional<Map> map_of(const NamedOutput& o) {
  std::vector<std::int64_t> s = o.view.shape;
  if (s.size() == 4 && s[0] == 1) s.erase(s.begin());
  if (s.size() == 2) s.insert(s.begin(), 1);
  if (s.size() != 3) return std::nullopt;
  Map m{.output = &o};
  m.channels_last = s[2] < s[0] && s[2] < s[1];
  const auto size = [&](std::size_t k) { return static_cast<std::size_t>(s[k]); };
  m.channels = size(m.channels_last ? 2 : 0), m.height = size(m.channels_last ? 0 : 1);
  m.width = size(m.channels_last ? 1 : 2);
  if (m.height < 2 || m.width < 2 || m.channels < 1) return std::nullopt;
  for (std::size_t k = 0, n = count_of(o.view); k < n; ++k) {
    const double v = number_at(o.view, k);
    m.least = std::min(m.least, v), m.most = std::max(m.most, v);
  }
  return m;
}
// The first output that is a map, if a picture was given.
std::optional<Map> first_map(const Drawing& d) {
  if (!d.placed) return std::nullopt;
  for (const NamedOutput& o : d.outputs)
    if (auto m = map_of(o)) return m;
  return std::nullopt;
}
bool is_share(const Map& m) { return m.least >= -1e-3 && m.most <= 1 + 1e-3; }
bool is_softmax(const Map& m) {
  if (!is_share(m)) return false;
  for (std::size_t k = 0; k < std::min(m.height, m.width); ++k) {
    double sum = 0;
    for (std::size_t c = 0; c < m.channels; ++c) sum += m.at(c, k, k);
    if (std::fabs(sum - 1) > 1e-2) return false;
  }
  return true;
}

// The place in a map for a pixel of the picture.
class Places {
 public:
  Places(const Map& m, const Placed& p)
      : m_(m),
        p_(p),
        x_(static_cast<double>(m.width) / static_cast<double>(p.width)),
        y_(static_cast<double>(m.height) / static_cast<double>(p.height)) {}
  std::size_t x(std::int64_t picture) const {
    return clamped(((static_cast<double>(picture) + 0.5) * p_.scale_x + p_.left) * x_, m_.width);
  }
  std::size_t y(std::int64_t picture) const {
    return clamped(((static_cast<double>(picture) + 0.5) * p_.scale_y + p_.top) * y_, m_.height);
  }
  double picture_x(double map) const { return p_.picture_x(map / x_); }
  double picture_y(double map) const { return p_.picture_y(map / y_); }

 private:
  static std::size_t clamped(double v, std::size_t n) {
    return static_cast<std::size_t>(std::clamp(std::floor(v), 0.0, static_cast<double>(n - 1)));
  }
  const Map& m_;
  const Placed& p_;
  double x_, y_;
};

std::size_t best_channel(const Map& m, std::size_t y, std::size_t x) {
  std::size_t best = 0;
  for (std::size_t c = 1; c < m.channels; ++c)
    if (m.at(c, y, x) > m.at(best, y, x)) best = c;
  return best;
}

}  // namespace

bool show_masks(Drawing& d) {
  const auto m = first_map(d);
  if (!m) return false;
  const bool chosen = d.options.as == "masks", numbers = !is_float(m->output->view.dtype);
  const bool larger = m->height > static_cast<std::size_t>(d.placed->height);
  if (!chosen && !numbers && m->channels == 1 && (!is_share(*m) || larger)) return false;
  if (!chosen && !numbers && m->channels == 3 && !is_softmax(*m)) return false;
  if (numbers && m->channels != 1) return false;
  const bool one = m->channels == 1 && !numbers;
  const bool background = !one && (d.labels.empty() || d.labels[0].find("background") != std::string::npos);
  const double threshold = is_share(*m) ? 0.5 : 0;
  const Places at(*m, *d.placed);
  const std::int64_t h = d.placed->picture_height(), w = d.placed->picture_width();
  std::map<std::int64_t, Array> masks;
  std::map<std::int64_t, std::int64_t> pixels;
  for (std::int64_t y = 0; y < h; ++y)
    for (std::int64_t x = 0; x < w; ++x) {
      const std::size_t my = at.y(y), mx = at.x(x);
      if (one && m->at(0, my, mx) <= threshold) continue;
      const auto k = one       ? std::int64_t{0}
                     : numbers ? static_cast<std::int64_t>(m->at(0, my, mx))
                               : static_cast<std::int64_t>(best_channel(*m, my, mx));
      auto mask = masks.find(k);
      if (mask == masks.end()) mask = masks.emplace(k, Array::zeros(DType::U8, {h, w})).first;
      mask->second.bytes[static_cast<std::size_t>(y * w + x)] = std::byte{1};
      ++pixels[k];
    }
  int line = 0;
  for (const auto& [k, mask] : masks) {
    const std::string name = one && d.labels.empty() ? printable(m->output->name, 60) : d.label(k);
    const std::string text = str_cat(
        name, " ", formatted("%.1f", 100.0 * static_cast<double>(pixels[k]) / static_cast<double>(h * w)), " %");
    write_stdout(text + "\n");
    if (background && k == 0) continue;
    const Colour colour = colour_of_class(static_cast<std::size_t>(std::max<std::int64_t>(k, 0)));
    draw_mask(d.canvas, mask, colour);
    draw_text(d.canvas, 4, 4 + 20 * line++, text, {255, 255, 255}, colour, 2);
  }
  d.assumed =
      str_cat("drawn as masks: ", printable(m->output->name, 100),
              one       ? str_cat(" is a map of scores, coloured above ", formatted("%g", threshold))
              : numbers ? std::string(" has the number of a class for each place")
                        : str_cat(" has ", m->channels, " scores for each place, of which the largest is taken"),
              background ? "; class 0 is the background" : "");
  return true;
}

bool show_picture(Drawing& d) {
  const auto m = first_map(d);
  if (!m || (m->channels != 1 && m->channels != 3) || !is_float(m->output->view.dtype)) return false;
  const bool grey = m->channels == 1;
  double low = 0, high = 1;
  std::string said = "0 to 1";
  if (grey && !is_share(*m)) low = m->least, high = m->most, said = "its least to its largest value";
  else if (m->most > 2) high = 255, said = "0 to 255";
  else if (m->least < -0.1) low = -1, said = "-1 to 1";
  // the part of it that is the picture, without the bars
  const double x = static_cast<double>(m->width) / static_cast<double>(d.placed->width),
               y = static_cast<double>(m->height) / static_cast<double>(d.placed->height);
  const auto bounded = [](double v, std::size_t n) {
    return static_cast<std::size_t>(std::clamp(std::round(v), 0.0, static_cast<double>(n)));
  };
  const std::size_t left = bounded(d.placed->left * x, m->width), top = bounded(d.placed->top * y, m->height);
  const std::size_t right =
      bounded((d.placed->left + static_cast<double>(d.placed->picture_width()) * d.placed->scale_x) * x, m->width);
  const std::size_t bottom =
      bounded((d.placed->top + static_cast<double>(d.placed->picture_height()) * d.placed->scale_y) * y, m->height);
  if (right <= left || bottom <= top) return false;
  const std::size_t h = bottom - top, w = right - left;
  d.canvas = Array::zeros(DType::U8, {3, static_cast<std::int64_t>(h), static_cast<std::int64_t>(w)});
  const double scale = high > low ? 255 / (high - low) : 0;
  const bool bgr = d.reversed && !grey;
  for (std::size_t c = 0; c < 3; ++c)
    for (std::size_t r = 0; r < h; ++r)
      for (std::size_t k = 0; k < w; ++k) {
        const double v = m->at(grey ? 0 : bgr ? 2 - c : c, top + r, left + k);
        d.canvas.bytes[(c * h + r) * w + k] =
            std::byte(static_cast<std::uint8_t>(std::clamp(std::round((v - low) * scale), 0.0, 255.0)));
      }
  d.assumed = str_cat("drawn as a picture: ", printable(m->output->name, 100), " is ",
                      grey  ? "grey"
                      : bgr ? "BGR"
                            : "RGB",
                      ", ", said);
  return true;
}

// ---- lines of text --------------------------------------------------------------------------------

namespace {

struct Area {
  std::size_t left, top, right, bottom, cells = 0;
  double sum = 0;
};

// Cells above a threshold that touch each other, corners included.
std::vector<Area> areas_of(const Map& m, double threshold) {
  std::vector<bool> seen(m.height * m.width);
  std::vector<Area> all;
  std::vector<std::size_t> open;
  for (std::size_t first = 0; first < seen.size(); ++first) {
    if (seen[first] || m.at(0, first / m.width, first % m.width) <= threshold) continue;
    Area a{first % m.width, first / m.width, first % m.width, first / m.width};
    seen[first] = true;
    open = {first};
    while (!open.empty()) {
      const std::size_t cell = open.back(), y = cell / m.width, x = cell % m.width;
      open.pop_back();
      a.left = std::min(a.left, x), a.right = std::max(a.right, x), a.bottom = std::max(a.bottom, y);
      ++a.cells, a.sum += m.at(0, y, x);
      for (std::size_t ny = y ? y - 1 : 0; ny <= std::min(y + 1, m.height - 1); ++ny)
        for (std::size_t nx = x ? x - 1 : 0; nx <= std::min(x + 1, m.width - 1); ++nx)
          if (const std::size_t next = ny * m.width + nx; !seen[next] && m.at(0, ny, nx) > threshold)
            seen[next] = true, open.push_back(next);
    }
    all.push_back(a);
  }
  return all;
}

}  // namespace

// Differentiable binarisation (Liao et al. 2020): the map shows lines that are shrunk, so that they do not touch.
bool show_text_lines(Drawing& d) {
  if (d.options.as != "text") return false;  // no shape tells it from a mask
  const auto m = first_map(d);
  if (!m || m->channels != 1 || !is_share(*m)) return false;
  constexpr double kThreshold = 0.3, kGrown = 1.5;
  constexpr std::size_t kLeastSide = 3;
  const Places at(*m, *d.placed);
  std::vector<Area> lines = areas_of(*m, kThreshold);
  std::erase_if(lines, [&](const Area& a) {
    const std::size_t w = a.right - a.left + 1, h = a.bottom - a.top + 1;
    return std::min(w, h) < kLeastSide || a.sum / static_cast<double>(a.cells) < d.options.confidence;
  });
  std::ranges::stable_sort(lines, [](const Area& a, const Area& b) { return a.top + a.bottom < b.top + b.bottom; });
  for (const Area& a : lines) {
    const auto w = static_cast<double>(a.right - a.left + 1), h = static_cast<double>(a.bottom - a.top + 1);
    const double grown = kGrown * w * h / (2 * (w + h));
    const double x1 = at.picture_x(static_cast<double>(a.left) - grown),
                 y1 = at.picture_y(static_cast<double>(a.top) - grown);
    const double x2 = at.picture_x(static_cast<double>(a.right + 1) + grown),
                 y2 = at.picture_y(static_cast<double>(a.bottom + 1) + grown);
    const double score = a.sum / static_cast<double>(a.cells);
    write_stdout(str_cat("text ", formatted("%.3f", score), " [", formatted("%.0f", x1), ", ", formatted("%.0f", y1),
                         ", ", formatted("%.0f", x2), ", ", formatted("%.0f", y2), "]\n"));
    draw_box(d.canvas, x1, y1, x2, y2, colour_of_class(0), formatted("%.2f", score));
  }
  d.assumed = str_cat("drawn as lines of text: ", printable(m->output->name, 100), " is a map of scores; cells above ",
                      formatted("%g", kThreshold), " that touch are a line, which is grown by ",
                      formatted("%g", kGrown), " times its area over its circumference");
  return true;
}

}  // namespace lc::tool
