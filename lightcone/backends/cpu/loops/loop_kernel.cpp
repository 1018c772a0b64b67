#include <algorithm>
#include <cstring>

#include "lightcone/backends/cpu/loops/loop_kernel.h"
#include "lightcone/codegen/interpret/interpret.h"
#include "lightcone/codegen/sizes.h"
#include "lightcone/device/divided.h"

namespace lc::backends::cpu {
LoopKernel::LoopKernel(codegen::Kernel k, std::vector<bool> same_index, Dim update_bytes)
    : ir_(std::move(k)),
      sizes_(codegen::size_symbols(ir_)),
      same_index_(std::move(same_index)),
      update_(!(update_bytes == Dim(0))),
      work_(ir_.work) {
  Dim all = 1;
  for (int k = 0; k < ir_.output_loops; ++k) all = all * times(ir_.loops[k]);
  sizes_.push_back(ir_.streams ? less(Dim(ir_.stream / static_cast<std::int64_t>(size_of(ir_.dtype))), all) : Dim(0));
  sizes_.push_back(ir_.output_loops ? ir_.loops[0].extent : Dim(1));
  sizes_.push_back(all);
  sizes_.push_back(update_bytes);
}

namespace {

// Calls see(id, times) for each value and how often it is computed, and see(-1, times) for the steps of a reduction.
template <class F>
void count(const codegen::Kernel& k, const codegen::Block& block, const Dim& times, const F& see) {
  for (const codegen::Item& i : block.items) {
    if (!i.is_loop) {
      see(i.id, times);
      continue;
    }
    const codegen::Loop& l = k.loops[i.id];
    const Dim inside = times * codegen::times(l);
    count(k, l.body, inside, see);
    if (l.reduction >= 0 && k.reductions[l.reduction].inner_loop == i.id) see(-1, inside);
  }
}

}  // namespace

Dim LoopKernel::flops() const {
  Dim all = 0;
  count(ir_, ir_.top, 1, [&](int id, const Dim& times) {
    const auto code = id < 0 ? codegen::Code::Apply : ir_.instrs[id].code;
    if (code == codegen::Code::Apply || code == codegen::Code::MulAdd) all = all + times;
  });
  return all;
}

// Loads with equal offsets read the same elements. An offset reads as many elements as the loops it mentions have
// iterations.
std::optional<Dim> LoopKernel::bytes_read(std::size_t k) const {
  if (update_ && k == 0) return 0;  // partly overwritten, never read
  const int buffer = static_cast<int>(k) - update_;
  std::vector<Dim> seen;
  Dim elements = 0;
  count(ir_, ir_.top, 1, [&](int id, const Dim& times) {
    if (id < 0) return;
    const codegen::Instr& i = ir_.instrs[id];
    if (i.code != codegen::Code::Load && i.code != codegen::Code::GatherLoad) return;
    const std::size_t tile = static_cast<std::size_t>(i.buffer) - ir_.buffers.size();
    const bool tiled = tile < ir_.tiles.size();
    if ((tiled ? ir_.tiles[tile].buffer : i.buffer) != buffer) return;
    if (i.code == codegen::Code::GatherLoad) {
      elements = elements + times;
      return;
    }
    const Dim& offset = tiled ? ir_.tiles[tile].offset : i.offset;
    if (std::find(seen.begin(), seen.end(), offset) != seen.end()) return;
    seen.push_back(offset);
    const auto symbols = offset.symbols();
    Dim places = 1;
    for (const codegen::Loop& l : ir_.loops)
      if (symbols.contains(l.symbol)) places = places * l.extent;
    const Bounds b = offset.bounds();
    constexpr std::int64_t huge = std::int64_t{1} << 60;  // bounds beyond this mean unknown
    const bool known = b.lo > -huge && b.hi < huge;
    elements = elements + (known ? min(places, Dim(b.hi - b.lo + 1)) : places);
  });
  return elements * Dim(static_cast<std::int64_t>(size_of(ir_.buffers[buffer])));
}

std::optional<Dim> LoopKernel::bytes_written() const {
  if (!update_) return std::nullopt;
  Dim elements = 1;
  for (int k = 0; k < ir_.output_loops; ++k) elements = elements * times(ir_.loops[k]);
  return elements * Dim(static_cast<std::int64_t>(size_of(ir_.dtype)));
}

bool LoopKernel::in_place(std::size_t k) const {
  if (update_) return k == 0;
  return k < same_index_.size() && same_index_[k] && size_of(ir_.buffers[k]) == size_of(ir_.dtype) &&
         ir_.reductions.empty();
}

void LoopKernel::range(const void* const* in, void* out, const std::int64_t* n, std::int64_t begin,
                       std::int64_t end) const {
  if (function_) function_(in, out, reinterpret_cast<const long*>(n), begin, end);
  else codegen::interpret(ir_, in, out, n, begin, end);
}

Iterations LoopKernel::iterations(std::span<const std::int64_t> sizes, int workers) const {
  const std::size_t n = ir_.sizes.size();
  const std::int64_t count = sizes[n + 1], all = sizes[n + 2];
  if (all <= 0) return {};
  // Ranges begin at whole cache lines, and at whole tiles if there are many tiles.
  const std::int64_t tile = ir_.output_loops ? ir_.loops[0].step : 1;
  std::int64_t whole = ir_.output_loops == 1 ? 64 : 1;
  if (tile > 1) whole = count >= tile * 4 * workers ? tile : count >= 64 * workers ? 64 : 16;
  return {count, whole, work_ * static_cast<double>(all) / static_cast<double>(count)};
}

void LoopKernel::run(const HostLaunch& l) const {
  if (update_ && l.in[0] != l.out) std::memcpy(l.out, l.in[0], static_cast<std::size_t>(l.sizes[ir_.sizes.size() + 3]));
  const Divided whole{this, l, iterations(l.sizes, l.parallel.workers())};
  run_divided({&whole, 1}, l.parallel);
}

}  // namespace lc::backends::cpu
