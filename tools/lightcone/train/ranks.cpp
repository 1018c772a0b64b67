#include "ranks.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "../ranks.h"
#include "lightcone/base/error.h"
#include "lightcone/core/graph.h"
#include "lightcone/distributed/launcher.h"

namespace lc::tool {

void RunRanks::together(const std::function<void()>& f) const {
  if (collectives_) collectives_->together(f);
  else f();
}
void RunRanks::check_same(const std::string& what, const std::string& text) const {
  if (collectives_) collectives_->check_same(what, text);
}
i64 RunRanks::largest(i64 mine) const {
  if (collectives_) {
    const i64 here = mine;
    collectives_->run(Collective::Operation::AllReduce, {}, DType::I64, 1, &here, &mine, ReduceOp::Max);
  }
  return mine;
}

// ---- what is divided ---------------------------------------------------------------------------------------------

void check_mesh(const ModelConfig& model, const RanksConfig& ranks) {
  const i64 n = ranks.model();
  if (n == 1) return;
  if (model.kind != "llama" && model.kind != "mlp")
    throw Error("config",
                str_cat("mesh.model is ", n, ": llama and mlp are divided by it, ", model.kind, " by mesh.data alone"));
  if (model.kind == "llama" && model.heads % n != 0)
    throw Error("config",
                str_cat("the model has ", model.heads, " attention heads, which mesh.model = ", n, " must divide"));
}

namespace {

// Rows of the first matrix and columns of the second one (M. Shoeybi and others, "Megatron-LM", 2019): nothing is
// exchanged between the two.
ShardSpecs along_model(const ModelConfig& model, i64 ranks) {
  const std::vector<std::string> rows{"model"}, columns{"", "model"};
  ShardSpecs specs;
  if (model.kind == "mlp") {
    for (std::size_t k = 0; k < model.hidden.size(); k += 2) {  // the last of an odd number of layers stays whole
      specs.push_back({str_cat("layers.", k, ".*"), rows});
      specs.push_back({str_cat("layers.", k + 1, ".weight"), columns});
    }
    return specs;
  }
  const bool keys = model.kv_heads % ranks == 0;
  for (const char* first : {"q_proj", "k_proj", "v_proj", "gate_proj", "up_proj"}) {
    if (!keys && (first[0] == 'k' || first[0] == 'v')) continue;
    for (const char* part : {"weight", "bias", "lora_B.weight"})
      specs.push_back({str_cat("*.", first, ".", part), rows});
  }
  for (const char* second : {"o_proj", "down_proj"})
    for (const char* part : {"weight", "lora_A.weight"}) specs.push_back({str_cat("*.", second, ".", part), columns});
  specs.push_back({"*embed_tokens.weight", rows});
  specs.push_back({"*lm_head.weight", rows});
  return specs;
}

bool fits(const std::string& pattern, const std::string& name) {
  const std::size_t star = pattern.find('*');
  if (star == pattern.npos) return pattern == name;
  return name.size() + 1 >= pattern.size() && name.starts_with(pattern.substr(0, star)) &&
         name.ends_with(pattern.substr(star + 1));
}

// The axes of the spec for a parameter, or for the optimiser's memory of one ("<parameter>.exp_avg").
std::vector<std::string> axes_along_model(const ShardSpecs& specs, const std::string& name, std::size_t rank) {
  for (const std::string& n : {name, name.substr(0, std::min(name.rfind('.'), name.size()))})
    for (const ShardSpec& s : specs)
      if (fits(s.name, n) && s.axes.size() <= rank) {
        std::vector<std::string> axes = s.axes;
        axes.resize(rank);
        return axes;
      }
  return std::vector<std::string>(rank);
}

// An axis that `model` divides is divided further only if there is no other: a rank that gathers such an axis gathers
// it from all ranks.
void divide_along_data(std::vector<std::string>& axes, const std::function<i64(std::size_t)>& extent, i64 data,
                       i64 model) {
  for (const bool divided : {false, true})
    for (std::size_t i = 0; i < axes.size(); ++i) {
      if (axes[i].empty() == divided) continue;
      const i64 here = divided ? extent(i) / model : extent(i);
      if (here < data || here % data != 0) continue;
      axes[i] += divided ? "+data" : "data";
      return;
    }
}

}  // namespace

ShardSpecs specs_of(const Graph& step, const ModelConfig& config, const RanksConfig& ranks) {
  const i64 data = ranks.data(), model = ranks.model();
  const ShardSpecs patterns = model > 1 ? along_model(config, model) : ShardSpecs();
  std::set<NodeId> states;
  for (const Assignment& a : step.assignments()) states.insert(a.state);
  ShardSpecs specs;
  for (NodeId id = 0; id < step.size(); ++id) {
    const Node& n = step[id];
    if (n.op != Op::Input || n.shape.empty()) continue;
    std::vector<std::string> axes(n.shape.size());
    const auto extent = [&](std::size_t i) { return n.shape[i].constant().value_or(1); };
    const bool state = states.contains(id);
    if (!n.parameter && !state) {
      if (data > 1) axes[0] = "data";
    } else {
      axes = axes_along_model(patterns, n.name, axes.size());
      for (std::size_t i = 0; i < axes.size(); ++i)
        if (!axes[i].empty() && extent(i) % model != 0) axes[i].clear();
      const bool shards = ranks.shard == "full" || (ranks.shard == "optimizer" && !n.parameter);
      if (shards && data > 1 && is_float(n.dtype)) divide_along_data(axes, extent, data, model);
    }
    if (std::ranges::any_of(axes, [](const std::string& a) { return !a.empty(); })) specs.push_back({n.name, axes});
  }
  return specs;
}

ShardSpecs those_of(const ShardSpecs& specs, const Graph& g) {
  std::set<std::string> names;
  for (NodeId id = 0; id < g.size(); ++id)
    if (g[id].op == Op::Input) names.insert(g[id].name);
  ShardSpecs some;
  for (const ShardSpec& s : specs)
    if (names.contains(s.name)) some.push_back(s);
  return some;
}

Arrays part_of_batch(const Arrays& batch, const TrainConfig& c) {
  if (c.part_size == 0) return batch;
  Arrays part;
  for (const auto& [name, a] : batch) {
    std::vector<i64> shape = a.shape;
    shape[0] = c.part_size;
    Array& rows = part.emplace(name, Array::zeros(a.dtype, shape)).first->second;
    std::copy_n(a.bytes.data() + static_cast<std::size_t>(c.part_begin) * a.row_bytes(), rows.bytes.size(),
                rows.bytes.data());
  }
  return part;
}

// ---- the same on all ranks ---------------------------------------------------------------------------------------

namespace {

class Mark {
 public:
  void add(std::span<const std::byte> bytes) {  // FNV-1a
    for (const std::byte b : bytes) hash_ = (hash_ ^ static_cast<std::uint64_t>(b)) * 1099511628211u;
  }
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  std::string str() const { return std::to_string(hash_); }

 private:
  std::uint64_t hash_ = 14695981039346656037u;
};

}  // namespace

std::string mark_of(const Weights& w) {
  constexpr std::size_t kLooked = 1024;
  Mark m;
  for (const auto& [name, t] : w.tensors()) {
    m.add(name), m.add(t.type), m.add(std::as_bytes(std::span(t.shape)));
    m.add(t.bytes.first(std::min(kLooked, t.bytes.size())));
  }
  return m.str();
}
std::string mark_of(std::string_view text) {
  Mark m;
  m.add(text);
  return m.str();
}
std::string mark_of(const Arrays& a) {
  Mark m;
  for (const auto& [name, array] : a) m.add(name), m.add(array.bytes);
  return m.str();
}

// ---- start and end -----------------------------------------------------------------------------------------------

namespace {

// MPI_Init waits for all processes, without an end. While an object of this class lives, the process ends itself after
// the time-out; the ranks do so in turn, so that the first one says why, and the launcher ends the others. Time in
// which the process itself was stopped does not count: the launcher lets it go on before it ends it.
class Alarm {
 public:
  Alarm(double timeout_s, int rank)
      : thread_([this, timeout_s, rank] {
          constexpr double kTick = 0.1, kTurn = 3;
          std::unique_lock lock(mutex_);
          for (double waited = 0; waited < timeout_s + kTurn * std::min(rank, 8); waited += kTick)
            if (changed_.wait_for(lock, std::chrono::duration<double>(kTick), [this] { return over_; })) return;
          const std::string why =
              str_cat("lightcone: train: not all ranks came within ", timeout_s, " s: MPI_Init does not end\n");
          std::fputs(why.c_str(), stderr);
          std::_Exit(1);
        }) {}
  ~Alarm() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

std::shared_ptr<Communicator> connected(double timeout_s, int rank) {
  const Alarm alarm(timeout_s, rank);
  return mpi_processes({.timeout_s = timeout_s});
}

std::string text_of(const TrainConfig& c) {
  std::string all = str_cat("mesh ", c.ranks.mesh, "\nshard ", c.ranks.shard, "\ntimeout ", c.ranks.timeout_s,
                            "\nsteps ", c.train.steps, "\nevaluate every ", c.evaluate_every, ", ", c.held_out_samples,
                            " samples, patience ", c.patience, "\nsave every ", c.save_every, " as ", c.weights, " in ",
                            c.folder, "\nlog every ", c.log_every, "\n");
  for (const std::string& d : c.decisive) all += d + "\n";
  return all;
}

// The lines in which the ranks' configurations differ are what an Error shall show.
void check_same_lines(const Collectives& ranks, const std::string& text) {
  std::string rest = text;
  for (;;) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    ranks.check_same("the configuration", rest.empty() ? "nothing more" : rest.substr(0, end));
    if (rest.empty()) return;
    rest.erase(0, end + 1);
  }
}

void check_ranks(const RanksConfig& r, int ranks) {
  if (r.mesh.size() == ranks) return;
  if (r.mesh.axes().empty())
    throw Error("train", str_cat(ranks,
                                 " processes were started, and the configuration says nothing of them: \"mesh\": "
                                 "{\"data\": ",
                                 ranks, "} divides each batch among them"));
  throw Error("train", str_cat("the mesh (", r.mesh, ") has ", r.mesh.size(), " ranks, and ",
                               ranks == 1 ? std::string("this is one process") : str_cat("there are ", ranks), ": ",
                               Launcher::how_to_start(r.mesh.size())));
}

}  // namespace

int run_on_ranks(const std::function<TrainConfig()>& read, const std::string& version,
                 const std::function<int(TrainConfig&, const RunRanks&, int threads)>& f) {
  const Launcher launcher = Launcher::of_this_process();
  std::optional<TrainConfig> c;
  std::string wrong;
  try {
    c = read();
    check_ranks(c->ranks, launcher.size);
  } catch (const Error& e) {
    if (launcher.size == 1) throw;
    wrong = e.what();
  }
  if (launcher.size == 1) return f(*c, RunRanks(), 0);
  std::shared_ptr<Communicator> communicator;
  try {
    communicator = connected(c ? c->ranks.timeout_s : RanksConfig().timeout_s, launcher.rank);
    check_launched(launcher, *communicator);
  } catch (const Error&) {
    if (launcher.rank == 0) throw;
    return 1;
  }
  try {
    const Collectives everybody(Mesh({{"ranks", communicator->size()}}), communicator);
    everybody.check_same("the version", version);
    everybody.together([&] {
      if (!wrong.empty()) throw Error("", wrong);
    });
    check_same_lines(everybody, text_of(*c));
    const i64 part = c->train.batch / c->ranks.data();
    c->part_size = part;
    const Mesh& mesh = c->ranks.mesh;
    if (c->ranks.data() > 1) c->part_begin = part * mesh.coordinate(communicator->rank(), mesh.axis("data"));
    const int threads = threads_of_rank(*communicator, launcher);
    return f(*c, RunRanks(Collectives(mesh, communicator)), threads);
  } catch (const std::exception& e) {
    if (communicator->fail(e.what())) throw;
    return 1;
  }
}

}  // namespace lc::tool
