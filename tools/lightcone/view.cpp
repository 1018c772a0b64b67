// lightcone view: the graph of a model, before and after compiling.
#include <unistd.h>

#include <cstdio>

#include "command.h"
#include "commands.h"
#include "explain.h"
#include "lightcone/runtime/view/graph_view.h"
#include "lightcone/models/llama/llama.h"
#include "lightcone/runtime/profile/timeline.h"

namespace lc::tool {
void view(const ViewOptions& o) {
  const Weights w = open_model(o.model);
  std::vector<std::pair<std::string, Graph>> stages;
  LlamaOptions load{.load_weights = false, .layers = o.layers};
  load.observe = [&](const Pass& p, const Graph& before, const Graph& after) {
    if (stages.empty()) stages.emplace_back("as written", before.clone());
    if (!(before == after)) stages.emplace_back("after " + p.name, after.clone());
  };
  const Llama m = Llama::load(w, load);
  std::string text;
  if (o.memory) {
    const MemoryTimeline t = memory_timeline(m.program().graph(), m.program().plan());
    text = o.text ? t.text() : t.html("Memory of " + o.model);
  } else if (o.dot) {
    text = stages.front().second.dot();
  } else {
    std::vector<Picture> pictures;
    for (const auto& [title, g] : stages) pictures.push_back({title, &g});
    text = graph_html(pictures, o.model);
  }
  if (o.out.empty()) {
    write_stdout(text);
    return;
  }
  write_file(o.out, text);
  std::fprintf(stderr, "%s\n%s", o.out.c_str(), report(m.program().log()).c_str());
}

}  // namespace lc::tool
