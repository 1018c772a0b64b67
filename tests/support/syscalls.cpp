#include "syscalls.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <ucontext.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#if defined(__x86_64__)

// The only instruction whose calls the filter lets through: the filter compares the instruction pointer after it.
extern "C" long lightcone_system_call(long number, long a, long b, long c, long d, long e, long f);
extern "C" const char lightcone_after_system_call[];
asm(R"(
  .text
  .global lightcone_system_call
  .global lightcone_after_system_call
lightcone_system_call:
  mov %rdi, %rax
  mov %rsi, %rdi
  mov %rdx, %rsi
  mov %rcx, %rdx
  mov %r8, %r10
  mov %r9, %r8
  mov 8(%rsp), %r9
  syscall
lightcone_after_system_call:
  ret
)");

namespace {

constexpr int kCalls = 512;
std::array<std::atomic<long>, kCalls> by_caller, by_others;
std::atomic<bool> counting{false};
thread_local bool is_caller = false;

void trapped(int, siginfo_t* info, void* context) {
  greg_t* r = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const int number = info->si_syscall;
  if (counting && number >= 0 && number < kCalls)
    ++(is_caller ? by_caller : by_others)[static_cast<std::size_t>(number)];
  const int saved = errno;
  r[REG_RAX] = lightcone_system_call(number, r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10], r[REG_R8], r[REG_R9]);
  errno = saved;
}

// Returns zero, or the errno with which the kernel refuses the filter.
int put_under_filter() {
  struct sigaction action {};
  action.sa_sigaction = trapped;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  if (::sigaction(SIGSYS, &action, nullptr) != 0) return errno;
  const auto at = reinterpret_cast<std::uint64_t>(lightcone_after_system_call);
  const auto low = static_cast<std::uint32_t>(at), high = static_cast<std::uint32_t>(at >> 32);
  constexpr std::uint32_t ip = offsetof(seccomp_data, instruction_pointer);
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 4, 0),  // allows the return from the handler
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ip),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, low, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ip + 4),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, high, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
  };
  const sock_fprog program{sizeof filter / sizeof *filter, filter};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0) return errno;
  return 0;
}

struct Report {
  int refused = 0;
  long caller[kCalls] = {}, others[kCalls] = {};
};

[[noreturn]] void child(int out, const std::function<void()>& ready, const std::function<void()>& f) {
  static Report report;
  is_caller = true;
  ready();
  report.refused = put_under_filter();
  if (!report.refused) {
    counting = true;
    f();
    counting = false;
    for (std::size_t k = 0; k < kCalls; ++k) report.caller[k] = by_caller[k], report.others[k] = by_others[k];
  }
  for (std::size_t done = 0; done < sizeof report;) {
    const ssize_t n = ::write(out, reinterpret_cast<const char*>(&report) + done, sizeof report - done);
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  ::_exit(0);
}

}  // namespace

SystemCalls count_system_calls(const std::function<void()>& ready, const std::function<void()>& f) {
  SystemCalls found;
#if defined(__SANITIZE_THREAD__)
  found.text = "under ThreadSanitizer a child cannot start threads";
  return found;
#endif
  int ends[2];
  if (::pipe(ends) != 0) return found.text = "no pipe", found;
  const pid_t pid = ::fork();
  if (pid == 0) child(ends[1], ready, f);
  ::close(ends[1]);
  Report report;
  std::size_t have = 0;
  for (ssize_t n; have < sizeof report; have += static_cast<std::size_t>(n))
    if (n = ::read(ends[0], reinterpret_cast<char*>(&report) + have, sizeof report - have); n <= 0) break;
  ::close(ends[0]);
  int status = 0;
  if (pid > 0) ::waitpid(pid, &status, 0);
  if (have != sizeof report) {
    found.possible = pid > 0;  // a child that died is a failure, not a reason to skip
    found.caller[-1] = 1;
    found.text = "the counting process ended early";
    return found;
  }
  if (report.refused) {
    found.text = std::string("this system lets no process filter its own calls: ") + std::strerror(report.refused);
    return found;
  }
  found.possible = true;
  for (int k = 0; k < kCalls; ++k) {
    if (report.caller[k]) found.caller[k] = report.caller[k];
    if (report.others[k]) found.others[k] = report.others[k];
  }
  const auto list = [](const std::map<int, long>& calls) {
    std::string s;
    for (const auto& [number, times] : calls)
      s += (s.empty() ? "" : ", ") + std::to_string(times) + " x call " + std::to_string(number);
    return s.empty() ? std::string("none") : s;
  };
  found.text = "the calling thread: " + list(found.caller) + "; workers: " + list(found.others) + " (" +
               std::to_string(SYS_futex) + " is futex, " + std::to_string(SYS_sched_yield) + " sched_yield)";
  return found;
}

#else

SystemCalls count_system_calls(const std::function<void()>&, const std::function<void()>&) {
  SystemCalls found;
  found.text = "counting system calls is written for x86-64 only";
  return found;
}

#endif
