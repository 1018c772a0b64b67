// Pictures of graphs: one HTML file for a browser, which needs no network.
//
//   const Program p = compile(g, generic() | cpu());
//   std::ofstream("graph.html") << graph_html({{"as written", &g}, {"compiled", &p.graph()}}, "my model");
//
// Each picture has a tab. Data flows from top to bottom. Weights and states are drawn next to their readers. Kernels
// are named by what they compute. Layers (by the names of their parameters) and the user's calls are groups that can be
// opened and closed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lightcone/core/graph.h"

namespace lc {

// A graph and its title. The graph is not owned.
struct Picture {
  std::string title;
  const Graph* graph;
};
// Returns the HTML page. The graphs are only read during the call.
std::string graph_html(const std::vector<Picture>& pictures, std::string_view title = "Lightcone");

}  // namespace lc
