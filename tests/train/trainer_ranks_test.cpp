// A Trainer on several ranks trains as one does, and its checkpoints are those of any number of ranks.
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/distributed/sharding/strategies.h"
#include "lightcone/io/checkpoints/parts.h"
#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/io/data/loader.h"
#include "lightcone/nn/layers.h"
#include "lightcone/passes/passes.h"
#include "lightcone/train/trace.h"
#include "lightcone/train/trainer.h"

namespace lc {
namespace {

namespace fs = std::filesystem;
using Net = nn::Sequential<nn::Linear<6, 8>, nn::ReLU, nn::Linear<8, 4>>;

struct Model {
  Graph g;
  nn::Model<Net> net{g};
  Model() {
    const auto x = typed::input<float, 8, 6>(g, "x");
    const auto y = typed::input<std::int64_t, 8>(g, "y");
    auto loss = trace(
        net, [](auto& net, auto x, auto y) { return cross_entropy(net(x), y); }, x, y);
    loss.loss().retrieve("loss");
    update(net, optim::AdamW{.lr = 0.01}, backward(std::move(loss)));
  }
};

// The division of the model's step over a mesh; "full": along data, too.
ShardSpecs specs_for(const Graph& g, const Mesh& mesh, bool full) {
  ShardSpecs specs;
  for (const MeshAxis& a : mesh.axes()) {
    if (a.name == "data") {
      specs = joined(specs, data_parallel(g, "data", a.size));
      if (full) specs = joined(specs, fully_sharded(g, "data", a.size));
    } else {
      specs = joined(specs, {{"0.weight", {"", "model"}}, {"2.weight", {"", "model"}}});
    }
  }
  return specs;
}

void set_batch(Trainer& t, const Mesh& mesh, int rank, const ShardSpecs& specs, std::int64_t step) {
  std::vector<float> x(48);
  std::vector<std::int64_t> y(8);
  for (std::size_t k = 0; k < x.size(); ++k)
    x[k] = std::sin(static_cast<float>(static_cast<double>(k * k) + 3.0 * static_cast<double>(step)));
  for (std::size_t k = 0; k < y.size(); ++k) y[k] = static_cast<std::int64_t>(k + static_cast<std::size_t>(step)) % 4;
  const ArrayPart px = part_of(mesh, rank, specs, "x", {DType::F32, {8, 6}, std::as_bytes(std::span(x))}),
                  py = part_of(mesh, rank, specs, "y", {DType::I64, {8}, std::as_bytes(std::span(y))});
  t.context().set_bytes("x", px.bytes.data(), px.bytes.size());
  t.context().set_bytes("y", py.bytes.data(), py.bytes.size());
}

Compiler device() { return generic() | cpu({.threads = 1, .compiler = false}); }

using Tensors = std::map<std::string, std::vector<std::byte>>;
Tensors read_all(const std::string& path) {
  Tensors all;
  const Weights w = Weights::open(path);
  for (const auto& [name, t] : w.tensors()) all[name] = {t.bytes.begin(), t.bytes.end()};
  return all;
}
void expect_near(const Tensors& got, const Tensors& want, double room, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (const auto& [name, bytes] : want) {
    ASSERT_TRUE(got.contains(name)) << what << name;
    ASSERT_EQ(got.at(name).size(), bytes.size()) << what << name;
    if (bytes.size() % 4 != 0 || name.find("step") != name.npos) continue;
    for (std::size_t k = 0; k < bytes.size(); k += 4) {
      float a = 0, b = 0;
      std::memcpy(&a, got.at(name).data() + k, 4), std::memcpy(&b, bytes.data() + k, 4);
      ASSERT_NEAR(a, b, room) << what << name;
    }
  }
}

// Trains from step `from`, whose checkpoint is read, up to step `to`, and saves there. Returns what each rank threw.
std::vector<std::string> run(const Mesh& mesh, bool full, const std::string& path, std::int64_t from, std::int64_t to,
                             const std::function<void(Trainer&, int)>& end = {}) {
  const auto train = [&](const Collectives* c, int rank) {
    const Model m;
    const ShardSpecs specs = specs_for(m.g, mesh, full);
    TrainerOptions o{.seed = 3};
    if (c) o.ranks = TrainingRanks{*c, specs};
    Trainer t(m.net, device(), o);
    if (from > 0) t.load(path);
    EXPECT_EQ(t.steps(), from);
    while (t.steps() < to) {
      set_batch(t, mesh, rank, specs, t.steps());
      t.step();
    }
    if (end) end(t, rank);
    else t.save(path, {{"word", "kept"}});
  };
  if (mesh.size() == 1) {
    train(nullptr, 0);
    return {};
  }
  auto communicators = threads(mesh.size(), {.timeout_s = 20});
  std::vector<std::string> thrown(communicators.size());
  std::vector<std::thread> all;
  for (std::size_t k = 0; k < thrown.size(); ++k)
    all.emplace_back([&, k, mine = std::move(communicators[k])]() mutable {
      try {
        const Collectives c(mesh, std::move(mine));
        train(&c, static_cast<int>(k));
      } catch (const std::exception& e) {
        thrown[k] = e.what();
      }
    });
  for (std::thread& t : all) t.join();
  return thrown;
}
void run_well(const Mesh& mesh, bool full, const std::string& path, std::int64_t from, std::int64_t to) {
  for (const std::string& what : run(mesh, full, path, from, to)) EXPECT_EQ(what, "");
}

struct Case {
  Mesh mesh;
  bool full = false;
};
std::vector<Case> cases() {
  return {{Mesh()},
          {Mesh({{"data", 2}})},
          {Mesh({{"data", 4}}), true},
          {Mesh({{"model", 2}})},
          {Mesh({{"data", 2}, {"model", 2}}), true}};
}

class TrainerRanks : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("lightcone-ranks-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name / "run.safetensors").string(); }
  std::string fresh(const std::string& name) const {
    fs::remove_all(folder_ / name);
    fs::create_directories(folder_ / name);
    return path(name);
  }
  std::set<std::string> files(const std::string& name) const {
    std::set<std::string> all;
    for (const auto& e : fs::directory_iterator(folder_ / name)) all.insert(e.path().filename().string());
    return all;
  }
  fs::path folder_;
};

TEST_F(TrainerRanks, CheckpointsAreThoseOfOneRank) {
  run_well(Mesh(), false, fresh("one"), 0, 6);
  const Tensors want = read_all(path("one"));
  for (const Case& c : cases()) {
    const std::string what = str_cat(c.mesh, ": "), here = fresh("some");
    run_well(c.mesh, c.full, here, 0, 6);
    expect_near(read_all(io::latest_checkpoint(here)), want, 2e-5, what);
    EXPECT_EQ(Weights::open(io::latest_checkpoint(here)).metadata().at("word"), "kept");
  }
}

TEST_F(TrainerRanks, ResumesTheBitsOnTheSameMeshAndGoesOnWithAnother) {
  for (const Case& c : cases()) {
    run_well(c.mesh, c.full, fresh("whole"), 0, 6);
    run_well(c.mesh, c.full, fresh("stopped"), 0, 3);
    for (const Case& other : cases()) {
      fs::remove_all(folder_ / "again");
      fs::copy(folder_ / "stopped", folder_ / "again");
      run_well(other.mesh, other.full, path("again"), 3, 6);
      const Tensors whole = read_all(io::latest_checkpoint(path("whole"))),
                    again = read_all(io::latest_checkpoint(path("again")));
      if (other.mesh == c.mesh) EXPECT_EQ(whole, again) << c.mesh.str();
      else expect_near(again, whole, 2e-5, str_cat(c.mesh, " to ", other.mesh, ": "));
      // What the other mesh wrote before is not left beside it.
      EXPECT_EQ(files("again").contains("run.safetensors"), other.mesh.size() == 1);
      EXPECT_EQ(files("again").size(), other.mesh.size() == 1 ? 1u : static_cast<std::size_t>(other.mesh.size()) + 1);
    }
  }
}

TEST_F(TrainerRanks, TheIndexNamesTheOldFilesUntilTheNewOnesAreThere) {
  const Mesh mesh({{"data", 2}});
  const std::string here = fresh("run");
  run_well(mesh, true, here, 0, 2);
  const Tensors old = read_all(io::latest_checkpoint(here));
  // A rank that cannot write: all throw its Error, and the last checkpoint stays.
  fs::create_directory(io::part_file(here, 'b', 1, 2));
  const auto thrown = run(mesh, true, here, 2, 4);
  for (const std::string& what : thrown) EXPECT_NE(what.find("rank 1: "), std::string::npos) << what;
  EXPECT_EQ(read_all(io::latest_checkpoint(here)), old);
  fs::remove(io::part_file(here, 'b', 1, 2));
  // A kill between two calls leaves the files of both.
  run_well(mesh, true, here, 2, 4);
  EXPECT_NE(read_all(io::latest_checkpoint(here)), old);
  std::ofstream(io::part_file(here, 'a', 0, 2)) << "half a file";
  run_well(mesh, true, here, 4, 5);
  EXPECT_EQ(files("run"), (std::set<std::string>{"run.safetensors.index.json", "run-a-00001-of-00002.safetensors",
                                                 "run-a-00002-of-00002.safetensors"}));
}

TEST_F(TrainerRanks, OfTwoCheckpointsTheLaterOneIsRead) {
  const std::string here = fresh("run"), other = fresh("other");
  run_well(Mesh({{"data", 2}}), false, here, 0, 2);
  run_well(Mesh(), false, other, 0, 3);
  fs::copy(other, here);
  EXPECT_EQ(io::latest_checkpoint(here), here);
  fs::remove(here);
  run_well(Mesh(), false, fresh("other"), 0, 1);
  fs::copy(path("other"), here);
  EXPECT_EQ(io::latest_checkpoint(here), io::index_path(here));
  EXPECT_EQ(io::latest_checkpoint(path("none")), path("none"));
}

TEST_F(TrainerRanks, WholeFilesAreWrittenByRank0) {
  const std::string one = fresh("one");
  run(Mesh(), false, one, 0, 4, [&](Trainer& t, int) { t.save_parameters(one); });
  for (const Case& c : cases()) {
    const std::string here = fresh("run");
    for (const std::string& what : run(c.mesh, c.full, here, 0, 4, [&](Trainer& t, int rank) {
           t.save_parameters(here, {{"a", "b"}});
           t.on_rank_0([&] {
             EXPECT_EQ(rank, 0);
             const auto w = t.values("0.weight");
             EXPECT_EQ(w.size(), 48u);
             const std::vector<float> kept(w.begin(), w.end()), merged = t.merged("0.weight");
             EXPECT_EQ(merged, kept);
           });
         }))
      EXPECT_EQ(what, "");
    expect_near(read_all(here), read_all(one), 2e-5, str_cat(c.mesh, ": "));
    EXPECT_EQ(Weights::open(here).metadata().at("a"), "b");
  }
  // An Error on rank 0 is one of all ranks.
  const auto thrown = run(Mesh({{"data", 2}}), true, one, 0, 1,
                          [&](Trainer& t, int) { t.save_parameters((folder_ / "none" / "x.safetensors").string()); });
  for (const std::string& what : thrown) EXPECT_NE(what.find("cannot open the folder"), std::string::npos) << what;
  const auto outside = run(Mesh({{"data", 2}}), true, one, 0, 1, [&](Trainer& t, int) { t.values("0.weight"); });
  for (const std::string& what : outside) EXPECT_NE(what.find("within on_rank_0()"), std::string::npos) << what;
}

TEST(LoaderParts, AreTheRowsOfTheWholeBatch) {
  Array x = Array::zeros(DType::F32, {23, 1, 6, 6});
  for (std::size_t k = 0; k < x.values<float>().size(); ++k) x.values<float>()[k] = static_cast<float>(k);
  const auto data = std::make_shared<const Dataset>(Arrays{{"x", x}});
  LoaderOptions o{.batch_size = 8, .shuffle = true, .seed = 4, .transforms = {{"x", {RandomCrop{6, 6, 2}}}}};
  DataLoader whole(data, o);
  o.part_begin = 4, o.part_size = 4;
  DataLoader part(data, o);
  for (int k = 0; k < 7; ++k) {
    const Batch all = whole.next(), some = part.next();
    ASSERT_EQ(some.samples, std::vector<std::int64_t>(all.samples.begin() + 4, all.samples.end()));
    const auto a = all.at("x").bytes, s = some.at("x").bytes;
    ASSERT_EQ(s.size() * 2, a.size());
    EXPECT_TRUE(std::equal(s.begin(), s.end(), a.begin() + static_cast<std::ptrdiff_t>(s.size())));
  }
  o.part_begin = 5;
  EXPECT_THROW(DataLoader(data, o), Error);
}

}  // namespace
}  // namespace lc
