#include "lightcone/distributed/sharding/pipeline.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "lightcone/base/error.h"

namespace lc::distributed {
namespace {

// A value that a stage sends to another one.
struct Message {
  NodeId value = 0;
  int from = 0, to = 0;
  friend auto operator<=>(const Message&, const Message&) = default;
};

class Scheduler {
 public:
  Scheduler(const Stages& stages, const Graph& src, const std::vector<Purpose>& purposes, int parts,
            const Collectives& ranks, const ShardOptions& options, PassLog& log)
      : stages_(stages), src_(src), purposes_(purposes), ranks_(ranks), log_(log), to_(src.size()) {
    const Mesh& mesh = ranks.mesh();
    if (!options.pipeline.empty()) {
      axis_ = mesh.axis(options.pipeline);
      stage_ = mesh.coordinate(ranks.rank(), *axis_);
      peers_ = mesh.group(ranks.rank(), std::vector{*axis_});
    }
    ticks_ = pipeline_ticks(options.schedule, static_cast<int>(peers_.size()), parts);
    for (const Assignment& a : src.assignments()) states_[a.state] = a.next.node;
  }

  Graph run() {
    find_ticks();
    find_messages();
    std::vector<NodeId> order(src_.size());
    std::iota(order.begin(), order.end(), NodeId{0});
    std::ranges::stable_sort(order, {}, [&](NodeId id) { return tick_[id]; });
    const auto live = src_.live();
    auto message = messages_.begin();
    for (const NodeId id : order) {
      for (; message != messages_.end() && tick_[message->value] < tick_[id]; ++message) exchange(*message);
      if (is_data(id)) input(id);
      else if ((live[id] || states_.contains(id)) && stage(id) == stage_) make(id);
    }
    for (; message != messages_.end(); ++message) exchange(*message);
    finish();
    return std::move(dst_);
  }

 private:
  int stage(NodeId id) const { return stages_.of[purposes_[id].node]; }
  bool is_data(NodeId id) const { return src_[id].op == Op::Input && !src_[id].parameter && !states_.contains(id); }

  // A node of one part of the batch waits for the turn of that part. All others are computed as early as possible.
  void find_ticks() {
    tick_.resize(src_.size());
    for (NodeId id = 0; id < src_.size(); ++id) {
      for (const Edge& e : src_[id].in) {
        const bool is_sent = stage(e.node) >= 0 && stage(e.node) != stage(id);
        tick_[id] = std::max(tick_[id], tick_[e.node] + is_sent);
      }
      const Purpose& p = purposes_[id];
      if (p.place < 0 || stage(id) < 0) continue;
      const auto& of = stages_.backward[p.node] ? ticks_.backward : ticks_.forward;
      tick_[id] = std::max(tick_[id], of[static_cast<std::size_t>(stage(id))][static_cast<std::size_t>(p.place)]);
    }
  }

  // What a stage reads and another one makes. Nodes of every stage make their operands of one stage wanted everywhere.
  void find_messages() {
    const auto live = src_.live();
    std::vector<Message> all;
    const auto wanted = [&](NodeId value, int by) {
      const int from = stage(value);
      if (from < 0) return;
      for (int to = 0; to < static_cast<int>(peers_.size()); ++to)
        if (to != from && (by == to || by == kEveryStage)) all.push_back({value, from, to});
    };
    for (NodeId id = 0; id < src_.size(); ++id)
      if (live[id])
        for (const Edge& e : src_[id].in) wanted(e.node, stage(id));
    for (const Root& r : src_.roots()) wanted(r.edge.node, kEveryStage);
    for (const Assignment& a : src_.assignments()) wanted(a.next.node, stage(a.state));
    std::ranges::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    std::ranges::stable_sort(all, {}, [&](const Message& m) { return tick_[m.value]; });
    messages_ = std::move(all);
  }

  void exchange(const Message& m) {
    const std::int64_t number = next_number_++;
    if (m.from != stage_ && m.to != stage_) return;
    const Node& n = src_[m.value];
    const OpScope scope(n.where);
    const int peer = peers_[static_cast<std::size_t>(m.from == stage_ ? m.to : m.from)];
    if (!last_.defined()) last_ = dst_.constant(0);
    if (m.from == stage_) {
      last_ = ranks_.send(Tensor(dst_, made(m.value)), peer, number, last_);
      ++log_.fired["send"];
    } else {
      last_ = ranks_.receive({n.dtype, n.shape}, peer, number, last_);
      to_[m.value] = last_.edge();
      ++log_.fired["receive"];
    }
  }

  // The edge of a value of this stage, of every stage, or of another one that has sent it.
  Edge made(NodeId id) {
    if (!to_[id]) make(id);
    return *to_[id];
  }

  void input(NodeId id) {
    if (!to_[id]) to_[id] = Edge{dst_.adopt(src_[id], {}), View(src_[id].shape)};
  }

  void make(NodeId id) {
    if (to_[id]) return;
    const Node& n = src_[id];
    if (n.op == Op::Input) return input(id);
    if (stage(id) >= 0 && stage(id) != stage_)
      throw Error("shard", str_cat("stage ", stage_, " of the pipeline has no value of stage ", stage(id)));
    std::vector<Edge> in;
    for (const Edge& e : n.in) in.push_back(read(e));
    const NodeId node = dst_.adopt(n, std::move(in));
    to_[id] = Edge{node, View(dst_[node].shape)};
  }
  Edge read(const Edge& e) {
    const Edge from = made(e.node);
    return {from.node, from.view.then(e.view)};
  }

  // The last message has to be needed by something: the smallest result waits for it.
  void finish() {
    std::optional<std::size_t> waits;
    const auto bytes = [&](const Root& r) { return product(src_[r.edge.node].shape).bounds().hi; };
    for (std::size_t k = 0; k < src_.roots().size() && last_.defined(); ++k)
      if (!waits || bytes(src_.roots()[k]) < bytes(src_.roots()[*waits])) waits = k;
    for (std::size_t k = 0; k < src_.roots().size(); ++k) {
      const Root& r = src_.roots()[k];
      Edge e = read(r.edge);
      if (waits == k) e = ranks_.ordered(Tensor(dst_, e), last_).edge();
      dst_.root(r.name, e);
    }
    bool must_wait = last_.defined() && !waits;
    for (const Assignment& a : src_.assignments()) {
      if (stage(a.state) >= 0 && stage(a.state) != stage_) continue;
      Edge next = read(a.next);
      if (must_wait) next = ranks_.ordered(Tensor(dst_, next), last_).edge();
      must_wait = false;
      dst_.assignment(made(a.state).node, next);
    }
    if (must_wait) throw Error("shard", "a stage of the pipeline has neither a result nor a state");
  }

  const Stages& stages_;
  const Graph& src_;
  const std::vector<Purpose>& purposes_;
  const Collectives& ranks_;
  PassLog& log_;
  std::optional<int> axis_;
  int stage_ = 0;
  std::vector<int> peers_{0};  // the ranks that differ from this one along the pipeline
  Ticks ticks_;
  std::map<NodeId, NodeId> states_;  // next values
  std::vector<int> tick_;
  std::vector<Message> messages_;  // in the order of all ranks
  Graph dst_;
  std::vector<std::optional<Edge>> to_;
  Tensor last_;  // the result of the last message
  std::int64_t next_number_ = 0;
};

}  // namespace

Graph schedule_stages(const Stages& stages, const Graph& sharded, const std::vector<Purpose>& purposes, int parts,
                      const Collectives& ranks, const ShardOptions& options, PassLog& log) {
  return Scheduler(stages, sharded, purposes, parts, ranks, options, log).run();
}

}  // namespace lc::distributed
