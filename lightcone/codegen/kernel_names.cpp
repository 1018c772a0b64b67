#include "lightcone/codegen/kernel_names.h"

#include <array>
#include <bit>
#include <cstdio>
#include <tuple>

namespace lc::codegen {
namespace {

std::size_t hash_of(const Kernel& k) {
  std::size_t h = k.instrs.size();
  for (const Instr& i : k.instrs)
    h = h * 31 + i.offset.hash() + static_cast<std::size_t>(i.code) * 7 + static_cast<std::size_t>(i.op);
  return h;
}

// Compares everything except names.
bool same_code(const Kernel& x, const Kernel& y) {
  const auto code = [](const Kernel& k) {
    return std::tie(k.instrs, k.loops, k.reductions, k.rows, k.cached_values, k.tiles, k.top, k.output_loops, k.result,
                    k.store_offset, k.dtype, k.buffers, k.sizes, k.streams, k.stream, k.fence, k.ahead, k.pipelined,
                    k.work);
  };
  return code(x) == code(y);
}

}  // namespace

bool operator==(const Instr& x, const Instr& y) {
  const auto rest = [](const Instr& i) {
    return std::tie(i.code, i.dtype, i.offset, i.valid, i.stride, i.extent, i.buffer, i.op, i.a, i.b, i.c);
  };
  return std::bit_cast<std::uint64_t>(x.value) == std::bit_cast<std::uint64_t>(y.value) && rest(x) == rest(y);
}

const std::string& KernelNames::of(const std::string& text) {
  const auto [it, fresh] = names_.try_emplace(text);
  if (!fresh) return it->second;
  std::array<char, 24> hex;
  std::snprintf(hex.data(), hex.size(), "k_%016zx", hash_(text));
  std::string name = hex.data();
  for (int n = 2; !taken_.insert(name).second; ++n) name = hex.data() + ("_" + std::to_string(n));
  return it->second = std::move(name);
}

const std::string& KernelNames::of(const Kernel& k, const std::function<std::string()>& text) {
  const std::size_t h = hash_of(k);
  for (auto [at, end] = known_.equal_range(h); at != end; ++at)
    if (same_code(at->second.first, k)) return at->second.second;
  return known_.emplace(h, std::pair(k, of(text())))->second.second;
}

}  // namespace lc::codegen
