// Edge cases give PyTorch's answers (tests/goldens/edges.txt): 64-bit integers beside numbers, axes of a scalar, slopes
// at zero, products that overflow in the middle.
//
// tools/make_edges_goldens.py makes the goldens.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <sstream>

#include "golden_cases.h"
#include "lightcone/autograd/autograd.h"
#include "lightcone/backends/cpu/jit/llvm.h"
#include "lightcone/ops/functional/functional.h"
#include "lightcone/ops/indexing/indexing.h"
#include "lightcone/ops/linalg/linalg.h"

using namespace lc;

namespace {

using i64 = std::int64_t;
using Outs = std::vector<Tensor>;

Outs both(const Extreme& e) { return {e.values, e.indices}; }
Outs both(const Sorted& s) { return {s.values, s.indices}; }

// Returns the gradient of sum(y * (1, 2, ...)) with respect to x.
Tensor slope(const Tensor& y, const Tensor& x) {
  const Tensor t = y.reshape({*product(y.shape()).constant()});
  const Tensor weights = prim::cast(arange(t, t.extent(0), DType::F64), t.dtype()) + 1.0;
  return gradients(sum(t * weights), {x})[0];
}

// clang-format off
const std::map<std::string, std::function<Tensor(const Tensor&, i64, i64)>> kBesideNumbers{
    {"clamp", [](const Tensor& t, i64 a, i64 b) { return clamp(t, a, b); }},
    {"hardtanh", [](const Tensor& t, i64 a, i64 b) { return hardtanh(t, a, b); }},
    {"clamp_min", [](const Tensor& t, i64 a, i64) { return clamp_min(t, a); }},
    {"clamp_max", [](const Tensor& t, i64 a, i64) { return clamp_max(t, a); }},
    {"threshold", [](const Tensor& t, i64 a, i64 b) { return threshold(t, a, b); }},
    {"index_fill", [](const Tensor& t, i64 a, i64) { return index_fill(t, 0, arange(t, 1, 4, 2), a); }},
    {"scatter", [](const Tensor& t, i64 a, i64) { return scatter(t, 0, arange(t, 1, 4, 2), a); }},
    {"masked_fill", [](const Tensor& t, i64 a, i64) { return masked_fill(t, t > 7, a); }},
    {"pad", [](const Tensor& t, i64 a, i64) { return pad(t, {1, 2}, PadMode::Constant, a); }},
    {"where", [](const Tensor& t, i64 a, i64) { return where(t > 7, t, a); }},
    {"lt", [](const Tensor& t, i64 a, i64) { return lt(t, a); }}, {"le", [](const Tensor& t, i64 a, i64) { return le(t, a); }},
    {"gt", [](const Tensor& t, i64 a, i64) { return gt(t, a); }}, {"ge", [](const Tensor& t, i64 a, i64) { return ge(t, a); }},
    {"eq", [](const Tensor& t, i64 a, i64) { return eq(t, a); }}, {"ne", [](const Tensor& t, i64 a, i64) { return ne(t, a); }},
    {"add", [](const Tensor& t, i64 a, i64) { return add(t, a); }}, {"sub", [](const Tensor& t, i64 a, i64) { return sub(t, a); }},
    {"mul", [](const Tensor& t, i64 a, i64) { return mul(t, a); }},
    {"floor_divide", [](const Tensor& t, i64 a, i64) { return floor_divide(t, a); }},
    {"remainder", [](const Tensor& t, i64 a, i64) { return remainder(t, a); }},
    {"fmod", [](const Tensor& t, i64 a, i64) { return fmod(t, a); }},
    {"amax", [](const Tensor& t, i64, i64) { return amax(t); }}, {"amin", [](const Tensor& t, i64, i64) { return amin(t); }},
    {"argmax", [](const Tensor& t, i64, i64) { return argmax(t); }}, {"argmin", [](const Tensor& t, i64, i64) { return argmin(t); }},
    {"sort", [](const Tensor& t, i64, i64) { return sort(t, 0).values; }}, {"argsort", [](const Tensor& t, i64, i64) { return argsort(t, 0); }},
    {"cummax", [](const Tensor& t, i64, i64) { return cummax(t, 0).values; }}, {"cummin", [](const Tensor& t, i64, i64) { return cummin(t, 0).values; }},
    {"median", [](const Tensor& t, i64, i64) { return median(t); }}, {"abs", [](const Tensor& t, i64, i64) { return abs(t); }},
    {"sign", [](const Tensor& t, i64, i64) { return sign(t); }}, {"neg", [](const Tensor& t, i64, i64) { return -t; }},
    {"square", [](const Tensor& t, i64, i64) { return square(t); }},
};

Tensor one(const Tensor& t) { return arange(t, 1); }
Tensor zero(const Tensor& t) { return one(t).reshape({}); }
const std::map<std::string, std::function<Outs(const Tensor&, int)>> kAxes{
    {"sum", [](const Tensor& x, int d) { return Outs{sum(x, d)}; }}, {"mean", [](const Tensor& x, int d) { return Outs{mean(x, d)}; }},
    {"prod", [](const Tensor& x, int d) { return Outs{prod(x, d)}; }}, {"amax", [](const Tensor& x, int d) { return Outs{amax(x, d)}; }},
    {"amin", [](const Tensor& x, int d) { return Outs{amin(x, d)}; }}, {"max", [](const Tensor& x, int d) { return both(max(x, d)); }},
    {"min", [](const Tensor& x, int d) { return both(min(x, d)); }}, {"argmax", [](const Tensor& x, int d) { return Outs{argmax(x, d)}; }},
    {"argmin", [](const Tensor& x, int d) { return Outs{argmin(x, d, true)}; }}, {"any", [](const Tensor& x, int d) { return Outs{any(x, d)}; }},
    {"all", [](const Tensor& x, int d) { return Outs{all(x, d)}; }}, {"var", [](const Tensor& x, int d) { return Outs{var(x, d, 0)}; }},
    {"std", [](const Tensor& x, int d) { return Outs{stddev(x, d, 0)}; }}, {"norm", [](const Tensor& x, int d) { return Outs{vector_norm(x, 3, d)}; }},
    {"logsumexp", [](const Tensor& x, int d) { return Outs{logsumexp(x, d)}; }}, {"softmax", [](const Tensor& x, int d) { return Outs{softmax(x, d)}; }},
    {"log_softmax", [](const Tensor& x, int d) { return Outs{log_softmax(x, d)}; }}, {"softmin", [](const Tensor& x, int d) { return Outs{softmin(x, d)}; }},
    {"cumsum", [](const Tensor& x, int d) { return Outs{cumsum(x, d)}; }}, {"cumprod", [](const Tensor& x, int d) { return Outs{cumprod(x, d)}; }},
    {"cummax", [](const Tensor& x, int d) { return both(cummax(x, d)); }}, {"cummin", [](const Tensor& x, int d) { return both(cummin(x, d)); }},
    {"logcumsumexp", [](const Tensor& x, int d) { return Outs{logcumsumexp(x, d)}; }},
    {"gather", [](const Tensor& x, int d) { return Outs{gather(x, d, zero(x))}; }}, {"gather_row", [](const Tensor& x, int d) { return Outs{gather(x, d, one(x) * i64{0})}; }},
    {"index_select", [](const Tensor& x, int d) { return Outs{index_select(x, d, one(x))}; }},
    {"index_select_number", [](const Tensor& x, int d) { return Outs{index_select(x, d, zero(x))}; }},
    {"scatter", [](const Tensor& x, int d) { return Outs{scatter(x, d, zero(x), x + 1)}; }}, {"scatter_value", [](const Tensor& x, int d) { return Outs{scatter(x, d, zero(x), 5.0)}; }},
    {"scatter_add", [](const Tensor& x, int d) { return Outs{scatter_add(x, d, zero(x), x)}; }},
    {"scatter_reduce", [](const Tensor& x, int d) { return Outs{scatter_reduce(x, d, zero(x), x + 1, "amax")}; }},
    {"index_add", [](const Tensor& x, int d) { return Outs{index_add(x, d, one(x), x)}; }}, {"index_copy", [](const Tensor& x, int d) { return Outs{index_copy(x, d, one(x), x + 1)}; }},
    {"index_fill", [](const Tensor& x, int d) { return Outs{index_fill(x, d, one(x), 7.0)}; }},
    {"index_reduce", [](const Tensor& x, int d) { return Outs{index_reduce(x, d, one(x), x + 1, "amax")}; }},
    {"sort", [](const Tensor& x, int d) { return both(sort(x, d)); }}, {"argsort", [](const Tensor& x, int d) { return Outs{argsort(x, d)}; }},
    {"topk", [](const Tensor& x, int d) { return both(topk(x, 1, d)); }}, {"kthvalue", [](const Tensor& x, int d) { return both(kthvalue(x, 1, d)); }},
    {"mode", [](const Tensor& x, int d) { return both(mode(x, d)); }}, {"median", [](const Tensor& x, int d) { return both(median(x, d)); }},
    {"nanmedian", [](const Tensor& x, int d) { return both(nanmedian(x, d)); }}, {"quantile", [](const Tensor& x, int d) { return Outs{quantile(x, 0.5, d)}; }},
    {"nanquantile", [](const Tensor& x, int d) { return Outs{nanquantile(x, 0.25, d)}; }}, {"flatten", [](const Tensor& x, int d) { return Outs{flatten(x, d, d)}; }},
    {"movedim", [](const Tensor& x, int d) { return Outs{movedim(x, d, d)}; }}, {"stack", [](const Tensor& x, int d) { return Outs{stack({x, x}, d)}; }},
    {"transpose", [](const Tensor& x, int d) { return Outs{x.transpose(d, d)}; }}, {"unsqueeze", [](const Tensor& x, int d) { return Outs{x.unsqueeze(d)}; }},
    {"squeeze", [](const Tensor& x, int d) { return Outs{x.squeeze(d)}; }}, {"flip", [](const Tensor& x, int d) { return Outs{x.flip(d)}; }},
    {"unfold", [](const Tensor& x, int d) { return Outs{x.unfold(d, 1, 1)}; }}, {"normalize", [](const Tensor& x, int d) { return Outs{normalize(x, 2, d)}; }},
    {"cosine_similarity", [](const Tensor& x, int d) { return Outs{cosine_similarity(x, x + 1, d)}; }}, {"vecdot", [](const Tensor& x, int d) { return Outs{linalg::vecdot(x, x, d)}; }},
    {"count_nonzero", [](const Tensor& x, int d) { return Outs{count_nonzero(x, d)}; }}, {"nansum", [](const Tensor& x, int d) { return Outs{nansum(x, d)}; }},
    {"nanmean", [](const Tensor& x, int d) { return Outs{nanmean(x, d)}; }},
    {"aminmax", [](const Tensor& x, int d) { const auto [low, high] = aminmax(x, d); return Outs{low, high}; }},
};
// clang-format on

double parameter(const std::string& word) { return real_of<double>(word).value(); }

Outs made(const std::string& name, const Tensor& x) {
  std::istringstream words(name);
  std::string what, a, b;
  words >> what >> a >> b;
  if (what == "cast") return {prim::cast(x, type_named(b))};
  if (what.starts_with("axis_")) return kAxes.at(what.substr(5))(x, std::stoi(a));
  if (what == "square_bool") return {square(x)};
  if (what.starts_with("cov_row")) return {cov(x)};
  if (what == "corrcoef_row") return {corrcoef(x)};
  if (what == "norm_slope") return {slope(vector_norm(x, parameter(a), {1}), x)};
  if (what == "normalize_slope") return {slope(normalize(x, parameter(a), 1), x)};
  if (what == "cdist_slope") return {slope(cdist(x, stop_gradient(x.slice(0, 0, 2)), parameter(a)), x)};
  if (what == "prod") return {prod(x, 0)};
  if (what == "cumprod") return {cumprod(x, 0)};
  if (what == "prod_slope") return {slope(prod(x, 0), x)};
  return {kBesideNumbers.at(what)(x, a.empty() ? 0 : std::stoll(a), b.empty() ? 0 : std::stoll(b))};
}

struct Asked {
  Graph g;
  std::map<std::string, Value> in, want;
};
// Collects the golden cases whose names satisfy `wanted`.
Asked asked(const std::function<bool(const std::string&)>& wanted) {
  Asked all;
  for (const Golden& golden : goldens("edges.txt")) {
    if (!wanted(golden.name)) continue;
    const std::string n = str_cat(all.in.size(), " ", golden.name);
    const Value& v = golden.in.at(0);
    all.in["x" + n] = v;
    const Outs outs = made(golden.name, all.g.input("x" + n, Shape(v.shape.begin(), v.shape.end()), v.dtype));
    EXPECT_EQ(outs.size(), golden.out.size()) << golden.name;
    for (std::size_t k = 0; k < outs.size(); ++k) {
      all.g.output(str_cat(n, " ", k), outs[k]);
      all.want[str_cat(n, " ", k)] = golden.out[k];
    }
  }
  return all;
}

void expect(const Asked& a, const std::map<std::string, Value>& got, const char* by, double f32, double f64,
            double least) {
  for (const auto& [name, want] : a.want) {
    const Value& have = got.at(name);
    ASSERT_EQ(have.dtype, want.dtype) << name << " by " << by;
    ASSERT_EQ(have.shape, want.shape) << name << " by " << by;
    for (std::size_t k = 0; k < want.size(); ++k) {
      if (!is_float(want.dtype)) {
        EXPECT_EQ(have.i[k], want.i[k]) << name << "[" << k << "] by " << by;
        continue;
      }
      const double w = want.f[k], h = want.dtype == DType::F32 ? static_cast<float>(have.f[k]) : have.f[k];
      const double near = least + (want.dtype == DType::F64 ? f64 : f32) * std::fabs(w);
      EXPECT_TRUE(h == w || (std::isnan(h) && std::isnan(w)) || std::fabs(h - w) <= near)
          << name << "[" << k << "] by " << by << ": " << h << ", not " << w;
    }
  }
}

void hold(const std::function<bool(const std::string&)>& wanted, double f32 = 0, double f64 = 0, double least = 0) {
  const Asked a = asked(wanted);
  ASSERT_GE(a.want.size(), 5u);
  expect(a, interpret(a.g, a.in, {}, Rounding::Storage).outputs, "the reference", f32, f64, least);
  const auto by = [&](const char* compiler) {
    const Compiler to = generic() | cpu({.threads = 1, .jit = {.compiler = compiler}});
    return run_values(transform(a.g, to).graph, a.in, {}).outputs;
  };
  expect(a, by("none"), "the kernel IR's interpreter", f32, f64, least);
  if (!backends::cpu::find_llvm().path.empty()) expect(a, by("llvm"), "LLVM", f32, f64, least);
  if (const std::string found = backends::cpu::find_compiler(); !found.empty() && found != backends::cpu::kLlvm)
    expect(a, by(""), "the C compiler", f32, f64, least);
}

auto begins(std::initializer_list<const char*> words) {
  return [all = std::vector<std::string>(words.begin(), words.end())](const std::string& name) {
    for (const std::string& w : all)
      if (name.starts_with(w)) return true;
    return false;
  };
}

}  // namespace

TEST(Edges, NumbersBesideIntegersOf64Bits) {
  hold([](const std::string& name) { return kBesideNumbers.contains(name.substr(0, name.find(' '))); });
}
TEST(Edges, IntegersAreRoundedOnceToFloats) { hold(begins({"cast "})); }
TEST(Edges, AxesOfANumber) { hold(begins({"axis_", "square_bool", "cov_row", "corrcoef_row"}), 2e-6); }
TEST(Edges, SlopesOfNormsAtZero) { hold(begins({"norm_slope", "normalize_slope", "cdist_slope"}), 0, 1e-12, 1e-14); }
TEST(Edges, ProductsInOrder) { hold(begins({"prod ", "cumprod ", "prod_slope "}), 1e-5, 1e-13); }
