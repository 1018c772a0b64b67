#include "lightcone/backends/cpu/loops/epilogue.h"

#include <algorithm>

namespace lc::backends::cpu {

Epilogue::Epilogue(const Graph& g, lowering::EpilogueLoop e)
    : begin_at_(e.begin_size), count_at_(e.count_size), apart_at_(e.apart_size), sizes_(e.kernel.sizes.size()) {
  for (NodeId k : e.operands) {
    from_.push_back(k == e.producer ? -1 : static_cast<int>(operands_.size()));
    if (k == e.producer) continue;
    if (g[k].dtype == DType::F32 && product(g[k].shape) == product(g[e.producer].shape))
      largest_ = static_cast<int>(operands_.size());
    operands_.push_back(k);
  }
  if (e.kernel.streams)
    streams_ =
        less(Dim(e.kernel.stream / static_cast<std::int64_t>(size_of(e.kernel.dtype))), product(g[e.producer].shape));
  loop_ = std::make_shared<LoopKernel>(std::move(e.kernel), std::move(e.same_index));
}

std::vector<Dim> Epilogue::sizes() const {
  std::vector<Dim> all = loop_->sizes();
  all.resize(sizes_);
  all[begin_at_] = all[count_at_] = 0;
  if (apart_at_) all[*apart_at_] = 1;
  all.push_back(streams_);
  return all;
}

void Epilogue::run(const void* const* in, float* out, const std::int64_t* sizes, std::int64_t row, std::int64_t rows,
                   std::int64_t begin, std::int64_t end) const {
  range(in, out, 0, out, sizes, row, rows, begin, end);
}

// The loop indexes from row 0, so it gets the address that the first element of row 0 would have.
void Epilogue::run_apart(const void* const* in, const float* sums, std::int64_t distance, void* out,
                         const std::int64_t* sizes, std::int64_t row, std::int64_t rows, std::int64_t begin,
                         std::int64_t end) const {
  const auto first = reinterpret_cast<std::uintptr_t>(sums) - static_cast<std::uintptr_t>((row * distance + begin) * 4);
  range(in, reinterpret_cast<const void*>(first), distance, out, sizes, row, rows, begin, end);
}

void Epilogue::range(const void* const* in, const void* sums, std::int64_t distance, void* out,
                     const std::int64_t* sizes, std::int64_t row, std::int64_t rows, std::int64_t begin,
                     std::int64_t end) const {
  const void* operands[kMaxOperands];
  std::int64_t n[kMaxSizes];
  for (std::size_t k = 0; k < from_.size(); ++k) operands[k] = from_[k] < 0 ? sums : in[from_[k]];
  std::copy_n(sizes, sizes_ + 1, n);
  n[begin_at_] = begin, n[count_at_] = end - begin;
  if (apart_at_) n[*apart_at_] = distance;
  loop_->range(operands, out, n, row, row + rows);
}

}  // namespace lc::backends::cpu
