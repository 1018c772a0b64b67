#include "room.h"

#include <algorithm>
#include <cstring>
#include <functional>

namespace lc::simulators::nccl {
namespace {

constexpr const char* kNames[] = {"AllReduce", "Broadcast", "AllGather", "ReduceScatter", "messages"};

bool reduces(const Task& t) { return t.kind == Task::Kind::AllReduce || t.kind == Task::Kind::ReduceScatter; }
bool same(const Task& a, const Task& b) {
  return a.kind == b.kind && a.count == b.count && a.type == b.type && (!reduces(a) || a.reduction == b.reduction) &&
         (a.kind != Task::Kind::Broadcast || a.root == b.root);
}
void copy(std::uint64_t to, std::uint64_t from, std::size_t bytes) {
  if (bytes) std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
}

}  // namespace

std::string Task::words() const {
  std::string s = kNames[static_cast<int>(kind)];
  if (kind != Kind::Messages) {
    s += " of " + std::to_string(count) + " elements of type " + std::to_string(type);
    if (reduces(*this)) s += ", reduction " + std::to_string(reduction);
    if (kind == Kind::Broadcast) s += ", root " + std::to_string(root);
  }
  for (const Message& m : messages)
    s += (m.sends ? ", to " : ", from ") + std::to_string(m.peer) + ": " + std::to_string(m.count);
  return s;
}

void Room::set_failure(const std::string& why) {
  if (failure_.empty()) failure_ = why;
}
void Room::fail(const std::string& why) {
  const std::lock_guard lock(mutex_);
  set_failure(why);
}
std::string Room::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void Room::join(int rank, const void* device) {
  const std::lock_guard lock(mutex_);
  Place& p = places_[static_cast<std::size_t>(rank)];
  if (p.joined) return set_failure("rank " + std::to_string(rank) + " came twice");
  for (std::size_t k = 0; k < places_.size(); ++k)
    if (places_[k].joined && places_[k].device == device)
      return set_failure("Duplicate GPU detected : rank " + std::to_string(rank) + " and rank " + std::to_string(k));
  p.joined = true, p.device = device;
}

bool Room::all_joined() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::all_of(places_, [](const Place& p) { return p.joined; });
}

bool Room::is_standing(int rank) const {
  const std::lock_guard lock(mutex_);
  return places_[static_cast<std::size_t>(rank)].task != nullptr;
}

void Room::leave(int rank) {
  const std::lock_guard lock(mutex_);
  places_[static_cast<std::size_t>(rank)].task = nullptr;
}

bool Room::stand(int rank, const Task& task, LibraryWork::OnDevice on_device) {
  const std::lock_guard lock(mutex_);
  Place& p = places_[static_cast<std::size_t>(rank)];
  if (p.task == nullptr && failure_.empty()) {
    p.task = &task, p.done = false;
    p.exchanged.assign(task.messages.size(), false);
    if (check_memory(task, on_device)) match();
  }
  if (p.task != &task || !p.done) return false;  // another stream's task may be here
  p.task = nullptr;
  return true;
}

bool Room::check_memory(const Task& t, LibraryWork::OnDevice on_device) {
  const auto check = [&](std::uint64_t at, std::size_t bytes) {
    if (bytes && !on_device(at, bytes)) set_failure(t.words() + ": a buffer is not the device's memory");
  };
  for (const Message& m : t.messages) check(m.at, m.bytes());
  if (t.kind != Task::Kind::Messages) {
    const std::size_t bytes = t.count * size_of(t.type), all = bytes * places_.size();
    check(t.in, t.kind == Task::Kind::ReduceScatter ? all : bytes);
    check(t.out, t.kind == Task::Kind::AllGather ? all : bytes);
  }
  return failure_.empty();
}

void Room::match() {
  const auto at_collective = [](const Place& p) { return p.task && p.task->kind != Task::Kind::Messages && !p.done; };
  if (std::ranges::all_of(places_, at_collective)) return collect();
  for (std::size_t from = 0; from < places_.size(); ++from)
    for (std::size_t to = 0; to < places_.size(); ++to)
      if (places_[from].task && places_[to].task) deliver(from, to);
  find_deadlock();
}

// Runs a collective for all ranks, whose streams stand still. Sums go around the ring and begin behind the rank that
// gets them, so that their order is not that of the ranks.
void Room::collect() {
  const Task& first = *places_[0].task;
  for (std::size_t k = 1; k < places_.size(); ++k)
    if (!same(first, *places_[k].task))
      return set_failure("ranks run different operations: rank 0 " + first.words() + "; rank " + std::to_string(k) +
                         " " + places_[k].task->words());
  const std::size_t n = places_.size(), bytes = first.count * size_of(first.type);
  // Sums of parts of the array begin at different ranks.
  const auto sum = [&](std::size_t part, std::size_t from, std::size_t elements, std::vector<char>& to) {
    std::vector<const void*> rows;
    for (std::size_t k = 1; k <= n; ++k)
      rows.push_back(reinterpret_cast<const char*>(places_[(part + k) % n].task->in) + from * size_of(first.type));
    to.resize(elements * size_of(first.type));
    reduce(first.type, first.reduction, rows.data(), n, to.data(), elements);
  };
  std::vector<std::vector<char>> results(n);
  const std::size_t chunk = (first.count + n - 1) / n;
  for (std::size_t k = 0; k < n && reduces(first); ++k) {
    const std::size_t begin = std::min(first.count, k * chunk), end = std::min(first.count, begin + chunk);
    if (first.kind == Task::Kind::AllReduce) sum(k, begin, end - begin, results[k]);
    else sum(k, k * first.count, first.count, results[k]);
  }
  for (std::size_t k = 0; k < n; ++k) {
    const std::uint64_t out = places_[k].task->out;
    for (std::size_t j = 0; j < n; ++j) {
      const auto result = reinterpret_cast<std::uint64_t>(results[j].data());
      if (first.kind == Task::Kind::AllReduce)
        copy(out + std::min(first.count, j * chunk) * size_of(first.type), result, results[j].size());
      else if (first.kind == Task::Kind::AllGather) copy(out + j * bytes, places_[j].task->in, bytes);
      else if (first.kind == Task::Kind::ReduceScatter && j == k) copy(out, result, bytes);
      else if (first.kind == Task::Kind::Broadcast && j == static_cast<std::size_t>(first.root))
        copy(out, places_[j].task->in, bytes);
    }
  }
  for (Place& p : places_) p.done = true;
}

// Messages between two ranks arrive in the order in which they were sent.
void Room::deliver(std::size_t from, std::size_t to) {
  Place &a = places_[from], &b = places_[to];
  const auto next = [](Place& p, bool sends, std::size_t peer) {
    std::size_t k = 0;
    for (const Message& m : p.task->messages) {
      if (!p.exchanged[k] && m.sends == sends && m.peer == static_cast<int>(peer)) break;
      ++k;
    }
    return k;
  };
  for (;;) {
    const std::size_t s = next(a, true, to), r = next(b, false, from);
    if (s == a.task->messages.size() || r == b.task->messages.size()) break;
    const Message &sent = a.task->messages[s], &received = b.task->messages[r];
    if (sent.count != received.count || sent.type != received.type)
      return set_failure("rank " + std::to_string(from) + " sends " + std::to_string(sent.count) + " of type " +
                         std::to_string(sent.type) + ", and rank " + std::to_string(to) + " receives " +
                         std::to_string(received.count) + " of type " + std::to_string(received.type));
    copy(received.at, sent.at, sent.bytes());
    a.exchanged[s] = b.exchanged[r] = true;
  }
  for (Place* p : {&a, &b})
    if (p->task->kind == Task::Kind::Messages) p->done = std::ranges::all_of(p->exchanged, [](bool e) { return e; });
}

// Whether the rank goes on only after the other one has done something that it is not doing now.
bool Room::waits_for(std::size_t rank, std::size_t other) const {
  const Place& p = places_[rank];
  if (!p.task || p.done) return false;
  if (p.task->kind != Task::Kind::Messages) {
    const Place& o = places_[other];
    return rank != other && o.task && o.task->kind == Task::Kind::Messages;
  }
  for (std::size_t k = 0; k < p.exchanged.size(); ++k)
    if (!p.exchanged[k] && p.task->messages[k].peer == static_cast<int>(other)) return true;
  return false;
}

// Ranks that wait for each other in a circle never go on.
void Room::find_deadlock() {
  for (std::size_t begin = 0; begin < places_.size(); ++begin) {
    std::vector<bool> seen(places_.size());
    const std::function<bool(std::size_t)> returns = [&](std::size_t k) {
      for (std::size_t other = 0; other < places_.size(); ++other) {
        if (!waits_for(k, other)) continue;
        if (other == begin) return true;
        if (!seen[other]) {
          seen[other] = true;
          if (returns(other)) return true;
        }
      }
      return false;
    };
    if (returns(begin))
      return set_failure("ranks wait for each other: rank " + std::to_string(begin) + " in " +
                         places_[begin].task->words() + "; sends and receives that belong together need a group");
  }
}

}  // namespace lc::simulators::nccl
