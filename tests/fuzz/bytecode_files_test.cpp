// Portable artifacts with changed bytes are read or refused with a position, in time and within their memory budget.
//
// LIGHTCONE_FUZZ makes more of them, LIGHTCONE_FUZZ_SEED other ones.
#include <algorithm>
#include <cstdlib>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "../stablehlo/artifacts.h"
#include "lightcone/base/error.h"
#include "lightcone/stablehlo/read.h"
#include "memory.h"
#include "processor_time.h"
#include "unhex.h"

using namespace lc;

namespace {

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* v = std::getenv(name);
  return v ? std::strtoull(v, nullptr, 10) : otherwise;
}

class Mutator {
 public:
  Mutator(std::uint64_t seed, const std::vector<std::string>& corpus) : random_(seed), corpus_(corpus) {}

  std::string file() {
    std::string f = corpus_[draw(corpus_.size())];
    for (std::uint64_t times = 1 + draw(4); times > 0; --times) change(f);
    return f;
  }

 private:
  std::uint64_t draw(std::uint64_t below) { return random_() % below; }
  // strings and names at the end are less interesting than what precedes them
  std::size_t place(const std::string& f) {
    return draw(4) == 0 ? draw(f.size()) : 5 + draw(std::max<std::size_t>(1, f.size() * 2 / 3));
  }

  void change(std::string& f) {
    const std::size_t at = std::min(place(f), f.size() - 1);
    switch (draw(8)) {
      case 0: f[at] = static_cast<char>(draw(256)); break;
      case 1: f[at] = static_cast<char>(f[at] ^ (1 << draw(8))); break;
      case 2: f[at] = static_cast<char>(draw(2) ? f[at] + 2 : f[at] - 2); break;  // increments or decrements the number
      case 3: f.replace(at, 1, varint()); break;
      case 4: f[at] = f[draw(f.size())]; break;
      case 5: f.resize(std::max<std::size_t>(at, 8)); break;
      case 6: {  // copies a piece elsewhere
        const std::string piece = f.substr(at, 1 + draw(40));
        f.replace(draw(f.size()), draw(2) ? piece.size() : 0, piece);
        break;
      }
      default: f.erase(at, 1 + draw(3)); f.resize(std::max<std::size_t>(f.size(), 8));
    }
  }
  // A number of one to nine bytes in the encoding of the file: small, or a random power of two.
  std::string varint() {
    const std::uint64_t v = draw(2) ? draw(1000) : std::uint64_t{1} << draw(64);
    if (v < 128) return {static_cast<char>(v << 1 | 1)};
    if (v < 16384) return {static_cast<char>(v << 2 | 2), static_cast<char>(v >> 6)};
    std::string s(1, '\0');
    for (int k = 0; k < 8; ++k) s += static_cast<char>(v >> (8 * k));
    return s;
  }

  std::mt19937_64 random_;
  const std::vector<std::string>& corpus_;
};

TEST(BytecodeFiles, OfChangedBytesAreReadOrRefused) {
  const std::uint64_t seed = from_environment("LIGHTCONE_FUZZ_SEED", 1),
                      times = from_environment("LIGHTCONE_FUZZ", 20'000);
  std::vector<std::string> corpus;
  for (const test::Artifact& a : test::kArtifacts) corpus.push_back(test::unhex(a.hex));
  Mutator mutator(seed, corpus);
  std::size_t read = 0, refused = 0;
  for (std::uint64_t k = 0; k < times; ++k) {
    const std::string file = mutator.file();
    const std::size_t before = counted::live();
    counted::reset_most();
    bool good = true;
    std::string what;
    const double seconds = test::least_seconds(5, [&] {
      try {
        const StableHloProgram s = read_stablehlo(file);
      } catch (const Error& e) {
        good = false, what = e.what();
      }
    });
    ++(good ? read : refused);
    if (!good) {
      EXPECT_TRUE(what.find("byte ") != std::string::npos || what.find("line ") != std::string::npos ||
                  what.find("has no function") != std::string::npos)
          << what;
      EXPECT_LT(what.size(), 20'000u);
    }
    EXPECT_LT(counted::most() - before, (96u << 20) + 2000 * file.size()) << "case " << k;
    EXPECT_LT(seconds, 5) << "case " << k;
    if (HasFailure()) return;
  }
  RecordProperty("read", static_cast<int>(read));
  EXPECT_GT(read, times / 50);
  EXPECT_GT(refused, times / 50);
}

}  // namespace
