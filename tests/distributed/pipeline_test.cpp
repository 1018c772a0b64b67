// Pipelines, and batches in parts: the ranks' programs compute what one rank does.
#include <gtest/gtest.h>

#include "lightcone/distributed/strategies.h"
#include "training.h"

namespace lc::test {
namespace {

ShardSpecs batch_in_parts(const Job& j, int parts) { return data_parallel(j.graph, "micro", parts); }

// Gradient accumulation: one rank computes its batch in parts, with the memory of one part and of the gradients.
TEST(Serial, BatchInParts) {
  const Job jobs[] = {mlp(), gpt(), resnet(), llama()};
  for (const Job& j : jobs) {
    const Trained one = train(j, device(), Mesh(), 0, {});
    for (const int parts : {2, 4}) {
      const auto all = expect_as_one_rank(j, Mesh(), batch_in_parts(j, parts), str_cat(parts, " parts"), 2e-5,
                                          {.serial = {{"micro", parts}}});
      if (&j == &jobs[1]) EXPECT_LT(all[0].arena_bytes, one.arena_bytes * 3 / 4) << parts;
    }
  }
}

TEST(Pipeline, TrainsAsOneRank) {
  const Job jobs[] = {mlp(), gpt(), resnet(), llama()};
  for (const PipelineSchedule schedule :
       {PipelineSchedule::OneForwardOneBackward, PipelineSchedule::AllForwardAllBackward})
    for (const Job& j : jobs)
      for (const int stages : {2, 4})
        expect_as_one_rank(j, Mesh({{"pipe", stages}}), batch_in_parts(j, 4), str_cat(stages, " stages"), 2e-5,
                           {.serial = {{"micro", 4}}, .pipeline = "pipe", .schedule = schedule});
}

}  // namespace
}  // namespace lc::test
