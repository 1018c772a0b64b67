#include "separate_device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "lightcone/base/error.h"
#include "lightcone/codegen/interpret/interpret.h"
#include "lightcone/codegen/sizes.h"
#include "lightcone/composites/composites.h"
#include "lightcone/lowering/partition.h"
#include "lightcone/passes/canonical.h"
#include "lightcone/passes/composites.h"

namespace lc::test {
namespace {

const std::size_t kPage = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
std::size_t up(std::size_t n) { return (n + kPage - 1) / kPage * kPage; }

std::byte* address(BufferSlice p) { return static_cast<ClosedBuffer*>(p.buffer)->address() + p.offset; }

}  // namespace

// ---- memory -----------------------------------------------------------------------------------

ClosedBuffer::ClosedBuffer(std::size_t bytes, bool reserved)
    : Buffer(std::max<std::size_t>(bytes, 1)), pages_(up(std::max<std::size_t>(bytes, 1))) {
  void* p = ::mmap(nullptr, pages_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw Error("memory", str_cat("the device has no ", bytes, " bytes to give"));
  data_ = static_cast<std::byte*>(p);
  if (!reserved) ranges_.emplace(0, pages_);
}
ClosedBuffer::~ClosedBuffer() { ::munmap(data_, pages_); }

bool ClosedBuffer::commit(std::size_t at, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes == 0) return true;
  std::size_t begin = at / kPage * kPage, end = up(at + bytes);
  for (auto it = ranges_.begin(); it != ranges_.end();) {
    if (it->second < begin || it->first > end) {
      ++it;
      continue;
    }
    begin = std::min(begin, it->first), end = std::max(end, it->second);
    it = ranges_.erase(it);
  }
  ranges_.emplace(begin, end);
  return true;
}
std::size_t ClosedBuffer::committed() const {
  std::size_t all = 0;
  for (const auto& [begin, end] : ranges_) all += end - begin;
  return std::min(all, size());
}

void ClosedBuffer::protect(int access) const {
  for (const auto& [begin, end] : ranges_)
    if (::mprotect(data_ + begin, end - begin, access) != 0) throw Error("memory", "the device cannot open its memory");
}
ClosedBuffer::Open::Open(Buffer* b) : b_(static_cast<ClosedBuffer*>(b)) {
  if (!b_) return;
  const std::lock_guard lock(b_->mutex_);
  if (b_->open_++ == 0) b_->protect(PROT_READ | PROT_WRITE);
}
ClosedBuffer::Open::~Open() {
  if (!b_) return;
  const std::lock_guard lock(b_->mutex_);
  if (--b_->open_ == 0) b_->protect(PROT_NONE);
}

// ---- the device -------------------------------------------------------------------------------

std::unique_ptr<Buffer> SeparateDevice::allocate(std::size_t bytes) {
  return std::make_unique<ClosedBuffer>(bytes, false);
}
std::unique_ptr<Buffer> SeparateDevice::reserve(std::size_t bytes) {
  try {
    return std::make_unique<ClosedBuffer>(bytes, true);
  } catch (const Error&) {
    return nullptr;
  }
}
void SeparateDevice::copy_in(BufferSlice to, const void* from, std::size_t bytes) {
  const ClosedBuffer::Open open(to.buffer);
  std::memcpy(address(to), from, bytes);
  ++copies_in;
}
void SeparateDevice::copy_out(void* to, BufferSlice from, std::size_t bytes) {
  const ClosedBuffer::Open open(from.buffer);
  std::memcpy(to, address(from), bytes);
  ++copies_out;
}
void SeparateDevice::copy(BufferSlice to, BufferSlice from, std::size_t bytes) {
  const ClosedBuffer::Open a(to.buffer), b(from.buffer);
  std::memcpy(address(to), address(from), bytes);
}
void SeparateDevice::zero(BufferSlice to, std::size_t bytes) {
  const ClosedBuffer::Open open(to.buffer);
  std::memset(address(to), 0, bytes);
}
void SeparateDevice::launch(const Launch& l) {
  const auto* kernel = dynamic_cast<const SeparateKernel*>(l.kernel);
  if (!kernel) throw Error("device", str_cat("the kernel '", l.kernel->name(), "' is not for the separate device"));
  std::vector<ClosedBuffer::Open> open;
  std::vector<const void*> in;
  for (const BufferSlice& p : l.in) open.emplace_back(p.buffer), in.push_back(address(p));
  open.emplace_back(l.out.buffer);
  kernel->run(in.data(), address(l.out), l.sizes);
  ++launches;
}

// ---- its kernels ------------------------------------------------------------------------------

SeparateKernel::SeparateKernel(codegen::Kernel k, std::vector<bool> same_index, Dim update_bytes)
    : ir_(std::move(k)),
      sizes_(codegen::size_symbols(ir_)),
      same_index_(std::move(same_index)),
      update_(!(update_bytes == Dim(0))) {
  Dim all = 1;
  for (int i = 0; i < ir_.output_loops; ++i) all = all * codegen::times(ir_.loops[static_cast<std::size_t>(i)]);
  sizes_.push_back(ir_.output_loops ? ir_.loops[0].extent : Dim(1));
  sizes_.push_back(all);
  sizes_.push_back(update_bytes);
}

bool SeparateKernel::in_place(std::size_t k) const {
  if (update_) return k == 0;
  return k < same_index_.size() && same_index_[k] && size_of(ir_.buffers[k]) == size_of(ir_.dtype) &&
         ir_.reductions.empty();
}

void SeparateKernel::run(const void* const* in, void* out, std::span<const std::int64_t> sizes) const {
  const std::size_t n = ir_.sizes.size();
  if (update_ && in[0] != out) std::memcpy(out, in[0], static_cast<std::size_t>(sizes[n + 2]));
  if (sizes[n + 1] > 0) codegen::interpret(ir_, in + (update_ ? 1 : 0), out, sizes.data(), 0, sizes[n]);
}

namespace {

Graph lower(const Graph& g, PassLog& log, const std::shared_ptr<Device>& device) {
  lowering::PartitionRules rules;
  rules.match = [](const Graph&, const lowering::Factors&) { return lowering::PartitionRules::Match(); };
  rules.recompute_threshold = 0;
  const lowering::Partition partition(g, std::move(rules));
  Graph dst;
  std::vector<NodeId> to(g.size(), ~NodeId{0});
  for (NodeId id = 0; id < g.size(); ++id) {
    Node n = g[id];
    if (n.op == Op::Input ? !partition.is_live(id) : !partition.results().contains(id)) continue;
    if (const auto* loop = partition.get<lowering::Loop>(id)) {
      const Dim all = product(n.shape) * Dim(static_cast<std::int64_t>(size_of(n.dtype)));
      auto kernel = std::make_shared<SeparateKernel>(*loop->kernel, loop->same_index,
                                                     is(n, builtin::slice_scatter()) ? all : Dim(0));
      const std::vector<NodeId> operands = partition.operands(id);
      kernel->origin = {"separate: loop", steps(g, id, operands)};
      kernel->device = device;
      n = {.op = Op::Kernel, .dtype = n.dtype, .shape = n.shape, .kernel = std::move(kernel), .where = n.where};
      for (const NodeId k : operands) n.in.push_back({to[k], View(g[k].shape)});
      ++log.fired["loop"];
    } else {
      for (Edge& e : n.in) e.node = to[e.node];
    }
    to[id] = dst.add(std::move(n));
  }
  copy_results(g, to, dst);
  return dst;
}

}  // namespace

Compiler separate(std::shared_ptr<Device> device) {
  const auto define = [](const Graph& g, PassLog& log) { return inline_transparent(g, log, builtin::attention()); };
  return Compiler({"inline-composites", define, {}, true}) | Compiler({"unroll-windows", unroll_windows}) |
         Compiler({"materialize-views", [](const Graph& g, PassLog&) { return make_contiguous(g); }, {}, true}) |
         Compiler({"separate", [device](const Graph& g, PassLog& log) { return lower(g, log, device); }});
}

}  // namespace lc::test
