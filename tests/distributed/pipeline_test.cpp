// Pipelines, and batches in parts: the ranks' programs compute what one rank does.
#include <gtest/gtest.h>

#include "lightcone/distributed/sharding/stages.h"
#include "lightcone/distributed/sharding/strategies.h"
#include "training.h"

namespace lc::test {
namespace {

ShardSpecs batch_in_parts(const Job& j, int parts) { return data_parallel(j.graph, "micro", parts); }

// Gradient accumulation: one rank computes its batch in parts.
TEST(Serial, BatchInParts) {
  for (const Job& j : {mlp(), gpt(), resnet(), llama()})
    expect_as_one_rank(j, Mesh(), batch_in_parts(j, 4), "parts", 2e-5, {.serial = {{"micro", 4}}});
}

// A part's backward pass follows its forward pass: the activations of one part are alive at a time.
TEST(Serial, NeedsTheMemoryOfOnePart) {
  Graph g;
  Tensor x = g.input("x", {64, 32});
  const Tensor y = g.input("y", {64, 32});
  std::vector<Tensor> w;
  for (int k = 0; k < 8; ++k) {
    w.push_back(g.parameter(str_cat("w", k), {32, 32}));
    x = tanh(matmul(x, w.back()));
  }
  const Tensor loss = mean(square(sub(x, y)));
  g.output("loss", loss);
  std::vector<optim::Update> updates;
  const auto d = gradients(loss, w);
  for (std::size_t k = 0; k < w.size(); ++k) updates.push_back({w[k], d[k]});
  optim::step(optim::SGD{.lr = 0.1}, updates);
  const auto arena = [&](int parts) {
    const Collectives alone(Mesh(), threads(1)[0]);
    const auto specs = data_parallel(g, "micro", parts);
    return compile(g, shard(alone, specs, {.serial = {{"micro", parts}}}) | device()).plan().arena_bytes;
  };
  const std::size_t gradients_and_more = 8 * 32 * 32 * 4;
  const std::size_t one = arena(1), eight = arena(8);
  EXPECT_LT(eight, one / 4 + 2 * gradients_and_more) << one;
}

// In both schedules a stage works on one part at a time, after the stage before (or behind) it; 1F1B keeps the
// activations of few parts.
TEST(Pipeline, Schedules) {
  constexpr int kStages = 4, kParts = 7;
  for (const auto schedule : {PipelineSchedule::OneForwardOneBackward, PipelineSchedule::AllForwardAllBackward}) {
    const auto t = distributed::pipeline_ticks(schedule, kStages, kParts);
    for (int s = 0; s < kStages; ++s) {
      const auto &f = t.forward[static_cast<std::size_t>(s)], &b = t.backward[static_cast<std::size_t>(s)];
      ASSERT_TRUE(f.size() == kParts && b.size() == kParts);
      std::vector<int> busy(static_cast<std::size_t>(t.total));
      for (std::size_t k = 0; k < kParts; ++k) {
        ++busy[static_cast<std::size_t>(f[k])], ++busy[static_cast<std::size_t>(b[k])];
        EXPECT_LT(f[k], b[k]);
        if (s == 0) continue;
        EXPECT_LT(t.forward[static_cast<std::size_t>(s - 1)][k], f[k]);
        EXPECT_LT(b[k], t.backward[static_cast<std::size_t>(s - 1)][k]);
      }
      EXPECT_EQ(*std::ranges::max_element(busy), 1);
      int kept = 0, most = 0;
      for (int now = 0; now < t.total; ++now) {
        kept += static_cast<int>(std::ranges::count(f, now) - std::ranges::count(b, now));
        most = std::max(most, kept);
      }
      EXPECT_EQ(most, schedule == PipelineSchedule::OneForwardOneBackward ? kStages - s : kParts);
    }
    EXPECT_EQ(t.total, 2 * (kParts + kStages - 1));  // the bubble is as short as it can be
  }
}

TEST(Pipeline, TrainsAsOneRank) {
  for (const Job& j : {mlp(), gpt(), resnet(), llama()})
    for (const auto& [stages, schedule] :
         {std::pair(2, PipelineSchedule::OneForwardOneBackward), std::pair(4, PipelineSchedule::AllForwardAllBackward)})
      expect_as_one_rank(j, Mesh({{"pipe", stages}}), batch_in_parts(j, 4), str_cat(stages, " stages"), 2e-5,
                         {.serial = {{"micro", 4}}, .pipeline = "pipe", .schedule = schedule});
}

// Messages have one order on all ranks, so that a send may wait for its receiver, as it does in the stream of a GPU.
TEST(Pipeline, SendsMayWait) {
  const Job j = mlp();
  constexpr int kFew = 5;
  const Trained one = train(j, device(), Mesh(), 0, {}, kFew);
  for (const auto schedule : {PipelineSchedule::OneForwardOneBackward, PipelineSchedule::AllForwardAllBackward})
    for (const int stages : {2, 3, 4}) {
      const ShardOptions options{.serial = {{"micro", 8}}, .pipeline = "pipe", .schedule = schedule};
      const Mesh mesh({{"pipe", stages}});
      const auto thrown = run_ranks(mesh, [&](const Collectives& c) {
        const Trained t = train(j, shard(c, batch_in_parts(j, 8), options) | device(), mesh, c.rank(), {}, kFew,
                                {.skip = {"overlap-exchanges"}});
        EXPECT_EQ(t.fired.count("exchange overlapped"), 0u);
        expect_near(t.losses, one.losses, 2e-5, str_cat(stages, " stages"));
      });
      for (const std::string& what : thrown) EXPECT_EQ(what, "");
    }
}

// Two stages, of which each is two data-parallel or tensor-parallel ranks.
TEST(Pipeline, WithOtherAxes) {
  const Job j = gpt();
  const ShardOptions options{.serial = {{"micro", 2}}, .pipeline = "pipe"};
  expect_as_one_rank(j, Mesh({{"pipe", 2}, {"data", 2}}),
                     joined(data_parallel(j.graph, "data", 2), batch_in_parts(j, 2)), "pipeline and data", 2e-5,
                     options);
  expect_as_one_rank(j, Mesh({{"pipe", 2}, {"model", 2}}), joined(kMegatron, batch_in_parts(j, 2)),
                     "pipeline and tensor", 2e-5, options);
}

// Each stage has its own parameters and the memory of these; the table that two stages read is the first one's.
TEST(Pipeline, StagesHaveTheirParameters) {
  const Job j = gpt(optim::AdamW{.lr = 1e-2});
  const auto all =
      on_ranks(j, Mesh({{"pipe", 2}}), batch_in_parts(j, 2), {.serial = {{"micro", 2}}, .pipeline = "pipe"});
  const Trained one = train(j, device(), Mesh(), 0, {});
  EXPECT_TRUE(all[0].parameters.contains("wte.weight") && !all[1].parameters.contains("wte.weight"));
  EXPECT_TRUE(all[0].parameters.contains("h.0.attn.q.weight") && !all[1].parameters.contains("h.0.attn.q.weight"));
  EXPECT_TRUE(all[1].parameters.contains("h.1.mlp.down.weight") && !all[0].parameters.contains("h.1.mlp.down.weight"));
  for (const Trained& t : all) {
    EXPECT_LT(t.state_bytes, one.state_bytes * 2 / 3);
    EXPECT_GT(t.fired.count("send"), 0u);
    EXPECT_GT(t.fired.count("exchange overlapped"), 0u);  // sends do not wait
  }
}

TEST(Pipeline, SaysWhatIsWrong) {
  const Job j = mlp();
  const auto problem = [&](const ShardSpecs& specs, const ShardOptions& options) {
    return run_ranks(Mesh({{"pipe", 2}}),
                     [&](const Collectives& c) { transform(j.graph, shard(c, specs, options)); })[0];
  };
  EXPECT_NE(problem({}, {.pipeline = "stages"}).find("there is no axis 'stages'"), std::string::npos);
  EXPECT_NE(problem({{"x", {"pipe"}}}, {.pipeline = "pipe"}).find("whose ranks are the stages of the pipeline"),
            std::string::npos);
  EXPECT_NE(problem({{"x", {"micro+pipe"}}}, {.serial = {{"micro", 2}}}).find("name the axis of the mesh first"),
            std::string::npos);
}

}  // namespace
}  // namespace lc::test
