#include "lightcone/backends/cuda/stream.h"

namespace lc::backends::cuda {

Stream::Stream(std::shared_ptr<Context> context) : context_(std::move(context)) {
  context_->enter();
  context_->check(context_->api().create_stream(&stream_, api::StreamFlags::NonBlocking), "make a stream");
}
Stream::~Stream() {
  context_->quietly([&](const api::Driver& a) { return a.destroy_stream(stream_); });
}

void Stream::wait() {
  context_->enter();
  context_->check(context_->api().synchronise_stream(stream_), "finish what it was asked for");
}
void Stream::wait_quietly() const noexcept {
  context_->quietly([&](const api::Driver& a) { return a.synchronise_stream(stream_); });
}

Event::Event(const Context& context) : context_(context) {
  context_.enter();
  context_.check(context_.api().create_event(&event_, api::EventFlags::DisableTiming), "make an event");
}
Event::~Event() {
  context_.quietly([&](const api::Driver& a) { return a.destroy_event(event_); });
}
void Event::wait() const {
  context_.enter();
  context_.check(context_.api().synchronise_event(event_), "finish what it was asked for");
}

}  // namespace lc::backends::cuda
