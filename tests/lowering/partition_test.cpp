// The partition of a graph keeps in memory the values that it should and recomputes the others where they are read.
#include "lightcone/lowering/partition.h"

#include <gtest/gtest.h>

#include "lightcone/autograd/autograd.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/device/kernel.h"
#include "lightcone/ops/loss.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"

using namespace lc;
using lowering::Partition;
using lowering::PartitionRules;

namespace {

bool is_kept(const Graph& g, const Tensor& value, std::int64_t repeated) {
  PartitionRules rules;
  rules.match = [](const Graph&, const lowering::Factors&) { return PartitionRules::Match(); };
  rules.recompute_threshold = repeated;
  return Partition(g, rules).in_memory(value.edge().node);
}
constexpr std::int64_t kBytes = 64 * 32 * 4;  // bytes of each value in these tests

}  // namespace

// The exponentials that a loss sums up and its derivative reads.
TEST(Partition, LargeValuesOfFewOperationsAreComputedAgain) {
  Graph g;
  const Tensor x = g.input("x", {64, 32}), top = amax(x, {1}, true), e = exp2(x - top);
  g.output("sums", sum(e, {1}));
  g.output("slope", e - 1);
  g.output("top", top);
  EXPECT_FALSE(is_kept(g, e, kBytes));
  EXPECT_TRUE(is_kept(g, e, kBytes + 1));
}

// The square of an activation, which its function and the derivative read.
TEST(Partition, ValuesOfOneOperationAreComputedAgainWhenTheyAreSmaller) {
  Graph g;
  const Tensor x = sin(g.input("a", {64, 32}) + g.input("b", {64, 32})), square = x * x;
  g.output("columns", sum(square, {0}));
  g.output("rows", sum(square, {1}));
  g.output("top", amax(x, {1}));
  g.output("least", amin(x, {0}));
  EXPECT_FALSE(is_kept(g, square, kBytes * 16));
  EXPECT_TRUE(is_kept(g, x, kBytes * 16));
  EXPECT_TRUE(is_kept(g, square, kBytes * 16 + 16));
}

TEST(Partition, WhatNobodyElseWantsInMemoryIsNotReadInstead) {
  Graph g;
  const Tensor x = g.input("x", {64, 32}), e = exp2(x);
  g.output("sums", sum(e, {1}));
  g.output("columns", sum(e, {0}));
  EXPECT_TRUE(is_kept(g, e, 0)) << "x has no other reader";
}

TEST(Partition, ValuesOfTransposedOnesAreKept) {
  Graph g;
  const Tensor x = g.input("x", {64, 32}), e = exp2(x.transpose(0, 1));
  g.output("sums", sum(e, {1}));
  g.output("slope", e - 1);
  g.output("most", amax(x, {1}));
  EXPECT_TRUE(is_kept(g, e, 0));
}

TEST(Partition, ValuesOfTwoLargeOnesAreKept) {
  Graph g;
  const Tensor x = g.input("x", {64, 32}), y = g.input("y", {64, 32}), both = x + y;
  g.output("sums", sum(both, {1}));
  g.output("columns", sum(both, {0}));
  g.output("most of x", amax(x, {1}));
  g.output("most of y", amax(y, {1}));
  g.output("least of y", amin(y, {1}));
  EXPECT_TRUE(is_kept(g, both, 0));
}

TEST(Partition, ValuesThatManyReadAreKept) {
  Graph g;
  const Tensor x = g.input("x", {64, 32}), e = exp2(x);
  g.output("top", amax(x, {1}));
  g.output("sums", sum(e, {1}));
  g.output("columns", sum(e, {0}));
  g.output("most", amax(e, {1}));
  EXPECT_TRUE(is_kept(g, e, 0));
}

TEST(Partition, LongCalculationsAreKept) {
  Graph g;
  const Tensor x = g.input("x", {64, 32});
  Tensor e = x;
  for (int i = 0; i < 8; ++i) e = sin(e) + 1;
  g.output("top", amax(x, {1}));
  g.output("sums", sum(e, {1}));
  g.output("columns", sum(e, {0}));
  EXPECT_TRUE(is_kept(g, e, 0));
}

// A mask takes a quarter of its operand's bytes.
TEST(Partition, NarrowValuesAreKeptInsteadOfWideOnes) {
  Graph g;
  const Tensor x = g.input("x", {64, 32}), mask = lt(x, 0.5);
  g.output("top", amax(x, {1}));
  g.output("columns", any(mask, {0}));
  g.output("rows", any(mask, {1}));
  ASSERT_EQ(info(g[mask.edge().node].op).kind, Kind::Elementwise);
  EXPECT_TRUE(is_kept(g, mask, 0));
}

// With rows of four, the extra operand (one number per row) is not small compared with the value.
TEST(Partition, ValuesOfALargeOneAndShortRowsAreKept) {
  for (const auto& [columns, kept] : {std::pair{4, true}, {32, false}}) {
    Graph g;
    const Tensor x = g.input("x", {64, columns}), d = x - amax(x, {1}, true);
    g.output("sums", sum(d, {0}));
    g.output("slope", d * 2);
    EXPECT_EQ(is_kept(g, d, 0), kept) << columns;
  }
}

// A loss of 17 MB of logits and its derivative: the plan has room for both, but not for the exponentials.
TEST(Partition, ALossKeepsNoExponentials) {
  constexpr std::int64_t kRows = 1024, kClasses = 4160, kLogits = kRows * kClasses * 4;
  Graph g;
  const Tensor x = g.input("x", {4, kRows / 4, kClasses}), wanted = g.input("wanted", {kRows}, DType::I64);
  const Tensor loss = cross_entropy(x.reshape({kRows, kClasses}), wanted);
  g.output("loss", loss);
  g.output("slope", gradients(loss, {x})[0]);
  const Program p = compile(g, generic() | cpu());
  EXPECT_LT(p.plan().total_bytes(), 2 * kLogits + kLogits / 8);
}

// A group of channels has two statistics, whose place in a loop over channels is one half of the channel's: they are
// computed once for each group, not for each element.
TEST(Partition, StatisticsOfGroupsAreNotComputedForEachElement) {
  Graph g;
  const Tensor x = g.input("x", {1, 64, 32, 32}), c = g.input("c", {1, 64, 1, 1});
  g.output("y", group_norm(x + c, 32));
  const Program p = compile(g, generic() | cpu({.threads = 1, .compiler = false}));
  double flops = 0;
  for (NodeId id = 0; id < p.graph().size(); ++id)
    if (p.graph()[id].kernel) flops += static_cast<double>(p.graph()[id].kernel->flops().bounds().hi);
  EXPECT_LT(flops, 30 * 64 * 32 * 32);
}
