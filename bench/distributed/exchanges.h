// Exchanges of ranks, written down, left out, and repeated: what of a step or a token is computing, and what is not.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/runner/protocol.h"
#include "lightcone/distributed/communicator.h"
#include "lightcone/runtime/profile/profile.h"

namespace lc::bench {

// What is exchanged at once.
struct Exchanged {
  Collective collective;
  std::vector<int> group;
  std::vector<std::size_t> elements;  // one number for each array
};

// Passes exchanges on and writes down what they were, in order.
class Recorder final : public Communicator {
 public:
  explicit Recorder(std::shared_ptr<Communicator> to) : to_(std::move(to)) {}
  int rank() const override { return to_->rank(); }
  int size() const override { return to_->size(); }
  std::string name() const override { return to_->name(); }
  void run(const Collective& c, const void* in, void* out) override;
  void run_together(const Collective& c, std::span<const Piece> pieces) override;
  void record(bool on) { on_ = on; }
  const std::vector<Exchanged>& all() const { return all_; }

 private:
  void note(const Collective& c, std::vector<std::size_t> elements);

  std::shared_ptr<Communicator> to_;
  std::vector<Exchanged> all_;
  bool on_ = false;
};

// Exchanges nothing: every rank takes its own numbers for those of the others.
class Alone final : public Communicator {
 public:
  Alone(int rank, int size) : rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string name() const override { return "alone"; }
  void run(const Collective& c, const void* in, void* out) override;
  // Several arrays at once are as many operations, each of its own length.
  void run_together(const Collective& c, std::span<const Piece> pieces) override;

 private:
  int rank_, size_;
};

// Brings all ranks to one place, so that what follows begins together.
void meet(Communicator& ranks);

// Exchanges with nothing between them.
class Replay {
 public:
  Replay(std::shared_ptr<Communicator> ranks, std::vector<Exchanged> all);
  // Returns how many seconds it took.
  double run();
  // {"all_reduce": {"calls": 3, "bytes": 100}}: the bytes of the smaller of the two arrays.
  Json summary() const;

 private:
  void run(const Exchanged& e);

  std::shared_ptr<Communicator> ranks_;
  std::vector<Exchanged> all_;
  std::vector<Piece> pieces_;
  std::vector<std::byte> in_, out_;
};

// Returns whether a kernel is an exchange.
bool is_exchange(const KernelProfile& k);

}  // namespace lc::bench
