// The parts of the page, as they lie in page/: CMake writes page.cpp.
#pragma once

#include <string_view>

namespace lc::view {

extern const std::string_view kStyle, kBody, kModel, kLayout, kDraw, kPage;

}  // namespace lc::view
