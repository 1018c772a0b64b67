// A device's primary context, in which every call of the driver happens, and the handling of its errors.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "lightcone/backends/cuda/library.h"

namespace lc::backends::cuda {

// A device is lost if one of its kernels did something illegal or the driver gave the device up. From then on every
// call of the context fails, and the contents of its memory are gone. All objects of the context then throw the same
// Error at once, without a call of the driver; a device that is opened afterwards has a new context.
class Context {
 public:
  // Opens a device. All that open the same one share its context until it is lost.
  static std::shared_ptr<Context> open(std::shared_ptr<Driver> driver, int ordinal);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Driver& driver() const { return *driver_; }
  const api::Driver& api() const { return driver_->api(); }
  api::Device device() const { return device_; }
  int attribute(api::DeviceAttribute a) const;

  // Must be called before calls of the driver: makes the device current. Throws Error if it is lost.
  void enter() const;
  // Throws Error if the call failed; `doing` names it in the message: "copy".
  void check(api::Result r, std::string_view doing) const {
    if (r != api::Result::Success) fail(r, doing);
  }
  [[noreturn]] void fail(api::Result r, std::string_view doing) const;
  // Returns how much of the device's memory is free, and how much there is, as words for an Error.
  std::string memory_words() const;

  // For destructors: calls nothing on a device that is lost, and ignores failures.
  template <class Call>
  void quietly(const Call& call) const noexcept {
    if (!is_lost() && !note(api().set_current(context_))) note(call(api()));
  }
  bool is_lost() const { return lost_; }

 private:
  Context(std::shared_ptr<Driver> driver, int ordinal, Driver::Primary& primary);
  // Records a result; returns true if nothing works after it.
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
