// The ordered stream of a device: commands run asynchronously, in the order in which they are enqueued.
#pragma once

#include <memory>
#include <mutex>
#include <string_view>

#include "lightcone/backends/cuda/context.h"

namespace lc::backends::cuda {

class Stream {
 public:
  explicit Stream(std::shared_ptr<Context> context);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  const Context& context() const { return *context_; }
  const std::shared_ptr<Context>& shared_context() const { return context_; }
  api::Stream* get() const { return stream_; }

  // Calls call(api, stream), one call of the driver that enqueues a command. It may be called from any thread.
  template <class Call>
  void ask(std::string_view doing, const Call& call) {
    context_->enter();
    const std::lock_guard lock(mutex_);
    context_->check(call(context_->api(), stream_), doing);
  }
  // Waits until all enqueued commands are done.
  void wait();
  void wait_quietly() const noexcept;

 private:
  std::shared_ptr<Context> context_;
  api::Stream* stream_ = nullptr;
  std::mutex mutex_;
};

// A point in a stream that the host can wait for.
class Event {
 public:
  explicit Event(const Context& context);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  api::Event* get() const { return event_; }
  void wait() const;

 private:
  const Context& context_;
  api::Event* event_ = nullptr;
};

}  // namespace lc::backends::cuda
