#include "lightcone/ops/loop.h"

#include <algorithm>

#include "lightcone/ops/ops.h"

namespace lc {
namespace {

std::string described(const Tensor& t) { return cat(name(t.dtype()), " ", str(t.shape())); }

// How many steps there are.
std::int64_t length_of(const std::vector<Tensor>& xs, const ScanOptions& o) {
  std::optional<std::int64_t> length = o.length;
  if (length && *length < 0) throw Error("scan", cat("a length of ", *length));
  for (const Tensor& x : xs) {
    if (x.rank() == 0) throw Error("scan", "xs have an axis of steps, axis 0: a scalar has none");
    const auto n = x.extent(0).constant();
    if (!n)
      throw Error("scan", cat("the length of ", str(x.shape()), " is not known when the graph is built: axis 0 is ",
                              x.extent(0), ", and has to be a number"));
    if (length && *length != *n)
      throw Error("scan", o.length && &x == xs.data()
                              ? cat("the length is ", *length, ", and axis 0 of ", str(x.shape()), " is ", *n)
                              : cat("xs differ in their length: ", str(xs[0].shape()), " and ", str(x.shape())));
    length = *n;
  }
  if (!length) throw Error("scan", "without xs it needs a length: ScanOptions{.length = n}");
  return *length;
}

// The next states have the types of those before.
void check_state(const std::vector<Tensor>& before, const std::vector<Tensor>& next) {
  if (before.size() != next.size())
    throw Error("scan", cat("there are ", before.size(), " states, and the function gives ", next.size()));
  for (std::size_t k = 0; k < before.size(); ++k) {
    if (!next[k].defined()) throw Error("scan", cat("the function gives no state ", k));
    if (before[k].shape() == next[k].shape() && before[k].dtype() == next[k].dtype()) continue;
    throw Error("scan", cat("state ", k, " is ", described(before[k]), ", and the function makes it ",
                            described(next[k]), ": a state keeps its shape and its dtype"));
  }
}

// Every step gives the same kind of ys.
void check_ys(const std::vector<Tensor>& first, const std::vector<Tensor>& ys) {
  if (first.size() != ys.size())
    throw Error("scan", cat("a step gives ", first.size(), " ys and another one ", ys.size()));
  for (std::size_t k = 0; k < ys.size(); ++k) {
    if (!ys[k].defined()) throw Error("scan", cat("the function gives no y ", k));
    if (first[k].shape() != ys[k].shape() || first[k].dtype() != ys[k].dtype())
      throw Error("scan",
                  cat("y ", k, " is ", described(first[k]), " in one step and ", described(ys[k]), " in another"));
  }
}

Scanned of_no_steps(const ScanBody& f, const std::vector<Tensor>& state, const std::vector<Tensor>& xs) {
  std::vector<Tensor> x;
  for (const Tensor& t : xs) {
    Shape s = t.shape();
    s.erase(s.begin());
    x.push_back(full(t.graph(), s, 0, t.dtype()));
  }
  const Scanned step = f(state, x);
  check_state(state, step.state);
  check_ys(step.ys, step.ys);
  Scanned r{state, {}};
  for (const Tensor& y : step.ys) {
    Shape s = y.shape();
    s.insert(s.begin(), 0);
    r.ys.push_back(full(y.graph(), s, 0, y.dtype()));
  }
  return r;
}

}  // namespace

Scanned scan(const ScanBody& f, std::vector<Tensor> state, std::vector<Tensor> xs, const ScanOptions& o,
             const Tensor::At& at) {
  const OpScope scope("scan", at);
  const std::int64_t n = length_of(xs, o);
  if (n == 0) return of_no_steps(f, state, xs);
  std::vector<std::vector<Tensor>> ys;  // of each step, in the order in which they are taken
  for (std::int64_t step = 0; step < n; ++step) {
    const std::int64_t k = o.reverse ? n - 1 - step : step;
    std::vector<Tensor> x;
    for (const Tensor& t : xs) x.push_back(t.slice(0, k, k + 1).squeeze(0));
    Scanned now = f(state, x);
    check_state(state, now.state);
    check_ys(ys.empty() ? now.ys : ys[0], now.ys);
    state = std::move(now.state);
    ys.push_back(std::move(now.ys));
  }
  if (o.reverse) std::reverse(ys.begin(), ys.end());
  Scanned r{std::move(state), {}};
  for (std::size_t k = 0; k < ys[0].size(); ++k) {
    std::vector<Tensor> parts;
    for (const auto& y : ys) parts.push_back(y[k]);
    r.ys.push_back(stack(parts, 0));
  }
  return r;
}

}  // namespace lc
