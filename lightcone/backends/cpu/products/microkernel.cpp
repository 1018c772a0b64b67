#include "lightcone/backends/cpu/products/microkernel.h"

#include <cmath>
#include <cstddef>
#include <cstring>

namespace lc::backends::cpu {
namespace {

// AMX self-test: compares small products on tiles with their emulation. If hardware or a virtual machine computes them
// wrong, tiles are not used, so that results are never wrong.
bool tiles_work() {
  constexpr std::int64_t kSize = 32, kDepth = 64;
  std::vector<float> a(kSize * kDepth), b(kSize * kDepth);
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<float>(static_cast<int>(i * 37 % 251) - 125) / 64;
    b[i] = static_cast<float>(static_cast<int>(i * 53 % 241) - 120) / 64;
  }
  std::vector<std::byte> blocks(kSize * kDepth / 32 * 34);  // Q8_0 blocks with scales of 1
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
      const Microkernel& u = (real ? kDenseAmx : kDenseEmulated)[static_cast<int>(way)];
      std::vector<std::byte> x(static_cast<std::size_t>(u.a_bytes(kDepth)) + 64),
          y(static_cast<std::size_t>(u.b_bytes(kDepth) * kSize / 16) + 64);
      const auto aligned = [](std::vector<std::byte>& v) {
        return v.data() + (64 - reinterpret_cast<std::uintptr_t>(v.data()) % 64) % 64;
      };
      u.pack_a(a.data(), kDepth, 1, kSize, kDepth, int8_format(g.type).zero, aligned(x));
      u.pack_b(&g, 0, kSize, 0, kDepth, aligned(y), u.b_bytes(kDepth));
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

// Tiles are used if this build has kernels for them, the system grants them and the self-test passes.
bool has_tiles(const Target& t) {
  if (!may_have_tiles(t)) return false;
  static const bool here = this_target().amx;  // otherwise compiling for another processor
  if (!here) return true;
  static const bool emulated = tiles_emulated();
  static const bool rounds = emulated || this_target().avx512_bf16;  // by an instruction
  static const bool work = (emulated || kDenseAmx[0].tile) && tiles_granted() && rounds && (emulated || tiles_work());
  return work;
}
const Microkernel* tiles() { return tiles_emulated() ? kDenseEmulated : kDenseAmx; }

const Microkernel* neon_unit(Arithmetic a, const Target& e) {
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

bool bf16_dots_are_fast(const Target& t) { return t.isa == Isa::Avx512 && t.avx512_bf16 && t.fast_bf16; }
bool bf16_is_fast(const Target& t) {
  if (t.isa == Isa::Neon) return t.bf16;
  return bf16_dots_are_fast(t) || has_tiles(t);
}

bool may_have_tiles(const Target& t) { return t.isa == Isa::Avx512 && t.amx; }
bool bf16_may_be_fast(const Target& t) {
  const bool tiles = may_have_tiles(t) && !(this_target().amx && tiles_refused());
  return t.isa == Isa::Neon ? t.bf16 : bf16_dots_are_fast(t) || tiles;
}
bool on_tiles(const Microkernel& u) {
  const auto among = [&](const Microkernel* all) { return &u >= all && &u < all + 8; };
  return among(kDenseAmx) || among(kDenseEmulated);
}

bool takes(const Microkernel& u, WeightType t) {
  const Int8Format format = int8_format(t);
  return has_codec(t) && u.arithmetic == format.arithmetic && format.bits <= u.code_bits;
}

const Microkernel* microkernel(Arithmetic a, const Target& t, int code_bits) {
  if (t.isa == Isa::Neon) return neon_unit(a, t);
  if (a == Arithmetic::F32) return kernel_tables(t.isa).f32;
  if (has_tiles(t)) return tiles() + static_cast<int>(a);
  switch (a) {
    case Arithmetic::Bf16:
      return t.isa == Isa::Avx512 && bf16_is_fast(t) ? &kBf16Avx512Bf16 : kernel_tables(t.isa).bf16;
    case Arithmetic::Split2:
    case Arithmetic::Split3: return nullptr;
    default: break;
  }
  const int i = static_cast<int>(a) - static_cast<int>(Arithmetic::Int8Step32);
  if (t.isa == Isa::Avx512 && t.avx512_vnni) return kInt8Avx512Vnni + i;
  if (t.isa == Isa::Generic) return kInt8Generic + i;
  if (t.avx_vnni) return kInt8AvxVnni + i;
  const Microkernel* narrow = kInt8Avx2 + 5 + i;  // there are two
  return i < 2 && code_bits <= narrow->code_bits ? narrow : kInt8Avx2 + i;
}

std::vector<const Microkernel*> microkernels() {
  const Target& t = this_target();
  std::vector<const Microkernel*> all{&kBf16Generic};
  const auto five = [&](const Microkernel* u) { all.insert(all.end(), {u, u + 1, u + 2, u + 3, u + 4}); };
  five(kInt8Generic);
  if (t.isa == Isa::Neon) {
    all.push_back(&kBf16Neon);
    if (t.bf16) all.push_back(&kBf16NeonBf16);
    five(kInt8Neon);
    if (t.dotprod) five(kInt8NeonDotprod);
    if (t.i8mm) five(kInt8NeonI8mm);
  }
  if (t.isa == Isa::Avx2 || t.isa == Isa::Avx512) {
    all.push_back(&kBf16Avx2);
    five(kInt8Avx2);
    all.insert(all.end(), {kInt8Avx2 + 5, kInt8Avx2 + 6});
    if (t.avx_vnni) five(kInt8AvxVnni);
  }
  if (t.isa == Isa::Avx512) {
    all.push_back(&kBf16Avx512);
    if (t.avx512_bf16) all.push_back(&kBf16Avx512Bf16);
    if (t.avx512_vnni) five(kInt8Avx512Vnni);
  }
  for (const Microkernel& u : kDenseEmulated) all.push_back(&u);
  if (has_tiles(t) && !tiles_emulated())
    for (const Microkernel& u : kDenseAmx) all.push_back(&u);
  return all;
}

}  // namespace lc::backends::cpu
