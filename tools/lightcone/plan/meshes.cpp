// Every mesh of so many ranks: what each needs, and which of those that fit is the quickest.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "../command.h"
#include "lightcone/base/error.h"
#include "lightcone/base/numbers.h"
#include "lightcone/distributed/sharding/sharding.h"
#include "lightcone/distributed/sharding/specs.h"
#include "report.h"

namespace lc::tool {
namespace {

using Json = nlohmann::ordered_json;

// Bytes of the parameters and states of a rank, which are known before anything is compiled.
double state_bytes(const Graph& g, const Layout& layout) {
  const ShardSpecs specs = specs_of(g, layout);
  const distributed::SpecIndex index(specs);
  std::vector<bool> is_state(g.size());
  for (const Assignment& a : g.assignments()) is_state[a.state] = true;
  double sum = 0;
  for (NodeId id = 0; id < g.size(); ++id) {
    const Node& n = g[id];
    if (n.op != Op::Input || !(n.parameter || is_state[id])) continue;
    const auto s = distributed::sharding_of(layout.mesh(), specs, index, n.name, n.shape);
    sum += static_cast<double>(product(distributed::local(layout.mesh(), n.shape, s)).constant().value_or(0)) *
           static_cast<double>(size_of(n.dtype));
  }
  return sum;
}

struct Candidate {
  Layout layout;
  std::optional<Planned> planned = {};  // none: it is impossible, or too large at once
  std::string why_not = "";
  bool impossible = false;  // whatever is divided besides
};

// What is known without a program. What is least is a bound: the fullest stage has at least a stage's part.
void look(Candidate& c, const Graph& g, const Cluster& cluster) {
  try {
    const double least = state_bytes(g, c.layout) / c.layout.stages();
    if (cluster.memory_bytes > 0 && least > cluster.memory_bytes)
      c.why_not = str_cat("parameters and states alone are ", human_bytes(least));
  } catch (const Error& e) {
    c.why_not = e.what(), c.impossible = true;
  }
}

void plan_one(Candidate& c, const PlanCommand& o, const Graph& g, const Cluster& cluster) {
  try {
    c.planned = planned(o, g, c.layout, cluster);
    const PlannedMemory& m = c.planned->step.memory;
    const auto total = static_cast<double>(m.total());
    if (cluster.memory_bytes > 0 && total > cluster.memory_bytes)
      c.why_not = str_cat("a rank needs ", human_bytes(total), ", of which ",
                          human_bytes(static_cast<double>(m.values)), " are activations");
  } catch (const Error& e) {
    c.why_not = e.what(), c.impossible = true;
  }
}

// All ways to divide so many ranks, those without a pipeline first.
std::vector<Mesh> meshes_of(const PlanCommand& o) {
  std::vector<Mesh> all;
  for (int pipe = 1; pipe <= std::min(o.ranks, o.stages); ++pipe)
    for (int model = 1; o.ranks % pipe == 0 && model <= o.ranks / pipe; ++model) {
      if (o.ranks / pipe % model) continue;
      std::vector<MeshAxis> axes{{"data", o.ranks / pipe / model}, {"model", model}};
      if (pipe > 1) axes.insert(axes.begin(), {"pipe", pipe});
      all.emplace_back(std::move(axes));
    }
  return all;
}

// What several meshes of the same ranks need. Those that do not fit in any case have no program.
std::vector<Candidate> all_meshes(const PlanCommand& o, const Graph& g, const ModelConfig& config,
                                  const Cluster& cluster) {
  std::vector<Candidate> all;
  for (const Mesh& mesh : meshes_of(o))
    for (const char* shard : {"none", "optimizer", "full"}) {
      const Layout layout{{mesh, shard}, config, o.microbatches};
      if ((shard != std::string_view("none") && layout.ranks.data() == 1) ||
          (!o.sharding.empty() && shard != o.sharding))
        continue;
      all.push_back({layout});
      look(all.back(), g, cluster);
      if (all.back().impossible) break;
    }
  Progress progress;
  std::vector<Candidate> tried;
  for (std::size_t k = 0; k < all.size(); ++k) {
    Candidate& c = all[k];
    if (!tried.empty() && tried.back().impossible && tried.back().layout.mesh() == c.layout.mesh()) continue;
    progress.show("meshes", static_cast<double>(k) / static_cast<double>(all.size()),
                  str_cat(c.layout.mesh(), ", divided states: ", c.layout.ranks.shard));
    if (c.why_not.empty()) plan_one(c, o, g, cluster);
    tried.push_back(std::move(c));
  }
  std::ranges::stable_sort(tried, [](const Candidate& a, const Candidate& b) {
    const auto rank = [](const Candidate& c) {
      return std::pair(!c.why_not.empty(), c.planned ? c.planned->step.seconds : 1e300);
    };
    return rank(a) < rank(b);
  });
  return tried;
}

std::string table_of(const std::vector<Candidate>& all) {
  std::string s =
      "mesh                    sharding    memory a rank   a step     computing  exchanges, exposed  bound by\n";
  for (const Candidate& c : all) {
    const std::string head = formatted("%-22s  %-10s", c.layout.mesh().str().c_str(), c.layout.ranks.shard.c_str());
    if (!c.planned || !c.why_not.empty()) {
      s += str_cat(head, "  no: ", c.why_not, "\n");
      continue;
    }
    const StepPlan& t = c.planned->step;
    s += formatted("%s  %13s  %9s  %9s  %8s, %8s  %s\n", head.c_str(),
                   human_bytes(static_cast<double>(t.memory.total())).c_str(), human_seconds(t.seconds).c_str(),
                   human_seconds(t.computing_seconds()).c_str(), human_seconds(t.exchange_seconds).c_str(),
                   human_seconds(t.exposed_seconds).c_str(), t.bound().c_str());
  }
  return s;
}

}  // namespace

void plan_all(const PlanCommand& o, const Graph& g, const TrainConfig& config) {
  if (o.ranks < 1) throw Error("plan", "--mesh auto needs the number of ranks: --ranks 8");
  const Cluster cluster = cluster_of(o, o.ranks);
  const std::vector<Candidate> all = all_meshes(o, g, config.model, cluster);
  const bool found = !all.empty() && all.front().why_not.empty();
  if (o.json) {
    Json j = Json::array();
    for (const Candidate& c : all) {
      Json one = c.planned ? json_of(*c.planned, cluster)
                           : Json{{"mesh", c.layout.mesh().str()}, {"sharding", c.layout.ranks.shard}, {"fits", false}};
      if (!c.why_not.empty()) one["why_not"] = c.why_not;
      j.push_back(std::move(one));
    }
    write_stdout(j.dump(1) + "\n");
    return;
  }
  write_stdout(table_of(all));
  if (!found) throw Error("plan", str_cat("no mesh of ", o.ranks, " ranks fits; the lines above say why"));
  write_stdout("\nthe quickest that fits:\n" + text_of(*all.front().planned, cluster, config.train.batch));
}

}  // namespace lc::tool
