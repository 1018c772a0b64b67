#include "lightcone/distributed/planning/planned_ranks.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "lightcone/base/error.h"

namespace lc {
namespace {

using Operation = Collective::Operation;

class PlannedRank final : public Communicator {
 public:
  PlannedRank(int size, int rank, PlannedExchange what) : size_(size), rank_(rank), what_(what) {
    if (size < 1 || rank < 0 || rank >= size)
      throw Error("planned_ranks", str_cat("there is no rank ", rank, " among ", size));
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string name() const override { return "planned"; }
  void run(const Collective& c, const void* in, void* out) override {
    if (what_ == PlannedExchange::Refused)
      throw Error(lc::name(c.operation),
                  str_cat("rank ", rank_, " of ", size_, " is planned, and there are no others to exchange with (",
                          str(c), "); threads() and mpi_ranks() run programs"));
    const std::size_t bytes = c.n * size_of(c.dtype);
    const bool takes = c.operation == Operation::ReduceScatter || c.operation == Operation::AllToAll,
               gives = c.operation == Operation::AllGather || c.operation == Operation::AllToAll;
    const auto* from = static_cast<const std::byte*>(in);
    auto* to = static_cast<std::byte*>(out);
    if (c.operation == Operation::Send) {  // one of the two pointers is null
      if (to && bytes) std::memset(to, 0, bytes);
      return;
    }
    for (std::size_t k = 0; k < (gives ? c.group.size() : 1) && bytes; ++k)
      std::memcpy(to + k * bytes, from + (takes && gives ? k * bytes : 0), bytes);
  }

 private:
  int size_, rank_;
  PlannedExchange what_;
};

// What one rank sends to each other one in a collective, by the algorithms of textbooks.
class SlowedRank final : public Communicator {
 public:
  SlowedRank(std::shared_ptr<Communicator> ranks, const Cluster& cluster)
      : ranks_(std::move(ranks)), cluster_(cluster) {}
  int rank() const override { return ranks_->rank(); }
  int size() const override { return ranks_->size(); }
  std::string name() const override { return "slowed " + ranks_->name(); }
  void run(const Collective& c, const void* in, void* out) override {
    ranks_->run(c, in, out);
    wait(delay(c, 1));
  }
  void run_together(const Collective& c, std::span<const Piece> pieces) override {
    ranks_->run_together(c, pieces);
    wait(delay(c, static_cast<double>(pieces.size())));
  }

 private:
  double delay(const Collective& c, double arrays) const {
    const int machine = rank() / cluster_.ranks_per_machine;
    const auto others = static_cast<double>(
        std::ranges::count_if(c.group, [&](int r) { return r / cluster_.ranks_per_machine != machine; }));
    if (others == 0) return 0;
    const double all = static_cast<double>(c.n * size_of(c.dtype)), each = all / static_cast<double>(c.group.size());
    switch (c.operation) {
      case Operation::AllReduce: return 2 * time(others, each, arrays);
      case Operation::Broadcast: return time(others, 2 * each, arrays);
      case Operation::Permute:
      case Operation::Send: return time(1, all, arrays);
      default: return time(others, all, arrays);
    }
  }
  // Several arrays are one round of messages, with one for each of them.
  double time(double others, double bytes, double arrays) const {
    return cluster_.between.seconds(1, others * arrays, others * bytes);
  }
  static void wait(double seconds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    constexpr std::chrono::microseconds kLate(100);  // sleeps end so much too late
    if (const auto rest = end - std::chrono::steady_clock::now(); rest > kLate)
      std::this_thread::sleep_for(rest - kLate);
    while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
  }

  std::shared_ptr<Communicator> ranks_;
  Cluster cluster_;
};

}  // namespace

std::shared_ptr<Communicator> planned_ranks(int size, int rank, PlannedExchange what) {
  return std::make_shared<PlannedRank>(size, rank, what);
}

std::shared_ptr<Communicator> slowed(std::shared_ptr<Communicator> ranks, const Cluster& cluster) {
  if (!ranks) throw Error("slowed", "there is no communicator");
  return std::make_shared<SlowedRank>(std::move(ranks), cluster);
}

}  // namespace lc
