// Golden cases of casts, bitcasts and functions in one graph, computed by every compiler.
#pragma once

#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "goldens.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/ops/special/special.h"
#include "lightcone/passes/passes.h"
#include "lightcone/verify/verify.h"

namespace lc {

struct Cases {
  Graph g;
  std::map<std::string, Value> in, want;
};
// `made` builds the cases that are neither a cast nor a bitcast.
inline Cases cases_of(const std::string& file,
                      const std::function<Tensor(const std::string&, const std::vector<Tensor>&)>& made = {}) {
  Cases c;
  for (const Golden& golden : goldens(file)) {
    std::vector<Tensor> in;
    for (const Value& v : golden.in) {
      const std::string name = str_cat("x", c.in.size());
      in.push_back(c.g.input(name, Shape(v.shape.begin(), v.shape.end()), v.dtype));
      c.in[name] = v;
    }
    std::istringstream words(golden.name);
    std::string function, from, type;
    words >> function >> from >> type;
    c.g.output(golden.name, function == "cast"      ? prim::cast(in[0], type_named(type))
                            : function == "bitcast" ? bitcast(in[0], type_named(type))
                                                    : made(golden.name, in));
    c.want[golden.name] = golden.out[0];
  }
  return c;
}

inline void expect_answers(const Cases& c, const std::map<std::string, Value>& got, const char* by) {
  for (const auto& [name, want] : c.want) {
    const Value& have = got.at(name);
    ASSERT_EQ(have.dtype, want.dtype) << name << " by " << by;
    ASSERT_EQ(have.shape, want.shape) << name << " by " << by;
    for (std::size_t k = 0; k < want.size(); ++k)
      // the reference does not round to f32
      if (want.dtype == DType::F32)
        ASSERT_EQ(static_cast<float>(have.f[k]), static_cast<float>(want.f[k])) << name << "[" << k << "] by " << by;
      else if (is_float(want.dtype)) ASSERT_EQ(have.f[k], want.f[k]) << name << "[" << k << "] by " << by;
      else ASSERT_EQ(have.i[k], want.i[k]) << name << "[" << k << "] by " << by;
  }
}

inline std::map<std::string, Value> interpreted(const Cases& c, const Compiler& passes) {
  return interpret(transform(c.g, passes).graph, c.in, {}, Rounding::Storage).outputs;
}
inline std::map<std::string, Value> compiled(const Cases& c, const std::string& compiler) {
  const Compiler to = generic() | cpu({.threads = 1, .jit = {.compiler = compiler}});
  return run_values(transform(c.g, to).graph, c.in, {}).outputs;
}

}  // namespace lc
