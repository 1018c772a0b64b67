#include "lightcone/backends/gpu/prefix_sum_kernel.h"

#include <array>
#include <limits>
#include <optional>

#include "lightcone/backends/gpu/device/text_kernel.h"
#include "lightcone/base/error.h"
#include "lightcone/codegen/c/text.h"
#include "lightcone/core/tensor.h"

namespace lc::backends::gpu {
namespace {

using i64 = std::int64_t;
using std::to_string;

// ---- what is found in the graph ----------------------------------------------------------------

// Shorter rows take few steps in the graph, and would leave a thread block little to do.
constexpr i64 kShortestRun = 256;

struct PrefixSum {
  Op op;
  DType type;
  Dim rows, length;
  Edge of;
};

double identity_of(Op op, DType t) {
  if (op == Op::Add) return 0;
  if (op == Op::Mul) return 1;
  return is_float(t) ? -std::numeric_limits<double>::infinity() : static_cast<double>(info(t).lowest);
}

// Matches y = op(x, x moved on by `step`), with the identity for missing elements, and returns x.
std::optional<Edge> without_step(const Graph& g, const Node& y, int axis, i64 step) {
  const auto& shape = y.shape;
  if (y.in.size() != 2) return std::nullopt;
  const Edge x = y.in[0];
  const Node& chosen = g[y.in[1].node];
  if (chosen.op != Op::Where || !y.in[1].view.identity() || chosen.in.size() != 3) return std::nullopt;
  const Node &inside = g[chosen.in[0].node], &identity = g[chosen.in[2].node];
  const auto at = static_cast<std::size_t>(axis);
  if (inside.op != Op::Index || !chosen.in[0].view.identity() ||
      !(inside.index == less(Dim(step) - 1, Dim::index(axis, shape[at]))))
    return std::nullopt;
  if (identity.op != Op::Constant || identity.value != identity_of(y.op, y.dtype)) return std::nullopt;
  Shape before(shape.size(), 0), after(shape.size(), 0);
  before[at] = step;
  if (chosen.in[1].node != x.node || !(chosen.in[1].view == x.view.pad(before, after).slice(after, shape)))
    return std::nullopt;
  return x;
}

std::optional<PrefixSum> match(const Graph& g, const Node& last) {
  if ((last.op != Op::Add && last.op != Op::Mul && last.op != Op::Maximum) || last.shape.empty()) return std::nullopt;
  if (is_narrow(last.dtype) || last.dtype == DType::Bool) return std::nullopt;
  int axis = static_cast<int>(last.shape.size()) - 1;
  while (axis > 0 && last.shape[axis] == Dim(1)) --axis;
  const Dim length = last.shape[axis];
  if (length.bounds().hi < kShortestRun) return std::nullopt;
  i64 steps = 1;
  while (steps < length.bounds().hi && steps < (i64{1} << 61)) steps *= 2;
  const Node* n = &last;
  Edge x;
  for (i64 step = steps / 2; step >= 1; step /= 2) {
    const auto before = without_step(g, *n, axis, step);
    if (!before) return std::nullopt;
    x = *before;
    n = &g[x.node];
    if (step > 1 && (n->op != last.op || !x.view.identity())) return std::nullopt;
  }
  Dim rows = 1;
  for (int i = 0; i < axis; ++i) rows = rows * last.shape[i];
  return PrefixSum{last.op, last.dtype, rows, length, x};
}

// ---- the kernel --------------------------------------------------------------------------------

constexpr int kRunThreads = 256, kItems = 4;
constexpr i64 kTile = kRunThreads * kItems, kChunk = 4 * kTile;

// Totals writes the totals of the chunks alone. Whole scans each chunk by itself. Behind scans each chunk, beginning
// with the total of those before it.
enum Phase : i64 { Totals, Whole, Behind };

// Sizes: rows, their length, elements of a chunk, the phase. A thread block goes through a chunk tile by tile. The
// chunks are the same on every device, and so are the bits.
constexpr std::string_view kText = R"(
  const int t = LC_THREAD;
  const long chunks = (n1 + n2 - 1) / n2, row = (long)LC_GROUP / chunks, chunk = (long)LC_GROUP % chunks;
  const long begin = chunk * n2, end = begin + n2 < n1 ? begin + n2 : n1;
  T carry = n3 == 2 && chunk > 0 ? totals[row * chunks + chunk - 1] : IDENTITY;
  for (long tile = begin; tile < end; tile += THREADS * ITEMS) {
    const long first = tile + t * ITEMS;
    T x[ITEMS];
    LC_UNROLL
    for (int u = 0; u < ITEMS; ++u) {
      x[u] = first + u < end ? in[row * n1 + first + u] : IDENTITY;
      if (u > 0) x[u] = COMBINE(x[u - 1], x[u]);
    }
    sums[t] = x[ITEMS - 1];
    for (int by = 1; by < THREADS; by *= 2) {
      LC_BARRIER;
      const T sum = t >= by ? COMBINE(sums[t - by], sums[t]) : sums[t];
      LC_BARRIER;
      sums[t] = sum;
    }
    LC_BARRIER;
    if (n3 > 0) {
      const T before = t > 0 ? COMBINE(carry, sums[t - 1]) : carry;
      LC_UNROLL
      for (int u = 0; u < ITEMS; ++u)
        if (first + u < end) out[row * n1 + first + u] = COMBINE(before, x[u]);
    }
    carry = COMBINE(carry, sums[THREADS - 1]);
    LC_BARRIER;
  }
  if (n3 == 0 && t == 0) totals[row * chunks + chunk] = carry;
}
)";

class PrefixSumKernel final : public TextKernel {
 public:
  PrefixSumKernel(const PrefixSum& r, codegen::simt::Language language) : r_(r), language_(language) {}
  std::vector<Dim> sizes() const override { return {r_.rows, r_.length}; }
  Dim flops() const override { return r_.rows * r_.length; }
  Dim scratch_bytes(int) const override {
    if (r_.length.bounds().hi <= kChunk) return 0;
    return r_.rows * ((r_.length + Dim(kChunk - 1)) / Dim(kChunk)) * Dim(static_cast<i64>(size_of(r_.type)));
  }
  void enqueue(const Launch& l, GpuDevice& device) const override {
    const i64 rows = l.sizes[0], length = l.sizes[1], chunks = (length + kChunk - 1) / kChunk;
    if (rows == 0 || length == 0) return;
    if (chunks == 1) return run(device, l.in[0], l.out, l.out, {rows, length, length, Whole}, rows);
    run(device, l.in[0], l.scratch, l.out, {rows, length, kChunk, Totals}, rows * chunks);
    run(device, l.scratch, l.scratch, l.scratch, {rows, chunks, chunks, Whole}, rows);
    run(device, l.in[0], l.scratch, l.out, {rows, length, kChunk, Behind}, rows * chunks);
  }
  std::string text(std::string_view name) const override {
    const std::string type(info(r_.type).c);
    const codegen::simt::Parameter parameters[] = {{type, "in"}, {type, "totals", true}, {type, "out", true}};
    const auto define = [](std::string_view what, const std::string& as) {
      return str_cat("#define ", what, " ", as, "\n");
    };
    return define("T", type) + define("IDENTITY", codegen::number(identity_of(r_.op, r_.type), r_.type)) +
           define("THREADS", to_string(kRunThreads)) + define("ITEMS", to_string(kItems)) +
           define("COMBINE(a, b)", codegen::spell(r_.op, r_.type, "a", "b", "")) +
           codegen::simt::begin_kernel(language_, name, kRunThreads, parameters, 4, "long") +
           "  LC_SHARED(T, sums, THREADS);" + std::string(kText) +
           "#undef T\n#undef IDENTITY\n#undef THREADS\n#undef ITEMS\n#undef COMBINE\n";
  }

 private:
  void run(GpuDevice& device, BufferSlice in, BufferSlice totals, BufferSlice out, const std::array<i64, 4>& sizes,
           i64 groups) const {
    const BufferSlice buffers[] = {in, totals, out};
    launch_kernel(device, 0, buffers, groups, kRunThreads, sizes);
  }
  PrefixSum r_;
  codegen::simt::Language language_;
};

}  // namespace

Graph fuse_prefix_sums(const Graph& g, const std::shared_ptr<GpuDevice>& device, PassLog& log) {
  std::vector<std::shared_ptr<TextKernel>> made;
  std::vector<NodeId> to(g.size());
  Graph out;
  const std::vector<bool> live = g.live();
  for (NodeId id = 0; id < g.size(); ++id) {
    if (!live[id]) continue;
    Node n = g[id];
    const auto found = match(g, n);
    if (found && (n.dtype != DType::F64 || device->limits().f64)) {
      auto kernel = std::make_shared<PrefixSumKernel>(*found, device->limits().language);
      const std::vector<NodeId> operands{found->of.node};
      kernel->origin = {"gpu: running", steps(g, id, operands), {}};
      kernel->device = device;
      made.push_back(kernel);
      const Edge of{to[found->of.node], found->of.view};
      n = Node{.op = Op::Kernel, .dtype = n.dtype, .shape = n.shape, .where = n.where};
      n.in = {of.view.identity() ? of : prim::contiguous(Tensor(out, of)).edge()};
      n.name = "prefix sum", n.kernel = std::move(kernel);
      ++log.fired["prefix sum"];
    } else {
      for (Edge& e : n.in) e.node = to[e.node];
    }
    to[id] = out.add(std::move(n));
  }
  copy_results(g, to, out);
  compile(made, *device, log);
  return out;
}

}  // namespace lc::backends::gpu
