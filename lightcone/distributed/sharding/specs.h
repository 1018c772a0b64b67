// Which spec fits an input, and what it means on a mesh.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "lightcone/distributed/sharding/shard.h"
#include "lightcone/distributed/sharding/sharding.h"

namespace lc::distributed {

bool fits(const ShardSpec& spec, std::string_view name);
// Returns the number of the first spec that fits the name, or -1.
int spec_of(const ShardSpecs& specs, std::string_view name);
// The same for many names: specs without a * are found at once.
class SpecIndex {
 public:
  explicit SpecIndex(const ShardSpecs& specs);  // which must outlive it
  int of(std::string_view name) const;          // as spec_of()

 private:
  const ShardSpecs& specs_;
  std::unordered_map<std::string_view, int> exact_;
  std::vector<int> patterns_;
};
// How the input or state of this name is spread. An optimiser's memory of a parameter ("<parameter>.exp_avg") without a
// spec of its own is spread as the parameter, if it has its axes. Throws Error if the spec does not fit the shape.
Sharding sharding_of(const Mesh& mesh, const ShardSpecs& specs, const SpecIndex& index, std::string_view name,
                     const Shape& shape);

}  // namespace lc::distributed
