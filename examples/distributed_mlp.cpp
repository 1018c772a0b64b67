// Trains a network of two layers on several processes, each with its part of the batch and of the parameters:
//   mpirun -n 2 distributed_mlp
#include <cmath>
#include <cstdio>

#include "lightcone/autograd/autograd.h"
#include "lightcone/distributed/mpi/mpi.h"
#include "lightcone/distributed/sharding/shard.h"
#include "lightcone/distributed/sharding/strategies.h"
#include "lightcone/lightcone.h"
#include "lightcone/optim/optim.h"

using namespace lc;

namespace {

constexpr std::int64_t kBatch = 32, kWidth = 16;

// Is a point inside the circle? The model has no idea of ranks.
Graph model() {
  Graph g;
  const Tensor x = g.input("x", {kBatch, 2}), y = g.input("y", {kBatch, 1});
  const Tensor up = g.parameter("up", {kWidth, 2}), bias = g.parameter("bias", {kWidth}),
               down = g.parameter("down", {1, kWidth});
  const Tensor loss = mean(square(sub(linear(tanh(linear(x, up, bias)), down), y)));
  g.output("loss", loss);
  const auto d = gradients(loss, {up, bias, down});
  optim::step(optim::AdamW{.lr = 0.03}, {{up, d[0]}, {bias, d[1]}, {down, d[2]}});
  return g;
}

double noise(int k) { return 2 * std::abs(std::remainder(std::sin(12.9898 * k) * 43758.5453, 1.0)); }  // from 0 to 1

}  // namespace

int main() try {
  const Graph whole = model();
  const auto communicator = mpi_ranks();
  const int n = communicator->size();
  const Collectives ranks(Mesh({{"data", n}}), communicator);
  const ShardSpecs specs = joined(data_parallel(whole, "data", n), fully_sharded(whole, "data", n));
  ranks.check_same("the graph", whole.str());
  Context run(compile(whole, shard(ranks, specs) | generic() | cpu()));
  const auto set = [&](const char* name, std::vector<std::int64_t> shape, const std::vector<float>& all) {
    const ArrayPart p =
        part_of(ranks.mesh(), ranks.rank(), specs, name, {DType::F32, std::move(shape), std::as_bytes(std::span(all))});
    run.set_bytes(name, p.bytes.data(), p.bytes.size());
  };
  const auto first = [](std::int64_t size, int seed) {
    std::vector<float> v;
    for (int k = 0; k < size; ++k) v.push_back(static_cast<float>(noise(seed + k) - 0.5));
    return v;
  };
  set("up", {kWidth, 2}, first(kWidth * 2, 1));
  set("bias", {kWidth}, first(kWidth, 100));
  set("down", {1, kWidth}, first(kWidth, 200));
  double before = 0, loss = 0;
  for (int step = 0; step < 300; ++step) {
    std::vector<float> x, y;
    for (int k = 0; k < kBatch; ++k) {
      const double a = 2 * noise(1000 + step * 64 + 2 * k) - 1, b = 2 * noise(1001 + step * 64 + 2 * k) - 1;
      x.push_back(static_cast<float>(a)), x.push_back(static_cast<float>(b));
      y.push_back(a * a + b * b < 0.5 ? 1.0f : 0.0f);
    }
    set("x", {kBatch, 2}, x), set("y", {kBatch, 1}, y);
    loss = run.run().scalar("loss");
    if (step == 0) before = loss;
    if (ranks.rank() == 0 && step % 60 == 0) std::printf("step %3d, loss %.3f\n", step, loss);
  }
  if (ranks.rank() == 0) std::printf("%d ranks: the loss fell from %.3f to %.3f\n", n, before, loss);
  return loss < before / 2 ? 0 : 1;
} catch (const Error& e) {  // the launcher then ends the other processes
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
