// Pictures that are written are read back, and boxes, letters and masks are drawn where they belong.
#include "lightcone/io/images/draw.h"

#include <gtest/gtest.h>
#include <cmath>
#include <limits>

#include "data.h"
#include "error_of.h"
#include "lightcone/io/images/images.h"

using namespace lc;

namespace {

// The red channel as rows of letters: '#' for 255, '.' for 0, '?' otherwise.
std::vector<std::string> red(const Array& a) {
  std::vector<std::string> rows;
  for (std::int64_t y = 0; y < a.shape[1]; ++y) {
    rows.emplace_back();
    for (std::int64_t x = 0; x < a.shape[2]; ++x) {
      const auto v = std::to_integer<int>(a.bytes[static_cast<std::size_t>(y * a.shape[2] + x)]);
      rows.back() += v == 255 ? '#' : v == 0 ? '.' : '?';
    }
  }
  return rows;
}
using Rows = std::vector<std::string>;

}  // namespace

TEST(Draw, Boxes) {
  Array a = Array::zeros(DType::U8, {3, 6, 8});
  draw_box(a, 1.2, 0.8, 6.9, 5.1, {255, 0, 0}, {}, 1);
  EXPECT_EQ(red(a), (Rows{"........", ".######.", ".#....#.", ".#....#.", ".######.", "........"}));
  a = Array::zeros(DType::U8, {3, 6, 8});
  draw_box(a, -5, 3, 3, 1e300, {255, 0, 0}, {}, 2);  // outside
  EXPECT_EQ(red(a), (Rows{"........", "........", "........", "###.....", "###.....", ".##....."}));
  draw_box(a, NAN, 0, 8, 6, {255, 0, 0});
  draw_box(a, 100, 100, 200, 200, {255, 0, 0}, "far away");
  EXPECT_EQ(red(a)[0], "........");
}

TEST(Draw, Text) {
  Array a = Array::zeros(DType::U8, {3, 9, 13});
  draw_text(a, 0, 0, "Ai", {255, 255, 255}, {0, 0, 0});
  EXPECT_EQ(red(a), (Rows{".............", "..###....#...", ".#...#.......", ".#...#..##...", ".#####...#...",
                          ".#...#...#...", ".#...#...#...", ".#...#..###..", "............."}));
  a = Array::zeros(DType::U8, {3, 9, 13});
  draw_text(a, 0, 0, "\xC3\xA9", {255, 255, 255}, {0, 0, 0});  // one letter of two bytes
  EXPECT_EQ(red(a)[1], ".#####.......");
  EXPECT_EQ(red(a)[2], ".#...#.......");
  draw_text(a, -1000, 5, std::string(5000, 'x'), {255, 0, 0}, {0, 0, 0}, 3);
  // a label stands above its box in black on a light colour
  a = Array::zeros(DType::U8, {3, 20, 20});
  draw_box(a, 2, 12, 18, 18, {255, 255, 255}, "A");
  EXPECT_EQ(red(a)[4].substr(0, 10), "..##...##.");
}

TEST(Draw, Masks) {
  Array a = Array::zeros(DType::U8, {3, 1, 3});
  draw_mask(a, Array::of<float>({1, 3}, std::vector<float>{0.2f, 0.9f, NAN}), {255, 0, 200}, 1);
  EXPECT_EQ(red(a), Rows{".#."});
  EXPECT_EQ(std::to_integer<int>(a.bytes[7]), 200);
  draw_mask(a, Array::of<std::uint8_t>({1, 3}, std::vector<std::uint8_t>{1, 0, 0}), {100, 0, 0}, 0.5);
  EXPECT_EQ(std::to_integer<int>(a.bytes[0]), 50);
  const Colour c = colour_of_class(0), d = colour_of_class(1);
  EXPECT_NE(c.red * 65536 + c.green * 256 + c.blue, d.red * 65536 + d.green * 256 + d.blue);
}

TEST(Draw, FilesAreReadBack) {
  if (!can_read_images()) GTEST_SKIP() << "lightcone::io was built without decoders for pictures";
  const TempDir folder;
  Array a = Array::zeros(DType::U8, {3, 40, 30});
  for (std::size_t k = 0; k < a.bytes.size(); ++k)
    a.bytes[k] = std::byte(128 + static_cast<int>(100 * std::sin(0.01 * static_cast<double>(k))));
  write_png(folder / "a.png", a);
  EXPECT_EQ(read_image(folder / "a.png").bytes, a.bytes);
  write_jpeg(folder / "a.jpg", a, 95);
  const Array b = read_image(folder / "a.jpg");
  ASSERT_EQ(b.shape, a.shape);
  double off = 0;
  for (std::size_t k = 0; k < a.bytes.size(); ++k)
    off += std::abs(std::to_integer<int>(a.bytes[k]) - std::to_integer<int>(b.bytes[k]));
  EXPECT_LT(off / static_cast<double>(a.bytes.size()), 2);
  const ArrayView grey{DType::U8, {1, 40, 30}, std::span(a.bytes).first(1200)};
  write_png(folder / "grey.png", grey), write_jpeg(folder / "grey.jpg", grey);
  EXPECT_EQ(read_image(folder / "grey.png").bytes[1200], a.bytes[0]);  // grey is repeated
  EXPECT_EQ(read_image(folder / "grey.jpg").shape, a.shape);
}

TEST(Draw, Mistakes) {
  Array a = Array::zeros(DType::F32, {3, 4, 4}), p = Array::zeros(DType::U8, {3, 4, 4});
  EXPECT_EQ(error_of([&] { draw_box(a, 0, 0, 1, 1, {}); }),
            "draw_box: needs a picture u8 [3, height, width], as read_image() gives it, not f32 with 3 axes");
  EXPECT_EQ(error_of([&] { draw_mask(p, a, {}); }),
            "draw_mask: a mask is bool, u8 or f32 [4, 4], as the picture, not f32 with 3 axes");
  EXPECT_EQ(
      error_of([&] { write_png("x.png", a); }),
      "write_png: needs a picture u8 [3, height, width] or [1, height, width] of 1 to 65535 pixels a side, not f32 "
      "[3, 4, 4]");
  EXPECT_EQ(error_of([&] { write_jpeg("x.jpg", p, 0); }), "write_jpeg: a quality of 0: it is 1 to 100");
}
