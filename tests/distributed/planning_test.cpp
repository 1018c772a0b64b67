// Plans of a rank: its memory is that of the compiled program on every rank, its messages are those that ranks send,
// and times follow from links by arithmetic that is done here by hand.
#include <atomic>
#include <chrono>

#include <gtest/gtest.h>

#include "jobs.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/base/error.h"
#include "lightcone/distributed/planning/pipeline_plan.h"
#include "lightcone/distributed/planning/planned_ranks.h"
#include "lightcone/distributed/planning/step_plan.h"
#include "lightcone/distributed/sharding/stages.h"
#include "lightcone/distributed/sharding/strategies.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "ranks.h"

namespace lc {
namespace {

using distributed::Messages;
using distributed::messages_of;
using test::Job;
using Operation = Collective::Operation;

Compiler device() { return generic() | cpu({.threads = 1, .compiler = false}); }

Cluster some_cluster(int per_machine = 1 << 20) {
  Cluster c;
  c.ranks_per_machine = per_machine;
  c.between = parse_link("10us,1GB/s"), c.within = parse_link("1us,10GB/s");
  c.flops_per_second = 1e9, c.bytes_per_second = 1e9;
  return c;
}

Program planned_program(const Job& j, const Mesh& mesh, const ShardSpecs& specs, int rank, const ShardOptions& how) {
  const Collectives ranks(mesh, planned_ranks(mesh.size(), rank));
  return compile(j.graph, shard(ranks, specs, how) | device());
}

StepPlan planned(const Job& j, const Mesh& mesh, const ShardSpecs& specs, const Cluster& cluster, int rank = 0,
                 const StepPlanOptions& o = {}, const ShardOptions& how = {}) {
  return plan_step(planned_program(j, mesh, specs, rank, how), cluster, o);
}

// The exchanges of a rank, and what it sends in them as the transport over MPI would.
class Counted final : public Communicator {
 public:
  explicit Counted(Communicator& ranks) : ranks_(ranks) {}
  int rank() const override { return ranks_.rank(); }
  int size() const override { return ranks_.size(); }
  std::string name() const override { return ranks_.name(); }
  void run(const Collective& c, const void* in, void* out) override {
    calls += c.operation != Operation::Send || c.place == 0;  // a message is planned by its sender alone
    bytes += sent(c, c.n * size_of(c.dtype));
    ranks_.run(c, in, out);
  }
  void run_together(const Collective& c, std::span<const Piece> pieces) override {
    ++calls;
    for (const Piece& p : pieces) {
      Collective one = c;
      one.n = p.n;
      bytes += sent(one, c.n * size_of(c.dtype));
    }
    ranks_.run_together(c, pieces);
  }
  std::size_t calls = 0, bytes = 0;

 private:
  static std::size_t sent(const Collective& c, std::size_t at_once) {
    const std::size_t row = c.n * size_of(c.dtype), ranks = c.group.size(), others = ranks - 1;
    if (c.operation == Operation::Send && c.place == 1) return 0;
    if (c.operation != Operation::AllReduce || at_once * ranks <= 32768) return others * row;
    // Others' parts go to them, and this rank's own, when it is added up, to all.
    const std::size_t each = (c.n + others) / ranks * size_of(c.dtype),
                      begin = std::min(row, each * static_cast<std::size_t>(c.place)),
                      own = std::min(row, begin + each) - begin;
    return row - own + others * own;
  }
  Communicator& ranks_;
};

void run_once(const Program& p) {
  Context c(p);
  const auto live = p.graph().live();
  for (NodeId id = 0; id < p.graph().size(); ++id) {
    const Node& n = p.graph()[id];
    if (n.op != Op::Input || !live[id]) continue;
    c.set(n.name, std::vector<float>(static_cast<std::size_t>(*product(n.shape).constant()), 0));
  }
  c.run();
}

// Every rank runs, and needs what was planned for it: rank 0's plan holds for all of them if they are alike.
void expect_as_planned(const Job& j, const Mesh& mesh, const ShardSpecs& specs, const ShardOptions& how = {}) {
  const StepPlan first = planned(j, mesh, specs, some_cluster(), 0, {}, how);
  const auto thrown = test::run_ranks(mesh, [&](const Collectives& ranks) {
    const auto counted = std::make_shared<Counted>(ranks.communicator());
    const Program p = compile(j.graph, shard(Collectives(mesh, counted), specs, how) | device());
    run_once(p);
    const StepPlan mine = planned(j, mesh, specs, some_cluster(), ranks.rank(), {}, how);
    std::size_t calls = 0;
    for (const PlannedCollective& c : mine.collectives) calls += c.ranks > 1 ? c.times : 0;
    if (calls != counted->calls) throw Error("test", str_cat(counted->calls, " exchanges, planned ", calls));
    if (static_cast<double>(counted->bytes) != mine.bytes_within)
      throw Error("test", str_cat(counted->bytes, " bytes sent, planned ", mine.bytes_within));
    for (const StepPlan& plan : {how.pipeline.empty() ? first : mine, mine})
      if (plan.memory.program != p.plan().total_bytes())
        throw Error("test", str_cat(p.plan().total_bytes(), " bytes of memory, planned ", plan.memory.program));
  });
  for (const std::string& t : thrown) EXPECT_EQ(t, "");
}

TEST(Planning, ExchangesAndMemoryAreWhatRanksNeed) {
  const Mesh four({{"data", 4}}), eight({{"data", 8}}), both({{"data", 2}, {"model", 2}});
  const Job mlp = test::mlp(), gpt = test::gpt(), resnet = test::resnet(), llama = test::llama();
  expect_as_planned(mlp, four, data_parallel(mlp.graph, "data", 4));
  expect_as_planned(resnet, eight, data_parallel(resnet.graph, "data", 8));
  expect_as_planned(llama, four, joined(data_parallel(llama.graph, "data", 4), fully_sharded(llama.graph, "data", 4)));
  expect_as_planned(gpt, Mesh({{"model", 2}}), test::kMegatron);
  expect_as_planned(gpt, both, joined(data_parallel(gpt.graph, "data", 2), test::kMegatron));
  expect_as_planned(gpt, both,
                    joined(joined(data_parallel(gpt.graph, "data", 2), test::kMegatron),
                           fully_sharded(gpt.graph, "data", 2, ShardedState::Moments)));
}

TEST(Planning, LargeArraysAreSentInParts) {
  Job j;
  const Tensor x = j.graph.input("x", {8, 301}), y = j.graph.input("y", {8, 101});
  j.train(mean(square(sub(linear(x, j.parameter("w", {101, 301}, 0.1)), y))));
  for (const int ranks : {2, 4, 8})
    expect_as_planned(j, Mesh({{"data", ranks}}), data_parallel(j.graph, "data", ranks));
}

// ---- pipelines ------------------------------------------------------------------------------------------------------

TEST(Planning, StagesNeedWhatIsPlannedForThem) {
  const Job gpt = test::gpt(), llama = test::llama();
  const ShardOptions how{.serial = {{"micro", 4}}, .pipeline = "pipe"};
  expect_as_planned(gpt, Mesh({{"pipe", 2}}), data_parallel(gpt.graph, "micro", 4), how);
  expect_as_planned(llama, Mesh({{"pipe", 2}, {"data", 2}}),
                    joined(data_parallel(llama.graph, "data", 2), data_parallel(llama.graph, "micro", 2)),
                    {.serial = {{"micro", 2}}, .pipeline = "pipe"});
}

// Stages that take the same time for each part, and whose messages take none, wait as long as 1F1B has to.
TEST(Planning, StagesWaitForTheBubbleOfTheirSchedule) {
  using Kind = PlannedStep::Kind;
  constexpr int kStages = 4, kParts = 7;
  constexpr double kForward = 1, kBackward = 2;
  for (const auto schedule : {PipelineSchedule::OneForwardOneBackward, PipelineSchedule::AllForwardAllBackward}) {
    const auto ticks = distributed::pipeline_ticks(schedule, kStages, kParts);
    std::vector<StepPlan> stages(kStages);
    for (int s = 0; s < kStages; ++s) {
      const auto &f = ticks.forward[static_cast<std::size_t>(s)], &b = ticks.backward[static_cast<std::size_t>(s)];
      StepPlan& stage = stages[static_cast<std::size_t>(s)];
      stage.arithmetic_seconds = kParts * (kForward + kBackward);
      stage.memory.program = static_cast<std::size_t>(10 - s);
      const auto message = [&](bool backward, int from, int part) {
        return static_cast<std::uint64_t>((backward ? 100 : 0) + 10 * part + from);
      };
      const auto turn = [&](bool backward, int part) {
        const int before = backward ? s + 1 : s - 1, behind = backward ? s - 1 : s + 1;
        const auto inside = [](int k) { return k >= 0 && k < kStages; };
        if (inside(before)) stage.steps.push_back({.kind = Kind::Receive, .message = message(backward, before, part)});
        stage.steps.push_back({.kind = Kind::Kernel, .seconds = backward ? kBackward : kForward});
        if (inside(behind))
          stage.steps.push_back({.kind = Kind::Exchange, .sends = true, .message = message(backward, s, part)});
      };
      for (int now = 0; now < ticks.total; ++now)
        for (int part = 0; part < kParts; ++part) {
          if (f[static_cast<std::size_t>(part)] == now) turn(false, part);
          if (b[static_cast<std::size_t>(part)] == now) turn(true, part);
        }
    }
    const PipelinePlan p = join_stages(stages);
    for (const StepPlan& s : p.stages) {
      EXPECT_DOUBLE_EQ(s.seconds, (kParts + kStages - 1) * (kForward + kBackward));
      EXPECT_DOUBLE_EQ(s.waiting_seconds, (kStages - 1) * (kForward + kBackward));
      EXPECT_DOUBLE_EQ(s.exposed_seconds, 0);
    }
    EXPECT_EQ(p.fullest, 0U);
    // A circle: the first stage waits for a message before it sends what the second one waits for.
    std::ranges::reverse(stages[0].steps);
    EXPECT_THROW(join_stages(stages), Error);
  }
}

// Each second of a step is spent on something, on every stage, and more parts leave less of it for waiting.
TEST(Planning, MorePartsHaveAShorterBubble) {
  const Job j = test::gpt();
  Cluster cluster = some_cluster();
  cluster.within = parse_link("1ns,1TB/s");
  const auto waiting = [&](int parts) {
    const Mesh mesh({{"pipe", 2}});
    const ShardOptions how{.serial = {{"micro", parts}}, .pipeline = "pipe"};
    std::vector<StepPlan> stages;
    for (const int rank : {0, 1})
      stages.push_back(plan_step(planned_program(j, mesh, data_parallel(j.graph, "micro", parts), rank, how), cluster));
    const PipelinePlan p = join_stages(std::move(stages));
    double sum = 0;
    for (const StepPlan& s : p.stages) {
      EXPECT_DOUBLE_EQ(s.seconds, p.seconds());
      EXPECT_NEAR(s.computing_seconds() + s.exposed_seconds + s.waiting_seconds, s.seconds, 1e-9 * s.seconds);
      EXPECT_GE(s.exposed_seconds, -1e-9 * s.seconds);
      sum += s.waiting_seconds / s.seconds;
    }
    return sum;
  };
  EXPECT_LT(waiting(4), 0.8 * waiting(1));
}

TEST(Planning, MemoryHasParts) {
  const Job gpt = test::gpt(optim::AdamW{.lr = 0.01});
  const Mesh mesh({{"data", 4}});
  const PlannedMemory m =
      planned(gpt, mesh, joined(data_parallel(gpt.graph, "data", 4), fully_sharded(gpt.graph, "data", 4)),
              some_cluster())
          .memory;
  std::size_t parameters = 0;
  for (const auto& [name, v] : gpt.parameters) parameters += v.size() * sizeof(float);
  // Every parameter has an axis that four ranks divide but the table of 6 places, whose width they divide.
  EXPECT_EQ(m.parameters, parameters / 4);
  EXPECT_NEAR(static_cast<double>(m.states), 2.0 * static_cast<double>(parameters) / 4, 200);  // and counters
  EXPECT_GE(m.program, m.parameters + m.states + m.inputs + m.gradients + m.gathered + m.values);
  EXPECT_LE(m.program, m.parameters + m.states + m.inputs + m.gradients + m.gathered + m.values + 100 * 64);
}

// ---- messages and their time ----------------------------------------------------------------------------------------

Collective collective(Operation operation, std::size_t n, const std::vector<int>& group) {
  return {.operation = operation, .n = n, .group = group};
}

TEST(Planning, MessagesCrossMachines) {
  const std::vector<int> all{0, 1, 2, 3, 4, 5, 6, 7}, strided{0, 4}, near{0, 1, 2, 3};
  const Cluster two = some_cluster(4);  // machines of four ranks
  const Messages m = messages_of(collective(Operation::AllReduce, 1 << 20, all), two);
  const double part = (1 << 20) * 4.0 / 8;
  EXPECT_EQ(m.between.bytes, 2 * 4 * part);
  EXPECT_EQ(m.within.bytes, 2 * 3 * part);
  EXPECT_EQ(m.between.rounds, 2);
  EXPECT_EQ(m.between.messages, 8);
  EXPECT_EQ(m.within.messages, 6);
  EXPECT_EQ(m.buffer_bytes, std::size_t{1} << 22);
  EXPECT_EQ(messages_of(collective(Operation::AllGather, 100, strided), two).between.bytes, 400);
  EXPECT_EQ(messages_of(collective(Operation::AllGather, 100, strided), two).within.bytes, 0);
  EXPECT_EQ(messages_of(collective(Operation::ReduceScatter, 100, near), two).between.bytes, 0);
  EXPECT_EQ(messages_of(collective(Operation::ReduceScatter, 100, near), two).within.bytes, 3 * 400);
  EXPECT_EQ(messages_of(collective(Operation::AllReduce, 100, {0}), two).within.bytes, 0);
}

TEST(Planning, TimeIsLatencyAndBytes) {
  Cluster c = some_cluster(1);
  // One round of 3 messages: 10 us for the first and as long for each of the others, and 3 MB at 1 GB/s.
  const std::vector<int> four{0, 1, 2, 3};
  const Messages m = messages_of(collective(Operation::AllGather, 250000, four), c);
  EXPECT_DOUBLE_EQ(distributed::seconds_of(m, c), 3 * 10e-6 + 3e6 / 1e9);
  c.between = parse_link("10us,1GB/s,1us");
  EXPECT_DOUBLE_EQ(distributed::seconds_of(m, c), 12e-6 + 3e6 / 1e9);
  const Messages sum = messages_of(collective(Operation::AllReduce, 250000, four), c);
  c.reduced_bytes_per_second = 2e9;
  EXPECT_DOUBLE_EQ(distributed::seconds_of(sum, c), 2 * 12e-6 + 1.5e6 / 1e9 + 1e6 / 2e9);
  // Within a machine ranks that share a processor take turns.
  c = some_cluster(4);
  const double alone = distributed::seconds_of(messages_of(collective(Operation::AllGather, 250000, four), c), c);
  c.ranks_per_processor = 2;
  EXPECT_DOUBLE_EQ(distributed::seconds_of(messages_of(collective(Operation::AllGather, 250000, four), c), c),
                   2 * alone);
}

TEST(Planning, OverlapHidesWhatItCan) {
  const Job gpt = test::gpt();
  const Mesh mesh({{"data", 4}});
  const auto specs = data_parallel(gpt.graph, "data", 4);
  for (const char* link : {"1us,10GB/s", "10us,1MB/s", "5ms,1GB/s"}) {
    Cluster c = some_cluster(1);
    c.between = parse_link(link);
    const StepPlan one = planned(gpt, mesh, specs, c), other = planned(gpt, mesh, specs, c, 0, {.overlap = true});
    EXPECT_LE(one.seconds, one.computing_seconds() + one.exchange_seconds + 1e-12);
    EXPECT_GE(one.seconds, std::max(one.computing_seconds(), one.exchange_seconds) - 1e-12);
    EXPECT_LE(one.exposed_seconds, one.exchange_seconds + 1e-12);
    EXPECT_GE(other.seconds, std::max(other.computing_seconds(), other.exchange_seconds) - 1e-12);
    EXPECT_EQ(other.exchange_seconds, one.exchange_seconds);
  }
}

TEST(Planning, WithoutASpareProcessorExchangesTakeTheTimeOfKernels) {
  const Job gpt = test::gpt();
  const Collectives ranks(Mesh({{"data", 4}}), planned_ranks(4));
  const ShardOptions small{.exchanges = {.bucket_bytes = 4096}};
  const Program p = compile(gpt.graph, shard(ranks, data_parallel(gpt.graph, "data", 4), small) | device());
  Cluster c = some_cluster();  // one machine
  c.flops_per_second = c.bytes_per_second = 1e8;
  const StepPlan hidden = plan_step(p, c);
  EXPECT_LT(hidden.seconds, hidden.computing_seconds() + 0.5 * hidden.exchange_seconds);  // or this test says nothing
  c.spare_processors = 0;
  const StepPlan shared = plan_step(p, c);
  EXPECT_NEAR(shared.seconds, shared.computing_seconds() + shared.exchange_seconds, 1e-9);
  c.spare_processors = 0.5;
  EXPECT_LT(plan_step(p, c).seconds, shared.seconds);
  EXPECT_GT(plan_step(p, c).seconds, hidden.seconds);
  // What network cards send needs no processor; sockets do.
  c.ranks_per_machine = 1, c.spare_processors = 0;
  const StepPlan cards = plan_step(p, c);
  c.copied_between = parse_link("1us,1GB/s");
  EXPECT_GT(plan_step(p, c).seconds, cards.seconds);
}

TEST(Planning, MeasuredSecondsStandInForRates) {
  const Job mlp = test::mlp();
  const Collectives ranks(Mesh({{"data", 2}}), planned_ranks(2));
  const Program p = compile(mlp.graph, shard(ranks, data_parallel(mlp.graph, "data", 2)) | device());
  Cluster c = some_cluster();
  c.ranks_per_processor = 1.5;
  StepPlanOptions o;
  o.kernel_seconds.assign(p.graph().size(), 1e-3), o.other_seconds = 5e-3;
  const StepPlan plan = plan_step(p, c, o);
  EXPECT_NEAR(plan.computing_seconds(), 1e-3 * static_cast<double>(plan.kernels) + 5e-3, 1e-9);
  EXPECT_TRUE(plan.bound() == "arithmetic" || plan.bound() == "memory traffic");
  o.kernel_seconds.pop_back();
  EXPECT_THROW(plan_step(p, c, o), Error);
  EXPECT_THROW(plan_step(p, Cluster{}), Error);
}

TEST(Planning, ThousandsOfRanksInOneProcess) {
  const Job gpt = test::gpt();
  const Mesh mesh({{"pod", 512}, {"model", 2}});
  const Collectives ranks(mesh, planned_ranks(1024, 3));
  const StepPlan plan = plan_step(compile(gpt.graph, shard(ranks, test::kMegatron) | device()), some_cluster(8));
  EXPECT_GT(plan.bytes_within, 0);
  EXPECT_EQ(plan.bytes_between, 0);
}

// ---- communicators --------------------------------------------------------------------------------------------------

TEST(Planning, PlannedRanksDoNotRun) {
  const auto ranks = planned_ranks(4, 1);
  EXPECT_EQ(ranks->size(), 4);
  EXPECT_EQ(ranks->rank(), 1);
  const std::vector<int> group{0, 1, 2, 3};
  float x = 3, y[4] = {};
  try {
    ranks->run({.n = 1, .group = group, .place = 1}, &x, y);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("rank 1 of 4 is planned"), std::string::npos) << e.what();
  }
  planned_ranks(4, 1, PlannedExchange::Pretended)
      ->run({.operation = Operation::AllGather, .n = 1, .group = group, .place = 1}, &x, y);
  for (const float v : y) EXPECT_EQ(v, 3);
  EXPECT_THROW(planned_ranks(4, 4), Error);
}

TEST(Planning, SlowedRanksWaitAsLongAsTheirLinksSay) {
  Cluster c = some_cluster(1);
  c.between = parse_link("5ms,10MB/s");
  std::atomic<double> least{1e9};
  const auto thrown = test::run_ranks(Mesh({{"data", 2}}), [&](const Collectives& ranks) {
    const auto slow = slowed(std::shared_ptr<Communicator>(std::shared_ptr<void>(), &ranks.communicator()), c);
    const std::vector<int> group{0, 1};
    const std::vector<float> in(50000, 1);
    std::vector<float> out(100000);
    const auto begin = std::chrono::steady_clock::now();
    slow->run({.operation = Operation::AllGather, .n = in.size(), .group = group, .place = ranks.rank()}, in.data(),
              out.data());
    least = std::min(least.load(), std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    if (out[99999] != 1) throw Error("test", "other numbers came");
  });
  for (const std::string& t : thrown) EXPECT_EQ(t, "");
  EXPECT_GE(least, 0.005 + 0.02);
}

TEST(Planning, LinksAsText) {
  const Link l = parse_link("5us,46GB/s");
  EXPECT_DOUBLE_EQ(l.latency, 5e-6);
  EXPECT_DOUBLE_EQ(1 / l.seconds_per_byte, 46e9);
  EXPECT_DOUBLE_EQ(l.seconds_per_message, 5e-6);
  EXPECT_DOUBLE_EQ(1 / parse_link("1ms, 1Gbit/s, 0s").seconds_per_byte, 1.25e8);
  EXPECT_EQ(parse_link("1ms, 1Gbit/s, 0s").seconds_per_message, 0);
  EXPECT_DOUBLE_EQ(parse_link("5e-1us,1e3MB/s").latency, 5e-7);
  EXPECT_DOUBLE_EQ(parse_link("5e-1us,1e3MB/s").seconds_per_byte, 1e-9);
  for (const char* wrong : {"", "5us", "5us,", "5,1GB/s", "-1us,1GB/s", "1us,0GB/s", "1us,1GB", "1us,1GB/s,2us,3us"})
    EXPECT_THROW(parse_link(wrong), Error) << wrong;
  EXPECT_DOUBLE_EQ(parse_quantity("80GB", "B"), 80e9);
  EXPECT_DOUBLE_EQ(parse_quantity("989TFLOP/s", "FLOP/s"), 989e12);
  EXPECT_DOUBLE_EQ(parse_quantity("1e9", "B"), 1e9);
  for (const char* wrong : {"", "GB", "0GB", "-1B", "3 bytes", "1KB"})
    EXPECT_THROW(parse_quantity(wrong, "B"), Error) << wrong;
}

}  // namespace
}  // namespace lc
