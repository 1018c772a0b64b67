#include "lightcone/backends/pjrt/pjrt.h"

#include <algorithm>
#include <mutex>

#include "lightcone/backends/pjrt/device.h"
#include "lightcone/backends/pjrt/kernel.h"
#include "lightcone/base/error.h"
#include "lightcone/core/composite.h"
#include "lightcone/device/kernel_rule.h"

namespace lc {
namespace {

// Returns a client that the devices of one plugin share while one of them exists: XLA's takes most of a GPU's memory.
std::shared_ptr<const backends::pjrt::Client> client_of(const PjrtOptions& o) {
  static std::mutex mutex;
  static std::map<std::pair<const backends::pjrt::Plugin*, backends::pjrt::Attributes>,
                  std::weak_ptr<const backends::pjrt::Client>>
      clients;
  const std::shared_ptr<const backends::pjrt::Plugin> plugin = backends::pjrt::Plugin::load(o.plugin);
  const std::lock_guard lock(mutex);
  std::weak_ptr<const backends::pjrt::Client>& known = clients[{plugin.get(), o.options}];
  std::shared_ptr<const backends::pjrt::Client> client = known.lock();
  if (!client) known = client = backends::pjrt::Client::create(plugin, o.options);
  return client;
}

// Returns the graph around one kernel: its inputs, and its results as slices of the kernel's value.
Graph around_kernel(const Graph& g, PassLog& log, const std::shared_ptr<backends::pjrt::PjrtDevice>& device,
                    const PjrtOptions& options) {
  const std::vector<bool> live = g.live();
  Graph dst;
  std::vector<NodeId> to(g.size(), ~NodeId{0});
  Node whole{.op = Op::Kernel, .dtype = DType::U8};
  std::vector<std::string> operands;
  const auto add_input = [&](NodeId id) {
    to[id] = dst.add(g[id]);
    operands.push_back(g[id].name);
    whole.in.push_back({to[id], View(g[id].shape)});
  };
  for (NodeId id = 0; id < g.size(); ++id)
    if (live[id] && g[id].op == Op::Input) add_input(id);
  for (const Assignment& a : g.assignments())
    if (to[a.state] == ~NodeId{0}) add_input(a.state);
  std::vector<TensorType> results;
  for (const Root& r : g.roots()) results.push_back({g[r.edge.node].dtype, r.edge.view.shape()});
  for (const Assignment& a : g.assignments()) results.push_back({g[a.next.node].dtype, a.next.view.shape()});
  if (results.empty()) return g.clone();

  const std::vector<std::int64_t> offsets = result_offsets(results);
  const auto kernel = std::make_shared<backends::pjrt::ProgramKernel>(
      g, std::move(operands), offsets, options.precision, static_cast<std::size_t>(std::max(options.programs, 1)));
  kernel->origin.pass = "pjrt", kernel->origin.kind = "program";
  for (NodeId id = 0; id < g.size(); ++id)
    if (live[id] && info(g[id].op).kind != Kind::Leaf)
      kernel->origin.steps.push_back({info(g[id].op).name, g[id].where});
  kernel->device = device;
  if (kernel->sizes().empty()) kernel->prepare({}, *device);
  ++log.fired["program"];
  whole.shape = {offsets.back()};
  whole.kernel = kernel;
  const NodeId all = dst.add(std::move(whole));

  const auto piece = [&](std::size_t k) -> Edge {
    const TensorType& t = results[k];
    const auto part = part_kernel(offsets[k], product(t.shape) * Dim(static_cast<std::int64_t>(size_of(t.dtype))));
    part->device = device;
    Node n{.op = Op::Kernel, .dtype = t.dtype, .shape = t.shape, .kernel = part};
    n.in = {{all, View(dst[all].shape)}};
    return {dst.add(std::move(n)), View(t.shape)};
  };
  std::size_t k = 0;
  for (const Root& r : g.roots()) dst.root(r.name, piece(k++));
  for (const Assignment& a : g.assignments()) dst.assignment(to[a.state], piece(k++));
  return dst;
}

}  // namespace

Compiler pjrt(const PjrtOptions& options) { return pjrt(client_of(options), options); }

Compiler pjrt(std::shared_ptr<const backends::pjrt::Client> client, const PjrtOptions& options) {
  const auto device = std::make_shared<backends::pjrt::PjrtDevice>(std::move(client), options.device);
  return Compiler(
      {"pjrt", [device, options](const Graph& g, PassLog& log) { return around_kernel(g, log, device, options); }});
}

}  // namespace lc
