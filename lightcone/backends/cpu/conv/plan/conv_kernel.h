// ConvKernel: what all kernels of convolutions have in common.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lightcone/backends/cpu/loops/epilogue.h"
#include "lightcone/device/host_kernel.h"

namespace lc::backends::cpu {

// A kernel keeps its sizes in a struct: of T = Dim when it is made, and of T = std::int64_t in a run. each() visits all
// of them in one order, so no size has a position that two functions must agree on.

// Sizes of a kernel that knows all of them when it is made, except where the image begins and how many images it has.
template <class T>
struct BatchSizes {
  T image_offset = 0, images = 0;
  template <class F>
  void each(const F& f) {
    f(image_offset), f(images);
  }
};

// Sizes of an outer axis: a batch or groups.
template <class T>
struct AxisSizes {
  T extent = 0, image = 0, weight = 0, out = 0;  // strides in elements
  template <class F>
  void each(const F& f) {
    f(extent), f(image), f(weight), f(out);
  }
};

// Reads numbers into a struct of sizes.
template <class Sizes>
void read_sizes(const std::int64_t* numbers, Sizes& to) {
  to.each([&](std::int64_t& v) { v = *numbers++; });
}

class ConvKernel : public HostKernel {
 public:
  std::string name() const final { return epilogue_ ? name_ + "+" + epilogue_->loop()->name() : name_; }
  std::vector<Dim> sizes() const final { return sizes_; }
  Dim flops() const final { return flops_; }
  Dim scratch_bytes(int workers) const override { return shared_bytes_ + workers * worker_bytes_; }
  std::string source() const final { return epilogue_ ? epilogue_->loop()->source() : std::string(); }

 protected:
  // `epilogue` may be null.
  template <class Sizes>
  ConvKernel(Sizes sizes, std::shared_ptr<const Epilogue> epilogue) : epilogue_(std::move(epilogue)) {
    sizes.each([&](const Dim& d) { sizes_.push_back(d); });
    own_sizes_ = sizes_.size();
    if (epilogue_)
      for (const Dim& d : epilogue_->sizes()) sizes_.push_back(d);
  }
  // Sets what the kernel says of itself: its name without the epilogue's, and the operations of a run.
  void set_figures(std::string name, Dim flops) { name_ = std::move(name), flops_ = std::move(flops); }
  // Sets the scratch memory, in bytes: shared by all workers, and of each worker.
  void set_scratch(std::int64_t shared, std::int64_t worker) { shared_bytes_ = shared, worker_bytes_ = worker; }

  const Epilogue* epilogue() const { return epilogue_.get(); }
  const std::int64_t* epilogue_sizes(const HostLaunch& l) const { return l.sizes.data() + own_sizes_; }

 private:
  std::shared_ptr<const Epilogue> epilogue_;
  std::string name_;
  std::vector<Dim> sizes_;
  std::size_t own_sizes_ = 0;  // the epilogue's sizes follow
  Dim flops_ = 0;
  std::int64_t shared_bytes_ = 0, worker_bytes_ = 0;
};

}  // namespace lc::backends::cpu
