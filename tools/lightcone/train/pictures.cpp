// Classifiers of pictures that training continues: a folder of Hugging Face's with a network of pictures and its
// preprocessor_config.json, and folders of pictures, one for each class.
#include <algorithm>

#include "classifier.h"
#include "lightcone/base/error.h"
#include "lightcone/io/data/loader.h"
#include "lightcone/io/images/images.h"
#include "lightcone/io/printable.h"
#include "lightcone/models/classify/picture_classifier.h"
#include "lightcone/models/vision/image_processor.h"
#include "table.h"

namespace lc::tool {
namespace {

// The two halves of an ImageProcessor: the first makes bytes of the size that the network takes, which are kept; the
// second scales them in the batch.
class Preparation {
 public:
  explicit Preparation(const std::string& folder) : whole_(ImageProcessor::load(folder, kOwnFiles)), size_(sizes()) {}
  // u8 [3, height, width] for each picture. Throws Error for one of a size of its own.
  Array operator()(const Array& picture) {
    const Array pixels = size_.apply(picture);
    Array bytes = Array::zeros(DType::U8, {3, pixels.shape[2], pixels.shape[3]});
    if (shape_.empty()) shape_ = bytes.shape;
    if (shape_ != bytes.shape)
      throw Error("train", str_cat("preprocessor_config.json makes pictures of several sizes, ", shape_[1], " x ",
                                   shape_[2], " and ", bytes.shape[1], " x ", bytes.shape[2],
                                   ": they are learned from where it crops or stretches them to one"));
    std::ranges::transform(pixels.values<float>(), bytes.values<std::uint8_t>().begin(),
                           [](float v) { return static_cast<std::uint8_t>(v + 0.5f); });
    return bytes;
  }
  const std::vector<i64>& shape() const { return shape_; }
  std::vector<Transform> scaling() const {
    const ImageProcessorConfig& c = whole_.config();
    const auto floats = [](const std::vector<double>& v) { return std::vector<float>(v.begin(), v.end()); };
    std::vector<Transform> list;
    list.emplace_back(ToFloat{static_cast<float>(1 / c.rescale)});
    if (!c.mean.empty()) list.emplace_back(Normalize{floats(c.mean), floats(c.std)});
    if (c.twice) list.emplace_back(Normalize{{0, 0, 0}, floats(c.std)});
    return list;
  }

 private:
  ImageProcessorConfig sizes() const {
    ImageProcessorConfig c = whole_.config();
    c.rescale = 1, c.twice = false;
    c.mean.clear(), c.std.clear();
    return c;
  }
  ImageProcessor whole_, size_;
  std::vector<i64> shape_ = {};
};

class PictureSamples final : public TrainingData {
 public:
  PictureSamples(const TrainConfig& c, const Dataset& learn, const Dataset& hold, const Preparation& p,
                 std::string summary)
      : summary_(std::move(summary)), batch_(c.train.batch) {
    learned_ = std::make_shared<const Dataset>(learn), held_out_ = std::make_shared<const Dataset>(hold);
    std::vector<Transform> learning;
    if (c.data.augment) {
      learning.emplace_back(RandomCrop{p.shape()[1], p.shape()[2], 4});
      learning.emplace_back(RandomHorizontalFlip{});
    }
    const std::vector<Transform> scaling = p.scaling();
    learning.insert(learning.end(), scaling.begin(), scaling.end());
    loader_.emplace(learned_, LoaderOptions{.batch_size = batch_,
                                            .shuffle = true,
                                            .seed = static_cast<std::uint64_t>(c.train.seed),
                                            .part_begin = c.part_begin,
                                            .part_size = c.part_size,
                                            .transforms = {{"x", learning}}});
    held_loader_.emplace(
        held_out_,
        LoaderOptions{.batch_size = batch_, .rest = Rest::Wrap, .prefetch = 0, .transforms = {{"x", scaling}}});
  }
  Arrays batch(i64 step) override { return at(*loader_, {step / loader_->batches(), step % loader_->batches()}); }
  i64 held_out() const override { return held_out_->size(); }
  Arrays held_out_batch(i64 first) override { return at(*held_loader_, {0, first / batch_}); }
  std::string summary() const override { return summary_; }

 private:
  static Arrays at(DataLoader& loader, LoaderPosition p) {
    if (!(loader.position() == p)) loader.seek(p);
    return loader.next().arrays;
  }
  std::string summary_;
  i64 batch_;
  std::shared_ptr<const Dataset> learned_, held_out_;
  std::optional<DataLoader> loader_, held_loader_;
};

class PretrainedPictures final : public PretrainedClassifier {
 public:
  explicit PretrainedPictures(TrainConfig& c)
      : c_(c), weights_(Weights::open(c.model.weights, kOwnFiles)), prepare_(c.model.weights), classifier_(opened(c)) {
    for (const std::string& word : classifier_.classes()) c.decisive.push_back(str_cat("class ", printable(word, 200)));
  }

  AnyClassifier module() const override { return AnyClassifier(classifier_); }
  Shape sample() const override { return {3, prepare_.shape()[1], prepare_.shape()[2]}; }
  DType sample_type() const override { return DType::F32; }
  std::unique_ptr<TrainingData> data() const override {
    std::string names;
    const std::vector<std::string>& all = classifier_.classes();
    for (std::size_t k = 0; k < all.size() && k < 20; ++k) names += (k ? ", " : "") + printable(all[k], 40);
    if (all.size() > 20) names += ", ...";
    std::string summary =
        str_cat(learn_->size(), " pictures as ", prepare_.shape()[1], " x ", prepare_.shape()[2], " in ", all.size(),
                " classes (", names, ") to learn from, ", hold_->size(), " held out");
    if (!skipped_.empty())
      summary += str_cat("\nskipped     ", skipped_.size(), skipped_.size() == 1 ? " file" : " files",
                         " in the folders, the first is ", printable(skipped_[0].path, 200), " (",
                         printable(skipped_[0].why, 200), ")");
    return std::make_unique<PictureSamples>(c_, *learn_, *hold_, prepare_, summary);
  }

  std::string load(Trainer& trainer) const override {
    trainer.load_parameters(
        classifier_.weights(), [&](const std::string& path) { return classifier_.name_in_file(path); },
        adapter_layers(trainer));
    return str_cat("weights     from ", in_quotes(c_.model.weights),
                   classifier_.has_new_head() ? ", but new ones for " + classifier_.head() : std::string(), "\n");
  }
  void save(const Trainer& trainer, const std::string& folder, DType type) const override {
    save_picture_classifier(classifier_, weights_, folder, MergedValues(trainer), type);
  }
  void save_adapters(const Trainer& trainer, const std::string& folder) const override {
    if (trainer.adapters().empty()) return;
    save_picture_classifier_adapters(
        classifier_, folder, trainer.adapters(), [&](const std::string& name) { return trainer.values(name); },
        absolute_path(c_.model.weights));
  }

 private:
  ImageFolder read(const std::string& folder) {
    ImageFolder f = read_image_folder(folder,
                                      {.prepare = [this](const Array& picture) { return prepare_(picture); },
                                       .skip_unreadable = c_.data.skip_unreadable},
                                      kOwnFiles);
    std::ranges::move(f.skipped, std::back_inserter(skipped_));
    return f;
  }
  PictureClassifier opened(const TrainConfig& c) {
    const ImageFolder train = read(c.data.train[0]);
    PictureClassifier net = PictureClassifier::of(weights_, train.classes,
                                                  {.batch = c.train.batch,
                                                   .height = prepare_.shape()[1],
                                                   .width = prepare_.shape()[2],
                                                   .seed = c.train.seed,
                                                   .lora_rank = c.model.lora_rank,
                                                   .lora_alpha = c.model.lora_alpha,
                                                   .lora_targets = c.model.lora_targets});
    learn_ = dataset(train, net.classes());
    if (c.data.test.empty()) {
      std::tie(learn_, hold_) = held_out_apart(*learn_, c);
    } else {
      const ImageFolder test = read(c.data.test[0]);
      if (test.classes != train.classes)
        throw file_error("train", c.data.test[0], "its folders are not those of data.train, and both must have the ",
                         "same classes");
      hold_ = dataset(test, net.classes());
    }
    if (c.held_out_samples > 0 && hold_->size() > c.held_out_samples) hold_ = hold_->part(0, c.held_out_samples);
    return net;
  }
  // The samples, with the labels numbered as the head numbers them.
  static Dataset dataset(const ImageFolder& f, const std::vector<std::string>& order) {
    Array y = f.data.at("label");
    for (i64& label : y.values<i64>())
      label = std::ranges::find(order, f.classes[static_cast<std::size_t>(label)]) - order.begin();
    return Dataset(Arrays{{"x", f.data.at("image")}, {"y", std::move(y)}});
  }

  const TrainConfig& c_;
  Weights weights_;
  Preparation prepare_;
  std::optional<Dataset> learn_ = {}, hold_ = {};
  std::vector<SkippedFile> skipped_ = {};
  PictureClassifier classifier_;
};

}  // namespace

std::unique_ptr<PretrainedClassifier> pretrained_pictures(TrainConfig& c) {
  return std::make_unique<PretrainedPictures>(c);
}

}  // namespace lc::tool
