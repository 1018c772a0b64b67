// Compilers with deliberate errors in rules, passes and kernels.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lightcone/core/tensor.h"
#include "lightcone/device/host_kernel.h"
#include "lightcone/passes/compiler.h"

namespace lc::test {

// Replaces nodes; returns nullopt for nodes that stay.
using Change = std::function<std::optional<Edge>(Graph& g, const Node& n)>;
inline Compiler wrong_pass(const Change& change) {
  return Compiler({"sabotage", [change](const Graph& src, PassLog& log) {
                     return copy_graph(src, [&](Graph& g, NodeId, Node n) -> Edge {
                       if (const auto e = change(g, n)) {
                         ++log.fired["sabotage"];
                         return *e;
                       }
                       const NodeId id = g.add(std::move(n));
                       return {id, View(g[id].shape)};
                     });
                   }});
}
// Replaces one operand of the nodes with this operation.
inline Compiler wrong_operand(Op op, std::size_t operand, const std::function<Tensor(const Node&, Tensor)>& f) {
  return wrong_pass([=](Graph& g, const Node& n) -> std::optional<Edge> {
    if (n.op != op || n.in.size() <= operand || !is_float(n.dtype)) return std::nullopt;
    Node m = n;
    m.in[operand] = f(n, Tensor(g, n.in[operand])).edge();
    const NodeId id = g.add(std::move(m));
    return Edge{id, View(g[id].shape)};
  });
}
inline Compiler wrong_constant(double from, double to) {
  return wrong_pass([=](Graph& g, const Node& n) -> std::optional<Edge> {
    if (n.op != Op::Constant || std::abs(n.value - from) > 1e-9) return std::nullopt;
    return g.constant(to, n.dtype).edge();
  });
}

// Changes the f32 result of a kernel, in rows.
using Spoil = std::function<void(float* y, std::size_t count, std::size_t columns)>;

class Spoiled final : public HostKernel {
 public:
  Spoiled(std::shared_ptr<const Kernel> k, const Shape& shape, Spoil spoil)
      : kernel_(std::move(k)),
        count_(product(shape)),
        columns_(shape.empty() ? Dim(1) : shape.back()),
        spoil_(std::move(spoil)) {
    origin = kernel_->origin;
    device = kernel_->device;
  }
  std::string name() const override { return kernel_->name(); }
  std::vector<Dim> sizes() const override {
    std::vector<Dim> all = kernel_->sizes();
    all.push_back(count_), all.push_back(columns_);
    return all;
  }
  Dim scratch_bytes(int workers) const override { return kernel_->scratch_bytes(workers); }
  void run(const HostLaunch& l) const override {
    const std::size_t n = l.sizes.size() - 2;
    dynamic_cast<const HostKernel&>(*kernel_).run({l.in, l.out, l.sizes.first(n), l.scratch, l.parallel});
    spoil_(static_cast<float*>(l.out), static_cast<std::size_t>(l.sizes[n]), static_cast<std::size_t>(l.sizes[n + 1]));
  }

 private:
  std::shared_ptr<const Kernel> kernel_;
  Dim count_, columns_;
  Spoil spoil_;
};

// Spoils the last f32 kernel with this text in its name.
inline Compiler wrong_kernel(const std::string& name, const Spoil& spoil) {
  return Compiler({"sabotage", [=](const Graph& src, PassLog& log) {
                     const auto live = src.live();
                     NodeId last = static_cast<NodeId>(src.size());
                     for (NodeId id = 0; id < src.size(); ++id)
                       if (live[id] && src[id].op == Op::Kernel && src[id].dtype == DType::F32 &&
                           !src[id].kernel->part() && src[id].kernel->name().find(name) != std::string::npos)
                         last = id;
                     return copy_graph(src, [&](Graph& g, NodeId id, Node n) -> Edge {
                       if (id == last) {
                         n.kernel = std::make_shared<Spoiled>(n.kernel, n.shape, spoil);
                         ++log.fired["sabotage"];
                       }
                       const NodeId to = g.add(std::move(n));
                       return {to, View(g[to].shape)};
                     });
                   }});
}

}  // namespace lc::test
