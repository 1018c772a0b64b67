// What the outputs of a model mean, by their shapes: class scores, detections, masks, pictures. It is printed, and
// drawn on the picture that the model got.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "inputs.h"
#include "outputs.h"

namespace lc::tool {

bool wants_meaning(const DrawOptions& o);
// Prints what the outputs say, draws it where --draw is given, and says what was assumed. Throws Error, which lists the
// shapes, for outputs that nothing fits.
void show_meaning(const std::vector<NamedOutput>& outputs, const Inputs& given, const ModelFile& m,
                  const RunOptions& o);

// What the functions below have to work with.
struct Drawing {
  const std::vector<NamedOutput>& outputs;
  const Placed* placed;  // null: no picture was given
  const DrawOptions& options;
  std::vector<std::string> labels;  // from --labels or the model's metadata
  Array canvas = {};                // u8 [3, height, width]
  std::string assumed = {};         // in words
  bool reversed = false;            // the model takes blue before red
  bool picture_pixels = false;      // boxes are in the picture already: the model takes its size (RT-DETR)
  std::string label(std::int64_t number) const;
};

// Each returns false if the outputs do not fit.
bool show_classes(Drawing& d);
bool show_detections(Drawing& d);
bool show_masks(Drawing& d);
bool show_text_lines(Drawing& d);
bool show_picture(Drawing& d);

}  // namespace lc::tool
