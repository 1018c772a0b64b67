// Ranks as threads: they see each other's memory, so that an exchange is a meeting, a copy, and another meeting.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>

#include "lightcone/base/error.h"
#include "lightcone/distributed/communicator.h"

namespace lc {
namespace {

using Operation = Collective::Operation;

// What one rank brings to a meeting.
struct Seat {
  const Collective* what = nullptr;
  std::span<const Piece> pieces;
};

// The ranks of one group, which meet at the beginning of each operation and at its end.
struct Meeting {
  std::vector<Seat> seats;
  std::vector<bool> present;
  std::size_t arrived = 0;
  std::uint64_t round = 0;  // completed meetings
};

bool same(const Seat& x, const Seat& y) {
  const Collective &a = *x.what, &b = *y.what;
  return a.operation == b.operation && a.reduction == b.reduction && a.dtype == b.dtype && a.n == b.n &&
         a.root == b.root && a.tag == b.tag && std::ranges::equal(a.source, b.source) &&
         std::ranges::equal(x.pieces, y.pieces, {}, &Piece::n, &Piece::n);
}

struct Before {
  using is_transparent = void;
  bool operator()(std::span<const int> a, std::span<const int> b) const {
    return std::ranges::lexicographical_compare(a, b);
  }
};

class Room {
 public:
  Room(int n, double timeout_s) : ended_(static_cast<std::size_t>(n)), timeout_(timeout_s) {}

  // Waits until the whole group is there. Returns its seats, which stay until all have met again to leave, without a
  // seat.
  const std::vector<Seat>& meet(const Collective& c, const Seat* mine) {
    std::unique_lock lock(mutex_);
    refuse_if_failed(c);
    auto at = meetings_.find(c.group);
    if (at == meetings_.end()) {
      at = meetings_.emplace(std::vector<int>(c.group.begin(), c.group.end()), Meeting()).first;
      at->second.seats.resize(c.group.size()), at->second.present.resize(c.group.size());
    }
    Meeting& m = at->second;
    if (mine) m.seats[static_cast<std::size_t>(c.place)] = *mine;
    m.present[static_cast<std::size_t>(c.place)] = true;
    if (++m.arrived == c.group.size()) {
      finish(c, m);
    } else {
      wait(c, m, lock);
    }
    refuse_if_failed(c);
    return m.seats;
  }

  void end(int rank) {
    const std::lock_guard lock(mutex_);
    ended_[static_cast<std::size_t>(rank)] = true;
    changed_.notify_all();
  }

 private:
  [[noreturn]] static void fail(const Collective& c, const std::string& why) {
    throw Error(name(c.operation), str_cat(why, " (", str(c), ")"));
  }
  void refuse_if_failed(const Collective& c) const {
    if (!failure_.empty()) fail(c, failure_);
  }
  // The last one to come compares what all of them brought.
  void finish(const Collective& c, Meeting& m) {
    for (std::size_t k = 0; k < m.seats.size(); ++k)
      if (!same(m.seats[0], m.seats[k]))
        failure_ = str_cat("ranks run different operations: rank ", c.group[0], " ", str(*m.seats[0].what), ", rank ",
                           c.group[k], " ", str(*m.seats[k].what), "; they need the same model, mesh and version");
    m.arrived = 0;
    m.present.assign(m.present.size(), false);
    ++m.round;
    changed_.notify_all();
  }
  void wait(const Collective& c, const Meeting& m, std::unique_lock<std::mutex>& lock) {
    const std::uint64_t round = m.round;
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout_);
    const auto missing = [&](bool only_ended) {
      for (std::size_t k = 0; k < c.group.size(); ++k)
        if (!m.present[k] && (!only_ended || ended_[static_cast<std::size_t>(c.group[k])])) return c.group[k];
      return -1;
    };
    while (m.round == round && failure_.empty()) {
      if (const int rank = missing(true); rank >= 0) {
        failure_ = str_cat("rank ", rank, " has ended");
      } else if (changed_.wait_until(lock, until) == std::cv_status::timeout && m.round == round && failure_.empty()) {
        failure_ = str_cat("rank ", missing(false), " did not come within ", timeout_, " s");
      }
    }
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::vector<int>, Meeting, Before> meetings_;  // by group
  std::vector<bool> ended_;
  std::string failure_;
  double timeout_;
};

class ThreadRank final : public Communicator {
 public:
  ThreadRank(std::shared_ptr<Room> room, int rank, int size) : room_(std::move(room)), rank_(rank), size_(size) {}
  ~ThreadRank() override { room_->end(rank_); }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string name() const override { return "threads"; }

  void run(const Collective& c, const void* in, void* out) override {
    const Piece one{in, out, c.n};
    run_together(c, {&one, 1});
  }
  void run_together(const Collective& c, std::span<const Piece> pieces) override {
    const Seat mine{&c, pieces};
    const std::vector<Seat>& all = room_->meet(c, &mine);
    for (std::size_t k = 0; k < pieces.size(); ++k) exchange(c, all, k);
    room_->meet(c, nullptr);
  }

 private:
  static const std::byte* in(const Seat& s, std::size_t piece) {
    return static_cast<const std::byte*>(s.pieces[piece].in);
  }
  static std::byte* out(const Seat& s, std::size_t piece) { return static_cast<std::byte*>(s.pieces[piece].out); }

  void exchange(const Collective& c, const std::vector<Seat>& all, std::size_t piece) {
    const std::size_t ranks = all.size(), me = static_cast<std::size_t>(c.place), n = all[me].pieces[piece].n,
                      bytes = n * size_of(c.dtype);
    std::byte* to = out(all[me], piece);
    const auto copy = [&](std::size_t row_to, std::size_t rank, std::size_t row) {
      if (bytes) std::memcpy(to + row_to * bytes, in(all[rank], piece) + row * bytes, bytes);
    };
    switch (c.operation) {
      case Operation::AllReduce: {
        // Each rank reduces a part, and writes it to all.
        const std::size_t part = (n + ranks - 1) / ranks, begin = std::min(n, me * part),
                          end = std::min(n, begin + part), first = begin * size_of(c.dtype);
        reduce_part(c, all, piece, 0, begin, end);
        for (std::size_t k = 0; k < ranks && end > begin; ++k)
          if (k != me) std::memcpy(out(all[k], piece) + first, to + first, (end - begin) * size_of(c.dtype));
        break;
      }
      case Operation::AllGather:
        for (std::size_t k = 0; k < ranks; ++k) copy(k, k, 0);
        break;
      case Operation::ReduceScatter: reduce_part(c, all, piece, me * bytes, 0, n); break;
      case Operation::AllToAll:
        for (std::size_t k = 0; k < ranks; ++k) copy(k, k, me);
        break;
      case Operation::Broadcast: copy(0, static_cast<std::size_t>(c.root), 0); break;
      case Operation::Permute:
        if (const int from = c.source[me]; from >= 0) copy(0, static_cast<std::size_t>(from), 0);
        else if (bytes) std::memset(to, 0, bytes);
        break;
      case Operation::Send:
        if (me == 1) copy(0, 0, 0);
        break;
    }
  }
  void reduce_part(const Collective& c, const std::vector<Seat>& all, std::size_t piece, std::size_t offset,
                   std::size_t begin, std::size_t end) {
    rows_.clear();
    for (const Seat& s : all) rows_.push_back(in(s, piece) + offset);
    reduce_rows(c.dtype, c.reduction, rows_, out(all[static_cast<std::size_t>(c.place)], piece), begin, end);
  }

  std::shared_ptr<Room> room_;
  int rank_, size_;
  std::vector<const void*> rows_;  // kept between operations
};

}  // namespace

std::vector<std::shared_ptr<Communicator>> threads(int n, const ThreadRanksOptions& o) {
  if (n < 1) throw Error("threads", str_cat("there cannot be ", n, " ranks"));
  const auto room = std::make_shared<Room>(n, o.timeout_s);
  std::vector<std::shared_ptr<Communicator>> all;
  for (int rank = 0; rank < n; ++rank) all.push_back(std::make_shared<ThreadRank>(room, rank, n));
  return all;
}

}  // namespace lc
