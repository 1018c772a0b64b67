// Blocks of a memory plan that are alive together never overlap, and a plan is close to the largest amount alive at
// once.
#include "lightcone/device/arena.h"

#include <gtest/gtest.h>

#include <random>

#include "lightcone/device/plan.h"

using namespace lc;

namespace {

struct Life {
  std::size_t bytes, begin, end;
};

// Random blocks with lifetimes, some until the end, allocated in an arena.
struct Drawn {
  std::vector<Life> lives;
  Arena arena;
  explicit Drawn(unsigned seed) {
    std::mt19937 random(seed);
    std::vector<std::size_t> alive;
    std::size_t event = 0;
    for (int k = 0; k < 200; ++k) {
      if (!alive.empty() && random() % 2) {
        const std::size_t which = random() % alive.size(), block = alive[which];
        alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(which));
        arena.give(block), lives[block].end = event++;
      } else {
        const std::size_t bytes = random() % 8 ? random() % 5000 : random() % 3000000;
        alive.push_back(arena.take(bytes));
        lives.push_back({aligned(std::max<std::size_t>(bytes, 1)), event++, ~std::size_t{0}});
      }
    }
  }
};

}  // namespace

TEST(Arena, BlocksThatAreAliveTogetherDoNotOverlap) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    Drawn d(seed);
    const std::vector<std::size_t> at = d.arena.settle();
    ASSERT_EQ(at.size(), d.lives.size());
    for (std::size_t a = 0; a < at.size(); ++a) {
      EXPECT_EQ(at[a] % 64, 0u);
      ASSERT_LE(at[a] + d.lives[a].bytes, d.arena.bytes());
      for (std::size_t b = 0; b < a; ++b) {
        if (d.lives[a].begin >= d.lives[b].end || d.lives[b].begin >= d.lives[a].end) continue;
        ASSERT_TRUE(at[a] + d.lives[a].bytes <= at[b] || at[b] + d.lives[b].bytes <= at[a])
            << seed << ": " << a << ", " << b;
      }
    }
    EXPECT_GE(d.arena.bytes(), d.arena.alive_bytes());
    EXPECT_LE(static_cast<double>(d.arena.bytes()), 1.25 * static_cast<double>(d.arena.alive_bytes())) << seed;
  }
}

// A product's scratch is freed and split for small values, and the next product needs as much again.
TEST(Arena, ScratchThatIsCutUpDoesNotGrowThePlan) {
  Arena arena;
  for (int k = 0; k < 6; ++k) {
    const std::size_t scratch = arena.take(5 << 20);
    arena.give(scratch);
    arena.take(1000);  // stays allocated
  }
  arena.settle();
  EXPECT_LE(arena.bytes(), (5u << 20) + 6 * 1024);
}

TEST(Arena, MoreThanMemoryCanHaveIsAnError) {
  Arena arena;
  arena.take(std::size_t{1} << 45);
  arena.take(std::size_t{1} << 45);
  EXPECT_THROW(arena.take(64), Error);
}
