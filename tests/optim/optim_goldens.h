// Reads tests/goldens/optim.txt, which tools/make_optim_goldens.py writes with PyTorch.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "../ops/goldens.h"
#include "paths.h"

namespace lc {

struct OptimGolden {
  std::vector<Value> in, out;
  std::map<std::string, Value> states;
};
inline const std::map<std::string, OptimGolden>& optim_goldens() {
  static const std::map<std::string, OptimGolden> all = [] {
    std::ifstream f(std::string(paths::kSource) + "/tests/goldens/optim.txt");
    std::map<std::string, OptimGolden> cases;
    OptimGolden* c = nullptr;
    for (std::string line; std::getline(f, line);) {
      std::istringstream s(line);
      std::string kind, state;
      s >> kind;
      if (kind == "case") c = &cases[line.substr(5)];
      else if (kind == "in") c->in.push_back(parse_value(s));
      else if (kind == "out") c->out.push_back(parse_value(s));
      else if (s >> state) c->states[state] = parse_value(s);
    }
    return cases;
  }();
  return all;
}

}  // namespace lc
