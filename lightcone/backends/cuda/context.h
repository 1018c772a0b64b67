// A device's primary context: what every call of the driver happens in, and what becomes of its errors.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "lightcone/backends/cuda/library.h"

namespace lc::backends::cuda {

// A device is lost when one of its kernels did what it must not, or when the driver gave it up: from then on each of
// its calls fails, and all that lay in its memory is gone. Everything that was opened on it gives the same Error at
// once, without asking the driver; what is opened afterwards begins anew.
class Context {
 public:
  // Those who open one device share its context, until it is lost.
  static std::shared_ptr<Context> open(std::shared_ptr<Driver> driver, int ordinal);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Driver& driver() const { return *driver_; }
  const api::Driver& api() const { return driver_->api(); }
  api::Device device() const { return device_; }
  int attribute(api::DeviceAttribute a) const;

  // Before calls of the driver: they are about this device. An Error when it is lost.
  void enter() const;
  // What a call gave: an Error when that is one, behind `doing`: "copy".
  void check(api::Result r, std::string_view doing) const {
    if (r != api::Result::Success) fail(r, doing);
  }
  [[noreturn]] void fail(api::Result r, std::string_view doing) const;
  // The device's memory that is free, and all of it, as words for an Error.
  std::string memory_words() const;

  // For destructors: nothing is called on a device that is lost, and what goes wrong stays unsaid.
  template <class Call>
  void quietly(const Call& call) const noexcept {
    if (!is_lost() && !note(api().set_current(context_))) note(call(api()));
  }
  bool is_lost() const { return lost_; }

 private:
  Context(std::shared_ptr<Driver> driver, int ordinal, Driver::Primary& primary);
  // True when after this result nothing works any more.
  bool note(api::Result r) const noexcept;
  [[noreturn]] void refuse() const;

  std::shared_ptr<Driver> driver_;
  int ordinal_;
  api::Device device_ = 0;
  api::Context* context_ = nullptr;
  Driver::Primary& primary_;
  mutable std::atomic<bool> lost_ = false;
  mutable std::atomic<api::Result> reason_ = api::Result::Success;
};

}  // namespace lc::backends::cuda
