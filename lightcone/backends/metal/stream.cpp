#include "lightcone/backends/metal/stream.h"

#include "lightcone/base/error.h"

namespace lc::backends::metal {
namespace {

// A GPU starts on a command buffer when it is committed: with few commands in each it starts early; with many,
// committing costs little in comparison.
constexpr std::size_t kCommands = 64;
constexpr std::size_t kHeld = std::size_t{64} << 20;  // bytes held by one
constexpr std::size_t kInFlight = 8;                  // command buffers; a queue has 64

enum Status : unsigned long { Completed = 4, Failed = 5 };

}  // namespace

Stream::Stream(const Runtime& runtime, Id device)
    : runtime_(runtime),
      queue_(Ref::owned(runtime, runtime.send(device, "newCommandQueue"))),
      commit_(runtime.selector("commit")),
      status_(runtime.selector("status")),
      wait_(runtime.selector("waitUntilCompleted")) {
  if (!queue_) throw Error("metal", "the device gives no command queue: other programs may have taken all of them");
  in_flight_.reserve(kInFlight);
}

Stream::~Stream() {
  const Pool pool(runtime_);
  end_encoder();
  for (const Ref& c : in_flight_) runtime_.send<void>(c.get(), wait_);
  in_flight_.clear();
}

Id Stream::encoder(Kind kind) {
  if (kind == kind_) return encoder_.get();
  end_encoder();
  if (!command_) command_ = Ref::retained(runtime_, runtime_.send(queue_.get(), "commandBuffer"));
  if (!command_) throw Error("metal", "the device gives no command buffer: it has no memory for one");
  const char* make = kind == Kind::Compute ? "computeCommandEncoder" : "blitCommandEncoder";
  encoder_ = Ref::retained(runtime_, runtime_.send(command_.get(), make));
  if (!encoder_) throw Error("metal", "the device takes no commands: it has no memory for them");
  kind_ = kind;
  return encoder_.get();
}

void Stream::end_encoder() {
  if (encoder_) runtime_.send<void>(encoder_.get(), "endEncoding");
  encoder_.reset();
  kind_ = Kind::None;
}

void Stream::put(std::size_t held) {
  held_ += held;
  if (++commands_ >= kCommands || held_ >= kHeld) commit();
}

void Stream::commit() {
  end_encoder();
  if (!command_) return;
  if (in_flight_.size() == kInFlight) {
    runtime_.send<void>(in_flight_.front().get(), wait_);
    reap();
  }
  runtime_.send<void>(command_.get(), commit_);
  in_flight_.push_back(std::move(command_));  // capacity was reserved
  ++committed_;
  commands_ = held_ = 0;
}

void Stream::reap() {
  std::size_t n = 0;
  for (; n < in_flight_.size(); ++n) {
    const Id command = in_flight_[n].get();
    const auto status = runtime_.send<unsigned long>(command, status_);
    if (status < Completed) break;
    if (status == Failed && failed_.empty()) failed_ = what(runtime_, runtime_.send(command, "error"));
  }
  in_flight_.erase(in_flight_.begin(), in_flight_.begin() + static_cast<std::ptrdiff_t>(n));
}

void Stream::drain() {
  std::uint64_t last = 0;
  for (bool first = true;; first = false) {
    Ref oldest;  // other threads may see it done meanwhile
    {
      const Turn turn(*this);
      if (first) commit(), last = committed_;
      reap();
      if (finished() >= last) return;
      oldest = in_flight_.front();
    }
    const Pool pool(runtime_);
    runtime_.send<void>(oldest.get(), wait_);
  }
}

void Stream::wait() {
  drain();
  std::string why;
  {
    const std::lock_guard lock(mutex_);
    why.swap(failed_);
  }
  if (!why.empty())
    throw Error("metal",
                str_cat("a kernel that was started before failed: ", why,
                        "; what was computed since the last time that somebody waited is not to be relied on"));
}

}  // namespace lc::backends::metal
