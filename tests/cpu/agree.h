// Shared by the tests of the CPU's compiler: a graph agrees with the f64 reference, compiled and interpreted, on one
// thread and on two, and reads nothing outside its inputs. Products and softmax are written in primitives.
#pragma once

#include <cmath>
#include <cstring>
#include <list>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "guarded.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/composites/composites.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "lightcone/verify/verify.h"
#include "random_inputs.h"

namespace lc::test {

// Compares the graph on the CPU (compiled and interpreted IR; 1 and 2 threads) with the reference interpreter.
inline void agree(const Graph& g, const std::map<std::string, std::vector<float>>& inputs, const Bindings& env = {}) {
  std::map<std::string, Value> values;
  for (NodeId id = 0; id < g.size(); ++id)
    if (g[id].op == Op::Input) {
      Value v = make_value(g[id].dtype, numbers(g[id].shape, env));
      const auto& x = inputs.at(g[id].name);
      for (std::size_t k = 0; k < v.size(); ++k) {
        if (is_float(v.dtype)) v.f[k] = x[k];
        else v.i[k] = static_cast<std::int64_t>(x[k]);
      }
      values[g[id].name] = v;
    }
  const Results want = interpret(g, values, env, Rounding::Wide, true);
  std::vector<std::vector<double>> first;
  for (const CpuOptions& o :
       {CpuOptions{.threads = 1}, CpuOptions{.threads = 2}, CpuOptions{.threads = 1, .compiler = false}}) {
    const Program p = compile(g, generic() | cpu(o));
    EXPECT_EQ(p.interpreted(), 0u);
    Context c(p);
    for (const auto& [s, v] : env)
      if (p.has_symbol(s)) c.bind(s, v);
    std::list<Guarded> buffers;
    for (const auto& [name, v] : values) {
      Guarded& b = buffers.emplace_back(v.size() * size_of(v.dtype), o.threads == 1 ? Against::Front : Against::Back);
      write_value(v, b.data());
      c.use(name, b.data(), kAnySize);
    }
    c.run();
    std::size_t which = 0;
    for (const auto& [name, v] : want.outputs) {
      const auto got = c.get_f64(name);
      ASSERT_EQ(got.size(), v.size());
      for (std::size_t k = 0; k < got.size(); ++k) {
        if (std::isnan(v.at(k))) ASSERT_TRUE(std::isnan(got[k])) << name << " " << k;
        else if (std::isinf(v.at(k))) ASSERT_EQ(got[k], v.at(k)) << name << " " << k;
        else
          ASSERT_LE(std::abs(got[k] - v.at(k)), v.error_at(k) * 4 + 1e-30)
              << name << " " << k << " want " << v.at(k) << " got " << got[k] << "\n"
              << p.graph().str();
      }
      if (o.threads == 1 && o.compiler) {
        first.push_back(got);
      } else if (o.compiler) {
        ASSERT_TRUE(got.empty() || std::memcmp(first[which].data(), got.data(), got.size() * 8) == 0)
            << "threads change bits";
      }
      ++which;
    }
  }
}

inline Tensor expand_to(Tensor t, int axis, Dim n) {
  Tensor u = t.unsqueeze(axis);
  Shape s = u.shape();
  s[static_cast<std::size_t>(axis)] = n;
  return u.expand(s);
}

inline Tensor matmul2(Tensor a, Tensor b) {  // [m, k] x [k, n]
  return prim::sum_reduce(prim::mul(expand_to(a, 1, b.extent(1)), expand_to(b.permute({1, 0}), 0, a.extent(0))), 2);
}

inline Tensor softmax(Tensor x) {
  const int last = x.rank() - 1;
  const Tensor m = expand_to(prim::max_reduce(x, last), last, x.extent(last));
  const Tensor e =
      prim::exp2(prim::mul(prim::add(x, prim::mul(m, full_like(m, -1))), full_like(x, 1.4426950408889634)));
  return prim::mul(e, prim::recip(expand_to(prim::sum_reduce(e, last), last, x.extent(last))));
}

}  // namespace lc::test
