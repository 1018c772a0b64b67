#include "command.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <set>

#include "lightcone/backends/cpu/target/target.h"
#include "lightcone/backends/cpu/threads/thread_pool.h"
#include "lightcone/base/error.h"
#include "lightcone/base/numbers.h"
#include "lightcone/io/mapped_file.h"
#include "ranks.h"

// The default model, which the assembler embeds into the program.
extern "C" {
extern const char lightcone_story_begin[], lightcone_story_end[];
}
asm(R"(
  .section .rodata
  .balign 64
  .global lightcone_story_begin
  .global lightcone_story_end
lightcone_story_begin:
  .incbin ")" LIGHTCONE_STORY_MODEL R"("
lightcone_story_end:
  .byte 0
  .previous
)");

namespace lc::tool {

Weights open_model(const std::string& name, bool map) {
  if (name != "builtin") return Weights::open(name, {.map = map});
  const auto bytes = std::as_bytes(
      std::span(lightcone_story_begin, static_cast<std::size_t>(lightcone_story_end - lightcone_story_begin)));
  return Weights::open(MappedFile::view("builtin", bytes));
}

Progress::Progress() : terminal_(!is_silent() && isatty(STDERR_FILENO) == 1) {}
void Progress::show(std::string_view what, double part, std::string_view more) {
  if (!terminal_ || (shown_ && now() - last_ < 0.05)) return;
  last_ = now();
  shown_ = true;
  constexpr int width = 30;
  const int done = static_cast<int>(part * width);
  std::string bar(static_cast<std::size_t>(width), '.');
  std::fill(bar.begin(), bar.begin() + std::clamp(done, 0, width), '#');
  const std::string line = formatted("\r%-10s [%s] %3.0f %%%s%s\x1b[K", std::string(what).c_str(), bar.c_str(),
                                     part * 100, more.empty() ? "" : "  ", std::string(more).c_str());
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
}
void Progress::say(std::string_view line) {
  if (!terminal_ || (shown_ && now() - last_ < 0.05)) return;
  last_ = now();
  shown_ = true;
  std::fprintf(stderr, "\r%s\x1b[K", std::string(line).c_str());
  std::fflush(stderr);
}
void Progress::clear() {
  if (shown_) std::fprintf(stderr, "\r\x1b[K");
  shown_ = false;
}

void print_notes(const Program& p) {
  if (is_silent()) return;
  static std::set<std::string> said;
  for (const std::string& note : p.notes()) {
    if (note == backends::cpu::tiles_note() && !backends::cpu::tiles_refused())
      continue;  // no thread of this program has an alternate signal stack
    if (said.insert(note).second) std::fprintf(stderr, "lightcone: note: %s\n", note.c_str());
  }
}

namespace {

std::atomic<int> g_signal{0};
// A pipe that the signal handler writes to: whichever thread takes the signal, a poll of the other end returns.
int g_wake[2] = {-1, -1};
extern "C" void on_signal(int number) {
  if (g_signal.exchange(number) != 0) std::_Exit(128 + number);
  const int before = errno;
  if (g_wake[1] >= 0 && ::write(g_wake[1], "", 1) < 0) errno = before;
}

}  // namespace

void catch_signals() { std::signal(SIGINT, on_signal), std::signal(SIGTERM, on_signal); }
int caught_signal() { return g_signal.load(); }
void forget_signal() { g_signal.store(0); }

bool wait_for_input(int descriptor) {
  if (g_wake[0] < 0 && ::pipe2(g_wake, O_NONBLOCK | O_CLOEXEC) != 0) throw Error("read", std::strerror(errno));
  while (caught_signal() == 0) {
    pollfd both[2] = {{descriptor, POLLIN, 0}, {g_wake[0], POLLIN, 0}};
    if (::poll(both, 2, -1) < 0 && errno != EINTR) throw Error("read", std::strerror(errno));
    char bytes[16];
    while (::read(g_wake[0], bytes, sizeof bytes) > 0) {
    }
    if (both[0].revents != 0 && caught_signal() == 0) return true;
  }
  return false;
}

std::string human_bytes(double n) {
  const char* units[] = {"B", "kB", "MB", "GB", "TB"};
  int u = 0;
  for (; n >= 1000 && u < 4; ++u) n /= 1000;
  return formatted(u == 0 ? "%.0f %s" : "%.1f %s", n, units[u]);
}

double peak_rss_bytes() {
  rusage u = {};
  getrusage(RUSAGE_SELF, &u);
  return static_cast<double>(u.ru_maxrss) * 1024;
}

std::size_t physical_memory() {
  return static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

std::string cpu_name() {
  std::ifstream f("/proc/cpuinfo");
  for (std::string line; std::getline(f, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown processor";
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void write_stdout(std::string_view text) {
  if (is_silent()) return;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw Error("write", str_cat("cannot write to the standard output: ", std::strerror(errno)));
}

}  // namespace lc::tool
