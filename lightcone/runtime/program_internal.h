// What a Program owns. Included by program.cpp and context.cpp only.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
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
  std::shared_ptr<Buffer> buffer;  // what the owner holds, or the device's copy of it
};

struct HashDim {
  std::size_t operator()(const Dim& d) const { return d.hash(); }
};

// A slice of the user's graph that may leave its axis for some sizes: looked at whenever sizes are bound.
struct SliceLimit {
  Dim first, room, extent;  // the least place that is read; how many there are behind the last one
  Shape of;
  int axis;
  Location where;
};

struct Program::Impl {
  std::shared_ptr<Device> device;  // first: what lies in its memory goes before it does
  Graph graph;
  std::vector<PassLog> log;
  std::vector<std::string> notes() const {
    std::vector<std::string> all;
    for (const PassLog& l : log) all.insert(all.end(), l.notes.begin(), l.notes.end());
    return all;
  }
  MemoryPlan plan;
  int workers = 1;
  std::vector<NodeId> order;                     // live nodes that compute
  std::vector<NodeId> parts;                     // live nodes that are a piece of another's memory
  std::vector<std::vector<std::size_t>> sizes;   // by NodeId: where a kernel's sizes stand in dims
  std::vector<std::vector<std::size_t>> shapes;  // and the extents of its result
  std::vector<Dim> dims;                         // every distinct size, evaluated once a binding
  std::unordered_map<Dim, std::size_t, HashDim> dim_places;
  Symbols symbols;  // that a run needs
  std::map<std::string, NodeId, std::less<>> inputs;
  std::map<std::string, std::size_t, std::less<>> outputs;
  std::vector<Edge> user_roots;              // edges of the user's own graph, for get(Tensor)
  std::set<std::string, std::less<>> known;  // its inputs, needed or not,
  Symbols known_symbols;                     // and the names in its sizes
  std::map<NodeId, Weight> weights;
  std::uint64_t loads = 0;  // how often a weight was loaded
  Prepared prepared;
  std::vector<IndexCheck> checks;
  std::vector<SliceLimit> slices;
  std::vector<NodeId> prepared_order;
  std::shared_ptr<Buffer> prepared_values;  // all of them, one behind the other
  std::vector<bool> computed;

  void remember_names(const Graph& users);
  void remember_slices(const Graph& users);
  void prepare();
  void choose_device();
  std::size_t dim(const Dim& d);
  void dims_of(const View& v);
  BufferSlice fixed(NodeId id) const;  // of a parameter or a prepared value, none before it is there
  void compute_prepared(NodeId changed);
  // The input of this name; none when nothing that is computed reads it. Error when the graph never had it.
  std::optional<NodeId> find_input(const char* op, std::string_view name) const;
};

// Errors for an address that is none, or not that of an element;
void check_data(const char* op, const Node& input, const void* data, std::size_t bytes);
// for a symbol that there is not, and for a value outside its bounds.
void check_symbol(const char* op, const Symbols& known, std::string_view name, std::int64_t value);

}  // namespace lc
