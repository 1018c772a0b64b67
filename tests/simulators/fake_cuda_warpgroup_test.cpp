// The simulated TMA copies, barrier phases and warpgroup products of compute capability 9.0 compute the right numbers
// and report each wrong use.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "fake_cuda.h"
#include "lightcone/backends/gpu/products/warpgroup_tiles.h"

using namespace fake_cuda_test;

namespace {

struct alignas(64) Map {
  std::uint64_t words[16];
};

// An array of 16-bit numbers, innermost axis first.
struct Described {
  std::vector<std::uint64_t> extents, strides;
  std::vector<std::uint32_t> box;
  unsigned type = 1;  // CU_TENSOR_MAP_DATA_TYPE_UINT16
  int swizzle = 3;
};
int encode(Map& map, Address address, const Described& d) {
  const std::vector<std::uint32_t> steps(d.extents.size(), 1);
  return function<int(void*, unsigned, unsigned, Address, const std::uint64_t*, const std::uint64_t*,
                      const std::uint32_t*, const std::uint32_t*, int, int, int, int)>("cuTensorMapEncodeTiled")(
      &map, d.type, static_cast<unsigned>(d.extents.size()), address, d.extents.data(), d.strides.data(), d.box.data(),
      steps.data(), 0, d.swizzle, 0, 0);
}

// Returns a kernel's text after the primitives and the code that the generator puts before all CUDA kernels.
std::string text(const std::string& kernel) {
  return "typedef unsigned char u8; typedef unsigned short u16; typedef unsigned u32; typedef unsigned long u64;\n" +
         std::string(lc::backends::gpu::warpgroup_primitives()) +
         lc::backends::gpu::warpgroup_product({}, lc::backends::gpu::Cores::F16, 128) + kernel;
}

constexpr const char* kStart = R"(
  extern "C" __global__ void __launch_bounds__(128) k(LC_MAP map, u16* y) {
    __shared__ __align__(16) u64 full[1];
    LC_RING(ring);
    if (threadIdx.x == 0) lc_phase_init(full, 1), lc_phase_init_done();
    __syncthreads();
)";

class Warpgroups : public FakeCuda {
 protected:
  // Returns the fault of a kernel with a map of 64 x 8 halves, or "".
  std::string fault_of(const std::string& body) {
    std::string words;
    {
      const Program p(text(kStart + body + "}"));
      Array<unsigned short> x(std::vector<unsigned short>(64 * 8, 1)), y(512);
      Map map;
      EXPECT_EQ(encode(map, x.address(), {{64, 8}, {128}, {64, 8}}), 0);
      EXPECT_EQ(launch(p.kernel(), {1, 128, 4096}, {&map, y.argument()}), 0);
      if (synchronize() != 0) words = fault();
    }
    if (!words.empty()) reset();
    return words;
  }
};

bool contains(const std::string& s, const std::string& part) { return s.find(part) != std::string::npos; }

}  // namespace

// A box of three axes exceeds its array on every side: the outside is zero, and chunks are permuted by their row.
TEST_F(Warpgroups, BoxesAreCutOffAndPermuted) {
  constexpr int kColumns = 100, kPitch = 104, kRows = 11, kPlanes = 3;
  std::vector<unsigned short> x(kPitch * kRows * kPlanes);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<unsigned short>(i + 1);
  Array<unsigned short> dx(x), y(64 * 8 * 2);
  Map map;
  ASSERT_EQ(encode(map, dx.address(), {{kColumns, kRows, kPlanes}, {kPitch * 2, kPitch * kRows * 2}, {64, 8, 2}}), 0);
  const Program p(text(R"(
    extern "C" __global__ void k(LC_MAP map, u16* y, int i, int j, int k) {
      __shared__ __align__(16) u64 full[1];
      LC_RING(ring);
      if (threadIdx.x == 0) {
        lc_phase_init(full, 1), lc_phase_init_done();
        lc_phase_expect(full, 64 * 8 * 2 * 2);
        lc_tile_copy_3(ring, &map, full, i, j, k);
      }
      __syncthreads();
      lc_phase_wait(full, 0);
      for (int n = threadIdx.x; n < 1024; n += 32) y[n] = ((const u16*)ring)[n];
    })"));
  for (const auto& [i, j, k] :
       {std::array{0, 0, 0}, std::array{64, 8, 2}, std::array{-3, -2, -1}, std::array{40, 5, 1}}) {
    int at[] = {i, j, k};
    ASSERT_EQ(launch(p.kernel(), {1, 32, 4096}, {&map, y.argument(), at, at + 1, at + 2}), 0);
    const std::vector<unsigned short> got = y.values();
    for (int n = 0; n < 1024; ++n) {
      const int column = at[0] + n % 64, row = at[1] + n / 64 % 8, plane = at[2] + n / 512;
      const bool inside = column >= 0 && column < kColumns && row >= 0 && row < kRows && plane >= 0 && plane < kPlanes;
      const int chunk = n % 64 / 8 ^ (n / 64 & 7);
      EXPECT_EQ(got[n / 64 * 64 + chunk * 8 + n % 8], inside ? x[(plane * kRows + row) * kPitch + column] : 0)
          << "from " << i << ", " << j << ", " << k << ": element " << n;
    }
  }
}

TEST_F(Warpgroups, MapsThatTheDriverRefuses) {
  Array<unsigned short> x(4096);
  Map map;
  const Described right{{64, 8}, {128}, {64, 8}};
  EXPECT_EQ(encode(map, x.address(), right), 0);
  EXPECT_EQ(encode(map, x.address() + 8, right), 1) << "an address that is no multiple of 16";
  const auto refused = [&](const char* why, const std::function<void(Described&)>& spoil) {
    Described d = right;
    spoil(d);
    EXPECT_EQ(encode(map, x.address(), d), 1) << why;
  };
  refused("a stride that is no multiple of 16", [](Described& d) { d.strides[0] = 136; });
  refused("a stride of nothing", [](Described& d) { d.strides[0] = 0; });
  refused("a stride beyond 2^40", [](Described& d) { d.strides[0] = std::uint64_t{1} << 40; });
  refused("an axis of no length", [](Described& d) { d.extents[1] = 0; });
  refused("a box of more than 256", [](Described& d) { d.box[1] = 257; });
  refused("a row of more than is permuted", [](Described& d) { d.box[0] = 72; });
  refused("a row that is no multiple of 16 bytes", [](Described& d) { d.box[0] = 12; });
  refused("no such type", [](Described& d) { d.type = 99; });
  refused("six axes", [](Described& d) { d.extents.resize(6, 1), d.strides.resize(5, 128), d.box.resize(6, 1); });
}

TEST_F(Warpgroups, MistakesAreFound) {
  const std::string copy = "lc_phase_expect(full, 1024); lc_tile_copy_2(ring, &map, full, 0, 0);";
  EXPECT_EQ(fault_of("if (threadIdx.x == 0) { " + copy + " } lc_phase_wait(full, 0);"), "");
  EXPECT_PRED2(contains, fault_of("if (threadIdx.x == 0) { " + copy + " }"), "ends while boxes are copied");
  EXPECT_PRED2(contains, fault_of("lc_phase_wait(full, 0);"), "wait for each other");
  EXPECT_PRED2(contains,
               fault_of("if (threadIdx.x == 0) lc_phase_expect(full, 1000), lc_tile_copy_2(ring, &map, full, 0, 0); "
                        "lc_phase_wait(full, 0);"),
               "wait for each other");  // the bytes never arrive
  EXPECT_PRED2(contains, fault_of("if (threadIdx.x == 0) lc_tile_copy_2(ring + 64, &map, full, 0, 0);"),
               "aligned to 128");
  EXPECT_PRED2(contains, fault_of("if (threadIdx.x == 0) lc_tile_copy_2(y, &map, full, 0, 0);"), "not shared memory");
  EXPECT_PRED2(contains, fault_of("if (threadIdx.x == 0) lc_tile_copy_3(ring, &map, full, 0, 0, 0);"),
               "no map of so many axes");
  EXPECT_PRED2(contains, fault_of("if (threadIdx.x == 0) lc_phase_arrive((u64*)ring);"), "a phase that did not begin");
  const std::string sums = "LC_SUMS(float, 64, c); ",
                    multiply = "lc_wgmma_f16_128<0, 0>(c, lc_matrix(ring, 1024, 16), lc_matrix(ring, 1024, 16)); ";
  EXPECT_PRED2(contains, fault_of(sums + multiply), "before its sums were handed over");
  EXPECT_PRED2(contains,
               fault_of(sums + "lc_products_begin(c); lc_wgmma_f16_128<0, 0>(c, lc_matrix(ring + threadIdx.x % 2 * 16, "
                               "1024, 16), lc_matrix(ring, 1024, 16)); lc_products_commit(c); lc_products_wait<0>(c);"),
               "multiply different matrices");
  EXPECT_PRED2(contains,
               fault_of(sums + "lc_products_begin(c); lc_wgmma_f16_128<0, 0>(c, lc_matrix(ring + 128, 1024, 16), "
                               "lc_matrix(ring, 1024, 16)); lc_products_commit(c); lc_products_wait<0>(c);"),
               "the first of eight rows");
}

// A launch that may begin before the previous one has ended must wait for it, in every thread.
TEST_F(Warpgroups, LaunchesThatOverlapWaitForEachOther) {
  LaunchAttribute overlap;
  overlap.value[0] = 1;
  LaunchConfig config;
  config.block[0] = 64, config.attributes = &overlap;
  const Program p(
      "extern \"C\" __global__ void k(int* y, int from) {\n"
      "  if ((int)threadIdx.x >= from) lc_scheduler->wait_for_grid();\n  y[threadIdx.x] = 1;\n}");
  for (const int from : {0, 1}) {
    Array<int> y(64);
    int first = from;
    void* arguments[] = {y.argument(), &first};
    ASSERT_EQ(function<int(const LaunchConfig*, Handle, void**, void**)>("cuLaunchKernelEx")(&config, p.kernel(),
                                                                                             arguments, nullptr),
              0);
    if (from == 0) {
      EXPECT_EQ(synchronize(), 0) << fault();
    } else {
      EXPECT_NE(synchronize(), 0);
      EXPECT_PRED2(contains, fault(), "thread (0, 0, 0) of block (0, 0, 0): it never waited for the grid before it");
    }
  }
  reset();
}

// A box is visible only after its phase has ended, and sums only after they were waited for.
TEST_F(Warpgroups, NothingIsThereBeforeItIsWaitedFor) {
  const Program p(text(kStart + std::string(R"(
    if (threadIdx.x == 0) lc_phase_expect(full, 1024), lc_tile_copy_2(ring, &map, full, 0, 0);
    __syncthreads();
    if (threadIdx.x == 0) y[0] = ((const u16*)ring)[0];
    lc_phase_wait(full, 0);
    if (threadIdx.x == 0) y[1] = ((const u16*)ring)[0];
    LC_SUMS(float, 64, c);
    for (int i = 0; i < 64; ++i) c[i] = 3.0f;
    lc_products_begin(c);
    lc_products_commit(c);
    lc_products_wait<0>(c);
    y[2] = c[0] == 3.0f;
  })")));
  Array<unsigned short> x(std::vector<unsigned short>(64 * 8, 7)), y(512);
  Map map;
  ASSERT_EQ(encode(map, x.address(), {{64, 8}, {128}, {64, 8}}), 0);
  ASSERT_EQ(launch(p.kernel(), {1, 128, 4096}, {&map, y.argument()}), 0);
  const std::vector<unsigned short> got = y.values();
  EXPECT_EQ(got[0], 0xffff);
  EXPECT_EQ(got[1], 7);
  EXPECT_EQ(got[2], 1);
}
