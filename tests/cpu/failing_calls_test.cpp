// Every system call of the kernel compiler, its cache and the file loader fails once in every way. The result is right
// or an Error, and the next compile in the same process works.
//
// Processes are also killed at every step of writing the cache; LIGHTCONE_KILLS=1000 kills that many instead of a
// hundred.
#include "failing_calls.h"

#include <gtest/gtest.h>
#include <algorithm>

#include "compiled.h"
#include "lightcone/cache/object_cache.h"
#include "lightcone/cache/sha256.h"
#include "lightcone/io/mapped_file.h"

using namespace lc;
using backends::cpu::JitOptions;
using cache::ObjectCache;
using failing::Fault;

namespace {

// A compiler script that copies the precompiled object of times(2): a real process, but fast.
struct QuickCompiler {
  TempDir dir;
  std::string path;
  QuickCompiler() {
    const std::string text = times(2).text, object = dir / "times.so";
    spit(dir / "times.c", text);
    const std::string build =
        str_cat(backends::cpu::find_compiler(), " -O1 -shared -fPIC -o ", object, " ", dir / "times.c");
    EXPECT_EQ(std::system(build.c_str()), 0);
    path = script(dir / "cc", str_cat("exec cat ", object, " >&3"));
  }
};

// Returns true for faults that must not become an Error: an interrupted call, or a short read or write.
bool harmless(Fault f) { return f == Fault::Interrupted || f == Fault::Short; }

// Checks that every entry is complete (a newly opened cache finds it and its object is right) and that the folder has
// no other file.
using Right = std::function<bool(const std::string& name, const std::string& object)>;
void expect_whole(const std::string& folder, const Right& right) {
  if (!std::filesystem::exists(folder)) return;
  const ObjectCache cache({.folder = folder});
  for (const std::string& path : files_in(folder)) {
    const std::string name = std::filesystem::path(path).filename();
    EXPECT_FALSE(name.ends_with(".tmp")) << name;
    EXPECT_TRUE(right(name, cache.find(name))) << name;
  }
}

// Returns an object with content that depends only on its name. Sizes vary.
std::string object_named(const std::string& name) {
  const std::size_t seed = std::stoul(name.substr(0, 8), nullptr, 16);
  std::string s(1 + seed % 100000, 0);
  for (std::size_t k = 0; k < s.size(); ++k) s[k] = static_cast<char>((k + seed) * 2654435761u >> 11);
  return s;
}

// One session of a process that may be killed in it: it uses one object and stores three in a full cache. `visit`
// selects the objects.
void visit_cache(const JitOptions& o, int visit) {
  const ObjectCache cache({o.cache_dir, o.cache_size});
  const auto name = [&](int k) { return cache.name({"object", std::to_string(k % 40)}, ".so"); };
  cache.find(name(visit));
  for (int k = 1; k <= 3; ++k) cache.keep(name(visit + k), object_named(name(visit + k)));
  cache.trim();
}

int kills() {
  const char* wish = std::getenv("LIGHTCONE_KILLS");
  return wish ? std::atoi(wish) : 100;
}

#define NEEDS_A_CACHE() \
  NEEDS_C_COMPILER();   \
  if (!cache::Sha256::available()) GTEST_SKIP() << "no library here computes SHA-256"

}  // namespace

TEST(FailingCalls, OfTheCompilerAndItsCache) {
  NEEDS_A_CACHE();
  const QuickCompiler cc;
  const TempDir dir;
  const backends::cpu::Source s = times(2);
  const auto build = [&](const JitOptions& o) { EXPECT_EQ(called(backends::cpu::jit({&s, 1}, o), 5), 10); };
  build({.compiler = cc.path, .cache_dir = dir / "first"});  // performs what happens once per process
  const std::string good = slurp(files_in(dir / "first").at(0));
  const std::size_t descriptors = open_descriptors();
  for (const Fault f : failing::kErrors)
    for (const bool kept : {false, true}) {  // compiled, or loaded from the cache
      long errors = 0, n = 0;
      for (bool failed = true; failed;) {  // until no n-th call is left
        ++n;
        SCOPED_TRACE(str_cat(failing::name(f), " at call ", n, kept ? ", kept" : ", new"));
        const JitOptions o{.compiler = cc.path, .cache_dir = dir / str_cat(failing::name(f), kept, n)};
        if (kept) build(o);
        failing::arm(f, n);
        try {
          build(o);
        } catch (const Error&) {
          ++errors;
        }
        failed = failing::disarm() >= n;
        expect_whole(o.cache_dir, [&](const std::string&, const std::string& object) {
          return object == good.substr(0, good.size() - cache::Sha256::kDigits);
        });
        build(o);  // succeeds after any earlier fault
        EXPECT_EQ(open_descriptors(), descriptors);
        std::filesystem::remove_all(o.cache_dir);
        if (HasFailure()) return;
      }
      std::printf("%s, %s: %ld calls, %ld errors\n", failing::name(f), kept ? "from the cache" : "compiled", n - 1,
                  errors);
      EXPECT_GT(n, 3);
      if (harmless(f)) {
        EXPECT_EQ(errors, 0) << failing::name(f);
      }
    }
}

TEST(FailingCalls, OfTheFileLoader) {
  const TempDir dir;
  std::string bytes(300000, 0);
  for (std::size_t k = 0; k < bytes.size(); ++k) bytes[k] = static_cast<char>(k * 2654435761u >> 13);
  spit(dir / "x", bytes);
  const std::size_t descriptors = open_descriptors();
  for (const Fault f : failing::kErrors)
    for (const bool copied : {false, true}) {
      long errors = 0, n = 0;
      for (bool failed = true; failed;) {
        ++n;
        SCOPED_TRACE(str_cat(failing::name(f), " at call ", n, copied ? ", copied" : ", mapped"));
        const auto same = [&] {
          const auto file = copied ? MappedFile::read(dir / "x") : MappedFile::open(dir / "x");
          return file->bytes().size() == bytes.size() && !std::memcmp(file->bytes().data(), bytes.data(), bytes.size());
        };
        failing::arm(f, n);
        try {
          EXPECT_TRUE(same());
        } catch (const Error&) {
          ++errors;
        }
        failed = failing::disarm() >= n;
        EXPECT_TRUE(same());
        EXPECT_EQ(open_descriptors(), descriptors);
      }
      if (harmless(f)) {
        EXPECT_EQ(errors, 0) << failing::name(f);
      } else if (f == Fault::InputOutput) {
        EXPECT_GE(errors, 3);  // open, fstat, mmap
      }
    }
}

TEST(Killed, WhileWritingTheCache) {
  NEEDS_A_CACHE();
  const TempDir dir;
  const JitOptions o{.cache_dir = dir / "cache", .cache_size = 1 << 20};  // holds about twenty of the forty objects
  for (int k = 0; k < 60; ++k) visit_cache(o, k);                         // fills the cache
  failing::arm(Fault::Killed, 0);
  visit_cache(o, 61);
  const long steps = failing::disarm();
  ASSERT_GT(steps, 60);
  int killed = 0, left_temporary = 0;
  long largest = 0;
  for (int round = 0; killed < kills(); ++round) {
    const long step = 1 + round * 7919L % steps;  // visits all steps, in large strides
    const int status = in_child([&] {
      failing::arm(Fault::Killed, step);
      visit_cache(o, round);
      return 0;
    });
    ASSERT_TRUE(status == -SIGKILL || status == 0) << status;
    killed += status == -SIGKILL;
    for (const std::string& f : files_in(o.cache_dir)) left_temporary += f.ends_with(".tmp");
    expect_whole(o.cache_dir,
                 [&](const std::string& name, const std::string& object) { return object == object_named(name); });
    ObjectCache({o.cache_dir, o.cache_size}).trim();
    long bytes = 0;
    for (const std::string& f : files_in(o.cache_dir)) bytes += static_cast<long>(std::filesystem::file_size(f));
    largest = std::max(largest, bytes);
    ASSERT_FALSE(HasFailure()) << "killed at step " << step << " of " << steps;
  }
  EXPECT_LE(largest, 1 << 20);
  EXPECT_GT(left_temporary, 0);  // temporary files were left to clean
  std::printf("%d processes killed at %ld different steps; %d temporary files were left and removed\n", killed, steps,
              left_temporary);
}

// A process is killed at each step of compiling. The next process compiles, or loads a complete object from the cache.
TEST(Killed, WhileCompiling) {
  NEEDS_A_CACHE();
  const QuickCompiler cc;
  const TempDir dir;
  const backends::cpu::Source s = times(2);
  const auto build = [&](const JitOptions& o) { return called(backends::cpu::jit({&s, 1}, o), 5) == 10; };
  int killed = 0;
  long steps = 1;
  for (long step = 1; step <= steps; ++step) {
    const JitOptions o{.compiler = cc.path, .cache_dir = dir / std::to_string(step)};
    if (step == 1) {
      failing::arm(Fault::Killed, 0);
      ASSERT_TRUE(build({.compiler = cc.path, .cache_dir = dir / "first"}));
      steps = failing::disarm();
    }
    const int status = in_child([&] {
      failing::arm(Fault::Killed, step);
      return build(o) ? 0 : 1;
    });
    ASSERT_TRUE(status == -SIGKILL || status == 0) << status;
    killed += status == -SIGKILL;
    ASSERT_TRUE(build(o)) << step;
    expect_whole(o.cache_dir, [](const std::string&, const std::string& object) { return !object.empty(); });
    std::filesystem::remove_all(o.cache_dir);
  }
  EXPECT_GT(killed, 40);
  std::printf("%d processes killed while they compiled\n", killed);
}
