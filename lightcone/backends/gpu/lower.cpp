#include "lightcone/backends/gpu/lower.h"

#include <algorithm>

#include "lightcone/backends/gpu/fallback.h"
#include "lightcone/backends/gpu/loop_kernel.h"
#include "lightcone/core/composite.h"
#include "lightcone/core/error.h"
#include "lightcone/device/kernel_rule.h"
#include "lightcone/lowering/cut.h"
#include "lightcone/passes/barrier.h"

namespace lc::gpu {
namespace {

using lowering::Cut;
using lowering::CutRules;

// A row of the grid is a group of threads at most: what is summed for very few of them, and read by much, is a value of
// its own, or few threads would do everything.
constexpr std::int64_t kFewRows = 64, kMuchWritten = 4096;

std::vector<NodeId> too_narrow(const ir::Built& b) {
  const ir::Kernel& k = *b.kernel;
  std::vector<NodeId> found;
  for (std::size_t r = 0; r < k.reductions.size(); ++r) {
    const int depth = k.loops[static_cast<std::size_t>(k.reductions[r].outer_loop)].depth;
    if (depth >= k.output_loops) continue;
    Dim rows = 1, written = 1;
    for (int l = 0; l < k.output_loops; ++l) (l < depth ? rows : written) = (l < depth ? rows : written) * k.loops[static_cast<std::size_t>(l)].extent;
    if (rows.bounds().hi < kFewRows && written.bounds().hi > kMuchWritten) found.push_back(b.reductions[r]);
  }
  return found;
}

class Emitter {
 public:
  Emitter(const Graph& g, std::shared_ptr<GpuDevice> device, PassLog& log, const GpuOptions& options)
      : g_(g), device_(std::move(device)), log_(log), options_(options), cut_(g, rules()), to_(g.size(), ~NodeId{0}) {}
  Lowered run();

 private:
  CutRules rules() const;
  std::vector<NodeId> unfit(const ir::Built& b) const;
  bool computes(NodeId id) const;
  std::shared_ptr<Kernel> on_the_host(NodeId id, const std::vector<NodeId>& operands);
  NodeId emit(Graph& dst, NodeId id);
  std::shared_ptr<Kernel> loop_kernel(NodeId id);

  const Graph& g_;
  std::shared_ptr<GpuDevice> device_;
  PassLog& log_;
  const GpuOptions& options_;
  Cut cut_;
  std::vector<NodeId> to_;
  std::vector<std::shared_ptr<TextKernel>> made_;
};

std::vector<NodeId> Emitter::unfit(const ir::Built& b) const {
  if (auto found = too_narrow(b); !found.empty()) return found;
  if (b.buffers.size() + 1 <= device_->limits().places) return {};
  // fewer are read when the last sum in it is a value of its own
  return b.reductions.empty() ? std::vector<NodeId>{} : std::vector<NodeId>{b.reductions.back()};
}

CutRules Emitter::rules() const {
  CutRules r;
  r.match = [](const Graph&, const lowering::Factors&) { return CutRules::Match(); };
  r.inner_results = 15;  // the parts of a reduction that was split are in memory
  r.keep_rows = false;  // by the grid (codegen/simt/grid.cpp)
  r.unfit = [this](const ir::Built& b) { return unfit(b); };
  return r;
}

// Has the device numbers for everything between the operands and this value? A value of f64 that is only kept or moved
// needs none.
bool Emitter::computes(NodeId id) const {
  if (device_->limits().f64) return true;
  if (const auto* loop = cut_.get<lowering::Loop>(id)) {
    const ir::Kernel& k = *loop->kernel;
    return k.dtype != DType::F64 && std::ranges::none_of(k.instrs, [](const ir::Instr& i) { return i.dtype == DType::F64; });
  }
  const Node& n = g_[id];
  if (n.op == Op::Result || is(n, barrier()) || (n.composite && n.composite->loop)) return true;
  const auto is_f64 = [](DType t) { return t == DType::F64; };
  return !is_f64(g_[id].dtype) && std::ranges::none_of(g_[id].in, [&](const Edge& e) { return is_f64(g_[e.node].dtype); });
}

std::shared_ptr<Kernel> Emitter::on_the_host(NodeId id, const std::vector<NodeId>& operands) {
  if (!options_.fallback)
    throw Error("gpu",
                cat(device_->limits().name, " has no f64, which is computed here: use f32 (Tensor::to), or let the CPU do "
                                            "it, GpuOptions{.fallback = cpu()}"),
                g_[id].where);
  ++log_.fired["on the host"];
  return fallback_kernel(g_, id, operands, *options_.fallback);
}

std::shared_ptr<Kernel> Emitter::loop_kernel(NodeId id) {
  const auto& loop = *cut_.get<lowering::Loop>(id);
  const Node& n = g_[id];
  Dim base_bytes = 0;
  if (is(n, builtin::slice_scatter())) base_bytes = product(n.shape) * Dim(static_cast<std::int64_t>(size_of(n.dtype)));
  return std::make_shared<LoopKernel>(*loop.kernel, loop.same_index, device_->limits(), base_bytes);
}

NodeId Emitter::emit(Graph& dst, NodeId id) {
  const Node& n = g_[id];
  if (n.op == Op::Input) return dst.add(n);
  Node out{.op = Op::Kernel, .dtype = n.dtype, .shape = n.shape, .where = n.where};
  const std::vector<NodeId> operands = cut_.operands(id);
  for (NodeId k : operands) out.in.push_back({to_[k], View(dst[to_[k]].shape)});
  if (n.kernel) {  // chosen before, and known
    out.name = n.name, out.kernel = n.kernel;
    return dst.add(std::move(out));
  }
  const bool loop = cut_.get<lowering::Loop>(id);
  std::shared_ptr<Kernel> kernel = !computes(id) ? on_the_host(id, operands)
                                   : loop        ? loop_kernel(id)
                                                 : library_kernel(g_, n, *device_);
  if (auto text = std::dynamic_pointer_cast<TextKernel>(kernel)) made_.push_back(std::move(text));
  const std::string kind = loop ? "loop" : n.composite ? n.composite->name : std::string(info(n.op).name);
  ++log_.fired[kind];
  kernel->origin = {"gpu: " + kind, steps(g_, id, operands), {}};
  kernel->device = device_;
  out.name = kernel->name(), out.kernel = std::move(kernel);
  return dst.add(std::move(out));
}

Lowered Emitter::run() {
  Graph dst;
  for (NodeId id = 0; id < g_.size(); ++id)
    if (g_[id].op == Op::Input ? cut_.is_live(id) : cut_.results().contains(id)) to_[id] = emit(dst, id);
  copy_results(g_, to_, dst);
  if (const auto n = log_.fired.find("on the host"); n != log_.fired.end())
    log_.notes.push_back(cat(n->second, n->second == 1 ? " kernel runs" : " kernels run", " on the CPU, because ",
                             device_->limits().name, " has no f64"));
  return {std::move(dst), std::move(made_)};
}

}  // namespace

Lowered lower(const Graph& g, const std::shared_ptr<GpuDevice>& device, PassLog& log, const GpuOptions& options) {
  return Emitter(g, device, log, options).run();
}

}  // namespace lc::gpu
