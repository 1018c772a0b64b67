#include "lightcone/backends/cpu/lower.h"

#include <algorithm>

#include "lightcone/backends/cpu/attention/attention.h"
#include "lightcone/backends/cpu/conv/nchw_bf16.h"
#include "lightcone/backends/cpu/products/packed_weights.h"
#include "lightcone/composites/composites.h"
#include "lightcone/device/plan.h"
#include "lightcone/device/prepared.h"

namespace lc::backends::cpu {
namespace {

using lowering::Loop;

}  // namespace

std::shared_ptr<Kernel> attention(const Graph& g, NodeId result, lowering::Attention match,
                                  const std::shared_ptr<Device>& device, const CpuOptions& options) {
  std::vector<NodeId> operands;
  for (const Edge& e : match.operands) operands.push_back(e.node);
  std::string kind = lowering::describe(match);
  auto kernel = attention_kernel(std::move(match), *options.target, options.precision);
  kernel->origin = {"cpu: attention", steps(g, result, operands), std::move(kind)};
  kernel->device = device;
  return kernel;
}

CpuEmitter::CpuEmitter(const Graph& g, std::shared_ptr<Device> device, PassLog& log, const CpuOptions& o,
                       codegen::KernelNames& names)
    : lowering::Emitter(g, std::move(device), log, "cpu"),
      options_(o),
      machine_(*o.machine),
      names_(names),
      matcher_(g, o),
      partition_(g, matcher_.rules()) {}

// Packs a parameter if only products and convolutions read it, and all in one form, so that no second copy is kept.
void CpuEmitter::choose_packed() {
  std::set<NodeId> raw = read_by_roots();
  // How a parameter is read: transposed, and in whose layout.
  std::map<NodeId, std::pair<bool, const Microkernel*>> forms;
  const auto may_pack = [&](const MatmulPlan& c) {
    return c.for_unit && c.type == WeightType::I8 ? packable_bytes(g_, c) : packable(g_, c);
  };
  for (NodeId id : partition_.results()) {
    if (const auto c = matcher_.matmuls.find(id); c != matcher_.matmuls.end()) {
      raw.insert(c->second.a_node);
      if (!may_pack(c->second)) raw.insert(c->second.b_node);
      const std::pair form{transposed(c->second), c->second.for_unit ? c->second.unit : nullptr};
      if (forms.try_emplace(c->second.b_node, form).first->second != form)
        raw.insert(c->second.b_node);  // read in several forms
    } else if (const auto v = matcher_.convolutions.find(id); v != matcher_.convolutions.end()) {
      raw.insert(v->second.image_node);
      if (!packed_filters(g_, v->second, *options_.target)) raw.insert(v->second.weight_node);
    } else if (is(g_[id], builtin::gather_mm())) {
      const GatherMmPlan& p =
          gathers_.emplace(id, *plan_gather_mm(g_, g_[id], options_.precision, *options_.target)).first->second;
      for (std::size_t k = 0; k < 3; ++k) {
        const NodeId operand = g_[id].in[k].node;
        if (k != 1 || partition_.varies(operand) || !packable(g_[id], p)) raw.insert(operand);
      }
    } else if (partition_.varies(id) || upper_bytes(g_[id]) > kAlwaysPrepared) {  // others are computed at load
      for (NodeId k : partition_.operands(id)) raw.insert(k);
    }
  }
  for (auto& [id, p] : gathers_) {
    p.packed = !raw.contains(g_[id].in[1].node);
    if (p.few && !p.packed) p.unit = p.few, p.few = nullptr;
  }
  for (auto& [id, c] : matcher_.matmuls) {
    c.packed = may_pack(c) && !raw.contains(c.b_node);
    if (c.few && !c.packed) c.unit = c.few, c.few = nullptr;
    if (c.for_unit && !c.packed) c.for_unit = false, c.unit = choose_unit(c, options_.precision, *options_.target);
  }
  for (auto& [id, c] : matcher_.convolutions) {
    const FilterLayout filters = c.algorithm->filters;
    if (filters == FilterLayout::PanelsIfPossible)
      c.packed = packed_filters(g_, c, *options_.target) && !raw.contains(c.weight_node);
    else if (filters == FilterLayout::Bf16Registers) c.packed = packed_filters(g_, c, *options_.target).has_value();
    else c.packed = filters != FilterLayout::AsStored;
  }
}

NodeId CpuEmitter::packed(Graph& dst, const MatmulPlan& c) {
  const auto [it, fresh] = packed_.try_emplace({c.b_node, c.type}, 0);
  if (!fresh) return it->second;
  const std::int64_t n = *c.axes.back().extent.constant(), k = *c.k.extent.constant();
  auto kernel = c.for_unit ? pack_for_unit_kernel(*c.unit, c.type, n, k, transposed(c))
                           : pack_kernel(c.type, c.stored_type(), n, k, transposed(c));
  return it->second = add_packed(dst, c.b_node, DType::U8, c.packed_bytes(), std::move(kernel));
}

NodeId CpuEmitter::packed(Graph& dst, const ConvPlan& c) {
  const PackedFilters f = *packed_filters(g_, c, *options_.target);
  const auto [it, fresh] = filters_.try_emplace({c.weight_node, f}, 0);
  if (!fresh) return it->second;
  PackedParameter p = packed_parameter(c, f, *options_.target);
  return it->second = add_packed(dst, c.weight_node, p.dtype, p.elements, std::move(p.kernel));
}

// Makes the kernel of products with chosen matrices, and adds its operands to the draft.
std::shared_ptr<Kernel> CpuEmitter::read_gather_mm(Graph& dst, Draft& d, NodeId id, const GatherMmPlan& p) {
  const Node& n = g_[id];
  read(d, dst, n.in[0].node);
  const NodeId matrices = n.in[1].node;
  if (p.packed) {
    if (new_id_[matrices] == kNone) emit_node(dst, matrices);
    const auto [it, fresh] = packed_.try_emplace({matrices, p.type}, 0);
    if (fresh)
      it->second = add_packed(dst, matrices, DType::U8, packed_bytes(p.stored_type(), p.count * p.m, p.k),
                              pack_kernel(p.type, p.stored_type(), p.count * p.m, p.k, false));
    read_from(d, dst, it->second, matrices);
  } else {
    read(d, dst, matrices);
  }
  read(d, dst, n.in[2].node);
  return gather_mm_kernel(p, options_.target->isa, Blocking(machine_));
}

void CpuEmitter::fuse_epilogues() {
  for (auto& [id, e] : partition_.epilogues()) {
    const NodeId producer = e.producer;
    if (const auto c = matcher_.convolutions.find(producer);
        c != matcher_.convolutions.end() && c->second.algorithm->is_gradient)
      continue;
    if (e.apart_size) codegen::stream_result(e.kernel, machine_), e.kernel.fence = false;
    fused_[id] = {producer, std::make_shared<Epilogue>(g_, std::move(e))};
    partition_.absorb(producer);
  }
}

std::shared_ptr<Epilogue> CpuEmitter::behind(const Fused& f) {
  name_loop(*f.epilogue->loop());
  loop_kernels_.push_back(f.epilogue->loop());
  ++log_.fired["epilogue"];
  return f.epilogue;
}

// Names a loop after its code, so that equal loops are compiled once.
void CpuEmitter::name_loop(LoopKernel& k) {
  k.rename(names_.of(k.ir(), [&] { return k.text("@"); }));
}

std::shared_ptr<LoopKernel> CpuEmitter::loop_kernel(NodeId id) {
  const Loop& loop = *partition_.get<Loop>(id);
  codegen::Kernel k = *loop.kernel;
  codegen::tile_loops(k, options_.tile_side, machine_);
  codegen::stream_result(k, machine_);
  codegen::pipeline_rows(k, machine_);
  auto kernel = std::make_shared<LoopKernel>(std::move(k), loop.same_index, base_bytes(id));
  name_loop(*kernel);
  loop_kernels_.push_back(kernel);
  return kernel;
}

// Makes the kernel of a convolution with its epilogue, and adds its operands to the draft.
std::shared_ptr<Kernel> CpuEmitter::read_convolution(Graph& dst, Draft& d, NodeId id, const ConvPlan& c) {
  read(d, dst, c.image_node);
  if (c.packed) read_from(d, dst, packed(dst, c), c.weight_node);
  else read(d, dst, c.weight_node);
  std::shared_ptr<Epilogue> epilogue;
  if (const auto fused = fused_.find(id); fused != fused_.end()) {
    for (NodeId k : fused->second.epilogue->operands()) read(d, dst, k);
    epilogue = behind(fused->second);
  }
  const ConvContext context = matcher_.conv_context(c);
  std::shared_ptr<Kernel> kernel = c.algorithm->make(c, std::move(epilogue), context);
  kernel->choice = explain(c, context);
  return kernel;
}

void CpuEmitter::emit_node(Graph& dst, NodeId id) {
  const Node& n = g_[id];
  if (n.op == Op::Input) {
    new_id_[id] = dst.add(n);
    return;
  }
  if (matmul_of(id)) {
    const auto group = groups_.find(id);
    const auto results = group == groups_.end() ? std::vector<NodeId>{} : available(group->second);
    return emit_products(dst, results.size() > 1 ? results : std::vector<NodeId>{id});
  }
  Draft d = draft(id);
  const auto fused = fused_.find(id);
  const auto v = matcher_.convolutions.find(fused == fused_.end() ? id : fused->second.producer);
  if (v != matcher_.convolutions.end()) {
    auto kernel = read_convolution(dst, d, id, v->second);
    const std::string kind = kernel->name().starts_with("conv_winograd") ? "conv_winograd" : "conv";
    new_id_[id] =
        finish(dst, std::move(d), std::move(kernel), kind, id, {{v->first, lowering::shapes_of(g_, v->second)}});
    return;
  }
  if (const auto p = gathers_.find(id); p != gathers_.end()) {
    auto kernel = read_gather_mm(dst, d, id, p->second);
    new_id_[id] = finish(dst, std::move(d), std::move(kernel), "gather_mm", id);
    return;
  }
  for (NodeId k : partition_.operands(id)) read(d, dst, k);
  if (n.kernel) {  // an earlier pass chose it
    d.node.name = n.name, d.node.kernel = n.kernel;
    new_id_[id] = dst.add(std::move(d.node));
    return;
  }
  const bool loop = partition_.get<Loop>(id);
  auto kernel = loop ? loop_kernel(id) : library_kernel(g_, n, *options_.target, options_.precision);
  const std::string kind = loop ? "loop" : n.composite ? n.composite->name : std::string(info(n.op).name);
  new_id_[id] = finish(dst, std::move(d), std::move(kernel), kind, id);
}

Lowered CpuEmitter::run() {
  choose_packed();
  fuse_epilogues();
  find_groups();
  find_prologues();
  Graph dst = emit_all(partition_);
  note_tiles();
  return {std::move(dst), std::move(loop_kernels_)};
}

// Notes in the log that products run on AMX tiles, which restricts the process's signal stacks, or that the system
// refused them.
void CpuEmitter::note_tiles() {
  int on = 0;
  const auto see = [&](const Microkernel* u) { on += u && on_tiles(*u); };
  for (const auto& [id, c] : matcher_.matmuls) see(c.unit);
  for (const auto& [id, p] : gathers_) see(p.unit);
  for (const auto& [id, c] : matcher_.convolutions) {
    see(c.nchw_bf16 ? c.nchw_bf16->unit : nullptr);
    on += c.algorithm && c.algorithm->filters == FilterLayout::Bf16Registers;
  }
  if (on > 0) log_.fired["product on tiles"] = on;
  if (!this_target().amx || !options_.target->amx) return;
  if (on > 0 || (matcher_.tiles_wanted > 0 && tiles_refused())) log_.notes.push_back(tiles_note());
}

Lowered lower(const Graph& g, const std::shared_ptr<Device>& device, PassLog& log, const CpuOptions& options,
              codegen::KernelNames& names) {
  return CpuEmitter(g, device, log, options, names).run();
}

}  // namespace lc::backends::cpu
