// lightcone_bench_ranks: one of several ranks of Lightcone in bench/compare, each started by MPI and told the same.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <numeric>

#include "bench/runner/protocol.h"
#include "bench/runner/train_models.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/base/error.h"
#include "lightcone/distributed/mpi/mpi.h"
#include "lightcone/distributed/sharding/shard.h"
#include "lightcone/distributed/sharding/strategies.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/profile/profile.h"
#include "lightcone/runtime/program.h"
#include "lightcone/train/trace.h"

namespace lc::bench {
namespace {

constexpr std::size_t kSteps = 3;  // after which the loss is compared
constexpr int kProfiled = 3;       // steps

using Operation = Collective::Operation;

bool takes_rows(Operation k) { return k == Operation::ReduceScatter || k == Operation::AllToAll; }
bool gives_rows(Operation k) { return k == Operation::AllGather || k == Operation::AllToAll; }

// What a step exchanges, in order.
struct Exchanged {
  Collective collective;
  std::vector<int> group;
  std::vector<std::size_t> elements;  // one number for each array
};

// Passes exchanges on and writes down what they were.
class Recorder final : public Communicator {
 public:
  explicit Recorder(std::shared_ptr<Communicator> to) : to_(std::move(to)) {}
  int rank() const override { return to_->rank(); }
  int size() const override { return to_->size(); }
  std::string name() const override { return to_->name(); }
  void run(const Collective& c, const void* in, void* out) override {
    note(c, {c.n});
    to_->run(c, in, out);
  }
  void run_together(const Collective& c, std::span<const Piece> pieces) override {
    std::vector<std::size_t> elements;
    for (const Piece& p : pieces) elements.push_back(p.n);
    note(c, std::move(elements));
    to_->run_together(c, pieces);
  }
  void record(bool on) { on_ = on; }
  const std::vector<Exchanged>& all() const { return all_; }

 private:
  void note(const Collective& c, std::vector<std::size_t> elements) {
    if (on_) all_.push_back({c, {c.group.begin(), c.group.end()}, std::move(elements)});
  }
  std::shared_ptr<Communicator> to_;
  std::vector<Exchanged> all_;
  bool on_ = false;
};

// Exchanges nothing: every rank takes its own numbers for those of the others.
class Alone final : public Communicator {
 public:
  Alone(int rank, int size) : rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string name() const override { return "alone"; }
  // Several arrays at once are as many operations, each of its own length.
  void run_together(const Collective& c, std::span<const Piece> pieces) override {
    for (const Piece& p : pieces) {
      Collective one = c;
      one.n = p.n;
      run(one, p.in, p.out);
    }
  }
  void run(const Collective& c, const void* in, void* out) override {
    const std::size_t bytes = c.n * size_of(c.dtype), rows = gives_rows(c.operation) ? c.group.size() : 1;
    for (std::size_t k = 0; k < rows && bytes; ++k) {
      const std::size_t from = !takes_rows(c.operation) ? 0 : rows > 1 ? k : static_cast<std::size_t>(c.place);
      std::memcpy(static_cast<std::byte*>(out) + k * bytes, static_cast<const std::byte*>(in) + from * bytes, bytes);
    }
  }

 private:
  int rank_, size_;
};

// Brings all ranks to one place, so that what follows begins together.
void meet(Communicator& ranks) {
  std::vector<int> all(static_cast<std::size_t>(ranks.size()));
  std::iota(all.begin(), all.end(), 0);
  const float one = 1;
  float sum = 0;
  ranks.run({.dtype = DType::F32, .n = 1, .group = all, .place = ranks.rank()}, &one, &sum);
}

// Exchanges with nothing between them.
class Replay {
 public:
  Replay(std::shared_ptr<Communicator> ranks, std::vector<Exchanged> all)
      : ranks_(std::move(ranks)), all_(std::move(all)) {
    std::size_t in = 0, out = 0;
    for (Exchanged& e : all_) {
      e.collective.group = e.group;
      const std::size_t bytes = e.collective.n * size_of(e.collective.dtype), rows = e.group.size();
      in = std::max(in, bytes * (takes_rows(e.collective.operation) ? rows : 1));
      out = std::max(out, bytes * (gives_rows(e.collective.operation) ? rows : 1));
    }
    in_.resize(in), out_.resize(out);
  }
  double run() {
    meet(*ranks_);
    const double begin = now();
    for (const Exchanged& e : all_) run(e);
    return now() - begin;
  }
  // {"all_reduce": {"calls": 3, "bytes": 100}}: the bytes of the smaller of the two arrays.
  Json summary() const {
    Json all = Json::object();
    for (const Exchanged& e : all_) {
      Json& one = all[std::string(name(e.collective.operation))];
      if (one.is_null()) one = {{"calls", 0}, {"bytes", 0}};
      one["calls"] = one["calls"].get<int>() + 1;
      one["bytes"] = one["bytes"].get<std::size_t>() + e.collective.n * size_of(e.collective.dtype);
    }
    return all;
  }

 private:
  void run(const Exchanged& e) {
    const std::size_t rows = e.group.size(), size = size_of(e.collective.dtype);
    std::size_t in = 0, out = 0;
    pieces_.clear();
    for (const std::size_t n : e.elements) {
      pieces_.push_back({in_.data() + in, out_.data() + out, n});
      in += n * size * (takes_rows(e.collective.operation) ? rows : 1);
      out += n * size * (gives_rows(e.collective.operation) ? rows : 1);
    }
    if (pieces_.size() == 1) ranks_->run(e.collective, pieces_[0].in, pieces_[0].out);
    else ranks_->run_together(e.collective, pieces_);
  }

  std::shared_ptr<Communicator> ranks_;
  std::vector<Exchanged> all_;
  std::vector<Piece> pieces_;
  std::vector<std::byte> in_, out_;
};

// ---- one exchange ---------------------------------------------------------------------------------------------------

class Sum final : public Workload {
 public:
  explicit Sum(const Json& w) : ranks_(mpi_ranks()), group_(static_cast<std::size_t>(ranks_->size())) {
    std::iota(group_.begin(), group_.end(), 0);
    in_ = input_values(str_cat("rank", ranks_->rank()), w.at("bytes").get<std::size_t>() / sizeof(float));
    out_.resize(in_.size());
  }
  void call() override {
    ranks_->run({.dtype = DType::F32, .n = in_.size(), .group = group_, .place = ranks_->rank(), .tag = 1}, in_.data(),
                out_.data());
  }
  Json answer() override { return summary(out_); }
  Json measure(int calls) override {
    meet(*ranks_);
    return Workload::measure(calls);
  }

 private:
  std::shared_ptr<Communicator> ranks_;
  std::vector<int> group_;
  std::vector<float> in_, out_;
};

// ---- a step of training ---------------------------------------------------------------------------------------------

struct Training {
  Graph graph;
  nn::Model<Gpt> net;
  explicit Training(const Json& w) : net(graph, Gpt(options(w))) {
    const i64 batch = w.at("batch").get<i64>(), context = options(w).context, rows = batch * context;
    const Tensor x = graph.input("x", {batch, context}, DType::I64), y = graph.input("y", {rows}, DType::I64);
    auto loss = trace(
        net,
        [&](auto& model, const Tensor& ids, const Tensor& labels) {
          return cross_entropy(model(ids).reshape({rows, options(w).vocabulary}), labels);
        },
        x, y);
    loss.loss().retrieve("loss");
    Gradients<Gpt> d = backward(std::move(loss));
    d.clip_norm(1);
    update(net, optim::AdamW{.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1}, std::move(d));
  }
  static GptOptions options(const Json& w) {
    return {.layers = w.at("layers").get<i64>(),
            .heads = w.at("heads").get<i64>(),
            .width = w.at("width").get<i64>(),
            .context = w.at("context").get<i64>(),
            .vocabulary = w.at("vocabulary").get<i64>()};
  }
};

// The program of one rank with its numbers.
class RankProgram {
 public:
  RankProgram(const Json& w, const Training& t, const std::shared_ptr<Communicator>& ranks)
      : ranks_(Mesh({{"data", ranks->size()}}), ranks) {
    const int n = ranks->size();
    specs_ = data_parallel(t.graph, "data", n);
    if (w.at("strategy") == "zero3") specs_ = joined(specs_, fully_sharded(t.graph, "data", n));
    program_ = std::make_unique<Program>(
        compile(t.graph, shard(ranks_, specs_) | generic() | cpu({.threads = w.at("threads").get<int>()})));
    run_ = std::make_unique<Context>(*program_);
    for (const nn::Entry& e : t.net.entries()) {
      std::vector<i64> shape;
      for (const Dim& d : e.tensor.shape()) shape.push_back(*d.constant());
      set(e.name, shape, parameter_values(e.name, shape));
    }
    show(w);
  }
  void step() { run_->run(); }
  float loss() const { return run_->scalar("loss"); }
  const Program& program() const { return *program_; }
  Context& context() { return *run_; }

 private:
  template <class T>
  void set(const std::string& name, std::vector<i64> shape, const std::vector<T>& all) {
    const DType type = std::is_same_v<T, float> ? DType::F32 : DType::I64;
    const ArrayPart p =
        part_of(ranks_.mesh(), ranks_.rank(), specs_, name, {type, std::move(shape), std::as_bytes(std::span(all))});
    run_->set_bytes(name, p.bytes.data(), p.bytes.size());
  }
  void show(const Json& w) {
    const i64 batch = w.at("batch").get<i64>(), length = w.at("context").get<i64>() + 1;
    const std::vector<i64> text =
        class_values("tokens", static_cast<std::size_t>(batch * length), w.at("vocabulary").get<i64>());
    std::vector<i64> x, y;
    for (i64 i = 0; i < static_cast<i64>(text.size()); ++i) {
      if (i % length < length - 1) x.push_back(text[static_cast<std::size_t>(i)]);
      if (i % length > 0) y.push_back(text[static_cast<std::size_t>(i)]);
    }
    set("x", {batch, length - 1}, x), set("y", {static_cast<i64>(y.size())}, y);
  }

  Collectives ranks_;
  ShardSpecs specs_;
  std::unique_ptr<Program> program_;
  std::unique_ptr<Context> run_;
};

class RankTraining final : public Workload {
 public:
  explicit RankTraining(const Json& w)
      : ranks_(mpi_ranks()),
        recorder_(std::make_shared<Recorder>(ranks_)),
        training_(w),
        together_(w, training_, recorder_),
        alone_(w, training_, std::make_shared<Alone>(ranks_->rank(), ranks_->size())) {}

  void call() override {
    together_.step();
    if (losses_.size() <= kSteps) losses_.push_back(together_.loss());
  }
  Json answer() override {
    while (losses_.size() <= kSteps) call();
    alone_.step();
    recorder_->record(true);
    call();
    recorder_->record(false);
    exchanges_ = std::make_unique<Replay>(ranks_, recorder_->all());
    return summary(std::span(losses_).last(1));
  }
  // A step, the same without exchanges, and the exchanges without a step.
  Json measure(int calls) override {
    meet(*ranks_);
    Json reply = Workload::measure(calls);
    meet(*ranks_);
    const double begin = now();
    for (int k = 0; k < calls; ++k) alone_.step();
    reply["alone_s"] = (now() - begin) / calls;
    double exchanges = 0;
    const double cpu = cpu_seconds();
    for (int k = 0; k < calls; ++k) exchanges += exchanges_->run();
    reply["exchange_s"] = exchanges / calls;
    reply["exchange_cpu_s"] = (cpu_seconds() - cpu) / calls;
    return reply;
  }
  Json facts() override {
    const Program& p = together_.program();
    return {{"parameters", training_.net.count()},
            {"losses", losses_},
            {"kernels", p.kernels()},
            {"planned_bytes", p.plan().total_bytes()},
            {"exchanged", exchanges_->summary()},
            {"kernels_ms", profile()}};
  }

 private:
  // Milliseconds of a step by what they are for, of steps that are not in the table.
  Json profile() {
    Context& c = together_.context();
    c.profile(true);
    for (int k = 0; k < kProfiled; ++k) together_.step();
    const Profile p = c.profile();
    c.profile(false);
    const double ms = 1e3 / static_cast<double>(p.runs);
    std::map<std::string, double> parts;
    double kernels = 0;
    for (const KernelProfile& k : p.kernels) {
      const auto has = [&](const char* word) { return k.what.find(word) != std::string::npos; };
      const auto named = [&](const char* word) { return k.name.find(word) != std::string::npos; };
      const bool exchange = named("all_reduce") || named("all_gather") || named("reduce_scatter");
      const bool update = has("optim") || has("clip_grad_norm");
      parts[exchange                              ? "exchanges"
            : has("backward") || has("gradients") ? "backward"
            : update                              ? "update"
                                                  : "forward"] += k.seconds * ms;
      kernels += k.seconds * ms;
    }
    parts["outside"] = p.seconds * ms - kernels;
    return parts;
  }

  std::shared_ptr<Communicator> ranks_;
  std::shared_ptr<Recorder> recorder_;
  Training training_;
  RankProgram together_, alone_;
  std::unique_ptr<Replay> exchanges_;
  std::vector<float> losses_;
};

std::unique_ptr<Workload> make(const Json& w) {
  if (w.at("kind") == "all-reduce") return std::make_unique<Sum>(w);
  return std::make_unique<RankTraining>(w);
}

}  // namespace
}  // namespace lc::bench

int main() { return lc::bench::serve({lc::bench::make, "lightcone " LIGHTCONE_VERSION}); }
