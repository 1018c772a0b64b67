// lightcone view: the graph of a model, before and after compiling.
#include <unistd.h>

#include <cstdio>

#include "command.h"
#include "explain.h"
#include "lightcone/io/graph_view.h"
#include "lightcone/models/llama.h"
#include "lightcone/runtime/timeline.h"

namespace lc::tool {
namespace {

struct Options {
  std::string model, out;
  bool dot = false, memory = false, text = false;
  int layers = 1;
};

void view(const Options& o) {
  const Weights w = open_model(o.model);
  std::vector<std::pair<std::string, Graph>> stages;
  LlamaOptions load{.load_weights = false, .layers = o.layers};
  load.observe = [&](const Pass& p, const Graph& before, const Graph& after) {
    if (stages.empty()) stages.emplace_back("as written", before.clone());
    stages.emplace_back("after " + p.name, after.clone());
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
    text = graph_html(pictures);
  }
  if (o.out.empty()) {
    write_stdout(text);
    return;
  }
  write_file(o.out, text);
  std::fprintf(stderr, "%s\n%s", o.out.c_str(), report(m.program().log()).c_str());
}

}  // namespace

void add_view(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* c = app.add_subcommand("view", "Draw the graph of a model, before and after compiling");
  c->footer(
      "Writes one HTML file that works offline: a tab for the graph as written and one for each pass.\n"
      "With --memory, the plan of the working memory instead: which value lies where at which step.");
  c->add_option("model", o->model, "checkpoint, or 'builtin'")->required()->type_name("MODEL");
  c->add_option("-o,--output", o->out, "default: the standard output")->type_name("FILE");
  c->add_option("--layers", o->layers, "draw the first N layers; 0: all")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000))
      ->type_name("N");
  c->add_flag("--dot", o->dot, "Graphviz text of the graph as written instead");
  c->add_flag("--memory", o->memory, "draw the working memory over the steps of a run; --layers 0 for all of it");
  c->add_flag("--text", o->text, "with --memory: a table instead of a page")->needs("--memory");
  c->callback([o] { view(*o); });
}

}  // namespace lc::tool
