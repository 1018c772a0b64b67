// The functions of cuBLASLt. Each counts as one call of the driver, so that fail_at can make it fail.
#include <chrono>
#include <cstring>
#include <thread>

#include "cublas_lt/library.h"

#define FAKE_CUBLAS_LT_API extern "C" __attribute__((visibility("default")))

using namespace lc::simulators::cublas_lt;

namespace lc::simulators::cublas_lt {

Settings& settings() {
  static Settings* const only = new Settings;
  return *only;
}

namespace {

bool begins_with_zeros(std::uint64_t at, LibraryWork::OnDevice on_device) {
  constexpr char zeros[64] = {};
  return on_device(at, 64) && std::memcmp(reinterpret_cast<const void*>(at), zeros, 64) == 0;
}

constexpr std::uint64_t kMagic = 0x6b6166656c61746cull;

struct Algorithm {  // cublasLtMatmulAlgo_t
  std::uint64_t magic, problem, workspace, alignments, unused[4];
};
struct Choice {  // cublasLtMatmulHeuristicResult_t
  Algorithm algorithm;
  std::size_t workspace;
  int state;
  float waves;
  int reserved[4];
};
static_assert(sizeof(Algorithm) == 64 && sizeof(Choice) == 96);

// The set of live handles and descriptors.
class Objects {
 public:
  template <class T>
  Status add(T** to, const T& value) {
    if (!to) return kInvalidValue;
    const std::lock_guard lock(mutex_);
    all_.insert(*to = new T(value));
    ++settings().live;
    return kSuccess;
  }
  template <class T>
  Status remove(T* object) {
    const std::lock_guard lock(mutex_);
    if (!all_.erase(object)) return kInvalidValue;
    --settings().live;
    delete object;
    return kSuccess;
  }
  bool has(const void* object) {
    const std::lock_guard lock(mutex_);
    return all_.contains(object);
  }

 private:
  std::mutex mutex_;
  std::set<const void*> all_;
};
Objects& objects() {
  static Objects* const only = new Objects;
  return *only;
}

Status as_status(int driver) {
  return driver == 0 ? kSuccess : driver == 1 ? kInvalidValue : driver == 2 ? kAllocFailed : kExecutionFailed;
}

template <class Work>
int call(Work work) {
  const Status refused = as_status(fake_cuda_library_call());
  return refused != kSuccess ? refused : work();
}

// Sets `to` if `bytes` is its size; otherwise it changes nothing.
template <class T>
Status set(T& to, const void* value, std::size_t bytes) {
  if (!value || bytes != sizeof(T)) return kInvalidValue;
  std::memcpy(&to, value, bytes);
  return kSuccess;
}

bool is_problem(const void* handle, Product* product, Layout* a, Layout* b, Layout* c, Layout* d, Problem& out) {
  for (const void* object : {handle, static_cast<const void*>(product), static_cast<const void*>(a),
                             static_cast<const void*>(b), static_cast<const void*>(c), static_cast<const void*>(d)})
    if (!objects().has(object)) return false;
  out = {*product, *a, *b, *c, *d};
  return true;
}

}  // namespace
}  // namespace lc::simulators::cublas_lt

FAKE_CUBLAS_LT_API std::size_t cublasLtGetVersion() { return static_cast<std::size_t>(settings().version.load()); }

FAKE_CUBLAS_LT_API int cublasLtCreate(Handle** to) {
  return call([&] { return objects().add(to, Handle{}); });
}
FAKE_CUBLAS_LT_API int cublasLtDestroy(Handle* handle) { return objects().remove(handle); }

FAKE_CUBLAS_LT_API int cublasLtMatmulDescCreate(Product** to, int compute, int scale) {
  return call([&] { return objects().add(to, Product{compute, scale, 0, 0}); });
}
FAKE_CUBLAS_LT_API int cublasLtMatmulDescDestroy(Product* p) { return objects().remove(p); }
FAKE_CUBLAS_LT_API int cublasLtMatmulDescSetAttribute(Product* p, int attribute, const void* value, std::size_t bytes) {
  return call([&] {
    if (!objects().has(p)) return kInvalidValue;
    if (attribute == 3) return set(p->transpose_a, value, bytes);
    if (attribute == 4) return set(p->transpose_b, value, bytes);
    return kInvalidValue;
  });
}

FAKE_CUBLAS_LT_API int cublasLtMatrixLayoutCreate(Layout** to, int type, std::uint64_t rows, std::uint64_t columns,
                                                  std::int64_t pitch) {
  return call([&] { return objects().add(to, Layout{type, rows, columns, pitch, 0, 1}); });
}
FAKE_CUBLAS_LT_API int cublasLtMatrixLayoutDestroy(Layout* l) { return objects().remove(l); }
FAKE_CUBLAS_LT_API int cublasLtMatrixLayoutSetAttribute(Layout* l, int attribute, const void* value,
                                                        std::size_t bytes) {
  return call([&] {
    if (!objects().has(l)) return kInvalidValue;
    if (attribute == 5) return set(l->batches, value, bytes);
    if (attribute == 6) return set(l->stride, value, bytes);
    return kInvalidValue;
  });
}

FAKE_CUBLAS_LT_API int cublasLtMatmulPreferenceCreate(Preference** to) {
  return call([&] { return objects().add(to, Preference{}); });
}
FAKE_CUBLAS_LT_API int cublasLtMatmulPreferenceDestroy(Preference* p) { return objects().remove(p); }
FAKE_CUBLAS_LT_API int cublasLtMatmulPreferenceSetAttribute(Preference* p, int attribute, const void* value,
                                                            std::size_t bytes) {
  return call([&] {
    if (!objects().has(p)) return kInvalidValue;
    if (attribute == 1) return set(p->workspace, value, bytes);
    if (attribute == 3) return set(p->reductions, value, bytes);
    if (attribute >= 5 && attribute <= 8) return set(p->alignments[attribute - 5], value, bytes);
    return kInvalidValue;
  });
}

FAKE_CUBLAS_LT_API int cublasLtMatmulAlgoGetHeuristic(Handle* handle, Product* product, Layout* a, Layout* b, Layout* c,
                                                      Layout* d, Preference* wish, int most, Choice* choices,
                                                      int* count) {
  return call([&]() -> Status {
    Problem p;
    if (!is_problem(handle, product, a, b, c, d, p) || !objects().has(wish) || most < 1 || !choices || !count)
      return kInvalidValue;
    *count = 0;
    if (const Status s = p.check(); s != kSuccess) return s;
    const auto workspace = static_cast<std::uint64_t>(settings().workspace.load());
    if (settings().refuses || workspace > wish->workspace || wish->reductions & 5) return kNotSupported;
    std::uint64_t alignments = 0;
    for (int k = 0; k < 4; ++k) alignments |= std::uint64_t{wish->alignments[k]} << (16 * k);
    choices[0] = {{kMagic, p.hash(), workspace, alignments, {}}, workspace, kSuccess, 1, {}};
    *count = 1;
    return kSuccess;
  });
}

FAKE_CUBLAS_LT_API int cublasLtMatmul(Handle* handle, Product* product, const float* alpha, std::uint64_t a,
                                      Layout* a_layout, std::uint64_t b, Layout* b_layout, const float* beta,
                                      std::uint64_t c, Layout* c_layout, std::uint64_t d, Layout* d_layout,
                                      const Algorithm* algorithm, std::uint64_t workspace, std::size_t workspace_bytes,
                                      void* stream) {
  Problem p;
  if (!is_problem(handle, product, a_layout, b_layout, c_layout, d_layout, p)) return kInvalidValue;
  if (!alpha || !beta || *alpha != 1 || *beta != 0 || !algorithm || !stream) return kInvalidValue;
  // was chosen for another problem
  if (algorithm->magic != kMagic || algorithm->problem != p.hash()) return kInvalidValue;
  const std::uint64_t at[] = {a, b, c, d};
  for (int k = 0; k < 4; ++k)
    if (at[k] == 0 || at[k] % (algorithm->alignments >> (16 * k) & 0xffff) != 0) return kInvalidValue;
  if (workspace_bytes < algorithm->workspace || workspace % 256 != 0 || (workspace_bytes && !workspace))
    return kInvalidValue;
  const LibraryWork work{[=](LibraryWork::OnDevice on_device) -> std::string {
    if (workspace_bytes) {
      if (!on_device(workspace, workspace_bytes)) return "cuBLASLt's workspace is not the device's memory";
      std::memset(reinterpret_cast<void*>(workspace), 0xff, workspace_bytes);  // nothing else may live in the workspace
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(settings().delay_ms.load()));
    ++settings().products;
    if (begins_with_zeros(a, on_device) || begins_with_zeros(b, on_device)) ++settings().of_zeros;
    return p.compute(a, b, d, on_device);
  }};
  return as_status(fake_cuda_library_work(stream, &work));
}

FAKE_CUBLAS_LT_API int fake_cublas_lt_set(const char* name, long value) {
  for (const auto& [known, setting] :
       {std::pair("version", &settings().version), std::pair("refuses", &settings().refuses),
        std::pair("delay_ms", &settings().delay_ms), std::pair("workspace", &settings().workspace)})
    if (std::strcmp(name, known) == 0) return *setting = value, 0;
  return -1;
}
FAKE_CUBLAS_LT_API long fake_cublas_lt_get(const char* name) {
  if (std::strcmp(name, "products") == 0) return settings().products;
  if (std::strcmp(name, "of_zeros") == 0) return settings().of_zeros;
  return std::strcmp(name, "live") == 0 ? settings().live.load() : -1;
}
