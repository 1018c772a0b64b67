// Collectives by NCCL on one device: every one is called really, although one rank alone has nothing to exchange.
// Results are compared, in a recorded graph and outside of one.
#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>

#include "lightcone/backends/cuda/device.h"
#include "lightcone/backends/cuda/launch.h"
#include "lightcone/base/error.h"
#include "lightcone/distributed/collectives.h"
#include "lightcone/distributed/exchange.h"
#include "lightcone/distributed/nccl/nccl.h"
#include "lightcone/distributed/nccl/ranks.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "rows.h"

namespace lc::gpu_bench {
namespace {

using Operation = Collective::Operation;
namespace nccl = distributed::nccl;

void must(bool right, const std::string& what) {
  if (!right) throw Error("nccl", str_cat(what, ": the result is wrong"));
}

std::shared_ptr<Communicator> alone(const Setting& s) {
  return nccl_ranks(s.device, LaunchedRank(), {.timeout_s = 20, .alone = true});
}

Json meeting(const Setting& s) {
  const double begin = now();
  const auto first = alone(s);
  const double one = now() - begin;
  const auto second = alone(s);
  return {{"library", first->name()}, {"first_s", one}, {"second_s", now() - begin - one}};
}

Tensor apply(const Collectives& c, Operation operation, const Tensor& x) {
  switch (operation) {
    case Operation::AllReduce: return c.all_reduce(x, {"data"});
    case Operation::AllGather: return c.all_gather(x, {"data"}).squeeze(0);
    case Operation::ReduceScatter: return c.reduce_scatter(x.unsqueeze(0), {"data"});
    case Operation::AllToAll: return c.all_to_all(x.unsqueeze(0), {"data"}).squeeze(0);
    case Operation::Broadcast: return c.broadcast(x, {"data"});
    default: return c.shift(x, "data", 1);
  }
}

// A program in which the collective stands between two kernels: its second run records a graph, the third replays it.
void run_program(const Setting& s, const std::shared_ptr<Communicator>& rank, Operation operation, std::int64_t n) {
  const Collectives c(Mesh({{"data", 1}}), rank);
  Graph g;
  const Tensor x = g.input("x", {n});
  g.output("y", add(apply(c, operation, mul(x, 2.0)), 1.0));
  Context run(compile(g, generic() | backends::gpu::compiler(s.device)));
  std::vector<float> in(static_cast<std::size_t>(n));
  for (int round = 0; round < 5; ++round) {
    for (std::size_t k = 0; k < in.size(); ++k)
      in[k] = static_cast<float>((k * 7 + static_cast<std::size_t>(round)) % 1000);
    const std::vector<float> y = run.set("x", in).run().get("y");
    for (std::size_t k = 0; k < in.size(); ++k) must(y[k] == 2 * in[k] + 1, str_cat(name(operation), ", run ", round));
  }
}

// Seconds of one collective of n numbers, started by itself.
double eager_seconds(const Setting& s, const Communicator& rank, Operation operation, std::int64_t n) {
  distributed::Call call;
  call.operation = operation, call.group = {0};
  if (operation == Operation::Permute) call.source = {0};
  const auto kernel = rank.on_device()->kernel(call, DType::F32, Dim(n));
  const auto bytes = static_cast<std::size_t>(n) * sizeof(float);
  const auto in = s.device->allocate(bytes), out = s.device->allocate(bytes);
  const BufferSlice from{in.get(), 0};
  const Launch l{kernel.get(), {&from, 1}, {out.get(), 0}, {&n, 1}, {}, false};
  return time_of(s, [&] { s.device->launch(l); });
}

// The same in a graph of many.
double recorded_seconds(const Setting& s, const std::shared_ptr<Communicator>& rank, Operation operation,
                        std::int64_t n) {
  constexpr int kMany = 16;
  const Collectives c(Mesh({{"data", 1}}), rank);
  Graph g;
  Tensor x = g.input("x", {n});
  for (int k = 0; k < kMany; ++k) x = apply(c, operation, x);
  g.output("y", x);
  Context run(compile(g, generic() | backends::gpu::compiler(s.device)));
  run.set("x", std::vector<float>(static_cast<std::size_t>(n), 1.0f));
  for (int k = 0; k < 3; ++k) run.run();
  return time_of(s, [&] { run.run(); }) / kMany;
}

Json collective(const Setting& s, Operation operation) {
  const auto rank = alone(s);
  for (const std::int64_t n : {std::int64_t{1}, std::int64_t{1000}, std::int64_t{s.tiny ? 5000 : 1 << 20}})
    run_program(s, rank, operation, n);
  const std::int64_t small = 256, large = s.tiny ? 4096 : 1 << 24;
  const double t = eager_seconds(s, *rank, operation, large);
  return {{"us_small", 1e6 * eager_seconds(s, *rank, operation, small)},
          {"us_small_recorded", 1e6 * recorded_seconds(s, rank, operation, small)},
          {"us_large", 1e6 * t},
          {"gbytes_per_s", 8e-9 * static_cast<double>(large) / t}};
}

// Sums and maxima of each type, and moves of the others: as many bytes arrive as were sent, and no more.
Json types(const Setting& s) {
  const auto rank = alone(s);
  constexpr std::int64_t kElements = 1003;
  int count = 0, refused = 0;
  for (const DTypeInfo& t : kDTypes)
    for (const auto operation :
         {Operation::AllReduce, Operation::ReduceScatter, Operation::AllGather, Operation::AllToAll})
      for (const ReduceOp r : {ReduceOp::Sum, ReduceOp::Max}) {
        distributed::Call call;
        call.operation = operation, call.reduction = r, call.group = {0};
        std::shared_ptr<Kernel> kernel;
        try {
          kernel = rank->on_device()->kernel(call, t.dtype, Dim(kElements));
        } catch (const Error&) {
          ++refused;
          continue;
        }
        const std::size_t bytes = kElements * t.bytes, guard = 64;
        std::vector<std::byte> in(bytes + guard), out(bytes + guard);
        for (std::size_t k = 0; k < bytes; ++k)
          in[k] = static_cast<std::byte>(k % 61 % (t.dtype == DType::Bool ? 2 : 61));
        const auto from = s.device->allocate(in.size()), to = s.device->allocate(in.size());
        s.device->copy_in({from.get(), 0}, in.data(), in.size());
        const BufferSlice at{from.get(), 0};
        s.device->launch({kernel.get(), {&at, 1}, {to.get(), 0}, {&kElements, 1}, {}, false});
        s.device->copy_out(out.data(), {to.get(), 0}, out.size());
        must(in == out, str_cat(name(operation), " of ", t.name));
        ++count;
      }
  return {{"right", count}, {"refused", refused}};
}

// The functions that one rank of a program does not need: a second communicator, its end, an abort.
Json life(const Setting& s) {
  const auto device = std::dynamic_pointer_cast<backends::cuda::CudaDevice>(s.device);
  const nccl::Library& library = nccl::Library::open();
  const nccl::Api& api = library.api();
  const auto settle = [&](nccl::Handle* handle, nccl::Result r, const char* doing) {
    for (const double begin = now(); r == nccl::Result::InProgress && now() - begin < 20;) {
      if (api.state(handle, &r) != nccl::Result::Success) break;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    if (r != nccl::Result::Success) throw Error("nccl", str_cat(doing, ": ", library.words(r)));
  };
  device->stream()->context().enter();
  const auto create = [&](nccl::Handle*& to) {
    nccl::UniqueId id;
    nccl::Config config;
    if (api.unique_id(&id) != nccl::Result::Success) throw Error("nccl", "no id");
    const nccl::Result created = api.create(&to, 1, id, 0, &config);
    settle(to, created, "create");
  };
  nccl::Handle *world = nullptr, *part = nullptr;
  create(world);
  const double begin = now();
  create(part);
  const double second = now() - begin;
  settle(part, api.finalize(part), "finalize");
  if (api.destroy(part) != nccl::Result::Success) throw Error("nccl", "destroy");
  const double aborting = now();
  if (api.abort(world) != nccl::Result::Success) throw Error("nccl", "abort");
  return {{"second_s", second}, {"abort_s", now() - aborting}};
}

// Messages to oneself, which NCCL takes in a group: several of different lengths, in the order in which they were sent.
Json messages(const Setting& s) {
  const auto device = std::dynamic_pointer_cast<backends::cuda::CudaDevice>(s.device);
  nccl::Ranks ranks(nccl::Library::open(), device, 20);
  ranks.join(ranks.unique_id(), 0, 1);
  const std::vector<std::size_t> lengths{1, 1000, 7, s.tiny ? 5000u : std::size_t{8} << 20, 33};
  const std::size_t bytes = std::accumulate(lengths.begin(), lengths.end(), std::size_t{0}), guard = 64;
  const auto from = s.device->allocate(bytes + guard), to = s.device->allocate(bytes + guard);
  std::vector<std::byte> in(bytes + guard), out(bytes + guard);
  for (std::size_t k = 0; k < bytes; ++k) in[k] = static_cast<std::byte>(k % 251);
  s.device->copy_in({from.get(), 0}, in.data(), in.size());
  s.device->copy_in({to.get(), 0}, out.data(), out.size());
  const auto exchange = [&] {
    device->stream()->ask("exchange messages",
                          [&](const backends::cuda::api::Driver&, backends::cuda::api::Stream* stream) {
                            ranks.enqueue(ranks.world(), [&](const nccl::Api& a) {
                              nccl::Address source = backends::cuda::address_of({from.get(), 0}),
                                            target = backends::cuda::address_of({to.get(), 0});
                              nccl::Result r = a.begin_group();
                              for (const std::size_t n : lengths) {
                                if (r == nccl::Result::Success)
                                  r = a.send(source, n, nccl::Type::U8, 0, ranks.world(), stream);
                                if (r == nccl::Result::Success)
                                  r = a.receive(target, n, nccl::Type::U8, 0, ranks.world(), stream);
                                source += n, target += n;
                              }
                              const nccl::Result ended = a.end_group();
                              return r == nccl::Result::Success ? ended : r;
                            });
                            return backends::cuda::api::Result::Success;
                          });
  };
  exchange();
  s.device->copy_out(out.data(), {to.get(), 0}, out.size());
  must(in == out, "messages");
  return {{"messages", lengths.size()}, {"us", 1e6 * time_of(s, exchange)}};
}

}  // namespace

std::vector<Row> nccl_rows() {
  std::vector<Row> rows{{"nccl ranks meet", meeting},
                        {"nccl second, end, abort", life},
                        {"nccl types", types},
                        {"nccl messages", messages}};
  for (const auto operation : {Operation::AllReduce, Operation::AllGather, Operation::ReduceScatter,
                               Operation::AllToAll, Operation::Broadcast, Operation::Permute})
    rows.push_back({str_cat("nccl ", name(operation)), [=](const Setting& s) { return collective(s, operation); }});
  return rows;
}

}  // namespace lc::gpu_bench
