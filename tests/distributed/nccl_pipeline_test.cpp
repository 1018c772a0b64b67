// Stages of pipelines and rings of attention on CUDA devices that NCCL joins, by simulators of both, which lets a send
// wait in its stream until the other rank receives.
#include <chrono>
#include <mutex>
#include <numeric>

#include "lightcone/distributed/sharding/ring.h"
#include "lightcone/distributed/sharding/strategies.h"
#include "nccl_ranks.h"
#include "training.h"

namespace lc::test {
namespace {

using namespace on_nccl;

// ---- messages by hand -----------------------------------------------------------------------------------------------

// Rank 0 sends x to rank 1 and gets 2 x back; the numbers of messages are those given.
Graph there_and_back(const Collectives& ranks, const Shape& shape, DType type, std::int64_t first = 0) {
  Graph g;
  const Tensor x = g.input("x", shape, type);
  if (ranks.rank() == 0) {
    const Tensor sent = ranks.send(x, 1, first, g.constant(0));
    g.output("y", ranks.receive({type, shape}, 1, first + 1, sent));
  } else {
    const Tensor here = ranks.receive({type, shape}, 0, first, g.constant(0));
    const Tensor sent = ranks.send(add(here, here), 0, first + 1, here);
    g.output("y", ranks.ordered(x, sent));
  }
  return g;
}

Floats counted(std::size_t n, int from) {
  Floats v(n);
  std::iota(v.begin(), v.end(), static_cast<float>(from));
  return v;
}

// Runs it several times, the later ones by a recorded graph.
void expect_there_and_back(const Rank& r, std::size_t n, DType type) {
  Context run(compile(there_and_back(r.collectives, {static_cast<std::int64_t>(n)}, type), r.compiler()));
  for (int k = 0; k < 5; ++k) {
    run.set("x", counted(n, k)).run();
    Floats want = counted(n, k);
    for (float& v : want) v *= r.collectives.rank() == 0 ? 2 : 1;
    EXPECT_EQ(run.get("y"), want) << n << " of " << name(type);
  }
}

TEST(NcclMessages, GoThereAndBack) {
  FakeNccl nccl;
  const long before = nccl.get("tasks");
  expect_none(on_devices(Mesh({{"pipe", 2}}), [](const Rank& r) {
    const Program p = compile(there_and_back(r.collectives, {8}, DType::F32), r.compiler());
    EXPECT_TRUE(p.notes().empty());  // the host computes nothing
    expect_there_and_back(r, 33, DType::F32);
    expect_there_and_back(r, 7, DType::F16);
    expect_there_and_back(r, 5, DType::I64);
    expect_there_and_back(r, 1, DType::U8);
  }));
  EXPECT_EQ(nccl.get("tasks") - before, 4 * 5 * 4);  // programs, runs, a send and a receive of two ranks
  EXPECT_EQ(nccl.get("live"), 0);
}

// Ranks that a launcher started have no other way to each other than NCCL, by which they make groups, too.
TEST(NcclMessages, WithoutAHost) {
  const Mesh mesh({{"pipe", 2}, {"data", 2}});
  std::vector<std::string> thrown(4);
  std::vector<std::thread> all;
  for (int k = 0; k < 4; ++k)
    all.emplace_back([&, k] {
      try {
        const auto device = backends::cuda::open_device(device_of(k));
        const Rank r{Collectives(mesh, nccl_ranks(device, LaunchedRank{k, 4, k, "127.0.0.1:29503"},
                                                  {.library = paths::kFakeNccl, .timeout_s = 20})),
                     device};
        const Collectives& ranks = r.collectives;
        const bool first = k < 2;
        Graph g;
        const Tensor x = g.input("x", {6});
        // The stages exchange among themselves at different places of their programs.
        if (first) {
          const Tensor y = ranks.all_reduce(x, {"data"}), sent = ranks.send(y, k + 2, 0, g.constant(0));
          g.output("y", ranks.receive({DType::F32, {6}}, k + 2, 1, sent));
        } else {
          const Tensor y = ranks.receive({DType::F32, {6}}, k - 2, 0, g.constant(0));
          const Tensor sum = ranks.all_reduce(y, {"data"}), sent = ranks.send(sum, k - 2, 1, y);
          g.output("y", ranks.ordered(y, sent));
        }
        Context run(compile(g, r.compiler()));
        for (int round = 0; round < 4; ++round) {
          run.set("x", Floats(6, static_cast<float>(k + round))).run();
          EXPECT_EQ(run.get("y"), Floats(6, static_cast<float>((first ? 2 : 1) * (1 + 2 * round)))) << k;
        }
      } catch (const std::exception& e) {
        thrown[static_cast<std::size_t>(k)] = e.what();
      }
    });
  for (std::thread& t : all) t.join();
  expect_none(thrown);
  EXPECT_EQ(std::getenv("NCCL_COMM_ID"), nullptr);
}

TEST(NcclMessages, RanksMustAgree) {
  const auto differing = [](const std::function<Graph(const Collectives&)>& graph) {
    return on_devices(Mesh({{"pipe", 2}}), [&](const Rank& r) {
      Context run(compile(graph(r.collectives), r.compiler()));
      run.set("x", counted(4, 0)).run();
    });
  };
  for (const std::string& what : differing([](const Collectives& c) {
         return there_and_back(c, {4}, DType::F32, c.rank());  // rank 0 sends message 0, rank 1 waits for message 1
       }))
    EXPECT_PRED2(contains, what, "rank 1 send of 4 f32 among 2 ranks, operation 1");
  for (const std::string& what :
       differing([](const Collectives& c) { return there_and_back(c, {4}, c.rank() ? DType::I32 : DType::F32); }))
    EXPECT_PRED2(contains, what, "rank 1 send of 4 i32 among 2 ranks, operation 0");
}

double seconds_of(const std::function<void()>& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// One rank goes before a run, the first one or a recorded one. The other one, which sends or receives first, throws
// within the time-out.
TEST(NcclMessages, APeerThatDoesNotCome) {
  for (const int gone : {0, 1})
    for (const int last : {0, 1, 4}) {
      std::vector<std::string> thrown;
      EXPECT_LT(seconds_of([&] {
                  thrown = on_devices(
                      Mesh({{"pipe", 2}}),
                      [&](const Rank& r) {
                        Context run(compile(there_and_back(r.collectives, {4}, DType::F32), r.compiler()));
                        for (int k = 0; k < 6; ++k) {
                          if (k == last && r.collectives.rank() == gone) throw Error("test", "this rank has no disk");
                          run.set("x", counted(4, k)).run().get("y");
                        }
                      },
                      0.5);
                }),
                30);
      EXPECT_EQ(thrown[static_cast<std::size_t>(gone)], "test: this rank has no disk");
      // The first run asks the host, which sees the end at once.
      EXPECT_PRED2(contains, thrown[static_cast<std::size_t>(1 - gone)],
                   last ? "waits for other ranks since 0.5 s" : str_cat("rank ", gone, " has ended"))
          << last;
    }
  expect_none(on_devices(Mesh({{"pipe", 2}}), [](const Rank& r) { expect_there_and_back(r, 3, DType::F32); }));
}

// Without a host nobody says that the other rank has gone; NCCL's communicator waits for it, and the time-out ends
// that.
TEST(NcclMessages, APeerThatDoesNotComeWithoutAHost) {
  for (const int gone : {0, 1}) {
    std::vector<std::string> thrown(2);
    std::vector<std::thread> all;
    for (int k = 0; k < 2; ++k)
      all.emplace_back([&, k] {
        try {
          const auto device = backends::cuda::open_device(device_of(k));
          const Rank r{Collectives(Mesh({{"pipe", 2}}), nccl_ranks(device, LaunchedRank{k, 2, k, "127.0.0.1:29505"},
                                                                   {.library = paths::kFakeNccl, .timeout_s = 0.5})),
                       device};
          if (k == gone) return;
          Context run(compile(there_and_back(r.collectives, {4}, DType::F32), r.compiler()));
          run.set("x", counted(4, 0)).run().get("y");
        } catch (const std::exception& e) {
          thrown[static_cast<std::size_t>(k)] = e.what();
        }
      });
    for (std::thread& t : all) t.join();
    EXPECT_EQ(thrown[static_cast<std::size_t>(gone)], "");
    EXPECT_PRED2(contains, thrown[static_cast<std::size_t>(1 - gone)], "waits for other ranks since 0.5 s");
  }
}

// ---- pipelines ------------------------------------------------------------------------------------------------------

// Stages on devices train as one rank on the processor does, within rounding; all ranks see the same losses.
void expect_as_one_rank_on_devices(const Job& j, const Mesh& mesh, const ShardSpecs& specs, ShardOptions options,
                                   int parts) {
  constexpr int kFew = 5;
  options.serial = {{"micro", parts}}, options.pipeline = "pipe";
  const ShardSpecs all_specs = joined(specs, data_parallel(j.graph, "micro", parts)),
                   of_ranks = without_serial(all_specs, options.serial);
  const Trained one = train(j, device(), Mesh(), 0, {}, kFew);
  std::vector<Trained> all(static_cast<std::size_t>(mesh.size()));
  expect_none(on_devices(mesh, [&](const Rank& r) {
    const int rank = r.collectives.rank();
    all[static_cast<std::size_t>(rank)] =
        train(j, shard(r.collectives, all_specs, options) | r.compiler(), mesh, rank, of_ranks, kFew);
  }));
  std::size_t parameters = 0;
  for (std::size_t k = 0; k < all.size(); ++k) {
    const std::string at = str_cat(mesh, ", rank ", k);
    expect_near(all[k].losses, one.losses, 2e-5, at + ", losses");
    expect_near(all[k].norms, one.norms, 2e-4, at + ", norms");
    EXPECT_EQ(all[k].losses, all[0].losses) << at;
    EXPECT_GT(all[k].fired.count("send"), 0u) << at;
    for (const auto& [name, v] : all[k].parameters) {
      const ArrayPart a =
          part_of(mesh, static_cast<int>(k), of_ranks, name, floats(one.parameters.at(name), shape_of(j.graph, name)));
      Floats want(a.bytes.size() / sizeof(float));
      std::memcpy(want.data(), a.bytes.data(), a.bytes.size());
      expect_near(v, want, 2e-4, at + ", " + name);
    }
    parameters += all[k].parameters.size();
  }
  EXPECT_GE(parameters, one.parameters.size());
}

const optim::SGD kSgd{.lr = 0.1, .momentum = 0.9};
constexpr auto kInTurn = PipelineSchedule::OneForwardOneBackward,
               kForwardFirst = PipelineSchedule::AllForwardAllBackward;

TEST(NcclPipeline, TrainsAnMlp) {
  const Job j = mlp();
  expect_as_one_rank_on_devices(j, Mesh({{"pipe", 2}}), {}, {.schedule = kInTurn}, 4);
  expect_as_one_rank_on_devices(j, Mesh({{"pipe", 2}}), {}, {.schedule = kForwardFirst}, 4);
  expect_as_one_rank_on_devices(j, Mesh({{"pipe", 4}}), {}, {.schedule = kInTurn}, 4);
  expect_as_one_rank_on_devices(j, Mesh({{"pipe", 4}}), {}, {.schedule = kForwardFirst}, 8);
}

TEST(NcclPipeline, TrainsAGpt) {
  const Job j = gpt();
  expect_as_one_rank_on_devices(j, Mesh({{"pipe", 2}}), {}, {.schedule = kForwardFirst}, 4);
  expect_as_one_rank_on_devices(j, Mesh({{"pipe", 4}}), {}, {.schedule = kInTurn}, 4);
}

// Stages of two ranks each, whose collectives stand between the messages.
TEST(NcclPipeline, WithOtherAxes) {
  const Job j = gpt(kSgd, 4, 1), small = mlp();
  expect_as_one_rank_on_devices(j, Mesh({{"pipe", 2}, {"data", 2}}), data_parallel(j.graph, "data", 2), {}, 2);
  expect_as_one_rank_on_devices(small, Mesh({{"data", 2}, {"pipe", 2}}), data_parallel(small.graph, "data", 2), {}, 4);
  expect_as_one_rank_on_devices(small, Mesh({{"pipe", 2}, {"data", 2}}),
                                joined(data_parallel(small.graph, "data", 2), fully_sharded(small.graph, "data", 2)),
                                {}, 2);
  const ShardSpecs tensor{{"up.weight", {"model"}}, {"up.bias", {"model"}}, {"down.weight", {"", "model"}}};
  expect_as_one_rank_on_devices(small, Mesh({{"pipe", 2}, {"model", 2}}), tensor, {}, 2);
}

// ---- rings ----------------------------------------------------------------------------------------------------------

constexpr std::int64_t kHeads = 2, kLength = 8, kDepth = 4;

using Attend = std::function<Tensor(const Tensor& q, const Tensor& k, const Tensor& v)>;
// Causal attention and its derivatives.
Graph attention_of(std::int64_t length, const Attend& attend) {
  Graph g;
  const Shape shape{1, kHeads, length, kDepth};
  const Tensor q = g.input("q", shape), k = g.input("k", shape), v = g.input("v", shape), w = g.input("w", shape);
  const Tensor y = attend(q, k, v);
  g.output("y", y);
  const auto d = gradients(sum(mul(y, w)), {q, k, v});
  g.output("dq", d[0]), g.output("dk", d[1]), g.output("dv", d[2]);
  return g;
}

TEST(NcclRing, AttendsAsOneRank) {
  std::map<std::string, Floats> in;
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (const char* name : {"q", "k", "v", "w"})
    for (int k = 0; k < kHeads * kLength * kDepth; ++k) in[name].push_back(normal(random));
  Context one(compile(
      attention_of(kLength, [](const Tensor& q, const Tensor& k,
                               const Tensor& v) { return scaled_dot_product_attention(q, k, v, {.is_causal = true}); }),
      device()));
  for (const auto& [name, v] : in) one.set(name, v);
  one.run();
  // This rank's part of a text, along the axis of its tokens.
  const auto part = [](const Floats& whole, int rank, int n) {
    Floats mine;
    const auto row = static_cast<std::size_t>(kLength * kDepth), length = row / static_cast<std::size_t>(n);
    for (std::size_t head = 0; head < kHeads; ++head) {
      const auto begin =
          whole.begin() + static_cast<std::ptrdiff_t>(head * row + static_cast<std::size_t>(rank) * length);
      mine.insert(mine.end(), begin, begin + static_cast<std::ptrdiff_t>(length));
    }
    return mine;
  };
  for (const int n : {2, 4})
    expect_none(on_devices(Mesh({{"seq", n}}), [&](const Rank& r) {
      const Collectives& ranks = r.collectives;
      const Program p = compile(attention_of(kLength / n,
                                             [&](const Tensor& q, const Tensor& k, const Tensor& v) {
                                               return ring_attention(ranks, "seq", q, k, v, {.is_causal = true});
                                             }),
                                r.compiler());
      EXPECT_TRUE(p.notes().empty());
      Context run(p);
      for (int round = 0; round < 3; ++round) {
        for (const auto& [name, v] : in) run.set(name, part(v, ranks.rank(), n));
        run.run();
        for (const char* name : {"y", "dq", "dk", "dv"})
          expect_near(run.get(name), part(one.get(name), ranks.rank(), n), 1e-5,
                      str_cat(name, ", rank ", ranks.rank(), " of ", n, ", run ", round));
      }
    }));
}

// Four ranks cannot divide two heads, so that shard() takes rings.
TEST(NcclRing, TrainsAGpt) {
  constexpr int kFew = 4;
  const Job j = gpt(kSgd, 2, 1);
  const Mesh mesh({{"seq", 4}});
  const ShardSpecs specs = sequence_parallel(j.graph, "seq", 4);
  const Trained one = train(j, device(), Mesh(), 0, {}, kFew);
  expect_none(on_devices(mesh, [&](const Rank& r) {
    const int rank = r.collectives.rank();
    const Trained t = train(j, shard(r.collectives, specs) | r.compiler(), mesh, rank, specs, kFew);
    expect_near(t.losses, one.losses, 2e-5, str_cat("rank ", rank));
    EXPECT_GT(t.fired.count(std::string(name(Collective::Operation::Permute))), 0u);
  }));
}

}  // namespace
}  // namespace lc::test
