#include "nvrtc/compiler.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "driver/settings.h"
#include "nvrtc/files.h"
#include "nvrtc/image.h"

extern char** environ;

namespace lc::simulators::cuda {
namespace {

constexpr unsigned kMostStaticShared = 48 << 10;

struct KernelName {
  std::string name, max_threads;
};

// Removes comments, because they may mention kernels.
std::string without_comments(std::string_view s) {
  std::string out;
  for (std::size_t i = 0; i < s.size();) {
    const std::string_view two = s.substr(i, 2);
    if (two == "//") i = std::min(s.find('\n', i), s.size());
    else if (two == "/*") i = std::min(s.find("*/", i + 2), s.size() - 2) + 2;
    else out += s[i++];
  }
  return out;
}

// Parses a declaration from the left.
class Words {
 public:
  explicit Words(std::string_view s) : s_(s) {}
  bool take(std::string_view word) {
    skip();
    if (!s_.starts_with(word)) return false;
    s_.remove_prefix(word.size());
    return true;
  }
  std::string name() {
    skip();
    std::size_t n = 0;
    while (n < s_.size() && (std::isalnum(static_cast<unsigned char>(s_[n])) || s_[n] == '_')) ++n;
    const std::string out(s_.substr(0, n));
    s_.remove_prefix(n);
    return out;
  }
  std::string in_parentheses() {
    skip();
    std::size_t n = 0;
    for (int depth = 0; n < s_.size();) {
      depth += s_[n] == '(' ? 1 : s_[n] == ')' ? -1 : 0;
      ++n;
      if (depth == 0) break;
    }
    const std::string out(s_.substr(0, n));
    s_.remove_prefix(n);
    return out;
  }

 private:
  void skip() {
    while (!s_.empty() && std::isspace(static_cast<unsigned char>(s_.front()))) s_.remove_prefix(1);
  }
  std::string_view s_;
};

// Finds declarations: extern "C" __global__ void [__launch_bounds__(most)] name( with void and the bounds in either
// order.
std::vector<KernelName> kernels_of(const std::string& text) {
  const std::string plain = without_comments(text);
  std::vector<KernelName> kernels;
  constexpr std::string_view kStart = "extern \"C\"";
  for (std::size_t at = plain.find(kStart); at != std::string::npos; at = plain.find(kStart, at + 1)) {
    Words words(std::string_view(plain).substr(at + kStart.size()));
    if (!words.take("__global__")) continue;
    KernelName k{"", "(0)"};
    if (words.take("__launch_bounds__")) k.max_threads = words.in_parentheses();
    if (!words.take("void")) continue;
    if (words.take("__launch_bounds__")) k.max_threads = words.in_parentheses();
    k.name = words.name();
    if (!k.name.empty() && words.take("(")) kernels.push_back(k);
  }
  return kernels;
}

std::string unit(const Source& source, const std::vector<KernelName>& kernels) {
  std::string text = "#define LC_CUDA_SHIM 1\n#define __CUDA_ARCH__ " + std::to_string(source.compute_capability * 10) +
                     "\n#include \"cuda_shim.h\"\n";
  for (const auto& [name, value] : source.macros) text += "#define " + name + " " + value + "\n";
  text += "#line 1 \"" + source.name + "\"\n" + source.text + "\n";
  text += "#line 1 \"(the table of kernels)\"\nLC_MODULE(";
  for (const KernelName& k : kernels)  // the first launch bound is the number of threads per block
    text += "LC_KERNEL(" + k.name + ", (LcFirst" + k.max_threads + ".value)) ";
  return text + ")\n";
}

// Returns the exit status, or -1 if the compiler cannot be started.
int run(const std::vector<std::string>& command, const std::string& log) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 2, log.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_adddup2(&files, 2, 1);
  pid_t child = 0;
  const int error = posix_spawnp(&child, argv[0], &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) return -1;
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::vector<std::string> command(const Source& source, const std::string& folder) {
  const char* named = std::getenv("FAKE_CUDA_CXX");
  const char* carried = std::getenv("FAKE_CUDA_SHIM");  // set if the tests were copied to another machine
  std::vector<std::string> c{named != nullptr && *named != 0 ? named : "c++",
                             "-std=c++17",
                             "-O1",
                             "-ffp-contract=off",
                             "-fno-math-errno",
                             "-fno-exceptions",
                             "-fno-rtti",
                             "-fno-asynchronous-unwind-tables",
                             "-fno-strict-aliasing",
                             "-fno-stack-protector",
                             "-fvisibility=hidden",
                             "-w",
                             "-fPIC",
                             "-shared",
                             "-nostdlib",
                             std::string("-I") + (carried ? carried : FAKE_CUDA_SHIM),
                             "-I" + folder};
  if (const std::string flag = instruction_set_flag(); !flag.empty()) c.push_back("-march=" + flag);
  c.insert(c.end(), source.flags.begin(), source.flags.end());
  c.insert(c.end(), {"-o", folder + "/kernel.so", folder + "/kernel.cpp"});
  return c;
}

// Returns the error of ptxas if static shared memory exceeds its limit, or "".
std::string too_much_shared(const std::string& object, const std::vector<KernelName>& kernels) {
  std::vector<std::string> names;
  for (const KernelName& k : kernels) names.push_back(k.name);
  std::string log;
  for (const auto& [name, bytes] : shared_bytes(object, names))
    if (bytes > kMostStaticShared)
      log += "ptxas error   : Entry function '" + name + "' uses too much shared data (" + std::to_string(bytes) +
             " bytes, " + std::to_string(kMostStaticShared) + " max)\n";
  return log;
}

bool injected_failure() {
  Settings::Value& left = settings().fail_compiles;
  for (long n = left; n > 0;)
    if (left.compare_exchange_weak(n, n - 1)) return true;
  return false;
}

}  // namespace

Compiled compile(const Source& source) {
  Compiled out;
  ++settings().compiles;
  if (injected_failure()) return out.log = source.name + "(1): error: a failure that the test asked for\n", out;
  const std::vector<KernelName> kernels = kernels_of(source.text);
  if (kernels.empty()) return out.log = "the text has no kernel: extern \"C\" __global__ void name(...)\n", out;
  const TemporaryFolder folder;
  const std::string text = unit(source, kernels), log = folder.path() + "/log";
  bool written = write_file(folder.path() + "/kernel.cpp", text.data(), text.size());
  for (const auto& [name, content] : source.headers)
    written = written && write_file(folder.path() + "/" + name, content.data(), content.size());
  if (!written) return out.log = "cannot write to " + folder.path() + "\n", out;
  const int status = run(command(source, folder.path()), log);
  read_file(log, out.log);
  if (status < 0) out.log += "the C++ compiler cannot be started; FAKE_CUDA_CXX names another\n";
  std::string object;
  if (status != 0 || !read_file(folder.path() + "/kernel.so", object)) return out;
  const std::string shared = too_much_shared(object, kernels);
  out.log += shared;
  out.right = shared.empty();
  if (out.right) out.image = seal(object, source.compute_capability);
  return out;
}

}  // namespace lc::simulators::cuda
