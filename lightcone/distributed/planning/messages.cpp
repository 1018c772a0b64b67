#include "lightcone/distributed/planning/messages.h"

#include <algorithm>

namespace lc::distributed {
namespace {

using Operation = Collective::Operation;

// Counts the messages of one rank, round by round.
class Counter {
 public:
  Counter(const Collective& c, int place, const Cluster& cluster)
      : c_(c), place_(place), per_machine_(cluster.ranks_per_machine) {}

  // A round in which bytes_to(k) go to the rank at each other place k.
  template <class F>
  void round(Messages& m, const F& bytes_to) const {
    const Messages before = m;
    for (int k = 0; k < ranks(); ++k) {
      if (k == place_) continue;
      Sent& s = machine(k) == machine(place_) ? m.within : m.between;
      s.messages += 1, s.bytes += static_cast<double>(bytes_to(k));
    }
    m.within.rounds += m.within.messages > before.within.messages;
    m.between.rounds += m.between.messages > before.between.messages;
  }

  // Bytes of the part of an array that the rank at a place reduces, or passes on.
  std::size_t part(int place) const {
    const auto p = static_cast<std::size_t>(ranks()), each = (c_.n + p - 1) / p,
               begin = std::min(c_.n, static_cast<std::size_t>(place) * each);
    return (std::min(c_.n, begin + each) - begin) * size_of(c_.dtype);
  }
  int ranks() const { return static_cast<int>(c_.group.size()); }
  int machine(int place) const { return c_.group[static_cast<std::size_t>(place)] / per_machine_; }

 private:
  const Collective& c_;
  int place_, per_machine_;
};

// Each rank of a permutation sends one message. It counts as one to another machine if any of them goes there.
void add_permutation(Messages& m, const Collective& c, const Counter& count) {
  bool crosses = false, moves = false;
  for (int to = 0; to < count.ranks(); ++to) {
    const int from = c.source[static_cast<std::size_t>(to)];
    if (from < 0 || from == to) continue;
    moves = true;
    crosses = crosses || count.machine(from) != count.machine(to);
  }
  if (moves) (crosses ? m.between : m.within) = {1, 1, static_cast<double>(c.n * size_of(c.dtype))};
}

// The messages of one array; `together`: it is small, with all that is exchanged at once.
Messages messages_of_array(const Collective& c, const Cluster& cluster, bool together) {
  Messages m;
  const std::size_t row = c.n * size_of(c.dtype), all = row * c.group.size();
  const int place = c.operation == Operation::Broadcast ? c.root : c.place;
  const Counter count(c, place, cluster);
  const auto whole = [&](int) { return row; };
  const auto own_part = [&](int) { return count.part(place); };
  switch (c.operation) {
    case Operation::AllReduce:
      if (together) count.round(m, whole);
      else count.round(m, [&](int k) { return count.part(k); }), count.round(m, own_part);
      m.buffer_bytes = together ? all : count.part(place) * c.group.size();
      m.reduced_bytes = static_cast<double>(m.buffer_bytes);
      break;
    case Operation::ReduceScatter:
      count.round(m, whole);
      m.buffer_bytes = all, m.reduced_bytes = static_cast<double>(all);
      break;
    case Operation::AllGather:
    case Operation::AllToAll: count.round(m, whole); break;
    case Operation::Broadcast:
      if (together || c.group.size() == 2) count.round(m, whole);
      else
        count.round(m, [&](int k) { return count.part(k) + count.part(place); }), count.round(m, [](int) { return 0; });
      break;
    case Operation::Permute: add_permutation(m, c, count); break;
    case Operation::Send:
      if (place == 0) count.round(m, whole);
      break;
  }
  return m;
}

void add(Sent& s, const Sent& more) {
  s.rounds = std::max(s.rounds, more.rounds);
  s.messages += more.messages, s.bytes += more.bytes;
}

}  // namespace

Messages messages_of(const Collective& c, const Cluster& cluster, std::span<const std::size_t> pieces) {
  Messages m;
  if (c.group.size() < 2) return m;
  const std::size_t bytes = c.n * size_of(c.dtype);
  const bool together = (c.operation == Operation::Broadcast ? bytes : bytes * c.group.size()) <= kTogetherBytes;
  for (const std::size_t n : pieces.empty() ? std::span(&c.n, 1) : pieces) {
    Collective one = c;
    one.n = n;
    const Messages more = messages_of_array(one, cluster, together);
    add(m.between, more.between), add(m.within, more.within);
    m.reduced_bytes += more.reduced_bytes, m.buffer_bytes += more.buffer_bytes;
  }
  return m;
}

namespace {

double on(const Link& l, const Sent& s) { return l.seconds(s.rounds, s.messages, s.bytes); }
double turns(const Cluster& c) { return std::max(1.0, c.ranks_per_processor); }
double summing(const Messages& m, const Cluster& c) {
  return c.reduced_bytes_per_second > 0 ? turns(c) * m.reduced_bytes / c.reduced_bytes_per_second : 0;
}

}  // namespace

double seconds_of(const Messages& m, const Cluster& c) {
  return std::max(turns(c) * on(c.within, m.within), on(c.between, m.between)) + summing(m, c);
}

double processor_seconds_of(const Messages& m, const Cluster& c) {
  return turns(c) * (on(c.within, m.within) + on(c.copied_between, m.between)) + summing(m, c);
}

}  // namespace lc::distributed
