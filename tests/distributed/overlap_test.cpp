// Exchanges that run while kernels do, and several that are one: the bits do not change, what waits is hidden, and
// whatever ends early leaves nothing behind.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "lightcone/backends/cpu/composite_kernel.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/device/halves.h"
#include "lightcone/distributed/sharding/strategies.h"
#include "lightcone/lowering/types/mixed_precision.h"
#include "lightcone/passes/passes.h"
#include "lightcone/reference/interpreter.h"
#include "lightcone/verify/random_graph.h"
#include "training.h"

namespace {
std::atomic<long> allocations{0};
}

#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
void* operator new(std::size_t n) {
  ++allocations;
  if (void* p = std::malloc(n ? n : 1)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace lc {
namespace {

using namespace test;
using Clock = std::chrono::steady_clock;

const CompileOptions kOneAfterTheOther{.skip = {"combine-exchanges", "overlap-exchanges"}};

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

ShardOptions buckets(std::size_t bytes) { return {.exchanges = {.bucket_bytes = bytes}}; }

// ---- the bits -------------------------------------------------------------------------------------------------------

void expect_same_bits(const Job& j, const Mesh& mesh, const ShardSpecs& specs, const std::string& what) {
  constexpr int kFew = 6;
  const auto trained = [&](const ShardOptions& o, const CompileOptions& compile) {
    std::vector<Trained> all(static_cast<std::size_t>(mesh.size()));
    const auto thrown = run_ranks(mesh, [&](const Collectives& c) {
      all[static_cast<std::size_t>(c.rank())] =
          train(j, shard(c, specs, o) | device(), mesh, c.rank(), specs, kFew, compile);
    });
    for (const std::string& error : thrown) EXPECT_EQ(error, "") << what;
    return all;
  };
  const auto want = trained({}, kOneAfterTheOther);
  for (const std::size_t bytes : {0, 512, 4 << 20}) {
    const auto got = trained(buckets(bytes), {});
    for (std::size_t r = 0; r < want.size(); ++r) {
      const std::string at = str_cat(what, " on ", mesh, ", buckets of ", bytes, ", rank ", r);
      EXPECT_EQ(got[r].losses, want[r].losses) << at;
      EXPECT_EQ(got[r].norms, want[r].norms) << at;
      EXPECT_EQ(got[r].parameters, want[r].parameters) << at;
      if (bytes > 512) continue;
      EXPECT_GT(got[r].fired.count("exchange overlapped"), 0u) << at;
    }
    const auto& fired = got[0].fired;
    const bool combined = std::ranges::any_of(fired, [](const auto& f) { return f.first.ends_with("combined"); });
    EXPECT_EQ(combined, bytes > 0) << str_cat(what, " on ", mesh, ", buckets of ", bytes);
  }
}

const ShardSpecs kMegatron{{"*.q.weight", {"model"}},     {"*.k.weight", {"model"}},  {"*.v.weight", {"model"}},
                           {"*.o.weight", {"", "model"}}, {"*.up.weight", {"model"}}, {"*.down.weight", {"", "model"}}};

TEST(Overlap, KeepsTheBitsOfTraining) {
  const Job small = mlp(), g = gpt(optim::AdamW{.lr = 1e-2}), l = llama();
  const Mesh two({{"data", 2}}), three({{"data", 4}}), both({{"data", 2}, {"model", 2}});
  expect_same_bits(small, three, data_parallel(small.graph, "data", 4), "MLP");
  for (const Job* j : {&g, &l}) {
    const ShardSpecs batch = data_parallel(j->graph, "data", 2);
    expect_same_bits(*j, two, batch, "data parallel");
    expect_same_bits(*j, two, joined(batch, fully_sharded(j->graph, "data", 2, ShardedState::Moments)), "ZeRO 1");
    expect_same_bits(*j, two, joined(batch, fully_sharded(j->graph, "data", 2)), "ZeRO 3");
    expect_same_bits(*j, both, joined(batch, kMegatron), "data and tensor parallel");
  }
}

// What products round is moved as it was rounded: half of the bytes. The bits are those of a processor without products
// of bf16: another one takes them for what was moved as bf16, and f32 for what was not.
TEST(Overlap, NarrowFloatsKeepTheBits) {
  const Job g = gpt(optim::AdamW{.lr = 1e-2});
  const Mesh mesh({{"data", 2}});
  const ShardSpecs specs = joined(data_parallel(g.graph, "data", 2), fully_sharded(g.graph, "data", 2));
  CpuOptions plain{.threads = 1, .compiler = false};
  plain.target = backends::cpu::this_target();
  plain.target->amx = plain.target->avx512_bf16 = plain.target->fast_bf16 = plain.target->bf16 = false;
  for (const DType half : {DType::BF16, DType::F16}) {
    const std::string narrow = str_cat("exchange in ", name(half));
    std::vector<Trained> all(2), wide(2);
    const auto thrown = run_ranks(mesh, [&](const Collectives& c) {
      const Compiler with = autocast(half) | shard(c, specs) | generic() | cpu(plain);
      const auto r = static_cast<std::size_t>(c.rank());
      all[r] = train(g, with, mesh, c.rank(), specs, 4, {});
      wide[r] = train(g, with, mesh, c.rank(), specs, 4, {.skip = {"narrow-exchanges"}});
    });
    for (const std::string& error : thrown) EXPECT_EQ(error, "");
    for (std::size_t r = 0; r < 2; ++r) {
      EXPECT_GE(all[r].fired[narrow], 12u);  // six matrices in each of two layers
      EXPECT_EQ(wide[r].fired.count(narrow), 0u);
      EXPECT_EQ(all[r].losses, wide[r].losses);
      EXPECT_EQ(all[r].parameters, wide[r].parameters);
    }
  }
}

// Random graphs, divided at random: kernels give the same bits in any order. The first is one where a rank's part of
// some windows is padding alone: generic() must not leave out, on that rank, the exchange that they are read from.
TEST(Overlap, KeepsTheBitsOfRandomGraphs) {
  const char* given = std::getenv("LIGHTCONE_SEED");
  const std::uint64_t first = given ? std::strtoull(given, nullptr, 10) * 1000 : 0;
  const Mesh mesh({{"data", 2}});
  int overlapped = 0;
  for (std::uint64_t n = 0; n < 60; ++n) {
    const std::uint64_t k = n == 0 ? 20261128005 : first + n;
    const Graph g = random_graph(k, {.nodes = 8 + static_cast<int>(k % 16), .elements = 300});
    const Bindings sizes = random_bindings(g, k);
    const auto inputs = random_inputs(g, sizes, k, k % 3 == 0);
    std::mt19937_64 random(k);
    ShardSpecs specs;
    for (NodeId id = 0; id < g.size(); ++id) {
      if (g[id].op != Op::Input) continue;
      ShardSpec s{g[id].name, std::vector<std::string>(g[id].shape.size())};
      for (std::size_t i = 0; i < s.axes.size(); ++i)
        if (const auto n = g[id].shape[i].constant(); n && *n % 2 == 0 && random() % 2) {
          s.axes[i] = "data";
          break;
        }
      specs.push_back(std::move(s));
    }
    const auto thrown = run_ranks(mesh, [&](const Collectives& c) {
      const auto outputs = [&](const CompileOptions& o) {
        Program p = compile(g, shard(c, specs) | device(), o);
        if (c.rank() == 0) overlapped += fired(p.log(), "exchange overlapped");
        std::map<std::string, ArrayPart> parts;
        for (const auto& [name, v] : inputs) {
          std::vector<std::byte> bytes(v.size() * size_of(v.dtype));
          write_value(v, bytes.data());
          const ArrayPart& part = parts[name] =
              part_of(mesh, c.rank(), specs, name, ArrayView{v.dtype, v.shape, bytes});
          if (p.is_parameter(name)) p.load(name, part.view());
        }
        Context run(p);
        for (const auto& [name, value] : sizes)
          if (p.has_symbol(name)) run.bind(name, value);
        for (const auto& [name, part] : parts)
          if (!p.is_parameter(name)) run.set_bytes(name, part.bytes.data(), part.bytes.size());
        run.run();
        std::map<std::string, std::vector<std::byte>> all;
        for (const std::string& name : p.outputs()) {
          const auto bytes = run.bytes(name);
          all[name].assign(bytes.begin(), bytes.end());
        }
        return all;
      };
      const auto want = outputs(kOneAfterTheOther);
      EXPECT_EQ(outputs({}), want) << "random graph " << k;
    });
    for (const std::string& what : thrown) ASSERT_EQ(what, "") << "random graph " << k;
  }
  EXPECT_GT(overlapped, 10);
}

// ---- the time -------------------------------------------------------------------------------------------------------

// Ranks between which every operation takes a while, in which they do nothing.
class Slow final : public Communicator {
 public:
  Slow(std::shared_ptr<Communicator> inner, std::shared_ptr<const std::atomic<double>> delay)
      : inner_(std::move(inner)), delay_(std::move(delay)) {}
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::string name() const override { return "slow " + inner_->name(); }
  void run(const Collective& c, const void* in, void* out) override {
    inner_->run(c, in, out);
    std::this_thread::sleep_for(std::chrono::duration<double>(*delay_));
    ++operations;
  }
  int operations = 0;

 private:
  std::shared_ptr<Communicator> inner_;
  std::shared_ptr<const std::atomic<double>> delay_;  // seconds for each operation
};

Job deep(std::int64_t layers, std::int64_t width, std::int64_t batch) {
  Job j;
  Tensor x = j.graph.input("x", {batch, width});
  for (int k = 0; k < layers; ++k) x = relu(linear(x, j.parameter(str_cat("w", k), {width, width}, 0.1)));
  const Tensor loss = mean(square(x));
  j.graph.output("loss", loss);
  std::vector<optim::Update> updates;
  const auto d = gradients(loss, j.trained);
  for (std::size_t k = 0; k < d.size(); ++k) updates.push_back({j.trained[k], d[k]});
  optim::step(optim::SGD{.lr = 0.01, .momentum = 0.9}, updates);
  return j;
}

struct Times {
  double computed = 1e9, added = 1e9, overlapped = 1e9, waited = 0;  // seconds: the best ones
};

// What the ranks wait for takes half the time of the computation in all.
Times measure() {
  const Job j = deep(8, 256, 256);
  const Mesh mesh({{"data", 2}});
  const ShardSpecs specs = data_parallel(j.graph, "data", 2);
  const auto delay = std::make_shared<std::atomic<double>>(0);
  const auto slow = [&](const std::shared_ptr<Communicator>& c) { return std::make_shared<Slow>(c, delay); };
  Times times;
  std::vector<std::thread> ranks;
  for (const auto& communicator : threads(2))
    ranks.emplace_back([&, communicator] {
      const auto mine = slow(communicator);
      const Collectives c(mesh, mine);
      const auto context = [&](const CompileOptions& o) {
        Context run(compile(j.graph, shard(c, specs, buckets(0)) | device(), o));
        run.set("x", Floats(128 * 256, 0.5f));
        for (const auto& [name, all] : j.parameters) run.set(name, all);
        run.run();
        return run;
      };
      Context one = context(kOneAfterTheOther), both = context({});
      const auto step = [&](Context& run, double& best) {
        c.check_same("the step", "");  // both begin at once
        const auto begin = Clock::now();
        run.run();
        if (c.rank() == 0) best = std::min(best, seconds_since(begin));
      };
      int operations = mine->operations;
      for (int k = 0; k < 5; ++k) step(one, times.computed);
      operations = (mine->operations - operations) / 5;
      for (int k = 0; k < 8; ++k) {
        if (c.rank() == 0) *delay = times.computed / 2 / operations;
        step(one, times.added), step(both, times.overlapped);
        if (c.rank() == 0) times.waited = *delay * operations, *delay = 0;
        step(one, times.computed);
      }
    });
  for (std::thread& t : ranks) t.join();
  return times;
}

// One after the other, both add up; overlapped, most of it is hidden behind the backward pass. What else the machine
// computes may spoil a measurement, but not five.
TEST(Overlap, HidesWhatIsWaitedFor) {
  Times t;
  for (int k = 0; k < 5; ++k) {
    t = measure();
    if (t.overlapped < t.added - 0.5 * std::min(t.waited, t.computed)) break;
  }
  std::cout << "computed " << t.computed * 1e3 << " ms, waited " << t.waited * 1e3 << " ms, one after the other "
            << t.added * 1e3 << " ms, overlapped " << t.overlapped * 1e3 << " ms\n";
  EXPECT_LT(t.overlapped, t.added - 0.5 * std::min(t.waited, t.computed));
}

// ---- the memory -----------------------------------------------------------------------------------------------------

// Interpreted loops allocate, exchanges do not, once as many have been under way as ever are.
TEST(Overlap, ExchangesAllocateNothing) {
  const Job j = gpt();
  const Mesh mesh({{"data", 2}});
  const ShardSpecs specs = joined(data_parallel(j.graph, "data", 2), fully_sharded(j.graph, "data", 2));
  const auto allocated = [&](const CompileOptions& o) {
    long before = 0, behind = 0;
    const auto thrown = run_ranks(mesh, [&](const Collectives& c) {
      Context run(compile(j.graph, shard(c, specs, buckets(512)) | device(), o));
      const auto set = [&](const std::string& name, const Floats& all) {
        const ArrayPart part = part_of(mesh, c.rank(), specs, name, floats(all, shape_of(j.graph, name)));
        Floats mine(part.bytes.size() / sizeof(float));
        std::memcpy(mine.data(), part.bytes.data(), part.bytes.size());
        run.set(name, mine);
      };
      for (const auto& [name, all] : j.parameters) set(name, all);
      for (const auto& [name, all] : j.inputs) set(name, all[0]);
      for (int k = 0; k < 20; ++k) run.run();
      c.check_same("what was run", "20 steps");
      if (c.rank() == 0) before = allocations;
      for (int k = 0; k < 10; ++k) run.run();
      c.check_same("what was run", "30 steps");
      if (c.rank() == 0) behind = allocations;
    });
    for (const std::string& what : thrown) EXPECT_EQ(what, "");
    return behind - before;
  };
  const long want = allocated(kOneAfterTheOther);
  EXPECT_LE(allocated({}), want + 50);  // the ten steps have some 500 exchanges; check_same() may fall into the count
}

// Gathered parameters are there while they are used, and one bucket before. The ranks' parts of the gradients wait for
// the updates at the end. (Nothing is run.)
TEST(Overlap, Zero3GathersAFewLayersAtOnce) {
  constexpr std::int64_t kLayers = 16, kWidth = 2048, kBytes = kWidth * kWidth * 4;
  const Job j = deep(kLayers, kWidth, 8);
  const Mesh mesh({{"data", 2}});
  const ShardSpecs specs = joined(data_parallel(j.graph, "data", 2), fully_sharded(j.graph, "data", 2));
  const auto arena = [&](bool reshard) {
    std::size_t bytes = 0;
    const auto thrown = run_ranks(mesh, [&](const Collectives& c) {
      ShardOptions o = buckets(kBytes);
      o.reshard_after_forward = reshard;
      const Program p = compile(j.graph, shard(c, specs, o) | device());
      if (c.rank() == 0) bytes = p.plan().arena_bytes;
    });
    for (const std::string& what : thrown) EXPECT_EQ(what, "");
    return static_cast<double>(bytes);
  };
  const double kept = arena(false), again = arena(true);
  EXPECT_GT(kept, (kLayers - 1) * static_cast<double>(kBytes));
  const double parts = kLayers * static_cast<double>(kBytes) / 2;
  EXPECT_LT(again - parts, kept / 4);
  EXPECT_LT(again - parts, 5.0 * kBytes);
}

TEST(Overlap, WorksInPlaceOnWhatTheStartReturned) {
  const Job j = gpt();
  const Mesh mesh({{"data", 2}});
  const ShardSpecs specs = joined(data_parallel(j.graph, "data", 2), fully_sharded(j.graph, "data", 2));
  const auto thrown = run_ranks(mesh, [&](const Collectives& c) {
    const Program p = compile(j.graph, shard(c, specs, buckets(512)) | device());
    const Graph& g = p.graph();
    int waits = 0;
    for (NodeId id = 0; id < g.size(); ++id) {
      if (g[id].op != Op::Kernel || !is_wait(g[id])) continue;
      const Placement &from = p.plan().nodes[g[id].in[0].node], &to = p.plan().nodes[id];
      EXPECT_EQ(from.where, Placement::Where::Arena);
      EXPECT_EQ(to.where, from.where);
      EXPECT_EQ(to.offset, from.offset);
      ++waits;
    }
    EXPECT_GT(waits, 2);
  });
  for (const std::string& what : thrown) EXPECT_EQ(what, "");
}

// ---- what goes wrong ------------------------------------------------------------------------------------------------

// A rank that ends in its n-th operation.
class Mortal final : public Communicator {
 public:
  Mortal(std::shared_ptr<Communicator> inner, int operations) : inner_(std::move(inner)), left_(operations) {}
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::string name() const override { return inner_->name(); }
  void run(const Collective& c, const void* in, void* out) override {
    const Piece one{in, out, c.n};
    run_together(c, {&one, 1});
  }
  void run_together(const Collective& c, std::span<const Piece> pieces) override {
    if (left_-- <= 0) throw Error("test", "this rank has no power");
    inner_->run_together(c, pieces);
  }

 private:
  std::shared_ptr<Communicator> inner_;
  int left_;
};

// At any moment: in a start's operation in the background, or in one that a rank waits in itself.
TEST(Overlap, ARankThatEndsIsNamedByAllOthers) {
  const Job j = mlp();
  const Mesh mesh({{"data", 4}});
  const ShardSpecs specs = joined(data_parallel(j.graph, "data", 4), fully_sharded(j.graph, "data", 4));
  for (const int operations : {0, 1, 2, 3, 5, 8, 13, 21}) {
    const auto begin = Clock::now();
    std::vector<std::string> thrown(4);
    auto communicators = threads(4);
    std::vector<std::thread> ranks;
    for (std::size_t r = 0; r < 4; ++r)
      ranks.emplace_back([&, r, mine = std::move(communicators[r])]() mutable {
        try {
          if (r == 2) mine = std::make_shared<Mortal>(std::move(mine), operations);
          const Collectives c(mesh, std::move(mine));
          train(j, shard(c, specs, buckets(256)) | device(), mesh, c.rank(), specs, 8);
        } catch (const std::exception& e) {
          thrown[r] = e.what();
        }
      });
    for (std::thread& t : ranks) t.join();
    EXPECT_LT(seconds_since(begin), 30);
    for (std::size_t r = 0; r < 4; ++r)
      EXPECT_NE(thrown[r].find(r == 2 ? "this rank has no power" : "rank 2 has ended"), std::string::npos)
          << "after " << operations << " operations, rank " << r << ": " << thrown[r];
  }
}

// A kernel throws while another rank still reads what this one sends: its memory stays until that is over.
TEST(Overlap, ARunThatThrowsWaitsForWhatIsUnderWay) {
  const auto fuse = std::make_shared<Composite>(
      Composite{.name = "fuse",
                .infer = [](const Attributes&, std::span<const TensorType> in) { return std::vector{in[0]}; },
                .define = [](const Attributes&, std::span<const Tensor> in) { return std::vector{in[0]}; },
                .kernels = {cpu_kernel([](const CpuCall& call) {
                  if (call.in<float>(0)[0] == 0) throw Error("fuse", "it has blown");
                  call.out<float>()[0] = 1;
                })}});
  constexpr std::int64_t kMany = 1 << 20;
  std::vector<float> sums;
  const auto thrown = run_ranks(Mesh({{"data", 2}}), [&](const Collectives& c) {
    Graph g;
    const Tensor x = mul(g.input("x", {kMany}), 2.0);
    g.output("sum", c.all_reduce(x, {"data"}));
    g.output("fuse", call(fuse, {g.input("rank", {1})})[0]);
    const Program p = compile(g, device());
    EXPECT_EQ(fired(p.log(), "exchange overlapped"), 1);
    auto run = std::make_unique<Context>(p);
    run->set("x", Floats(kMany, 1.0f)).set("rank", Floats{static_cast<float>(c.rank())});
    if (c.rank() == 0) {
      EXPECT_THROW(run->run(), Error);
      run.reset();
      c.check_same("the end", "");
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    sums = run->run().get("sum");
    c.check_same("the end", "");
  });
  for (const std::string& what : thrown) EXPECT_EQ(what, "");
  EXPECT_EQ(sums, Floats(kMany, 4.0f));
}

}  // namespace
}  // namespace lc
