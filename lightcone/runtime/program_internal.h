// The implementation of Program. Included by program.cpp and context_internal.h only.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "lightcone/device/device.h"
#include "lightcone/device/prepared.h"
#include "lightcone/passes/index_checks.h"
#include "lightcone/passes/symbols.h"
#include "lightcone/runtime/program.h"

namespace lc {

struct Weight {
  std::shared_ptr<const void> owner;
  std::shared_ptr<Buffer> buffer;  // the owner's bytes, or the device's copy of them
};

struct HashDim {
  std::size_t operator()(const Dim& d) const { return d.hash(); }
};

// A slice in the user's graph that may leave its axis for some sizes. It is checked whenever sizes are bound.
struct SliceLimit {
  Dim first, room, extent;  // least index that is read; elements after the last index; extent of the slice
  Shape of;
  int axis;
  Location where;
};

struct Program::Impl {
  std::shared_ptr<Device> device;  // declared first: values in its memory are destroyed before it
  Graph graph;
  std::vector<PassLog> log;
  std::vector<std::string> notes() const {
    std::vector<std::string> all;
    for (const PassLog& l : log) all.insert(all.end(), l.notes.begin(), l.notes.end());
    return all;
  }
  MemoryPlan plan;
  int workers = 1;
  std::vector<NodeId> order;                     // live nodes that compute a value
  std::vector<NodeId> parts;                     // live nodes that are a part of another node's memory
  std::vector<std::vector<std::size_t>> sizes;   // by NodeId: indices into `dims` of a kernel's sizes
  std::vector<std::vector<std::size_t>> shapes;  // by NodeId: indices into `dims` of the extents of its result
  std::vector<Dim> dims;                         // every distinct size, evaluated once per binding
  std::unordered_map<Dim, std::size_t, HashDim> dim_places;
  Symbols symbols;  // symbols that a run needs
  std::map<std::string, NodeId, std::less<>> inputs;
  std::map<std::string, std::size_t, std::less<>> outputs;
  std::vector<Edge> user_roots;                    // edges of the user's own graph, for get(Tensor)
  std::map<std::string, Node, std::less<>> known;  // all inputs of the user's graph, needed or not
  Symbols known_symbols;                           // all symbols in the sizes of the user's graph
  std::map<NodeId, Weight> weights;
  std::uint64_t loads = 0;  // number of calls of load()
  Prepared prepared;
  std::vector<IndexCheck> checks;
  std::vector<SliceLimit> slices;
  std::vector<NodeId> prepared_order;
  std::shared_ptr<Buffer> prepared_values;  // one block with all prepared values
  std::vector<bool> computed;

  void remember_names(const Graph& users);
  void remember_slices(const Graph& users);
  void prepare();
  void choose_device();
  std::size_t dim(const Dim& d);
  void dims_of(const View& v);
  BufferSlice fixed(NodeId id) const;  // buffer of a parameter or a prepared value; empty before it is loaded
  void compute_prepared(NodeId changed);
  // Returns the input of this name, or nullopt if no computed value reads it. Throws Error if the graph never had it.
  std::optional<NodeId> find_input(const char* op, std::string_view name) const;
};

// Throws Error if `data` is null or not aligned to the input's element size.
void check_data(const char* op, const Node& input, const void* data, std::size_t bytes);
// Throws Error for an unknown symbol, and for a value outside of its bounds.
void check_symbol(const char* op, const Symbols& known, std::string_view name, std::int64_t value);

}  // namespace lc
