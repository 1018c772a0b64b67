// The primitives that kernels are made of give the same bits on a GPU, in their C++ twins and on the host.
//
// All other tests on the simulated CUDA rest on this. Where the device under test is the simulator itself, the
// expectations that the test states remain.
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "gpu_devices.h"
#include "lightcone/codegen/simt/dialect.h"
#include "paths.h"

using namespace lc;

namespace {

constexpr int kThreads = 256;
using Bits = std::vector<std::uint32_t>;

class Primitives : public test::OnGpu {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    if (IsSkipped()) return;
    if (GetParam().name != "cuda") GTEST_SKIP() << "these are CUDA's";
    static const auto fake =
        backends::cuda::open_device({.driver = paths::kFakeCuda, .compiler = paths::kFakeCuda, .cache = "off"});
    twin = fake;
  }
  // Computes out[t] for each t. `body` may use x = in[t], y = in[t + 1] and the count n0.
  static Bits run(backends::gpu::GpuDevice& d, const std::string& body, const Bits& in) {
    const std::vector<codegen::simt::Parameter> places = {{"u32", "in"}, {"u32", "out", true}};
    const std::string text =
        codegen::simt::prelude(codegen::simt::Language::Cuda) +
        codegen::simt::begin_kernel(codegen::simt::Language::Cuda, "k", kThreads, places, 1, "int") +
        "  const int t = LC_GROUP * 256 + LC_THREAD;\n  if (t >= n0) return;\n  const u32 x = in[t], y = in[t + 1];\n" +
        body + "}\n";
    const auto code = d.compile(text, {"k"});
    const std::int64_t n = static_cast<std::int64_t>(in.size()) - 1;
    Bits out(static_cast<std::size_t>(n));
    const auto from = d.allocate(in.size() * 4), to = d.allocate(out.size() * 4);
    d.copy_in({from.get(), 0}, in.data(), in.size() * 4);
    const BufferSlice places_of[] = {{from.get(), 0}, {to.get(), 0}};
    d.launch_kernel({.code = code.get(),
                     .grid_size = (n + kThreads - 1) / kThreads,
                     .block_size = kThreads,
                     .buffers = places_of,
                     .sizes = {&n, 1}});
    d.copy_out(out.data(), {to.get(), 0}, out.size() * 4);
    return out;
  }
  std::shared_ptr<backends::gpu::GpuDevice> twin;
};
LIGHTCONE_ON_GPUS(Primitives);

float number(std::uint32_t u) { return std::bit_cast<float>(u); }
std::uint32_t bits(float f) { return std::bit_cast<std::uint32_t>(f); }

// Pairs of edge cases in every order, and random bits. The count is a multiple of the block size, plus one.
Bits numbers() {
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> edges = {0.0f,    -0.0f,    1,           -1,          inf,          -inf,    nan,
                                    -nan,    65504,    65519.996f,  65520,       6e-8f,        2.9e-8f, 1e-45f,
                                    3.4e38f, -3.4e38f, 1.00390625f, 1.01171875f, 3.3895314e38f};
  Bits all;
  for (const float a : edges)
    for (const float b : edges) all.push_back(bits(a)), all.push_back(bits(b));
  std::mt19937 random(3);
  while (all.size() < 64 * kThreads) all.push_back(static_cast<std::uint32_t>(random()));
  all.push_back(0);
  return all;
}

// Compares as f32 numbers: any two NaNs are equal.
bool same(std::uint32_t a, std::uint32_t b) { return a == b || (std::isnan(number(a)) && std::isnan(number(b))); }

struct Primitive {
  std::string name, body;
  std::uint32_t (*want)(std::uint32_t x, std::uint32_t y);  // null: the C++ twin is the reference
  bool result_is_half = false;                              // NaNs of the half are equal
};

bool same_half(std::uint32_t a, std::uint32_t b, std::uint32_t infinity) {
  return a == b || ((a & 0x7fff) > infinity && (b & 0x7fff) > infinity);
}

std::uint32_t larger(std::uint32_t x, std::uint32_t y) {
  const float a = number(x), b = number(y);
  if (std::isnan(a) || std::isnan(b)) return 0x7fc00000u;
  return a == b ? (x & y) : bits(std::max(a, b));
}
std::uint32_t smaller(std::uint32_t x, std::uint32_t y) {
  const float a = number(x), b = number(y);
  if (std::isnan(a) || std::isnan(b)) return 0x7fc00000u;
  return a == b ? (x | y) : bits(std::min(a, b));
}
std::uint32_t to_bf16(std::uint32_t x, std::uint32_t) {
  if (std::isnan(number(x))) return 0x7fff;
  return (x + 0x7fff + ((x >> 16) & 1)) >> 16;
}

}  // namespace

TEST_P(Primitives, AreTheirTwins) {
  const Bits in = numbers();
  const std::vector<Primitive> all = {
      {"max", "  out[t] = lc_bits(lc_max_f(lc_float(x), lc_float(y)));\n", larger},
      {"min", "  out[t] = lc_bits(lc_min_f(lc_float(x), lc_float(y)));\n", smaller},
      {"to bf16", "  out[t] = lc_f32_to_bf16(lc_float(x));\n", to_bf16, true},
      {"rounded to bf16", "  out[t] = lc_bits(lc_round_bf16(lc_float(x)));\n", nullptr},
      {"from bf16", "  out[t] = lc_bits(lc_bf16_to_f32((u16)x));\n",
       [](std::uint32_t x, std::uint32_t) { return x << 16; }},
      {"to f16", "  out[t] = lc_f32_to_f16(lc_float(x));\n", nullptr, true},
      {"from f16", "  out[t] = lc_bits(lc_f16_to_f32((u16)x));\n", nullptr},
      {"multiply-add", "  out[t] = lc_bits(LC_FMA(lc_float(x), lc_float(y), 1.5f));\n",
       [](std::uint32_t x, std::uint32_t y) { return bits(std::fma(number(x), number(y), 1.5f)); }},
      {"quotient", "  out[t] = lc_bits(lc_div_f(lc_float(x), lc_float(y)));\n",
       [](std::uint32_t x, std::uint32_t y) { return bits(number(x) / number(y)); }},
      {"square root", "  out[t] = lc_bits(lc_sqrt_f(lc_float(x)));\n",
       [](std::uint32_t x, std::uint32_t) { return bits(std::sqrt(number(x))); }},
      {"a neighbour's register", "  out[t] = lc_bits(lc_shuffle_f(lc_float(x), 5));\n", nullptr},
  };
  for (const Primitive& p : all) {
    const Bits got = run(*device, p.body, in), twins = run(*twin, p.body, in);
    const std::uint32_t infinity = p.name == "to f16" ? 0x7c00 : 0x7f80;
    const auto alike = [&](std::uint32_t a, std::uint32_t b) {
      return p.result_is_half ? same_half(a, b, infinity) : same(a, b);
    };
    int wrong = 0;
    for (std::size_t k = 0; k < got.size() && wrong < 5; ++k) {
      const bool good = alike(got[k], twins[k]) && (!p.want || alike(got[k], p.want(in[k], in[k + 1])));
      if (good) continue;
      ++wrong;
      ADD_FAILURE() << p.name << " of " << std::hex << in[k] << " and " << in[k + 1] << " is " << got[k]
                    << ", its twin's " << twins[k];
    }
  }
}

// Vector loads and stores of each width copy the elements unchanged.
TEST_P(Primitives, ReadAndWriteSeveralElements) {
  Bits in = numbers();
  for (const char* type : {"u8", "u16", "u32", "float"})
    for (const int n : {2, 4, 8}) {
      const std::string width = std::to_string(n), t = type;
      // each thread copies n elements of the words' content
      const std::string body = "  const int all = n0 * 4 / (int)sizeof(" + t + ");\n  if (t * " + width +
                               " < all) {\n    LC_LOADV(" + t + ", " + width + ", w, (const " + t + "*)in + t * " +
                               width + ");\n    LC_VECTOR(" + t + ", " + width + ", v);\n    for (int l = 0; l < " +
                               width + "; ++l) LC_AT(v, l) = LC_AT(w, l);\n    LC_STOREV(" + t + ", " + width + ", (" +
                               t + "*)out + t * " + width + ", v);\n  }\n";
      const Bits got = run(*device, body, in);
      const std::size_t copied = std::min(got.size(), got.size() * static_cast<std::size_t>(n) *
                                                          (t == "u8"    ? 1
                                                           : t == "u16" ? 2
                                                                        : 4) /
                                                          4);
      int wrong = 0;
      for (std::size_t k = 0; k < copied && wrong < 3; ++k)
        if (got[k] != in[k]) ++wrong, ADD_FAILURE() << type << " by " << n << ": word " << k;
    }
}
