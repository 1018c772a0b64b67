// Metal's shading language as the tests run it computes the right numbers and refuses what a Metal compiler refuses.
#include <cmath>
#include <cstring>
#include <random>

#include "../metal/fake.h"
#include "../metal/msl_check.h"
#include "paths.h"

namespace lc::test {
namespace {

const std::string kHead = "#include <metal_stdlib>\nusing namespace metal;\n";

// Runs the kernel `k` with one threadgroup over an input and an output array.
template <class Out, class In>
std::vector<Out> run(const std::string& text, const std::vector<In>& x, std::size_t n, int threads,
                     std::vector<std::int64_t> sizes = {}) {
  const auto d = backends::metal::open_device({.device = 0, .library = paths::kFakeMetal});
  const auto code = d->compile(kHead + text, {"k"});
  const auto a = d->allocate(x.size() * sizeof(In)), b = d->allocate(n * sizeof(Out));
  d->copy_in({a.get()}, x.data(), x.size() * sizeof(In));
  const BufferSlice places[] = {{a.get()}, {b.get()}};
  d->launch_kernel({.code = code.get(), .block_size = threads, .buffers = places, .sizes = sizes});
  std::vector<Out> y(n);
  d->copy_out(y.data(), {b.get()}, n * sizeof(Out));
  return y;
}
std::string both(const std::string& in, const std::string& out) {
  return "device const " + in + "* x [[buffer(0)]], device " + out + "* y [[buffer(1)]]";
}
constexpr const char* kId = ", uint id [[thread_position_in_threadgroup]]";

std::vector<float> numbers(std::size_t n, float spread = 1) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> x(n);
  for (float& v : x) v = normal(random);
  return x;
}

class Msl : public MetalTest {};

TEST_F(Msl, FunctionsOfNumbers) {
  struct Row {
    const char* text;
    double (*f)(double);
  };
  const Row rows[] = {{"precise::exp2(v)", [](double v) { return std::exp2(v); }},
                      {"precise::log2(fabs(v))", [](double v) { return std::log2(std::fabs(v)); }},
                      {"precise::sin(v)", [](double v) { return std::sin(v); }},
                      {"precise::cos(v)", [](double v) { return std::cos(v); }},
                      {"precise::exp(v)", [](double v) { return std::exp(v); }},
                      {"precise::pow(fabs(v), 1.5)", [](double v) { return std::pow(std::fabs(v), 1.5); }},
                      {"precise::fmod(v, 0.75)", [](double v) { return std::fmod(v, 0.75); }},
                      {"precise::sqrt(fabs(v))", [](double v) { return std::sqrt(std::fabs(v)); }},
                      {"precise::rsqrt(fabs(v))", [](double v) { return 1 / std::sqrt(std::fabs(v)); }},
                      {"floor(v) + rint(v) + trunc(v) + ceil(v)",
                       [](double v) { return std::floor(v) + std::rint(v) + std::trunc(v) + std::ceil(v); }},
                      {"fma(v, v, 1.0)", [](double v) { return std::fma(v, v, 1); }},
                      {"clamp(v, -1.0, 1.0) + select(1.0, 2.0, v > 0)",
                       [](double v) { return std::clamp(v, -1., 1.) + (v > 0 ? 2 : 1); }},
                      {"metal::max(v, NAN) + min(v, 0.5)", [](double v) { return v + std::min(v, 0.5); }}};
  std::string body;
  for (const Row& r : rows) body += std::string("  *y++ = ") + r.text + ";\n";
  const std::vector<float> x = numbers(64, 3);
  const std::size_t each = std::size(rows);
  const std::vector<float> y =
      run<float>("kernel void k(" + both("float", "float") + kId + ") {\n  const float v = x[id];\n  y += id * " +
                     std::to_string(each) + ";\n" + body + "}\n",
                 x, 64 * each, 64);
  for (std::size_t i = 0; i < 64; ++i)
    for (std::size_t r = 0; r < each; ++r) {
      const double want = rows[r].f(x[i]);
      EXPECT_NEAR(y[i * each + r], want, 4e-7 * (1 + std::fabs(want))) << rows[r].text << " of " << x[i];
    }
}

// Converts all 16-bit numbers to float and back, and ties to even.
TEST_F(Msl, NumbersOf16Bits) {
  std::vector<std::uint16_t> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  for (const bool brain : {false, true}) {
    const std::string type = brain ? "bfloat" : "half";
    const std::string to_float = "kernel void k(" + both(type, "float") + kId +
                                 ") {\n  for (uint i = id; i < 65536; i += 32) y[i] = float(x[i]);\n}\n";
    const std::vector<float> wide = run<float>(to_float, all, 65536, 32);
    const std::string back = "kernel void k(" + both("float", type) + kId +
                             ") {\n  for (uint i = id; i < 65536; i += 32) y[i] = " + type + "(x[i]);\n}\n";
    const std::vector<std::uint16_t> same = run<std::uint16_t>(back, wide, 65536, 32);
    const unsigned exponent = brain ? 0x7f80 : 0x7c00;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool nan = (i & exponent) == exponent && (i & (0x7fff & ~exponent));
      ASSERT_EQ(std::isnan(wide[i]), nan) << type << " " << i;
      ASSERT_EQ(nan ? 0 : same[i], nan ? 0 : all[i]) << type << " " << wide[i];
      ASSERT_TRUE(!nan || ((same[i] & exponent) == exponent && (same[i] & ~exponent & 0x7fff))) << type << " " << i;
    }
    EXPECT_EQ(wide[brain ? 0x3f80 : 0x3c00], 1.0f);
    EXPECT_EQ(wide[brain ? 0xff80 : 0xfc00], -INFINITY);
    std::vector<float> ties(65536, 0.0f);
    ties[0] = brain ? 1.00390625f : 1.00048828125f, ties[1] = brain ? 1.01171875f : 1.00146484375f;
    const std::vector<std::uint16_t> even = run<std::uint16_t>(back, ties, 65536, 32);
    EXPECT_EQ(even[0], brain ? 0x3f80 : 0x3c00);
    EXPECT_EQ(even[1], brain ? 0x3f82 : 0x3c02);
  }
}

TEST_F(Msl, ThreadsOfASimdGroupExchange) {
  const std::string text = "kernel void k(" + both("float", "float") +
                           ", uint id [[thread_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]],\n"
                           "                   uint simd [[simdgroup_index_in_threadgroup]]) {\n"
                           "  const float v = x[id];\n"
                           "  y[id] = simd_sum(v);\n"
                           "  y[id + 100] = simd_max(v);\n"
                           "  y[id + 200] = simd_shuffle_xor(v, 1);\n"
                           "  y[id + 300] = lane + 32 * simd == id ? simd_broadcast(v, 0) : -1.0;\n"
                           "  y[id + 400] = simd_shuffle_down(v, 2);\n"
                           "}\n";
  for (const long order : {0, 1, 2, 3}) {
    fake().order = order;
    const std::vector<float> x = numbers(80);  // two whole SIMD groups and half of one
    const std::vector<float> y = run<float>(text, x, 500, 80);
    for (std::size_t i = 0; i < 80; ++i) {
      const std::size_t first = i / 32 * 32, last = std::min<std::size_t>(first + 32, 80);
      double sum = 0;
      float most = -INFINITY;
      for (std::size_t k = first; k < last; ++k) sum += x[k], most = std::max(most, x[k]);
      EXPECT_NEAR(y[i], sum, 1e-5);
      EXPECT_EQ(y[i + 100], most);
      EXPECT_EQ(y[i + 200], x[i ^ 1]);
      EXPECT_EQ(y[i + 300], x[first]);
      if (i + 2 < last) {
        EXPECT_EQ(y[i + 400], x[i + 2]);
      }
    }
  }
  // threads of a SIMD group that wait at different places are a fault of the kernel
  const std::string split = "kernel void k(" + both("float", "float") + kId +
                            ") {\n"
                            "  if (id < 16) y[id] = simd_sum(x[id]);\n  else y[id] = simd_max(x[id]);\n}\n";
  EXPECT_NE(error_of([&] { run<float>(split, numbers(32), 32, 32); }).find("different exchanges"), std::string::npos);
  EXPECT_NE(faults().find("kernel k"), std::string::npos);
}

// A product of 24 x 40 and 40 x 16 by SIMD group matrices, from threadgroup memory.
TEST_F(Msl, MatricesOfASimdGroup) {
  for (const std::string type : {"float", "half"}) {
    const std::string text = R"(
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant long* n [[buffer(2)]],
              uint id [[thread_index_in_threadgroup]], uint simd [[simdgroup_index_in_threadgroup]]) {
  threadgroup TYPE a[24 * 40];
  threadgroup TYPE b[16 * 40];  // transposed
  for (uint i = id; i < 24 * 40; i += 96) a[i] = TYPE(x[i]);
  for (uint i = id; i < 16 * 40; i += 96) b[i] = TYPE(x[24 * 40 + i]);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint j = 0; j < 2; ++j) {
    simdgroup_float8x8 sum = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    for (uint p = 0; p < n[0]; p += 8) {
      simdgroup_matrix<TYPE, 8, 8> left, right;
      simdgroup_load(left, a + simd * 8 * 40 + p, 40);
      simdgroup_load(right, b + j * 8 * 40 + p, 40, ulong2(0), true);
      simdgroup_multiply_accumulate(sum, left, right, sum);
    }
    simdgroup_store(sum, y + simd * 8 * 16 + j * 8, 16);
  }
}
)";
    std::string typed = text;
    for (std::size_t at; (at = typed.find("TYPE")) != typed.npos;) typed.replace(at, 4, type);
    std::vector<float> x(24 * 40 + 16 * 40);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(static_cast<int>(i * 7 % 23) - 11);
    const std::vector<float> y = run<float>(typed, x, 24 * 16, 96, {40});
    for (std::size_t i = 0; i < 24; ++i)
      for (std::size_t j = 0; j < 16; ++j) {
        float want = 0;
        for (std::size_t p = 0; p < 40; ++p) want += x[i * 40 + p] * x[24 * 40 + j * 40 + p];
        ASSERT_EQ(y[i * 16 + j], want) << i << " " << j;
      }
    EXPECT_EQ(can_check_msl() ? check_msl(kHead + typed) : "", "");
  }
}

TEST_F(Msl, VectorsAndConstants) {
  const std::string text =
      "constant float kFactors[] = {0.5, 2.0};\n"
      "template <class T>\ninline float first(device const T* p) { return float(p[0]); }\n"
      "kernel void k(" +
      both("float4", "float4") + ", constant long& n [[buffer(2)]]" + kId +
      ") {\n"
      "  float4 v = x[id] * kFactors[1] + float4(1.0, 2.0, 3.0, 4.0);\n"
      "  v += float4(half4(half(0.5h)));\n"
      "  v.y = as_type<float>(as_type<uint>(v.y) ^ 0x80000000u);\n"
      "  y[id] = max(v, float4(first(&x[0].x))) * float(n);\n"
      "}\n";
  std::vector<float> x = numbers(16);
  const std::vector<float> y = run<float>(text, x, 16, 4, {3});
  for (std::size_t i = 0; i < 16; ++i) {
    float v = x[i] * 2 + static_cast<float>(i % 4 + 1) + 0.5f;
    if (i % 4 == 1) v = -v;
    EXPECT_EQ(y[i], std::max(v, x[0]) * 3);
  }
}

// Threadgroup memory is undefined (NaN here) before a kernel writes it.
TEST_F(Msl, GroupMemoryBeginsWithNoNumbers) {
  const std::vector<float> y = run<float>("kernel void k(" + both("float", "float") + kId +
                                              ") { threadgroup float t[32]; y[id] = t[id]; t[id] = x[id]; }\n",
                                          numbers(32), 32, 32);
  for (const float v : y) EXPECT_TRUE(std::isnan(v));
}

TEST_F(Msl, BarriersThatNotAllReachAreFaults) {
  const std::string text = "kernel void k(" + both("float", "float") + kId +
                           ") {\n"
                           "  if (id < 16) threadgroup_barrier(mem_flags::mem_threadgroup);\n  y[id] = x[id];\n}\n";
  const std::string why = error_of([&] { run<float>(text, numbers(64), 64, 64); });
  EXPECT_NE(why.find("barrier"), why.npos) << why;
  EXPECT_NE(faults().find("barrier"), std::string::npos);
}

// Texts that Metal's compiler refuses are refused here, too.
TEST_F(Msl, TextsThatAreRefused) {
  const std::string y = "device float* y [[buffer(0)]]";
  const std::pair<std::string, const char*> texts[] = {
      {"kernel void k(" + y + ") { y[0] = double(1); }", "double"},
      {"kernel void k(device float* y) {}", "an attribute is missing"},
      {"kernel void k(device float* y [[buffer(31)]]) {}", "out of bounds"},
      {"kernel void k(" + y + ", device float* z [[buffer(0)]]) {}", "used twice"},
      {"kernel void k(" + y + ", uint g [[group_number]]) {}", "unknown attribute 'group_number'"},
      {"kernel void k(" + y +
           ", uint g [[threadgroup_position_in_grid]], uint3 t [[thread_position_in_threadgroup]]) {}",
       "same number of components"},
      {"kernel int k(" + y + ") { return 1; }", "void return type"},
      {"#include <cmath>\nkernel void k(" + y + ") {}", "file not found"},
      {"threadgroup float t[4];\nkernel void k(" + y + ") {}", "declared within kernels"},
      {"kernel void k(" + y + ") { threadgroup float t = 1.0f; y[0] = t; }", "no initializer"},
      {"kernel void k(" + y + ") { auto f = [&] { y[0] = 1; }; f(); }", "lambda expressions"},
      {"kernel void k(constant float* y [[buffer(0)]]) { y[0] = 1; }", "read-only"},
      {"kernel void k(" + y + ") { y[0] = erf(y[1]); }", "erf"},
      {"kernel void k(" + y + ") { bfloat b = 1.0f; y[0] = b; }", "bfloat"},
      {"kernel void k(" + y + " { y[0] = 1; }", "error"},
  };
  const auto d = open();
  for (const auto& [text, part] : texts) {
    const std::string why = error_of([&] { d->compile(kHead + text + "\n", {"k"}); });
    EXPECT_NE(why.find(part), why.npos) << text << "\n" << why;
    EXPECT_NE(why.find("program_source"), why.npos) << text << "\n" << why;
  }
}

TEST_F(Msl, AddressSpacesAreChecked) {
  if (!can_check_msl())
    GTEST_SKIP() << "there is no clang++: texts in Metal's language are not checked for their address spaces";
  const std::string y = "device float* y [[buffer(0)]]";
  EXPECT_EQ(check_msl(kHead +
                      "static inline float two(device const float* p) { return p[0] + p[1]; }\n"
                      "kernel void k(" +
                      y +
                      ", constant long* n [[buffer(1)]], uint id [[thread_position_in_grid]]) {\n"
                      "  threadgroup float t[32];\n  threadgroup float* p = t + id;\n  *p = two(y) * 0.5;\n"
                      "  float4 v = float4(1.0, 2.0, 3.0, 4.0);\n  float mine[2] = {v.x, bfloat(v.y)};\n"
                      "  device float4* wide = (device float4*)y;\n  wide[n[0]] = fma(v, v, float4(mine[1]));\n}\n"),
            "");
  const std::pair<std::string, const char*> wrong[] = {
      {"static inline float one(const float* p) { return *p; }\nkernel void k(" + y + ") { y[0] = one(y); }",
       "no matching function"},
      {"kernel void k(" + y + ") { float* p = y; *p = 1; }", "cannot initialize"},
      {"kernel void k(" + y + ") { threadgroup float t[4]; device float* p = t; *p = 1; }", "cannot initialize"},
      {"kernel void k(" + y + ", constant float* c [[buffer(1)]]) { c[0] = y[0]; }", "read-only"},
      {"kernel void k(" + y + ") { y[0] = nothing; }", "nothing"},
      {"kernel void k(" + y + ") { y[0] = double(1); }", "no_type_double"},
  };
  for (const auto& [text, part] : wrong) {
    const std::string why = check_msl(kHead + text + "\n");
    EXPECT_NE(why.find(part), why.npos) << text << "\n" << why;
  }
}

}  // namespace
}  // namespace lc::test
