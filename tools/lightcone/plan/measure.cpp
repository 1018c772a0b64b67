// Times that are measured on this machine: of kernels without exchanges, of messages, and of sums.
#include <algorithm>
#include <barrier>
#include <cmath>
#include <exception>
#include <functional>
#include <numeric>
#include <thread>

#include "../command.h"
#include "lightcone/base/error.h"
#include "planned.h"

namespace lc::tool {
namespace {

// The medians of one copy's kernels, which begins each run together with the others.
KernelTimes measured_copy(const Program& p, int runs, std::barrier<>& together) {
  Context c(p);
  fill(p, c);
  for (int k = 0; k < 2; ++k) c.run();
  return kernel_times(p, c, runs, [&] { together.arrive_and_wait(); });
}

// The copies' means, as long as a run of the slowest.
KernelTimes slowest(const std::vector<KernelTimes>& all) {
  const auto copies = static_cast<double>(all.size());
  KernelTimes mean = all[0];
  for (std::size_t k = 1; k < all.size(); ++k) {
    for (std::size_t id = 0; id < mean.kernel_seconds.size(); ++id)
      mean.kernel_seconds[id] += all[k].kernel_seconds[id];
    for (std::size_t run = 0; run < mean.runs.size(); ++run)
      mean.runs[run] = std::max(mean.runs[run], all[k].runs[run]);
    mean.other_seconds += all[k].other_seconds;
  }
  const double sum = std::accumulate(mean.kernel_seconds.begin(), mean.kernel_seconds.end(), 0.0);
  for (double& s : mean.kernel_seconds) s *= median(mean.runs) / std::max(sum, 1e-12);
  mean.other_seconds /= copies;
  return mean;
}

// Seconds of one call, the median of many.
template <class F>
double median_seconds(int calls, const F& f) {
  std::vector<double> all;
  for (int k = 0; k < calls; ++k) {
    const double begin = now();
    f();
    all.push_back(now() - begin);
  }
  return median(all);
}

// Every rank sends so many bytes to the next one, and gets as many.
double shift_seconds(Communicator& ranks, std::size_t bytes, int calls) {
  std::vector<int> group(static_cast<std::size_t>(ranks.size())), source;
  std::iota(group.begin(), group.end(), 0);
  for (int k = 0; k < ranks.size(); ++k) source.push_back((k + ranks.size() - 1) % ranks.size());
  const std::vector<std::byte> in(bytes);
  std::vector<std::byte> out(bytes);
  std::uint64_t tag = 0;
  const auto shift = [&] {
    ranks.run({.operation = Collective::Operation::Permute,
               .dtype = DType::U8,
               .n = bytes,
               .group = group,
               .place = ranks.rank(),
               .source = source,
               .tag = ++tag},
              in.data(), out.data());
  };
  for (int k = 0; k < calls / 10 + 1; ++k) shift();
  return median_seconds(calls, shift);
}

}  // namespace

double median(std::vector<double> v) {
  if (v.empty()) throw Error("plan", "nothing was measured");
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

KernelTimes kernel_times(const Program& p, Context& c, int runs, const std::function<void()>& before_each) {
  const std::size_t nodes = p.graph().size();
  std::vector<std::vector<double>> all(nodes);
  std::vector<double> sums, others;
  for (int k = 0; k < runs; ++k) {
    if (before_each) before_each();
    c.profile(true);
    c.run();
    const Profile found = c.profile();
    double sum = 0;
    for (const KernelProfile& kernel : found.kernels) all[kernel.node].push_back(kernel.seconds), sum += kernel.seconds;
    sums.push_back(sum), others.push_back(found.seconds - sum);
  }
  c.profile(false);
  KernelTimes t;
  t.kernel_seconds.resize(nodes);
  double sum = 0;
  for (std::size_t id = 0; id < nodes; ++id)
    if (!all[id].empty()) sum += t.kernel_seconds[id] = median(all[id]);
  // Where programs take turns on a processor, a few kernels of a run take the time of all the others' turns.
  for (double& s : t.kernel_seconds) s *= median(sums) / std::max(sum, 1e-12);
  t.other_seconds = median(others);
  t.runs = std::move(sums);
  return t;
}

KernelTimes measure_kernels(const Graph& g, const Layout& layout, int rank, int threads, int copies, int runs) {
  const auto n = static_cast<std::size_t>(copies);
  std::vector<KernelTimes> all(n);
  std::vector<std::exception_ptr> failures(n);
  std::barrier<> together(copies);
  std::vector<std::thread> running;
  for (std::size_t k = 0; k < n; ++k)
    running.emplace_back([&, k] {
      try {
        // Each copy has a program of its own, as each rank has.
        const auto alone = planned_ranks(layout.mesh().size(), rank, PlannedExchange::Pretended);
        all[k] = measured_copy(compile_rank(g, layout, alone, {.threads = threads, .runs = true}), runs, together);
      } catch (...) {
        failures[k] = std::current_exception();
        together.arrive_and_drop();
      }
    });
  for (std::thread& t : running) t.join();
  for (const std::exception_ptr& e : failures)
    if (e) std::rethrow_exception(e);
  return slowest(all);
}

double measure_sums() {
  constexpr std::size_t kElements = 1 << 18, kRows = 4;
  const std::vector<float> row(kElements, 1);
  const std::vector<const void*> rows(kRows, row.data());
  std::vector<float> sum(kElements);
  const double seconds =
      median_seconds(50, [&] { reduce_rows(DType::F32, ReduceOp::Sum, rows, sum.data(), 0, kElements); });
  return static_cast<double>(kElements * kRows * sizeof(float)) / seconds;
}

MeasuredLinks measure_links(Communicator& ranks, Communicator& short_messages, std::size_t short_bytes) {
  MeasuredLinks m;
  m.link.latency = shift_seconds(ranks, 4, 2000);
  // The slope between two sizes beyond which messages are alike.
  constexpr std::size_t kLess = 1 << 18, kMore = 1 << 22;
  const double less = shift_seconds(ranks, kLess, 200), more = shift_seconds(ranks, kMore, 50);
  m.link.seconds_per_byte = (more - less) / static_cast<double>(kMore - kLess);
  // The same bytes in many messages and in one.
  constexpr std::size_t kMessages = 64;
  const std::size_t bytes = kMessages * short_bytes;
  const double many = shift_seconds(short_messages, bytes, 500), one = shift_seconds(ranks, bytes, 500);
  m.link.seconds_per_message = std::max(0.0, many - one) / (kMessages - 1);
  m.reduced_bytes_per_second = measure_sums();
  return m;
}

}  // namespace lc::tool
