// Streams, events and capture.
#include "driver/driver.h"

using namespace lc::simulators::cuda;

namespace lc::simulators::cuda {
namespace {

constexpr unsigned kNonBlocking = 1, kNoTiming = 2;

template <class Work>
int stream_call(unsigned rules, void* handle, Work work) {
  return driver_call(rules, [&](Driver& d) -> int {
    const std::shared_ptr<Stream> s = d.stream(handle);
    return s == nullptr ? kInvalidHandle : work(d, *s);
  });
}

template <class Work>
int event_call(unsigned rules, const void* handle, Work work) {
  return driver_call(rules, [&](Driver& d) -> int {
    Event* const e = d.events.find(handle);
    return e == nullptr ? kInvalidHandle : work(d, *e);
  });
}

bool captured(const Event& e) { return e.capture.lock() != nullptr; }

// Marks the capture as broken after a call that it does not allow.
Code break_capture(Stream& s, Code code) {
  s.capture->broken = true;
  return code;
}

// A stream that waits for an event of a capture joins that capture. The stream that recorded the event is joined to it.
Code wait_in_capture(Stream& s, Event& e) {
  const std::shared_ptr<Capture> c = e.capture.lock();
  if (c == nullptr) return e.mark == nullptr ? kSuccess : break_capture(s, kStreamCaptureIsolation);
  if (s.capture != nullptr && s.capture != c) return break_capture(s, kStreamCaptureMerge);
  if (s.capture == nullptr) {
    s.capture = c;
    s.captured = 0;
    c->streams.insert(&s);
    c->unjoined.insert(&s);
  }
  if (e.captured_in != &s && e.captured_in->captured == e.captured_at) c->unjoined.erase(e.captured_in);
  return kSuccess;
}

void leave_capture(Driver& d, Stream& s) {
  const std::shared_ptr<Capture> c = s.capture;
  for (const auto& [handle, other] : d.streams)
    if (other->capture == c) other->capture = nullptr;
}

// Each query runs one pending operation, if it waits for no other device, so that polling sees the work end.
Code query(Driver& d, Stream& s, bool done) {
  if (done) return d.fault;
  if (!s.pending.empty()) d.run_one(s);
  return d.fault != kSuccess ? d.fault : kNotReady;
}

double elapsed(const Event& start, const Event& end) { return end.mark->milliseconds - start.mark->milliseconds; }

}  // namespace
}  // namespace lc::simulators::cuda

FAKE_CUDA_API int cuStreamCreate(void** out, unsigned flags) {
  return driver_call(kCurrentContext, [&](Driver& d) {
    if (out == nullptr || flags > kNonBlocking) return kInvalidValue;
    auto s = std::make_shared<Stream>();
    s->blocking = (flags & kNonBlocking) == 0;
    *out = d.streams.add(std::move(s));
    return kSuccess;
  });
}

// Pending work of the stream is finished first.
FAKE_CUDA_API int cuStreamDestroy_v2(void* stream) {
  return driver_call(kCurrentContext | kReleases, [&](Driver& d) {
    const std::shared_ptr<Stream> s = d.streams.shared(stream);
    if (s == nullptr) return kInvalidHandle;
    if (s->capture != nullptr) leave_capture(d, *s);
    d.drain(*s);
    return d.streams.remove(stream);
  });
}

FAKE_CUDA_API int cuStreamSynchronize(void* stream) {
  return stream_call(kCurrentContext, stream, [&](Driver& d, Stream& s) {
    if (s.capture != nullptr) return break_capture(s, kStreamCaptureUnsupported);
    d.drain(s);
    return d.fault;
  });
}

FAKE_CUDA_API int cuStreamQuery(void* stream) {
  return stream_call(kCurrentContext, stream, [&](Driver& d, Stream& s) {
    if (s.capture != nullptr) return break_capture(s, kStreamCaptureUnsupported);
    return query(d, s, s.pending.empty());
  });
}

FAKE_CUDA_API int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  return stream_call(kCurrentContext, stream, [&](Driver& d, Stream& s) -> Code {
    Event* const e = d.events.find(event);
    if (e == nullptr) return kInvalidHandle;
    if (s.capture != nullptr || captured(*e)) return wait_in_capture(s, *e);
    if (e->mark == nullptr || e->mark->reached) return kSuccess;
    s.pending.push_back(Await{e->mark});
    return kSuccess;
  });
}

FAKE_CUDA_API int cuEventCreate(void** out, unsigned flags) {
  return driver_call(kCurrentContext, [&](Driver& d) {
    if (out == nullptr) return kInvalidValue;
    auto e = std::make_shared<Event>();
    e->timing = (flags & kNoTiming) == 0;
    *out = d.events.add(std::move(e));
    return kSuccess;
  });
}

FAKE_CUDA_API int cuEventDestroy_v2(void* event) {
  return driver_call(kCurrentContext | kReleases, [&](Driver& d) { return d.events.remove(event); });
}

FAKE_CUDA_API int cuEventRecord(void* event, void* stream) {
  return stream_call(kCurrentContext, stream, [&](Driver& d, Stream& s) -> Code {
    Event* const e = d.events.find(event);
    if (e == nullptr) return kInvalidHandle;
    e->capture = s.capture;
    e->captured_in = &s;
    e->captured_at = s.captured;
    e->mark = nullptr;
    if (s.capture != nullptr) return kSuccess;
    auto mark = std::make_shared<Mark>();
    mark->stream = s.weak_from_this();
    const Code code = d.submit(s, mark);
    if (code == kSuccess) e->mark = std::move(mark);
    return code;
  });
}

FAKE_CUDA_API int cuEventQuery(void* event) {
  return event_call(kCurrentContext, event, [&](Driver& d, Event& e) -> Code {
    if (captured(e)) return kCapturedEvent;
    if (e.mark == nullptr || e.mark->reached) return d.fault;
    const std::shared_ptr<Stream> s = e.mark->stream.lock();
    return s == nullptr ? d.fault : query(d, *s, false);
  });
}

FAKE_CUDA_API int cuEventSynchronize(void* event) {
  return event_call(kCurrentContext, event, [&](Driver& d, Event& e) -> Code {
    if (captured(e)) return kCapturedEvent;
    if (e.mark != nullptr) d.run_until(e.mark);
    return d.fault;
  });
}

FAKE_CUDA_API int cuEventElapsedTime(float* milliseconds, void* start, void* end) {
  return event_call(kCurrentContext, start, [&](Driver& d, Event& from) -> Code {
    Event* const to = d.events.find(end);
    if (to == nullptr || !from.timing || !to->timing) return kInvalidHandle;
    if (milliseconds == nullptr) return kInvalidValue;
    if (from.mark == nullptr || to->mark == nullptr) return kInvalidHandle;
    if (!from.mark->reached || !to->mark->reached) return kNotReady;
    *milliseconds = static_cast<float>(elapsed(from, *to));
    return kSuccess;
  });
}

FAKE_CUDA_API int cuEventElapsedTime_v2(float* milliseconds, void* start, void* end) {
  return cuEventElapsedTime(milliseconds, start, end);
}

FAKE_CUDA_API int cuStreamBeginCapture_v2(void* stream, int mode) {
  return stream_call(kCurrentContext, stream, [&](Driver& d, Stream& s) -> Code {
    if (mode < 0 || mode > 2) return kInvalidValue;
    if (&s == d.default_stream.get()) return kStreamCaptureUnsupported;
    if (s.capture != nullptr) return kInvalidValue;
    s.capture = std::make_shared<Capture>();
    s.capture->origin = &s;
    s.capture->mode = mode;
    s.captured = 0;
    return kSuccess;
  });
}

// The capture ends in every case, even if this returns an error.
FAKE_CUDA_API int cuStreamEndCapture(void* stream, void** graph) {
  return stream_call(kCurrentContext | kReleases, stream, [&](Driver& d, Stream& s) -> Code {
    if (graph == nullptr) return kInvalidValue;
    if (s.capture == nullptr) return kInvalidValue;
    if (s.capture->origin != &s) return break_capture(s, kStreamCaptureUnmatched);
    const std::shared_ptr<Capture> c = s.capture;
    leave_capture(d, s);
    *graph = nullptr;
    if (c->broken || d.refused != kSuccess) return kStreamCaptureInvalidated;
    if (!c->unjoined.empty()) return kStreamCaptureUnjoined;
    *graph = d.graphs.add(std::make_shared<Graph>(Graph{std::move(c->nodes), std::move(c->handles)}));
    return kSuccess;
  });
}

// Nodes run in the order of their capture, so each depends on the previous one.
FAKE_CUDA_API int cuStreamGetCaptureInfo_v2(void* stream, int* status, std::uint64_t* id, void** graph,
                                            const void* const** last, std::size_t* count) {
  return stream_call(kCurrentContext, stream, [&](Driver&, Stream& s) {
    if (status == nullptr) return kInvalidValue;
    *status = s.capture == nullptr ? 0 : s.capture->broken ? 2 : 1;
    if (*status != 1) return kSuccess;
    const bool any = !s.capture->handles.empty();
    if (any) s.capture->last = s.capture->handles.back().get();
    if (id != nullptr) *id = 1;
    if (graph != nullptr) *graph = nullptr;
    if (last != nullptr) *last = any ? &s.capture->last : nullptr;
    if (count != nullptr) *count = any ? 1 : 0;
    return kSuccess;
  });
}

FAKE_CUDA_API int cuStreamIsCapturing(void* stream, int* status) {
  return stream_call(kCurrentContext, stream, [&](Driver&, Stream& s) {
    if (status == nullptr) return kInvalidValue;
    *status = s.capture == nullptr ? 0 : s.capture->broken ? 2 : 1;
    return kSuccess;
  });
}
