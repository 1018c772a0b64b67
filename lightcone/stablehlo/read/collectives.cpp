// Rules for operations of several devices, with one device: an operation of a group of one device returns its operand.
// Programs with a mesh of one device contain such operations.
#include "lightcone/stablehlo/read/reader.h"

namespace lc::stablehlo {
namespace {

// Refuses a module for several devices; JAX records their number in each module.
void check_for_one(const Call& c) {
  for (const auto& [name, value] : c.reader.module().attributes)
    if ((name == "mhlo.num_partitions" || name == "mhlo.num_replicas") && value.integer > 1)
      c.refuse(str_cat("is part of a program for ", value.integer, " devices, and there is one"));
}

std::vector<Tensor> this_device(const Call& c) {
  check_for_one(c);
  return {full(c.graph(), {}, 0, c.dtype())};
}

// Checks that every group has one device. Without groups, all devices are one group.
void check_alone(const Call& c) {
  check_for_one(c);
  const Attribute* groups = c.op.find("replica_groups");
  const bool dense = groups && groups->kind == Attribute::Kind::Dense;
  if (dense && groups->type.shape.size() == 2 && groups->type.shape[0] != 0 && groups->type.shape[1] != 1)
    c.refuse(str_cat("joins values of ", groups->type.shape[1], " devices, and there is one"));
  if (groups && !dense) c.refuse("its groups are not spelled out");
}
std::vector<Tensor> alone(const Call& c) {
  check_alone(c);
  return c.in;
}

// The result is zeros on a device to which no other device sends.
std::vector<Tensor> permute(const Call& c) {
  check_for_one(c);
  const Integers pairs = c.integers("source_target_pairs");
  for (const std::int64_t device : pairs)
    if (device != 0) c.refuse(str_cat("sends to or from device ", device, ", and there is one, 0"));
  std::vector<Tensor> r;
  for (const Tensor& t : c.in) r.push_back(pairs.empty() ? scalar_like(t, 0) : t);
  return r;
}

}  // namespace

void add_collectives(Rules& r) {
  r["stablehlo.replica_id"] = this_device;
  r["stablehlo.partition_id"] = this_device;
  for (const char* name : {"stablehlo.all_reduce", "stablehlo.all_gather", "stablehlo.all_to_all",
                           "stablehlo.reduce_scatter", "stablehlo.collective_broadcast"})
    r[name] = alone;
  r["stablehlo.collective_permute"] = permute;
}

}  // namespace lc::stablehlo
