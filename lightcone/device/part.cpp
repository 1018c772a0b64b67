#include <cstring>

#include "lightcone/device/host_kernel.h"
#include "lightcone/device/kernel_rule.h"

namespace lc {
namespace {

class PartKernel final : public HostKernel {
 public:
  PartKernel(Dim offset, Dim bytes) : offset_(std::move(offset)), bytes_(std::move(bytes)) {}
  std::string name() const override { return "part"; }
  std::vector<Dim> sizes() const override { return {bytes_, offset_}; }
  std::optional<Dim> part() const override { return offset_; }
  void run(const HostLaunch& l) const override {
    std::memcpy(l.out, static_cast<const std::byte*>(l.in[0]) + l.sizes[1], static_cast<std::size_t>(l.sizes[0]));
  }

 private:
  Dim offset_, bytes_;
};

}  // namespace

std::shared_ptr<Kernel> part_kernel(Dim offset, Dim bytes) {
  return std::make_shared<PartKernel>(std::move(offset), std::move(bytes));
}

}  // namespace lc
