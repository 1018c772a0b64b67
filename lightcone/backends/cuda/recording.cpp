#include "lightcone/backends/cuda/recording.h"

#include <algorithm>

#include "lightcone/base/error.h"

namespace lc::backends::cuda {
namespace {

// Captures the commands that are enqueued in a stream while this object lives as a graph.
class Capture {
 public:
  Capture(const Stream& stream) : context_(stream.context()), stream_(stream.get()) {
    context_.enter();
    context_.check(context_.api().begin_capture(stream_, api::CaptureMode::Relaxed), "begin a graph");
  }
  ~Capture() {
    if (!stream_) return;  // end() was called
    context_.quietly([&](const api::Driver& a) {
      api::Graph* half = nullptr;
      const api::Result r = a.end_capture(stream_, &half);
      return half ? a.destroy_graph(half) : r;
    });
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // Returns the node of the latest command.
  api::GraphNode* last() const {
    api::CaptureStatus status{};
    std::uint64_t id = 0;
    api::Graph* graph = nullptr;
    api::GraphNode* const* nodes = nullptr;
    std::size_t count = 0;
    context_.check(context_.api().capture_info(stream_, &status, &id, &graph, &nodes, &count), "look into a graph");
    if (status != api::CaptureStatus::Active || count != 1)
      throw Error("cuda", str_cat("a graph ends in ", count, " nodes after one launch"));
    return nodes[0];
  }
  api::Graph* end() {
    api::Graph* graph = nullptr;
    const api::Result r = context_.api().end_capture(stream_, &graph);
    stream_ = nullptr;
    context_.check(r, "end a graph");
    return graph;
  }

 private:
  const Context& context_;
  api::Stream* stream_;
};

}  // namespace

GraphRecording::GraphRecording(CudaDevice& device, std::span<const Launch> launches)
    : device_(device), stream_(device.stream()), launches_(launches), alone_(launches.size()) {
  for (std::size_t k = 0; k < launches.size(); ++k) {
    if (launches[k].kernel->part()) continue;
    const auto* kernel = dynamic_cast<const gpu::GpuKernel*>(launches[k].kernel);
    if (!kernel)
      throw Error("device", str_cat("the kernel '", launches[k].kernel->name(), "' is not for ", device.name()));
    alone_[k] = !kernel->records();
  }
}
GraphRecording::~GraphRecording() { drop(); }

void GraphRecording::each(std::size_t first, std::size_t last) {
  for (std::size_t k = first; k < last; ++k) device_.launch(launches_[k]);
}

// The first whole run goes launch by launch, because there may be no second one. The second run makes the graphs.
void GraphRecording::run(std::size_t first, std::size_t last) {
  if (first != 0 || last != launches_.size() || !ran_) {
    each(first, last);
    ran_ = ran_ || (first == 0 && last == launches_.size());
    return;
  }
  try {
    if (!captured_) {
      capture();
    } else if (stale_) {
      if (!trace_all(next_) || !follow(next_)) {  // the steps changed, and may change again the next time
        drop();
        each(first, last);
        return;
      }
    }
    stale_ = false;
    replay();
  } catch (...) {
    drop();
    throw;
  }
}

// Returns false if a launch that was in a graph cannot be in one any more.
bool GraphRecording::trace_all(Trace& to) {
  to.clear();
  bool as_before = true;
  for (std::size_t k = 0; k < launches_.size(); ++k) {
    if (alone_[k]) {
      to.ends.push_back(to.steps.size());
    } else if (!trace(launches_[k], device_, to)) {
      alone_[k] = true;
      as_before = false;
    }
  }
  return as_before;
}

void GraphRecording::capture() {
  drop();
  trace_all(now_);
  next_.steps.reserve(now_.steps.size()), next_.values.reserve(now_.values.size()),
      next_.ends.reserve(now_.ends.size());
  for (std::size_t k = 0; k < launches_.size();) {
    Segment s{k, k + 1, alone_[k], nullptr, nullptr, {}};
    while (!s.alone && s.last < launches_.size() && !alone_[s.last]) ++s.last;
    k = s.last;
    segments_.push_back(std::move(s));
    if (!segments_.back().alone) capture(segments_.back());
  }
  captured_ = true;
}

// Captures in a stream of its own, so that other threads may go on using the device's stream.
void GraphRecording::capture(Segment& s) {
  const Context& c = stream_->context();
  const std::size_t begin = now_.begin_of(s.first), end = now_.ends[s.last - 1];
  if (begin == end) return;
  const Stream aside(stream_->shared_context());
  Capture graph(aside);
  for (std::size_t k = begin; k < end; ++k) {
    const Trace::Step& step = now_.steps[k];
    c.check(enqueue(c, aside.get(), now_, step), "put a launch into a graph");
    s.nodes.push_back(step.kind == Trace::Kind::Launch ? graph.last() : nullptr);
  }
  s.graph = graph.end();
  c.check(c.api().instantiate_graph(&s.exec, s.graph, 0), "make a graph");
}

// Writes what has changed into the graphs. Returns false if they cannot represent the new steps.
bool GraphRecording::follow(const Trace& next) {
  if (!same_steps(next)) return false;
  stream_->context().enter();
  for (Segment& s : segments_)
    if (s.exec) set_nodes(s, next);
  std::swap(now_, next_);
  return true;
}

bool GraphRecording::same_steps(const Trace& next) const {
  if (next.ends != now_.ends) return false;
  for (std::size_t k = 0; k < next.steps.size(); ++k) {
    const Trace::Step &a = now_.steps[k], &b = next.steps[k];
    if (a.kind != b.kind || a.work != b.work) return false;
    if (a.kind != Trace::Kind::Launch && !std::ranges::equal(a.in(now_), b.in(next))) return false;
  }
  return true;
}

void GraphRecording::set_nodes(Segment& s, const Trace& next) {
  const std::size_t begin = now_.begin_of(s.first);
  for (std::size_t k = 0; k < s.nodes.size(); ++k) {
    const Trace::Step &a = now_.steps[begin + k], &b = next.steps[begin + k];
    if (!s.nodes[k] || (a.call == b.call && std::ranges::equal(a.in(now_), b.in(next)))) continue;
    Pointers arguments(b.in(next), b.call.maps);
    api::KernelNodeParams p;
    p.function = b.call.function;
    p.grid[0] = b.call.groups, p.block[0] = b.call.threads, p.shared_bytes = b.call.shared;
    p.arguments = arguments.data();
    stream_->context().check(stream_->context().api().set_kernel_node(s.exec, s.nodes[k], &p), "change a graph");
  }
}

void GraphRecording::replay() {
  for (const Segment& s : segments_) {
    if (s.alone) each(s.first, s.last);
    else if (s.exec)
      stream_->ask("start a graph", [&](const api::Driver& a, api::Stream* to) { return a.launch_graph(s.exec, to); });
  }
}

void GraphRecording::drop() noexcept {
  if (!segments_.empty()) stream_->wait_quietly();
  const Context& c = stream_->context();
  for (const Segment& s : segments_) {
    if (s.exec) c.quietly([&](const api::Driver& a) { return a.destroy_graph_exec(s.exec); });
    if (s.graph) c.quietly([&](const api::Driver& a) { return a.destroy_graph(s.graph); });
  }
  segments_.clear();
  captured_ = false;
}

}  // namespace lc::backends::cuda
