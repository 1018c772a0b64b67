#include "lightcone/backends/cpu/lower.h"

#include <algorithm>

#include "lightcone/backends/cpu/attention/attention.h"
#include "lightcone/backends/cpu/conv/filter_gradient.h"
#include "lightcone/backends/cpu/conv/nchw_bf16.h"
#include "lightcone/backends/cpu/conv/nhwc_bf16.h"
#include "lightcone/backends/cpu/products/packed_weights.h"
#include "lightcone/composites/composites.h"

namespace lc::backends::cpu {
namespace {

using lowering::Contraction;
using lowering::Convolution;
using lowering::Factors;
using lowering::Loop;
using lowering::PartitionRules;

bool multiplies_bf16(const CpuOptions& o) { return o.precision == Precision::Medium && bf16_dots_are_fast(*o.target); }

// Is there a convolution with channels last that is more than a product of matrices? Then the others of the net keep
// theirs last, too.
bool keeps_channels_last(const Graph& g, const Target& target) {
  for (NodeId id = 0; id < g.size(); ++id) {
    const auto f = g[id].op == Op::SumReduce && g[id].shape.size() > 3 ? lowering::factors(g, id) : std::nullopt;
    if (!f || match_contraction(g, *f)) continue;
    if (const auto c = find_convolution(g, *f, target); c && c->channels_last) return true;
  }
  return false;
}

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

Emitter::Emitter(const Graph& g, std::shared_ptr<Device> device, PassLog& log, const CpuOptions& o,
                 codegen::KernelNames& names)
    : g_(g),
      device_(std::move(device)),
      log_(log),
      options_(o),
      machine_(*o.machine),
      names_(names),
      nhwc_bf16_(multiplies_bf16(o) && keeps_channels_last(g, *o.target)),
      partition_(g, rules()),
      new_id_(g.size(), ~NodeId{0}) {}

PartitionRules Emitter::rules() {
  PartitionRules r;
  r.machine = machine_;
  r.epilogue_operands = Epilogue::kMaxOperands, r.epilogue_sizes = Epilogue::kMaxSizes;
  r.match = [this, uses = g_.uses()](const Graph&, const Factors& f) { return match(f, uses); };
  return r;
}

// What computes a sum of products, and in which arithmetic.
PartitionRules::Match Emitter::match(const Factors& f, const std::vector<int>& uses) {
  auto product = match_contraction(g_, f);
  // with channels last it may be a product of matrices, too, whose unit is faster than f32
  const bool faster = product && !nhwc_bf16_ && choose_unit(*product, options_.precision, *options_.target);
  if (const auto c = find_convolution(g_, f, *options_.target); c && !(c->channels_last && faster)) {
    ConvPlan& plan = convolutions_[f.sum] = {*c};
    plan.filter_gradient = !packed_filters(g_, plan, *options_.target) && filter_gradient_shape(plan);
    if (plan.filter_gradient) return static_cast<const Convolution&>(plan);
    if (options_.precision == Precision::Medium) ++tiles_wanted_;
    if (plan.channels_last) plan.bf16 = nhwc_bf16_ && nhwc_bf16_fits(plan);
    else if (options_.precision == Precision::Medium)
      choose_nchw_bf16(g_, uses, options_.winograd, *options_.target, plan);
    return static_cast<const Convolution&>(plan);  // whose filters may be read as they are stored
  }
  if (!product) return std::monostate{};
  Precision precision = options_.precision;
  if (const auto wide = before_rounding(g_, f, DType::BF16); wide && bf16_is_fast(*options_.target)) {
    if (auto rounding = match_contraction(g_, *wide)) product = std::move(rounding), precision = Precision::Medium;
  }
  if (wants_tiles(*product, precision, *options_.target)) ++tiles_wanted_;
  matmuls_[f.sum] = {*product, choose_unit(*product, precision, *options_.target)};
  return std::move(*product);
}

// A parameter is packed when contractions alone read it: nothing is kept twice.
void Emitter::choose_packed() {
  std::set<NodeId> raw;
  for (const Root& r : g_.roots()) raw.insert(r.edge.node);
  for (const Assignment& a : g_.assignments()) raw.insert(a.state);
  std::map<NodeId, bool> way;
  for (NodeId id : partition_.results()) {
    if (const auto c = matmuls_.find(id); c != matmuls_.end()) {
      raw.insert(c->second.a_node);
      if (!packable(g_, c->second)) raw.insert(c->second.b_node);
      if (way.try_emplace(c->second.b_node, transposed(c->second)).first->second != transposed(c->second))
        raw.insert(c->second.b_node);  // read in both orders
    } else if (const auto v = convolutions_.find(id); v != convolutions_.end()) {
      raw.insert(v->second.image_node);
      if (!packed_filters(g_, v->second, *options_.target)) raw.insert(v->second.weight_node);
    } else {
      for (NodeId k : partition_.operands(id)) raw.insert(k);
    }
  }
  for (auto& [id, c] : matmuls_) c.packed = packable(g_, c) && !raw.contains(c.b_node);
  for (auto& [id, c] : convolutions_)
    c.packed = !c.filter_gradient && (c.channels_last || c.nchw_bf16 ||
                                      (packed_filters(g_, c, *options_.target) && !raw.contains(c.weight_node)));
}

NodeId Emitter::packed(Graph& dst, const MatmulPlan& c) {
  const auto [it, fresh] = packed_.try_emplace({c.b_node, c.type}, 0);
  if (!fresh) return it->second;
  const NodeId from = new_id_[c.b_node];
  const std::int64_t n = *c.axes.back().extent.constant(), k = *c.k.extent.constant();
  Node pack{.op = Op::Kernel,
            .dtype = DType::U8,
            .shape = {packed_bytes(c.stored_type(), n, k)},
            .where = g_[c.b_node].where};
  pack.in.push_back({from, View(dst[from].shape)});
  pack.kernel = bind_to_device(pack_kernel(c.type, c.stored_type(), n, k, transposed(c)));
  pack.name = pack.kernel->name();
  it->second = dst.add(std::move(pack));
  ++log_.fired["weight packed"];
  return it->second;
}

NodeId Emitter::packed(Graph& dst, const ConvPlan& c) {
  const PackedFilters f = *packed_filters(g_, c, *options_.target);
  const auto [it, fresh] = filters_.try_emplace({c.weight_node, f}, 0);
  if (!fresh) return it->second;
  const NodeId from = new_id_[c.weight_node];
  Node pack{
      .op = Op::Kernel,
      .dtype = c.nchw_bf16 ? DType::U8 : DType::F32,
      .shape = {c.nchw_bf16 ? c.nchw_bf16->groups * c.nchw_bf16->group_bytes() : f.floats(f.panel(*options_.target))},
      .where = g_[c.weight_node].where};
  pack.in.push_back({from, View(dst[from].shape)});
  pack.kernel =
      bind_to_device(c.nchw_bf16 ? pack_nchw_bf16_kernel(c.nchw_bf16) : pack_weights_kernel(f, *options_.target));
  pack.name = pack.kernel->name();
  it->second = dst.add(std::move(pack));
  ++log_.fired["weight packed"];
  return it->second;
}

void Emitter::fuse_epilogues() {
  for (auto& [id, e] : partition_.epilogues()) {
    const NodeId producer = e.producer;
    if (const auto c = convolutions_.find(producer); c != convolutions_.end() && c->second.filter_gradient) continue;
    fused_[id] = {producer, std::make_shared<Epilogue>(g_, std::move(e))};
    partition_.absorb(producer);
  }
}

std::shared_ptr<Epilogue> Emitter::behind(const Fused& f) {
  name_loop(*f.epilogue->loop());
  loop_kernels_.push_back(f.epilogue->loop());
  ++log_.fired["epilogue"];
  return f.epilogue;
}

// A kernel of this CPU, and of these threads.
std::shared_ptr<const Kernel> Emitter::bind_to_device(std::shared_ptr<Kernel> kernel) const {
  kernel->device = device_;
  return kernel;
}

// Equal loops are one function.
void Emitter::name_loop(LoopKernel& k) {
  k.rename(names_.of(k.ir(), [&] { return k.text("@"); }));
}

std::shared_ptr<HostKernel> Emitter::conv_kernel(const ConvPlan& c, std::shared_ptr<Epilogue> epilogue) const {
  const ConvAlgorithm way = options_.winograd ? ConvAlgorithm::Cheapest : ConvAlgorithm::Direct;
  const Target& target = *options_.target;
  const Blocking blocking(machine_);
  if (c.filter_gradient) return filter_gradient_kernel(c, target);
  if (c.nchw_bf16) return nchw_bf16_kernel(c, std::move(epilogue), blocking);
  if (c.bf16) return nhwc_bf16_kernel(c, std::move(epilogue), target, blocking);
  if (c.channels_last) return nhwc_kernel(c, way, std::move(epilogue), target, blocking);
  return convolution_kernel(c, way, std::move(epilogue), target, blocking);
}

std::shared_ptr<LoopKernel> Emitter::loop_kernel(NodeId id) {
  const Loop& loop = *partition_.get<Loop>(id);
  const Node& n = g_[id];
  Dim base_bytes = 0;
  if (is(n, builtin::slice_scatter())) base_bytes = product(n.shape) * Dim(static_cast<std::int64_t>(size_of(n.dtype)));
  codegen::Kernel k = *loop.kernel;
  codegen::tile_loops(k, options_.tile_side, machine_);
  codegen::stream_result(k, machine_);
  codegen::pipeline_rows(k, machine_);
  auto kernel = std::make_shared<LoopKernel>(std::move(k), loop.same_index, base_bytes);
  name_loop(*kernel);
  loop_kernels_.push_back(kernel);
  return kernel;
}

NodeId Emitter::emit(Graph& dst, NodeId id) {
  const Node& n = g_[id];
  if (n.op == Op::Input) return dst.add(n);
  if (matmul_of(id)) {
    emit_products(dst, {id});
    return new_id_[id];
  }
  Node out{.op = Op::Kernel, .dtype = n.dtype, .shape = n.shape, .where = n.where};
  std::vector<NodeId> operands;
  const auto reads = [&](NodeId k) {
    check(new_id_[k] != ~NodeId{0}, "a kernel reads a value that is not in memory");
    out.in.push_back({new_id_[k], View(dst[new_id_[k]].shape)});
    operands.push_back(k);
  };
  const auto fused = fused_.find(id);
  const auto v = convolutions_.find(fused == fused_.end() ? id : fused->second.producer);
  std::shared_ptr<Kernel> kernel;
  std::string kind;
  std::map<NodeId, std::string> shapes;
  if (v != convolutions_.end()) {
    const ConvPlan& c = v->second;
    reads(c.image_node);
    if (!c.packed) {
      reads(c.weight_node);
    } else {
      const NodeId w = packed(dst, c);
      out.in.push_back({w, View(dst[w].shape)});
      operands.push_back(c.weight_node);
    }
    std::shared_ptr<Epilogue> epilogue;
    if (fused != fused_.end()) {
      for (NodeId k : fused->second.epilogue->operands()) reads(k);
      epilogue = behind(fused->second);
    }
    kernel = conv_kernel(c, std::move(epilogue));
    shapes[v->first] = lowering::shapes_of(g_, c);
    kind = kernel->name().starts_with("conv_winograd") ? "conv_winograd" : "conv";
  } else {
    for (NodeId k : partition_.operands(id)) reads(k);
    if (n.kernel) {  // chosen before, and known
      out.name = n.name, out.kernel = n.kernel;
      return dst.add(std::move(out));
    }
    const bool loop = partition_.get<Loop>(id);
    kernel = loop ? loop_kernel(id) : library_kernel(g_, n, options_.target->isa);
    kind = loop ? "loop" : n.composite ? n.composite->name : std::string(info(n.op).name);
  }
  ++log_.fired[kind];
  kernel->origin = {"cpu: " + kind, steps(g_, id, operands, shapes), {}};
  out.name = kernel->name(), out.kernel = bind_to_device(std::move(kernel));
  return dst.add(std::move(out));
}

Lowered Emitter::run() {
  choose_packed();
  fuse_epilogues();
  find_groups();
  find_prologues();
  Graph dst;
  for (NodeId id = 0; id < g_.size(); ++id) {
    const bool wanted = g_[id].op == Op::Input ? partition_.is_live(id) : partition_.results().contains(id);
    if (new_id_[id] != ~NodeId{0} || !wanted || prologues_.contains(id)) continue;
    const auto group = groups_.find(id);
    const auto results = group == groups_.end() ? std::vector<NodeId>{} : available(group->second);
    if (results.size() > 1) emit_products(dst, results);
    else new_id_[id] = emit(dst, id);
  }
  copy_results(g_, new_id_, dst);
  note_tiles();
  return {std::move(dst), std::move(loop_kernels_)};
}

// That products run on tiles, which means something for the process, or that it was refused them.
void Emitter::note_tiles() {
  int on = 0;
  const auto see = [&](const Microkernel* u) { on += u && on_tiles(*u); };
  for (const auto& [id, c] : matmuls_) see(c.unit);
  for (const auto& [id, c] : convolutions_) see(c.nchw_bf16 ? c.nchw_bf16->unit : nullptr);
  if (on > 0) log_.fired["product on tiles"] = on;
  if (!this_target().amx || !options_.target->amx) return;
  if (on > 0 || (tiles_wanted_ > 0 && tiles_refused())) log_.notes.push_back(tiles_note());
}

Lowered lower(const Graph& g, const std::shared_ptr<Device>& device, PassLog& log, const CpuOptions& options,
              codegen::KernelNames& names) {
  return Emitter(g, device, log, options, names).run();
}

}  // namespace lc::backends::cpu
