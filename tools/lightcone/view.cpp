// lightcone view: the graph of a model, before and after compiling.
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "command.h"
#include "lightcone/core/error.h"
#include "lightcone/io/graph_view.h"
#include "lightcone/models/llama.h"

namespace lc::tool {
namespace {

struct Options {
  std::string model, out;
  bool dot = false;
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
  if (o.dot) {
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
  std::ofstream f(o.out, std::ios::binary);
  f << text;
  f.close();
  if (!f) throw Error("view", cat("cannot write ", o.out));
  std::fprintf(stderr, "%s\n%s", o.out.c_str(), report(m.program().log()).c_str());
}

}  // namespace

void add_view(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* c = app.add_subcommand("view", "Draw the graph of a model, before and after compiling");
  c->footer("Writes one HTML file that works offline: a tab for the graph as written and one for each pass.");
  c->add_option("model", o->model, "checkpoint, or 'builtin'")->required()->type_name("MODEL");
  c->add_option("-o,--output", o->out, "default: the standard output")->type_name("FILE");
  c->add_option("--layers", o->layers, "draw the first N layers; 0: all")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000))
      ->type_name("N");
  c->add_flag("--dot", o->dot, "Graphviz text of the graph as written instead");
  c->callback([o] { view(*o); });
}

}  // namespace lc::tool
