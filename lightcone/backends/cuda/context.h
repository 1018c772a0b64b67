// A device's primary context, in which every call of the driver happens, and the handling of its errors.
#pragma once

#include <atomic>
#include <chrono>
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

  // Must be called before calls of the driver: makes the device current. Throws Error if it is lost or interrupted.
  void enter() const;
  // Throws Error if the call failed; `doing` names it in the message: "copy".
  void check(api::Result r, std::string_view doing) const {
    if (r != api::Result::Success) fail(r, doing);
  }
  [[noreturn]] void fail(api::Result r, std::string_view doing) const;
  // Returns how much of the device's memory is free, and how much there is, as words for an Error.
  std::string memory_words() const;

  // Calls call(api), which waits for the device. Throws Error if the wait was in vain.
  template <class Call>
  void wait(std::string_view doing, const Call& call) const {
    enter();
    {
      const Blocking here(*this);
      check(call(api()), doing);
    }
    if (interrupted_) refuse();
  }

  // For destructors: calls nothing on a device that is lost, and ignores failures.
  template <class Call>
  void quietly(const Call& call) const noexcept {
    const Blocking here(*this);
    if (!is_lost() && !note(api().set_current(context_))) note(call(api()));
  }
  bool is_lost() const { return lost_; }

  // ---- work that others take part in, such as collectives of several devices: without them it never ends. ----

  // Tells that this context has such work, and that someone looks at blocked_s() and ends the work if need be.
  void watch() const noexcept { watched_ = true; }
  bool is_watched() const { return watched_; }
  // Returns for how many seconds a thread has been waiting for the device; 0 if none is.
  double blocked_s() const;
  // Makes all waits, those under way included, and all later uses of this context throw Error(where, why). The device
  // is not lost: a context that is opened afterwards works, and what this one has is released as ever.
  void interrupt(const char* where, const std::string& why) const noexcept;

  // A thread's time in a call that may wait for the device.
  class Blocking {
   public:
    explicit Blocking(const Context& c) : context_(c.watched_ ? &c : nullptr) {
      if (context_ && context_->blocked_++ == 0) context_->blocked_since_ = now();
    }
    ~Blocking() {
      if (context_) --context_->blocked_;
    }
    Blocking(const Blocking&) = delete;
    Blocking& operator=(const Blocking&) = delete;

   private:
    const Context* context_;
  };

 private:
  using Clock = std::chrono::steady_clock;
  static Clock::rep now() { return Clock::now().time_since_epoch().count(); }
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
  mutable std::atomic<bool> watched_ = false, interrupted_ = false;
  mutable std::atomic<int> blocked_ = 0;               // threads that wait
  mutable std::atomic<Clock::rep> blocked_since_ = 0;  // since when at least one has been waiting
  mutable std::mutex mutex_;                           // guards the fields below
  mutable std::string where_, why_;                    // what interrupted it
};

}  // namespace lc::backends::cuda
