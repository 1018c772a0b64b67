#include "lightcone/runtime/profile/profiler.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "lightcone/core/graph_impl.h"

namespace lc {
namespace {

constexpr std::size_t kEvents = 1 << 16;

Dim whole(const Node& n) { return product(n.shape) * Dim(static_cast<std::int64_t>(size_of(n.dtype))); }

bool same_place(const Placement& a, const Placement& b) {
  if (a.where != b.where) return false;
  return a.where == Placement::Where::Arena ? a.offset == b.offset : a.input == b.input;
}

std::string call_list(const Origin& o) {
  std::vector<std::pair<std::string_view, std::string>> calls;
  for (const Origin::Step& s : o.steps) {
    const std::string_view call = *s.where.op ? std::string_view(s.where.op) : s.op;
    auto it = std::find_if(calls.begin(), calls.end(), [&](const auto& c) { return c.first == call; });
    if (it == calls.end()) it = calls.insert(it, {call, ""});
    std::string& ops = it->second;
    if ((", " + ops + ",").find(str_cat(", ", s.op, ",")) != std::string::npos) continue;
    ops += str_cat(ops.empty() ? "" : ", ", s.op);
  }
  std::string text;
  for (const auto& [call, ops] : calls)
    text += str_cat(text.empty() ? "" : ", ", call, ops == call ? "" : " (" + ops + ")");
  return text;
}

std::string lines(const Origin& o) {
  std::vector<std::string> all;
  for (const Origin::Step& s : o.steps)
    if (const std::string at = s.where.str(); !at.empty() && std::find(all.begin(), all.end(), at) == all.end())
      all.push_back(at);
  std::string text;
  for (const std::string& at : all) text += (text.empty() ? "" : ", ") + at;
  return text;
}

Origin origin_of(const Node& n) {
  if (n.op == Op::Kernel && !n.kernel->origin.steps.empty()) return n.kernel->origin;
  return {n.op == Op::Kernel ? "" : "interpreter", {{info(n.op).name, n.where}}};
}

}  // namespace

std::string title_of(const Node& n) {
  const std::string words = n.op == Op::Kernel ? describe(n.kernel->origin) : std::string{};
  return words.empty() ? describe(n) : words;
}
std::string what_it_computes(const Node& n) { return call_list(origin_of(n)); }
std::string lines_of(const Node& n) { return lines(origin_of(n)); }

NodeWork work_of(const Graph& g, const MemoryPlan& plan, NodeId id) {
  const Node& n = g[id];
  const bool kernel = n.op == Op::Kernel;
  NodeWork r{kernel ? n.kernel->flops() : Dim(0), 0, whole(n)};
  std::map<NodeId, Dim> reads;  // one buffer may be several operands, but is read at most once
  for (std::size_t k = 0; k < n.in.size(); ++k) {
    const NodeId in = n.in[k].node;
    const Dim all = whole(g[in]);
    const Dim touched = kernel ? n.kernel->bytes_read(k).value_or(all) : all;
    reads[in] = min(reads[in] + touched, all);
  }
  for (const auto& [in, bytes] : reads) r.read = r.read + bytes;
  if (const auto part = kernel ? n.kernel->bytes_written() : std::nullopt) {
    r.written = *part;
    // The rest of an updated value is copied if the update is not in place.
    if (n.kernel->in_place(0) && !same_place(plan.nodes[id], plan.nodes[n.in[0].node])) {
      r.read = r.read + whole(n);
      r.written = r.written + whole(n);
    }
  }
  return r;
}

double Profiler::now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Profiler::Profiler(const Graph& g, const MemoryPlan& plan, std::span<const NodeId> order,
                   std::shared_ptr<Parallel> inner)
    : g_(g), plan_(plan), inner_(std::move(inner)), workers_(static_cast<std::size_t>(workers())) {
  for (NodeId id : order) rows_.push_back({id, work_of(g_, plan_, id)});
  events_.reserve(kEvents);
  start_ = now();
}

void Profiler::begin_run(const Bindings& sizes) {
  for (Row& r : rows_) {
    r.flops_done += static_cast<double>(r.work.flops.eval(sizes));
    r.bytes_read += static_cast<double>(r.work.read.eval(sizes));
    r.bytes_written += static_cast<double>(r.work.written.eval(sizes));
  }
  run_begin_ = now();
}

void Profiler::end_run() {
  seconds_ += now() - run_begin_;
  ++runs_;
}

void Profiler::keep(const ProfileEvent& e) {
  if (events_.size() < kEvents) events_.push_back(e);
  else ++left_out_;
}

void Profiler::end_kernel(std::size_t k) {
  const double end = now();
  Row& r = rows_[k];
  ++r.calls;
  r.seconds += end - kernel_begin_;
  keep({r.node, -1, kernel_begin_ - start_, end - start_, end - kernel_begin_});
  for (std::size_t w = 0; w < workers_.size(); ++w) {
    Worker& x = workers_[w];
    if (x.tasks) keep({r.node, static_cast<int>(w), x.begin - start_, x.end - start_, x.busy});
    x.tasks = 0;
  }
}

void Profiler::run(int tasks, void (*task)(void*, int, int), void* arg) {
  task_ = task;
  arg_ = arg;
  inner_->run(
      tasks,
      [](void* self, int t, int worker) {
        auto& p = *static_cast<Profiler*>(self);
        Worker& w = p.workers_[worker];
        const double begin = now();
        p.task_(p.arg_, t, worker);
        w.end = now();
        if (w.tasks++ == 0) w.begin = begin, w.busy = 0;
        w.busy += w.end - begin;
      },
      this);
}

Profile Profiler::result() const {
  Profile p{
      .runs = runs_, .seconds = seconds_, .kernels = {}, .events = events_, .events_left_out = left_out_, .notes = {}};
  for (const Row& r : rows_) {
    const Node& n = g_[r.node];
    const Origin o = origin_of(n);
    p.kernels.push_back({.node = r.node,
                         .name = describe(n),
                         .title = title_of(n),
                         .what = call_list(o),
                         .where = lines(o),
                         .shape = std::string(name(n.dtype)) + str(n.shape),
                         .pass = o.pass,
                         .choice = n.op == Op::Kernel ? n.kernel->choice : std::vector<std::string>{},
                         .calls = r.calls,
                         .seconds = r.seconds,
                         .flops = r.flops_done,
                         .bytes_read = r.bytes_read,
                         .bytes_written = r.bytes_written});
  }
  return p;
}

}  // namespace lc
