#include "lightcone/backends/cpu/target/isa.h"

#include <string>

#include "lightcone/base/error.h"
#include "lightcone/cache/environment.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace lc::backends::cpu {
namespace {

#if defined(__x86_64__)
// clang 16's __builtin_cpu_supports() does not accept "f16c". The check for "avx2" covers the system's support for wide
// registers.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

}  // namespace

Isa detect_isa() {
  static const Isa best = [] {
    const std::string wish = env("LIGHTCONE_ISA"), cap = wish.substr(0, wish.find('+'));
    if (!cap.empty() && cap != "generic" && cap != "avx2" && cap != "avx512" && cap != "neon")
      throw Error("cpu", str_cat("LIGHTCONE_ISA is '", wish, "', which is none of generic, avx2, avx512 and neon"));
    if (cap == "generic") return Isa::Generic;
#if defined(__x86_64__)
    const bool avx2 =
        __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") && has_f16c();
    if (cap != "avx2" && avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
      return Isa::Avx512;
    if (avx2) return Isa::Avx2;
#elif defined(__aarch64__)
    return Isa::Neon;  // every AArch64 processor has NEON
#endif
    return Isa::Generic;
  }();
  return best;
}

std::vector<Isa> isas() {
  switch (detect_isa()) {
    case Isa::Neon: return {Isa::Generic, Isa::Neon};
    case Isa::Avx512: return {Isa::Generic, Isa::Avx2, Isa::Avx512};
    case Isa::Avx2: return {Isa::Generic, Isa::Avx2};
    case Isa::Generic: break;
  }
  return {Isa::Generic};
}

const char* name(Isa isa) {
  switch (isa) {
    case Isa::Neon: return "neon";
    case Isa::Avx512: return "avx512";
    case Isa::Avx2: return "avx2";
    case Isa::Generic: break;
  }
  return "generic";
}

}  // namespace lc::backends::cpu
