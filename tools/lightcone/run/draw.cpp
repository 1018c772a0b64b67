#include "draw.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include <nlohmann/json.hpp>

#include "../command.h"
#include "lightcone/base/error.h"
#include "lightcone/base/numbers.h"
#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/io/images/draw.h"
#include "lightcone/io/images/images.h"
#include "lightcone/io/printable.h"

namespace lc::tool {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> all;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.pop_back();
    all.push_back(std::move(line));
    at = end + 1;
  }
  return all;
}

// Names of classes: a line each, a list or an object of JSON, or Ultralytics' {0: 'person', 1: ...} in the metadata.
std::vector<std::string> read_labels(const DrawOptions& o, const ModelFile& m) {
  using Json = nlohmann::json;
  std::string text;
  if (!o.labels.empty()) {
    text = read_text_file(o.labels);
  } else if (const auto names = m.metadata().find("names"); names != m.metadata().end()) {
    // Python's dict of numbers and words is read word by word.
    std::vector<std::string> all;
    const std::string& s = names->second;
    for (std::size_t at = 0; (at = s.find_first_of("'\"", at)) != s.npos;) {
      const std::size_t end = s.find(s[at], at + 1);
      if (end == s.npos) break;
      all.push_back(s.substr(at + 1, end - at - 1));
      at = end + 1;
    }
    return all;
  }
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos || (text[first] != '[' && text[first] != '{')) return lines_of(text);
  const Json j = Json::parse(text, nullptr, false);
  std::vector<std::string> all;
  const auto word = [](const Json& v) { return v.is_string() ? v.get<std::string>() : v.dump(); };
  if (j.is_array())
    for (const Json& v : j) all.push_back(word(v));
  else if (j.is_object())
    for (std::size_t k = 0; j.contains(std::to_string(k)); ++k) all.push_back(word(j[std::to_string(k)]));
  if (all.empty())
    throw file_error("run", o.labels,
                     "has no labels: a line each, a JSON list, or an object with keys \"0\", \"1\", ...");
  return all;
}

void write_picture(const std::string& path, const Array& a) {
  std::string small = path;
  std::ranges::transform(small, small.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (small.ends_with(".jpg") || small.ends_with(".jpeg")) write_jpeg(path, a);
  else if (small.ends_with(".png")) write_png(path, a);
  else throw Error("run", str_cat("--draw writes .png and .jpg, not ", in_quotes(path)));
}

struct Kind {
  std::string_view name;
  bool (*show)(Drawing&);
};
constexpr Kind kKinds[] = {{"detections", show_detections},
                           {"text", show_text_lines},
                           {"masks", show_masks},
                           {"picture", show_picture},
                           {"classes", show_classes}};

}  // namespace

std::string Drawing::label(std::int64_t number) const {
  return number >= 0 && number < static_cast<std::int64_t>(labels.size())
             ? printable(labels[static_cast<std::size_t>(number)], 100)
             : str_cat("class ", number);
}

bool wants_meaning(const DrawOptions& o) { return !o.out.empty() || !o.labels.empty() || !o.as.empty() || o.top > 0; }

void show_meaning(const std::vector<NamedOutput>& outputs, const Inputs& given, const ModelFile& m,
                  const RunOptions& o) {
  Drawing d{outputs, given.picture ? &*given.picture : nullptr, o.draw, read_labels(o.draw, m)};
  if (d.placed) d.canvas = d.placed->picture;
  d.reversed = o.picture.colour == "bgr";
  for (const Port& p : m.inputs())
    d.picture_pixels = d.picture_pixels || p.name.find("orig_target_size") != p.name.npos || p.name == "orig_size";
  const Kind* fits = nullptr;
  for (const Kind& k : kKinds) {
    if (!o.draw.as.empty() && o.draw.as != k.name) continue;
    if (k.show(d)) {
      fits = &k;
      break;
    }
  }
  if (!fits) {
    std::string all;
    for (const NamedOutput& each : outputs)
      all += str_cat("\n  ", printable(each.name, 100), ": ", shape_text(each.view));
    throw Error("run",
                str_cat("the outputs are ", o.draw.as.empty() ? "nothing that is drawn or named" : "no " + o.draw.as,
                        ", which 'lightcone run --help' describes by their shapes:", all));
  }
  if (!o.quiet) std::fprintf(stderr, "%s\n", d.assumed.c_str());
  if (o.draw.out.empty()) return;
  write_picture(o.draw.out, d.canvas);
  if (!o.quiet) std::fprintf(stderr, "drawn: %s\n", printable(o.draw.out, 500).c_str());
}

// ---- class scores ---------------------------------------------------------------------------------

bool show_classes(Drawing& d) {
  const NamedOutput* scores = nullptr;
  for (const NamedOutput& o : d.outputs) {
    const auto& s = o.view.shape;
    std::int64_t extents = 0;  // other than 1
    for (const std::int64_t e : s) extents += e > 1;
    if (!is_float(o.view.dtype) || extents != 1 || s.empty()) continue;
    if (s[0] > 1 && s.size() > 1) continue;  // a batch
    if (scores) return false;
    scores = &o;
  }
  if (!scores) return false;
  std::vector<double> v(count_of(scores->view));
  double sum = 0, most = -kInf, least = kInf;
  for (std::size_t k = 0; k < v.size(); ++k) {
    v[k] = number_at(scores->view, k);
    sum += v[k], most = std::max(most, v[k]), least = std::min(least, v[k]);
  }
  const bool probabilities = least >= 0 && most <= 1 + 1e-3 && std::fabs(sum - 1) < 1e-2;
  d.assumed = str_cat("drawn as classes: ", printable(scores->name, 100), " has ",
                      probabilities ? "probabilities" : "logits, of which softmax makes probabilities");
  if (!probabilities) {
    double total = 0;
    for (double& x : v) total += x = std::exp(x - most);
    for (double& x : v) x /= total;
  }
  std::vector<std::size_t> order(v.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return v[a] > v[b]; });
  order.resize(std::min(order.size(), d.options.top ? d.options.top : 5));
  int line = 0;
  for (const std::size_t k : order) {
    const std::string text = str_cat(formatted("%6.2f", v[k] * 100), " % ", d.label(static_cast<std::int64_t>(k)));
    write_stdout(text + "\n");
    if (d.placed) draw_text(d.canvas, 4, 4 + 20 * line++, text, {255, 255, 255}, {0, 0, 0}, 2);
  }
  return true;
}

}  // namespace lc::tool
