#include "lightcone/backends/cpu/jit/compiler_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "lightcone/backends/cpu/jit/elf_check.h"
#include "lightcone/backends/cpu/jit/jit.h"

extern char** environ;

namespace lc::backends::cpu {
namespace {

constexpr std::size_t kLargest = 64u << 20;
constexpr std::size_t kWords = 600;
constexpr int kFirstNumber = 10;
constexpr int kUnknown = -1;  // status of a process that could not be waited for

std::string first_words(const cache::Descriptor& d) {
  std::string s = cache::read_all(d.get(), kLargest).value_or("").substr(0, kWords);
  while (!s.empty() && s.back() == '\n') s.pop_back();
  return s.empty() ? "it said nothing; LIGHTCONE_CC names another C compiler, LIGHTCONE_CC=none does without" : s;
}

// Restores SIGCHLD's default action in the child: ignored signals are inherited, and clang's driver waits for its own
// children without resetting SIGCHLD, unlike GCC's.
class ChildAttributes {
 public:
  ChildAttributes() {
    error_ = ::posix_spawnattr_init(&attributes_);
    if (error_ != 0) return;
    sigset_t children;
    ::sigemptyset(&children);
    ::sigaddset(&children, SIGCHLD);
    ::posix_spawnattr_setsigdefault(&attributes_, &children);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF);
  }
  ChildAttributes(const ChildAttributes&) = delete;
  ~ChildAttributes() {
    if (error_ == 0) ::posix_spawnattr_destroy(&attributes_);
  }
  int error() const { return error_; }
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
  int error_ = 0;
};

// A setuid program must not pass its caller's environment to the compiler.
char* const* child_environment() {
  static char path[] = "PATH=/usr/bin:/bin";
  static char* const plain[] = {path, nullptr};
  return ::getauxval(AT_SECURE) ? plain : environ;
}

}  // namespace

cache::Descriptor memory_file(std::string_view content) {
  const cache::Descriptor first(::memfd_create("lightcone", MFD_CLOEXEC));
  const auto again = [&] { return ::fcntl(first.get(), F_DUPFD_CLOEXEC, kFirstNumber); };
  cache::Descriptor d(first ? cache::uninterrupted(again) : -1);
  if (!d) throw CompilerUnfit("jit", str_cat("the system gives no file in memory: ", std::strerror(errno)));
  if (!cache::write_all(d.get(), content))
    throw CompilerUnfit("jit", str_cat("writing a file in memory failed: ", std::strerror(errno)));
  return d;
}

CompilerProcess::CompilerProcess(const std::vector<std::string>& args, std::string_view text)
    : program_(args.front()), in_(memory_file(text)), out_(memory_file("")), words_(memory_file("")) {
  std::vector<char*> argv;
  for (const std::string& a : args) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  int error = ::posix_spawn_file_actions_init(&actions);
  if (error == 0) {
    const std::pair<int, int> numbers[] = {{in_.get(), 0}, {words_.get(), 1}, {words_.get(), 2}, {out_.get(), 3}};
    for (const auto& [from, to] : numbers)
      if (error == 0) error = ::posix_spawn_file_actions_adddup2(&actions, from, to);
    const ChildAttributes attributes;
    if (error == 0) error = attributes.error();
    if (error == 0) error = ::posix_spawn(&pid_, argv[0], &actions, attributes.get(), argv.data(), child_environment());
    ::posix_spawn_file_actions_destroy(&actions);
  }
  if (error == 0) return;
  pid_ = -1;
  throw CompilerUnfit("jit", str_cat("cannot start ", program_, ": ", std::strerror(error)));
}

CompilerProcess::~CompilerProcess() {
  if (pid_ > 0) wait();
}

// Returns kUnknown if the host program ignores SIGCHLD, or its handler has already waited for all children.
int CompilerProcess::wait() {
  int status = 0;
  const pid_t ended = cache::uninterrupted([&] { return ::waitpid(pid_, &status, 0); });
  pid_ = -1;
  return ended < 0 ? kUnknown : status;
}

std::string CompilerProcess::finish() {
  const int status = wait();
  if (status != kUnknown && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
    throw CompilerUnfit("jit",
                        str_cat(program_, " failed with ", WIFEXITED(status) ? "exit status " : "signal ",
                                WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), ": ", first_words(words_)));
  std::optional<std::string> object = cache::read_all(out_.get(), kLargest);
  if (!object) throw CompilerUnfit("jit", str_cat("what ", program_, " wrote cannot be read: ", std::strerror(errno)));
  if (!whole_elf(*object, ET_DYN))
    throw CompilerUnfit("jit",
                        str_cat(program_, " reported no failure but wrote ", object->empty() ? "no" : "no whole",
                                " shared object, so it is no C compiler for this machine: ", first_words(words_)));
  return std::move(*object);
}

// GCC and clang name standard input "<stdin>" in messages.
bool speaks_of_text(std::string_view words) { return words.find("<stdin>:") != std::string_view::npos; }

}  // namespace lc::backends::cpu
