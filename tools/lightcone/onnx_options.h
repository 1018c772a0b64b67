// --size NAME=NUMBER of the commands that read ONNX models.
#pragma once

#include <string>
#include <vector>

#include "lightcone/onnx/onnx.h"

namespace lc::tool {

// Throws Error for a word that is not NAME=NUMBER.
OnnxOptions onnx_options(const std::vector<std::string>& sizes);
// True for a file that the name says is ONNX.
bool is_onnx(const std::string& path);

}  // namespace lc::tool
