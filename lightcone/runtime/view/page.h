// The parts of the HTML page. CMake generates page.cpp from the files in page/.
#pragma once

#include <string_view>

namespace lc::view {

extern const std::string_view kStyle, kBody, kModel, kLayout, kDraw, kPage;

}  // namespace lc::view
