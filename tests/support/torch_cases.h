// Cases with values, dtypes and gradients that tools/make_vocabulary_goldens.py computed with torch. They are compared
// with the reference interpreter and with compiled programs.
#pragma once

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lightcone/autograd/autograd.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/reference/interpreter.h"
#include "lightcone/verify/verify.h"
#include "on_device.h"
#include "paths.h"

namespace lc {

struct TorchCase {
  std::string name;
  std::vector<Value> in, out, slopes;  // slopes: gradients of the floating inputs, if torch has a derivative
};

inline Value torch_value(std::istringstream& s) {
  std::string type, word;
  s >> type;
  std::vector<std::int64_t> shape;
  std::getline(s, word, '[');
  std::getline(s, word, ']');
  std::istringstream extents(word);
  for (std::int64_t n; extents >> n;) shape.push_back(n);
  DType dtype = DType::F32;
  for (const DTypeInfo& d : kDTypes)
    if (d.name == type) dtype = d.dtype;
  Value v = make_value(dtype, shape);
  for (std::size_t k = 0; k < v.size(); ++k) {
    s >> word;
    if (v.dtype == DType::F64) v.f[k] = std::strtod(word.c_str(), nullptr);
    else if (is_float(v.dtype)) v.f[k] = std::strtof(word.c_str(), nullptr);
    else v.i[k] = std::stoll(word);
  }
  return v;
}

inline std::vector<TorchCase> torch_cases(const std::string& file) {
  std::ifstream f(std::string(paths::kSource) + "/tests/goldens/" + file);
  std::vector<TorchCase> all;
  for (std::string line; std::getline(f, line);) {
    std::istringstream s(line);
    std::string kind;
    s >> kind;
    if (kind == "case") all.push_back({line.substr(5), {}, {}, {}});
    else (kind == "in" ? all.back().in : kind == "out" ? all.back().out : all.back().slopes).push_back(torch_value(s));
  }
  return all;
}

// Builds the outputs of a case. A case "name @ variant" uses the builder of "name".
using TorchBuild = std::function<std::vector<Tensor>(Graph& g, const std::vector<Tensor>& t)>;
using TorchBuilders = std::map<std::string, TorchBuild>;

// Tolerances of results, relative to each element and (of_largest) to the largest element of the tensor.
struct Closeness {
  double f64 = 1e-12, f32 = 1e-5, slopes = 1e-9, of_largest = 0;
};

class TorchBatch {
 public:
  TorchBatch(const TorchBuilders& builders, Closeness close) : builders_(builders), close_(close) {}

  const Graph& graph() const { return g_; }
  void add(const TorchCase& c, std::set<std::string>& used, bool slopes = true) {
    const std::string key = c.name.substr(0, c.name.find(" @"));
    const auto build = builders_.find(key);
    ASSERT_TRUE(build != builders_.end()) << "no builder for '" << c.name << "'";
    used.insert(key);
    std::vector<Tensor> in, wrt;
    for (const Value& v : c.in) {
      const std::string name = str_cat(c.name, " in ", in.size());
      in.push_back(g_.input(name, Shape(v.shape.begin(), v.shape.end()), v.dtype));
      if (is_float(v.dtype)) wrt.push_back(in.back());
      inputs_[name] = v;
    }
    const std::vector<Tensor> out = build->second(g_, in);
    ASSERT_EQ(out.size(), c.out.size()) << c.name;
    for (std::size_t k = 0; k < out.size(); ++k) expect(str_cat(c.name, " out ", k), out[k], c.out[k], false);
    if (c.slopes.empty() || !slopes) return;
    std::vector<Tensor> results, cotangents;
    for (const Tensor& y : out)
      if (is_float(y.dtype())) results.push_back(y), cotangents.push_back(cotangent(y));
    const std::vector<Tensor> d = vjp(results, wrt, cotangents, {.allow_unused = true});
    ASSERT_EQ(d.size(), c.slopes.size()) << c.name;
    for (std::size_t k = 0; k < d.size(); ++k) expect(str_cat(c.name, " d ", k), d[k], c.slopes[k], true);
  }

  void check() const {
    const auto reference = interpret(g_, inputs_, {}, Rounding::Storage).outputs;
    const auto compiled =
        run_values(transform(g_, generic() | test::device({.threads = 2})).graph, inputs_, {}).outputs;
    for (const auto& [name, e] : expected_) {
      EXPECT_EQ(difference(e, reference.at(name)), "") << "reference: " << name;
      EXPECT_EQ(difference(e, compiled.at(name)), "") << "compiled: " << name;
    }
  }

 private:
  struct Expected {
    Value want;
    bool slope;
  };

  void expect(const std::string& name, const Tensor& t, const Value& want, bool slope) {
    g_.output(name, t);
    expected_[name] = {want, slope};
  }
  // Element k is ((7 k + 3) mod 11 - 5) / 4, as in the script.
  static Tensor cotangent(const Tensor& t) {
    const Dim n = product(t.shape());
    const Tensor k = t.graph().index({n}, (Dim::index(0, n) * 7 + 3) % 11 - 5, t.dtype());
    return (k / 4.0).reshape(t.shape());
  }
  double tolerance(DType t) const {
    switch (t) {
      case DType::F64: return close_.f64;
      case DType::F32: return close_.f32;
      case DType::F16: return 0x1p-10;
      case DType::BF16: return 0x1p-7;
      default: return 0;
    }
  }
  std::string difference(const Expected& e, const Value& got) const {
    const Value& want = e.want;
    if (want.shape != got.shape) return "another shape";
    if (want.dtype != got.dtype) return str_cat(name(got.dtype), ", not ", name(want.dtype));
    double largest = 0;
    for (std::size_t k = 0; k < want.size(); ++k)
      if (std::isfinite(want.at(k))) largest = std::max(largest, std::abs(want.at(k)));
    const double part = e.slope && want.dtype == DType::F64 ? close_.slopes : tolerance(want.dtype);
    const double share = e.slope ? std::max(close_.of_largest, 1.0) : close_.of_largest;
    for (std::size_t k = 0; k < want.size(); ++k) {
      const double w = want.at(k), g = got.at(k);
      const bool same = !is_float(want.dtype) ? want.i[k] == got.i[k]
                        : !std::isfinite(w)   ? std::isnan(w) ? std::isnan(g) : w == g
                                              : std::abs(w - g) <= part * (std::abs(w) + share * largest) + 1e-300;
      if (!same) return str_cat("[", k, "] is ", g, ", not ", w);
    }
    return {};
  }

  const TorchBuilders& builders_;
  Closeness close_;
  Graph g_;
  std::map<std::string, Value> inputs_;
  std::map<std::string, Expected> expected_;
};

// Checks all cases of a file. Some dozens share a graph, because the system compiler starts once per graph.
inline void hold_against_torch(const std::string& file, const TorchBuilders& builders, Closeness close = {},
                               std::size_t at_once = 60) {
  const std::vector<TorchCase> all = torch_cases(file);
  ASSERT_FALSE(all.empty()) << file;
  std::set<std::string> used;
  for (std::size_t at = 0; at < all.size();) {
    TorchBatch b(builders, close);
    for (const std::size_t end = std::min(all.size(), at + at_once); at < end; ++at) {
      try {
        b.add(all[at], used);
      } catch (const std::exception& e) {
        ADD_FAILURE() << all[at].name << ": " << e.what();
      }
    }
    b.check();
  }
  for (const auto& [name, build] : builders) EXPECT_TRUE(used.contains(name)) << "no case asks for '" << name << "'";
}

// Checks the same graphs, compiled with every pass, against the reference on random numbers with NaN, infinities and
// zeros of both signs. Returns how many elements were compared.
inline std::size_t verify_cases(const std::string& file, const TorchBuilders& builders, std::size_t at_once = 80) {
  const std::vector<TorchCase> all = torch_cases(file);
  std::set<std::string> used;
  std::size_t elements = 0;
  for (std::size_t at = 0; at < all.size();) {
    TorchBatch b(builders, {});
    for (const std::size_t end = std::min(all.size(), at + at_once); at < end; ++at) b.add(all[at], used, false);
    const VerifyReport r = verify(b.graph(), generic() | test::device({.threads = 2}), {.trials = 2, .seed = 7});
    EXPECT_TRUE(r.ok()) << r.str();
    elements += r.passes.back().elements;
  }
  return elements;
}

}  // namespace lc
