// lightcone view: the graph of a model, or of a training step, before and after compiling.
#include <unistd.h>

#include <cstdio>

#include "checkpoint_graph.h"
#include "command.h"
#include "commands.h"
#include "explain.h"
#include "lightcone/models/llama/llama.h"
#include "lightcone/runtime/profile/timeline.h"
#include "lightcone/runtime/view/graph_view.h"
#include "train/task.h"

namespace lc::tool {
namespace {

using Stages = std::vector<std::pair<std::string, Graph>>;

std::string drawn(const ViewOptions& o, const Stages& stages, const Program& p) {
  if (o.memory) {
    const MemoryTimeline t = memory_timeline(p.graph(), p.plan());
    return o.text ? t.text() : t.html("Memory of " + o.model);
  }
  if (o.dot) return stages.front().second.dot();
  std::vector<Picture> pictures;
  for (const auto& [title, g] : stages) pictures.push_back({title, &g});
  return graph_html(pictures, o.model);
}

void give(const ViewOptions& o, const Stages& stages, const Program& p) {
  const std::string text = drawn(o, stages, p);
  if (o.out.empty()) {
    write_stdout(text);
    return;
  }
  write_file(o.out, text);
  std::fprintf(stderr, "%s\n%s", o.out.c_str(), report(p.log()).c_str());
}

// Shows one step of a configuration of `lightcone train`.
void view_training(const ViewOptions& o) {
  TrainConfig config = read_train_config(o.model);
  const std::optional<Pretrained> first = Pretrained::of(config);
  const std::unique_ptr<PretrainedClassifier> classifier = PretrainedClassifier::of(config);
  const Task task(config, first ? &*first : nullptr, classifier.get(), 0, o.device, false);
  const Program& step = task.trainer().program();
  Stages stages;
  stages.emplace_back("as written", task.graph().clone());
  stages.emplace_back("compiled", step.graph().clone());
  give(o, stages, step);
}

}  // namespace

void view(const ViewOptions& o) {
  if (o.model.ends_with(".json")) return view_training(o);
  const Weights w = open_model(o.model);
  const Compiler compiler = compiler_for(open_device(o.device), {});
  Stages stages;
  const auto observe = [&](const Pass& p, const Graph& before, const Graph& after) {
    if (stages.empty()) stages.emplace_back("as written", before.clone());
    if (!(before == after)) stages.emplace_back("after " + p.name, after.clone());
  };
  if (is_cached_llama(o.model, w)) {
    LlamaOptions load{.compiler = compiler, .load_weights = false, .layers = o.layers};
    load.observe = observe;
    return give(o, stages, Llama::load(w, load).program());
  }
  if (o.layers > 0) throw Error("--layers", "only models of the Llama family can be cut");
  const LoadedModel m = open_checkpoint(o.model, w, {});
  give(o, stages, compile(m.graph(), compiler, {.observe = observe}));
}

}  // namespace lc::tool
