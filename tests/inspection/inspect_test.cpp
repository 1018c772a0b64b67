// Files are recognised by what is in them, whatever they are called, and described before any work: what a model takes
// and gives, the memory it needs, and everything of it that is not supported, all at once.
#include "lightcone/inspection/inspect.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "../onnx/write_model.h"
#include "data.h"
#include "error_of.h"
#include "lightcone/io/audio/audio.h"
#include "lightcone/io/checkpoints/save.h"
#include "lightcone/io/images/images.h"
#include "tiny_models.h"

namespace lc {
namespace {

using onnx::ElementType;
using test::ModelWriter;

std::string source(const std::string& name) { return std::string(paths::kSource) + "/" + name; }

bool has_line(const std::vector<std::string>& lines, const std::string& line) {
  return std::ranges::find(lines, line) != lines.end();
}
std::string joined(const std::vector<std::string>& lines) {
  std::string all;
  for (const std::string& l : lines) all += l + "\n";
  return all;
}

TEST(Inspect, AnOnnxModel) {
  const FileDescription d = inspect(source("models/onnx/flowers.onnx"));
  EXPECT_EQ(d.format, FileFormat::Onnx);
  ASSERT_EQ(d.inputs.size(), 1u);
  EXPECT_EQ(d.inputs[0].name, "x");
  EXPECT_EQ(d.inputs[0].type, "float [batch, 4]");
  EXPECT_EQ(d.inputs[0].dtype, DType::F32);
  EXPECT_EQ(d.inputs[0].shape, (std::vector<std::int64_t>{-1, 4}));
  EXPECT_TRUE(d.unsupported.empty()) << joined(d.unsupported);
  ASSERT_TRUE(d.needs);
  EXPECT_EQ(d.needs->sizes.at("batch"), 1);
  EXPECT_GT(d.needs->total(), 0);
  EXPECT_EQ(inspect(source("models/onnx/flowers.onnx"), {.extents = {{"batch", 7}}}).inputs[0].shape->at(0), 7);
}

// Unknown operators, attributes of nodes before, beside and behind them, types, and a branch that is not taken.
TEST(Inspect, EverythingUnsupportedAtOnce) {
  const TempDir folder;
  const std::string model = ModelWriter()
                                .opset(17)
                                .opset(1, "com.example")
                                .input("x", ElementType::Float, {2, 3})
                                .node("Relu", {"x"}, {"a"}, {{"slope", 0.5}})
                                .node("Frobnicate", {"x"}, {"b"}, {}, "com.example")
                                .node("Softmax", {"b"}, {"c"}, {{"axes", 1}})
                                .node("Cast", {"b"}, {"d"}, {{"to", 14}})
                                .node("MatMul", {"x", "x"}, {"e"})
                                .output("c")
                                .output("e")
                                .bytes();
  spit(folder / "model.bin", model);
  const FileDescription d = inspect(folder / "model.bin");
  EXPECT_EQ(d.format, FileFormat::Onnx);
  EXPECT_FALSE(d.needs);
  const std::string all = joined(d.unsupported);
  EXPECT_TRUE(has_line(d.unsupported, "com.example.Frobnicate: it is not known (1 node: 'b')")) << all;
  EXPECT_TRUE(has_line(d.unsupported, "node that makes 'a' (Relu): its attribute 'slope' is not known")) << all;
  EXPECT_TRUE(has_line(d.unsupported, "node that makes 'c' (Softmax): its attribute 'axes' is not known")) << all;
  EXPECT_TRUE(
      has_line(d.unsupported,
               "node that makes 'd' (Cast): its attribute 'to' is the type complex64 (14), which is not supported"))
      << all;
  EXPECT_PRED2(contains, all, "node that makes 'e' (MatMul): ");
  EXPECT_TRUE(
      has_line(d.unsupported, "2 nodes behind these could be examined in part alone, because operands are missing"))
      << all;
  EXPECT_EQ(d.unsupported.size(), 6u) << all;
}

TEST(Inspect, AModuleOfStableHlo) {
  const TempDir folder;
  spit(folder / "module.txt", R"(module {
  func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %0 = stablehlo.add %x, %y : tensor<2x3xf32>
    return %0 : tensor<2x3xf32>
  }
})");
  const FileDescription d = inspect(folder / "module.txt");
  EXPECT_EQ(d.format, FileFormat::StableHlo);
  ASSERT_EQ(d.inputs.size(), 2u);
  EXPECT_EQ(d.inputs[1].name, "y");
  EXPECT_EQ(d.inputs[1].type, "tensor<2x3xf32>");
  EXPECT_EQ(d.inputs[1].shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(d.operators.at("stablehlo.add"), 1);
  EXPECT_TRUE(d.unsupported.empty());
  ASSERT_TRUE(d.needs);
  EXPECT_GE(d.needs->weights, 2 * 2 * 3 * 4);
}

// An operation behind an unsupported one is examined, too, because its result has a type.
TEST(Inspect, EverythingUnsupportedOfAModule) {
  const TempDir folder;
  spit(folder / "module.mlir", R"(module {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "stablehlo.custom_call"(%x) {call_target_name = "first"} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = stablehlo.add %0, %x : tensor<4xf32>
    %2 = "stablehlo.custom_call"(%1) {call_target_name = "second"} : (tensor<4xf32>) -> tensor<4xf32>
    return %2 : tensor<4xf32>
  }
})");
  const FileDescription d = inspect(folder / "module.mlir");
  ASSERT_EQ(d.unsupported.size(), 2u) << joined(d.unsupported);
  EXPECT_PRED2(contains, d.unsupported[0], "line 3: ");
  EXPECT_PRED2(contains, d.unsupported[1], "line 5: ");
}

TEST(Inspect, CheckpointsAndArrays) {
  const FileDescription story = inspect(source("models/story/story.gguf"));
  EXPECT_EQ(story.format, FileFormat::Gguf);
  ASSERT_TRUE(story.language_model);
  EXPECT_EQ(story.language_model->config.layers, 4);
  EXPECT_EQ(story.parameters, 1771200);
  ASSERT_TRUE(story.needs);
  EXPECT_GT(story.needs->states, 0);
  EXPECT_FALSE(inspect(source("models/story/story.gguf"), {.plan = false}).needs);
  const FileDescription torch = inspect(source("tests/goldens/torch/zip_checkpoint.pt"));
  EXPECT_EQ(torch.format, FileFormat::PyTorch);
  EXPECT_EQ(torch.metadata.at("epoch"), "3");
  EXPECT_FALSE(torch.not_runnable.empty());

  // what load_model() makes of a folder is described, too: here a small ViT for three classes
  const auto cases = nlohmann::json::parse(slurp(source("tests/goldens/picture_models.json")));
  const test::FormulaFolder vit(cases[0]["config"], cases[0]["tensors"]);
  const FileDescription d = inspect(vit.path());
  EXPECT_EQ(d.architecture, "ViTForImageClassification");
  EXPECT_EQ(d.not_runnable, "");
  ASSERT_TRUE(d.needs);
  ASSERT_EQ(d.inputs.size(), 1u);
  EXPECT_EQ(d.inputs[0].type, "f32 [batch, 3, 16, 16]");
  EXPECT_EQ(*d.inputs[0].shape, (std::vector<std::int64_t>{-1, 3, 16, 16}));

  const TempDir folder;
  const std::vector<float> v{1, 2, 3, 4, 5, 6};
  const std::vector<TensorToSave> tensors{{"w", DType::F32, {2, 3}, std::as_bytes(std::span(v))}};
  save_safetensors(folder / "weights", tensors);
  save_npz(folder / "arrays", tensors);
  EXPECT_EQ(inspect(folder / "weights").format, FileFormat::Safetensors);
  const FileDescription npz = inspect(folder / "arrays");
  EXPECT_EQ(npz.format, FileFormat::Npz);
  ASSERT_EQ(npz.tensors.size(), 1u);
  EXPECT_EQ(npz.tensors[0].name, "w");
  EXPECT_EQ(npz.tensors[0].shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(npz.bytes, 24);
  EXPECT_EQ(npz.types.at("f32"), 24);
}

TEST(Inspect, PicturesAndSounds) {
  const TempDir folder;
  write_wav(folder / "sound", Array::of<float>({2, 4}, std::vector<float>(8)), 8000);
  const FileDescription sound = inspect(folder / "sound");
  EXPECT_EQ(sound.format, FileFormat::Sound);
  EXPECT_EQ(sound.tensors.at(0).shape, (std::vector<std::int64_t>{2, 4}));
  EXPECT_EQ(sound.metadata.at("sample rate"), "8000");
  if (!can_read_images()) return;
  write_png(folder / "picture", Array::zeros(DType::U8, {3, 4, 5}));
  const FileDescription picture = inspect(folder / "picture");
  EXPECT_EQ(picture.format, FileFormat::Picture);
  EXPECT_EQ(picture.tensors.at(0).shape, (std::vector<std::int64_t>{3, 4, 5}));
}

TEST(Inspect, SaysWhatIsWrong) {
  const TempDir folder;
  spit(folder / "page", "<!DOCTYPE html><html></html>");
  spit(folder / "noise", std::string(100, '\x55'));
  spit(folder / "list.json", "{\"a\": 1}");
  EXPECT_PRED2(contains, error_of([&] { inspect(folder / "page"); }), "it is a web page");
  EXPECT_PRED2(contains, error_of([&] { inspect(folder / "noise"); }), "it is of no known format; known are ONNX, ");
  EXPECT_PRED2(contains, error_of([&] { inspect(folder / "list.json"); }), "neither a tokenizer nor an index");
  EXPECT_EQ(error_of([&] { inspect("nowhere.onnx"); }), "inspect: there is no file 'nowhere.onnx'");
}

}  // namespace
}  // namespace lc
