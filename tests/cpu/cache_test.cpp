// The cache of compiled kernels accepts only valid entries of its own user, evicts the oldest ones and repairs itself
// after a killed process.
#include "lightcone/cache/object_cache.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "compiled.h"
#include "lightcone/backends/cpu/jit/llvm.h"
#include "lightcone/cache/sha256.h"

using namespace lc;
using backends::cpu::JitOptions;
using cache::ObjectCache;

namespace {

std::string only_entry(const std::string& folder) {
  const std::vector<std::string> all = files_in(folder);
  EXPECT_EQ(all.size(), 1u);
  return all.at(0);
}
std::size_t bytes_in(const std::string& folder) {
  std::size_t all = 0;
  for (const std::string& f : files_in(folder)) all += std::filesystem::file_size(f);
  return all;
}
void age(const std::string& file, int hours) {
  std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now() - std::chrono::hours(hours));
}

#define NEEDS_A_CACHE() \
  NEEDS_C_COMPILER();   \
  if (!cache::Sha256::available()) GTEST_SKIP() << "no library here computes SHA-256"

}  // namespace

TEST(Cache, Sha256IsTheStandards) {
  if (!cache::Sha256::available()) GTEST_SKIP() << "no library here computes SHA-256";
  // the encoding "0:" "2:ab": `printf '0:2:ab' | sha256sum`
  EXPECT_EQ(cache::Sha256().add("").add("ab").hex(),
            "25ff75ad642df0e9020f081051f919d7da20906276b96a7cd1de754f06ee8e80");
  EXPECT_NE(cache::Sha256().add("a").add("b").hex(), cache::Sha256().add("ab").hex());
}

// A valid entry under another entry's name would be the code of another kernel.
TEST(Cache, AnEntryBelongsToItsName) {
  NEEDS_A_CACHE();
  const TempDir dir;
  const std::string folder = dir / "cache";
  EXPECT_EQ(built(2, {.cache_dir = folder}), kCompiled);
  const std::string two = only_entry(folder), bytes = slurp(two);
  std::filesystem::rename(two, dir / "two");
  EXPECT_EQ(built(3, {.cache_dir = folder}), kCompiled);
  const std::string three = only_entry(folder);
  spit(three, bytes);
  EXPECT_EQ(built(3, {.cache_dir = folder}), kCompiled);
  EXPECT_EQ(built(3, {.cache_dir = folder}), kFromCache);
}

TEST(Cache, OnlyRegularFilesOfOursThatNobodyElseWritesAreBelieved) {
  NEEDS_A_CACHE();
  const TempDir dir;
  const JitOptions o{.cache_dir = dir / "cache"};
  EXPECT_EQ(built(2, o), kCompiled);
  const std::string entry = only_entry(o.cache_dir), elsewhere = dir / "elsewhere";
  std::vector<std::function<void()>> attacks = {[&] { ::chmod(entry.c_str(), 0602); },
                                                [&] { ::chmod(entry.c_str(), 0620); },
                                                [&] {  // a symbolic link to a valid entry
                                                  std::filesystem::rename(entry, elsewhere);
                                                  std::filesystem::create_symlink(elsewhere, entry);
                                                },
                                                [&] {
                                                  std::filesystem::remove(entry);
                                                  ::mkfifo(entry.c_str(), 0600);
                                                },
                                                [&] {
                                                  std::filesystem::remove(entry);
                                                  std::filesystem::create_directory(entry);
                                                },
                                                [&] { std::filesystem::resize_file(entry, 20); },
                                                [&] { std::filesystem::resize_file(entry, std::uintmax_t{1} << 40); }};
  if (::geteuid() == 0) attacks.push_back([&] { EXPECT_EQ(::chown(entry.c_str(), 65534, 65534), 0); });
  for (std::size_t k = 0; k < attacks.size(); ++k) {
    attacks[k]();
    // the child has a time limit, in case it hangs
    EXPECT_EQ(in_child([&] { return built(2, o) == kCompiled ? 0 : 1; }), 0) << k;
    EXPECT_EQ(built(2, o), kFromCache) << k;  // the entry was repaired
  }
}

TEST(Cache, TheFolderIsOpenedOnce) {
  NEEDS_A_CACHE();
  const TempDir dir;
  const ObjectCache cache({.folder = dir / "cache"});
  const std::string name = cache.name({"a text"}, ".so");
  cache.keep(name, "object");
  std::filesystem::rename(dir / "cache", dir / "moved");
  std::filesystem::create_directory(dir / "cache");
  EXPECT_EQ(cache.find(name), "object");
  cache.drop(name);
  EXPECT_EQ(files_in(dir / "moved").size(), 0u);
}

TEST(Cache, AFolderThatIsNotTrustedIsNamed) {
  NEEDS_A_CACHE();
  const TempDir dir;
  std::filesystem::create_directory(dir / "open");
  ::chmod((dir / "open").c_str(), 0777);
  const backends::cpu::Source s = times(2);
  const auto problem = [&](const std::string& folder) {
    return backends::cpu::jit({&s, 1}, {.cache_dir = folder}).cache_problem;
  };
  EXPECT_NE(problem(dir / "open").find("others may write to the folder"), std::string::npos);
  spit(dir / "file", "");
  EXPECT_NE(problem(dir / "file").find("Not a directory"), std::string::npos) << problem(dir / "file");
  EXPECT_EQ(problem("off"), "");
  EXPECT_EQ(problem(dir / "new/folder"), "");
}

TEST(Cache, WhatKilledProcessesLeftIsRemoved) {
  NEEDS_A_CACHE();
  const TempDir dir;
  const JitOptions o{.cache_dir = dir / "cache"};
  EXPECT_EQ(built(2, o), kCompiled);
  const std::string entry = only_entry(o.cache_dir), dead = entry + ".123-0.tmp", older = entry + ".4567",
                    live = entry + ".123-1.tmp", foreign = o.cache_dir + "/somebody's.tmp";
  for (const std::string& f : {dead, older, live, foreign}) spit(f, "half");
  ::mkfifo((entry + ".123-2.tmp").c_str(), 0600);
  const int writer = ::open(live.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(writer, LOCK_EX), 0);
  EXPECT_EQ(built(2, o), kFromCache);
  EXPECT_EQ(files_in(o.cache_dir).size(), 3u);
  for (const std::string& f : {entry, live, foreign}) EXPECT_TRUE(std::filesystem::exists(f)) << f;
  ::close(writer);
  EXPECT_EQ(built(2, o), kFromCache);
  EXPECT_FALSE(std::filesystem::exists(live));
}

TEST(Cache, WhatWasNotUsedForTheLongestTimeGoesFirst) {
  NEEDS_A_CACHE();
  const TempDir dir;
  const std::string folder = dir / "cache", foreign = folder + "/notes.txt";
  std::map<int, std::string> entry;
  for (int k = 1; k <= 4; ++k) {
    EXPECT_EQ(built(k, {.cache_dir = folder}), kCompiled);
    for (const std::string& f : files_in(folder))
      if (std::none_of(entry.begin(), entry.end(), [&](const auto& e) { return e.second == f; })) entry[k] = f;
    age(entry[k], 100 - k);
  }
  spit(foreign, std::string(100000, 'x'));
  age(foreign, 1000);
  EXPECT_EQ(built(1, {.cache_dir = folder}), kFromCache);  // now the most recently used entry
  const std::size_t room = std::filesystem::file_size(entry[1]) * 7 / 2;
  const Setting limit("LIGHTCONE_CACHE_SIZE", std::to_string(room).c_str());
  EXPECT_EQ(built(5, {.cache_dir = folder}), kCompiled);
  EXPECT_LE(bytes_in(folder) - 100000, room);
  for (int k : {2, 3}) EXPECT_FALSE(std::filesystem::exists(entry[k])) << k;
  for (int k : {1, 4}) EXPECT_TRUE(std::filesystem::exists(entry[k])) << k;
  EXPECT_TRUE(std::filesystem::exists(foreign));  // not written by this cache, so not removed
  EXPECT_EQ(built(5, {.cache_dir = folder}), kFromCache);
}

TEST(Cache, TheBoundIsANumberOfBytes) {
  NEEDS_A_CACHE();
  const TempDir dir;
  for (const char* wrong : {"much", "-1", "12X", "5 M", "99999999999G"}) {
    const Setting limit("LIGHTCONE_CACHE_SIZE", wrong);
    const std::string said = words([&] { built(2, {.cache_dir = dir / "cache"}); });
    EXPECT_NE(said.find(wrong), std::string::npos) << said;
    EXPECT_NE(said.find("512M"), std::string::npos) << said;
  }
  const Setting limit("LIGHTCONE_CACHE_SIZE", "1K");
  EXPECT_EQ(built(2, {.cache_dir = dir / "cache"}), kCompiled);
  EXPECT_EQ(files_in(dir / "cache").size(), 0u);
  EXPECT_EQ(built(2, {.cache_dir = dir / "cache", .cache_size = 1 << 20}), kCompiled);
  EXPECT_EQ(files_in(dir / "cache").size(), 1u);
}

// LLVM's object files are stored in the same cache.
TEST(Cache, AnObjectOfLlvmsThatCannotBeLoadedIsCompiledAgain) {
  if (backends::cpu::find_llvm().path.empty()) GTEST_SKIP() << backends::cpu::find_llvm().problem;
  const TempDir dir;
  const JitOptions o{.compiler = "llvm", .cache_dir = dir / "cache"};
  const auto compiled = [&](const std::string& name) {
    const backends::cpu::Source s{name, "define void @" + name + "() {\n  ret void\n}\n"};
    const backends::cpu::Jitted j = backends::cpu::jit({&s, 1}, o);
    return std::pair(j.compiled, j.cached);
  };
  EXPECT_EQ(compiled("f"), kCompiled);
  const std::string f = std::filesystem::path(only_entry(o.cache_dir)).filename();
  EXPECT_EQ(compiled("g"), kCompiled);
  const ObjectCache cache({o.cache_dir, o.cache_size});
  std::string other;
  for (const std::string& path : files_in(o.cache_dir))
    if (const std::string name = std::filesystem::path(path).filename(); name != f) other = cache.find(name);
  for (const std::string& sealed : {other, other.substr(0, other.size() - 100), std::string("rubbish")}) {
    cache.keep(f, sealed);  // has a valid checksum but wrong content
    EXPECT_EQ(compiled("f"), kCompiled);
    EXPECT_EQ(compiled("f"), kFromCache);
  }
}

// Runs in the process of the test below. Exits with 0 if the environment variables were ignored.
TEST(Environment, DISABLED_Child) {
  if (!::getauxval(AT_SECURE)) std::_Exit(77);
  const std::string evil = ::getenv("LIGHTCONE_CC");
  const bool ignored = backends::cpu::find_compiler({.llvm = "/nonexistent"}) != evil &&
                       !backends::cpu::compiler_named() &&
                       backends::cpu::find_llvm().path != ::getenv("LIGHTCONE_LLVM");
  if (backends::cpu::find_compiler() != "") built(2, {});
  std::_Exit(ignored ? 0 : 1);
}

TEST(Environment, IsNotTrustedByAProgramWithMoreRightsThanItsCaller) {
  NEEDS_C_COMPILER();
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a program that runs as somebody else";
  const TempDir dir;
  ::chmod(dir.path.c_str(), 0755);
  const std::string self = dir / "self", evil = script(dir / "cc", "touch " + dir / "touched" + "; exit 1");
  std::filesystem::copy_file("/proc/self/exe", self);
  ::chmod(self.c_str(), 04755);
  const std::string cache = dir / "cache", home = dir / "home", path = dir.path.string();
  std::filesystem::create_directory(home);
  const int status = in_child([&] {
    const Setting a("LIGHTCONE_CC", evil.c_str()), b("LIGHTCONE_CACHE", cache.c_str()), c("PATH", path.c_str()),
        d("LIGHTCONE_LLVM", evil.c_str()), e("HOME", home.c_str()), f("XDG_CACHE_HOME", home.c_str());
    if (::setresgid(65534, 65534, 65534) || ::setresuid(65534, 65534, 65534)) return 98;
    ::execl(self.c_str(), self.c_str(), "--gtest_filter=Environment.DISABLED_Child", "--gtest_also_run_disabled_tests",
            nullptr);
    return 97;
  });
  if (status == 77 || status == 97) GTEST_SKIP() << "programs in the temporary folder get no rights";
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(std::filesystem::exists(dir / "touched"));
  EXPECT_FALSE(std::filesystem::exists(cache));
  EXPECT_TRUE(files_in(home).empty());
}
