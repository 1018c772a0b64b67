// The models and functions whose kernels are looked at.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lightcone/core/graph.h"

namespace lc::gpu_kernels {

struct Case {
  std::string name;
  std::function<Graph()> graph;
  // What is bound where sizes are symbols: "" or the name of a use, and its sizes. The first one is what grids are
  // given for.
  std::vector<std::pair<std::string, Bindings>> uses = {{"", {}}};
};
std::vector<Case> all_cases(const std::string& story_model);

}  // namespace lc::gpu_kernels
