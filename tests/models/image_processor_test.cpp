// Pictures are prepared as preprocessor_config.json says, as transformers and Pillow do.
#include "lightcone/models/vision/image_processor.h"

#include "error_of.h"
#include "tiny_models.h"

using namespace lc;

namespace {

using nlohmann::json;

ImageProcessor processor(const json& config) {
  const TempDir folder;
  spit(folder / "preprocessor_config.json", config.dump());
  return ImageProcessor::load(folder.path.string());
}

// The picture of tools/make_picture_model_goldens.py.
Array formula_picture() {
  Array a = Array::zeros(DType::U8, {3, 37, 53});
  for (std::size_t c = 0; c < 3; ++c)
    for (std::size_t y = 0; y < 37; ++y)
      for (std::size_t x = 0; x < 53; ++x)
        a.values<std::uint8_t>()[(c * 37 + y) * 53 + x] =
            static_cast<std::uint8_t>((7 * y + 13 * x + 29 * c + x * y % 11 * 9) % 256);
  return a;
}

std::vector<double> values_of(const Array& a) {
  const std::span<const float> v = a.values<float>();
  return {v.begin(), v.end()};
}

// Bytes of a resized picture may be one off where Pillow's whole numbers round another way: of 255 levels, divided by
// the deviation.
TEST(ImageProcessor, IsTransformers) {
  const json cases = json::parse(slurp(std::string(paths::kSource) + "/tests/goldens/image_processors.json"));
  ASSERT_EQ(cases.size(), 9u);
  for (const json& c : cases) {
    const ImageProcessor p = processor(c["config"]);
    const Array got = p.apply(formula_picture());
    EXPECT_EQ(got.shape, (std::vector<std::int64_t>{1, c["shape"][0], c["shape"][1], c["shape"][2]})) << c["config"];
    const PictureSize size = p.size_of({37, 53});
    EXPECT_EQ(size.height, c["shape"][1].get<std::int64_t>());
    EXPECT_EQ(size.width, c["shape"][2].get<std::int64_t>());
    const std::vector<double> want = test::numbers_of(c["pixels"]), have = values_of(got);
    ASSERT_EQ(have.size(), want.size());
    const double level = p.config().rescale / (p.config().std.empty() ? 1 : 0.25);
    std::size_t off = 0;
    for (std::size_t k = 0; k < want.size(); ++k) {
      EXPECT_LT(std::fabs(have[k] - want[k]), 1.01 * level) << c["config"] << " " << k;
      off += std::fabs(have[k] - want[k]) > 1e-4 * std::max(1.0, level);
    }
    EXPECT_LE(off, want.size() / 50) << c["config"];
  }
}

TEST(ImageProcessor, TinyClips) {
  NEEDS_DATA(test::kTiny + "clip_preprocess.json");
  const json answers = test::tiny_answers("clip_preprocess");
  json config = json::parse(slurp(data(test::kTiny + "clip_preprocessor_config.json")));
  for (const auto& [picture, want, resize] :
       {std::tuple{"parity_image", "parity_ref", true}, std::tuple{"crop_image", "crop_ref", false}}) {
    config["do_resize"] = resize;
    const json& rows = answers[picture];  // [height, width, 3]
    Array a = Array::zeros(DType::U8, {3, std::ssize(rows), std::ssize(rows[0])});
    const std::vector<double> bytes = test::numbers_of(rows);
    const std::size_t pixels = bytes.size() / 3;
    for (std::size_t k = 0; k < bytes.size(); ++k)
      a.values<std::uint8_t>()[k % 3 * pixels + k / 3] = static_cast<std::uint8_t>(bytes[k]);
    EXPECT_LT(test::farthest(values_of(processor(config).apply(a)), test::numbers_of(answers[want])), 1e-5) << picture;
  }
}

TEST(ImageProcessor, Mistakes) {
  const json plain{
      {"image_processor_type", "ViTImageProcessor"}, {"image_mean", {0.5, 0.5, 0.5}}, {"image_std", {0.5, 0.5, 0.5}}};
  const auto with = [&](const char* key, const json& value) {
    json changed = plain;
    changed[key] = value;
    return error_of([&] { processor(changed); });
  };
  EXPECT_EQ(with("size", 32), "no error");
  EXPECT_PRED2(contains, with("resample", 1), "resample is 1; 0 (nearest), 2 (bilinear) and 3 (bicubic) are supported");
  EXPECT_PRED2(contains, with("image_processor_type", "VitImageProcessor"), "'Vit', which is not known");
  EXPECT_PRED2(contains, with("do_sharpen", true), "do_sharpen is true, and no key of this name is known");
  EXPECT_PRED2(contains, with("rescale_offset", true), "rescale_offset is true, which is not supported");
  EXPECT_PRED2(contains, with("size", {{"height", 8}}), "there is no size.width");
  EXPECT_PRED2(contains, with("image_std", {0.5, 0, 0.5}), "image_std has 0");
  EXPECT_PRED2(contains, with("size", 1 << 20), "are not supported");
  const ImageProcessor p = processor(plain);
  EXPECT_PRED2(contains, error_of([&] { p.apply(Array::zeros(DType::F32, {3, 8, 8})); }), "needs a picture u8");
  EXPECT_PRED2(contains, error_of([&] { p.apply(Array::zeros(DType::U8, {3, 1, 2000})); }), "too narrow");
}

}  // namespace
