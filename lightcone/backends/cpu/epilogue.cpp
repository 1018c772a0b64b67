#include "lightcone/backends/cpu/epilogue.h"

#include <algorithm>

#include "lightcone/core/tensor.h"

namespace lc::host {
namespace {
constexpr const char* kRow = "row of the epilogue";
}

std::shared_ptr<Epilogue> Epilogue::make(Graph& g, NodeId producer, NodeId consumer, Dim row,
                                         const std::function<bool(NodeId)>& is_buffer,
                                         std::shared_ptr<Parallel> parallel) {
  const Node n = g[consumer];
  const Dim all = product(n.shape);
  if (n.dtype != DType::F32 || g[producer].dtype != DType::F32 || !(product(g[producer].shape) == all)) return nullptr;
  if (row.bounds().lo < 1) return nullptr;
  const Dim rows = all / row;
  if (!(rows * row == all) || rows.bounds().lo < 1) return nullptr;
  const Tensor whole(g, {consumer, View(n.shape)});
  const Dim r = rows == Dim(1) ? Dim(0) : Dim::symbol(kRow, 0, rows.bounds().hi - 1);
  const Tensor one = prim::contiguous(whole.reshape({rows, row}).slice(0, r, r + 1).reshape({row}));
  const ir::Region region{one.edge().node, is_buffer, nullptr};
  ir::Built b = ir::build(g, region);
  if (!b.offenders.empty() || !b.kernel || !b.kernel->reductions.empty() || b.kernel->output_loops != 1) return nullptr;
  if (!(b.kernel->loops[0].extent == row) || b.buffers.size() > kMaxOperands) return nullptr;
  if (b.kernel->sizes.size() > kMaxSizes) return nullptr;
  auto e = std::make_shared<Epilogue>();
  for (NodeId k : b.buffers) {
    e->from_.push_back(k == producer ? -1 : static_cast<int>(e->operands_.size()));
    if (k == producer) continue;
    if (g[k].dtype == DType::F32 && product(g[k].shape) == all) e->largest_ = static_cast<int>(e->operands_.size());
    e->operands_.push_back(k);
  }
  const auto& names = b.kernel->sizes;
  const auto at = std::find(names.begin(), names.end(), kRow);
  if (at != names.end()) e->row_at_ = static_cast<int>(at - names.begin());
  e->sizes_ = names.size();
  e->loop_ = std::make_shared<LoopKernel>(std::move(*b.kernel), b.same_index, std::move(parallel));
  return e;
}

std::vector<Dim> Epilogue::sizes() const {
  std::vector<Dim> all = loop_->sizes();
  all.resize(sizes_);
  if (row_at_ >= 0) all[static_cast<std::size_t>(row_at_)] = 0;
  return all;
}

void Epilogue::run(const void* const* in, float* out, const std::int64_t* sizes, std::int64_t row,
                   std::int64_t row_size, std::int64_t begin, std::int64_t end) const {
  const void* operands[kMaxOperands];
  std::int64_t n[kMaxSizes];
  for (std::size_t k = 0; k < from_.size(); ++k) operands[k] = from_[k] < 0 ? out : in[from_[k]];
  std::copy_n(sizes, sizes_, n);
  if (row_at_ >= 0) n[row_at_] = row;
  loop_->range(operands, out + row * row_size, n, begin, end);
}

}  // namespace lc::host
