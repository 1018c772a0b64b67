#include <algorithm>
#include <cstring>

#include "lightcone/backends/cpu/lower.h"

namespace lc::host {
namespace {

constexpr double kTaskWork = 60000;  // rough operations worth handing to a thread

struct Job {
  const LoopKernel* kernel;
  const void* const* in;
  void* out;
  const std::int64_t* n;
  std::int64_t extent, step;
};

void task(void* arg, int t, int) {
  const Job& j = *static_cast<Job*>(arg);
  const std::int64_t begin = t * j.step, end = std::min(j.extent, begin + j.step);
  j.kernel->range(j.in, j.out, j.n, begin, end);
}

}  // namespace

LoopKernel::LoopKernel(ir::Kernel k, std::vector<bool> same_index, std::shared_ptr<Parallel> parallel, Dim update_bytes)
    : ir_(std::move(k)),
      same_index_(std::move(same_index)),
      parallel_(std::move(parallel)),
      update_(!(update_bytes == Dim(0))),
      work_(ir_.work) {
  std::map<std::string, Bounds> bounds;
  const auto collect = [&](const Dim& d) { bounds.merge(d.symbols()); };
  for (const ir::Instr& i : ir_.instrs)
    for (const Dim* d : {&i.offset, &i.valid, &i.stride, &i.extent}) collect(*d);
  for (const ir::Loop& l : ir_.loops) collect(l.extent);
  collect(ir_.store_offset);
  for (const std::string& s : ir_.sizes) sizes_.push_back(Dim::symbol(s, bounds.at(s).lo, bounds.at(s).hi));
  Dim all = 1;
  for (int k = 0; k < ir_.output_loops; ++k) all = all * ir_.loops[static_cast<std::size_t>(k)].extent;
  sizes_.push_back(ir_.output_loops ? ir_.loops[0].extent : Dim(1));
  sizes_.push_back(all);
  sizes_.push_back(update_bytes);
}

bool LoopKernel::in_place(std::size_t k) const {
  if (update_) return k == 0;
  return k < same_index_.size() && same_index_[k] && size_of(ir_.buffers[k]) == size_of(ir_.dtype) &&
         ir_.reductions.empty();
}

void LoopKernel::range(const void* const* in, void* out, const std::int64_t* n, std::int64_t begin,
                       std::int64_t end) const {
  if (function_) function_(in, out, reinterpret_cast<const long*>(n), begin, end);
  else ir::interpret(ir_, in, out, n, begin, end);
}

void LoopKernel::run(const Launch& l) const {
  const std::size_t n = ir_.sizes.size();
  const std::int64_t extent = l.sizes[n], all = l.sizes[n + 1];
  const void* const* in = l.in.data() + (update_ ? 1 : 0);
  if (update_ && l.in[0] != l.out) std::memcpy(l.out, l.in[0], static_cast<std::size_t>(l.sizes[n + 2]));
  if (all <= 0) return;
  Job j{this, in, l.out, l.sizes.data(), extent, extent};
  const double each = work_ * static_cast<double>(all) / static_cast<double>(extent);
  j.step = std::clamp<std::int64_t>(static_cast<std::int64_t>(kTaskWork / each), 1, extent);
  // a few long ranges a worker: short ones in turns would cut the streams the prefetcher follows
  j.step = std::max(j.step, extent / (4 * l.parallel.workers()));
  if (ir_.output_loops == 1) j.step = std::min(extent, (j.step + 63) / 64 * 64);  // whole cache lines
  l.parallel.run(static_cast<int>((extent + j.step - 1) / j.step), task, &j);
}

}  // namespace lc::host
