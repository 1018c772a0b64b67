// Pictures of graphs: one HTML file that works offline, to be looked at in a browser.
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
// The graph drawn from top to bottom as SVG. Constants are written into the nodes that read them.
std::string graph_svg(const Graph& g);
// One tab a picture; wheel to zoom, drag to move, hover for shapes and source lines.
std::string graph_html(const std::vector<Picture>& pictures);

}  // namespace lc
