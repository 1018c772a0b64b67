#include "lightcone/backends/cpu/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lightcone/backends/cpu/products/microkernel.h"
#include "lightcone/device/host_kernel.h"

namespace lc::backends::cpu {
namespace {

using lowering::Attention;

using i64 = std::int64_t;
constexpr i64 kBlocks = 32;      // with fewer blocks, the keys are split
constexpr i64 kLeastKeys = 256;  // minimum keys per split
constexpr i64 kTasks = 4;        // per worker, before blocks are computed together

const AttentionTable& table(const Attention& plan, const Target& target, Precision precision) {
  const AttentionTable& f32 = *kernel_tables(target.isa).attention;
  if (precision != Precision::Medium) return f32;
  if (bf16_dots_are_fast(target)) return kAttentionAvx512Bf16;
  const bool deep = plan.layout.depth.bounds().lo >= kLeastDepthOnTiles;
  if (!deep || !on_tiles(*microkernel(Arithmetic::Bf16, target))) return f32;
  return tiles_emulated() ? kAttentionEmulated : kAttentionAmx;
}

// A run of the kernel, with all sizes as numbers.
struct Job {
  const AttentionTable* table;
  const Attention* plan;
  lowering::AttentionLayout<i64> layout;
  AttentionProblem problem;
  std::span<const void* const> in;
  float *out, *partial, *scratch;
  i64 batches, rows;            // for the whole result
  i64 blocks, splits, stretch;  // blocks per batch, splits of the keys, keys per split
  i64 together = 1;             // blocks of a task
  i64 worker_floats;
};

struct Offsets {
  i64 q, k, v, k_scale, v_scale, out;
  std::array<i64, kScoreSteps> step;
};
// Adds the offsets of element `index` of axes [from, to) to `at`.
void locate(const Job& j, i64 index, int from, int to, Offsets& at) {
  for (int i = to; i-- > from;) {
    const auto& a = j.layout.axis[i];
    const i64 here = index % a.extent;
    index /= a.extent;
    at.q += here * a.q, at.k += here * a.k, at.v += here * a.v, at.out += here * a.out;
    at.k_scale += here * a.k_scale, at.v_scale += here * a.v_scale;
    for (std::size_t s = 0; s < kScoreSteps; ++s) at.step[s] += here * a.step[s];
  }
}

const std::byte* operand(const Job& j, int k, i64 elements, i64 size) {
  return static_cast<const std::byte*>(j.in[k]) + elements * size;
}
const float* scales(const Job& j, int k, i64 elements) {
  return k ? static_cast<const float*>(j.in[k]) + elements : nullptr;
}

i64 rows_of(const Job& j, i64 block) { return std::min<i64>(j.table->rows, j.rows - block * j.table->rows); }
float* partials(const Job& j, i64 block, i64 split) {
  return j.partial + (block * j.splits + split) * j.table->rows * (j.layout.width + 2);
}

// Block `block` of all, and the keys of a split, with the worker's scratch.
AttentionBlock block_at(const Job& j, i64 block, i64 split, int worker) {
  const i64 batch = block / j.blocks;
  const lowering::AttentionLayout<i64>& l = j.layout;
  Offsets start{l.q_at, l.k_at, l.v_at, l.k_scale_at, l.v_scale_at, 0, l.step_at};
  locate(j, batch, 0, j.plan->batches, start);
  AttentionBlock b;
  b.problem = &j.problem;
  b.begin = split * j.stretch, b.end = std::min(l.keys, b.begin + j.stretch);
  b.k = operand(j, 1, start.k, cache_bytes(j.problem.k_type));
  b.v = operand(j, 2, start.v, cache_bytes(j.problem.v_type));
  b.k_scale = scales(j, j.plan->k_scale, start.k_scale);
  b.v_scale = scales(j, j.plan->v_scale, start.v_scale);
  b.rows = rows_of(j, block % j.blocks);
  for (i64 r = 0; r < b.rows; ++r) {
    Offsets at = start;
    locate(j, block % j.blocks * j.table->rows + r, j.plan->batches, j.plan->axes, at);
    b.q[r] = static_cast<const float*>(j.in[0]) + at.q;
    b.out[r] = j.out + at.out;
    for (std::size_t s = 0; s < static_cast<std::size_t>(j.problem.steps); ++s)
      b.step[s][r] = operand(j, j.plan->operand[s], at.step[s], j.problem.step[s].kind == ScoreStep::Bias ? 4 : 1);
  }
  b.partial = j.splits > 1 ? partials(j, block, split) : nullptr;
  b.scratch = j.scratch + worker * j.worker_floats;
  return b;
}

void attend(void* arg, int task, int worker) {
  const Job& j = *static_cast<Job*>(arg);
  const i64 split = task % j.splits, groups = (j.blocks + j.together - 1) / j.together, group = task / j.splits;
  const i64 batch = group / groups, first = group % groups * j.together;
  const auto count = static_cast<int>(std::min(j.together, j.blocks - first));
  AttentionBlock b[kAttentionBlocks];
  for (int i = 0; i < count; ++i) b[i] = block_at(j, batch * j.blocks + first + i, split, worker);
  j.table->blocks(b, count);
}

// Combines the partial results of a block's splits.
void combine(void* arg, int task, int) {
  const Job& j = *static_cast<Job*>(arg);
  const i64 block = task, width = j.layout.width, step = width + 2;
  Offsets start{};
  locate(j, block / j.blocks, 0, j.plan->batches, start);
  for (i64 r = 0; r < rows_of(j, block % j.blocks); ++r) {
    Offsets at = start;
    locate(j, block % j.blocks * j.table->rows + r, j.plan->batches, j.plan->axes, at);
    float* out = j.out + at.out;
    constexpr float lowest = -std::numeric_limits<float>::infinity();
    float top = lowest, total = 0;
    for (i64 s = 0; s < j.splits; ++s) top = std::max(top, partials(j, block, s)[r * step + width]);
    std::fill(out, out + width, 0.0f);
    const float base = top == lowest ? 0 : top;
    for (i64 s = 0; s < j.splits; ++s) {
      const float* p = partials(j, block, s) + r * step;
      const float share = std::exp2((p[width] - base) * j.problem.exponent);
      total += p[width + 1] * share;
      for (i64 c = 0; c < width; ++c) out[c] += p[c] * share;
    }
    const float scale = top == lowest ? top - top : 1 / total;
    for (i64 c = 0; c < width; ++c) out[c] *= scale;
  }
}

// The types and steps of an attention, for the microkernels.
AttentionProblem problem_of(const lowering::AttentionScores& s) {
  AttentionProblem p;
  p.k_type = s.k_type, p.v_type = s.v_type, p.scale = s.scale, p.exponent = s.exponent;
  p.steps = s.steps, p.skips = s.skips;
  for (std::size_t i = 0; i < s.step.size(); ++i) {
    const lowering::AttentionStep& from = s.step[i];
    p.step[i] = {static_cast<ScoreStep::Kind>(from.kind), from.value, from.keep, from.key};
  }
  return p;
}
static_assert(int{ScoreStep::Scale} == int{lowering::AttentionStep::Scale} &&
              int{ScoreStep::Shift} == int{lowering::AttentionStep::Shift} &&
              int{ScoreStep::Bias} == int{lowering::AttentionStep::Bias} &&
              int{ScoreStep::Mask} == int{lowering::AttentionStep::Mask});

class AttentionKernel final : public HostKernel {
 public:
  AttentionKernel(Attention plan, const AttentionTable& table) : plan_(std::move(plan)), table_(table) {
    plan_.layout.each([&](const Dim& d) { sizes_.push_back(d); });
  }
  std::string name() const override { return "attention"; }
  std::vector<Dim> sizes() const override { return sizes_; }
  Dim scratch_bytes(int workers) const override { return (workers * worker_floats() + partial_floats()) * 4; }
  Dim flops() const override {
    Dim rows = 2;
    for (int i = 0; i < plan_.axes; ++i) rows = rows * plan_.layout.axis[i].extent;
    return rows * plan_.layout.keys * (plan_.layout.depth + plan_.layout.width);
  }
  void run(const HostLaunch& l) const override;

 private:
  i64 worker_floats() const {
    return attention_scratch(plan_.layout.depth.bounds().hi, plan_.layout.width.bounds().hi);
  }
  i64 partial_floats() const {
    const bool splits = plan_.layout.keys.bounds().hi > kLeastKeys;
    return splits ? kBlocks * table_.rows * (plan_.layout.width.bounds().hi + 2) : 0;
  }

  Attention plan_;
  const AttentionTable& table_;
  std::vector<Dim> sizes_;
};

void AttentionKernel::run(const HostLaunch& l) const {
  Job j{.table = &table_,
        .plan = &plan_,
        .layout = {},
        .problem = problem_of(plan_.scores),
        .in = l.in,
        .out = static_cast<float*>(l.out),
        .partial = nullptr,
        .scratch = reinterpret_cast<float*>(l.scratch),
        .batches = 1,
        .rows = 1,
        .blocks = 0,
        .splits = 1,
        .stretch = 0,
        .worker_floats = worker_floats()};
  std::size_t next = 0;
  lowering::AttentionLayout<i64>& n = j.layout;
  n.each([&](i64& v) { v = l.sizes[next++]; });
  for (int i = 0; i < plan_.axes; ++i) (i < plan_.batches ? j.batches : j.rows) *= n.axis[i].extent;
  if (j.batches * j.rows * n.width == 0) return;
  AttentionProblem& a = j.problem;
  a.keys = n.keys, a.depth = n.depth, a.width = n.width, a.q_depth = n.q_depth;
  a.k_key = n.k_key, a.k_depth = n.k_depth, a.v_key = n.v_key, a.v_width = n.v_width;
  a.k_scale_key = n.k_scale_key, a.v_scale_key = n.v_scale_key;
  for (std::size_t s = 0; s < kScoreSteps; ++s) a.step[s].key = n.step_key[s];
  j.blocks = (j.rows + table_.rows - 1) / table_.rows;
  const i64 units = j.batches * j.blocks;
  if (units < kBlocks) j.splits = std::max<i64>(1, std::min(n.keys / kLeastKeys, kBlocks / units));
  const i64 tiles = (n.keys + table_.tile - 1) / table_.tile;
  j.stretch = (tiles + j.splits - 1) / j.splits * table_.tile;
  j.splits = (n.keys + j.stretch - 1) / j.stretch;
  j.partial = j.scratch + l.parallel.workers() * j.worker_floats;
  j.together = std::clamp<i64>(units * j.splits / (kTasks * l.parallel.workers()), 1, table_.together);
  const i64 groups = j.batches * ((j.blocks + j.together - 1) / j.together);
  l.parallel.run(static_cast<int>(groups * j.splits), attend, &j);
  if (j.splits > 1) l.parallel.run(static_cast<int>(units), combine, &j);
}

}  // namespace

std::shared_ptr<HostKernel> attention_kernel(lowering::Attention plan, const Target& target, Precision precision) {
  const AttentionTable& t = table(plan, target, precision);
  return std::make_shared<AttentionKernel>(std::move(plan), t);
}

}  // namespace lc::backends::cpu
