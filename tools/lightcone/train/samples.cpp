// Classifiers' data: rows of numbers, or pictures, with their classes.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "data.h"
#include "lightcone/core/error.h"
#include "lightcone/io/data/csv.h"
#include "lightcone/io/data/loader.h"
#include "lightcone/io/data/readers.h"
#include "lightcone/io/images/images.h"
#include "lightcone/io/printable.h"
#include "lightcone/reference/interpreter.h"
#include "nets.h"

namespace lc::tool {
namespace {

constexpr ReadOptions kOptions{.memory = std::size_t{8} << 30};  // the user's own files, which may be compressed

std::string shape_of(const std::vector<i64>& s) { return str(Shape(s.begin(), s.end())); }

// Numbers of any type as f32, or bytes as they are.
Array as_inputs(const Array& a) {
  if (a.dtype == DType::U8 || a.dtype == DType::F32) return a;
  Array out = Array::zeros(DType::F32, a.shape);
  const Value v = read_value(a.bytes.data(), a.dtype, a.shape);
  float* to = out.values<float>().data();
  for (std::size_t k = 0; k < v.size(); ++k)
    to[k] = is_float(v.dtype) ? static_cast<float>(v.f[k]) : static_cast<float>(v.i[k]);
  return out;
}

// Whole numbers of any type.
Array as_labels(const Array& a, const std::string& file) {
  Array out = Array::zeros(DType::I64, {a.elements()});
  const Value v = read_value(a.bytes.data(), a.dtype, a.shape);
  i64* to = out.values<i64>().data();
  for (std::size_t k = 0; k < v.size(); ++k) {
    const double label = is_float(v.dtype) ? v.f[k] : static_cast<double>(v.i[k]);
    if (!(std::abs(label) < 1e15) || label != std::floor(label))
      throw file_error("train", file, "the label of sample ", k, " is ", label, ", no whole number");
    to[k] = static_cast<i64>(label);
  }
  return out;
}

// The column of labels apart from the others.
Dataset from_csv(const std::string& path, const DataConfig& d) {
  const Csv csv = read_csv(path, {.header = d.header}, kOptions);
  const i64 rows = csv.values.shape[0], columns = csv.values.shape[1];
  std::size_t at = static_cast<std::size_t>(columns) - 1;  // without names the last one
  if (d.header) {
    csv.column(d.label);  // Error when there is none, or several
    at = static_cast<std::size_t>(std::ranges::find(csv.columns, d.label) - csv.columns.begin());
  }
  if (columns - 1 != d.shape[0])
    throw file_error("train", path, "it has ", columns - 1, " columns beside the label, data.shape says ", d.shape[0]);
  Array x = Array::zeros(DType::F32, {rows, columns - 1}), y = Array::zeros(DType::F32, {rows});
  const float* from = csv.values.values<float>().data();
  float *features = x.values<float>().data(), *labels = y.values<float>().data();
  for (i64 r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < static_cast<std::size_t>(columns); ++c, ++from) {
      if (c == at) *labels++ = *from;
      else *features++ = *from;
    }
  return Dataset(Arrays{{"x", std::move(x)}, {"y", std::move(y)}});
}

// A folder of pictures. Those held out have the classes of those to learn from.
Dataset from_folder(const std::string& path, const DataConfig& d, std::vector<std::string>& classes) {
  ImageFolder f = read_image_folder(path, {.resize = d.resize, .height = d.shape[1], .width = d.shape[2]}, kOptions);
  if (static_cast<i64>(f.classes.size()) != d.classes)
    throw file_error("train", path, "it has ", f.classes.size(), " folders, a class each, data.classes says ",
                     d.classes);
  if (classes.empty()) classes = f.classes;
  for (std::size_t k = 0; k < classes.size(); ++k)
    if (f.classes[k] != classes[k])
      throw file_error("train", path, "the folder ", in_quotes(f.classes[k]), " stands where data.train has ",
                       in_quotes(classes[k]), ": both must have the same classes");
  return std::move(f.data);
}

Dataset read_files(const std::vector<std::string>& files, const DataConfig& d, std::vector<std::string>& classes) {
  const auto of = [&](const Dataset& s) { return Dataset(Arrays{{"x", s.at("image")}, {"y", s.at("label")}}); };
  if (d.format == "csv") return from_csv(files[0], d);
  if (d.format == "images") return of(from_folder(files[0], d, classes));
  if (d.format == "idx") return of(read_mnist(files[0], files[1], d.classes, kOptions));
  if (d.format == "cifar10") return of(read_cifar10(files, kOptions));
  if (d.format == "cifar100") return of(read_cifar100(files[0], kOptions));
  if (d.format == "npy")
    return Dataset(Arrays{{"x", read_npy(files[0], kOptions)}, {"y", read_npy(files[1], kOptions)}});
  Arrays all = read_npz(files[0], kOptions);
  for (const std::string& key : {d.x, d.y})
    if (!all.contains(key)) throw file_error("train", files[0], "it has no array ", in_quotes(key));
  return Dataset(Arrays{{"x", all.at(d.x)}, {"y", all.at(d.y)}});
}

void check_numbers(const Array& x, const std::string& file) {
  if (x.dtype != DType::F32) return;
  const auto values = x.values<float>();
  const auto bad = std::ranges::find_if(values, [](float v) { return !std::isfinite(v); });
  if (bad == values.end()) return;
  const auto at = static_cast<std::size_t>(bad - values.begin()), row = x.row_bytes() / sizeof(float);
  throw file_error("train", file, "number ", at % row, " of sample ", at / row, " (from 0) is ", *bad,
                   ", no finite number: a network cannot learn from it");
}

void check_labels(const Array& y, i64 classes, const std::string& file) {
  const auto labels = y.values<i64>();
  const auto bad = std::ranges::find_if(labels, [&](i64 l) { return l < 0 || l >= classes; });
  if (bad != labels.end())
    throw file_error("train", file, "the label of sample ", bad - labels.begin(), " (from 0) is ", *bad,
                     ", data.classes says 0 to ", classes - 1);
}

// A data set that fits the configuration. `classes`: their names, where the data have some.
Dataset read_checked(const std::vector<std::string>& files, const DataConfig& d, std::vector<std::string>& classes) {
  const Dataset raw = read_files(files, d, classes);
  if (raw.size() == 0) throw file_error("train", files[0], "it has no samples");
  const std::vector<i64> sample(raw.at("x").shape.begin() + 1, raw.at("x").shape.end());
  std::vector<i64> last = d.shape;  // [channels, height, width] may lie as [height, width, channels]
  std::rotate(last.begin(), last.begin() + (last.size() == 3), last.end());
  const bool channels_last = sample != d.shape && sample == last && d.shape.size() == 3;
  if (sample != d.shape && !channels_last)
    throw file_error("train", files[0], "a sample is ", shape_of(sample), ", data.shape says ", shape_of(d.shape));
  Array x = as_inputs(raw.at("x")), y = as_labels(raw.at("y"), files.back());
  check_numbers(x, files[0]), check_labels(y, d.classes, files.back());
  return Dataset(Arrays{{"x", std::move(x)}, {"y", std::move(y)}});
}

// The samples of a part, in a random order that the seed decides.
Dataset picked(const Dataset& all, const std::vector<i64>& order, std::size_t first, std::size_t count) {
  Arrays out;
  for (const auto& [name, a] : all.arrays()) {
    std::vector<i64> shape = a.shape;
    shape[0] = static_cast<i64>(count);
    Array& to = out.emplace(name, Array::zeros(a.dtype, shape)).first->second;
    for (std::size_t k = 0; k < count; ++k)
      std::copy_n(a.bytes.data() + static_cast<std::size_t>(order[first + k]) * a.row_bytes(), a.row_bytes(),
                  to.bytes.data() + k * a.row_bytes());
  }
  return Dataset(std::move(out));
}

class Samples final : public TrainingData {
 public:
  explicit Samples(const TrainConfig& c) : c_(c) {
    auto all = std::make_shared<const Dataset>(read_checked(c.data.train, c.data, classes_));
    const auto seed = static_cast<std::uint64_t>(c.train.seed);
    if (!c.data.test.empty()) {
      learned_ = all, held_out_ = std::make_shared<const Dataset>(read_checked(c.data.test, c.data, classes_));
    } else {
      const auto n = static_cast<std::size_t>(all->size());
      const auto out = static_cast<std::size_t>(std::ceil(static_cast<double>(n) * c.data.held_out));
      if (out >= n) throw file_error("train", c.data.train[0], n, " samples are too few to hold some of them out");
      const auto order = random_permutation(all->size(), SeededRandom({seed, 0x5EED}));
      learned_ = std::make_shared<const Dataset>(picked(*all, order, 0, n - out));
      held_out_ = std::make_shared<const Dataset>(picked(*all, order, n - out, out));
    }
    if (c.held_out_samples > 0 && held_out_->size() > c.held_out_samples)
      held_out_ = std::make_shared<const Dataset>(held_out_->part(0, c.held_out_samples));
    loader_.emplace(learned_, LoaderOptions{.batch_size = c.train.batch,
                                            .shuffle = true,
                                            .seed = seed,
                                            .transforms = {{"x", transforms(learned_->at("x"), true)}}});
    held_loader_.emplace(held_out_, LoaderOptions{.batch_size = c.train.batch,
                                                  .rest = Rest::Wrap,
                                                  .prefetch = 0,
                                                  .transforms = {{"x", transforms(held_out_->at("x"), false)}}});
  }
  Arrays batch(i64 step) override { return at(*loader_, {step / loader_->batches(), step % loader_->batches()}); }
  i64 held_out() const override { return held_out_->size(); }
  Arrays held_out_batch(i64 first) override { return at(*held_loader_, {0, first / c_.train.batch}); }
  std::string summary() const override {
    std::string names;
    for (const std::string& name : classes_) names += (names.empty() ? " (" : ", ") + printable(name, 40);
    return str_cat(learned_->size(), " samples of ", shape_of(c_.data.shape), " in ", c_.data.classes, " classes",
                   names, names.empty() ? "" : ")", " to learn from, ", held_out_->size(), " held out");
  }

 private:
  static Arrays at(DataLoader& loader, LoaderPosition p) {
    if (!(loader.position() == p)) loader.seek(p);
    return loader.next().arrays;
  }
  std::vector<Transform> transforms(const Array& x, bool learns) const {
    const DataConfig& d = c_.data;
    std::vector<Transform> list;
    if (x.shape.size() == 4 && d.shape.size() == 3 && std::vector<i64>(x.shape.begin() + 1, x.shape.end()) != d.shape)
      list.emplace_back(ChannelsFirst{});
    if (learns && d.augment) {
      const std::size_t axes = d.shape.size();
      list.emplace_back(RandomCrop{d.shape[axes - 2], d.shape[axes - 1], 4});
      list.emplace_back(RandomHorizontalFlip{});
    }
    const double scale = d.scale > 0 ? d.scale : x.dtype == DType::U8 ? 255 : 1;
    list.emplace_back(ToFloat{static_cast<float>(scale)});
    if (!d.mean.empty()) list.emplace_back(Normalize{{d.mean.begin(), d.mean.end()}, {d.std.begin(), d.std.end()}});
    return list;
  }
  const TrainConfig& c_;
  std::vector<std::string> classes_;  // names, by label, where the data have some
  std::shared_ptr<const Dataset> learned_, held_out_;
  std::optional<DataLoader> loader_, held_loader_;
};

}  // namespace

std::unique_ptr<TrainingData> read_samples(const TrainConfig& c) { return std::make_unique<Samples>(c); }

}  // namespace lc::tool
