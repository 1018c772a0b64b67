#include "lightcone/backends/cpu/target/target.h"

#include <atomic>
#include <cstdint>
#include <utility>

#include "lightcone/base/error.h"
#include "lightcone/cache/environment.h"

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace lc::backends::cpu {
namespace {

// The value of $LIGHTCONE_TILES. "off" disables tiles. For tests on any processor with AVX-512, "emulated" emulates
// tiles, "refused" simulates a system that denies them, and "assumed" executes their instructions, which something in
// the process (simulators/amx) must know.
std::string tiles_wish() {
  static const std::string wish = [] {
    std::string w = env("LIGHTCONE_TILES");
    if (!w.empty() && w != "off" && w != "emulated" && w != "refused" && w != "assumed")
      throw Error("cpu", str_cat("LIGHTCONE_TILES is '", w, "', which is none of off, emulated, refused and assumed"));
    return w;
  }();
  return wish;
}

#if defined(__x86_64__) && defined(__linux__)
constexpr long kSupported = 0x1021, kRequestPermission = 0x1023;  // operations of arch_prctl
constexpr long kTileData = 18;
bool system_has_tiles() {
  std::uint64_t features = 0;
  return ::syscall(SYS_arch_prctl, kSupported, &features) == 0 && (features >> kTileData & 1);
}
bool system_grants_tiles() { return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0; }
#else
[[maybe_unused]] bool system_has_tiles() { return false; }
bool system_grants_tiles() { return false; }
#endif

enum class Answer : std::uint8_t { NotAsked, Granted, Refused };
std::atomic<Answer> g_answer{Answer::NotAsked};

// Keeps only the extensions that $LIGHTCONE_ISA lists after "+"; keeps all if it lists none.
void lower(Target& t) {
  const std::string wish = env("LIGHTCONE_ISA");
  if (wish.find('+') == std::string::npos) return;
  std::string rest = wish.substr(wish.find('+')) + "+";
  const auto keep = [&](bool& has, const std::string& name) {
    const std::size_t at = rest.find("+" + name + "+");
    has = has && at != std::string::npos;
    if (at != std::string::npos) rest.erase(at, name.size() + 1);
  };
  keep(t.avx512_bf16, "bf16"), keep(t.avx512_vnni, "vnni"), keep(t.amx, "amx"), keep(t.avx_vnni, "avxvnni");
  keep(t.dotprod, "dotprod"), keep(t.i8mm, "i8mm"), keep(t.bf16, "bf16");
  if (rest != "+" && rest != "+none+")
    throw Error("cpu", str_cat("LIGHTCONE_ISA is '", wish,
                               "': of extensions there are bf16, vnni, amx, avxvnni, dotprod, ", "i8mm, or none"));
  t.fast_bf16 = t.fast_bf16 && t.avx512_bf16;
}

#if defined(__x86_64__)
bool is_zen4() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__builtin_cpu_is("amd") || !__get_cpuid(1, &a, &b, &c, &d)) return false;
  constexpr unsigned kFamily = 25;  // has Zen 3, too, which has no AVX-512
  return (a >> 8 & 15) + (a >> 20 & 255) == kFamily;
}
#endif

// Uses CPUID bits directly because GCC 12's __builtin_cpu_supports() has no names for the newer extensions.
Target all_of_this_processor() {
  Target t;
#if defined(__x86_64__)
  t.isa = Isa::Avx512;
  unsigned a = 0, b = 0, c = 0, d = 0, more[4] = {};
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return t;
  if (__get_cpuid_count(7, 1, more, more + 1, more + 2, more + 3))
    t.avx_vnni = more[0] >> 4 & 1, t.avx512_bf16 = more[0] >> 5 & 1;
  t.avx512_vnni = c >> 11 & 1;
  t.fast_bf16 = t.avx512_bf16 && !__builtin_cpu_is("intel");
  t.halves_512 = is_zen4();
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24, kInt8 = 1u << 25, kAll = kBf16 | kTile | kInt8;
  // The tile kernels are compiled with VNNI and bf16 too, and a virtual machine may expose AMX without them.
  t.amx = t.avx512_vnni && t.avx512_bf16 && (d & kAll) == kAll && system_has_tiles();
  const std::string wish = tiles_wish();
  if (wish == "off") t.amx = false;
  else if (!wish.empty()) {
    t.amx = wish != "assumed" || (t.avx512_vnni && t.avx512_bf16);
    t.fast_bf16 = t.halves_512 = false;
  }
#elif defined(__aarch64__) && defined(__linux__)
  t.isa = Isa::Neon;
  constexpr unsigned long kDotprod = 1ul << 20, kI8mm = 1ul << 13, kArmBf16 = 1ul << 14;
  const unsigned long first = ::getauxval(AT_HWCAP), second = ::getauxval(AT_HWCAP2);
  t.dotprod = first & kDotprod;
  t.i8mm = second & kI8mm;
  t.bf16 = second & kArmBf16;
#endif
  lower(t);
  return t;
}

}  // namespace

Target::Target(Isa wanted) {
  static const Target all = all_of_this_processor();
  if (wanted == Isa::Neon && all.isa == Isa::Neon) *this = all;
  if (wanted == Isa::Avx512 && all.isa == Isa::Avx512) *this = all;
  if (wanted == Isa::Avx2) avx_vnni = all.avx_vnni;
  isa = wanted;
}

bool tiles_granted() {
  static const bool granted = [] {
    const std::string wish = tiles_wish();
    const bool yes = wish.empty() ? system_grants_tiles() : wish == "emulated" || wish == "assumed";
    g_answer = yes ? Answer::Granted : Answer::Refused;
    return yes;
  }();
  return granted;
}
bool tiles_refused() { return g_answer == Answer::Refused; }
bool tiles_emulated() { return tiles_wish() == "emulated"; }

std::string tiles_note() {
  switch (g_answer) {
    case Answer::NotAsked: break;
    case Answer::Granted:
      return "products run on AMX's tiles, which the system was asked for: stacks that threads have for signals "
             "(sigaltstack) must be large enough for them from now on, at least sysconf(_SC_MINSIGSTKSZ) bytes";
    case Answer::Refused:
      return "the system refuses this process AMX's tiles, as it does where a thread has a stack for signals "
             "(sigaltstack) of fewer than sysconf(_SC_MINSIGSTKSZ) bytes: products run as on a processor without AMX, "
             "slower, and with its bits";
  }
  return "";
}

const Target& this_target() {
  static const Target t(detect_isa());
  return t;
}

std::string str(const Target& t) {
  std::string s = name(t.isa);
  for (const auto& [has, what] : {std::pair{t.avx512_bf16, "bf16"},
                                  {t.avx512_vnni, "vnni"},
                                  {t.amx, "amx"},
                                  {t.avx_vnni, "avxvnni"},
                                  {t.dotprod, "dotprod"},
                                  {t.i8mm, "i8mm"},
                                  {t.bf16, "bf16"}})
    if (has) s += std::string("+") + what;
  return s;
}

bool runs_here(const Target& t) {
  const Target& here = this_target();
  if (t.isa == Isa::Neon || here.isa == Isa::Neon)
    return t.isa == here.isa && t.dotprod <= here.dotprod && t.i8mm <= here.i8mm && t.bf16 <= here.bf16;
  return t.isa <= here.isa && t.avx512_bf16 <= here.avx512_bf16 && t.avx512_vnni <= here.avx512_vnni &&
         t.amx <= here.amx && t.avx_vnni <= here.avx_vnni;
}

std::vector<Target> known_targets() {
  std::vector<Target> all;
  const auto add = [&](Isa isa) -> Target& {
    all.emplace_back().isa = isa;
    return all.back();
  };
  add(Isa::Generic);
#if defined(__x86_64__)
  add(Isa::Avx2);
  add(Isa::Avx2).avx_vnni = true;
  add(Isa::Avx512);
  add(Isa::Avx512).avx512_vnni = true;
  Target t = add(Isa::Avx512);
  t.avx512_vnni = t.avx512_bf16 = t.fast_bf16 = true;
  all.back() = t;
  t.fast_bf16 = false, t.amx = true;
  all.push_back(t);
#elif defined(__aarch64__)
  add(Isa::Neon);
  add(Isa::Neon).dotprod = true;
  Target& t = add(Isa::Neon);
  t.dotprod = t.i8mm = t.bf16 = true;
#endif
  return all;
}

}  // namespace lc::backends::cpu
