#include "lightcone/backends/gpu/fallback.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "lightcone/base/error.h"
#include "lightcone/core/tensor.h"
#include "lightcone/device/host_kernel.h"

namespace lc::backends::gpu {
namespace {

std::string name_of(std::size_t operand) { return str_cat("operand ", operand); }

Dim bytes_of(const Node& n) { return product(n.shape) * Dim(static_cast<std::int64_t>(size_of(n.dtype))); }

class FallbackKernel final : public GpuKernel {
 public:
  FallbackKernel(Graph compiled, std::size_t operands);
  std::string name() const override { return "on the host"; }
  std::vector<Dim> sizes() const override { return sizes_; }
  bool records() const override { return false; }
  void enqueue(const Launch& l, GpuDevice& device) const override;

 private:
  struct Step {
    NodeId node;
    const HostKernel* kernel;
    std::vector<NodeId> in;
    std::size_t first_size, sizes;  // range in sizes_
    std::size_t bytes;              // index in sizes_ of its result's bytes; the next is its scratch memory
  };
  void add(NodeId id);
  void run(const Step& s, std::span<const std::int64_t> sizes) const;
  Graph graph_;
  std::vector<Dim> sizes_;
  std::map<NodeId, std::size_t> inputs_;  // operand numbers; the first sizes are the operands' bytes
  std::vector<Step> steps_;
  NodeId result_;
  std::size_t result_bytes_;  // index in sizes_
  mutable std::mutex mutex_;  // serialises runs, because their memory is kept
  mutable std::vector<std::vector<std::byte>> values_, scratch_;
};

// Leaves room in an empty value, because a kernel may read an element of it although it uses none.
void make_room(std::vector<std::byte>& value, std::size_t bytes) { value.resize(std::max<std::size_t>(bytes, 64)); }

FallbackKernel::FallbackKernel(Graph compiled, std::size_t operands)
    : graph_(std::move(compiled)),
      result_(graph_.roots()[0].edge.node),
      values_(graph_.size()),
      scratch_(graph_.size()) {
  sizes_.resize(operands, 0);
  const std::vector<bool> live = graph_.live();
  for (NodeId id = 0; id < graph_.size(); ++id) {
    const Node& n = graph_[id];
    for (std::size_t k = 0; n.op == Op::Input && k < operands; ++k)
      if (n.name == name_of(k)) inputs_[id] = k, sizes_[k] = bytes_of(n);
    if (live[id] && n.op != Op::Input) add(id);
  }
  result_bytes_ = sizes_.size();
  sizes_.push_back(bytes_of(graph_[result_]));
}

void FallbackKernel::add(NodeId id) {
  const Node& n = graph_[id];
  const auto* kernel = dynamic_cast<const HostKernel*>(n.kernel.get());
  if (!kernel && !(n.kernel && n.kernel->part()))
    throw Error("gpu", str_cat("the fallback has no kernel of the host for '", n.name, "'"));
  Step s{id, kernel, {}, sizes_.size(), n.kernel->sizes().size(), 0};
  for (const Edge& e : n.in) s.in.push_back(e.node);
  for (const Dim& d : n.kernel->sizes()) sizes_.push_back(d);
  s.bytes = sizes_.size();
  sizes_.push_back(bytes_of(n));
  sizes_.push_back(n.kernel->scratch_bytes(1));
  steps_.push_back(std::move(s));
}

void FallbackKernel::run(const Step& s, std::span<const std::int64_t> sizes) const {
  static const std::shared_ptr<Parallel> alone = one_thread();
  std::vector<std::byte>& out = values_[s.node];
  const auto bytes = static_cast<std::size_t>(sizes[s.bytes]);
  make_room(out, bytes);
  if (!s.kernel) {  // a slice of its operand
    const auto at = static_cast<std::ptrdiff_t>(sizes[s.first_size + 1]);
    std::copy_n(values_[s.in[0]].begin() + at, bytes, out.begin());
    return;
  }
  std::vector<std::byte>& scratch = scratch_[s.node];
  scratch.resize(static_cast<std::size_t>(sizes[s.bytes + 1]) + 64);
  std::vector<const void*> in;
  for (const NodeId k : s.in) in.push_back(values_[k].data());
  const auto behind = reinterpret_cast<std::uintptr_t>(scratch.data()) % 64;
  s.kernel->run({in, out.data(), sizes.subspan(s.first_size, s.sizes), scratch.data() + (64 - behind), *alone});
}

void FallbackKernel::enqueue(const Launch& l, GpuDevice& device) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [id, operand] : inputs_) {
    const auto bytes = static_cast<std::size_t>(l.sizes[operand]);
    make_room(values_[id], bytes);
    if (bytes) device.copy_out(values_[id].data(), l.in[operand], bytes);
  }
  for (const Step& s : steps_) run(s, l.sizes);
  const auto bytes = static_cast<std::size_t>(l.sizes[result_bytes_]);
  if (bytes) device.copy_in(l.out, values_[result_].data(), bytes);
}

// The nodes between the operands and the root, as a graph of their own.
class Piece {
 public:
  Piece(const Graph& g, const std::vector<NodeId>& operands) : g_(g) {
    for (std::size_t k = 0; k < operands.size(); ++k) {
      const Node& n = g[operands[k]];
      to_[operands[k]] =
          piece_.add({.op = Op::Input, .dtype = n.dtype, .shape = n.shape, .name = name_of(k), .where = n.where});
    }
  }
  Graph with(NodeId root) && {
    const NodeId id = add(root);
    piece_.output("value", Tensor(piece_, {id, View(piece_[id].shape)}));
    return std::move(piece_);
  }

 private:
  NodeId add(NodeId id) {
    if (const auto it = to_.find(id); it != to_.end()) return it->second;
    Node n = g_[id];
    for (Edge& e : n.in) e.node = add(e.node);
    return to_[id] = piece_.add(std::move(n));
  }
  const Graph& g_;
  Graph piece_;
  std::map<NodeId, NodeId> to_;
};

}  // namespace

std::shared_ptr<Kernel> fallback_kernel(const Graph& g, NodeId root, const std::vector<NodeId>& operands,
                                        const Compiler& host) {
  Compiled done = transform(Piece(g, operands).with(root), host);
  return std::make_shared<FallbackKernel>(std::move(done.graph), operands.size());
}

}  // namespace lc::backends::gpu
