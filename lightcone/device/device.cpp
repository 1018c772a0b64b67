#include "lightcone/device/device.h"

#include "lightcone/base/error.h"

namespace lc {
namespace {

class OneByOne final : public Recording {
 public:
  OneByOne(Device& device, std::span<const Launch> launches) : device_(device), launches_(launches) {}
  void run(std::size_t first, std::size_t last) override {
    for (std::size_t k = first; k < last; ++k) device_.launch(launches_[k]);
  }

 private:
  Device& device_;
  std::span<const Launch> launches_;
};

}  // namespace

std::unique_ptr<Buffer> Device::reserve(std::size_t bytes) {
  try {
    return allocate(bytes);
  } catch (const Error&) {
    return nullptr;
  }
}

std::unique_ptr<Recording> Device::record(std::span<const Launch> launches) {
  return std::make_unique<OneByOne>(*this, launches);
}

HostView::HostView(Device& device, BufferSlice at, std::size_t bytes) : data_(at.host()) {
  if (data_) {
    device.synchronise();
  } else {
    copy_.resize(bytes);
    if (bytes) device.copy_out(copy_.data(), at, bytes);
    data_ = copy_.data();
  }
}

}  // namespace lc
