// Training on several ranks: losses and parameters are those of one rank, memory is what was planned.
#include "training.h"

#include <gtest/gtest.h>

#include "lightcone/distributed/sharding/strategies.h"

namespace lc::test {
namespace {

TEST(DistributedTraining, MlpInParallel) {
  const Job j = mlp();
  const ShardSpecs tensor{{"up.weight", {"model"}}, {"up.bias", {"model"}}, {"down.weight", {"", "model"}}};
  for (const int n : {1, 2, 4, 8})
    expect_as_one_rank(j, Mesh({{"data", n}}), data_parallel(j.graph, "data", n), "data parallel");
  for (const int n : {2, 4, 8}) expect_as_one_rank(j, Mesh({{"model", n}}), tensor, "tensor parallel");
  const Mesh both({{"data", 2}, {"model", 2}});
  const auto all = expect_as_one_rank(j, both, joined(data_parallel(j.graph, "data", 2), tensor), "both");
  EXPECT_EQ(all[0].fired.count("all_gather"), 0u);
}

TEST(DistributedTraining, GptInParallel) {
  const Job j = gpt();
  for (const int n : {2, 4}) {
    const auto all = expect_as_one_rank(j, Mesh({{"data", n}}), data_parallel(j.graph, "data", n), "data parallel");
    EXPECT_EQ(all[0].fired.count("all_gather"), 0u);
  }
  for (const int n : {2, 4}) expect_as_one_rank(j, Mesh({{"model", n}}), kMegatron, "tensor parallel");
  expect_as_one_rank(j, Mesh({{"data", 2}, {"model", 2}}), joined(data_parallel(j.graph, "data", 2), kMegatron),
                     "both");
  expect_as_one_rank(j, Mesh({{"data", 2}, {"model", 4}}), joined(data_parallel(j.graph, "data", 2), kMegatron),
                     "both");
}

TEST(DistributedTraining, ResNetInParallel) {
  const Job j = resnet();
  for (const int n : {2, 4}) {
    const ShardSpecs batch = data_parallel(j.graph, "data", n);
    const auto all = expect_as_one_rank(j, Mesh({{"data", n}}), batch, "data parallel");
    EXPECT_EQ(all[0].fired.count("all_gather"), 0u);
    expect_as_one_rank(j, Mesh({{"data", n}}), joined(batch, fully_sharded(j.graph, "data", n)), "ZeRO 3");
  }
}

TEST(DistributedTraining, LlamaInParallel) {
  const Job j = llama();
  ShardSpecs tensor = kMegatron;
  std::erase_if(tensor, [](const ShardSpec& s) { return s.name == "wte.weight"; });
  for (const char* name : {"*.gate.weight", "embed.weight", "head.weight"}) tensor.push_back({name, {"model"}});
  for (const int n : {2, 4})
    expect_as_one_rank(j, Mesh({{"data", n}}), data_parallel(j.graph, "data", n), "data parallel");
  expect_as_one_rank(j, Mesh({{"model", 2}}), tensor, "tensor parallel");
  expect_as_one_rank(j, Mesh({{"data", 2}, {"model", 2}}), joined(data_parallel(j.graph, "data", 2), tensor), "both");
}

int count(const Trained& t, const char* what) {
  const auto at = t.fired.find(what);
  return at == t.fired.end() ? 0 : at->second;
}

// Texts are divided along their length. Keys are not gathered: they travel, or heads are divided anew.
TEST(DistributedTraining, TextInParallel) {
  const Job l = llama(), g = gpt();
  for (const int n : {2, 4}) {
    const Mesh mesh({{"seq", n}});
    // Two heads of keys and four of queries: a ring sends less among two ranks, and four cannot divide two heads.
    const Trained ring = expect_as_one_rank(l, mesh, sequence_parallel(l.graph, "seq", n), "text parallel")[0];
    EXPECT_EQ(count(ring, "all_gather"), 0);
    EXPECT_GT(count(ring, "permute"), 0);
    const Trained heads = expect_as_one_rank(g, mesh, sequence_parallel(g.graph, "seq", n), "text parallel")[0];
    EXPECT_EQ(count(heads, "all_gather"), 2);  // the next values of places and of their momentum
    EXPECT_GT(count(heads, "all_to_all"), 0);
  }
  for (const Job* j : {&l, &g}) {
    const ShardSpecs text = sequence_parallel(j->graph, "seq", 2), batch = data_parallel(j->graph, "data", 2);
    expect_as_one_rank(*j, Mesh({{"data", 2}, {"seq", 2}}), joined(batch, text), "texts and their lengths");
    ShardSpecs tensor = kMegatron;
    if (j == &l) std::erase_if(tensor, [](const ShardSpec& s) { return s.name == "wte.weight"; });
    expect_as_one_rank(*j, Mesh({{"seq", 2}, {"model", 2}}), joined(text, tensor), "texts and heads");
    expect_as_one_rank(*j, Mesh({{"seq", 2}}), joined(text, fully_sharded(j->graph, "seq", 2)), "fully sharded");
  }
}

TEST(DistributedTraining, ShardedStates) {
  // AdamW divides by the root of small squares: rounding grows from step to step.
  const double room = 2e-4;
  const Job j = gpt(optim::AdamW{.lr = 1e-2});
  const Trained one = train(j, device(), Mesh(), 0, {});
  for (const int n : {2, 4}) {
    const Mesh mesh({{"data", n}});
    const ShardSpecs batch = data_parallel(j.graph, "data", n);
    const auto moments = expect_as_one_rank(
        j, mesh, joined(batch, fully_sharded(j.graph, "data", n, ShardedState::Moments)), "ZeRO 1", room);
    EXPECT_GT(moments[0].fired.at("reduce_scatter"), 0);
    const auto all = expect_as_one_rank(j, mesh, joined(batch, fully_sharded(j.graph, "data", n)), "ZeRO 3", room);
    EXPECT_GT(all[0].fired.at("reduce_scatter"), 0);
    EXPECT_GT(all[0].fired.at("all_gather"), 0);
    EXPECT_LE(static_cast<double>(all[0].state_bytes), 1.2 / n * static_cast<double>(one.state_bytes));
  }
  const Mesh mesh({{"data", 2}, {"model", 2}});
  expect_as_one_rank(j, mesh,
                     joined(joined(data_parallel(j.graph, "data", 2), kMegatron), fully_sharded(j.graph, "data", 2)),
                     "ZeRO 3 and tensor parallel", room);
}

}  // namespace
}  // namespace lc::test
