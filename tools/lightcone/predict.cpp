// lightcone predict: the predictions of a model of `lightcone train` for rows, pictures and arrays, and of a classifier
// of Hugging Face's for pictures.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>

#include "answers.h"
#include "command.h"
#include "commands.h"
#include "explain.h"
#include "lightcone/base/error.h"
#include "lightcone/io/data/readers.h"
#include "lightcone/io/images/images.h"
#include "lightcone/io/printable.h"
#include "lightcone/models/load/load_model.h"
#include "lightcone/models/vision/image_processor.h"
#include "lightcone/train/load.h"
#include "texts/predict.h"
#include "train/data.h"
#include "train/description.h"
#include "train/nets.h"
#include "train/table.h"

namespace lc::tool {
namespace {

namespace fs = std::filesystem;

using Take = std::function<void(const Array& sample, Source)>;

// Samples of files, as the network's inputs were before their preparation.
class Inputs {
 public:
  Inputs(const ModelDescription& d, const std::vector<std::string>& paths) : d_(d) {
    for (const std::string& path : paths) add(path);
  }
  // Returns the number of samples to compute at once.
  i64 batch() const { return arrays_ || d_.data.rows() ? 64 : std::clamp<i64>(std::ssize(files_), 1, 8); }
  void each(const Take& take) const {
    for (const std::string& path : files_) {
      if (is_array(path)) array(path, take);
      else if (d_.data.rows()) table(path, take);
      else take(picture(path), {path, std::nullopt});
    }
  }

 private:
  static std::string ending(const std::string& path) {
    std::string end = fs::path(path).extension().string();
    for (char& c : end) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    return end;
  }
  static bool is_picture(const std::string& path) {
    const std::string end = ending(path);
    return end == ".jpg" || end == ".jpeg" || end == ".png";
  }
  bool is_array(const std::string& path) const {
    return ending(path) == ".npy" || (d_.data.format == "idx" && !is_picture(path));
  }
  void add(const std::string& path) {
    std::error_code none;
    if (!fs::exists(path, none)) throw file_error("predict", path, "there is no such file");
    const bool folder = fs::is_directory(path, none);
    if (d_.data.rows() && (folder || is_picture(path)))
      throw file_error("predict", path, folder ? "a folder" : "a picture", ", and the model was trained on rows of ",
                       d_.data.shape[0], " numbers: it takes CSV and .npy");
    if (!folder) {
      arrays_ = arrays_ || is_array(path);
      return files_.push_back(path);
    }
    const FoundImages found = find_images(path, kOwnFiles);
    if (found.files.empty()) throw file_error("predict", path, "no .jpg, .jpeg or .png is in this folder");
    files_.insert(files_.end(), found.files.begin(), found.files.end());
    if (!found.skipped.empty())
      note(path, str_cat(found.skipped.size(), found.skipped.size() == 1 ? " file is" : " files are",
                         " no picture and left out, the first is ", in_quotes(found.skipped[0].path)));
  }
  static void note(const std::string& path, const std::string& what) {
    std::fprintf(stderr, "lightcone: note: %s: %s\n", printable(path, 500).c_str(), what.c_str());
  }
  void table(const std::string& path, const Take& take) const {
    const Table t = read_table(path, d_.data, Labels::Ignored);
    const std::size_t each = t.x.row_bytes();
    Array sample = Array::zeros(DType::F32, d_.data.shape);
    for (std::size_t k = 0; k < t.rows.size(); ++k) {
      std::memcpy(sample.bytes.data(), t.x.bytes.data() + k * each, each);
      take(sample, {path, t.rows[k]});
    }
    if (t.left_out > 0)
      note(path,
           str_cat(t.left_out, t.left_out == 1 ? " row" : " rows", " with missing cells left out, as in training"));
  }
  // Reads an array. The first axis counts samples; [height, width, channels] is taken as [channels, height, width].
  void array(const std::string& path, const Take& take) const {
    const Array a = as_inputs(ending(path) == ".npy" ? read_npy(path, kOwnFiles) : read_idx(path, kOwnFiles));
    const std::vector<i64>& shape = d_.data.shape;
    std::vector<i64> sample(a.shape.begin() + (a.shape.empty() ? 0 : 1), a.shape.end()), last = shape;
    std::rotate(last.begin(), last.begin() + (last.size() == 3), last.end());
    if (a.shape.empty() || (sample != shape && sample != last))
      throw file_error("predict", path, "a sample is ", str(Shape(sample.begin(), sample.end())),
                       ", the model was trained on ", str(Shape(shape.begin(), shape.end())));
    if ((a.dtype == DType::U8) != d_.bytes)
      throw file_error("predict", path, "it holds ", a.dtype == DType::U8 ? "bytes" : "numbers",
                       ", the model was trained on ", d_.bytes ? "bytes" : "numbers");
    std::vector<Transform> list;
    if (sample != shape) list.emplace_back(ChannelsFirst{});
    Transforms order(list, a.dtype, sample);
    Array one = Array::zeros(a.dtype, shape);
    for (i64 k = 0; k < a.shape[0]; ++k) {
      order.apply(a.bytes.data() + static_cast<std::size_t>(k) * a.row_bytes(), one.bytes.data(), {0, 0, 0});
      take(one, {path, k});
    }
  }
  // Reads a picture at the size of the training. If training pictures were not resized, crops the middle.
  Array picture(const std::string& path) const {
    const std::vector<i64>& shape = d_.data.shape;
    const i64 channels = channels_of(d_.data), height = shape[shape.size() - 2], width = shape.back();
    if (!d_.bytes)
      throw file_error("predict", path, "a picture's bytes, and the model was trained on other numbers: give it .npy");
    if (channels != 1 && channels != 3)
      throw file_error("predict", path, "a picture, and the model was trained on samples of ", channels, " channels");
    const i64 resize = d_.data.resize > 0 ? d_.data.resize : std::max(height, width);
    const ImageFolderOptions fit{.resize = resize, .height = height, .width = width};
    Array a = fitted_image(read_image(path, kOwnFiles), fit, kOwnFiles);
    if (channels == 1) a = grey(a);
    a.shape = shape;
    return a;
  }
  // Converts to grey as PIL's convert("L"): ITU-R 601-2 luma.
  static Array grey(const Array& rgb) {
    Array out = Array::zeros(DType::U8, {rgb.shape[1], rgb.shape[2]});
    const auto from = rgb.values<std::uint8_t>();
    const auto to = out.values<std::uint8_t>();
    const std::size_t n = to.size();
    for (std::size_t k = 0; k < n; ++k) {
      const std::uint32_t red = from[k], green = from[n + k], blue = from[2 * n + k];
      to[k] = static_cast<std::uint8_t>((red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16);
    }
    return out;
  }

  const ModelDescription& d_;
  std::vector<std::string> files_;
  bool arrays_ = false;  // some of the files are arrays
};

// The network with its weights, for a batch of samples.
class Network {
 public:
  Network(const ModelDescription& d, const Weights& weights, i64 batch, const Compiler& compiler)
      : batch_(batch), outputs_(static_cast<std::size_t>(d.data.classes)) {
    Shape shape{batch};
    for (const i64 n : d.data.shape) shape.push_back(n);
    with_network(d.model, d.data, [&](const auto& module) {
      Graph g;
      const nn::Model net(g, module);
      const Tensor out = net(g.input("x", shape));
      (d.data.regression ? out : softmax(out, 1)).retrieve("out");
      program_ = compile(g, compiler);
    });
    load(program_, weights);
    print_notes(program_);
    context_.emplace(program_);
    const std::vector<Transform> list = d.transforms();
    prepared_.emplace(list, d.bytes ? DType::U8 : DType::F32, d.data.shape);
    std::vector<i64> all = d.data.shape;
    all.insert(all.begin(), batch);
    x_ = Array::zeros(DType::F32, all);
  }
  // Adds a sample; returns true if the batch is full.
  bool add(const Array& sample) {
    std::byte* to = x_.bytes.data() + static_cast<std::size_t>(count_) * x_.row_bytes();
    prepared_->apply(sample.bytes.data(), to, {0, 0, 0});
    return ++count_ == batch_;
  }
  // Returns `outputs` numbers for each sample that was added.
  std::vector<std::span<const float>> run() {
    context_->set("x", x_).run();
    values_ = context_->get("out");
    std::vector<std::span<const float>> rows;
    for (i64 k = 0; k < count_; ++k)
      rows.emplace_back(values_.data() + static_cast<std::size_t>(k) * outputs_, outputs_);
    count_ = 0;
    return rows;
  }

 private:
  i64 batch_, count_ = 0;
  std::size_t outputs_;
  Program program_;
  std::optional<Context> context_;
  std::optional<Transforms> prepared_;
  Array x_;
  std::vector<float> values_;
};

// Returns the parameters' file: for a folder of `lightcone train`, its best parameters.
std::string file_of(const std::string& model) {
  const fs::path best = fs::path(model) / "best.safetensors";
  std::error_code none;
  return fs::is_directory(model, none) && fs::exists(best, none) ? best.string() : model;
}

// The folder of Hugging Face's with a classifier of pictures that MODEL names: itself, or the folder model/ of a run;
// "" if it names none. What its preprocessor_config.json says is done with the pictures.
std::string picture_classifier_folder(const std::string& model) {
  for (const fs::path& folder : {fs::path(model), fs::path(model) / "model"})
    if (std::error_code none;
        fs::exists(folder / "config.json", none) && fs::exists(folder / "preprocessor_config.json", none))
      return folder.string();
  return "";
}

// The classifier for pictures of one prepared size.
class PictureClassifier {
 public:
  PictureClassifier(const PredictOptions& o, const PictureSize& size)
      : size_(size),
        model_(lc::load_model(o.model, {.batch = 1,
                                        .outputs = std::vector<std::string>{},
                                        .height = size.height,
                                        .width = size.width,
                                        .read = kOwnFiles})) {
    const auto logits = model_.outputs.find("logits");
    if (logits == model_.outputs.end() || logits->second.rank() != 2)
      throw file_error("predict", o.model, "a ", model_.architecture, " gives no logits of classes for a picture");
    softmax(logits->second, 1).retrieve("probabilities");
    program_ = model_.program(compiler_for(open_device(o.device), {.threads = o.threads}));
    run_.emplace(program_);
  }
  const PictureSize& size() const { return size_; }
  const std::vector<std::string>& labels() const { return model_.labels; }
  std::vector<float> probabilities(const Array& pixels) {
    return run_->set("pixel_values", pixels).run().get("probabilities");
  }

 private:
  PictureSize size_;
  LoadedModel model_;
  Program program_;
  std::optional<Context> run_;
};

void predict_pictures(const PredictOptions& o) {
  const ImageProcessor prepare = ImageProcessor::load(o.model, kOwnFiles);
  std::optional<PictureClassifier> net;
  std::optional<Answers> answers;
  for (const std::string& input : o.inputs) {
    std::error_code none;
    const bool folder = fs::is_directory(input, none);
    for (const std::string& file : folder ? find_images(input, kOwnFiles).files : std::vector<std::string>{input}) {
      const Array picture = read_image(file, kOwnFiles);
      const PictureSize size = prepare.size_of({picture.shape[1], picture.shape[2]});
      if (!net || net->size().height != size.height || net->size().width != size.width) net.emplace(o, size);
      if (!answers) answers.emplace(Outputs{.classes = net->labels()}, o);
      answers->add({file, {}}, net->probabilities(prepare.apply(picture)));
    }
  }
  if (!answers) throw Error("predict", "there are no .jpg and .png files in what was given");
  answers->write();
}

}  // namespace

void predict(const PredictOptions& o) {
  if (const std::string folder = text_classifier_folder(o.model); !folder.empty()) return predict_texts(folder, o);
  if (!o.text.empty() || !o.text_pair.empty())
    throw file_error("predict", o.model, "--text and --text-pair are for classifiers of texts");
  if (o.inputs.empty()) throw Error("predict", "INPUT is required: files or folders");
  if (const std::string folder = picture_classifier_folder(o.model); !folder.empty()) {
    PredictOptions of_folder = o;
    of_folder.model = folder;
    return predict_pictures(of_folder);
  }
  const Weights weights = Weights::open(file_of(o.model));
  const ModelDescription d = ModelDescription::of(weights);
  const Inputs inputs(d, o.inputs);
  Network net(d, weights, inputs.batch(), compiler_for(open_device(o.device), {.threads = o.threads}));
  Answers answers({.classes = d.classes, .regression = d.data.regression, .mean = d.target_mean, .std = d.target_std},
                  o);
  std::vector<Source> waiting;
  const auto answer = [&] {
    const auto rows = net.run();
    for (std::size_t k = 0; k < rows.size(); ++k) answers.add(waiting[k], rows[k]);
    waiting.clear();
  };
  inputs.each([&](const Array& sample, Source from) {
    waiting.push_back(std::move(from));
    if (net.add(sample)) answer();
  });
  if (!waiting.empty()) answer();
  answers.write();
}

}  // namespace lc::tool
