#include <cstring>

#include "lightcone/device/host_kernel.h"
#include "lightcone/device/kernel_rule.h"

namespace lc {
namespace {

class PartKernel final : public HostKernel {
 public:
  PartKernel(std::int64_t offset, Dim bytes) : offset_(offset), bytes_(std::move(bytes)) {}
  std::string name() const override { return "part"; }
  std::vector<Dim> sizes() const override { return {bytes_}; }
  std::optional<std::int64_t> part() const override { return offset_; }
  void run(const HostLaunch& l) const override {
    std::memcpy(l.out, static_cast<const std::byte*>(l.in[0]) + offset_, static_cast<std::size_t>(l.sizes[0]));
  }

 private:
  std::int64_t offset_;
  Dim bytes_;
};

}  // namespace

std::shared_ptr<Kernel> part_kernel(std::int64_t offset, Dim bytes) {
  return std::make_shared<PartKernel>(offset, std::move(bytes));
}

}  // namespace lc
