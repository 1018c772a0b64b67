// Runs the work of streams, at once or when something waits for it.
#include "driver/work.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "driver/driver.h"
#include "scheduler/scheduler.h"

namespace lc::simulators::cuda {

template <class Source>
void Arguments::copy(const LcKernel& kernel, Source source) {
  std::size_t bytes = 0;
  std::vector<std::size_t> places;
  for (unsigned i = 0; i < kernel.arguments; ++i) {
    const std::size_t alignment = kernel.alignments[i];
    places.push_back(bytes = (bytes + alignment - 1) / alignment * alignment);
    bytes += kernel.sizes[i];
  }
  chunks_.resize(bytes / sizeof(Chunk) + 1);
  for (unsigned i = 0; i < kernel.arguments; ++i) {
    pointers_.push_back(chunks_[0].bytes + places[i]);
    std::memcpy(pointers_.back(), source(i, places[i]), kernel.sizes[i]);
  }
}

Arguments::Arguments(const LcKernel& kernel, void* const* values) {
  copy(kernel, [&](unsigned i, std::size_t) { return values[i]; });
}

Arguments::Arguments(const LcKernel& kernel, const char* packed) {
  copy(kernel, [&](unsigned, std::size_t place) { return packed + place; });
}

std::shared_ptr<Stream> Driver::stream(void* handle) const {
  return handle == nullptr || handle == reinterpret_cast<void*>(1) ? default_stream : streams.shared(handle);
}

// Appends a mark to the pending work of the stream.
std::shared_ptr<Mark> Driver::end_of(Stream& s) {
  auto mark = std::make_shared<Mark>();
  mark->stream = s.weak_from_this();
  s.pending.push_back(mark);
  return mark;
}

// Work of the default stream begins after that of all blocking streams, and their work after the default stream's.
void Driver::wait_for_others(Stream& s) {
  if (&s == default_stream.get()) {
    for (const auto& [handle, other] : streams)
      if (other->blocking && !other->pending.empty()) s.pending.push_back(Await{end_of(*other)});
  } else if (s.blocking && !default_stream->pending.empty()) {
    s.pending.push_back(Await{end_of(*default_stream)});
  }
}

Code Driver::submit(Stream& s, Operation operation) {
  if (s.capture != nullptr) return capture(s, operation);
  if (&s == default_stream.get())
    for (const auto& [handle, other] : streams)
      if (other->blocking && other->capture != nullptr) return other->capture->broken = true, kStreamCaptureImplicit;
  wait_for_others(s);
  s.pending.push_back(std::move(operation));
  while (settings().deferred == 0 && !s.pending.empty() && run_one(s)) {
  }
  return kSuccess;
}

Code Driver::capture(Stream& s, Operation& operation) {
  if (s.capture->broken) return kStreamCaptureInvalidated;
  if (auto* node = std::get_if<Node>(&operation)) s.capture->nodes.push_back(std::move(*node));
  else if (auto* replay = std::get_if<Replay>(&operation))
    s.capture->nodes.insert(s.capture->nodes.end(), replay->nodes->begin(), replay->nodes->end());
  while (s.capture->handles.size() < s.capture->nodes.size()) s.capture->handles.push_back(std::make_unique<char>());
  ++s.captured;
  if (&s != s.capture->origin) s.capture->unjoined.insert(&s);
  return kSuccess;
}

Code Driver::forbid_in_capture() {
  for (const auto& [handle, s] : streams)
    if (s->capture != nullptr && s->capture->mode != 2) return s->capture->broken = true, kStreamCaptureUnsupported;
  return kSuccess;
}

bool Driver::run_one(Stream& s) {
  Operation& next = s.pending.front();
  if (const auto* await = std::get_if<Await>(&next)) {
    if (!try_until(await->mark)) return false;
  } else if (const auto* mark = std::get_if<std::shared_ptr<Mark>>(&next)) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    (*mark)->milliseconds = std::chrono::duration<double, std::milli>(now).count();
    (*mark)->reached = true;
  } else if (const auto* replay = std::get_if<Replay>(&next)) {
    const auto nodes = replay->nodes;
    s.pending.pop_front();
    s.pending.insert(s.pending.begin(), nodes->begin(), nodes->end());
    return true;
  } else {
    if (!is_ready(std::get<Node>(next))) return false;
    const Node node = std::move(std::get<Node>(next));
    s.pending.pop_front();
    execute(node);
    return true;
  }
  s.pending.pop_front();
  return true;
}

bool Driver::try_until(const std::shared_ptr<Mark>& mark) {
  const std::shared_ptr<Stream> s = mark->stream.lock();
  while (s != nullptr && !mark->reached && !s->pending.empty())
    if (!run_one(*s)) return false;
  return true;
}

// Lets other threads call the driver. What they do to a stream is seen by whoever waits for it.
void Driver::pause() {
  mutex.unlock();
  std::this_thread::sleep_for(std::chrono::microseconds(50));
  mutex.lock();
}

void Driver::run_until(const std::shared_ptr<Mark>& mark) {
  while (!try_until(mark)) pause();
}

void Driver::drain(Stream& s) {
  const std::shared_ptr<Stream> stays = s.shared_from_this();
  while (!s.pending.empty())
    if (!run_one(s)) pause();
}

void Driver::drain_all() {
  std::vector<std::shared_ptr<Stream>> all{default_stream};
  for (const auto& [handle, s] : streams) all.push_back(s);
  for (const auto& s : all) drain(*s);
}

void Driver::execute(const Node& node) {
  if (fault != kSuccess) return;
  std::visit([this](const auto& work) { run(work); }, node);
}

void Driver::run(const Launch& launch) {
  Settings& s = settings();
  const long number = ++s.launches, lost = s.lost_at;
  s.overlapping += launch.overlaps;
  if (lost != 0 && number >= lost) return set_fault(kLaunchFailed, "the device is lost");
  fibers::Grid grid{launch.grid, launch.block, launch.dynamic_shared, s.order, launch.overlaps};
  const fibers::Outcome outcome = fibers::run_grid(launch.function->library->module(), *launch.function->kernel,
                                                   launch.arguments->pointers(), grid);
  if (outcome.fault == fibers::Fault::kNone) return;
  set_fault(outcome.fault == fibers::Fault::kAddress      ? kIllegalAddress
            : outcome.fault == fibers::Fault::kMisaligned ? kMisalignedAddress
                                                          : kLaunchFailed,
            outcome.words);
}

// Checks the memory again, because it may have been freed since the call.
void Driver::run(const Copy& copy) {
  if ((copy.to_device && !on_device(address(copy.to), copy.bytes)) ||
      (copy.from_device && !on_device(address(copy.from), copy.bytes)))
    return set_fault(kIllegalAddress, "a copy ran when its memory was no longer allocated");
  std::memmove(copy.to, copy.taken != nullptr ? copy.taken->data() : copy.from, copy.bytes);
}

void Driver::run(const Fill& fill) {
  if (!on_device(fill.to, fill.bytes))
    return set_fault(kIllegalAddress, "a fill ran when its memory was no longer allocated");
  std::memset(pointer(fill.to), fill.value, fill.bytes);
}

}  // namespace lc::simulators::cuda
