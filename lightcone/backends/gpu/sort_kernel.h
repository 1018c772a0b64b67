// Sorts, and scatters that sort their indices: several launches of the kernels in sorting/.
#pragma once

#include <string>
#include <vector>

#include "lightcone/backends/gpu/device/text_kernel.h"
#include "lightcone/backends/gpu/sorting/text.h"

namespace lc::backends::gpu {

struct AxisView {  // an axis as outer x length x inner
  Dim outer = 1, length, inner = 1;
  AxisView(const Shape& s, int axis) : length(s[static_cast<std::size_t>(axis)]) {
    for (int i = 0; i < axis; ++i) outer = outer * s[static_cast<std::size_t>(i)];
    for (std::size_t i = static_cast<std::size_t>(axis) + 1; i < s.size(); ++i) inner = inner * s[i];
  }
};

// Base of kernels that sort: their first functions are those of the sort.
class SortingKernel : public TextKernel {
 protected:
  struct Sizes {
    std::int64_t outer, length, columns, input_columns;
  };
  SortingKernel(DType type, bool descending, const Dim& longest, codegen::simt::Language language);
  bool merges() const { return merges_; }
  std::size_t sort_functions() const { return merges_ ? 2 : 1; }
  std::string sort_text(std::string_view name) const;
  Dim sort_bytes(const Dim& elements) const;  // scratch memory
  void sort(GpuDevice& device, BufferSlice in, BufferSlice out, BufferSlice scratch, const Sizes& s) const;
  codegen::simt::Language language() const { return language_; }

 private:
  Sort sort_;
  bool merges_;
  codegen::simt::Language language_;
};

class ArgSortKernel final : public SortingKernel {
 public:
  ArgSortKernel(DType type, const AxisView& rows, bool descending, codegen::simt::Language language);
  std::vector<Dim> sizes() const override { return {rows_.outer, rows_.length, rows_.inner}; }
  Dim scratch_bytes(int) const override { return sort_bytes(rows_.outer * rows_.length * rows_.inner); }
  Dim flops() const override { return rows_.outer * rows_.length * rows_.inner; }
  std::size_t functions() const override { return sort_functions(); }
  void enqueue(const Launch& l, GpuDevice& device) const override;
  std::string text(std::string_view name) const override { return sort_text(name); }

 private:
  AxisView rows_;
};

// Operands: the base, the indices, the source. Each element of the result takes the source's elements that go to it in
// the order of the source.
class SortedScatterKernel final : public SortingKernel {
 public:
  SortedScatterKernel(Scatter s, const AxisView& base, const Dim& count, codegen::simt::Language language);
  std::vector<Dim> sizes() const override { return {base_.outer, base_.length, count_, base_.inner}; }
  Dim scratch_bytes(int) const override;
  bool in_place(std::size_t k) const override { return k == 0; }
  Dim flops() const override { return base_.outer * count_ * base_.inner; }
  std::size_t functions() const override { return sort_functions() + 1; }
  void enqueue(const Launch& l, GpuDevice& device) const override;
  std::string text(std::string_view name) const override;

 private:
  Dim sorted() const { return base_.outer * count_ * (scatter_.same_columns ? Dim(1) : base_.inner); }
  Scatter scatter_;
  AxisView base_;
  Dim count_;
};

}  // namespace lc::backends::gpu
