#include "lightcone/backends/gpu/lower.h"

#include <algorithm>
#include <map>
#include <set>

#include "lightcone/backends/gpu/block_kernels.h"
#include "lightcone/backends/gpu/fallback.h"
#include "lightcone/backends/gpu/loop_kernel.h"
#include "lightcone/backends/gpu/product_kernel.h"
#include "lightcone/composites/composites.h"
#include "lightcone/core/error.h"
#include "lightcone/device/kernel_rule.h"
#include "lightcone/lowering/partition.h"
#include "lightcone/passes/barrier.h"

namespace lc::backends::gpu {
namespace {

using lowering::Partition;
using lowering::PartitionRules;

// A row of the grid is a group of threads at most: what is summed for very few of them, and read by much, is a value of
// its own, or few threads would do everything.
constexpr std::int64_t kFewLoopRows = 64, kMuchWritten = 4096;

std::vector<NodeId> too_narrow(const codegen::Built& b) {
  const codegen::Kernel& k = *b.kernel;
  std::vector<NodeId> found;
  for (std::size_t r = 0; r < k.reductions.size(); ++r) {
    const int depth = k.loops[static_cast<std::size_t>(k.reductions[r].outer_loop)].depth;
    if (depth >= k.output_loops) continue;
    Dim rows = 1, written = 1;
    for (int l = 0; l < k.output_loops; ++l)
      (l < depth ? rows : written) = (l < depth ? rows : written) * k.loops[static_cast<std::size_t>(l)].extent;
    if (rows.bounds().hi < kFewLoopRows && written.bounds().hi > kMuchWritten) found.push_back(b.reductions[r]);
  }
  return found;
}

class Emitter {
 public:
  Emitter(const Graph& g, std::shared_ptr<GpuDevice> device, PassLog& log, const GpuOptions& options)
      : g_(g),
        device_(std::move(device)),
        log_(log),
        options_(options),
        partition_(g, rules()),
        new_id_(g.size(), ~NodeId{0}) {}
  Lowered run();

 private:
  PartitionRules rules();
  PartitionRules::Match match(const lowering::Factors& f);
  std::vector<NodeId> must_materialize(NodeId root, const codegen::Built& b) const;
  bool computes(NodeId id) const;
  std::shared_ptr<Kernel> on_the_host(NodeId id, const std::vector<NodeId>& operands);
  NodeId emit(Graph& dst, NodeId id);
  std::shared_ptr<Kernel> loop_kernel(NodeId id);
  void fuse_epilogues();
  void choose_repacked();
  NodeId repacked(Graph& dst, Operand& s);

  const Graph& g_;
  std::shared_ptr<GpuDevice> device_;
  PassLog& log_;
  const GpuOptions& options_;
  std::map<NodeId, Product> products_;                  // by the sum
  Partition partition_;                                 // made with match(), which fills them
  std::map<NodeId, lowering::EpilogueLoop> epilogues_;  // by what they make
  std::map<NodeId, NodeId> planes_;                     // of parameters: in the new graph, once they are there
  std::vector<NodeId> new_id_;
  std::vector<std::shared_ptr<TextKernel>> text_kernels_;
};

std::vector<NodeId> Emitter::must_materialize(NodeId root, const codegen::Built& b) const {
  if (auto found = too_narrow(b); !found.empty()) return found;
  const std::size_t most = device_->limits().max_buffers - 2;  // the result's, and one to spare
  if (b.buffers.size() <= most) return {};
  // The inlined value that reads as many of the buffers as one kernel may becomes one itself.
  const std::set<NodeId> buffers(b.buffers.begin(), b.buffers.end());
  std::map<NodeId, std::set<NodeId>> reads;
  std::pair<std::size_t, NodeId> best{1, root};
  const auto look = [&](const auto& self, NodeId id) -> const std::set<NodeId>& {
    if (const auto it = reads.find(id); it != reads.end()) return it->second;
    std::set<NodeId> here;
    if (buffers.contains(id)) here.insert(id);
    else
      for (const Edge& e : g_[id].in) {
        const std::set<NodeId>& below = self(self, e.node);
        here.insert(below.begin(), below.end());
      }
    if (id != root && here.size() <= most) best = std::max(best, {here.size(), id});
    return reads[id] = std::move(here);
  };
  look(look, root);
  return best.second == root ? std::vector<NodeId>{} : std::vector<NodeId>{best.second};
}

// A sum of products that is a contraction or a convolution, of halves as they are stored where that can be.
PartitionRules::Match Emitter::match(const lowering::Factors& given) {
  for (const lowering::Factors& f : {before_widening(g_, given), given}) {
    if (auto c = find_convolution(g_, f)) {
      products_[f.sum] = make_product(g_, *c);
      return std::move(*c);
    }
    if (auto c = lowering::match_contraction(g_, f)) {
      products_[f.sum] = make_product(g_, *c);
      return std::move(*c);
    }
  }
  return {};
}

PartitionRules Emitter::rules() {
  PartitionRules r;
  r.match = [this](const Graph&, const lowering::Factors& f) { return match(f); };
  r.epilogue_of_any_type = true;
  r.inner_results = 15;  // the parts of a reduction that was split are in memory
  r.keep_rows = false;   // by the grid (codegen/simt/grid.cpp)
  r.must_materialize = [this](NodeId root, const codegen::Built& b) { return must_materialize(root, b); };
  return r;
}

// Has the device numbers for everything between the operands and this value? A value of f64 that is only kept or moved
// needs none.
bool Emitter::computes(NodeId id) const {
  if (device_->limits().f64) return true;
  if (const auto* loop = partition_.get<lowering::Loop>(id)) {
    const codegen::Kernel& k = *loop->kernel;
    return k.dtype != DType::F64 &&
           std::ranges::none_of(k.instrs, [](const codegen::Instr& i) { return i.dtype == DType::F64; });
  }
  const Node& n = g_[id];
  if (n.op == Op::Result || is(n, barrier()) || (n.composite && n.composite->loop)) return true;
  const auto is_f64 = [](DType t) { return t == DType::F64; };
  return !is_f64(g_[id].dtype) &&
         std::ranges::none_of(g_[id].in, [&](const Edge& e) { return is_f64(g_[e.node].dtype); });
}

std::shared_ptr<Kernel> Emitter::on_the_host(NodeId id, const std::vector<NodeId>& operands) {
  if (!options_.fallback)
    throw Error("gpu",
                str_cat(device_->limits().name,
                        " has no f64, which is computed here: use f32 (Tensor::to), or let the CPU do "
                        "it, GpuOptions{.fallback = cpu()}"),
                g_[id].where);
  ++log_.fired["on the host"];
  return fallback_kernel(g_, id, operands, *options_.fallback);
}

std::shared_ptr<Kernel> Emitter::loop_kernel(NodeId id) {
  const auto& loop = *partition_.get<lowering::Loop>(id);
  const Node& n = g_[id];
  Dim base_bytes = 0;
  if (is(n, builtin::slice_scatter())) base_bytes = product(n.shape) * Dim(static_cast<std::int64_t>(size_of(n.dtype)));
  return std::make_shared<LoopKernel>(*loop.kernel, loop.same_index, device_->limits(), base_bytes);
}

NodeId Emitter::emit(Graph& dst, NodeId id) {
  const Node& n = g_[id];
  if (n.op == Op::Input) return dst.add(n);
  Node out{.op = Op::Kernel, .dtype = n.dtype, .shape = n.shape, .where = n.where};
  const auto fused = epilogues_.find(id);
  const auto made = products_.find(fused == epilogues_.end() ? id : fused->second.producer);
  std::vector<NodeId> operands;
  std::shared_ptr<Kernel> kernel;
  std::string kind;
  if (made != products_.end()) {
    Epilogue epilogue{n.dtype, {}};
    if (fused != epilogues_.end()) epilogue.loop = std::make_shared<lowering::EpilogueLoop>(std::move(fused->second));
    operands = {made->second.a.node, made->second.b.node};
    for (NodeId k : epilogue.operands()) operands.push_back(k);
    std::vector<Dim> bytes;
    for (NodeId k : operands)
      bytes.push_back(product(g_[k].shape) * Dim(static_cast<std::int64_t>(size_of(g_[k].dtype))));
    auto p = std::make_shared<ProductKernel>(made->second, std::move(epilogue), device_->limits(), options_.precision);
    p->offer(*device_, options_.precision, std::move(bytes));
    kernel = std::move(p);
    kind = partition_.get<lowering::Convolution>(made->first) ? "conv" : "matmul";
  } else {
    operands = partition_.operands(id);
  }
  for (NodeId k : operands) {
    const bool packed = made != products_.end() && k == made->second.b.node && made->second.b.repacked;
    const NodeId from = packed ? repacked(dst, made->second.b) : new_id_[k];
    out.in.push_back({from, View(dst[from].shape)});
  }
  if (n.kernel) {  // chosen before, and known
    out.name = n.name, out.kernel = n.kernel;
    return dst.add(std::move(out));
  }
  if (!kernel) {
    const bool loop = partition_.get<lowering::Loop>(id);
    kernel = !computes(id) ? on_the_host(id, operands)
             : loop        ? loop_kernel(id)
                           : library_kernel(g_, n, *device_, options_.precision);
    kind = loop ? "loop" : n.composite ? n.composite->name : std::string(info(n.op).name);
  }
  if (auto text = std::dynamic_pointer_cast<TextKernel>(kernel)) text_kernels_.push_back(std::move(text));
  ++log_.fired[kind];
  kernel->origin = {"gpu: " + kind, steps(g_, id, operands), std::move(kernel->origin.kind)};
  kernel->device = device_;
  out.name = kernel->name(), out.kernel = std::move(kernel);
  return dst.add(std::move(out));
}

void Emitter::fuse_epilogues() {
  epilogues_ = partition_.epilogues();
  for (const auto& [id, e] : epilogues_) {
    partition_.absorb(e.producer);
    ++log_.fired["epilogue"];
  }
}

// Parameters in block formats that products alone read are kept as planes: nothing is kept twice.
void Emitter::choose_repacked() {
  std::set<NodeId> raw;
  for (const Root& r : g_.roots()) raw.insert(r.edge.node);
  for (const Assignment& a : g_.assignments()) raw.insert(a.state);
  for (NodeId id : partition_.results()) {
    const auto p = products_.find(id);
    for (NodeId k : partition_.operands(id))
      if (p == products_.end() || k != p->second.b.node) raw.insert(k);
  }
  for (auto& [id, p] : products_) {
    const Node& b = g_[p.b.node];
    const QuantInfo* f = lowering::block_format(p.b.type);
    if (!f || b.op != Op::Input || !b.parameter || raw.contains(p.b.node)) continue;
    const Dim blocks = product(b.shape) / f->bytes;
    p.b.repacked = blocks.is_constant(), p.b.blocks = blocks;
  }
}

NodeId Emitter::repacked(Graph& dst, Operand& s) {
  const auto [it, fresh] = planes_.try_emplace(s.node, 0);
  if (!fresh) return it->second;
  const NodeId from = new_id_[s.node];
  auto kernel = std::make_shared<PlanesKernel>(*lowering::info(s.type).format, s.blocks, device_->limits());
  kernel->device = device_;
  text_kernels_.push_back(kernel);
  Node n{.op = Op::Kernel, .dtype = DType::U8, .shape = {product(g_[s.node].shape)}, .where = g_[s.node].where};
  n.in.push_back({from, View(dst[from].shape)});
  n.name = "planes", n.kernel = std::move(kernel);
  ++log_.fired["weight packed"];
  return it->second = dst.add(std::move(n));
}

Lowered Emitter::run() {
  choose_repacked();
  fuse_epilogues();
  Graph dst;
  for (NodeId id = 0; id < g_.size(); ++id)
    if (g_[id].op == Op::Input ? partition_.is_live(id) : partition_.results().contains(id))
      new_id_[id] = emit(dst, id);
  copy_results(g_, new_id_, dst);
  if (const auto n = log_.fired.find("on the host"); n != log_.fired.end())
    log_.notes.push_back(str_cat(n->second, n->second == 1 ? " kernel runs" : " kernels run", " on the CPU, because ",
                                 device_->limits().name, " has no f64"));
  return {std::move(dst), std::move(text_kernels_)};
}

}  // namespace

Lowered lower(const Graph& g, const std::shared_ptr<GpuDevice>& device, PassLog& log, const GpuOptions& options) {
  return Emitter(g, device, log, options).run();
}

}  // namespace lc::backends::gpu
