#include "lightcone/backends/cuda/context.h"

#include <new>

#include "lightcone/base/error.h"

namespace lc::backends::cuda {
namespace {

// Results after which the context is of no use, as the driver's documentation says of each, or after which the driver
// is gone.
bool ends_a_context(api::Result r) {
  using api::Result;
  switch (r) {
    case Result::Deinitialized:
    case Result::DevicesUnavailable:
    case Result::EccUncorrectable:
    case Result::IllegalAddress:
    case Result::LaunchTimeout:
    case Result::HardwareStackError:
    case Result::IllegalInstruction:
    case Result::MisalignedAddress:
    case Result::InvalidAddressSpace:
    case Result::InvalidPc:
    case Result::LaunchFailed:
    case Result::Unknown: return true;
    default: return false;
  }
}

}  // namespace

std::shared_ptr<Context> Context::open(std::shared_ptr<Driver> driver, int ordinal) {
  driver->initialise();
  int count = 0;
  if (const api::Result r = driver->api().device_count(&count); r != api::Result::Success)
    throw Error("cuda", str_cat("the CUDA driver does not count its devices: ", driver->words(r)));
  if (ordinal < 0 || ordinal >= count)
    throw Error("cuda", str_cat("there is no CUDA device ", ordinal, ": this machine has ", count, ", counted from 0",
                                count ? "" : "; see whether nvidia-smi lists any and what CUDA_VISIBLE_DEVICES hides"));
  std::shared_ptr<Context> before;  // it may be destroyed at the end, after the lock is released
  const std::lock_guard lock(driver->mutex);
  Driver::Primary& primary = driver->primaries[ordinal];
  before = primary.context.lock();
  if (before && !primary.lost && !before->interrupted_) return before;
  std::shared_ptr<Context> fresh(new Context(driver, ordinal, primary));
  primary.context = fresh;
  return fresh;
}

// Requires the driver's lock.
Context::Context(std::shared_ptr<Driver> driver, int ordinal, Driver::Primary& primary)
    : driver_(std::move(driver)), ordinal_(ordinal), primary_(primary) {
  const auto must = [&](api::Result r) {
    if (r == api::Result::Success) return;
    const char* const advice =
        ends_a_context(r) ? "a device that was lost is not given back to the same process: start the process anew"
                          : "see whether another process has it for itself, and whether it has memory left";
    throw Error("cuda", str_cat("the CUDA device ", ordinal_, " cannot be opened: ", driver_->words(r), "; ", advice));
  };
  must(api().device(&device_, ordinal));
  if (primary.lost) {
    must(api().reset_context(device_));
    primary.lost = false;
  }
  must(api().retain_context(&context_, device_));
}

// Releases a retained context, even if it was reset in between.
Context::~Context() {
  if (reason_ != api::Result::Deinitialized) api().release_context(device_);
}

int Context::attribute(api::DeviceAttribute a) const {
  int value = 0;
  check(api().device_attribute(&value, a, device_), "be asked for its properties");
  return value;
}

void Context::enter() const {
  if (lost_ || interrupted_) refuse();
  check(api().set_current(context_), "be used by this thread");
}

bool Context::note(api::Result r) const noexcept {
  if (!ends_a_context(r)) return false;
  if (!lost_.exchange(true)) reason_ = r;
  if (r != api::Result::Deinitialized) primary_.lost = true;
  return true;
}

double Context::blocked_s() const {
  const Clock::rep since = blocked_since_;
  return blocked_ ? std::chrono::duration<double>(Clock::duration(now() - since)).count() : 0;
}

void Context::interrupt(const char* where, const std::string& why) const noexcept {
  const std::lock_guard lock(mutex_);
  if (interrupted_) return;
  try {
    where_ = where, why_ = why;
  } catch (const std::bad_alloc&) {  // the Error is without words
  }
  interrupted_ = true;
}

void Context::refuse() const {
  if (!lost_) {
    const std::lock_guard lock(mutex_);
    throw Error(where_, why_);
  }
  const api::Result r = reason_;
  if (r == api::Result::Deinitialized)
    throw Error("cuda", str_cat("the CUDA driver has shut down, as it does when a process ends: ",
                                "nothing can be run or ", "read any more"));
  throw Error(
      "cuda",
      str_cat("the CUDA device ", ordinal_, " was lost: ", driver_->words(r), "; all that lay in its memory ",
              "is gone. Start the process anew, and load what it had kept: a driver may refuse everything until ",
              "then. Where a kernel did this, ", "compute-sanitizer says which, and where"));
}

void Context::fail(api::Result r, std::string_view doing) const {
  if (note(r)) refuse();
  std::string advice;
  if (r == api::Result::OutOfMemory)
    advice = str_cat(" (", memory_words(), "); close other programs that use it, or take a smaller batch or model");
  throw Error("cuda", str_cat("the CUDA device ", ordinal_, " cannot ", doing, ": ", driver_->words(r), advice));
}

std::string Context::memory_words() const {
  std::size_t free = 0, total = 0;
  if (api().memory_info(&free, &total) != api::Result::Success) return "it does not say how much is free";
  return str_cat(free, " of its ", total, " bytes are free");
}

}  // namespace lc::backends::cuda
