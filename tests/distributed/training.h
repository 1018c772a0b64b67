// Trains a job on one rank and on several, and compares them.
#pragma once

#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "jobs.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "ranks.h"

namespace lc::test {

struct Trained {
  Floats losses, norms;
  std::map<std::string, Floats> parameters;
  std::size_t state_bytes = 0;
  std::size_t arena_bytes = 0;
  std::map<std::string, int> fired;  // by shard(), and by what schedules exchanges
};

inline ArrayView floats(const Floats& v, std::vector<std::int64_t> shape) {
  return {DType::F32, std::move(shape), std::as_bytes(std::span(v))};
}
inline std::vector<std::int64_t> shape_of(const Graph& g, const std::string& name) {
  std::vector<std::int64_t> s;
  for (NodeId id = 0; id < g.size(); ++id)
    if (g[id].op == Op::Input && g[id].name == name)
      for (const Dim& d : g[id].shape) s.push_back(*d.constant());
  return s;
}

// Trains one rank's part. A stage of a pipeline has some of the parameters.
inline Trained train(const Job& j, const Compiler& compiler, const Mesh& mesh, int rank, const ShardSpecs& specs,
                     int steps = kSteps, const CompileOptions& options = {}) {
  const Program p = compile(j.graph, compiler, options);
  Context c(p);
  const auto names = p.inputs();
  const std::set<std::string> has(names.begin(), names.end());
  const auto part = [&](const std::string& name, const Floats& all) {
    const ArrayPart a = part_of(mesh, rank, specs, name, floats(all, shape_of(j.graph, name)));
    Floats mine(a.bytes.size() / sizeof(float));
    std::memcpy(mine.data(), a.bytes.data(), a.bytes.size());
    return mine;
  };
  for (const auto& [name, all] : j.parameters)
    if (has.contains(name)) c.set(name, part(name, all));
  Trained t;
  for (int k = 0; k < steps; ++k) {
    for (const auto& [name, all] : j.inputs) c.set(name, part(name, all[static_cast<std::size_t>(k)]));
    c.run();
    t.losses.push_back(static_cast<float>(c.scalar("loss")));
    t.norms.push_back(static_cast<float>(c.scalar("norm")));
  }
  for (const auto& [name, all] : j.parameters)
    if (has.contains(name)) t.parameters[name] = c.get(name);
  t.state_bytes = p.plan().state_bytes, t.arena_bytes = p.plan().arena_bytes;
  for (const PassLog& l : p.log())
    if (l.pass == "shard" || l.pass.ends_with("-exchanges"))
      for (const auto& [what, n] : l.fired) t.fired[what] += n;
  return t;
}

inline Compiler device() { return generic() | cpu({.threads = 1, .compiler = false}); }

inline void expect_near(const Floats& got, const Floats& want, double room, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t k = 0; k < got.size(); ++k) ASSERT_NEAR(got[k], want[k], room) << what << ", element " << k;
}

inline std::vector<Trained> on_ranks(const Job& j, const Mesh& mesh, const ShardSpecs& specs,
                                     const ShardOptions& options = {}) {
  std::vector<Trained> all(static_cast<std::size_t>(mesh.size()));
  const auto thrown = test::run_ranks(mesh, [&](const Collectives& c) {
    all[static_cast<std::size_t>(c.rank())] =
        train(j, shard(c, specs, options) | device(), mesh, c.rank(), without_serial(specs, options.serial));
  });
  for (const std::string& what : thrown) EXPECT_EQ(what, "");
  return all;
}

// Ranks agree with one another to the bit, with one rank within rounding, and with themselves from run to run.
inline std::vector<Trained> expect_as_one_rank(const Job& j, const Mesh& mesh, const ShardSpecs& specs,
                                               const std::string& what, double room = 2e-5,
                                               const ShardOptions& options = {}) {
  const Trained one = train(j, device(), Mesh(), 0, {});
  const auto all = on_ranks(j, mesh, specs, options), again = on_ranks(j, mesh, specs, options);
  const ShardSpecs of_ranks = without_serial(specs, options.serial);
  std::set<std::string> seen;
  EXPECT_LT(one.losses.back(), one.losses.front()) << what;
  for (std::size_t r = 0; r < all.size(); ++r) {
    const std::string at = str_cat(what, " on ", mesh, ", rank ", r);
    expect_near(all[r].losses, one.losses, room, at + ", losses");
    expect_near(all[r].norms, one.norms, 10 * room, at + ", norms");
    EXPECT_EQ(all[r].losses, all[0].losses) << at;
    EXPECT_EQ(all[r].parameters, again[r].parameters) << at;
    for (const auto& [name, v] : one.parameters) {
      if (!all[r].parameters.contains(name)) continue;
      seen.insert(name);
      const ArrayPart a = part_of(mesh, static_cast<int>(r), of_ranks, name, floats(v, shape_of(j.graph, name)));
      Floats mine(a.bytes.size() / sizeof(float));
      std::memcpy(mine.data(), a.bytes.data(), a.bytes.size());
      expect_near(all[r].parameters.at(name), mine, 10 * room, at + ", " + name);
    }
  }
  EXPECT_EQ(seen.size(), one.parameters.size()) << what;
  return all;
}

}  // namespace lc::test
