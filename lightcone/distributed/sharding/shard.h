// shard(): a compiler that makes the graph of one rank from the graph of the whole.
//
//   const Mesh mesh({{"data", 2}, {"model", 2}});
//   const Collectives ranks(mesh, communicator);
//   const ShardSpecs specs{{"x", {"data"}}, {"*.up.weight", {"model", ""}}, {"*.down.weight", {"", "model"}}};
//   const Program program = compile(graph, shard(ranks, specs) | generic() | cpu());
//
// A few inputs, parameters and states are given; everything else follows (GSPMD, Xu et al., arXiv 2105.04663): each
// operation is computed where its operands lie, and what does not fit is exchanged. Put it behind autograd and in
// front of all that lowers the graph. Outputs are whole on every rank; inputs and states are the rank's part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/core/array_view.h"
#include "lightcone/distributed/collectives.h"
#include "lightcone/distributed/combine.h"
#include "lightcone/passes/compiler.h"

namespace lc {

// How the inputs and states of these names are spread: for each axis the mesh axis along which it is divided, several
// joined by "+", or "" for an axis that every rank has whole. Axes that are left out are whole, too. In names * stands
// for any text. The first spec that fits a name is taken; what none fits is whole on every rank, but the memory that an
// optimiser has of a parameter ("<parameter>.exp_avg") is spread as the parameter is.
struct ShardSpec {
  std::string name;
  std::vector<std::string> axes;
};
using ShardSpecs = std::vector<ShardSpec>;

// The order in which the stages of a pipeline compute the parts of a batch.
enum class PipelineSchedule : std::uint8_t {
  OneForwardOneBackward,  // PipeDream-Flush: a stage keeps the activations of at most as many parts as there are stages
  AllForwardAllBackward,  // GPipe
};

struct ShardOptions {
  // Further axes that specs may name, whose parts are computed one after the other in the same graph: what a mesh does,
  // without other ranks. A batch that is divided along {"micro", 4} is computed as four, and gradients are added up
  // (gradient accumulation). An axis that is divided along both kinds names the mesh's first: "data+micro".
  std::vector<MeshAxis> serial = {};
  // An axis of the mesh whose ranks are the stages of a pipeline (Huang et al., arXiv 1811.06965): each computes a part
  // of the operations, has the parameters and states of these, and sends values to the others. The parts of the serial
  // axes are what the stages work on at the same time. No spec may name this axis. A rank's program has all inputs that
  // are neither parameters nor states, and of these its own: compare Program::inputs(). "": no pipeline.
  std::string pipeline = {};
  PipelineSchedule schedule = PipelineSchedule::OneForwardOneBackward;
  // The cost of an operation, by which stages are cut; the default counts elements.
  std::function<double(const Graph&, NodeId)> cost = {};
  // Gathers parameters for the backward pass again, instead of keeping them from the forward pass on (that of FSDP's
  // fully_shard()).
  bool reshard_after_forward = true;
  ExchangeOptions exchanges = {};
};

// Two passes: "shard", and "combine-exchanges" (combine.h), which may be skipped.
//
// Throws Error, when it runs, for specs that fit no input, name no axis of the mesh, use an axis twice, or divide an
// extent that the number of ranks does not divide.
Compiler shard(const Collectives& ranks, ShardSpecs specs, ShardOptions options = {});

// All ranks of a mesh in one graph, one after the other, with the inputs and results of the whole graph: whether a
// sharding computes the right thing, without ranks. verify(g, shard_on_one_rank(mesh, specs) | generic() | cpu()).
Compiler shard_on_one_rank(const Mesh& mesh, ShardSpecs specs);

// The specs of what a rank has, without the serial axes: those for part_of().
ShardSpecs without_serial(ShardSpecs specs, const std::vector<MeshAxis>& serial);

// The array of one rank.
struct ArrayPart {
  DType dtype = DType::F32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;
  ArrayView view() const { return {dtype, shape, bytes}; }
};
// Cuts a rank's part out of a whole array.
ArrayPart part_of(const Mesh& mesh, int rank, const ShardSpecs& specs, std::string_view name, const ArrayView& whole);
// Joins the parts of all ranks: the whole array of this shape, on every rank. All ranks call it, for the same names in
// the same order.
ArrayPart whole_of(const Collectives& ranks, const ShardSpecs& specs, std::string_view name, const ArrayView& part,
                   const std::vector<std::int64_t>& shape);

}  // namespace lc
