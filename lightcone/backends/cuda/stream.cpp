#include "lightcone/backends/cuda/stream.h"

namespace lc::backends::cuda {
namespace {

constexpr std::size_t kPace = 256;

}  // namespace

Stream::Stream(std::shared_ptr<Context> context) : context_(std::move(context)) {
  context_->enter();
  context_->check(context_->api().create_stream(&stream_, api::StreamFlags::NonBlocking), "make a stream");
}
Stream::~Stream() {
  context_->quietly([&](const api::Driver& a) { return a.destroy_stream(stream_); });
}

void Stream::wait() {
  context_->wait("finish what it was asked for", [&](const api::Driver& a) { return a.synchronise_stream(stream_); });
}
void Stream::wait_quietly() const noexcept {
  context_->quietly([&](const api::Driver& a) { return a.synchronise_stream(stream_); });
}

// Keeps the host at most 2 * kPace commands ahead of the device. The queue of a driver holds about a thousand; who adds
// one more waits inside of the driver, or of a library that called it, where nobody can end the wait.
void Stream::keep_pace() {
  if (++commands_ % kPace) return;
  std::unique_ptr<Event>& mark = marks_[commands_ / kPace % marks_.size()];
  if (mark) mark->wait();
  else mark = std::make_unique<Event>(*context_);
  context_->check(context_->api().record_event(mark->get(), stream_), "mark a point in a stream");
}

Event::Event(const Context& context) : context_(context) {
  context_.enter();
  context_.check(context_.api().create_event(&event_, api::EventFlags::DisableTiming), "make an event");
}
Event::~Event() {
  context_.quietly([&](const api::Driver& a) { return a.destroy_event(event_); });
}
void Event::wait() const {
  context_.wait("finish what it was asked for", [&](const api::Driver& a) { return a.synchronise_event(event_); });
}

}  // namespace lc::backends::cuda
