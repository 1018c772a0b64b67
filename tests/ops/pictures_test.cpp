// Letterboxes, crops, normalisation and colours of pictures give torch's, torchvision's and Pillow's numbers.
#include "lightcone/ops/vision/pictures.h"

#include <gtest/gtest.h>
#include <cmath>

#include "error_of.h"
#include "lightcone/passes/passes.h"
#include "lightcone/reference/interpreter.h"
#include "lightcone/verify/verify.h"
#include "on_device.h"

using namespace lc;

namespace {

using V = std::vector<double>;

Value value(DType type, std::vector<std::int64_t> shape, const V& v) {
  Value r = make_value(type, std::move(shape));
  for (std::size_t k = 0; k < v.size(); ++k)
    if (is_float(type)) r.f[k] = v[k];
    else r.i[k] = static_cast<std::int64_t>(v[k]);
  return r;
}
// Applies f to a value by a compiled program.
template <class F>
Value applied(const Value& x, const F& f) {
  Graph g;
  g.output("y", f(g.input("x", Shape(x.shape.begin(), x.shape.end()), x.dtype)));
  return run_values(transform(g, generic() | test::device({.threads = 1})).graph, {{"x", x}}, {}).outputs.at("y");
}
Value counted(std::vector<std::int64_t> shape, double by) {
  Value r = make_value(DType::F64, std::move(shape));
  for (std::size_t k = 0; k < r.size(); ++k) r.f[k] = static_cast<double>(k) * by;
  return r;
}
void expect_near(const V& got, const V& want, double by = 1e-12) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t k = 0; k < want.size(); ++k) EXPECT_NEAR(got[k], want[k], by) << k;
}

}  // namespace

TEST(Pictures, BytesAndBack) {
  const Value bytes = value(DType::U8, {1, 2, 3}, {0, 51, 255, 102, 204, 153});
  const Value x = applied(bytes, [](const Tensor& t) { return picture_of_bytes(t); });
  EXPECT_EQ(x.shape, (std::vector<std::int64_t>{1, 3, 1, 2}));
  expect_near(x.f, {0, 0.4, 0.2, 0.8, 1, 0.6}, 1e-7);
  EXPECT_EQ(applied(x, [](const Tensor& t) { return bytes_of_picture(t); }).i, bytes.i);
  EXPECT_EQ(applied(value(DType::F32, {1, 1, 3}, {-1, 2, 0.5}), [](const Tensor& t) { return bytes_of_picture(t); }).i,
            (std::vector<std::int64_t>{0, 255, 128}));
}

// torch 2.15: interpolate(arange(8) / 8 as [1, 1, 2, 4], size=(3, 6), mode="bilinear"), and bars.
TEST(Pictures, Letterbox) {
  const Value x = counted({1, 1, 2, 4}, 0.125);
  const Value y =
      applied(x, [](const Tensor& t) { return letterbox(t, {.height = 6, .width = 6, .pad_value = 9}).picture; });
  V want(36, 9);
  const V inside{0,    0.0625, 0.14583333333333331, 0.22916666666666666, 0.3125, 0.375,
                 0.25, 0.3125, 0.39583333333333326, 0.47916666666666663, 0.5625, 0.625,
                 0.5,  0.5625, 0.6458333333333333,  0.7291666666666665,  0.8125, 0.875};
  std::copy(inside.begin(), inside.end(), want.begin() + 6);  // one of three rows of bars is above: round(1.5 - 0.1)
  expect_near(y.f, want);
  // 1080 x 810 for YOLO at 640 with stride 32 becomes 640 x 480, without bars.
  Graph g;
  const Tensor bus = g.input("bus", {1, 3, 1080, 810});
  const Letterbox all = letterbox(bus), some = letterbox(bus, {.stride = 32});
  EXPECT_EQ(str(all.picture.shape()), "[1, 3, 640, 640]");
  EXPECT_EQ(str(some.picture.shape()), "[1, 3, 640, 480]");
  EXPECT_EQ(all.left, 80);
  EXPECT_EQ(all.top, 0);
  const Letterbox small = letterbox(g.input("small", {3, 10, 20}), {.height = 32, .width = 32, .scale_up = false});
  EXPECT_EQ(small.scale, 1);
  EXPECT_EQ(small.top, 11);
  const Letterbox corner = letterbox(bus, {.centred = false});
  EXPECT_EQ(corner.left, 0);
  const Value boxes = value(DType::F64, {2, 4}, {80, 0, 560, 640, 70, 64, 400, 700});
  const Value back = applied(boxes, [&](const Tensor& t) { return boxes_of_picture(t, all); });
  expect_near(back.f, {0, 0, 810, 1080, 0, 108, 540, 1080});
}

// torchvision 0.29: center_crop(arange(15) as [1, 3, 5]).
TEST(Pictures, CropAndNormalise) {
  const Value x = counted({1, 3, 5}, 1);
  EXPECT_EQ(applied(x, [](const Tensor& t) { return center_crop(t, 2, 2); }).f, (V{2, 3, 7, 8}));
  EXPECT_EQ(applied(x, [](const Tensor& t) { return center_crop(t, 5, 4); }).f,
            (V{0, 0, 0, 0, 0, 1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 13, 0, 0, 0, 0}));
  expect_near(applied(counted({3, 1, 1}, 0.5),
                      [](const Tensor& t) {
                        return normalize_picture(t, {0.5, 0.25, 0}, {2, 0.5, 4});
                      })
                  .f,
              {-0.25, 0.5, 0.25});
}

TEST(Pictures, Colours) {
  const Value x = counted({3, 2, 2}, 1.0 / 16);
  // torchvision 0.29: rgb_to_grayscale
  expect_near(applied(x, [](const Tensor& t) { return rgb_to_gray(t); }).f,
              {0.20375, 0.26624375, 0.3287375, 0.39123125}, 1e-4);
  EXPECT_EQ(applied(x, [](const Tensor& t) { return reverse_channels(t); }).f[0], 0.5);
  // Pillow 13: (200, 100, 50) is (124, 86, 182)
  const Value colour = value(DType::F64, {3, 1, 1}, {200.0 / 255, 100.0 / 255, 50.0 / 255});
  const Value other = applied(colour, [](const Tensor& t) { return rgb_to_ycbcr(t); });
  const V pillow{124, 86, 182};
  for (std::size_t k = 0; k < 3; ++k) EXPECT_NEAR(other.f[k] * 255, pillow[k], 1);
  expect_near(applied(other, [](const Tensor& t) { return ycbcr_to_rgb(t); }).f, colour.f);
}

TEST(Pictures, Mistakes) {
  Graph g;
  const Tensor x = g.input("x", {3, 4, 4}), bytes = g.input("bytes", {4, 4, 3}, DType::U8),
               two = g.input("two", {2, 4, 4});
  expect_error([&] { letterbox(bytes); }, "letterbox: a picture is floating [.., channels, h, w], not u8 [4, 4, 3]",
               "pictures_test.cpp");
  expect_error([&] { picture_of_bytes(x); }, "picture_of_bytes: needs u8 [h, w, channels], not f32 [3, 4, 4]",
               "pictures_test.cpp");
  expect_error([&] { normalize_picture(x, {0.5}, {0.5}); },
               "normalize_picture: 1 means and 1 deviations for 3 channels", "pictures_test.cpp");
  expect_error([&] { rgb_to_gray(two); }, "rgb_to_gray: a picture has 3 colours along axis -3, and [2, 4, 4] has 2",
               "pictures_test.cpp");
}
