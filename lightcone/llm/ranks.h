// RankPart: what one of several processes or threads holds of a language model, of its weights and of its cache
// (docs/distributed.md).
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "lightcone/distributed/sharding/shard.h"
#include "lightcone/io/checkpoints/stored_part.h"

namespace lc::llm {

// What one rank has of a model whose graph is divided by tensor_parallel().
class RankPart {
 public:
  // Without `ranks`, or of one rank, it is everything. Throws Error unless the mesh has one axis, if nothing can be
  // divided, and if the ranks have different graphs.
  RankPart(const std::optional<Collectives>& ranks, const Graph& whole);

  Compiler compiler() const;                    // makes the graph of this rank
  int parts(std::string_view parameter) const;  // into how many parts it is divided
  StoredPart of(const std::string& parameter, const StoredTensor& whole) const;
  PartOf function() const;  // unset if this rank has everything

 private:
  struct Divided {
    Collectives ranks;
    ShardSpecs specs;
  };
  const ShardSpec* spec_of(std::string_view parameter) const;
  std::shared_ptr<const Divided> divided_;
};

}  // namespace lc::llm
