#include "lightcone/backends/gpu/attention_kernel.h"

#include <algorithm>
#include <initializer_list>

#include "lightcone/backends/gpu/attention/text.h"

namespace lc::backends::gpu {
namespace {

using lowering::Attention;
using i64 = std::int64_t;

// State shared by all kernels of one attention.
struct Plan {
  Attention match;
  AttentionTarget target;
  AttentionSizes sizes;
};

// The size arguments of one run, for every kernel of it.
struct Run {
  i64 batches, rows, keys;
  i64 numbers[kMaxSizes];
  std::size_t symbolic, count;

  Run(const Plan& plan, std::span<const i64> sizes)
      : symbolic(plan.sizes.symbolic().size()), count(plan.sizes.count()) {
    std::copy_n(sizes.begin(), symbolic, numbers);
    batches = sizes[symbolic], rows = sizes[symbolic + 1], keys = sizes[symbolic + 2];
    divide(1, {keys, 1});
  }
  // Divides the rows into blocks and the keys into splits. Returns the grid size.
  i64 divide(i64 tile_rows, KeySplits s) {
    const i64 blocks = (rows + tile_rows - 1) / tile_rows;
    numbers[symbolic] = rows, numbers[symbolic + 1] = blocks;
    numbers[symbolic + 2] = s.count, numbers[symbolic + 3] = s.keys;
    return batches * blocks * s.count;
  }
  std::span<const i64> arguments() const { return {numbers, count}; }
};

class TilesKernel final : public TextKernel {
 public:
  TilesKernel(std::shared_ptr<const Plan> plan, AttentionTile tile, bool splits)
      : plan_(std::move(plan)), tile_(tile), splits_(splits) {}
  void enqueue(const Launch& l, GpuDevice& device) const override {
    Run run(*plan_, l.sizes);
    const KeySplits s = splits(run.keys);
    const i64 groups = run.divide(tile_.rows, s);
    Launch with = l;
    BufferSlice all[kMaxBuffers];
    if (splits_) {  // the result becomes an operand, and the kernel writes to the memory for splits
      std::copy(l.in.begin(), l.in.end(), all);
      all[l.in.size()] = l.out;
      with.in = {all, l.in.size() + 1}, with.out = l.scratch;
    }
    launch_kernel(device, LaunchBuffers(with), groups, tile_.threads(), run.arguments());
  }
  std::string text(std::string_view name) const override {
    return attention_text(plan_->match, plan_->sizes, tile_, plan_->target, splits_, name);
  }
  KeySplits splits(i64 keys) const { return splits_ ? split_keys(keys, tile_) : KeySplits{keys, 1}; }

 private:
  std::shared_ptr<const Plan> plan_;
  AttentionTile tile_;
  bool splits_;
};

class JoinKernel final : public TextKernel {
 public:
  JoinKernel(std::shared_ptr<const Plan> plan, std::shared_ptr<const TilesKernel> before)
      : plan_(std::move(plan)), before_(std::move(before)) {}
  void enqueue(const Launch& l, GpuDevice& device) const override {
    Run run(*plan_, l.sizes);
    run.divide(1, before_->splits(run.keys));
    Launch with = l;
    with.in = {&l.scratch, 1};
    launch_kernel(device, LaunchBuffers(with), run.batches * run.rows, join_threads(plan_->match, plan_->target),
                  run.arguments());
  }
  std::string text(std::string_view name) const override {
    return join_text(plan_->match, plan_->sizes, plan_->target, name);
  }

 private:
  std::shared_ptr<const Plan> plan_;
  std::shared_ptr<const TilesKernel> before_;
};

class AttentionKernel final : public GpuKernel {
 public:
  AttentionKernel(std::shared_ptr<const Plan> plan, std::shared_ptr<const TilesKernel> many,
                  std::shared_ptr<const TilesKernel> few, std::shared_ptr<const JoinKernel> join)
      : plan_(std::move(plan)), many_(std::move(many)), few_(std::move(few)), join_(std::move(join)) {}
  std::string name() const override { return "attention"; }
  std::string source() const override {
    std::string all;
    for (const TextKernel* k : std::initializer_list<const TextKernel*>{many_.get(), few_.get(), join_.get()})
      if (k) all += k->source();
    return all;
  }
  std::vector<Dim> sizes() const override {
    std::vector<Dim> all = plan_->sizes.symbolic();
    all.insert(all.end(), {batches_of(plan_->match), rows_of(plan_->match), plan_->match.layout.keys});
    return all;
  }
  // Memory for one row per split: its values, its maximum and its sum.
  Dim scratch_bytes(int) const override {
    if (!join_) return 0;
    const i64 splits = std::min(plan_->match.layout.keys.bounds().hi / kSplitKeys + 1, kMostSplits);
    const Dim rows = std::min(rows_of(plan_->match).bounds().hi, kFewRows);
    return batches_of(plan_->match) * rows * Dim(splits * 4) * (plan_->match.layout.width + 2);
  }
  Dim flops() const override {
    return Dim(2) * batches_of(plan_->match) * rows_of(plan_->match) * plan_->match.layout.keys *
           (plan_->match.layout.depth + plan_->match.layout.width);
  }
  void enqueue(const Launch& l, GpuDevice& device) const override {
    const Run run(*plan_, l.sizes);
    if (!few_ || (many_ && run.rows > kFewRows)) return many_->enqueue(l, device);
    few_->enqueue(l, device);
    if (few_->splits(run.keys).count > 1) join_->enqueue(l, device);
  }

 private:
  std::shared_ptr<const Plan> plan_;
  std::shared_ptr<const TilesKernel> many_, few_;  // null if there are never so many rows
  std::shared_ptr<const JoinKernel> join_;         // null if the keys are never split
};

}  // namespace

AttentionParts attention_kernel(Attention match, const Limits& limits, Precision precision) {
  if (!is_head(match.layout.depth) || !is_head(match.layout.width)) return {};
  AttentionSizes sizes(match.layout);
  if (match.operands.size() + 2 > limits.max_buffers || sizes.count() > kMaxSizes) return {};
  const AttentionTarget target{limits.language, limits.max_block_size, limits.warp, static_cast<i64>(limits.shared),
                               precision == Precision::Medium && capability(limits) >= 80};
  const auto plan = std::make_shared<const Plan>(Plan{std::move(match), target, std::move(sizes)});
  const Bounds rows = rows_of(plan->match).bounds();
  AttentionParts made;
  std::shared_ptr<TilesKernel> many, few;
  std::shared_ptr<JoinKernel> join;
  if (rows.hi > kFewRows) {
    const auto tile = tile_of_many_rows(plan->match, target);
    if (!tile) return {};
    made.pieces.push_back(many = std::make_shared<TilesKernel>(plan, *tile, false));
  }
  if (rows.lo <= kFewRows) {
    const auto tile = tile_of_few_rows(plan->match, target);
    if (!tile) return {};
    const bool splits = split_keys(plan->match.layout.keys.bounds().hi, *tile).count > 1;
    made.pieces.push_back(few = std::make_shared<TilesKernel>(plan, *tile, splits));
    if (splits) made.pieces.push_back(join = std::make_shared<JoinKernel>(plan, few));
  }
  made.kernel = std::make_shared<AttentionKernel>(plan, many, few, join);
  return made;
}

Graph fuse_attention(const Graph& g, const std::shared_ptr<GpuDevice>& device, PassLog& log, Precision precision,
                     lowering::AttentionFusion fuse) {
  std::vector<std::shared_ptr<TextKernel>> pieces;
  Graph fused = fuse(g, log, [&](const Graph& from, NodeId result, Attention match) {
    std::vector<NodeId> operands;
    for (const Edge& e : match.operands) operands.push_back(e.node);
    std::string kind = lowering::describe(match);
    AttentionParts made = attention_kernel(std::move(match), device->limits(), precision);
    if (!made.kernel) return lowering::NamedKernel{};
    made.kernel->origin = {"gpu: attention", steps(from, result, operands), std::move(kind)};
    made.kernel->device = device;
    pieces.insert(pieces.end(), made.pieces.begin(), made.pieces.end());
    return lowering::NamedKernel{made.kernel, made.kernel->name()};
  });
  compile(pieces, *device, log);
  return fused;
}

}  // namespace lc::backends::gpu
