// Epilogue fusion. The consumer is built as a loop over one row (a slice) with a loop over rows around it. Everything
// that can be fused into a loop can therefore be fused into a product, and rows may be short.
#include <algorithm>

#include "lightcone/codegen/symbols.h"
#include "lightcone/composites/composites.h"
#include "lightcone/lowering/partition.h"

namespace lc::lowering {
namespace {
constexpr const char* kRow = "row of the epilogue";
constexpr const char* kBegin = "first column of the epilogue";
constexpr const char* kCount = "columns of the epilogue";
constexpr const char* kApart = "distance between rows of a sum apart";
constexpr std::int64_t kFarthest = std::int64_t{1} << 32;

// Wraps a kernel of one loop over the `row` elements of a row in a loop over all rows, and limits the inner loop to a
// range of columns. `apart`: the operand whose rows have a distance of their own; -1: none.
void in_rows(codegen::Kernel& k, const Dim& row, const Dim& rows, int apart) {
  const auto columns = Dim::symbol(kCount, 0, std::max<std::int64_t>(row.bounds().hi, 1));
  const auto begin = Dim::symbol(kBegin, 0, std::max<std::int64_t>(row.bounds().hi - 1, 1));
  codegen::Loop outer = codegen::loop_over(codegen::kEpilogueRow[0], rows);
  const Dim index = symbol(outer);
  const codegen::Loop& column = k.loops[0];
  const auto moved = [&](const Dim& d) {
    return d.substitute([&](const std::string& name) -> std::optional<Dim> {
      if (name == kRow) return index;
      if (name == column.symbol) return Dim::index(column.index, row) + begin;
      return std::nullopt;
    });
  };
  for (codegen::Instr& i : k.instrs)
    for (Dim* d : {&i.offset, &i.valid, &i.stride, &i.extent}) *d = moved(*d);
  const Dim at = row == Dim(1) ? begin : moved(k.store_offset);
  k.store_offset = index * row + at;
  const Dim distance = Dim::symbol(kApart, 1, kFarthest);
  for (codegen::Instr& i : k.instrs)
    if (i.code == codegen::Code::Load && i.buffer == apart) i.offset = index * distance + at;
  outer.body = std::move(k.top);
  for (codegen::Item& i : outer.body.items)
    if (i.is_loop) ++i.id;
  k.loops[0].extent = columns, k.loops[0].depth = 1, k.loops[0].parent = 0;
  k.loops.insert(k.loops.begin(), std::move(outer));
  k.top.items = {{true, 0}};
  k.output_loops = 2;
  std::set<std::string> sizes(k.sizes.begin(), k.sizes.end());
  sizes.erase(kRow);
  sizes.insert({kBegin, kCount});
  if (apart >= 0) sizes.insert(kApart);
  for (const auto& [name, bounds] : row.symbols()) sizes.insert(name);
  k.sizes.assign(sizes.begin(), sizes.end());
}
}  // namespace

// Builds `consumer` as rows of `row` elements. Returns nullopt if it is not elementwise in the producer's order. Adds a
// node to `g`: one row of the consumer.
std::optional<EpilogueLoop> Partition::epilogue(Graph& g, NodeId producer, NodeId consumer, const Dim& row) const {
  const Node n = g[consumer];
  const Dim all = product(n.shape);
  const bool any_type = rules_.epilogue_of_any_type;
  const bool apart = !any_type && rules_.sums_apart && rules_.sums_apart(producer, n.dtype);
  if (g[producer].dtype != DType::F32 || !(product(g[producer].shape) == all)) return std::nullopt;
  if (n.dtype != DType::F32 && !apart && !any_type) return std::nullopt;
  if (row.bounds().lo < 1) return std::nullopt;
  const Dim rows = all / row;
  if (!(rows * row == all) || rows.bounds().lo < 1) return std::nullopt;
  const Tensor whole(g, {consumer, View(n.shape)});
  const Dim r = rows == Dim(1) ? Dim(0) : Dim::symbol(kRow, 0, rows.bounds().hi - 1);
  const Tensor one = prim::contiguous(whole.reshape({rows, row}).slice(0, r, r + 1).reshape({row}));
  const NodeId root = one.edge().node;  // with a single row this may be an existing node, materialised
  const auto is_buffer = [&](NodeId k) { return k != root && k != consumer && k < buffer_.size() && buffer_[k]; };
  codegen::Built b = codegen::build(g, {root, is_buffer, nullptr}, rules_.machine);
  if (!b.must_materialize.empty() || !b.kernel || !b.kernel->reductions.empty() || b.kernel->output_loops != 1)
    return std::nullopt;
  if (!(b.kernel->loops[0].extent == row) || b.kernel->loops.size() != 1 || !b.kernel->rows.empty())
    return std::nullopt;
  const auto sum = std::find(b.buffers.begin(), b.buffers.end(), producer) - b.buffers.begin();
  in_rows(*b.kernel, row, rows, apart ? static_cast<int>(sum) : -1);
  if (b.buffers.size() > rules_.epilogue_operands || b.kernel->sizes.size() > rules_.epilogue_sizes)
    return std::nullopt;
  const auto& names = b.kernel->sizes;
  const auto at = [&](const char* name) {
    return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  };
  EpilogueLoop e{producer, std::move(b.buffers), std::move(b.same_index), {}, at(kBegin), at(kCount), {}};
  if (apart) e.apart_size = at(kApart);
  e.kernel = std::move(*b.kernel);
  return e;
}

std::map<NodeId, EpilogueLoop> Partition::epilogues() const {
  std::map<NodeId, EpilogueLoop> fused;
  std::optional<Graph> rows;  // the graph with the rows of consumers added
  for (NodeId id : results_) {
    const Loop* loop = get<Loop>(id);
    if (!loop || is(g_[id], builtin::slice_scatter())) continue;
    for (std::size_t k = loop->buffers.size(); k-- > 0 && !fused.contains(id);) {
      const NodeId producer = loop->buffers[k];
      if (readers(producer) != 1 || !loop->same_index[k]) continue;
      Dim row = 1;  // the number of neighbouring elements that the producer makes at a time
      if (const auto* v = get<Convolution>(producer)) {
        if (v->channels_last) row = v->rows.extent;
        else
          for (const auto& p : v->pixels) row = row * p.extent;
      } else if (const auto* c = get<Contraction>(producer)) {
        row = c->axes.back().extent;
      } else {
        continue;
      }
      if (!rows) rows = g_.clone();
      if (auto e = epilogue(*rows, producer, id, row)) fused.emplace(id, std::move(*e));
    }
  }
  return fused;
}

}  // namespace lc::lowering
