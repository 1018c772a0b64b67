// Classifiers and towers of pictures that load_model() reads compute what transformers and others computed of the same
// files.
#include "lightcone/models/convnet/classifiers.h"
#include "error_of.h"
#include "tiny_models.h"

using namespace lc;

namespace {

using nlohmann::json;
using test::AllGiven;
using test::by_cpu;
using test::by_reference;
using test::numbers_of;

// Compares an output with what is expected, within 1e-5 by the reference and 1e-4 by cpu(), relative to the largest
// number where that is above 1.
void expect_output(const LoadedModel& m, const AllGiven& given, const std::map<std::string, std::int64_t>& sizes,
                   const std::string& output, const std::vector<double>& want) {
  double largest = 1;
  for (const double x : want) largest = std::max(largest, std::fabs(x));
  EXPECT_LT(test::farthest(by_reference(m, given, {sizes.begin(), sizes.end()}).at(output), want), 1e-5 * largest)
      << m.architecture << " " << output << " by the reference";
  EXPECT_LT(test::farthest(by_cpu(m, given, sizes).at(output), want), 1e-4 * largest)
      << m.architecture << " " << output;
}

// The pixels of an answer, which some files give by a formula.
AllGiven pictures_of(const LoadedModel& m, const json& answers) {
  const Shape shape = m.inputs.at("pixel_values").shape();
  const std::int64_t c = *shape[1].constant(), h = *shape[2].constant(), w = *shape[3].constant();
  std::vector<double> pixels;
  if (answers.contains("pixels")) pixels = numbers_of(answers["pixels"]);
  else  // "(((c*4096 + y*64 + x)*5) mod 17 - 8) / 8.0"
    for (std::int64_t k = 0; k < c * h * w; ++k) pixels.push_back(static_cast<double>(k * 5 % 17 - 8) / 8);
  return {{"pixel_values", {{1, c, h, w}, pixels}}};
}

TEST(Classifiers, LogitsOfTinyFiles) {
  NEEDS_DATA(test::kTiny + "vit.safetensors");
  for (const char* name :
       {"vit", "convnext", "resnet18", "resnet50", "regnet_y", "vgg16", "mobilenetv3", "efficientnet"}) {
    const test::TinyFolder folder(name);
    const json answers = test::tiny_answers(str_cat(name, "_logits"));
    const LoadedModel m = load_model(folder.path());
    EXPECT_EQ(m.labels.size(), 5u) << name;
    EXPECT_EQ(m.labels.front(), "LABEL_0");
    expect_output(m, pictures_of(m, answers), {{"batch", 1}}, "logits", numbers_of(answers["logits"]));
  }
}

// torchvision's files have no config.json. PyTorch computed the logits of this one, of pixels by the formula below.
TEST(Classifiers, TorchvisionsFilesNeedNoConfig) {
  NEEDS_DATA("models/tiny/pico_resnet18.pth");
  const LoadedModel m = load_model(data("models/tiny/pico_resnet18.pth"), {.height = 80, .width = 80});
  EXPECT_EQ(m.labels.size(), 4u);
  expect_output(m, pictures_of(m, json::object()), {{"batch", 1}}, "logits",
                {0.586308458907538, -0.2695935517514005, 0.6964657053283114, -0.061646148180938776});
}

TEST(Classifiers, ClipComparesPicturesAndTexts) {
  NEEDS_DATA(test::kTiny + "clip.safetensors");
  for (const char* name : {"clip", "siglip"}) {
    const test::TinyFolder folder(name);
    const json answers = test::tiny_answers(str_cat(name, "_embeds"));
    const LoadedModel m = load_model(folder.path());
    AllGiven given = pictures_of(m, answers);
    const std::vector<double> ids = numbers_of(answers["text_sequences"]);
    const std::int64_t texts = std::ssize(answers["text_sequences"]), length = std::ssize(ids) / texts;
    given["input_ids"] = {{texts, length}, ids};
    given["attention_mask"] = {{texts, length}, std::vector<double>(ids.size(), 1)};
    const std::map<std::string, std::int64_t> sizes{{"batch", 1}, {"texts", texts}, {"length", length}};
    expect_output(m, given, sizes, "text_features", numbers_of(answers["text_embeds"]));
    expect_output(m, given, sizes, "image_features", numbers_of(answers["image_embeds"]));
    expect_output(m, given, sizes, "logits_per_image", numbers_of(answers["logits_per_image"]));
  }
}

}  // namespace
