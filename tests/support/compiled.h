// Small kernels compiled by backends::cpu::jit(), for tests of the compiler cache, the system compiler and loading.
#pragma once

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data.h"
#include "lightcone/backends/cpu/jit/jit.h"
#include "lightcone/base/error.h"

// A kernel that multiplies by `factor`. All these kernels have the same name.
inline lc::backends::cpu::Source times(int factor) {
  return {"times", lc::str_cat("void times(const void* const* in, void* out, const long* n, long begin, long end) {"
                               " for (long i = begin; i < end; ++i) ((float*)out)[i] = ",
                               factor, " * ((const float*)in[0])[i]; }\n")};
}
inline float called(const lc::backends::cpu::Jitted& j, float x) {
  float y = 0;
  const void* in[] = {&x};
  j.functions.at(0)(in, &y, nullptr, 0, 1);
  return y;
}
// Compiles the kernel, checks its result, and returns how many units were compiled and how many came from the cache.
inline std::pair<int, int> built(int factor, const lc::backends::cpu::JitOptions& o) {
  const lc::backends::cpu::Source s = times(factor);
  const lc::backends::cpu::Jitted j = lc::backends::cpu::jit({&s, 1}, o);
  EXPECT_EQ(called(j, 5), static_cast<float>(5 * factor));
  return {j.compiled, j.cached};
}
inline constexpr std::pair<int, int> kCompiled{1, 0}, kFromCache{0, 1};

inline std::string words(const std::function<void()>& f) {
  try {
    f();
  } catch (const lc::Error& e) {
    return e.what();
  }
  return "no error";
}

// Writes an executable shell script to `path`.
inline std::string script(const std::string& path, const std::string& text) {
  spit(path, "#!/bin/sh\n" + text + "\n");
  ::chmod(path.c_str(), 0755);
  return path;
}

// RAII: sets (or unsets, if `value` is null) an environment variable for one scope.
struct Setting {
  std::string name;
  std::optional<std::string> before;
  Setting(const char* n, const char* value) : name(n) {
    if (const char* v = std::getenv(n)) before = v;
    if (value) ::setenv(n, value, 1);
    else ::unsetenv(n);
  }
  Setting(const Setting&) = delete;
  ~Setting() {
    if (before) ::setenv(name.c_str(), before->c_str(), 1);
    else ::unsetenv(name.c_str());
  }
};

inline std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> all;
  for (const auto& f : std::filesystem::directory_iterator(folder)) all.push_back(f.path().string());
  return all;
}
inline std::size_t open_descriptors() { return files_in("/proc/self/fd").size(); }

// Runs `f` in a child process. Returns its exit status, or minus the number of the signal that ended it.
inline int in_child(const std::function<int()>& f) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    int status = 99;
    try {
      status = f();
    } catch (...) {
    }
    ::_exit(status);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

#define NEEDS_C_COMPILER()                                                                \
  if (const std::string c = lc::backends::cpu::find_compiler(); c.empty() || c == "llvm") \
  GTEST_SKIP() << "no C compiler here"
