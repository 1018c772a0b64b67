// lightcone detect: objects in pictures.
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "command.h"
#include "commands.h"
#include "frames.h"
#include "lightcone/base/error.h"
#include "lightcone/base/numbers.h"
#include "lightcone/io/images/draw.h"
#include "lightcone/io/images/images.h"
#include "lightcone/io/printable.h"
#include "lightcone/models/detect/detector.h"
#include "lightcone/runtime/names.h"
#include "train/table.h"

namespace lc::tool {
namespace {

namespace fs = std::filesystem;

// The pictures that are named, and those of the folders that are named.
std::vector<std::string> pictures_of(const std::vector<std::string>& inputs) {
  std::vector<std::string> all;
  for (const std::string& path : inputs) {
    std::error_code none;
    if (!fs::is_directory(path, none)) {
      all.push_back(path);
      continue;
    }
    const std::vector<std::string> found = find_images(path, kOwnFiles).files;
    if (found.empty()) throw file_error("detect", path, "there are no .jpg and .png files in this folder");
    all.insert(all.end(), found.begin(), found.end());
  }
  return all;
}

// The numbers of the classes that are asked for. Throws Error for a name that the model has not.
std::vector<std::int64_t> wanted_classes(const std::vector<std::string>& names, const Detector& d) {
  std::vector<std::int64_t> all;
  for (const std::string& name : names) {
    const auto at = std::ranges::find(d.labels(), name);
    if (at == d.labels().end()) {
      const std::vector<std::string_view> known(d.labels().begin(), d.labels().end());
      throw Error("detect", str_cat("the model has no class ", in_quotes(name), "; ", names_near(name, known)));
    }
    all.push_back(at - d.labels().begin());
  }
  return all;
}

std::string json_text(std::string_view text) {
  std::string s = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') s += '\\';
    if (static_cast<unsigned char>(c) < 0x20) s += formatted("\\u%04x", static_cast<unsigned>(c));
    else s += c;
  }
  return s + "\"";
}

// A line of JSON; `which` is the key that says which picture it is, with its value.
std::string json_line(const std::string& which, const Array& picture, const std::vector<Detection>& found,
                      const Detector& detector) {
  std::string s =
      str_cat("{", which, ", \"width\": ", picture.shape[2], ", \"height\": ", picture.shape[1], ", \"detections\": [");
  for (std::size_t k = 0; k < found.size(); ++k) {
    const Detection& d = found[k];
    s += str_cat(k ? ", " : "", "{\"class\": ", json_text(detector.label(d.label)),
                 formatted(", \"score\": %.4f, \"box\": [%.1f, %.1f, %.1f, %.1f]}", d.score, d.x1, d.y1, d.x2, d.y2));
  }
  return s + "]}\n";
}

std::string text_lines(const std::string& file, const std::vector<Detection>& found, const Detector& detector,
                       bool several) {
  std::string s;
  for (const Detection& d : found)
    s += str_cat(several ? printable(file, 500) + "  " : "", printable(detector.label(d.label), 100),
                 formatted("  %.2f  from (%.0f, %.0f) to (%.0f, %.0f)\n", d.score, d.x1, d.y1, d.x2, d.y2));
  if (found.empty()) s = str_cat(several ? printable(file, 500) + "  " : "", "nothing found\n");
  return s;
}

void write_drawn(const std::string& path, Array picture, const std::vector<Detection>& found,
                 const Detector& detector) {
  for (auto d = found.rbegin(); d != found.rend(); ++d)  // the best are on top
    draw_box(picture, d->x1, d->y1, d->x2, d->y2, colour_of_class(static_cast<std::size_t>(d->label)),
             str_cat(detector.label(d->label), formatted(" %.2f", d->score)));
  std::string small = path;
  std::ranges::transform(small, small.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (small.ends_with(".jpg") || small.ends_with(".jpeg")) write_jpeg(path, picture);
  else write_png(path, picture);
}

// Where a drawn picture goes: the file that is named, or one of the picture's name in the folder that is named.
std::string drawn_path(const std::string& draw, const std::string& file, bool several) {
  std::error_code none;
  const bool folder = fs::is_directory(draw, none);
  if (folder) return (fs::path(draw) / fs::path(file).filename()).string();
  if (several)
    throw Error("detect", str_cat("--draw ", in_quotes(draw), " is no folder, and there are several pictures"));
  const std::string end = fs::path(draw).extension().string();
  if (end != ".png" && end != ".jpg" && end != ".jpeg")
    throw Error("detect", str_cat("--draw writes .png and .jpg, not ", in_quotes(draw)));
  return draw;
}

}  // namespace

namespace {

// What is done with a picture: objects are found, printed and drawn.
class Finder {
 public:
  explicit Finder(const DetectOptions& o)
      : o_(o),
        detector_(Detector::load(
            o.model, {.choose = {.confidence = o.confidence,
                                 .overlap = o.overlap,
                                 .most = o.most,
                                 .across_classes = o.across_classes},
                      .height = o.height,
                      .width = o.width,
                      .compiler = compiler_for(open_device(o.device), {.threads = o.threads, .precision = o.precision}),
                      .ignore = o.ignore,
                      .read = kOwnFiles})),
        wanted_(wanted_classes(o.classes, detector_)) {
    print_notes(detector_.program());
  }
  void file(const std::string& path, bool several) {
    const Array picture = read_image(path, kOwnFiles);
    const std::vector<Detection> all = found(picture);
    progress_.clear();
    write_stdout(o_.json ? json_line(str_cat("\"file\": ", json_text(path)), picture, all, detector_)
                         : text_lines(path, all, detector_, several));
    if (!o_.draw.empty()) write_drawn(drawn_path(o_.draw, path, several), picture, all, detector_);
  }
  void frame(const Array& picture, std::int64_t number) {
    const std::vector<Detection> all = found(picture);
    progress_.clear();
    write_stdout(o_.json ? json_line(str_cat("\"frame\": ", number), picture, all, detector_)
                         : text_lines(str_cat("frame ", number), all, detector_, true));
    if (!o_.draw.empty())
      write_drawn((fs::path(o_.draw) / formatted("frame-%06lld.jpg", static_cast<long long>(number))).string(), picture,
                  all, detector_);
  }
  Progress& progress() { return progress_; }

 private:
  std::vector<Detection> found(const Array& picture) {
    std::vector<Detection> all = detector_.detect(picture);
    if (!wanted_.empty())
      std::erase_if(all, [&](const Detection& d) { return std::ranges::find(wanted_, d.label) == wanted_.end(); });
    return all;
  }
  const DetectOptions& o_;
  Detector detector_;
  std::vector<std::int64_t> wanted_;
  Progress progress_ = {};
};

void detect_in_stream(const DetectOptions& o) {
  if (o.inputs.size() > 1 || (!o.inputs.empty() && o.inputs[0] != "-"))
    throw Error("detect", "frames come from the standard input, -, and no other picture is looked at beside them");
  if (std::error_code none; !o.draw.empty() && !fs::is_directory(o.draw, none))
    throw Error("detect", str_cat("--draw ", in_quotes(o.draw), " is no folder, and frames are several pictures"));
  Finder finder(o);
  FrameReader frames(stdin, o.frame_width, o.frame_height);
  const double begin = now();
  while (const std::optional<Array> picture = frames.next()) {
    finder.frame(*picture, frames.count() - 1);
    const auto n = static_cast<double>(frames.count());
    finder.progress().say(formatted("%.0f frames, %.1f a second", n, n / std::max(1e-9, now() - begin)));
  }
}

}  // namespace

void detect(const DetectOptions& o) {
  if (o.frame_width > 0 || std::ranges::count(o.inputs, "-") > 0) return detect_in_stream(o);
  if (o.inputs.empty()) throw Error("detect", "PICTURE is required: files, folders, or - for a stream of frames");
  const std::vector<std::string> files = pictures_of(o.inputs);
  if (!o.draw.empty()) drawn_path(o.draw, files.front(), files.size() > 1);  // before any work
  Finder finder(o);
  for (std::size_t k = 0; k < files.size(); ++k) {
    finder.file(files[k], files.size() > 1);
    if (files.size() > 1)
      finder.progress().show("pictures", static_cast<double>(k + 1) / static_cast<double>(files.size()));
  }
}

}  // namespace lc::tool
