// The models and functions whose kernels are examined.
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
  // Bindings of symbolic sizes: "" or the name of a use, and its sizes. Grids are listed for the first one.
  std::vector<std::pair<std::string, Bindings>> uses = {{"", {}}};
};
std::vector<Case> all_cases(const std::string& story_model);

}  // namespace lc::gpu_kernels
