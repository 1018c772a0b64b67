#include "lightcone/backends/gpu/sort_kernel.h"

#include <limits>

namespace lc::backends::gpu {
namespace {

using i64 = std::int64_t;

std::string numbered(std::string_view name, std::size_t k) { return k ? str_cat(name, "_", k) : std::string(name); }

}  // namespace

SortingKernel::SortingKernel(DType type, bool descending, const Dim& longest, codegen::simt::Language language)
    : sort_{type, descending, longest.bounds().hi > i64{std::numeric_limits<std::uint32_t>::max()},
            sort_span(longest.bounds().hi)},
      merges_(longest.bounds().hi > kSortTile),
      language_(language) {}

std::string SortingKernel::sort_text(std::string_view name) const {
  std::string text = sort_tiles_text(sort_, name, language_);
  if (merges_) text += merge_text(sort_, numbered(name, 1), language_);
  return text;
}

// Memory for keys and positions, twice: one copy is read while the other is written.
Dim SortingKernel::sort_bytes(const Dim& elements) const {
  if (!merges_) return 0;
  return elements * Dim(static_cast<i64>(2 * (key_bytes(sort_.type) + position_bytes(sort_.needs_64bit_index))));
}

void SortingKernel::sort(GpuDevice& device, BufferSlice in, BufferSlice out, BufferSlice scratch,
                         const Sizes& s) const {
  const i64 rows = s.outer * s.columns, tiles = ceil_div(s.length, sort_.span);
  if (rows == 0 || tiles == 0) return;
  // without merges keys and positions are never written, but their arguments must be valid
  BufferSlice keys[2] = {out, out}, positions[2] = {out, out};
  if (merges_) {
    const auto elements = static_cast<std::size_t>(rows * s.length);
    const std::size_t of_keys = elements * key_bytes(sort_.type),
                      of_positions = elements * position_bytes(sort_.needs_64bit_index);
    keys[0] = scratch, keys[1] = scratch.offset_by(of_keys);
    positions[0] = scratch.offset_by(2 * of_keys), positions[1] = scratch.offset_by(2 * of_keys + of_positions);
  }
  const i64 rows_a_group = kSortTile / sort_.span;
  const i64 sizes[kTileSizes] = {s.outer, s.length, s.columns, s.input_columns, tiles == 1};
  const BufferSlice of_tiles[] = {in, keys[0], positions[0], out};
  launch_kernel(device, 0, of_tiles, ceil_div(rows * tiles, rows_a_group), kSortThreads, sizes);
  int from = 0;
  for (i64 run = sort_.span; run < s.length; run *= 2, from = 1 - from) {
    const i64 of_run[kMergeSizes] = {s.outer, s.length, s.columns, run, 2 * run >= s.length};
    const BufferSlice of_merge[] = {keys[from], positions[from], keys[1 - from], positions[1 - from], out};
    launch_kernel(device, 1, of_merge, rows * tiles, kSortThreads, of_run);
  }
}

ArgSortKernel::ArgSortKernel(DType type, const AxisView& rows, bool descending, codegen::simt::Language language)
    : SortingKernel(type, descending, rows.length, language), rows_(rows) {}

void ArgSortKernel::enqueue(const Launch& l, GpuDevice& device) const {
  sort(device, l.in[0], l.out, l.scratch, {l.sizes[0], l.sizes[1], l.sizes[2], l.sizes[2]});
}

SortedScatterKernel::SortedScatterKernel(Scatter s, const AxisView& base, const Dim& count,
                                         codegen::simt::Language language)
    : SortingKernel(s.index, false, count, language), scatter_(s), base_(base), count_(count) {}

std::string SortedScatterKernel::text(std::string_view name) const {
  return sort_text(name) + scatter_text(scatter_, numbered(name, sort_functions()), language());
}

Dim SortedScatterKernel::scratch_bytes(int) const { return sorted() * 8 + sort_bytes(sorted()); }

void SortedScatterKernel::enqueue(const Launch& l, GpuDevice& device) const {
  const i64 outer = l.sizes[0], length = l.sizes[1], count = l.sizes[2], inner = l.sizes[3];
  if (!(l.in[0] == l.out)) {
    const i64 bytes = outer * length * inner * static_cast<i64>(size_of(scatter_.type));
    device.copy(l.out, l.in[0], static_cast<std::size_t>(bytes));
  }
  const i64 columns = scatter_.same_columns ? 1 : inner;
  const BufferSlice order = l.scratch,
                    rest = l.scratch.offset_by(static_cast<std::size_t>(outer * count * columns) * 8);
  if (inner == 0) return;
  sort(device, l.in[1], order, rest, {outer, count, columns, inner});
  const BufferSlice buffers[] = {l.in[1], order, l.in[2], l.out};
  launch_kernel(device, sort_functions(), buffers, ceil_div(outer * count * inner, kScatterThreads), kScatterThreads,
                l.sizes.first(kScatterSizes));
}

}  // namespace lc::backends::gpu
