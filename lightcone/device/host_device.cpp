#include "lightcone/device/host_device.h"

#include <cstring>
#include <utility>

#include "lightcone/base/error.h"
#include "lightcone/device/divided.h"
#include "lightcone/device/memory.h"

namespace lc {
namespace {

class Allocated final : public Buffer {
 public:
  explicit Allocated(Memory m) : Buffer(m.size(), m.data()), memory_(std::move(m)) {}
  void zero(std::size_t at, std::size_t bytes) { memory_.zero(at, bytes); }

 private:
  Memory memory_;
};

class Committed final : public Buffer {
 public:
  explicit Committed(Reserved m) : Buffer(m.size(), m.data()), memory_(std::move(m)) {}
  bool commit(std::size_t at, std::size_t bytes) override { return memory_.commit(at, bytes); }
  std::size_t committed() const override { return memory_.committed(); }

 private:
  Reserved memory_;
};

class Lent final : public Buffer {
 public:
  Lent(void* data, std::size_t bytes) : Buffer(bytes, static_cast<std::byte*>(data)) {}
};

const HostKernel& host_kernel(const Kernel& k) {
  if (const auto* host = dynamic_cast<const HostKernel*>(&k)) return *host;
  throw Error("device", str_cat("the kernel '", k.name(), "' is not one of the host's"));
}

// Looks up addresses in update(), so that run() does nothing but call kernels.
class HostRecording final : public Recording {
 public:
  HostRecording(std::span<const Launch> launches, std::shared_ptr<Parallel> parallel)
      : launches_(launches), parallel_(std::move(parallel)) {
    std::size_t operands = 0;
    for (const Launch& l : launches) operands += l.in.size();
    operands_.resize(operands);
    calls_.reserve(launches.size());
    const void** in = operands_.data();
    for (const Launch& l : launches) {
      calls_.push_back({&host_kernel(*l.kernel), {{in, l.in.size()}, nullptr, l.sizes, nullptr, *parallel_}, {}});
      in += l.in.size();
    }
  }

  void update() override {
    const void** in = operands_.data();
    for (std::size_t k = 0; k < calls_.size(); ++k) {
      const Launch& l = launches_[k];
      HostLaunch& h = calls_[k].launch;
      for (const BufferSlice& p : l.in) *in++ = p.host();
      h.out = l.out.host(), h.sizes = l.sizes, h.scratch = l.scratch.host();
      if (l.concurrent_with_next || (k > 0 && launches_[k - 1].concurrent_with_next))
        calls_[k].iterations = calls_[k].kernel->iterations(h.sizes, parallel_->workers());
    }
  }

  void run(std::size_t first, std::size_t last) override {
    for (std::size_t k = first; k < last;) {
      std::size_t end = k + 1;
      while (end < last && launches_[end - 1].concurrent_with_next) ++end;
      if (end == k + 1) calls_[k].kernel->run(calls_[k].launch);
      else run_divided({&calls_[k], end - k}, *parallel_);
      k = end;
    }
  }

 private:
  std::span<const Launch> launches_;
  std::shared_ptr<Parallel> parallel_;
  std::vector<const void*> operands_;
  std::vector<Divided> calls_;
};

class HostDevice final : public Device {
 public:
  explicit HostDevice(std::shared_ptr<Parallel> parallel) : parallel_(std::move(parallel)) {}
  std::string name() const override { return "host"; }
  bool shares_host_memory() const override { return true; }
  int workers() const override { return parallel_->workers(); }
  std::shared_ptr<Parallel> parallel() const override { return parallel_; }

  std::unique_ptr<Buffer> allocate(std::size_t bytes) override { return std::make_unique<Allocated>(Memory(bytes)); }
  std::unique_ptr<Buffer> allocate_sparse(std::size_t bytes) override {
    return std::make_unique<Allocated>(Memory(bytes, Pages::Small));
  }
  std::unique_ptr<Buffer> reserve(std::size_t bytes) override {
    Reserved m(bytes);
    return m.reserved() ? std::make_unique<Committed>(std::move(m)) : nullptr;
  }
  std::unique_ptr<Buffer> lend(void* data, std::size_t bytes) override { return std::make_unique<Lent>(data, bytes); }

  void copy_in(BufferSlice to, const void* from, std::size_t bytes) override { move(to.host(), from, bytes); }
  void copy_out(void* to, BufferSlice from, std::size_t bytes) override { move(to, from.host(), bytes); }
  void copy(BufferSlice to, BufferSlice from, std::size_t bytes) override { move(to.host(), from.host(), bytes); }
  void zero(BufferSlice to, std::size_t bytes) override {
    if (auto* own = dynamic_cast<Allocated*>(to.buffer)) own->zero(to.offset, bytes);
    else if (bytes) std::memset(to.host(), 0, bytes);
  }

  void launch(const Launch& l) override {
    std::vector<const void*> in;
    for (const BufferSlice& p : l.in) in.push_back(p.host());
    host_kernel(*l.kernel).run({in, l.out.host(), l.sizes, l.scratch.host(), *parallel_});
  }
  std::unique_ptr<Recording> record(std::span<const Launch> launches) override {
    return std::make_unique<HostRecording>(launches, parallel_);
  }

 private:
  static void move(void* to, const void* from, std::size_t bytes) {
    if (bytes) std::memcpy(to, from, bytes);
  }
  std::shared_ptr<Parallel> parallel_;
};

}  // namespace

std::shared_ptr<Device> host_device(std::shared_ptr<Parallel> parallel) {
  return std::make_shared<HostDevice>(std::move(parallel));
}

}  // namespace lc
