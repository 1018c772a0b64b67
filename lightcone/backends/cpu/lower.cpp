// Which values live in memory, and what computes them.
//
// Everything starts inlined into its only reader. A value gets memory when it must (outputs,
// operands of matrix kernels, several readers) or when building a kernel shows that inlining it
// would compute it too often; then the kernels concerned are built again.
#include "lightcone/backends/cpu/lowering.h"

#include <algorithm>
#include <deque>
#include <set>

#include "lightcone/backends/cpu/attention_plan.h"
#include "lightcone/backends/cpu/conv_last_bf16.h"
#include "lightcone/backends/cpu/conv_pairs.h"
#include "lightcone/backends/cpu/epilogue.h"
#include "lightcone/backends/cpu/packed_weights.h"
#include "lightcone/core/tensor.h"
#include "lightcone/runtime/fork.h"

namespace lc::host {
namespace {

// Operations of one kernel: building it and compiling its C take time that grows faster than its length.
constexpr int kLongest = 128;
constexpr int kLoop = 8;  // what a reduction counts for

}  // namespace

// Cheap enough to compute wherever it is read: constants, indices, and arithmetic on them.
bool Lowering::trivial(NodeId id) const {
  const Node& n = g_[id];
  if (n.op == Op::Constant || n.op == Op::Index) return true;
  const Kind k = info(n.op).kind;
  if (k != Kind::Elementwise && k != Kind::Copy) return false;
  return std::all_of(n.in.begin(), n.in.end(), [&](const Edge& e) {
    const Op op = g_[e.node].op;
    return op == Op::Constant || op == Op::Index;
  });
}

void Lowering::choose_buffers() {
  live_ = g_.live();
  buffer_.assign(g_.size(), false);
  for (const Root& r : g_.roots()) buffer_[r.edge.node] = true;
  for (const Assignment& a : g_.assignments()) buffer_[a.next.node] = true;
  std::vector<bool> behind(g_.size());  // elementwise behind a convolution: free as its epilogue
  const std::vector<int> uses = g_.uses();
  const bool narrow = turned_ && options_.precision == Precision::Medium;
  for (NodeId id = 0; id < g_.size(); ++id) {
    if (!live_[id]) continue;
    const Node& n = g_[id];
    for (const Edge& e : n.in)  // padded, repeated or cut: not the order it is made in
      if (behind[e.node] && !(product(e.view.shape()) == product(e.view.base()))) buffer_[e.node] = true;
    behind[id] = info(n.op).kind == Kind::Elementwise && std::any_of(n.in.begin(), n.in.end(), [&](const Edge& e) {
                   return convolutions_.contains(e.node) || (behind[e.node] && !buffer_[e.node]);
                 });
    if (behind[id] && uses[id] > 1) buffer_[id] = true;  // computed once, not where each reader wants it
    if (n.op == Op::Input || is_library(n)) buffer_[id] = true;
    if (is_library(n))
      for (std::size_t k = 0; k < n.in.size(); ++k)
        if (n.op != Op::SliceScatter || k == 0) buffer_[n.in[k].node] = true;
    if (n.op == Op::Gather) buffer_[n.in[0].node] = true;
    const auto s = sides(g_, id);
    if (!s) continue;
    const auto plain = [&] {  // a product whose unit is faster than f32
      return match_contraction(g_, *s) && choose_unit(WeightType::F32, options_.precision);
    };
    if (const auto c = match_convolution(g_, *s); c && !(c->channels_last && !narrow && plain())) {
      Convolution& v = convolutions_.emplace(id, *c).first->second;
      if (v.channels_last) v.narrow = narrow && bf16_dots_are_fast(detect_isa()) && narrow_fits(v);
      else if (options_.precision == Precision::Medium) choose_pairs(g_, uses, options_.winograd, v);
      buffer_[id] = buffer_[v.image_node] = buffer_[v.weight_node] = true;
    } else if (const auto c = match_contraction(g_, *s)) {
      contractions_.emplace(id, *c).first->second.unit = choose_unit(c->type, options_.precision);
      buffer_[id] = buffer_[c->a_node] = buffer_[c->b_node] = true;
    }
  }
  choose_prepared();
  // readers last to first: a value inlined into two kernels gets memory instead, and so does one that
  // would make its kernel too long
  std::vector<int> length(g_.size(), 0);  // of the kernel that ends here
  constexpr NodeId kNone = ~NodeId{0}, kMany = ~NodeId{0} - 1;
  std::vector<NodeId> kernel(g_.size(), kNone);
  const auto used_by = [&](NodeId id, NodeId root) {
    kernel[id] = kernel[id] == kNone || kernel[id] == root ? root : kMany;
  };
  for (NodeId id = static_cast<NodeId>(g_.size()); id-- > 0;) {
    if (!live_[id]) continue;
    const Node& n = g_[id];
    if (!buffer_[id] && kernel[id] != kNone && !trivial(id))
      buffer_[id] =
          kernel[id] == kMany || (length[kernel[id]] += info(n.op).kind == Kind::Reduce ? kLoop : 1) > kLongest;
    if (contractions_.contains(id) || convolutions_.contains(id))
      continue;  // reads its buffers, and not through the product
    for (const Edge& e : n.in) {
      if (info(n.op).kind == Kind::Reduce && info(g_[e.node].op).kind == Kind::Reduce &&
          product(g_[e.node].shape).bounds().hi > 256)
        buffer_[e.node] = true;  // a reduction of a reduction: the inner one in parallel
      used_by(e.node, buffer_[id] ? id : kernel[id]);
    }
  }
}

// What is made of parameters alone and spread over something larger, like a normalisation's scales, is a value
// of its own: it is computed when they are loaded (runtime/prepared.h).
void Lowering::choose_prepared() {
  constexpr std::int64_t kMost = 1 << 16;  // elements
  std::vector<bool> fixed(g_.size()), loaded(g_.size());
  for (NodeId id = 0; id < g_.size(); ++id) {
    const Node& n = g_[id];
    loaded[id] = n.op == Op::Input && n.mode == kParameter;
    fixed[id] = loaded[id] || n.op == Op::Constant || n.op == Op::Index;
    if (info(n.op).kind == Kind::Elementwise && !n.in.empty()) {
      fixed[id] = std::all_of(n.in.begin(), n.in.end(), [&](const Edge& e) { return fixed[e.node]; });
      loaded[id] = std::any_of(n.in.begin(), n.in.end(), [&](const Edge& e) { return loaded[e.node]; });
    }
    for (const Edge& e : n.in) {
      const Node& from = g_[e.node];
      if (!live_[id] || fixed[id] || !fixed[e.node] || !loaded[e.node] || from.op == Op::Input) continue;
      const auto size = product(from.shape).constant();
      if (size && *size <= kMost && product(n.shape).bounds().lo > *size) buffer_[e.node] = true;
    }
  }
}

void Lowering::build_loops() {
  std::deque<NodeId> todo;
  std::set<NodeId> queued;
  const auto push = [&](NodeId id) {
    if (queued.insert(id).second) todo.push_back(id);
  };
  std::vector<NodeId> stack;
  for (const Root& r : g_.roots()) stack.push_back(r.edge.node);
  for (const Assignment& a : g_.assignments()) stack.push_back(a.next.node);
  const auto settle = [&] {
    while (!stack.empty()) {
      const NodeId id = stack.back();
      stack.pop_back();
      if (!wanted_.insert(id).second) continue;
      const Node& n = g_[id];
      if (n.op == Op::Input) continue;
      if (const auto c = contractions_.find(id); c != contractions_.end()) {
        stack.push_back(c->second.a_node);
        stack.push_back(c->second.b_node);
      } else if (const auto v = convolutions_.find(id); v != convolutions_.end()) {
        stack.push_back(v->second.image_node);
        stack.push_back(v->second.weight_node);
      } else if (is_library(n) && n.op != Op::SliceScatter) {
        for (const Edge& e : n.in) stack.push_back(e.node);
      } else {
        push(id);
      }
    }
  };
  settle();
  while (!todo.empty()) {
    const NodeId id = todo.front();
    todo.pop_front();
    queued.erase(id);
    const Node& n = g_[id];
    ir::Region region{id, [&](NodeId k) { return k != id && buffer_[k]; }, n.op == Op::SliceScatter ? &n : nullptr};
    ir::Built b = ir::build(g_, region, machine_);
    if (!b.offenders.empty()) {
      for (NodeId o : b.offenders) buffer_[o] = true;
      push(id);
      continue;
    }
    check(b.kernel.has_value(), "a kernel that could not be built");
    for (NodeId k : b.buffers) stack.push_back(k);
    if (n.op == Op::SliceScatter) stack.push_back(n.in[0].node);
    loops_[id] = std::move(b);
    settle();
  }
}

// A parameter is packed when contractions alone read it: nothing is kept twice.
void Lowering::choose_packed() {
  std::set<NodeId> raw;
  for (const Root& r : g_.roots()) raw.insert(r.edge.node);
  for (NodeId id : wanted_) {
    if (const auto c = contractions_.find(id); c != contractions_.end()) {
      raw.insert(c->second.a_node);
      if (!packable(g_, c->second)) raw.insert(c->second.b_node);
    } else if (const auto v = convolutions_.find(id); v != convolutions_.end()) {
      raw.insert(v->second.image_node);
      if (!packed_filters(g_, v->second)) raw.insert(v->second.weight_node);
    } else if (const auto b = loops_.find(id); b != loops_.end()) {
      raw.insert(b->second.buffers.begin(), b->second.buffers.end());
    } else {
      for (const Edge& e : g_[id].in) raw.insert(e.node);
    }
  }
  for (const Assignment& a : g_.assignments()) raw.insert(a.state);
  std::map<NodeId, bool> way;
  for (NodeId id : wanted_)
    if (const auto c = contractions_.find(id); c != contractions_.end())
      if (way.try_emplace(c->second.b_node, transposed(c->second)).first->second != transposed(c->second))
        raw.insert(c->second.b_node);  // read in both orders
  for (auto& [id, c] : contractions_) c.packed = packable(g_, c) && !raw.contains(c.b_node);
  for (auto& [id, c] : convolutions_)
    c.packed = c.channels_last || c.pairs || (packed_filters(g_, c) && !raw.contains(c.weight_node));
}

NodeId Lowering::packed(Graph& dst, const Contraction& c) {
  const auto [it, fresh] = packed_.try_emplace({c.b_node, c.type}, 0);
  if (!fresh) return it->second;
  const NodeId from = to_[c.b_node];
  const std::int64_t n = *c.axes.back().extent.constant(), k = *c.k.extent.constant();
  Node pack{.op = Op::Kernel, .dtype = DType::U8, .shape = {packed_bytes(c.kept(), n, k)}, .where = g_[c.b_node].where};
  pack.in.push_back({from, View(dst[from].shape)});
  pack.kernel = pack_kernel(c.type, c.kept(), n, k, transposed(c), parallel_);
  it->second = dst.add(std::move(pack));
  ++log_.fired["weight packed"];
  return it->second;
}

NodeId Lowering::packed(Graph& dst, const Convolution& c) {
  const PackedFilters f = *packed_filters(g_, c);
  const auto [it, fresh] = filters_.try_emplace({c.weight_node, f}, 0);
  if (!fresh) return it->second;
  const NodeId from = to_[c.weight_node];
  Node pack{.op = Op::Kernel,
            .dtype = c.pairs ? DType::U8 : DType::F32,
            .shape = {c.pairs ? c.pairs->groups * c.pairs->group_bytes() : f.floats(f.panel(detect_isa()))},
            .where = g_[c.weight_node].where};
  pack.in.push_back({from, View(dst[from].shape)});
  pack.kernel = c.pairs ? pack_pairs_kernel(c.pairs, parallel_) : pack_weights_kernel(f, parallel_);
  it->second = dst.add(std::move(pack));
  ++log_.fired["weight packed"];
  return it->second;
}

void Lowering::count_readers() {
  for (const Root& r : g_.roots()) ++readers_[r.edge.node];
  for (const Assignment& a : g_.assignments()) ++readers_[a.next.node];
  for (NodeId id : wanted_) {
    if (const auto c = contractions_.find(id); c != contractions_.end()) {
      ++readers_[c->second.a_node], ++readers_[c->second.b_node];
    } else if (const auto v = convolutions_.find(id); v != convolutions_.end()) {
      ++readers_[v->second.image_node], ++readers_[v->second.weight_node];
    } else if (const auto l = loops_.find(id); l != loops_.end()) {
      for (NodeId k : l->second.buffers) ++readers_[k];
      if (g_[id].op == Op::SliceScatter) ++readers_[g_[id].in[0].node];
    } else {
      for (const Edge& e : g_[id].in) ++readers_[e.node];
    }
  }
  for (NodeId id = 0; id < g_.size(); ++id) {
    const Node& n = g_[id];
    varies_.push_back((n.op == Op::Input && n.mode != kParameter) ||
                      std::any_of(n.in.begin(), n.in.end(), [&](const Edge& e) { return varies_[e.node]; }));
  }
}

// An elementwise kernel that is the only reader of a product or a convolution becomes its epilogue.
void Lowering::find_epilogues() {
  std::optional<Graph> rows;  // the graph, and rows of consumers
  for (auto& [id, built] : loops_) {
    if (!wanted_.contains(id) || g_[id].op == Op::SliceScatter) continue;
    for (std::size_t k = built.buffers.size(); k-- > 0 && !fused_.contains(id);) {
      const NodeId producer = built.buffers[k];
      if (readers_[producer] != 1 || !built.same_index[k]) continue;
      Dim row = 1;
      if (const auto v = convolutions_.find(producer); v != convolutions_.end()) {
        if (v->second.channels_last) row = v->second.rows.extent;
        else
          for (const auto& p : v->second.pixels) row = row * p.extent;
      } else if (const auto c = contractions_.find(producer); c != contractions_.end()) {
        row = c->second.axes.back().extent;
      } else {
        continue;
      }
      const NodeId consumer = id;
      if (!rows) rows = g_.clone();
      auto e = Epilogue::make(
          *rows, producer, id, row, [&](NodeId n) { return n != consumer && n < buffer_.size() && buffer_[n]; },
          parallel_, machine_);
      if (e) fused_[id] = {producer, std::move(e)};
    }
  }
  for (const auto& [consumer, f] : fused_) wanted_.erase(f.producer);
}

std::shared_ptr<Epilogue> Lowering::behind(const Fused& f) {
  name_loop(*f.epilogue->loop());
  made_.push_back(f.epilogue->loop());
  ++log_.fired["epilogue"];
  return f.epilogue;
}

// Equal loops are one function.
void Lowering::name_loop(LoopKernel& k) {
  k.rename(names_.of(k.text("@")));
}

NodeId Lowering::emit(Graph& dst, NodeId id) {
  const Node& n = g_[id];
  Node out{.op = Op::Kernel, .dtype = n.dtype, .shape = n.shape, .where = n.where};
  std::vector<NodeId> operands;
  const auto reads = [&](NodeId k) {
    check(to_[k] != ~NodeId{0}, "a kernel reads a value that is not in memory");
    out.in.push_back({to_[k], View(dst[to_[k]].shape)});
    operands.push_back(k);
  };
  if (n.op == Op::Input) return dst.add(n);
  if (contraction_of(id)) {
    emit_products(dst, {id});
    return to_[id];
  }
  const auto f = fused_.find(id);
  const NodeId producer = f == fused_.end() ? id : f->second.producer;
  const auto epilogue = [&]() -> std::shared_ptr<Epilogue> {
    if (f == fused_.end()) return nullptr;
    for (NodeId k : f->second.epilogue->operands()) reads(k);
    return behind(f->second);
  };
  const auto weight = [&](const auto& match, NodeId k) {
    if (!match.packed) return reads(k);
    const NodeId w = packed(dst, match);
    out.in.push_back({w, View(dst[w].shape)});
    operands.push_back(k);
  };
  const auto v = convolutions_.find(producer);
  if (v != convolutions_.end()) {
    reads(v->second.image_node);
    weight(v->second, v->second.weight_node);
    const ConvWay way = options_.winograd ? ConvWay::Cheapest : ConvWay::Direct;
    const Convolution& c = v->second;
    const Isa isa = detect_isa();
    const Blocking blocking(machine_);
    out.kernel = c.pairs           ? pairs_kernel(c, parallel_, epilogue(), blocking)
                 : c.narrow        ? convolution_last_bf16_kernel(c, parallel_, epilogue(), isa, blocking)
                 : c.channels_last ? convolution_last_kernel(c, way, parallel_, epilogue(), isa, blocking)
                                   : convolution_kernel(c, way, parallel_, epilogue(), isa, blocking);
  } else if (const auto b = loops_.find(id); b != loops_.end()) {
    if (n.op == Op::SliceScatter) reads(n.in[0].node);
    for (NodeId k : b->second.buffers) reads(k);
    Dim base_bytes = 0;
    if (n.op == Op::SliceScatter) base_bytes = product(n.shape) * Dim(static_cast<std::int64_t>(size_of(n.dtype)));
    ir::tile_loops(*b->second.kernel, options_.tile_side, machine_);
    ir::stream_result(*b->second.kernel, machine_);
    ir::skew_rows(*b->second.kernel, machine_);
    auto kernel =
        std::make_shared<LoopKernel>(std::move(*b->second.kernel), b->second.same_index, parallel_, base_bytes);
    name_loop(*kernel);
    made_.push_back(kernel);
    out.kernel = std::move(kernel);
  } else {
    for (const Edge& e : n.in) reads(e.node);
    out.kernel = n.kernel ? n.kernel : library_kernel(g_, n, parallel_);
  }
  if (n.kernel) return dst.add(std::move(out));  // chosen before, and known
  const bool winograd = v != convolutions_.end() && out.kernel->name().starts_with("conv_winograd");
  const std::string kind = winograd                   ? "conv_winograd"
                           : v != convolutions_.end() ? "conv"
                           : loops_.contains(id)      ? "loop"
                                                      : std::string(info(n.op).name);
  ++log_.fired[kind];
  // nobody else has seen the kernel yet
  std::const_pointer_cast<Kernel>(out.kernel)->origin = {"cpu: " + kind, steps(g_, id, operands)};
  return dst.add(std::move(out));
}

Lowered Lowering::run() {
  choose_buffers();
  build_loops();
  choose_packed();
  count_readers();
  find_epilogues();
  find_groups();
  find_rows();
  Graph dst;
  to_.assign(g_.size(), ~NodeId{0});
  for (NodeId id = 0; id < g_.size(); ++id) {
    if (to_[id] != ~NodeId{0} || !(g_[id].op == Op::Input ? live_[id] : wanted_.contains(id))) continue;
    if (waiting_.contains(id)) continue;
    const auto group = groups_.find(id);
    const auto results = group == groups_.end() ? std::vector<NodeId>{} : available(group->second);
    if (results.size() > 1) emit_products(dst, results);
    else to_[id] = emit(dst, id);
  }
  for (const Root& r : g_.roots()) dst.root(r.name, {to_[r.edge.node], r.edge.view});
  for (const Assignment& a : g_.assignments()) dst.assignment(to_[a.state], {to_[a.next.node], a.next.view});
  return {std::move(dst), std::move(made_)};
}

Lowered lower(const Graph& g, const std::shared_ptr<Parallel>& parallel, PassLog& log, const CpuOptions& options,
              KernelNames& names) {
  Graph unrolled = unroll_windows(g, log);
  const bool narrow = options.precision == Precision::Medium && bf16_is_fast(detect_isa());
  std::optional<Graph> turned;
  if (!narrow || bf16_dots_are_fast(detect_isa())) turned = channels_last(unrolled, log, narrow);  // tiles: pixels last
  if (turned) unrolled = std::move(*turned);
  const Graph whole = make_contiguous(unrolled);
  const Graph ready = prepare_contractions(fuse_attention(whole, parallel, log, detect_isa(), options.precision), log);
  Lowered done = Lowering(ready, parallel, log, options, names, turned.has_value()).run();
  if (parallel->workers() > 1) done.graph = side_by_side(done.graph);
  return done;
}

}  // namespace lc::host
