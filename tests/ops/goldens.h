// The cases of tests/goldens, which tools/make_goldens.py writes with PyTorch, and the graphs that compute them.
#pragma once

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "lightcone/base/numbers.h"
#include "lightcone/ops/ops.h"
#include "lightcone/reference/interpreter.h"
#include "ops_cases.h"
#include "paths.h"

namespace lc {

inline DType type_named(const std::string& s) {
  for (const DTypeInfo& d : kDTypes)
    if (d.name == s) return d.dtype;
  throw std::runtime_error("no type " + s);
}

struct Golden {
  std::string name;
  std::vector<Value> in, out;
};

inline Value parse_value(std::istringstream& s) {
  std::string type, word;
  s >> type;
  std::vector<std::int64_t> shape;
  for (s >> word;; s >> word) {
    if (word.front() == '[') word.erase(0, 1);
    const bool last = !word.empty() && word.back() == ']';
    if (last) word.pop_back();
    if (!word.empty()) shape.push_back(std::stoll(word));
    if (last) break;
  }
  Value v = make_value(type_named(type), shape);
  for (std::size_t k = 0; k < v.size(); ++k) {
    s >> word;
    if (v.dtype == DType::F64) v.f[k] = real_of<double>(word).value();
    else if (is_float(v.dtype)) v.f[k] = real_of<float>(word).value();
    else if (v.dtype == DType::U64) v.i[k] = static_cast<std::int64_t>(std::stoull(word));
    else v.i[k] = std::stoll(word);
  }
  return v;
}

inline std::vector<Golden> goldens(const std::string& file = "ops.txt") {
  std::ifstream f(std::string(paths::kSource) + "/tests/goldens/" + file);
  std::vector<Golden> all;
  for (std::string line; std::getline(f, line);) {
    std::istringstream s(line);
    std::string kind;
    s >> kind;
    if (kind == "case") all.push_back({line.substr(5), {}, {}});
    else if (kind == "in" || kind == "out") (kind == "in" ? all.back().in : all.back().out).push_back(parse_value(s));
  }
  return all;
}

inline std::vector<Tensor> build(const std::string& name, Graph& g, cases::T t, std::set<std::string>& used) {
  if (name == "arange range") return {arange(g, 3, 12, 4)};
  if (name == "arange back") return {arange(g, 5, -2, -3)};
  if (name == "eye") return {eye(g, 3)};
  if (name.starts_with("arange")) return {name == "arange" ? arange(g, 6) : arange(g, 4, type_named(name.substr(7)))};
  if (name == "linspace") return {linspace(g, -1, 2, 7)};
  if (name == "linspace one") return {linspace(g, 3, 9, 1)};
  if (name == "linspace down") return {linspace(g, 5, -5, 11)};
  if (name.starts_with("matmul ")) return {matmul(t[0], t[1])};
  if (name.starts_with("einsum ")) return {einsum(name.substr(7, name.rfind(" wild") - 7), t)};
  if (name.starts_with("promote ")) return {t[0] + t[1]};
  if (name.starts_with("number int ")) return {t[0] + 2};
  if (name.starts_with("number float ")) return {t[0] * 2.5};
  if (name.starts_with("number div ")) return {t[0] / 2};
  if (name.starts_with("cast f") || name.starts_with("cast b") || name.starts_with("cast i") ||
      name.starts_with("cast u")) {
    std::istringstream words(name);
    std::string cast, from, type;
    words >> cast >> from >> type;
    return {to(t[0], type_named(type))};
  }
  for (std::string key = name;; key.resize(key.rfind(' '))) {
    for (const cases::Case& c : cases::kCases)
      if (key == c.name) {
        used.insert(key);
        return c.build(t);
      }
    static const std::set<std::string> suffixes{"f64", "f32", "i64", "i32", "u8", "bool", "bf16", "f16", "odd", "wild"};
    const auto space = key.rfind(' ');
    if (space == key.npos || !suffixes.contains(key.substr(space + 1))) throw std::runtime_error("no builder");
  }
}

}  // namespace lc
