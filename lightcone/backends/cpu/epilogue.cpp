#include "lightcone/backends/cpu/epilogue.h"

#include <algorithm>
#include <set>

#include "lightcone/core/tensor.h"

namespace lc::host {
namespace {
constexpr const char* kRow = "row of the epilogue";
constexpr const char* kBegin = "first column of the epilogue";
constexpr const char* kCount = "columns of the epilogue";
constexpr int kRowLoop = 999;  // no output loop's

// Around a kernel of one row, `row` elements that one loop goes over, a loop over all rows; and that one over some
// columns only.
void in_rows(ir::Kernel& k, const Dim& row, const Dim& rows) {
  const auto columns = Dim::symbol(kCount, 0, std::max<std::int64_t>(row.bounds().hi, 1));
  const auto begin = Dim::symbol(kBegin, 0, std::max<std::int64_t>(row.bounds().hi - 1, 1));
  const Dim index = Dim::index(kRowLoop, rows);
  const std::string column = k.loops[0].symbol;
  const auto moved = [&](const Dim& d) {
    return d.substitute([&](const std::string& name) -> std::optional<Dim> {
      if (name == kRow) return index;
      if (name == column) return Dim::index(std::stoi(column.substr(1)), row) + begin;
      return std::nullopt;
    });
  };
  for (ir::Instr& i : k.instrs)
    for (Dim* d : {&i.offset, &i.valid, &i.stride, &i.extent}) *d = moved(*d);
  k.store_offset = index * row + (row == Dim(1) ? begin : moved(k.store_offset));
  ir::Loop outer{.symbol = "i" + std::to_string(kRowLoop), .extent = rows, .body = std::move(k.top)};
  for (ir::Item& i : outer.body.items)
    if (i.is_loop) ++i.id;
  k.loops[0].extent = columns, k.loops[0].depth = 1, k.loops[0].parent = 0;
  k.loops.insert(k.loops.begin(), std::move(outer));
  k.top.items = {{true, 0}};
  k.output_loops = 2;
  std::set<std::string> sizes(k.sizes.begin(), k.sizes.end());
  sizes.erase(kRow);
  sizes.insert({kBegin, kCount});
  for (const auto& [name, bounds] : row.symbols()) sizes.insert(name);
  k.sizes.assign(sizes.begin(), sizes.end());
}
}  // namespace

std::shared_ptr<Epilogue> Epilogue::make(Graph& g, NodeId producer, NodeId consumer, Dim row,
                                         const std::function<bool(NodeId)>& is_buffer,
                                         std::shared_ptr<Parallel> parallel, const Machine& machine) {
  const Node n = g[consumer];
  const Dim all = product(n.shape);
  if (n.dtype != DType::F32 || g[producer].dtype != DType::F32 || !(product(g[producer].shape) == all)) return nullptr;
  if (row.bounds().lo < 1) return nullptr;
  const Dim rows = all / row;
  if (!(rows * row == all) || rows.bounds().lo < 1) return nullptr;
  const Tensor whole(g, {consumer, View(n.shape)});
  const Dim r = rows == Dim(1) ? Dim(0) : Dim::symbol(kRow, 0, rows.bounds().hi - 1);
  const Tensor one = prim::contiguous(whole.reshape({rows, row}).slice(0, r, r + 1).reshape({row}));
  const NodeId root = one.edge().node;  // of a single row the graph may know it already, as a value in memory
  ir::Built b = ir::build(g, {root, [&](NodeId k) { return k != root && is_buffer(k); }, nullptr}, machine);
  if (!b.offenders.empty() || !b.kernel || !b.kernel->reductions.empty() || b.kernel->output_loops != 1) return nullptr;
  if (!(b.kernel->loops[0].extent == row) || b.kernel->loops.size() != 1 || !b.kernel->rows.empty()) return nullptr;
  in_rows(*b.kernel, row, rows);
  if (b.buffers.size() > kMaxOperands || b.kernel->sizes.size() > kMaxSizes) return nullptr;
  auto e = std::make_shared<Epilogue>();
  for (NodeId k : b.buffers) {
    e->from_.push_back(k == producer ? -1 : static_cast<int>(e->operands_.size()));
    if (k == producer) continue;
    if (g[k].dtype == DType::F32 && product(g[k].shape) == all) e->largest_ = static_cast<int>(e->operands_.size());
    e->operands_.push_back(k);
  }
  const auto& names = b.kernel->sizes;
  const auto at = [&](const char* name) {
    return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  };
  e->begin_at_ = at(kBegin), e->count_at_ = at(kCount);
  e->sizes_ = names.size();
  e->loop_ = std::make_shared<LoopKernel>(std::move(*b.kernel), b.same_index, std::move(parallel));
  return e;
}

std::vector<Dim> Epilogue::sizes() const {
  std::vector<Dim> all = loop_->sizes();
  all.resize(sizes_);
  all[begin_at_] = all[count_at_] = 0;
  return all;
}

void Epilogue::run(const void* const* in, float* out, const std::int64_t* sizes, std::int64_t row, std::int64_t rows,
                   std::int64_t begin, std::int64_t end) const {
  const void* operands[kMaxOperands];
  std::int64_t n[kMaxSizes];
  for (std::size_t k = 0; k < from_.size(); ++k) operands[k] = from_[k] < 0 ? out : in[from_[k]];
  std::copy_n(sizes, sizes_, n);
  n[begin_at_] = begin, n[count_at_] = end - begin;
  loop_->range(operands, out, n, row, row + rows);
}

}  // namespace lc::host
