#include "lightcone/backends/cpu/loops/epilogue.h"

#include <algorithm>

namespace lc::backends::cpu {

Epilogue::Epilogue(const Graph& g, lowering::EpilogueLoop e)
    : begin_at_(e.begin_size), count_at_(e.count_size), sizes_(e.kernel.sizes.size()) {
  for (NodeId k : e.operands) {
    from_.push_back(k == e.producer ? -1 : static_cast<int>(operands_.size()));
    if (k == e.producer) continue;
    if (g[k].dtype == DType::F32 && product(g[k].shape) == product(g[e.producer].shape))
      largest_ = static_cast<int>(operands_.size());
    operands_.push_back(k);
  }
  loop_ = std::make_shared<LoopKernel>(std::move(e.kernel), std::move(e.same_index));
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

}  // namespace lc::backends::cpu
