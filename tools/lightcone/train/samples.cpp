// Data of classifiers and regressions: rows of numbers, or pictures, with their labels.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "data.h"
#include "lightcone/base/error.h"
#include "lightcone/io/data/loader.h"
#include "lightcone/io/data/readers.h"
#include "lightcone/io/images/images.h"
#include "lightcone/io/printable.h"
#include "lightcone/reference/interpreter.h"
#include "table.h"

namespace lc::tool {

namespace {

Array as_floats(const Array& a) {
  Array out = Array::zeros(DType::F32, a.shape);
  const Value v = read_value(a.bytes.data(), a.dtype, a.shape);
  float* to = out.values<float>().data();
  for (std::size_t k = 0; k < v.size(); ++k)
    to[k] = is_float(v.dtype) ? static_cast<float>(v.f[k]) : static_cast<float>(v.i[k]);
  return out;
}

}  // namespace

Array as_inputs(const Array& a) { return a.dtype == DType::U8 || a.dtype == DType::F32 ? a : as_floats(a); }

namespace {

std::string shape_of(const std::vector<i64>& s) { return str(Shape(s.begin(), s.end())); }

// Facts of the files besides their samples.
struct Said {
  std::vector<std::string> classes, columns;  // names, if there are any
  std::size_t rows_left_out = 0;              // rows of a table
  std::vector<SkippedFile> skipped;           // files of folders
};

// Returns whole numbers of any type as i64.
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

// Reads a table, with the column of labels separate. Held-out tables must have the columns of the training table.
Dataset from_csv(const std::string& path, DataConfig d, Said& said) {
  if (!said.columns.empty()) d.features = said.columns;
  Table t = read_table(path, d, Labels::Read);
  said.columns = t.columns, said.rows_left_out += t.left_out;
  Array y = label_numbers(t, d, path, said.classes);
  return Dataset(Arrays{{"x", std::move(t.x)}, {"y", std::move(y)}});
}

// Reads a folder of pictures. Held-out pictures have the classes of the training pictures.
Dataset from_folder(const std::string& path, const DataConfig& d, Said& said) {
  ImageFolder f = read_image_folder(
      path, {.resize = d.resize, .height = d.shape[1], .width = d.shape[2], .skip_unreadable = d.skip_unreadable},
      kOwnFiles);
  std::vector<std::string>& classes = said.classes;
  if (static_cast<i64>(f.classes.size()) != d.classes)
    throw file_error("train", path, "it has ", f.classes.size(), " folders, a class each, data.classes says ",
                     d.classes);
  if (classes.empty()) classes = f.classes;
  for (std::size_t k = 0; k < classes.size(); ++k)
    if (f.classes[k] != classes[k])
      throw file_error("train", path, "the folder ", in_quotes(f.classes[k]), " stands where data.train has ",
                       in_quotes(classes[k]), ": both must have the same classes");
  std::ranges::move(f.skipped, std::back_inserter(said.skipped));
  return std::move(f.data);
}

Dataset read_files(const std::vector<std::string>& files, const DataConfig& d, Said& said) {
  const auto of = [&](const Dataset& s) { return Dataset(Arrays{{"x", s.at("image")}, {"y", s.at("label")}}); };
  if (d.format == "csv") return from_csv(files[0], d, said);
  if (d.format == "images") return of(from_folder(files[0], d, said));
  if (d.format == "idx") return of(read_mnist(files[0], files[1], d.classes, kOwnFiles));
  if (d.format == "cifar10") return of(read_cifar10(files, kOwnFiles));
  if (d.format == "cifar100") return of(read_cifar100(files[0], kOwnFiles));
  if (d.format == "npy")
    return Dataset(Arrays{{"x", read_npy(files[0], kOwnFiles)}, {"y", read_npy(files[1], kOwnFiles)}});
  Arrays all = read_npz(files[0], kOwnFiles);
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

// Returns the targets of a regression, one number for each sample.
Array as_targets(const Array& a, const std::string& file) {
  Array y = as_floats(a);
  if (y.elements() != y.rows())
    throw file_error("train", file, "a label is ", y.elements() / std::max<i64>(1, y.rows()),
                     " numbers: a regression learns one");
  y.shape = {y.rows()};
  check_numbers(y, file);
  return y;
}

void check_labels(const Array& y, i64 classes, const std::string& file) {
  const auto labels = y.values<i64>();
  const auto bad = std::ranges::find_if(labels, [&](i64 l) { return l < 0 || l >= classes; });
  if (bad != labels.end())
    throw file_error("train", file, "the label of sample ", bad - labels.begin(), " (from 0) is ", *bad,
                     ", data.classes says 0 to ", classes - 1);
}

// Reads a data set and checks it against the configuration.
Dataset read_checked(const std::vector<std::string>& files, const DataConfig& d, Said& said) {
  const Dataset raw = read_files(files, d, said);
  if (raw.size() == 0) throw file_error("train", files[0], "it has no samples");
  const std::vector<i64> sample(raw.at("x").shape.begin() + 1, raw.at("x").shape.end());
  std::vector<i64> last = d.shape;  // [channels, height, width] may be stored as [height, width, channels]
  std::rotate(last.begin(), last.begin() + (last.size() == 3), last.end());
  const bool channels_last = sample != d.shape && sample == last && d.shape.size() == 3;
  if (sample != d.shape && !channels_last)
    throw file_error("train", files[0], "a sample is ", shape_of(sample), ", data.shape says ", shape_of(d.shape));
  Array x = as_inputs(raw.at("x"));
  if (d.format != "csv") check_numbers(x, files[0]);  // cells of a csv are checked already, and may be missing
  Array y = d.regression ? as_targets(raw.at("y"), files.back()) : as_labels(raw.at("y"), files.back());
  if (!d.regression) check_labels(y, d.classes, files.back());
  return Dataset(Arrays{{"x", std::move(x)}, {"y", std::move(y)}});
}

// Returns `count` samples of a random order from `first` on; the seed decides the order.
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

// Mean and deviation of numbers without NaN; a deviation of 0 counts as 1 (sklearn's StandardScaler).
struct Moments {
  double mean = 0, std = 1;
  i64 count = 0;
};
Moments moments(std::span<const float> all, std::size_t first, std::size_t stride) {
  double sum = 0, squares = 0;
  Moments m;
  for (std::size_t k = first; k < all.size(); k += stride)
    if (!std::isnan(all[k])) sum += static_cast<double>(all[k]), ++m.count;
  if (m.count == 0) return m;
  m.mean = sum / static_cast<double>(m.count);
  for (std::size_t k = first; k < all.size(); k += stride)
    if (const double d = static_cast<double>(all[k]) - m.mean; !std::isnan(d)) squares += d * d;
  m.std = std::sqrt(squares / static_cast<double>(m.count));
  if (!(m.std > 0)) m.std = 1;
  return m;
}

class Samples final : public TrainingData {
 public:
  explicit Samples(const TrainConfig& c) : c_(c) {
    Dataset all = read_checked(c.data.train, c.data, said_);
    const auto seed = static_cast<std::uint64_t>(c.train.seed);
    std::optional<Dataset> learn, hold;
    if (!c.data.test.empty()) {
      learn = std::move(all), hold = read_checked(c.data.test, c.data, said_);
    } else {
      std::tie(learn, hold) = held_out_apart(all, c);
    }
    if (c.held_out_samples > 0 && hold->size() > c.held_out_samples) hold = hold->part(0, c.held_out_samples);
    describe(*learn);
    learned_ = std::make_shared<const Dataset>(with_targets(std::move(*learn)));
    held_out_ = std::make_shared<const Dataset>(with_targets(std::move(*hold)));
    loader_.emplace(learned_, LoaderOptions{.batch_size = c.train.batch,
                                            .shuffle = true,
                                            .seed = seed,
                                            .part_begin = c.part_begin,
                                            .part_size = c.part_size,
                                            .transforms = {{"x", transforms(learned_->at("x"), true)}}});
    held_loader_.emplace(held_out_, LoaderOptions{.batch_size = c.train.batch,
                                                  .rest = Rest::Wrap,
                                                  .prefetch = 0,
                                                  .transforms = {{"x", transforms(held_out_->at("x"), false)}}});
  }
  Arrays batch(i64 step) override { return at(*loader_, {step / loader_->batches(), step % loader_->batches()}); }
  i64 held_out() const override { return held_out_->size(); }
  Arrays held_out_batch(i64 first) override { return at(*held_loader_, {0, first / c_.train.batch}); }
  const ModelDescription* description() const override { return &description_; }
  std::string summary() const override {
    std::string names;
    for (std::size_t k = 0; k < said_.classes.size() && k < 20; ++k)
      names += (k ? ", " : " (") + printable(said_.classes[k], 40);
    names += said_.classes.size() > 20 ? ", ...)" : names.empty() ? "" : ")";
    const std::string in = c_.data.regression ? "" : str_cat(" in ", c_.data.classes, " classes", names);
    std::string all = str_cat(learned_->size(), " samples of ", shape_of(c_.data.shape), in, " to learn from, ",
                              held_out_->size(), " held out");
    if (said_.rows_left_out > 0) all += str_cat("; ", said_.rows_left_out, " rows with missing cells left out");
    if (said_.skipped.empty()) return all;
    all += str_cat("\nskipped     ", said_.skipped.size(), said_.skipped.size() == 1 ? " file" : " files",
                   " in the folders: ");
    for (std::size_t k = 0; k < said_.skipped.size() && k < 3; ++k)
      all += str_cat(k ? ", " : "", printable(said_.skipped[k].path, 200), " (", printable(said_.skipped[k].why, 200),
                     ")");
    return said_.skipped.size() > 3 ? str_cat(all, " and ", said_.skipped.size() - 3, " more") : all;
  }

 private:
  static Arrays at(DataLoader& loader, LoaderPosition p) {
    if (!(loader.position() == p)) loader.seek(p);
    return loader.next().arrays;
  }
  // Fills in the description for the model's users, from the samples that it learns from.
  void describe(const Dataset& learn) {
    const DataConfig& d = c_.data;
    const Array& x = learn.at("x");
    ModelDescription& s = description_;
    s.model = c_.model, s.data = d;
    s.data.features = said_.columns;
    s.bytes = x.dtype == DType::U8;
    s.data.scale = d.scale > 0 ? d.scale : s.bytes ? 255 : 1;
    s.classes = said_.classes;
    for (i64 k = 0; said_.classes.empty() && !d.regression && k < d.classes; ++k)
      s.classes.push_back(std::to_string(k));
    if (d.rows()) describe_columns(x);
    if (!d.regression || !d.standardize) return;
    const Moments m = moments(learn.at("y").values<float>(), 0, 1);
    s.target_mean = m.mean, s.target_std = m.std;
  }
  void describe_columns(const Array& x) {
    const DataConfig& d = c_.data;
    ModelDescription& s = description_;
    const auto columns = static_cast<std::size_t>(d.shape[0]);
    if (d.format == "csv" && d.missing == "number") s.fill.assign(columns, d.missing_number);
    const Array values = s.bytes ? as_floats(x) : x;
    for (std::size_t c = 0; c < columns; ++c) {
      const Moments m = moments(values.values<float>(), c, columns);
      if (d.format == "csv" && d.missing == "mean") {
        if (m.count == 0)
          throw file_error("train", d.train[0], "the column ",
                           said_.columns.empty() ? std::to_string(c) : in_quotes(said_.columns[c]),
                           " has no number in any row to learn from, so that it has no mean");
        s.fill.push_back(m.mean);
      }
    }
    if (d.standardize) standardize(values, columns);
  }
  // Computes mean and deviation of the columns as the network sees them: with missing cells filled, and divided by the
  // scale.
  void standardize(const Array& x, std::size_t columns) {
    ModelDescription& s = description_;
    Array seen = x;
    const auto v = seen.values<float>();
    const auto scale = static_cast<float>(s.data.scale);
    for (std::size_t k = 0; k < v.size(); ++k)
      v[k] = (std::isnan(v[k]) ? static_cast<float>(s.fill[k % columns]) : v[k]) / scale;
    for (std::size_t c = 0; c < columns; ++c) {
      const Moments m = moments(v, c, columns);
      s.data.mean.push_back(m.mean), s.data.std.push_back(m.std);
    }
  }
  // Returns the data set with a regression's labels standardised.
  Dataset with_targets(Dataset d) const {
    if (!c_.data.regression) return d;
    Array x = d.at("x"), y = d.at("y");
    for (float& v : y.values<float>())
      v = static_cast<float>((static_cast<double>(v) - description_.target_mean) / description_.target_std);
    return Dataset(Arrays{{"x", std::move(x)}, {"y", std::move(y)}});
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
    std::ranges::move(description_.transforms(), std::back_inserter(list));
    return list;
  }
  const TrainConfig& c_;
  Said said_;
  ModelDescription description_;
  std::shared_ptr<const Dataset> learned_, held_out_;
  std::optional<DataLoader> loader_, held_loader_;
};

}  // namespace

std::pair<Dataset, Dataset> held_out_apart(const Dataset& all, const TrainConfig& c) {
  const auto n = static_cast<std::size_t>(all.size());
  const auto out = static_cast<std::size_t>(std::ceil(static_cast<double>(n) * c.data.held_out));
  if (out >= n) throw file_error("train", c.data.train[0], n, " samples are too few to hold some of them out");
  const auto order = random_permutation(all.size(), SeededRandom({static_cast<std::uint64_t>(c.train.seed), 0x5EED}));
  return {picked(all, order, 0, n - out), picked(all, order, n - out, out)};
}

std::unique_ptr<TrainingData> read_samples(const TrainConfig& c) { return std::make_unique<Samples>(c); }

}  // namespace lc::tool
