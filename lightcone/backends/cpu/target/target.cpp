#include "lightcone/backends/cpu/target/target.h"

#include <utility>

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace lc::host {
namespace {

// Tile registers are a process's own wish: the kernel then saves them with its threads.
[[maybe_unused]] bool tiles_are_granted() {
#if defined(__x86_64__) && defined(__linux__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

// GCC 12 has no names for the newer of these.
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
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24, kInt8 = 1u << 25, kAll = kBf16 | kTile | kInt8;
  // what goes with tiles is compiled for both, and a virtual machine may show one without the other
  t.amx = t.avx512_vnni && t.avx512_bf16 && (d & kAll) == kAll && tiles_are_granted();
#elif defined(__aarch64__) && defined(__linux__)
  t.isa = Isa::Neon;
  constexpr unsigned long kDotprod = 1ul << 20, kI8mm = 1ul << 13, kArmBf16 = 1ul << 14;
  const unsigned long first = ::getauxval(AT_HWCAP), second = ::getauxval(AT_HWCAP2);
  t.dotprod = first & kDotprod;
  t.i8mm = second & kI8mm;
  t.bf16 = second & kArmBf16;
#endif
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

const Target& this_target() {
  static const Target t(detect_isa());
  return t;
}

std::string str(const Target& t) {
  std::string s = name(t.isa);
  for (const auto& [has, what] : {std::pair{t.avx512_bf16, "bf16"}, {t.avx512_vnni, "vnni"}, {t.amx, "amx"},
                                  {t.avx_vnni, "avxvnni"}, {t.dotprod, "dotprod"}, {t.i8mm, "i8mm"}, {t.bf16, "bf16"}})
    if (has) s += std::string("+") + what;
  return s;
}

bool runs_here(const Target& t) {
  const Target& here = this_target();
  if (t.isa == Isa::Neon || here.isa == Isa::Neon) return t.isa == here.isa && t.dotprod <= here.dotprod &&
                                                          t.i8mm <= here.i8mm && t.bf16 <= here.bf16;
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

}  // namespace lc::host
