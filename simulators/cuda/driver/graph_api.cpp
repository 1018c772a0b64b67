// Graphs: created by captures, made executable, launched and updated.
#include <algorithm>

#include "driver/launch.h"

using namespace lc::simulators::cuda;

namespace lc::simulators::cuda {
namespace {

struct KernelNodeParameters {  // CUDA_KERNEL_NODE_PARAMS_v2
  void* function;
  LcDim3 grid, block;
  unsigned dynamic_shared;
  void** parameters;
  void** extra;
  void* kernel;
  void* context;
};

struct UpdateResult {  // CUgraphExecUpdateResultInfo
  int result;
  const void *error_node, *error_from_node;
};
enum { kUpdated = 0, kTopologyChanged = 2, kNodeTypeChanged = 3 };

template <class Work>
int graph_call(unsigned rules, const void* handle, Work work) {
  return driver_call(rules, [&](Driver& d) -> int {
    Graph* const g = d.graphs.find(handle);
    return g == nullptr ? kInvalidHandle : work(d, *g);
  });
}

template <class Work>
int exec_call(const void* handle, Work work) {
  return driver_call(kCurrentContext, [&](Driver& d) -> int {
    GraphExec* const e = d.execs.find(handle);
    return e == nullptr ? kInvalidHandle : work(d, *e);
  });
}

std::vector<const void*> handles_of(const Graph& g) {
  std::vector<const void*> handles;
  for (const auto& h : g.handles) handles.push_back(h.get());
  return handles;
}

// Returns the graph node with this handle, or null.
Node* find_node(Driver& d, const void* handle) {
  for (const auto& [name, g] : d.graphs)
    for (std::size_t i = 0; i < g->nodes.size(); ++i)
      if (g->handles[i].get() == handle) return &g->nodes[i];
  return nullptr;
}

constexpr int kTypes[] = {0, 1, 2, 0};  // CUgraphNodeType of Launch, Copy, Fill, LibraryWork

}  // namespace
}  // namespace lc::simulators::cuda

FAKE_CUDA_API int cuGraphDestroy(void* graph) {
  return driver_call(kCurrentContext | kReleases, [&](Driver& d) { return d.graphs.remove(graph); });
}

FAKE_CUDA_API int cuGraphExecDestroy(void* exec) {
  return driver_call(kCurrentContext | kReleases, [&](Driver& d) { return d.execs.remove(exec); });
}

FAKE_CUDA_API int cuGraphInstantiateWithFlags(void** out, void* graph, unsigned long long) {
  return graph_call(kCurrentContext, graph, [&](Driver& d, const Graph& g) {
    if (out == nullptr) return kInvalidValue;
    auto nodes = std::make_shared<const std::vector<Node>>(g.nodes);
    *out = d.execs.add(std::make_shared<GraphExec>(GraphExec{std::move(nodes), handles_of(g)}));
    return kSuccess;
  });
}

FAKE_CUDA_API int cuGraphLaunch(void* exec, void* stream) {
  return exec_call(exec, [&](Driver& d, const GraphExec& e) {
    const std::shared_ptr<Stream> s = d.stream(stream);
    return s == nullptr ? kInvalidHandle : d.submit(*s, Replay{e.nodes});
  });
}

FAKE_CUDA_API int cuGraphGetNodes(void* graph, void** nodes, std::size_t* count) {
  return graph_call(kCurrentContext, graph, [&](Driver&, const Graph& g) {
    if (count == nullptr) return kInvalidValue;
    const std::size_t room = *count;
    if (nodes == nullptr) return *count = g.handles.size(), kSuccess;
    for (std::size_t i = 0; i < room; ++i) nodes[i] = i < g.handles.size() ? g.handles[i].get() : nullptr;
    *count = std::min(room, g.handles.size());
    return kSuccess;
  });
}

FAKE_CUDA_API int cuGraphNodeGetType(void* node, int* type) {
  return driver_call(kCurrentContext, [&](Driver& d) -> Code {
    const Node* const n = find_node(d, node);
    if (n == nullptr || type == nullptr) return n == nullptr ? kInvalidHandle : kInvalidValue;
    *type = kTypes[n->index()];
    return kSuccess;
  });
}

// The returned pointers to arguments are valid as long as the node.
FAKE_CUDA_API int cuGraphKernelNodeGetParams_v2(void* node, KernelNodeParameters* out) {
  return driver_call(kCurrentContext, [&](Driver& d) -> Code {
    const Node* const n = find_node(d, node);
    if (n == nullptr) return kInvalidHandle;
    const Launch* const l = std::get_if<Launch>(n);
    if (l == nullptr || out == nullptr) return kInvalidValue;
    *out = {
        l->function.get(), l->grid, l->block,         l->dynamic_shared, const_cast<void**>(l->arguments->pointers()),
        nullptr,           nullptr, primary_context()};
    return kSuccess;
  });
}

// `node` is a node of the graph from which `exec` was instantiated. Earlier launches keep their parameters.
FAKE_CUDA_API int cuGraphExecKernelNodeSetParams_v2(void* exec, void* node, const KernelNodeParameters* parameters) {
  return exec_call(exec, [&](Driver& d, GraphExec& e) -> Code {
    const auto at = std::find(e.handles.begin(), e.handles.end(), node);
    if (at == e.handles.end()) return kInvalidHandle;
    if (parameters == nullptr) return kInvalidValue;
    const auto i = static_cast<std::size_t>(at - e.handles.begin());
    if (!std::holds_alternative<Launch>((*e.nodes)[i])) return kInvalidValue;
    Launch l;
    const bool overlaps = std::get<Launch>((*e.nodes)[i]).overlaps;
    const LaunchShape shape{parameters->grid, parameters->block, parameters->dynamic_shared, overlaps};
    const Code code = make_launch(d, parameters->function, shape, parameters->parameters, parameters->extra, l);
    if (code != kSuccess) return code;
    auto nodes = std::make_shared<std::vector<Node>>(*e.nodes);
    (*nodes)[i] = std::move(l);
    e.nodes = std::move(nodes);
    return kSuccess;
  });
}

FAKE_CUDA_API int cuGraphExecUpdate_v2(void* exec, void* graph, UpdateResult* out) {
  return exec_call(exec, [&](Driver& d, GraphExec& e) -> Code {
    const Graph* const g = d.graphs.find(graph);
    if (g == nullptr) return kInvalidHandle;
    if (out == nullptr) return kInvalidValue;
    *out = {kUpdated, nullptr, nullptr};
    if (g->nodes.size() != e.nodes->size()) return out->result = kTopologyChanged, kGraphExecUpdateFailure;
    for (std::size_t i = 0; i < g->nodes.size(); ++i)
      if (g->nodes[i].index() != (*e.nodes)[i].index()) {
        *out = {kNodeTypeChanged, e.handles[i], g->handles[i].get()};
        return kGraphExecUpdateFailure;
      }
    e.nodes = std::make_shared<const std::vector<Node>>(g->nodes);
    return kSuccess;
  });
}
