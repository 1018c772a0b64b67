// Products by cuBLASLt agree with the f64 reference, and the choice between it and our kernels is kept. Each of its
// calls fails in turn without harm.
//
// The library is one that runs on the CPU (simulators/cuda/cublas_lt).
#include <filesystem>

#include "cuda_fixture.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "lightcone/verify/verify.h"
#include "paths.h"

using namespace lc;
using test::Fake;

namespace {

// RAII: settings of the simulated cuBLASLt, which are reset to zero at the end.
class FakeLt {
 public:
  explicit FakeLt(const std::string& path = paths::kFakeCublasLt)
      : library_(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (!library_) throw std::runtime_error(::dlerror());
    set_ = reinterpret_cast<decltype(set_)>(::dlsym(library_, "fake_cublas_lt_set"));
    get_ = reinterpret_cast<decltype(get_)>(::dlsym(library_, "fake_cublas_lt_get"));
  }
  ~FakeLt() { set("refuses", 0), set("delay_ms", 0), set("workspace", 1000); }
  FakeLt(const FakeLt&) = delete;
  void set(const char* name, long value) { EXPECT_EQ(set_(name, value), 0) << name; }
  long products() const { return get_("products"); }
  long of_zeros() const { return get_("of_zeros"); }
  long live() const { return get_("live"); }

 private:
  void* library_;
  int (*set_)(const char*, long);
  long (*get_)(const char*);
};

CudaOptions options(std::optional<bool> wish = true) {
  static const TempDir kept;  // caches our own kernels
  CudaOptions o = test::fake_options(kept / "cache");
  o.cublas_lt = wish, o.cublas_lt_library = paths::kFakeCublasLt, o.cublas_lt_least = 0;
  return o;
}

Tensor turned(const Tensor& t) {
  std::vector<int> order;
  for (int i = 0; i < static_cast<int>(t.shape().size()); ++i) order.push_back(i);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return t.permute(order);
}

// [batch, m, k] x [batch, k, n] with each operand in both layouts (row-major and transposed): four results.
Graph products_of(int batch, int m, int n, int k, DType t = DType::F32) {
  Graph g;
  const Tensor x[] = {g.input("x", {batch, m, k}, t), turned(g.input("x turned", {batch, k, m}, t))};
  const Tensor w[] = {g.input("w", {batch, k, n}, t), turned(g.input("w turned", {batch, n, k}, t))};
  for (int a : {0, 1})
    for (int b : {0, 1}) g.output(str_cat("y", a, b), matmul(x[a], w[b]));
  return g;
}

int by_library(const Graph& g, const Compiler& c) {
  int n = 0;
  for (const PassLog& log : transform(g, c).log)
    if (const auto it = log.fired.find("products by library"); it != log.fired.end()) n += it->second;
  return n;
}

// Verifies the graph on random values, with `count` products computed by cuBLASLt.
void agrees(const std::string& what, const Graph& g, int count, Precision precision = Precision::Highest,
            double rounded = 0) {
  SCOPED_TRACE(what);
  const Compiler c = generic() | cuda(options(), {.precision = precision});
  EXPECT_EQ(by_library(g, c), count);
  const VerifyReport r = verify(g, c, {.trials = 2, .shrink = false, .products = rounded});
  EXPECT_TRUE(r.ok()) << r.str();
}

Graph one_product(int m = 24, int n = 20, int k = 16, DType t = DType::F32) {
  Graph g;
  g.output("y", matmul(g.input("x", {m, k}, t), g.input("w", {k, n}, t)));
  return g;
}

std::vector<float> run(const Program& p, float factor = 1) {
  Context c(p);
  std::vector<float> x(24 * 16), w(16 * 20);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = factor * static_cast<float>(i % 7);
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i % 5) - 2;
  c.set("x", x).set("w", w).run();
  return c.get("y");
}

std::string notes(const Program& p) {
  std::string all;
  for (const std::string& n : p.notes()) all += n + "\n";
  return all;
}

}  // namespace

TEST(CublasLt, AgreesForAnySizesInAnyOrder) {
  struct Sizes {
    int batch, m, n, k;
  };
  for (const auto [batch, m, n, k] :
       {Sizes{1, 64, 64, 32}, Sizes{1, 65, 67, 33}, Sizes{3, 17, 9, 40}, Sizes{2, 9, 30, 300}})
    agrees(str_cat("[", batch, ", ", m, ", ", k, "] x [", k, ", ", n, "]"), products_of(batch, m, n, k), 4);
}

TEST(CublasLt, AgreesForHalvesAndRoundedNumbers) {
  agrees("f16", products_of(2, 19, 21, 35, DType::F16), 4);
  agrees("bf16", one_product(19, 21, 35, DType::BF16), 1);
  agrees("f32 as TF32", one_product(19, 21, 35), 1, Precision::High, 0x1p-10);
  agrees("f32 as bf16", one_product(19, 21, 35), 1, Precision::Medium, 0x1p-8);
}

TEST(CublasLt, AgreesForBroadcastsPiecesAndTurnedResults) {
  Graph g;
  const Tensor x = g.input("x", {3, 20, 24}), w = g.input("w", {3, 24, 18}), one = g.input("one", {24, 18});
  g.output("broadcast", matmul(x, one));
  g.output("turned", turned(matmul(x, w)));
  g.output("piece", matmul(x.slice(1, 1, 12).slice(2, 1, 24), w.slice(1, 0, 23)));
  g.output("heads", matmul(x.reshape({3, 20, 2, 12}).permute({0, 2, 1, 3}).slice(0, 0, 1),
                           w.slice(0, 0, 1).reshape({1, 2, 12, 18})));
  agrees("views", g, 4);
}

TEST(CublasLt, IsFollowedByOurKernelWhereMoreIsDone) {
  Fake fake;
  FakeLt lt;
  Graph g;
  const Tensor x = g.input("x", {24, 16}), w = g.input("w", {16, 20});
  g.output("y", gelu(matmul(x, w) + g.input("b", {20})) + g.input("r", {24, 20}));
  agrees("bias, gelu, sum", g, 1);
  for (const DType t : {DType::F32, DType::F16}) {  // an empty product launches nothing
    Graph plain;
    plain.output("y", matmul(plain.input("x", {24, 16}, t), plain.input("w", {16, 20}, t)));
    const Program p = compile(plain, generic() | cuda(options()));
    const long launches = fake.get("launches"), products = lt.products();
    Context c(p);
    const std::vector<std::byte> zeros(24 * 16 * size_of(t));
    c.set_bytes("x", zeros.data(), zeros.size()).set_bytes("w", zeros.data(), 16 * 20 * size_of(t)).run();
    EXPECT_EQ(fake.get("launches"), launches) << name(t);
    EXPECT_EQ(lt.products(), products + 1) << name(t);
  }
}

TEST(CublasLt, IsNotAskedForSmallOnesAndSizesThatAreBoundLater) {
  Graph g;
  const Dim n = Dim::symbol("n", 1, 100);
  g.output("y", matmul(g.input("x", {n, 16}), g.input("w", {16, 20})));
  EXPECT_EQ(by_library(g, generic() | cuda(options())), 0);
  CudaOptions large = options();
  large.cublas_lt_least = 24 * 20 * 16 * 2 + 1;
  EXPECT_EQ(by_library(one_product(), generic() | cuda(large)), 0);
  large.cublas_lt_least -= 1;
  EXPECT_EQ(by_library(one_product(), generic() | cuda(large)), 1);
}

TEST(CublasLt, IsReplacedByOurKernels) {
  const std::vector<float> want = run(compile(one_product(), generic() | cuda(options(false))));
  const auto check = [&](const CudaOptions& o, const std::string& note) {
    const Program p = compile(one_product(), generic() | cuda(o));
    EXPECT_EQ(run(p), want);
    EXPECT_PRED2(contains, notes(p), note);
  };
  CudaOptions o = options();
  o.cublas_lt_library = "/no/such/libcublasLt.so";
  check(o, "cuBLASLt was not found as /no/such/libcublasLt.so");
  const TempDir dir;
  o.cublas_lt_library = dir / "libcublasLt.so";
  std::filesystem::copy_file(paths::kFakeCublasLt, o.cublas_lt_library);
  FakeLt(o.cublas_lt_library).set("version", 110900);
  check(o, "cuBLASLt 11.9 is too old");
  o.cublas_lt_library = paths::kFakeCuda;  // a library of another kind
  check(o, "cuBLASLt has no function cublasLt");
  o.cublas_lt_library = "";  // the system's library, which would use another driver
  check(o, "another driver was named");
  FakeLt lt;
  lt.set("refuses", 1);
  const long before = lt.products();
  check(options(), "");
  lt.set("refuses", 0), lt.set("workspace", 1l << 40);
  check(options(), "");
  EXPECT_EQ(lt.products(), before);
}

TEST(CublasLt, IsTakenWhereItIsFasterAndStaysSo) {
  FakeLt lt;
  const TempDir dir;
  CudaOptions o = options(std::nullopt);
  o.cache = dir / "cache";
  lt.set("delay_ms", 20);
  const Graph small = one_product(16, 16, 16), deep = one_product(9, 9, 2048);
  EXPECT_PRED2(contains, notes(compile(small, generic() | cuda(o))),
               "1 product [16, 16] x [16, 16] of f32 not by cuBLASLt 13.0");
  lt.set("delay_ms", 0);
  const Program p = compile(deep, generic() | cuda(o));
  EXPECT_PRED2(contains, notes(p), "1 product [9, 2048] x [2048, 9] of f32 by cuBLASLt 13.0, which takes 0");
  // programs that find the cache measure nothing
  lt.set("delay_ms", 20);
  const long before = lt.products();
  EXPECT_EQ(by_library(deep, generic() | cuda(o)), 1);
  lt.set("delay_ms", 0);
  EXPECT_EQ(by_library(small, generic() | cuda(o)), 0);
  EXPECT_EQ(lt.products(), before);
}

// For zeros a device takes less power and clocks differently, so measurements use random numbers.
TEST(CublasLt, IsMeasuredOnNumbers) {
  FakeLt lt;
  const TempDir dir;
  CudaOptions o = options(std::nullopt);
  o.cache = dir / "cache";
  for (const DType t : {DType::F32, DType::BF16, DType::F16}) {
    const long products = lt.products(), of_zeros = lt.of_zeros();
    Graph g;
    g.output("y", matmul(g.input("x", {32, 64}, t), g.input("w", {64, 32}, t)));
    compile(g, generic() | cuda(o));
    EXPECT_GT(lt.products(), products) << name(t);
    EXPECT_EQ(lt.of_zeros(), of_zeros) << name(t);
  }
}

TEST(CublasLt, IsPartOfRecordings) {
  for (const long deferred : {0, 1}) {
    Fake fake;
    FakeLt lt;
    fake.set("deferred", deferred);
    Graph g;
    const Tensor x = g.input("x", {24, 16}), w = g.input("w", {16, 20});
    g.output("y", relu(matmul(x * 2.0, w)) + 1.0);
    g.output("z", matmul(x, w) * 3.0);
    const Program ours = compile(g, generic() | cuda(options(false))), theirs = compile(g, generic() | cuda(options()));
    Context a(ours), b(theirs);
    const long before = lt.products();
    for (int k = 0; k < 5; ++k) {
      const std::vector<float> in(24 * 16, static_cast<float>(k)), weights(16 * 20, 0.5f);
      a.set("x", in).set("w", weights).run(), b.set("x", in).set("w", weights).run();
      for (const char* out : {"y", "z"}) EXPECT_EQ(b.get(out), a.get(out));
    }
    EXPECT_EQ(lt.products(), before + 10);
    EXPECT_GT(fake.get("graph_execs"), 0);
  }
}

TEST(CublasLt, MayFailInEveryCall) {
  constexpr long kInvalid = 1, kOutOfMemory = 2, kIllegal = 700;
  Fake fake;
  FakeLt lt;
  const TempDir dir;
  CudaOptions o = options();
  o.cache = dir / "cache";
  const long live_before = lt.live();
  const auto story = [&] {
    const Program p = compile(one_product(), generic() | cuda(o));
    std::vector<float> all;
    for (int k = 0; k < 2; ++k)
      for (const float y : run(p, static_cast<float>(k + 1))) all.push_back(y);
    return all;
  };
  const std::vector<float> want = story();
  const long first = fake.get("calls");
  story();
  const long all = fake.get("calls") - first;
  long errors = 0;
  for (const long code : {kInvalid, kOutOfMemory, kIllegal})
    for (long n = 1; n <= all; ++n) {
      SCOPED_TRACE(str_cat("error ", code, " at call ", n, " of ", all));
      fake.fail(n, code);
      std::vector<float> got;
      const std::string said = error_of([&] { got = story(); });
      fake.fail(0, 0);
      EXPECT_EQ(fake.live(), 0) << said;
      EXPECT_TRUE(said != "no error" || got == want);
      errors += said != "no error";
      EXPECT_TRUE(code == kIllegal || lt.live() == live_before);  // the handle of a lost device is not released
      if (HasFailure()) return;
    }
  EXPECT_EQ(story(), want);
  std::printf("%ld calls of each kind, %ld errors\n", all, errors);
  EXPECT_GT(errors, all / 3);
}
