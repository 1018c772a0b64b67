// The ranks of a run: this process alone, or one of several that a launcher started.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "config.h"
#include "lightcone/distributed/collectives.h"
#include "lightcone/distributed/sharding/shard.h"
#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/io/data/dataset.h"

namespace lc::tool {

class RunRanks {
 public:
  RunRanks() = default;  // one process
  explicit RunRanks(Collectives c) : collectives_(std::move(c)) {}
  // The door to the others; null for one process.
  const Collectives* collectives() const { return collectives_ ? &*collectives_ : nullptr; }
  bool first() const { return !collectives_ || collectives_->rank() == 0; }  // the one that prints and writes
  // As those of Collectives; for one process nothing but `f`.
  void together(const std::function<void()>& f) const;
  void check_same(const std::string& what, const std::string& text) const;
  i64 largest(i64 mine) const;  // the largest of all ranks' numbers

 private:
  std::optional<Collectives> collectives_;
};

// Throws Error if the model cannot be divided as the mesh says.
void check_mesh(const ModelConfig& model, const RanksConfig& ranks);
// How the inputs and states of a step are spread over the mesh: the batch along data; along model attention heads,
// columns and rows of the matrices between them, and the vocabulary; and what "shard" says along data, if possible
// along another axis than model divides: what is gathered along data stays divided along model. What the number of
// ranks does not divide is whole on every rank. `lightcone plan` plans the same.
ShardSpecs specs_of(const Graph& step, const ModelConfig& model, const RanksConfig& ranks);
// Returns the specs that name inputs of another graph.
ShardSpecs those_of(const ShardSpecs& specs, const Graph& g);
// This rank's rows of a whole batch.
Arrays part_of_batch(const Arrays& batch, const TrainConfig& c);

// Numbers that tell whether ranks have read the same: of a checkpoint its names, shapes and some bytes of each tensor;
// of arrays all bytes.
std::string mark_of(const Weights& w);
std::string mark_of(const Arrays& a);
std::string mark_of(std::string_view text);

// Reads the configuration by `read` and runs `f` with it: alone, or as one of the ranks that a launcher started. If
// ranks fail, one of them throws the Error, for people, and the others return 1.
int run_on_ranks(const std::function<TrainConfig()>& read, const std::string& version,
                 const std::function<int(TrainConfig&, const RunRanks&, int threads)>& f);

}  // namespace lc::tool
