// Loops: evaluates the body's graph once per step, instead of the definition, which unrolls it.
#include <algorithm>
#include <cmath>

#include "lightcone/base/error.h"
#include "lightcone/reference/internal.h"

namespace lc {
namespace {

// Copies n elements from `at` to `to_at`, if the list is not empty.
template <class T>
void copy_part(const std::vector<T>& from, std::size_t at, std::size_t n, std::vector<T>& to, std::size_t to_at) {
  if (from.empty()) return;
  if (to.size() < to_at + n) to.resize(to_at + n);
  std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(at), n, to.begin() + static_cast<std::ptrdiff_t>(to_at));
}

Value slice_of(const Value& stacked, i64 row) {
  Value v = make_value(stacked.dtype, {stacked.shape.begin() + 1, stacked.shape.end()});
  const std::size_t n = v.size(), at = static_cast<std::size_t>(row) * n;
  copy_part(stacked.f, at, n, v.f, 0);
  copy_part(stacked.i, at, n, v.i, 0);
  copy_part(stacked.shift, at, n, v.shift, 0);
  return v;
}

class Stack {
 public:
  explicit Stack(i64 length) : length_(length) {}
  void put(i64 row, const Value& v) {
    if (all_.shape.empty()) {
      Integers s = v.shape;
      s.insert(s.begin(), length_);
      all_ = make_value(v.dtype, std::move(s));
    }
    const std::size_t n = v.size(), at = static_cast<std::size_t>(row) * n;
    copy_part(v.f, 0, n, all_.f, at);
    copy_part(v.i, 0, n, all_.i, at);
    if (!v.shift.empty()) {
      all_.shift.resize(all_.size());
      copy_part(v.shift, 0, n, all_.shift, at);
    }
  }
  Value take() { return std::move(all_); }

 private:
  i64 length_;
  Value all_;
};

bool same(const Value& a, const Value& b) {
  const auto equal = [](double x, double y) {
    return x == y ? std::signbit(x) == std::signbit(y) : std::isnan(x) && std::isnan(y);
  };
  return std::ranges::equal(a.f, b.f, equal) && a.i == b.i && a.shift == b.shift;
}

}  // namespace

std::vector<Value> looped(const LoopBody& b, Operands in, const EvalConfig& config) {
  const auto name = [&](std::size_t k) -> const std::string& { return b.graph[b.inputs[k]].name; };
  std::map<std::string, Value> given;
  for (std::size_t k = 0; k < in.size(); ++k)
    if (k < b.states || k >= b.states + b.slices) given[name(k)] = *in[k];
  std::vector<Stack> stacks(b.ys + (b.keeps ? b.states : 0), Stack(b.length));
  for (i64 step = 0; step < b.length; ++step) {
    const i64 row = b.slice_of(step);
    for (std::size_t k = b.states; k < b.states + b.slices; ++k) given[name(k)] = slice_of(*in[k], row);
    for (std::size_t k = 0; b.keeps && k < b.states; ++k) stacks[b.ys + k].put(row, given.at(name(k)));
    EvalConfig own = config;
    if (own.noise) own.noise = noise_bits(own.noise, static_cast<std::size_t>(step)) | 1;  // new rounding per step
    Results r = interpret_samples(b.graph, given, own);
    bool settled = b.slices == 0 && stacks.empty();
    for (std::size_t k = 0; k < b.states; ++k) {
      Value& next = r.outputs.at(b.graph.roots()[k].name);
      next.error.clear();
      settled = settled && same(next, given.at(name(k)));
      given[name(k)] = std::move(next);
    }
    for (std::size_t k = 0; k < b.ys; ++k) stacks[k].put(row, r.outputs.at(b.graph.roots()[b.states + k].name));
    if (settled) break;
  }
  std::vector<Value> results;
  for (std::size_t k = 0; k < b.states; ++k) results.push_back(given.at(name(k)));
  for (Stack& s : stacks) results.push_back(s.take());
  return results;
}

}  // namespace lc
