// torchvision's networks have its tensor names, shapes and first values, read its weights and prepare pictures as it
// does.
//
// LIGHTCONE_VISION=FOLDER, made by tools/make_vision_goldens.py --full FOLDER, adds VGG19 and ResNet-50 at 224 x 224.
#include "lightcone/models/vision/vision.h"

#include <iomanip>

#include "error_of.h"
#include "lightcone/io/data/readers.h"
#include "on_device.h"
#include "vision.h"

using namespace lc;

namespace {

TEST(Vision, StateDictsAreTorchvisions) {
  ASSERT_EQ(vision_model_names().size(), test::vision_goldens().names.size());
  for (const std::string_view name : vision_model_names()) {
    Graph g;
    const nn::Model<VisionModel> net(g, vision_model(name));
    std::uint64_t hash = 0xCBF29CE484222325;
    for (const nn::Entry& e : net.entries()) {
      std::string shape;
      for (const Dim& d : e.tensor.shape()) shape += str_cat(shape.empty() ? "" : " ", d);
      for (const char c : e.name + " [" + shape + "]\n") hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
    }
    std::ostringstream hex;
    hex << std::hex << std::setw(16) << std::setfill('0') << hash;
    const auto want = test::vision_goldens().names.find(std::string(name));
    ASSERT_NE(want, test::vision_goldens().names.end()) << name;
    EXPECT_EQ(net.entries().size(), want->second.count) << name;
    EXPECT_EQ(hex.str(), want->second.hash) << name;
  }
}

TEST(Vision, LoadsTorchsFiles) {
  for (const char* name : {"vgg11_bn", "resnet18"}) {
    const VisionModel model = vision_model(name, {.num_classes = 10, .width_divisor = 8});
    test::Evaluation<VisionModel> e(model, 1, 32);
    const auto logits = [&](const auto& load_into) {
      Program p = compile(e.g, generic() | test::device());
      load_into(p);
      Context run(p);
      return run.set("x", test::pictures(1, 32)).run().get("logits");
    };
    const Arrays arrays = test::formula_weights(e.net);
    const std::vector<float> want = logits([&](Program& p) { load(p, arrays); });
    std::vector<TensorToSave> tensors;
    for (const auto& [path, a] : arrays) tensors.push_back({path, a.dtype, a.shape, a.bytes});
    const TempDir folder;
    save_safetensors(folder / "a.safetensors", tensors), save_npz(folder / "a.npz", tensors);
    EXPECT_EQ(logits([&](Program& p) { load(p, Weights::open(folder / "a.safetensors")); }), want) << name;
    EXPECT_EQ(logits([&](Program& p) { load(p, read_npz(folder / "a.npz")); }), want) << name;
    // torchvision's oldest files have no num_batches_tracked
    std::erase_if(tensors, [](const TensorToSave& t) { return t.name.ends_with("num_batches_tracked"); });
    save_safetensors(folder / "old.safetensors", tensors);
    EXPECT_EQ(logits([&](Program& p) { load(p, Weights::open(folder / "old.safetensors")); }), want) << name;
    // other types are converted; missing and unknown tensors are named
    Arrays changed = arrays;
    Array& first = changed.at(name[0] == 'v' ? "features.0.weight" : "conv1.weight");
    Array f64 = Array::zeros(DType::F64, first.shape);
    for (std::size_t k = 0; k < first.values<float>().size(); ++k) f64.values<double>()[k] = first.values<float>()[k];
    first = f64;
    EXPECT_EQ(logits([&](Program& p) { load(p, changed); }), want) << name;
    changed.emplace("head.weight", f64);
    EXPECT_EQ(error_of([&] { logits([&](Program& p) { load(p, changed); }); }),
              "load: arrays: no parameter is called head.weight; strict = false ignores them");
    EXPECT_EQ(logits([&](Program& p) { load(p, changed, false); }), want) << name;
    const std::string last = name[0] == 'v' ? "classifier.6.bias" : "fc.bias";
    changed.erase(last);
    EXPECT_PRED2(contains, error_of([&] { logits([&](Program& p) { load(p, changed, false); }); }),
                 "load: arrays: there is no tensor for the parameters " + last + "; given are ");
  }
}

TEST(Vision, PicturesAreThosesOfThePreset) {
  Array picture = Array::zeros(DType::U8, {3, 37, 53});
  const std::vector<double> u = test::numbers(2000, 37 * 53 * 3);  // channels last, as in Pillow
  for (std::size_t k = 0; k < u.size(); ++k)
    picture.values<std::uint8_t>()[k % 3 * 37 * 53 + k / 3] = static_cast<std::uint8_t>(u[k] * 256);
  const Array x = picture_for_classification(picture, {.resize_size = 32, .crop_size = 24});
  ASSERT_EQ(x.shape, (std::vector<std::int64_t>{3, 24, 24}));
  EXPECT_LT(test::off(x.values<float>(), test::vision_goldens().picture), 1e-6);
}

TEST(Vision, Mistakes) {
  EXPECT_PRED2(contains, error_of([] { vision_model("resnet51"); }),
               "vision_model: there is no 'resnet51'; it has resnet50, ");
  EXPECT_EQ(
      error_of([] {
        picture_for_classification(Array::zeros(DType::F32, {3, 8, 8}));
      }),
      "picture_for_classification: needs a picture u8 [3, height, width], as read_image() gives it, not f32 with 3 "
      "axes");
  for (const auto& shape : std::vector<std::vector<std::int64_t>>{{}, {0}, {8, 8}, {1, 8, 8}, {3, 0, 8}, {3, 8, 0}})
    EXPECT_PRED2(contains, error_of([&] { picture_for_classification(Array::zeros(DType::U8, shape)); }),
                 "needs a picture");
  const Array picture = Array::zeros(DType::U8, {3, 8, 8}), line = Array::zeros(DType::U8, {3, 1, 2000000});
  EXPECT_NE(error_of([&] { picture_for_classification(picture, {.resize_size = 0}); }), "no error");
  EXPECT_NE(error_of([&] { picture_for_classification(picture, {.crop_size = -1}); }), "no error");
  EXPECT_NE(error_of([&] { picture_for_classification(picture, {.mean = {0.5f}}); }), "no error");
  EXPECT_PRED2(contains, error_of([&] { picture_for_classification(line); }), "1 x 2000000");
}

}  // namespace
