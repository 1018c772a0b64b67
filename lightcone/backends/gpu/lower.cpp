#include "lightcone/backends/gpu/lower.h"

#include <algorithm>
#include <map>
#include <set>

#include "lightcone/backends/gpu/block_kernels.h"
#include "lightcone/backends/gpu/fallback.h"
#include "lightcone/backends/gpu/loop_kernel.h"
#include "lightcone/backends/gpu/product_kernel.h"
#include "lightcone/base/error.h"
#include "lightcone/composites/composites.h"
#include "lightcone/device/kernel_rule.h"
#include "lightcone/lowering/emitter.h"
#include "lightcone/passes/barrier.h"

namespace lc::backends::gpu {
namespace {

using lowering::Partition;
using lowering::PartitionRules;

// Limits of a fused reduction: one with fewer rows and more results per row is materialised. Fused, it would run on few
// threads, because a row of the grid is one thread block at most.
constexpr std::int64_t kFewLoopRows = 64, kMuchWritten = 4096;

std::vector<NodeId> too_narrow(const codegen::Built& b) {
  const codegen::Kernel& k = *b.kernel;
  std::vector<NodeId> found;
  for (std::size_t r = 0; r < k.reductions.size(); ++r) {
    const int depth = k.loops[k.reductions[r].outer_loop].depth;
    if (depth >= k.output_loops) continue;
    Dim rows = 1, written = 1;
    for (int l = 0; l < k.output_loops; ++l)
      (l < depth ? rows : written) = (l < depth ? rows : written) * k.loops[l].extent;
    if (rows.bounds().hi < kFewLoopRows && written.bounds().hi > kMuchWritten) found.push_back(b.reductions[r]);
  }
  return found;
}

// Finds the sums of products that kernels of the device compute, while a graph is partitioned.
class Matcher {
 public:
  Matcher(const Graph& g, const Limits& limits) : g_(g), limits_(limits) {}
  PartitionRules rules();  // they call this object, which must outlive them

  std::map<NodeId, Product> products;  // matched products and convolutions, by the node of the sum

 private:
  PartitionRules::Match match(const lowering::Factors& f);
  std::vector<NodeId> must_materialize(NodeId root, const codegen::Built& b) const;

  const Graph& g_;
  const Limits& limits_;
};

std::vector<NodeId> Matcher::must_materialize(NodeId root, const codegen::Built& b) const {
  if (auto found = too_narrow(b); !found.empty()) return found;
  const std::size_t most = limits_.max_buffers - 2;  // without the result's, and one to spare
  if (b.buffers.size() <= most) return {};
  // Materialises the inlined value that reads the most buffers within the limit of one kernel.
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

// Matches a sum of products as a convolution or a contraction, if possible of the 16-bit or 8-bit floats that its
// factors were widened from.
PartitionRules::Match Matcher::match(const lowering::Factors& given) {
  for (const lowering::Factors& f : {before_widening(g_, given), given}) {
    if (auto c = find_convolution(g_, f)) {
      products[f.sum] = make_product(g_, *c);
      return std::move(*c);
    }
    if (auto c = lowering::match_contraction(g_, f)) {
      products[f.sum] = make_product(g_, *c);
      return std::move(*c);
    }
  }
  return {};
}

PartitionRules Matcher::rules() {
  PartitionRules r;
  r.match = [this](const Graph&, const lowering::Factors& f) { return match(f); };
  r.epilogue_of_any_type = true;
  r.inner_results = 15;  // partial sums of a split reduction are in memory
  r.keep_rows = false;   // the grid decides it (codegen/simt/grid.cpp)
  r.must_materialize = [this](NodeId root, const codegen::Built& b) { return must_materialize(root, b); };
  return r;
}

class GpuEmitter final : public lowering::Emitter {
 public:
  GpuEmitter(const Graph& g, const std::shared_ptr<GpuDevice>& device, PassLog& log, const GpuOptions& options)
      : lowering::Emitter(g, device, log, "gpu"),
        gpu_(*device),
        options_(options),
        matcher_(g, device->limits()),
        partition_(g, matcher_.rules()) {}
  Lowered run();

 private:
  bool computes(NodeId id) const;
  std::shared_ptr<Kernel> on_the_host(NodeId id, const std::vector<NodeId>& operands);
  void emit_node(Graph& dst, NodeId id) override;
  std::shared_ptr<Kernel> read_product(Graph& dst, Draft& d, NodeId id, Product& p);
  std::shared_ptr<Kernel> loop_kernel(NodeId id);
  void fuse_epilogues();
  void choose_repacked();
  NodeId repacked(Graph& dst, Operand& s);

  GpuDevice& gpu_;
  const GpuOptions& options_;
  Matcher matcher_;
  Partition partition_;
  std::map<NodeId, lowering::EpilogueLoop> epilogues_;  // by the node of their result
  std::map<NodeId, NodeId> repacked_;                   // nodes of the new graph, by parameter
  std::vector<std::shared_ptr<TextKernel>> text_kernels_;
};

// Returns whether the device can compute this value from its operands. Without f64 it cannot if an operand, the result
// or a value in between is f64, unless the value is only kept or moved.
bool GpuEmitter::computes(NodeId id) const {
  if (gpu_.limits().f64) return true;
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

std::shared_ptr<Kernel> GpuEmitter::on_the_host(NodeId id, const std::vector<NodeId>& operands) {
  if (!options_.fallback)
    throw Error("gpu",
                str_cat(gpu_.limits().name,
                        " has no f64, which is computed here: use f32 (Tensor::to), or let the CPU do "
                        "it, GpuOptions{.fallback = cpu()}"),
                g_[id].where);
  ++log_.fired["on the host"];
  return fallback_kernel(g_, id, operands, *options_.fallback);
}

std::shared_ptr<Kernel> GpuEmitter::loop_kernel(NodeId id) {
  const auto& loop = *partition_.get<lowering::Loop>(id);
  return std::make_shared<LoopKernel>(*loop.kernel, loop.same_index, gpu_.limits(), base_bytes(id));
}

// Makes the kernel of a sum of products with its epilogue, and adds its operands to the draft.
std::shared_ptr<Kernel> GpuEmitter::read_product(Graph& dst, Draft& d, NodeId id, Product& p) {
  Epilogue epilogue{g_[id].dtype, {}};
  if (const auto fused = epilogues_.find(id); fused != epilogues_.end())
    epilogue.loop = std::make_shared<lowering::EpilogueLoop>(std::move(fused->second));
  std::vector<NodeId> operands{p.a.node, p.b.node};
  for (NodeId k : epilogue.operands()) operands.push_back(k);
  std::vector<Dim> bytes;
  for (NodeId k : operands) {
    bytes.push_back(product(g_[k].shape) * Dim(static_cast<std::int64_t>(size_of(g_[k].dtype))));
    if (k == p.b.node && p.b.repacked) read_from(d, dst, repacked(dst, p.b), k);
    else read(d, dst, k);
  }
  auto kernel = std::make_shared<ProductKernel>(p, std::move(epilogue), gpu_.limits(), options_.precision);
  kernel->offer(gpu_, options_.precision, std::move(bytes));
  text_kernels_.push_back(kernel);
  return kernel;
}

void GpuEmitter::emit_node(Graph& dst, NodeId id) {
  const Node& n = g_[id];
  if (n.op == Op::Input) {
    new_id_[id] = dst.add(n);
    return;
  }
  Draft d = draft(id);
  const auto fused = epilogues_.find(id);
  const auto made = matcher_.products.find(fused == epilogues_.end() ? id : fused->second.producer);
  if (made != matcher_.products.end()) {
    auto kernel = read_product(dst, d, id, made->second);
    const bool conv = partition_.get<lowering::Convolution>(made->first);
    new_id_[id] = finish(dst, std::move(d), std::move(kernel), conv ? "conv" : "matmul", id);
    return;
  }
  for (NodeId k : partition_.operands(id)) read(d, dst, k);
  if (n.kernel) {  // an earlier pass chose it
    d.node.name = n.name, d.node.kernel = n.kernel;
    new_id_[id] = dst.add(std::move(d.node));
    return;
  }
  const bool loop = partition_.get<lowering::Loop>(id);
  auto kernel = !computes(id) ? on_the_host(id, d.operands)
                : loop        ? loop_kernel(id)
                              : library_kernel(g_, n, gpu_, options_.precision);
  if (auto text = std::dynamic_pointer_cast<TextKernel>(kernel)) text_kernels_.push_back(std::move(text));
  const std::string kind = loop ? "loop" : n.composite ? n.composite->name : std::string(info(n.op).name);
  new_id_[id] = finish(dst, std::move(d), std::move(kernel), kind, id);
}

void GpuEmitter::fuse_epilogues() {
  epilogues_ = partition_.epilogues();
  for (const auto& [id, e] : epilogues_) {
    partition_.absorb(e.producer);
    ++log_.fired["epilogue"];
  }
}

// Repacks a parameter in a block format if only products read it, as their factor B, so that no second copy is kept.
void GpuEmitter::choose_repacked() {
  std::set<NodeId> raw = read_by_roots();
  for (NodeId id : partition_.results()) {
    const auto p = matcher_.products.find(id);
    for (NodeId k : partition_.operands(id))
      if (p == matcher_.products.end() || k != p->second.b.node) raw.insert(k);
  }
  for (auto& [id, p] : matcher_.products) {
    const Node& b = g_[p.b.node];
    const QuantInfo* f = block_format(p.b.type);
    if (!f || b.op != Op::Input || !b.parameter || raw.contains(p.b.node)) continue;
    const Dim blocks = product(b.shape) / f->bytes;
    p.b.repacked = blocks.is_constant(), p.b.blocks = blocks;
  }
}

NodeId GpuEmitter::repacked(Graph& dst, Operand& s) {
  const auto [it, fresh] = repacked_.try_emplace(s.node, 0);
  if (!fresh) return it->second;
  auto kernel = std::make_shared<RepackKernel>(*info(s.type).format, s.blocks, gpu_.limits());
  text_kernels_.push_back(kernel);
  return it->second = add_packed(dst, s.node, DType::U8, product(g_[s.node].shape), std::move(kernel));
}

Lowered GpuEmitter::run() {
  choose_repacked();
  fuse_epilogues();
  Graph dst = emit_all(partition_);
  if (const auto n = log_.fired.find("on the host"); n != log_.fired.end())
    log_.notes.push_back(str_cat(n->second, n->second == 1 ? " kernel runs" : " kernels run", " on the CPU, because ",
                                 gpu_.limits().name, " has no f64"));
  return {std::move(dst), std::move(text_kernels_)};
}

}  // namespace

Lowered lower(const Graph& g, const std::shared_ptr<GpuDevice>& device, PassLog& log, const GpuOptions& options) {
  return GpuEmitter(g, device, log, options).run();
}

}  // namespace lc::backends::gpu
