// Rules for weights that are stored as bytes and a scale: the bytes are read as they are stored.
#pragma once

#include <vector>

#include "lightcone/passes/rewrite.h"

namespace lc {

std::vector<Rule> scale_rules();

}  // namespace lc
