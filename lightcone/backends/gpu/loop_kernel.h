// A loop nest of the kernel IR, scheduled for a grid of threads, as a kernel.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lightcone/backends/gpu/device/text_kernel.h"
#include "lightcone/codegen/simt/grid.h"

namespace lc::backends::gpu {

class LoopKernel final : public TextKernel {
 public:
  // `update_bytes`: bytes of operand 0, the base that the loop overwrites in part; 0 if the loop makes a whole value.
  LoopKernel(codegen::Kernel ir, std::vector<bool> same_index, const Limits& limits, Dim update_bytes = 0);
  std::vector<Dim> sizes() const override { return sizes_; }
  bool in_place(std::size_t k) const override;
  Dim flops() const override;
  std::optional<Dim> bytes_read(std::size_t k) const override;
  std::optional<Dim> bytes_written() const override;
  void enqueue(const Launch& l, GpuDevice& device) const override;
  std::string text(std::string_view name) const override;

 private:
  Dim results() const;
  codegen::Kernel ir_;
  codegen::simt::Grid grid_;
  codegen::simt::Language language_;
  int warp_;
  std::vector<Dim> sizes_;  // the IR's own, the grid size, the bytes of an update's base
  std::vector<bool> same_index_;
  bool update_;  // operand 0 is the base, which is overwritten in part
};

codegen::simt::GridLimits grid_limits(const Limits& l);

}  // namespace lc::backends::gpu
