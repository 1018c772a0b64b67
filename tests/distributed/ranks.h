// Runs a function as several ranks, each in a thread.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "lightcone/distributed/collectives.h"

namespace lc::test {

// Returns what each rank threw ("" if nothing). A rank's communicator ends with its function.
inline std::vector<std::string> run_ranks(const Mesh& mesh, const std::function<void(const Collectives&)>& run,
                                          double timeout_s = 60) {
  auto ranks = threads(mesh.size(), {.timeout_s = timeout_s});
  std::vector<std::string> thrown(ranks.size());
  std::vector<std::thread> all;
  for (std::size_t k = 0; k < ranks.size(); ++k)
    all.emplace_back([&thrown, &mesh, &run, k, mine = std::move(ranks[k])]() mutable {
      try {
        run(Collectives(mesh, std::move(mine)));
      } catch (const std::exception& e) {
        thrown[k] = e.what();
      }
    });
  for (std::thread& t : all) t.join();
  return thrown;
}

}  // namespace lc::test
