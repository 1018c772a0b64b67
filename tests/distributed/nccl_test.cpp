// Collectives by NCCL between the kernels of CUDA devices, by simulators of both: each rank is a thread with a driver
// of its own, a copy of the library.
#include "lightcone/distributed/nccl/nccl.h"

#include <chrono>
#include <cstring>
#include <mutex>
#include <random>
#include <set>

#include "lightcone/autograd/autograd.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/distributed/sharding/shard.h"
#include "lightcone/distributed/sharding/strategies.h"
#include "lightcone/ops/loss.h"
#include "lightcone/ops/ops.h"
#include "lightcone/optim/optim.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "nccl_ranks.h"
#include "ranks.h"

namespace lc {
namespace {

using Floats = std::vector<float>;
using namespace test::on_nccl;

using Build = std::function<Tensor(const Collectives&, const Tensor&)>;

// The bytes of f(x) on each rank, where x's bytes are made from `seed` and the rank. Several runs, the later ones by a
// recorded graph, must give the same.
std::vector<std::vector<std::byte>> results(const Mesh& mesh, DType type, const Shape& shape, const Build& f,
                                            bool by_devices) {
  std::vector<std::vector<std::byte>> all(static_cast<std::size_t>(mesh.size()));
  const auto one = [&](const Collectives& c, const Compiler& compiler) {
    Graph g;
    g.output("y", f(c, g.input("x", shape, type)));
    Context run(compile(g, compiler));
    // Small integers, which every type has and whose sums are exact.
    std::vector<std::int64_t> extents;
    for (const Dim& d : shape) extents.push_back(*d.constant());
    Value x = make_value(type, extents);
    std::mt19937 random(static_cast<unsigned>(c.rank() + 17));
    for (double& v : x.f) v = random() % 8;
    for (std::int64_t& v : x.i) v = random() % (type == DType::Bool ? 2 : 8);
    std::vector<std::byte> in(x.size() * size_of(type));
    write_value(x, in.data());
    auto& mine = all[static_cast<std::size_t>(c.rank())];
    for (int round = 0; round < 4; ++round) {
      run.set_bytes("x", in.data(), in.size()).run();
      const auto y = run.bytes("y");
      const std::vector<std::byte> got(y.begin(), y.end());
      if (round) {
        EXPECT_EQ(got, mine) << "run " << round;
      }
      mine = got;
    }
  };
  expect_none(by_devices ? on_devices(mesh, [&](const Rank& r) { one(r.collectives, r.compiler()); })
                         : test::run_ranks(mesh, [&](const Collectives& c) {
                             one(c, generic() | cpu({.threads = 1, .compiler = false}));
                           }));
  return all;
}

void expect_same(const Mesh& mesh, DType type, const Shape& shape, const Build& f, const std::string& what) {
  EXPECT_EQ(results(mesh, type, shape, f, true), results(mesh, type, shape, f, false)) << what << " of " << name(type);
}

}  // namespace

TEST(Nccl, EachOperationIsThatOfThreads) {
  const Mesh both({{"data", 2}, {"model", 2}});
  const std::vector<std::string> data{"data"}, all{"data", "model"}, turned{"model", "data"};
  const struct {
    const char* name;
    Shape shape;
    Build build;
  } cases[] = {
      {"all_reduce", {5}, [&](const Collectives& c, const Tensor& x) { return c.all_reduce(x, data); }},
      {"all_reduce of all", {1001}, [&](const Collectives& c, const Tensor& x) { return c.all_reduce(x, all); }},
      {"maximum", {7}, [&](const Collectives& c, const Tensor& x) { return c.all_reduce(x, all, ReduceOp::Max); }},
      {"all_gather", {3}, [&](const Collectives& c, const Tensor& x) { return c.all_gather(x, turned); }},
      {"reduce_scatter", {2, 9}, [&](const Collectives& c, const Tensor& x) { return c.reduce_scatter(x, data); }},
      {"all_to_all", {4, 3}, [&](const Collectives& c, const Tensor& x) { return c.all_to_all(x, all); }},
      {"broadcast", {6}, [&](const Collectives& c, const Tensor& x) { return c.broadcast(x, all, 2); }},
      {"shift", {6}, [&](const Collectives& c, const Tensor& x) { return c.shift(x, "model", 1); }},
      {"shift without a ring",
       {6},
       [&](const Collectives& c, const Tensor& x) { return c.shift(x, "data", 1, false); }},
  };
  for (const auto& each : cases) expect_same(both, DType::F32, each.shape, each.build, each.name);
}

TEST(Nccl, EachType) {
  const Mesh mesh({{"data", 3}});
  const std::vector<std::string> axes{"data"};
  for (const DTypeInfo& t : kDTypes) {
    const bool adds = !is_f8(t.dtype) && t.dtype != DType::I16 && t.dtype != DType::U16;
    // All operations in one program.
    const Build build = [&](const Collectives& c, const Tensor& x) {
      Tensor y = c.all_gather(c.broadcast(c.shift(x, "data", 1), axes, 1), axes);
      y = c.all_to_all(y, axes);
      return adds ? c.all_reduce(c.reduce_scatter(y, axes), axes, ReduceOp::Max) : y;
    };
    expect_same(mesh, t.dtype, {10}, build, "operations");
    if (adds) continue;
    for (const std::string& what : on_devices(mesh, [&](const Rank& r) {
           Graph g;
           g.output("y", r.collectives.all_reduce(g.input("x", {2}, t.dtype), axes));
           compile(g, r.compiler());
         }))
      EXPECT_PRED2(contains, what, str_cat("NCCL adds no numbers of ", t.name));
  }
}

// The sums of 1e8, 1 and -1e8 depend on their order, which is not that of the ranks; all ranks get the same.
TEST(Nccl, SumsHaveAnOrderOfTheirOwn) {
  std::mutex mutex;
  std::set<Floats> seen;
  expect_none(on_devices(Mesh({{"data", 4}}), [&](const Rank& r) {
    Graph g;
    g.output("y", r.collectives.all_reduce(g.input("x", {64}), {"data"}));
    Context run(compile(g, r.compiler()));
    const Floats parts{1e8f, 1, -1e8f, 0.5f};
    for (int k = 0; k < 4; ++k) {
      run.set("x", Floats(64, parts[static_cast<std::size_t>(r.collectives.rank())])).run();
      const Floats y = run.get("y");
      const std::lock_guard lock(mutex);
      seen.insert(y);
    }
  }));
  EXPECT_EQ(seen.size(), 1u);
}

TEST(Nccl, ExchangesStayOnTheDevice) {
  FakeNccl nccl;
  const long before = nccl.get("tasks");
  expect_none(on_devices(Mesh({{"data", 2}}), [&](const Rank& r) {
    Graph g;
    const Tensor x = g.input("x", {32});
    g.output("y", r.collectives.all_reduce(mul(x, 2.0), {"data"}));
    const Program p = compile(g, r.compiler());
    EXPECT_TRUE(p.notes().empty());  // the host computes nothing
    Context run(p);
    for (int k = 0; k < 6; ++k) {
      run.set("x", Floats(32, static_cast<float>(k))).run();
      EXPECT_EQ(run.get("y"), Floats(32, static_cast<float>(4 * k)));
    }
  }));
  EXPECT_EQ(nccl.get("tasks") - before, 2 * 6);
  EXPECT_EQ(nccl.get("live"), 0);
}

// ---- training -----------------------------------------------------------------------------------------------------

namespace {

// A step of training, with what it is fed.
struct Job {
  Graph graph;
  std::map<std::string, Floats> parameters, inputs;
  std::vector<Tensor> trained;

  Tensor parameter(const std::string& name, const Shape& shape, float scale) {
    std::mt19937 random(static_cast<unsigned>(parameters.size() + 1));
    std::normal_distribution<float> normal(0, scale);
    Floats& v = parameters[name];
    v.resize(static_cast<std::size_t>(*product(shape).constant()));
    for (float& x : v) x = scale == 0 ? 1 : normal(random);
    trained.push_back(graph.parameter(name, shape));
    return trained.back();
  }
  void train(const Tensor& loss) {
    graph.output("loss", loss);
    std::vector<optim::Update> updates;
    const auto d = gradients(loss, trained);
    for (std::size_t k = 0; k < trained.size(); ++k) updates.push_back({trained[k], d[k]});
    optim::step(optim::SGD{.lr = 0.1}, updates);
  }
};

Job mlp() {
  Job j;
  const Tensor x = j.graph.input("x", {8, 12}), y = j.graph.input("y", {8, 4});
  const Tensor up = j.parameter("up.weight", {16, 12}, 0.3f), bias = j.parameter("up.bias", {16}, 0.3f),
               down = j.parameter("down.weight", {4, 16}, 0.3f);
  j.train(mean(square(sub(linear(relu(linear(x, up, bias)), down), y))));
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (const auto& [name, n] : {std::pair("x", 96), std::pair("y", 32)})
    for (int k = 0; k < n; ++k) j.inputs[name].push_back(normal(random));
  return j;
}

// A layer of a GPT: 4 texts of 6 tokens, 2 heads of 4, a vocabulary of 12 whose table is read and multiplied with.
Job gpt() {
  Job j;
  constexpr std::int64_t kTexts = 4, kLength = 6, kWidth = 8, kHeads = 2, kWords = 12;
  const Tensor ids = j.graph.input("ids", {kTexts, kLength}, DType::I64),
               next = j.graph.input("next", {kTexts * kLength}, DType::I64);
  const Tensor table = j.parameter("wte.weight", {kWords, kWidth}, 0.3f);
  const auto heads = [&](const Tensor& t) {
    return t.reshape({kTexts, kLength, kHeads, kWidth / kHeads}).transpose(1, 2);
  };
  const auto w = [&](const char* name, std::int64_t m, std::int64_t n) { return j.parameter(name, {m, n}, 0.25f); };
  Tensor x = embedding(ids, table);
  const Tensor h = layer_norm(x, {kWidth}, j.parameter("ln.weight", {kWidth}, 0));
  const Tensor a = scaled_dot_product_attention(heads(linear(h, w("q.weight", kWidth, kWidth))),
                                                heads(linear(h, w("k.weight", kWidth, kWidth))),
                                                heads(linear(h, w("v.weight", kWidth, kWidth))), {.is_causal = true});
  x = add(x, linear(a.transpose(1, 2).reshape({kTexts, kLength, kWidth}), w("o.weight", kWidth, kWidth)));
  x = add(x, linear(gelu(linear(x, w("up.weight", 2 * kWidth, kWidth))), w("down.weight", kWidth, 2 * kWidth)));
  j.train(cross_entropy(linear(x, table).reshape({kTexts * kLength, kWords}), next));
  std::mt19937 random(9);
  for (int k = 0; k < kTexts * kLength; ++k) {
    const auto id = static_cast<int>(random() % kWords);
    j.inputs["ids"].push_back(static_cast<float>(id));
    j.inputs["next"].push_back(static_cast<float>((id * 5 + 1) % kWords));
  }
  return j;
}

struct Trained {
  Floats losses;
  std::map<std::string, Floats> parameters;
};

Trained train(const Job& j, const Compiler& compiler, const Mesh& mesh, int rank, const ShardSpecs& specs) {
  constexpr int kSteps = 6;
  Context c(compile(j.graph, compiler));
  const auto part = [&](const std::string& name, const Floats& all) {
    std::vector<std::int64_t> shape;
    for (NodeId id = 0; id < j.graph.size(); ++id)
      if (j.graph[id].op == Op::Input && j.graph[id].name == name)
        for (const Dim& d : j.graph[id].shape) shape.push_back(*d.constant());
    const ArrayPart a = part_of(mesh, rank, specs, name, {DType::F32, shape, std::as_bytes(std::span(all))});
    Floats mine(a.bytes.size() / sizeof(float));
    std::memcpy(mine.data(), a.bytes.data(), a.bytes.size());
    return mine;
  };
  Trained t;
  for (const auto& [name, all] : j.parameters) c.set(name, part(name, all));
  for (int k = 0; k < kSteps; ++k) {
    for (const auto& [name, all] : j.inputs) c.set(name, part(name, all));
    t.losses.push_back(c.run().scalar("loss"));
  }
  for (const auto& [name, all] : j.parameters) t.parameters[name] = c.get(name);
  return t;
}

// Ranks on devices train as threads on the processor do, within rounding, and all of them see the same losses.
void expect_as_threads(const Job& j, const Mesh& mesh, const ShardSpecs& specs, const std::string& what) {
  const Compiler host = generic() | cpu({.threads = 1, .compiler = false});
  const Trained one = train(j, host, Mesh(), 0, {});
  std::vector<Trained> want(static_cast<std::size_t>(mesh.size())), got = want;
  expect_none(test::run_ranks(mesh, [&](const Collectives& c) {
    want[static_cast<std::size_t>(c.rank())] = train(j, shard(c, specs) | host, mesh, c.rank(), specs);
  }));
  expect_none(on_devices(mesh, [&](const Rank& r) {
    const int rank = r.collectives.rank();
    r.collectives.check_same("the graph", j.graph.str());
    got[static_cast<std::size_t>(rank)] = train(j, shard(r.collectives, specs) | r.compiler(), mesh, rank, specs);
  }));
  const auto near = [&](const Floats& a, const Floats& b, const std::string& where) {
    ASSERT_EQ(a.size(), b.size()) << where;
    for (std::size_t k = 0; k < a.size(); ++k) ASSERT_NEAR(a[k], b[k], 2e-5) << where << ", element " << k;
  };
  for (std::size_t k = 0; k < got.size(); ++k) {
    const std::string where = str_cat(what, " on ", mesh, ", rank ", k);
    EXPECT_EQ(got[k].losses, got[0].losses) << where;
    near(got[k].losses, one.losses, where + ", losses");
    for (const auto& [name, v] : want[k].parameters) near(got[k].parameters[name], v, where + ", " + name);
  }
  EXPECT_LT(one.losses.back(), one.losses.front());
}

}  // namespace

TEST(Nccl, TrainsAnMlp) {
  const Job j = mlp();
  const ShardSpecs tensor{{"up.weight", {"model"}}, {"up.bias", {"model"}}, {"down.weight", {"", "model"}}};
  expect_as_threads(j, Mesh({{"data", 2}}), data_parallel(j.graph, "data", 2), "data parallel");
  expect_as_threads(j, Mesh({{"model", 4}}), tensor, "tensor parallel");
  expect_as_threads(j, Mesh({{"data", 2}, {"model", 2}}), joined(data_parallel(j.graph, "data", 2), tensor), "both");
  expect_as_threads(j, Mesh({{"data", 4}}),
                    joined(data_parallel(j.graph, "data", 4), fully_sharded(j.graph, "data", 4)), "ZeRO 3");
}

TEST(Nccl, TrainsAGpt) {
  const Job j = gpt();
  const ShardSpecs tensor{{"q.weight", {"model"}},  {"k.weight", {"model"}},        {"v.weight", {"model"}},
                          {"up.weight", {"model"}}, {"down.weight", {"", "model"}}, {"o.weight", {"", "model"}},
                          {"wte.weight", {"model"}}};
  expect_as_threads(j, Mesh({{"data", 2}, {"model", 2}}), joined(data_parallel(j.graph, "data", 2), tensor), "both");
}

// ---- what goes wrong ------------------------------------------------------------------------------------------------

namespace {

void exchange(const Rank& r, int times = 1) {
  Graph g;
  g.output("y", r.collectives.all_reduce(mul(g.input("x", {8}), 2.0), {"data"}));
  Context run(compile(g, r.compiler()));
  for (int k = 0; k < times; ++k) run.set("x", Floats(8, 1)).run();
  EXPECT_EQ(run.get("y"), Floats(8, 2 * static_cast<float>(r.collectives.communicator().size())));
}

double seconds_of(const std::function<void()>& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

// A rank ends after some exchanges, in the first run of a program and in a recorded one. The others throw within the
// time-out, and a device that is opened afterwards works.
TEST(NcclFaults, ARankThatEndsIsNoticed) {
  for (const int last : {0, 1, 5}) {
    std::vector<std::string> thrown;
    EXPECT_LT(seconds_of([&] {
                thrown = on_devices(
                    Mesh({{"data", 3}}),
                    [&](const Rank& r) {
                      exchange(r);
                      Graph g;
                      const Tensor x = g.input("x", {8});
                      g.output("y", r.collectives.all_reduce(mul(x, 2.0), {"data"}));
                      Context run(compile(g, r.compiler()));
                      for (int k = 0; k < 8; ++k) {
                        if (k == last && r.collectives.rank() == 1) throw Error("test", "this rank has no disk");
                        run.set("x", Floats(8, 1)).run();
                        EXPECT_EQ(run.get("y"), Floats(8, 6));
                      }
                    },
                    0.5);
              }),
              30);
    EXPECT_EQ(thrown[1], "test: this rank has no disk");
    for (const int k : {0, 2}) {
      const std::string& what = thrown[static_cast<std::size_t>(k)];
      // The first run asks the host, which sees the end at once.
      EXPECT_PRED2(contains, what, last ? "waits for other ranks since 0.5 s" : "rank 1 has ended") << last;
    }
  }
  expect_none(on_devices(Mesh({{"data", 2}}), [](const Rank& r) { exchange(r, 3); }));
}

// Work that is enqueued without ever being waited for must not fill the driver's queue.
TEST(NcclFaults, AStuckDeviceDoesNotHoldTheHost) {
  const auto thrown = on_devices(
      Mesh({{"data", 2}}),
      [](const Rank& r) {
        Graph g;
        g.output("y", r.collectives.all_reduce(g.input("x", {8}), {"data"}));
        Context run(compile(g, r.compiler()));
        run.set("x", Floats(8, 1));
        for (int k = 0; k < 2000; ++k) {
          if (k == 20 && r.collectives.rank() == 1) throw Error("test", "over");
          run.run();
        }
      },
      0.5);
  EXPECT_PRED2(contains, thrown[0], "waits for other ranks since 0.5 s");
}

TEST(NcclFaults, RanksMustRunTheSameProgram) {
  for (const std::string& what : on_devices(Mesh({{"data", 2}}), [](const Rank& r) {
         const std::int64_t n = r.collectives.rank() + 1;
         Graph g;
         g.output("y", r.collectives.all_reduce(g.input("x", {n}), {"data"}));
         Context run(compile(g, r.compiler()));
         run.set("x", Floats(static_cast<std::size_t>(n), 1)).run();
       }))
    EXPECT_PRED2(contains, what, "ranks run different operations: rank");
}

TEST(NcclFaults, NotAllRanksCome) {
  const std::vector<std::shared_ptr<Communicator>> hosts = threads(2);
  std::string what;
  std::thread other([&] {  // it takes the id, and goes
    std::vector<std::byte> id(128);
    const std::vector<int> both{0, 1};
    hosts[1]->run({Collective::Operation::Broadcast, ReduceOp::Sum, DType::U8, 128, both, 1, 0, {}, 0}, id.data(),
                  id.data());
  });
  std::thread([&] {
    what = error_of([&] {
      nccl_ranks(backends::cuda::open_device(device_of(0)), hosts[0], {.library = paths::kFakeNccl, .timeout_s = 0.3});
    });
  }).join();
  other.join();
  EXPECT_EQ(what, "nccl: NCCL 2.27.3 cannot let the ranks meet: not all ranks did so within 0.3 s");
}

TEST(NcclFaults, TwoRanksOnOneDevice) {
  auto hosts = threads(2);
  std::vector<std::string> thrown(2);
  std::vector<std::thread> all;
  for (std::size_t k = 0; k < 2; ++k)
    all.emplace_back([&, k] {
      thrown[k] = error_of([&] {
        nccl_ranks(backends::cuda::open_device(device_of(0)), hosts[k], {.library = paths::kFakeNccl, .timeout_s = 5});
      });
    });
  for (std::thread& t : all) t.join();
  for (const std::string& what : thrown) EXPECT_PRED2(contains, what, "invalid usage (5): Duplicate GPU detected");
}

TEST(NcclFaults, LibrariesThatAreNone) {
  FakeNccl nccl;
  std::thread([&] {
    const auto device = backends::cuda::open_device(device_of(0));
    const auto host = threads(1)[0];
    const auto open = [&](const std::string& file) {
      return error_of([&] { nccl_ranks(device, host, {.library = file}); });
    };
    EXPECT_PRED2(contains, open("/nowhere/libnccl.so.2"), "cannot be loaded: /nowhere/libnccl.so.2");
    EXPECT_PRED2(contains, open("/nowhere/libnccl.so.2"), "pip install nvidia-nccl-cu");
    EXPECT_PRED2(contains, open(paths::kFakeCuda), "has no function ncclGetVersion");
    // Another file of the same library: one is asked for its version once.
    const TempDir dir;
    const std::string old = dir / "libnccl.so.2";
    std::filesystem::copy_file(paths::kFakeNccl, old);
    void* const library = ::dlopen(old.c_str(), RTLD_NOW | RTLD_LOCAL);
    reinterpret_cast<int (*)(const char*, long)>(::dlsym(library, "fake_nccl_set"))("version", 21700);
    EXPECT_PRED2(contains, open(old), "is of version 2.17.0: version 2.18.0 or a newer one of NCCL 2 is needed");
    EXPECT_EQ(error_of([&] { nccl_ranks(nullptr, host); }).substr(0, 20), "nccl_ranks: null is ");
    EXPECT_PRED2(contains, error_of([&] { nccl_ranks(device, std::shared_ptr<Communicator>()); }), "no communicator");
  }).join();
  EXPECT_EQ(nccl.get("live"), 0);
}

// Each call of NCCL fails once. The rank whose call fails throws, and nothing is left.
TEST(NcclFaults, EachCallMayFail) {
  FakeNccl nccl;
  expect_none(on_devices(Mesh({{"data", 1}}), [](const Rank&) {}));  // the library is asked for its version once
  std::thread([&] {
    for (int n = 1; n < 12; ++n) {
      nccl.set("fail_code", 2);
      nccl.set("fail_at", nccl.get("calls") + n);
      const std::string what = error_of([&] {
        const auto device = backends::cuda::open_device(device_of(0));
        const auto rank =
            nccl_ranks(device, threads(1)[0], {.library = paths::kFakeNccl, .timeout_s = 5, .alone = true});
        exchange({Collectives(Mesh({{"data", 1}}), rank), device}, 3);
      });
      if (n < 3) {
        EXPECT_PRED2(contains, what, "unhandled system error (2): injected") << n;
      }
      EXPECT_EQ(nccl.get("live"), 0) << n;
    }
    nccl.set("fail_at", 0);
  }).join();
}

// ---- ranks of a launcher --------------------------------------------------------------------------------------------

TEST(NcclRanks, MeetAtAnAddress) {
  std::vector<std::string> thrown(3);
  std::vector<std::thread> all;
  for (int k = 0; k < 3; ++k)
    all.emplace_back([&, k] {
      try {
        const auto device = backends::cuda::open_device(device_of(k));
        const auto rank = nccl_ranks(device, LaunchedRank{k, 3, k, "127.0.0.1:29501"},
                                     {.library = paths::kFakeNccl, .timeout_s = 20});
        const Rank r{Collectives(Mesh({{"data", 3}}), rank), device};
        EXPECT_EQ(rank->name(), "NCCL 2.27.3");
        r.collectives.check_same("the model", "gpt2");
        exchange(r, 3);
        if (k != 2) r.collectives.check_same("the model", "gpt2-medium");
        else r.collectives.check_same("the model", "gpt2-small!");
      } catch (const std::exception& e) {
        thrown[static_cast<std::size_t>(k)] = e.what();
      }
    });
  for (std::thread& t : all) t.join();
  for (const std::string& what : thrown)
    EXPECT_PRED2(contains, what, "ranks differ in the model: rank 0 has gpt2-medium, rank 2 has gpt2-small!");
  EXPECT_EQ(std::getenv("NCCL_COMM_ID"), nullptr);
}

TEST(NcclRanks, ReadTorchrunsVariables) {
  struct Variables {
    ~Variables() {
      for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"}) ::unsetenv(name);
    }
    void set(const char* name, const char* value) { ::setenv(name, value, 1); }
  } v;
  EXPECT_EQ(LaunchedRank::from_torchrun().size, 1);
  v.set("WORLD_SIZE", "8");
  EXPECT_PRED2(contains, error_of([] { LaunchedRank::from_torchrun(); }), "WORLD_SIZE is set and RANK is not");
  v.set("RANK", "5"), v.set("LOCAL_RANK", "1");
  EXPECT_PRED2(contains, error_of([] { LaunchedRank::from_torchrun(); }), "MASTER_ADDR is not");
  v.set("MASTER_ADDR", "node0"), v.set("MASTER_PORT", "29400");
  const LaunchedRank r = LaunchedRank::from_torchrun();
  EXPECT_EQ(r.rank, 5);
  EXPECT_EQ(r.local, 1);
  EXPECT_EQ(r.address, "node0:29401");
  v.set("RANK", "8");
  EXPECT_PRED2(contains, error_of([] { LaunchedRank::from_torchrun(); }), "the variable RANK is '8'");
  v.set("RANK", "1x");
  EXPECT_PRED2(contains, error_of([] { LaunchedRank::from_torchrun(); }), "no number from 0 to 7");
}

}  // namespace lc
