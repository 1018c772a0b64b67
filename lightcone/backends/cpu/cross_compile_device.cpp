#include "lightcone/backends/cpu/cross_compile_device.h"

#include <utility>

#include "lightcone/backends/cpu/target/target.h"
#include "lightcone/device/host_device.h"

namespace lc::backends::cpu {
namespace {

class ForeignDevice final : public Device {
 public:
  ForeignDevice(std::shared_ptr<Parallel> threads, std::string target)
      : workers_(threads->workers()), target_(std::move(target)), memory_(host_device(std::move(threads))) {}
  std::string name() const override { return target_; }
  bool shares_host_memory() const override { return true; }
  int workers() const override { return workers_; }

  std::unique_ptr<Buffer> allocate(std::size_t bytes) override { return memory_->allocate(bytes); }
  std::unique_ptr<Buffer> reserve(std::size_t bytes) override { return memory_->reserve(bytes); }
  std::unique_ptr<Buffer> lend(void* data, std::size_t bytes) override { return memory_->lend(data, bytes); }
  void copy_in(BufferSlice to, const void* from, std::size_t bytes) override { memory_->copy_in(to, from, bytes); }
  void copy_out(void* to, BufferSlice from, std::size_t bytes) override { memory_->copy_out(to, from, bytes); }
  void copy(BufferSlice to, BufferSlice from, std::size_t bytes) override { memory_->copy(to, from, bytes); }
  void zero(BufferSlice to, std::size_t bytes) override { memory_->zero(to, bytes); }

  void launch(const Launch&) override { refuse(); }
  std::unique_ptr<Recording> record(std::span<const Launch>) override { refuse(); }

 private:
  [[noreturn]] void refuse() const {
    throw Error("run", str_cat("the program was compiled for ", target_, ", which this processor (", str(this_target()),
                               ") is not: compile it without CpuOptions::target, or run it there"));
  }
  int workers_;
  std::string target_;
  std::shared_ptr<Device> memory_;
};

}  // namespace

std::shared_ptr<Device> cross_compile_device(std::shared_ptr<Parallel> threads, std::string target) {
  return std::make_shared<ForeignDevice>(std::move(threads), std::move(target));
}

}  // namespace lc::backends::cpu
