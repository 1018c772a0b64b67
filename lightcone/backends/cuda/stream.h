// The ordered stream of a device: commands run asynchronously, in the order in which they are enqueued.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>

#include "lightcone/backends/cuda/context.h"

namespace lc::backends::cuda {

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
    const Context::Blocking here(*context_);
    if (context_->is_watched()) keep_pace();
    context_->check(call(context_->api(), stream_), doing);
  }
  // Waits until all enqueued commands are done.
  void wait();
  void wait_quietly() const noexcept;

 private:
  void keep_pace();

  std::shared_ptr<Context> context_;
  api::Stream* stream_ = nullptr;
  std::mutex mutex_;          // guards the fields below
  std::size_t commands_ = 0;  // while the context is watched
  std::array<std::unique_ptr<Event>, 2> marks_;
};

// A library's call (gpu::LibraryCall) as work of a stream: CUDA's calls are both.
inline constexpr std::size_t kMostCallWords = 8;
class StreamCall {
 public:
  // Enqueues the call in a stream of `context`, which was entered. The stream may record a graph instead of running.
  // `words` are the addresses of the buffers and then the sizes. Throws Error if the library fails.
  virtual void enqueue(const Context& context, api::Stream* stream, std::span<const std::uint64_t> words) const = 0;

 protected:
  ~StreamCall() = default;
};

}  // namespace lc::backends::cuda
