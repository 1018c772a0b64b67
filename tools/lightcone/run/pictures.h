// Pictures as inputs of models, and the way back from the model's pixels to the picture's.
#pragma once

#include <string>

#include "../commands.h"
#include "lightcone/inspection/inspect.h"
#include "lightcone/io/data/array.h"

namespace lc::tool {

// Where a picture lies in a model's input.
struct Placed {
  Array picture;                       // u8 [3, height, width], as it was read
  std::int64_t height = 0, width = 0;  // the size of the model's input
  double scale_x = 1, scale_y = 1;     // pixels of the input for one of the picture
  double left = 0, top = 0;            // the corner of the picture in the input
  double picture_x(double x) const { return (x - left) / scale_x; }
  double picture_y(double y) const { return (y - top) / scale_y; }
  std::int64_t picture_height() const { return picture.shape[1]; }
  std::int64_t picture_width() const { return picture.shape[2]; }
};

struct PictureInput {
  Array array;  // has the shape and type of the input
  Placed placed;
  std::string said;  // what was done, for the user
};

// Makes an input of a picture. Throws Error, which names the option that decides, if the shape of the input leaves open
// where its channels are.
PictureInput picture_input(const std::string& file, const FileDescription::Port& port, const PictureOptions& o);

}  // namespace lc::tool
