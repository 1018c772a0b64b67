// Published models answer what onnxruntime recorded for them (../shared/data; skipped where that is absent).
#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <filesystem>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/io/data/readers.h"
#include "lightcone/onnx/onnx.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "paths.h"

namespace lc {
namespace {

namespace fs = std::filesystem;

struct RealModel {
  const char* folder;
  // The largest difference allowed, relative to the largest value of an output, at least 1.
  double tolerance = 1e-4;
};

std::string file_name(std::string name) {
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

double largest_difference(const std::vector<float>& a, const Array& b) {
  const auto want = b.values<float>();
  EXPECT_EQ(a.size(), want.size());
  double worst = 0, scale = 1;
  for (std::size_t k = 0; k < std::min(a.size(), want.size()); ++k) {
    worst = std::max(worst, static_cast<double>(std::fabs(a[k] - want[k])));
    scale = std::max(scale, static_cast<double>(std::fabs(want[k])));
  }
  return worst / scale;
}

class RealModels : public testing::TestWithParam<RealModel> {};

TEST_P(RealModels, AnswerAsRecorded) {
  const fs::path folder = fs::path(paths::kData) / GetParam().folder, data = folder / "test_data_set_0";
  if (!fs::exists(data)) GTEST_SKIP() << "there is no " << data;
  const OnnxProgram m = read_onnx((folder / "model.onnx").string());
  Program p = compile(m.graph, generic() | cpu());
  m.load_weights(p);
  Context c(p);
  for (const auto& in : m.inputs) c.set(in.name, read_npy((data / ("input_" + file_name(in.name) + ".npy")).string()));
  c.run();
  for (const auto& out : m.outputs) {
    const Array want = read_npy((data / ("output_" + file_name(out.name) + ".npy")).string());
    EXPECT_EQ(c.shape(out.name), want.shape) << out.name;
    EXPECT_LE(largest_difference(c.get(out.name), want), GetParam().tolerance) << out.name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, RealModels,
    testing::Values(RealModel{"vision/cifar_resnet20"}, RealModel{"vision/mnist_cnn"},
                    RealModel{"vision/style_starry_night"}, RealModel{"vision/ultraface_rfb320"},
                    RealModel{"vision/yolox_nano"}, RealModel{"vision/yunet_s_320"},
                    RealModel{"audio_models/basic_pitch"}, RealModel{"audio_models/rnnoise"},
                    // Its layer norms subtract the square of a mean from a mean of squares that nearly equals it:
                    // the last bit of a sum moves the answer by 3e-4, onnxruntime's sums as well as ours.
                    RealModel{"text/magika_standard_v3_3", 1e-3}),
    [](const auto& info) { return file_name(info.param.folder); });

// A detector of voices, frame by frame: its state is fed back.
TEST(RealModels, SileroFollowsItsState) {
  const fs::path folder = fs::path(paths::kData) / "audio_models/silero_vad_op18_ifless";
  if (!fs::exists(folder)) GTEST_SKIP() << "there is no " << folder;
  const OnnxProgram m = read_onnx((folder / "model.onnx").string(), {.extents = {{"batch", 1}, {"sequence", 576}}});
  Program p = compile(m.graph, generic() | cpu());
  m.load_weights(p);
  Context c(p);
  const Array frames = read_npy((folder / "frames.npy").string()), prob = read_npy((folder / "prob.npy").string());
  const std::int64_t rate = 16000;
  c.set("sr", ArrayView{DType::I64, {}, std::as_bytes(std::span(&rate, 1))});
  std::vector<float> state(256, 0.0f);
  const auto samples = frames.values<float>();
  for (std::int64_t k = 0; k < frames.rows(); ++k) {
    c.set("input",
          ArrayView{DType::F32, {1, 576}, std::as_bytes(samples.subspan(static_cast<std::size_t>(k) * 576, 576))});
    c.set("state", ArrayView{DType::F32, {2, 1, 128}, std::as_bytes(std::span(state))});
    c.run();
    state = c.get("stateN");
    EXPECT_NEAR(c.get("output").at(0), prob.values<float>()[static_cast<std::size_t>(k)], 1e-4) << "frame " << k;
  }
}

}  // namespace
}  // namespace lc
