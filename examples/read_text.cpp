// Reads the text on a picture with two published ONNX models: a detector of lines, and a recogniser of one line.
//
//   read_text PP-OCRv6_det_small.onnx PP-OCRv6_rec_small.onnx page.png
//
// Both are those of PaddleOCR, as the Python package rapidocr has them (bench/setup-models fetches it). Everything but
// the two networks is here: pictures as graph code, lines in a map of scores, and the text of a sequence of scores.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <string>
#include <vector>

#include "lightcone/io/images/images.h"
#include "lightcone/lightcone.h"
#include "lightcone/onnx/onnx.h"
#include "lightcone/ops/vision/pictures.h"
#include "lightcone/ops/vision/resize.h"

using namespace lc;

namespace {

// Compiles graph code that makes an input of a picture u8 [3, height, width], and runs it once.
Array prepared(const Array& picture, const auto& code) {
  Graph g;
  const Tensor x = g.input("picture", {picture.shape[0], picture.shape[1], picture.shape[2]}, DType::U8);
  g.output("x", code(unsqueeze(to(x, DType::F32) / 255, 0)));
  const Program program = compile(g, generic() | cpu());
  Context c(program);
  c.set("picture", picture).run();
  return Array::of<float>(c.shape("x"), c.get("x"));
}

// A model, compiled for inputs of this shape (-1: any extent), and run.
class Network {
 public:
  Network(const std::string& path, std::vector<std::int64_t> shape)
      : model_(read_onnx(path, {.shapes = {{"x", std::move(shape)}}})),
        program_(compile(model_.graph, generic() | cpu())) {
    model_.load_weights(program_);
  }
  Array operator()(const Array& x) const {
    Context c(program_);
    c.set("x", x).run();
    const std::string& y = model_.outputs[0].name;
    return Array::of<float>(c.shape(y), c.get(y));
  }
  const OnnxProgram& model() const { return model_; }

 private:
  OnnxProgram model_;
  Program program_;
};

struct Box {
  std::int64_t left, top, right, bottom;
};

// Connected areas of a map [height, width] above a threshold, without specks. The detector marks the core of each line
// (differentiable binarisation, Liao et al. 2020), so that lines do not touch; boxes are grown to the whole of it.
std::vector<Box> lines_of(std::span<const float> map, std::int64_t height, std::int64_t width) {
  constexpr float kThreshold = 0.3f;
  constexpr double kGrown = 1.5;
  std::vector<bool> seen(map.size());
  std::vector<Box> lines;
  for (std::int64_t first = 0; first < height * width; ++first) {
    if (seen[first] || map[first] <= kThreshold) continue;
    Box b{width, height, 0, 0};
    std::vector<std::int64_t> open{first};
    seen[first] = true;
    while (!open.empty()) {
      const std::int64_t y = open.back() / width, x = open.back() % width;
      open.pop_back();
      b = {std::min(b.left, x), std::min(b.top, y), std::max(b.right, x + 1), std::max(b.bottom, y + 1)};
      for (const auto& [ny, nx] : {std::pair(y - 1, x), {y + 1, x}, {y, x - 1}, {y, x + 1}}) {
        if (ny < 0 || nx < 0 || ny >= height || nx >= width) continue;
        const std::int64_t next = ny * width + nx;
        if (!seen[next] && map[next] > kThreshold) seen[next] = true, open.push_back(next);
      }
    }
    const std::int64_t w = b.right - b.left, h = b.bottom - b.top;
    if (w < 3 || h < 3) continue;
    const auto grown = static_cast<std::int64_t>(std::lround(kGrown * double(w * h) / double(2 * (w + h))));
    lines.push_back({std::max<std::int64_t>(b.left - grown, 0), std::max<std::int64_t>(b.top - grown, 0),
                     std::min(b.right + grown, width), std::min(b.bottom + grown, height)});
  }
  std::ranges::sort(lines, {}, [](const Box& b) { return std::pair(b.top, b.left); });
  return lines;
}

// The recogniser's alphabet: what its file lists, and a space.
std::vector<std::string> alphabet_of(const OnnxProgram& model) {
  const auto listed = model.metadata.find("character");
  if (listed == model.metadata.end()) throw Error("read_text", "the recogniser's file has no alphabet");
  std::vector<std::string> letters;
  for (std::size_t at = 0, end; at < listed->second.size(); at = end + 1) {
    end = std::min(listed->second.find('\n', at), listed->second.size());
    letters.push_back(listed->second.substr(at, end - at));
  }
  letters.push_back(" ");
  return letters;
}

// Connectionist temporal classification, greedy: of each step the likeliest class; class 0 is none, and a class that
// goes on over several steps is one letter (Graves et al. 2006).
std::string text_of(const Array& scores, const std::vector<std::string>& alphabet) {
  const std::int64_t steps = scores.shape[1], classes = scores.shape[2];
  const auto v = scores.values<float>();
  std::string text;
  std::int64_t last = 0;
  for (std::int64_t t = 0; t < steps; ++t) {
    const auto row = v.subspan(t * classes, classes);
    const std::int64_t best = std::ranges::max_element(row) - row.begin();
    if (best != 0 && best != last && best <= std::int64_t(alphabet.size())) text += alphabet[best - 1];
    last = best;
  }
  return text;
}

void read(const std::string& detector, const std::string& recogniser, const std::string& file) {
  const Array picture = read_image(file);
  // Extents are rounded up to multiples of 32, by which the detector divides them.
  const std::int64_t height = (picture.shape[1] + 31) / 32 * 32, width = (picture.shape[2] + 31) / 32 * 32;
  const int below = int(height - picture.shape[1]), right = int(width - picture.shape[2]);
  const Network find(detector, {1, 3, height, width}), recognise(recogniser, {1, 3, 48, -1});
  const std::vector<std::string> alphabet = alphabet_of(recognise.model());
  const Array map = find(prepared(picture, [&](const Tensor& x) {
    const Tensor whole = pad(x, {0, right, 0, below}, PadMode::Replicate);
    return normalize_picture(whole, {0.485, 0.456, 0.406}, {0.229, 0.224, 0.225});
  }));
  for (Box b : lines_of(map.values<float>(), height, width)) {
    b.right = std::min(b.right, picture.shape[2]), b.bottom = std::min(b.bottom, picture.shape[1]);
    if (b.right <= b.left || b.bottom <= b.top) continue;
    constexpr std::int64_t kHeight = 48;  // a line's, as the recogniser wants it; blue before green and red, -1 to 1
    const std::int64_t w =
        std::max<std::int64_t>(8, std::lround(double(kHeight) * double(b.right - b.left) / double(b.bottom - b.top)));
    const Array scores = recognise(prepared(picture, [&](const Tensor& x) {
      const Tensor line = slice(slice(x, 2, b.top, b.bottom), 3, b.left, b.right);
      return reverse_channels(resize(line, {.sizes = {kHeight, w}, .axes = {2, 3}, .mode = "linear"})) * 2 - 1;
    }));
    std::cout << text_of(scores, alphabet) << '\n';
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cout << "read_text DETECTOR.onnx RECOGNISER.onnx PICTURE\n";
    return argc == 1 ? 0 : 1;
  }
  try {
    read(argv[1], argv[2], argv[3]);
  } catch (const Error& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}
