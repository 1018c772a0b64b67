// Graphs to look at: one HTML file that needs no network, to be opened in a browser.
//
//   const Program p = compile(g, generic() | cpu());
//   std::ofstream("graph.html") << graph_html({{"as written", &g}, {"compiled", &p.graph()}}, "my model");
//
// A tab for each picture. Data flow from top to bottom; weights and states stand beside what reads them; kernels are
// named by what they compute. Layers, by the names of their parameters, and calls of the user's are groups that open
// and close.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lightcone/core/graph.h"

namespace lc {

struct Picture {
  std::string title;
  const Graph* graph;
};
std::string graph_html(const std::vector<Picture>& pictures, std::string_view title = "Lightcone");

}  // namespace lc
