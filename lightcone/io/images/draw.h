// Draws on pictures u8 [3, height, width]: boxes with labels, and masks, to look at what a network found.
//
// Whatever lies outside of the picture is not drawn. Throws Error for another array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lightcone/io/data/array.h"

namespace lc {

struct Colour {
  std::uint8_t red = 0, green = 0, blue = 0;
};
// Distinct colours for classes, the same in every run: hues a golden angle apart.
Colour colour_of_class(std::size_t number);

// The outline of a box with corners (x1, y1) and (x2, y2) in pixels, `thickness` pixels wide and inside of the box. A
// label stands above it, or in it where there is no room, in black or white on the colour. NaN draws nothing.
void draw_box(Array& picture, double x1, double y1, double x2, double y2, Colour colour, std::string_view label = {},
              int thickness = 2);
// Text in an upright font of 5 x 7 pixels, each `size` pixels wide, with its upper left corner at (x, y), on a ground
// of another colour. ASCII has letters; other characters are drawn as a box.
void draw_text(Array& picture, int x, int y, std::string_view text, Colour colour, Colour ground, int size = 1);
// Mixes a colour into the pixels in which a mask, bool, u8 or f32 [height, width], is not 0 (f32: above 0.5): alpha 1
// replaces them.
void draw_mask(Array& picture, const ArrayView& mask, Colour colour, double alpha = 0.5);

}  // namespace lc
