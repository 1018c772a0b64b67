// Classifiers and towers of pictures that load_model() reads compute what transformers and others computed of the same
// files.
#include "lightcone/models/convnet/classifiers.h"
#include "error_of.h"
#include "tiny_models.h"

using namespace lc;

namespace {

using nlohmann::json;
using test::AllGiven;
using test::expect_outputs;
using test::numbers_of;

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
    expect_outputs(m, pictures_of(m, answers), {{"batch", 1}}, {{"logits", numbers_of(answers["logits"])}});
  }
}

// torchvision's files have no config.json. PyTorch computed the logits of this one, of pixels by the formula below.
TEST(Classifiers, TorchvisionsFilesNeedNoConfig) {
  NEEDS_DATA("models/tiny/pico_resnet18.pth");
  const LoadedModel m = load_model(data("models/tiny/pico_resnet18.pth"), {.height = 80, .width = 80});
  EXPECT_EQ(m.labels.size(), 4u);
  expect_outputs(m, pictures_of(m, json::object()), {{"batch", 1}},
                 {{"logits", {0.586308458907538, -0.2695935517514005, 0.6964657053283114, -0.061646148180938776}}});
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
    expect_outputs(m, given, sizes,
                   {{"text_features", numbers_of(answers["text_embeds"])},
                    {"image_features", numbers_of(answers["image_embeds"])},
                    {"logits_per_image", numbers_of(answers["logits_per_image"])}});
  }
}

// The files' numbers are in rows of pixels with the channels last; each has two pictures.
TEST(Classifiers, TinyDetrAndSegformer) {
  NEEDS_DATA(test::kTiny + "detr.safetensors");
  for (const char* name : {"detr", "segformer"}) {
    const test::TinyFolder folder(name);
    const json answers = test::tiny_answers(str_cat(name, "_io"));
    const LoadedModel m = load_model(folder.path());
    const Shape shape = m.inputs.at("pixel_values").shape();
    const std::int64_t side = *shape[2].constant();
    const auto channels_first = [](const std::vector<double>& v, std::size_t channels) {
      std::vector<double> out(v.size());
      for (std::size_t k = 0; k < v.size(); ++k) out[k % channels * (v.size() / channels) + k / channels] = v[k];
      return out;
    };
    for (const json& c : answers["cases"]) {
      const AllGiven given{{"pixel_values", {{1, 3, side, side}, channels_first(numbers_of(c["input"]), 3)}}};
      if (c.contains("output"))
        expect_outputs(m, given, {{"batch", 1}}, {{"logits", channels_first(numbers_of(c["output"]), 5)}});
      else
        expect_outputs(m, given, {{"batch", 1}},
                       {{"logits", numbers_of(c["logits"])}, {"pred_boxes", numbers_of(c["boxes"])}});
    }
  }
}

// Small models with weights by a formula, of which tools/make_picture_model_goldens.py asked transformers in f64.
TEST(Classifiers, VariantsAreTransformers) {
  const json cases = json::parse(slurp(std::string(paths::kSource) + "/tests/goldens/picture_models.json"));
  ASSERT_EQ(cases.size(), 26u);
  for (const json& c : cases) {
    const test::FormulaFolder folder(c["config"], c["tensors"]);
    const std::int64_t h = c["size"][0], w = c["size"][1];
    const LoadedModel m = load_model(folder.path(), {.height = h, .width = w, .interpolate_pos_encoding = true});
    AllGiven given = pictures_of(m, json::object());
    std::map<std::string, std::int64_t> sizes{{"batch", 1}};
    if (!c["ids"].empty()) {
      given["input_ids"] = {{2, 6}, numbers_of(c["ids"])};
      given["attention_mask"] = {{2, 6}, std::vector<double>(12, 1)};
      sizes["texts"] = 2, sizes["length"] = 6;
    }
    std::map<std::string, std::vector<double>> wanted;
    for (const auto& [output, values] : c["outputs"].items()) wanted[output] = numbers_of(values);
    expect_outputs(m, given, sizes, wanted);
  }
}

// The same by timm's names, of which tools/make_timm_model_goldens.py asked timm in f64.
TEST(Classifiers, VariantsAreTimms) {
  const json cases = json::parse(slurp(std::string(paths::kSource) + "/tests/goldens/timm_models.json"));
  ASSERT_EQ(cases.size(), 6u);
  for (const json& c : cases) {
    const test::FormulaFolder folder(c["config"], c["tensors"]);
    const LoadedModel m = load_model(folder.path());
    std::map<std::string, std::vector<double>> wanted;
    for (const auto& [output, values] : c["outputs"].items()) wanted[output] = numbers_of(values);
    expect_outputs(m, pictures_of(m, json::object()), {{"batch", 1}}, wanted);
  }
  const auto error = [&](const char* key, const json& value) {
    json config = cases[0]["config"];
    config[key] = value;
    const test::FormulaFolder folder(config, cases[0]["tensors"]);
    return error_of([&] { load_model(folder.path()); });
  };
  EXPECT_PRED2(contains, error("architecture", "beit_base"), "'beit_base' of timm is not supported");
  EXPECT_PRED2(contains, error("global_pool", "avg"), "only 'token' is supported");
  EXPECT_PRED2(contains, error("model_args", {{"reg_tokens", 4}}), "reg_tokens");
  EXPECT_PRED2(contains, error("architecture", "convnext_tiny"), "which a ConvNeXt has");
  EXPECT_PRED2(contains, error("architecture", "swin_tiny"), "0 stages of windows");
}

// A table of positions is for one size of pictures, unless it is to be resized; what is not known is named.
TEST(Classifiers, Mistakes) {
  const json cases = json::parse(slurp(std::string(paths::kSource) + "/tests/goldens/picture_models.json"));
  const auto error = [&](std::size_t k, const char* key, const json& value, const LoadModelOptions& o = {}) {
    json config = cases[k]["config"];
    if (*key) config[key] = value;
    const test::FormulaFolder folder(config, cases[k]["tensors"]);
    return error_of([&] { load_model(folder.path(), o); });
  };
  EXPECT_EQ(error(0, "", {}), "no error");
  EXPECT_PRED2(contains, error(0, "", {}, {.height = 24}), "takes pictures of 16 x 16, and 24 x 16 are asked for");
  EXPECT_PRED2(contains, error(0, "", {}, {.height = 1 << 20}), "sides from 1 to 16384 are supported");
  EXPECT_PRED2(contains, error(0, "hidden_akt", "relu"),
               "hidden_akt is 'relu', and no key of this name is known of vit");
  EXPECT_PRED2(contains, error(0, "hidden_act", "relo"), "the activation 'relo' is not known; the nearest is relu");
  EXPECT_PRED2(contains, error(0, "num_attention_heads", 3), "3 attention heads do not divide a width of 8");
  EXPECT_PRED2(contains, error(0, "num_hidden_layers", 1'000'000'000), "1000000000 layers, and ");
  EXPECT_PRED2(contains, error(0, "num_hidden_layers", 1), "is no part of a ViTForImageClassification of these sizes");
  EXPECT_PRED2(contains, error(0, "patch_size", 17), "has no patch of 17");
  EXPECT_PRED2(contains, error(0, "architectures", {"ViTForMaskedImageModeling"}), "is not known for model_type 'vit'");
  EXPECT_PRED2(contains, error(12, "depths", {1}), "there are 1 depths and 2 hidden_sizes");
  EXPECT_PRED2(contains, error(12, "depths", {1, 1'000'000'000}), " layers, and ");
  EXPECT_PRED2(contains, error(12, "layer_type", "thick"), "only 'bottleneck' and 'basic' are supported");
  EXPECT_PRED2(contains, error(15, "pooling_type", "max"), "only 'mean' is supported");
}

}  // namespace
