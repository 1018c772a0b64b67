// What `--input` gives: arrays, pictures, sounds, texts and numbers.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model.h"
#include "pictures.h"

namespace lc::tool {

struct Inputs {
  std::map<std::string, Array> arrays;  // by the inputs' names
  std::optional<Placed> picture;        // the first picture that was given
  std::string file;                     // its path
  std::vector<std::string> said;        // what was made of files and texts: a sentence each
};
// Reads everything that the options give. Throws Error for a value that no input takes.
Inputs read_inputs(const RunOptions& o, const ModelFile& model);

}  // namespace lc::tool
