// Kernels, files, texts and cache keys are the same under a locale with a decimal comma as under the C locale.
//
// tools/check_numbers.py refuses code that would ask the locale.
#include <gtest/gtest.h>

#include <cmath>

#include <nlohmann/json.hpp>

#include "comma_locale.h"
#include "data.h"
#include "error_of.h"
#include "lightcone/backends/cpu/jit/jit.h"
#include "lightcone/backends/cpu/jit/llvm.h"
#include "lightcone/backends/cpu/machine.h"
#include "lightcone/base/numbers.h"
#include "lightcone/io/checkpoints/save.h"
#include "lightcone/io/data/csv.h"
#include "lightcone/io/text/chat_template.h"
#include "lightcone/lightcone.h"
#include "lightcone/runtime/profile/timeline.h"
#include "lightcone/stablehlo/read.h"
#include "lightcone/stablehlo/write.h"

using namespace lc;

namespace {

// Texts that contain formatted numbers, by name.
using Texts = std::vector<std::pair<std::string, std::string>>;

Graph curve() {
  Graph g;
  const Tensor x = g.input("x", {5});
  g.output("y", exp(x * 0.1 + 0.3) / (square(x) + 1e-3) + sin(x * 1234.5));
  g.output("narrow", prim::cast(x * 0.7, DType::BF16));
  return g;
}

std::string computed(const std::string& compiler) {
  const Program p = compile(curve(), generic() | cpu({.threads = 1, .jit = {.compiler = compiler}}));
  Context c(p);
  c.set("x", std::vector<float>{0.25f, -1.5f, 3, 1e-3f, 7}).run();
  std::string all = "kernels " + std::to_string(p.interpreted()) + ":";
  for (const char* name : {"y", "narrow"})
    for (const float v : c.get(name)) all += formatted(" %a", static_cast<double>(v));
  return all;
}

std::string hlo_values() {
  StableHloProgram s = read_stablehlo(R"(func.func @main(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<2xf64>) {
    %a = stablehlo.constant dense<[0.75, -1.5e-3, 2.5]> : tensor<3xf32>
    %b = stablehlo.add %x, %a : tensor<3xf32>
    %c = stablehlo.constant dense<[0.1, 1.0e+300]> : tensor<2xf64>
    return %b, %c : tensor<3xf32>, tensor<2xf64>
  })");
  Program p = compile(s.graph, generic());
  s.load_constants(p);
  Context c(p);
  c.set(s.inputs[0], std::vector<float>{0.5f, 0, 0}).run();
  std::string all;
  for (const std::string& out : s.outputs)
    for (const double v : c.get_f64(out)) all += formatted(" %a", v);
  return all;
}

std::string csv_values() {
  const Csv c = parse_csv("a,b\n0.5,-1.25e-3\n1e3,2\n");
  std::string all;
  for (const float v : c.values.values<float>()) all += formatted(" %a", static_cast<double>(v));
  return all;
}

std::string profiled(Texts& all) {
  const Program p = compile(curve(), generic() | cpu({.threads = 1}));
  Context c(p);
  c.profile(true);
  c.set("x", std::vector<float>{1, 2, 3, 4, 5}).run();
  const Profile found = c.profile();
  MachineLimits limits;
  limits.bytes_per_second = 1.5e9, limits.flops_per_second = 2.5e9;
  using Json = nlohmann::json;
  EXPECT_NO_THROW(Json::parse(found.json(limits)));
  EXPECT_NO_THROW(Json::parse(found.trace()));
  EXPECT_EQ(found.table(limits).find("1,5 GB/s"), std::string::npos);
  all.emplace_back("timeline", memory_timeline(p.graph(), p.plan()).html("memory"));
  return {};
}

Texts texts() {
  Texts all;
  all.emplace_back("numbers", str_cat(0.5, " ", 1234567.0, " ", 1234567, " ") +
                                  formatted("%.3f %g %a %d", 1e6 / 3, 0.1, 0.1, 1234567));
  all.emplace_back("read", formatted("%a", real_of<double>("0.1").value()) + (real_of<double>("0,1") ? "!" : ""));
  for (const char* compiler : {"none", "", "llvm"})
    if (*compiler != 'l' || !backends::cpu::find_llvm().path.empty())
      all.emplace_back(str_cat("computed by ", compiler), computed(compiler));
  all.emplace_back("source", compile(curve(), generic() | cpu({.threads = 1})).source("y"));
  all.emplace_back("stablehlo read", hlo_values());
  all.emplace_back("stablehlo written", export_stablehlo(curve()).text());
  all.emplace_back("csv", csv_values());
  all.emplace_back(
      "template", ChatTemplate("{{ 0.5 }} {{ '1.25' | float }} {{ 2.675 | round(2) }} {{ x | tojson }} {{ x.v * 2 }} "
                               "{{ strftime_now('%B %A') }} {{ '3.9' | int }} {{ 1e20 }}")
                      .apply({}, {.variables = R"({"x": {"v": 0.75, "w": [1.5e-7, -2.5e+3]}})", .now = 1'800'000'000}));
  all.emplace_back("machine", str(parse_machine(str(backends::cpu::this_machine()))));
  all.emplace_back("graph", curve().str() + curve().dot());
  all.emplace_back("passes", report(transform(curve(), generic()).log).substr(0, 8));
  Session s;
  const auto a = s.tensor<3>().set({0.5f, 1.25f, 1234.5f});
  const auto twice = (a + a).retrieve();
  s.compile(generic());
  s.execute();
  all.emplace_back("array", s.str(twice));
  return all;
}

}  // namespace

TEST(Locale, CommasChangeNothing) {
  const Texts before = texts();
  const CommaLocale comma;
  if (!comma.there()) GTEST_SKIP() << "there is no locale with a comma, and no localedef to make one";
  const Texts after = texts();
  ASSERT_EQ(after.size(), before.size());
  for (std::size_t k = 0; k < after.size(); ++k) EXPECT_EQ(after[k].second, before[k].second) << before[k].first;
  EXPECT_NE(before[2].second.find("0x1."), std::string::npos) << before[2].second;
}

TEST(Locale, ProfilesAreJson) {
  const CommaLocale comma;
  if (!comma.there()) GTEST_SKIP() << "there is no locale with a comma, and no localedef to make one";
  Texts all;
  profiled(all);
  EXPECT_EQ(all[0].second.find("\"0,"), std::string::npos);
}
