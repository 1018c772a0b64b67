#include "lightcone/backends/cpu/products/dense_unit.h"

#include <cmath>
#include <cstddef>
#include <cstring>

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
bool tiles_are_granted() {
#if defined(__x86_64__) && defined(__linux__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

// A small product by the tiles and by their emulation. Tile hardware was not at hand when this was written: what it
// gets wrong, or what was got wrong about it, makes it unused, and never an answer wrong.
bool tiles_work() {
  constexpr std::int64_t kSize = 32, kDepth = 64;
  std::vector<float> a(kSize * kDepth), b(kSize * kDepth);
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<float>(static_cast<int>(i * 37 % 251) - 125) / 64;
    b[i] = static_cast<float>(static_cast<int>(i * 53 % 241) - 120) / 64;
  }
  std::vector<std::byte> blocks(kSize * kDepth / 32 * 34);  // Q8_0 with scales of one
  for (std::size_t i = 0; i < blocks.size(); ++i)
    blocks[i] = i % 34 == 0 ? std::byte{0} : i % 34 == 1 ? std::byte{0x3c} : static_cast<std::byte>(i * 29);
  for (const Arithmetic way :
       {Arithmetic::Bf16, Arithmetic::Split2, Arithmetic::Split3, Arithmetic::Int8Step32, Arithmetic::Int8Exact}) {
    const bool int8 = way == Arithmetic::Int8Step32, exact = way == Arithmetic::Int8Exact;
    const Gemm g{.m = kSize,
                 .n = kSize,
                 .k = kDepth,
                 .type = int8    ? WeightType::Q8_0
                         : exact ? WeightType::I8
                                 : WeightType::F32,
                 .b = int8 ? static_cast<const void*>(blocks.data()) : b.data(),
                 .b_n = int8 ? kDepth / 32 * 34 : kDepth,
                 .b_k = 1};
    std::vector<float> c[2];
    for (const bool real : {false, true}) {
      const DenseUnit& u = (real ? kDenseAmx : kDenseEmulated)[static_cast<int>(way)];
      std::vector<std::byte> x(static_cast<std::size_t>(u.a_bytes(kDepth)) + 64),
          y(static_cast<std::size_t>(u.b_bytes(kDepth) * kSize / 16) + 64);
      const auto aligned = [](std::vector<std::byte>& v) {
        return v.data() + (64 - reinterpret_cast<std::uintptr_t>(v.data()) % 64) % 64;
      };
      u.pack_a(a.data(), kDepth, 1, kSize, kDepth, int8_format(g.type).zero, aligned(x));
      u.pack_b(g, 0, kSize, 0, kDepth, aligned(y), u.b_bytes(kDepth));
      c[real].resize(kSize * kSize);
      u.begin();
      u.tile(aligned(x), aligned(y), u.b_bytes(kDepth), kDepth, c[real].data(), kSize, kSize, kSize, false, aligned(y));
      u.end();
    }
    if (exact && std::memcmp(c[0].data(), c[1].data(), c[0].size() * 4) != 0) return false;
    for (std::size_t i = 0; !exact && i < c[0].size(); ++i)
      if (!(std::abs(c[0][i] - c[1][i]) <= 1e-4f * (1 + std::abs(c[0][i])))) return false;
  }
  return true;
}

// Beyond what an Isa says. GCC 12 has no names for the newer of these.
struct Extensions {
  bool avx512_bf16 = false, avx512_vnni = false, avx_vnni = false, amx = false;
  bool dotprod = false, i8mm = false, bf16 = false;  // Arm's
};
const Extensions& extensions() {
  static const Extensions found = [] {
    Extensions e;
#if defined(__x86_64__)
    unsigned a = 0, b = 0, c = 0, d = 0, more[4] = {};
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return e;
    if (__get_cpuid_count(7, 1, more, more + 1, more + 2, more + 3))
      e.avx_vnni = more[0] >> 4 & 1, e.avx512_bf16 = more[0] >> 5 & 1;
    e.avx512_vnni = c >> 11 & 1;
    constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24, kInt8 = 1u << 25, kAll = kBf16 | kTile | kInt8;
    // what goes with tiles is compiled for both, and a virtual machine may show one without the other
    const bool vectors = e.avx512_vnni && e.avx512_bf16;
    e.amx = vectors && (d & kAll) == kAll && tiles_are_granted() && tiles_work();
#elif defined(__aarch64__) && defined(__linux__)
    constexpr unsigned long kDotprod = 1ul << 20, kI8mm = 1ul << 13, kArmBf16 = 1ul << 14;
    const unsigned long first = ::getauxval(AT_HWCAP), second = ::getauxval(AT_HWCAP2);
    e.dotprod = first & kDotprod;
    e.i8mm = second & kI8mm;
    e.bf16 = second & kArmBf16;
#endif
    return e;
  }();
  return found;
}

// Intel's 512-bit bf16 products run at a third of the speed of f32 multiply-adds (measured on Sapphire Rapids).
bool bf16_products_are_fast() {
#if defined(__x86_64__)
  return !__builtin_cpu_is("intel");
#else
  return false;
#endif
}

const DenseUnit* neon_unit(Arithmetic a, const Extensions& e) {
  switch (a) {
    case Arithmetic::F32: return &kF32Neon;
    case Arithmetic::Bf16: return e.bf16 ? &kBf16NeonBf16 : &kBf16Neon;
    case Arithmetic::Split2:
    case Arithmetic::Split3: return nullptr;
    default: break;
  }
  const int i = static_cast<int>(a) - static_cast<int>(Arithmetic::Int8Step32);
  return (e.i8mm ? kInt8NeonI8mm : e.dotprod ? kInt8NeonDotprod : kInt8Neon) + i;
}

}  // namespace

bool bf16_dots_are_fast(Isa isa) { return isa == Isa::Avx512 && extensions().avx512_bf16 && bf16_products_are_fast(); }
bool bf16_is_fast(Isa isa) {
  if (isa == Isa::Neon) return extensions().bf16;
  return bf16_dots_are_fast(isa) || (isa == Isa::Avx512 && extensions().amx);
}

const DenseUnit* dense_unit(Arithmetic a, Isa isa) {
  const Extensions& e = extensions();
  if (isa == Isa::Neon) return neon_unit(a, e);
  if (a == Arithmetic::F32) return isa == Isa::Avx512 ? &kF32Avx512 : isa == Isa::Avx2 ? &kF32Avx2 : &kF32Generic;
  if (isa == Isa::Avx512 && e.amx) return kDenseAmx + static_cast<int>(a);
  switch (a) {
    case Arithmetic::Bf16:
      if (isa == Isa::Avx512) return bf16_is_fast(isa) ? &kBf16Avx512Bf16 : &kBf16Avx512;
      return isa == Isa::Avx2 ? &kBf16Avx2 : &kBf16Generic;
    case Arithmetic::Split2:
    case Arithmetic::Split3: return nullptr;
    default: break;
  }
  const int i = static_cast<int>(a) - static_cast<int>(Arithmetic::Int8Step32);
  if (isa == Isa::Avx512 && e.avx512_vnni) return kInt8Avx512Vnni + i;
  if (isa == Isa::Generic) return kInt8Generic + i;
  return (e.avx_vnni ? kInt8AvxVnni : kInt8Avx2) + i;
}

std::vector<const DenseUnit*> dense_units() {
  const Extensions& e = extensions();
  const Isa best = detect_isa();
  std::vector<const DenseUnit*> all{&kBf16Generic};
  const auto five = [&](const DenseUnit* u) { all.insert(all.end(), {u, u + 1, u + 2, u + 3, u + 4}); };
  five(kInt8Generic);
  if (best == Isa::Neon) {
    all.push_back(&kBf16Neon);
    if (e.bf16) all.push_back(&kBf16NeonBf16);
    five(kInt8Neon);
    if (e.dotprod) five(kInt8NeonDotprod);
    if (e.i8mm) five(kInt8NeonI8mm);
  }
  if (best == Isa::Avx2 || best == Isa::Avx512) {
    all.push_back(&kBf16Avx2);
    five(kInt8Avx2);
    if (e.avx_vnni) five(kInt8AvxVnni);
  }
  if (best == Isa::Avx512) {
    all.push_back(&kBf16Avx512);
    if (e.avx512_bf16) all.push_back(&kBf16Avx512Bf16);
    if (e.avx512_vnni) five(kInt8Avx512Vnni);
  }
  for (const DenseUnit& u : kDenseEmulated) all.push_back(&u);
  if (best == Isa::Avx512 && e.amx)
    for (const DenseUnit& u : kDenseAmx) all.push_back(&u);
  return all;
}

}  // namespace lc::host
