#include "lightcone/backends/gpu/loop_kernel.h"

#include "lightcone/codegen/sizes.h"

namespace lc::backends::gpu {

codegen::simt::GridLimits grid_limits(const Limits& l) {
  return {l.max_block_size, l.warp, static_cast<std::int64_t>(l.shared)};
}

LoopKernel::LoopKernel(codegen::Kernel k, std::vector<bool> same_index, const Limits& limits, Dim update_bytes)
    : ir_(std::move(k)),
      grid_(codegen::simt::schedule(ir_, grid_limits(limits))),
      language_(limits.language),
      warp_(limits.warp),
      sizes_(codegen::size_symbols(ir_)),
      same_index_(std::move(same_index)),
      update_(!(update_bytes == Dim(0))) {
  sizes_.push_back(codegen::simt::groups(ir_, grid_));
  sizes_.push_back(update_bytes);
}

bool LoopKernel::in_place(std::size_t k) const {
  if (update_) return k == 0;
  return k < same_index_.size() && same_index_[k] && size_of(ir_.buffers[k]) == size_of(ir_.dtype) &&
         ir_.reductions.empty();
}

Dim LoopKernel::flops() const {
  Dim all = 0;
  const auto count = [&](const auto& self, const codegen::Block& b, const Dim& times) -> void {
    for (const codegen::Item& i : b.items) {
      if (!i.is_loop) {
        const codegen::Code code = ir_.instrs[i.id].code;
        if (code == codegen::Code::Apply || code == codegen::Code::MulAdd) all = all + times;
        continue;
      }
      const codegen::Loop& l = ir_.loops[i.id];
      if (l.reduction >= 0 && ir_.reductions[l.reduction].inner_loop == i.id) all = all + times * l.extent;
      self(self, l.body, times * l.extent);
    }
  };
  count(count, ir_.top, 1);
  return all;
}

Dim LoopKernel::results() const {
  Dim all = 1;
  for (int l = 0; l < ir_.output_loops; ++l) all = all * ir_.loops[l].extent;
  return all;
}

// A buffer from which only elements are picked by index counts one element for each result.
std::optional<Dim> LoopKernel::bytes_read(std::size_t k) const {
  if (update_ && k == 0) return 0;  // overwritten in part, not read
  const auto buffer = static_cast<int>(k) - static_cast<int>(update_);
  bool picked = ir_.reductions.empty();
  for (const codegen::Instr& i : ir_.instrs) picked = picked && (i.code != codegen::Code::Load || i.buffer != buffer);
  if (!picked) return std::nullopt;
  return results() * Dim(static_cast<std::int64_t>(size_of(ir_.buffers[buffer])));
}

std::optional<Dim> LoopKernel::bytes_written() const {
  return update_ ? std::optional(results() * Dim(static_cast<std::int64_t>(size_of(ir_.dtype)))) : std::nullopt;
}

void LoopKernel::enqueue(const Launch& l, GpuDevice& device) const {
  const std::size_t n = ir_.sizes.size();
  if (update_ && !(l.in[0] == l.out)) device.copy(l.out, l.in[0], static_cast<std::size_t>(l.sizes[n + 1]));
  launch_kernel(device, LaunchBuffers(l, update_ ? 1 : 0), l.sizes[n], grid_.group_threads(), l.sizes.first(n));
}

std::string LoopKernel::text(std::string_view name) const {
  return codegen::simt::render(ir_, grid_, name, language_, warp_);
}

}  // namespace lc::backends::gpu
