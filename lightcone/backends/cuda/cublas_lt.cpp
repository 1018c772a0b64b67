#include "lightcone/backends/cuda/cublas_lt.h"

#include <dlfcn.h>

#include <algorithm>

#include "lightcone/base/error.h"
#include "lightcone/cache/environment.h"

namespace lc::backends::cuda {
namespace {

constexpr std::size_t kOldest = 120000;
constexpr std::size_t kMostWorkspace = 32 << 20;  // NVIDIA's advice for Hopper
constexpr std::size_t kWorkspaceAlign = 256;
constexpr std::uint32_t kAlign = 16;  // alignment of addresses: programs keep values at multiples of 64
constexpr const char* kVariable = "LIGHTCONE_CUBLASLT";
// The library is preferred below this fraction of our time: a smaller gain is noise.
constexpr double kFaster = 0.97;

std::string version_words(std::size_t version) { return str_cat(version / 10000, ".", version / 100 % 100); }

// Returns true if the driver is the system's, because cuBLASLt calls that one, whichever driver we were given.
bool is_systems_driver(const Driver& driver) {
  void* const system = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (!system) return false;
  const bool same = ::dlsym(system, "cuInit") == reinterpret_cast<void*>(driver.api().init);
  ::dlclose(system);
  return same;
}

std::vector<std::string> file_names(int driver_version) {
  std::vector<std::string> names;
  if (driver_version >= 13000) names.emplace_back("libcublasLt.so.13");
  names.emplace_back("libcublasLt.so.12");
  return with_toolkit_folders(names);
}

// Returns null, and the reason in `problem`, if the library is not found or is not a supported version.
const CublasLtLibrary* load(const std::vector<std::string>& names, std::string& problem) {
  static std::mutex mutex;
  // Libraries by the system's handle. The map is never destroyed, because calls may come at exit.
  static auto& known = *new std::map<void*, CublasLtLibrary>;
  const std::lock_guard lock(mutex);
  void* handle = nullptr;
  for (const std::string& name : names)
    if ((handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL))) break;
  if (!handle) {
    problem =
        str_cat("cuBLASLt was not found as ", names[0], ": install it with the CUDA toolkit, or alone (pip install ",
                "nvidia-cublas), and name its file in ", kVariable);
    return nullptr;
  }
  if (const auto it = known.find(handle); it != known.end()) {
    ::dlclose(handle);  // the library stays: it has been opened before
    return &it->second;
  }
  CublasLtLibrary l;
  const char* lacks = nullptr;
  const auto find = [&](auto& to, const char* symbol) {
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(::dlsym(handle, symbol));
    if (!to) lacks = symbol;
  };
#define LIGHTCONE_FIND(name, symbol, ...) find(l.api.name, symbol);
  LIGHTCONE_CUBLASLT_FUNCTIONS(LIGHTCONE_FIND)
#undef LIGHTCONE_FIND
  find(l.api.version, "cublasLtGetVersion");
  if (l.api.version) l.version = l.api.version();
  if (!lacks && l.version >= kOldest) return &known.emplace(handle, l).first->second;
  ::dlclose(handle);
  problem = lacks ? str_cat("cuBLASLt has no function ", lacks, ": version 12 or a newer one is needed")
                  : str_cat("cuBLASLt ", version_words(l.version), " is too old: version 12 or a newer one is needed");
  return nullptr;
}

}  // namespace

// ---- the library ------------------------------------------------------------------------------

std::shared_ptr<CublasLt> CublasLt::open(const CudaOptions& options, const std::shared_ptr<Context>& context,
                                         std::string& problem) {
  const std::string wish = options.cublas_lt_library.empty() ? env(kVariable) : options.cublas_lt_library;
  if (!options.cublas_lt.value_or(true) || wish == "off") return nullptr;
  std::string why;
  std::shared_ptr<CublasLt> lt;
  if (wish.empty() && !is_systems_driver(context->driver())) {
    why = str_cat("cuBLASLt speaks to libcuda.so.1 alone, and another driver was named: name a cuBLASLt for it in ",
                  kVariable);
  } else if (const CublasLtLibrary* library =
                 load(wish.empty() ? file_names(context->driver().version()) : std::vector{wish}, why)) {
    lt.reset(new CublasLt(context, *library));
    context->enter();
    if (const api::LtStatus s = library->api.create(&lt->handle_); s != api::LtStatus::Success) {
      lt->handle_ = nullptr;
      why = str_cat(lt->name(), " cannot be used with this device: its status ", static_cast<int>(s));
      lt.reset();
    }
  }
  if (options.cublas_lt && !why.empty()) problem = why + "; our kernels compute products";
  return lt;
}

CublasLt::CublasLt(std::shared_ptr<Context> context, const CublasLtLibrary& library)
    : library_(library), context_(std::move(context)) {}

CublasLt::~CublasLt() {
  if (!handle_) return;
  context_->quietly([&](const api::Driver&) {
    library_.api.destroy(handle_);
    return api::Result::Success;
  });
}

std::string CublasLt::name() const { return "cuBLASLt " + version_words(library_.version); }

std::shared_ptr<const gpu::LibraryProduct> CublasLt::product(const gpu::MatrixProduct& p) {
  try {
    context_->enter();
    return std::make_shared<CublasLtProduct>(shared_from_this(), p);
  } catch (const Error&) {  // the library does not take this product
    return nullptr;
  }
}

bool CublasLt::prefers(const std::string& text, const cache::ObjectCache& cache, const std::string& made_by,
                       const std::function<std::optional<double>()>& measure) {
  const std::lock_guard lock(mutex_);  // products are measured one at a time
  if (const auto it = decided_.find(text); it != decided_.end()) return it->second;
  const std::string file = cache.name({"product", text, made_by, name()}, ".choice");
  const std::string kept = cache.find(file);
  bool faster = kept == "cuBLASLt";
  if (!faster && kept != "ours") {
    const std::optional<double> part = measure();
    if (!part) return false;  // a later call may measure
    faster = *part < kFaster;
    cache.keep(file, faster ? "cuBLASLt" : "ours");
    cache.trim();
  }
  return decided_[text] = faster;
}

// ---- one product ------------------------------------------------------------------------------

namespace {

api::LtType type_of(DType t) {
  return t == DType::F32 ? api::LtType::F32 : t == DType::F16 ? api::LtType::F16 : api::LtType::BF16;
}

api::LtCompute compute_of(Precision p) {
  switch (p) {
    case Precision::High: return api::LtCompute::F32AsTF32;
    case Precision::Medium: return api::LtCompute::F32AsBF16;
    default: return api::LtCompute::F32;
  }
}

void must(api::LtStatus s, const char* doing) {
  if (s != api::LtStatus::Success)
    throw Error("cuda", str_cat("cuBLASLt cannot ", doing, ": its status ", static_cast<int>(s)));
}

// Returns the largest power of two, up to kAlign, of which `bytes` is a multiple.
std::uint32_t alignment(std::size_t bytes) {
  std::uint32_t a = kAlign;
  while (bytes % a) a /= 2;
  return a;
}

}  // namespace

// The library is column-major, so our C is its transposed result, and our B its first operand.
CublasLtProduct::CublasLtProduct(std::shared_ptr<CublasLt> lt, const gpu::MatrixProduct& p)
    : lt_(std::move(lt)),
      a_offset_(static_cast<std::size_t>(p.a.offset) * size_of(p.type)),
      b_offset_(static_cast<std::size_t>(p.b.offset) * size_of(p.type)),
      product_(lt_->library_.api.destroy_product),
      a_(lt_->library_.api.destroy_layout),
      b_(lt_->library_.api.destroy_layout),
      to_(lt_->library_.api.destroy_layout) {
  describe(p);
  choose();
}

void CublasLtProduct::describe(const gpu::MatrixProduct& p) {
  const api::Lt& lt = lt_->library_.api;
  const auto layout = [&](LtObject<api::LtLayout>& l, DType type, std::int64_t inner, std::int64_t outer,
                          std::int64_t pitch, std::int64_t batch) {
    must(lt.create_layout(l.to(), type_of(type), static_cast<std::uint64_t>(inner), static_cast<std::uint64_t>(outer),
                          pitch),
         "describe a matrix");
    if (p.batches == 1) return;
    const auto count = static_cast<std::int32_t>(p.batches);
    must(lt.set_layout(l.get(), api::LtLayoutAttribute::BatchCount, &count, sizeof count), "describe matrices");
    must(lt.set_layout(l.get(), api::LtLayoutAttribute::BatchStride, &batch, sizeof batch), "describe matrices");
  };
  const auto operand = [&](LtObject<api::LtLayout>& l, const gpu::MatrixProduct::Operand& o, std::int64_t own) {
    layout(l, p.type, o.along_sum ? p.sum : own, o.along_sum ? own : p.sum, o.pitch, o.batch);
  };
  for (const std::int64_t n : {p.rows, p.columns, p.sum, p.batches})
    if (n > 0x7fffffff) throw Error("cuda", "cuBLASLt takes no matrices that large");
  operand(a_, p.a, p.rows), operand(b_, p.b, p.columns);
  layout(to_, p.result, p.columns, p.rows, p.pitch, p.batch);
  must(lt.create_product(product_.to(), compute_of(p.precision), api::LtType::F32), "describe a product");
  const auto set_transpose = [&](api::LtProductAttribute which, bool yes) {
    const api::LtTranspose t = yes ? api::LtTranspose::Yes : api::LtTranspose::No;
    must(lt.set_product(product_.get(), which, &t, sizeof t), "describe a product");
  };
  set_transpose(api::LtProductAttribute::TransposeA, p.b.along_sum),
      set_transpose(api::LtProductAttribute::TransposeB, !p.a.along_sum);
}

void CublasLtProduct::choose() {
  const api::Lt& lt = lt_->library_.api;
  LtObject<api::LtPreference> wish(lt.destroy_preference);
  must(lt.create_preference(wish.to()), "say what is wanted");
  const auto set = [&](api::LtPreferenceAttribute which, auto value) {
    must(lt.set_preference(wish.get(), which, &value, sizeof value), "say what is wanted");
  };
  set(api::LtPreferenceAttribute::MostWorkspace, std::uint64_t{kMostWorkspace});
  set(api::LtPreferenceAttribute::Reductions, static_cast<std::uint32_t>(api::LtReduction::InF32));
  set(api::LtPreferenceAttribute::AlignmentA, alignment(b_offset_));
  set(api::LtPreferenceAttribute::AlignmentB, alignment(a_offset_));
  set(api::LtPreferenceAttribute::AlignmentC, kAlign);
  set(api::LtPreferenceAttribute::AlignmentD, kAlign);
  api::LtChoice choice;
  int count = 0;
  must(
      lt.choose(lt_->handle_, product_.get(), b_.get(), a_.get(), to_.get(), to_.get(), wish.get(), 1, &choice, &count),
      "choose an algorithm");
  if (count < 1) throw Error("cuda", "cuBLASLt has no algorithm for a product");
  must(choice.state, "choose an algorithm");
  algorithm_ = choice.algorithm, workspace_ = choice.workspace;
}

std::size_t CublasLtProduct::scratch_bytes() const { return workspace_ ? workspace_ + kWorkspaceAlign : 0; }

void CublasLtProduct::enqueue(const Context& context, api::Stream* stream, std::span<const std::uint64_t> words) const {
  const api::Address a = words[0], b = words[1], to = words[2], scratch = words[3];
  const float one = 1, zero = 0;
  const api::Address work = workspace_ ? (scratch + kWorkspaceAlign - 1) / kWorkspaceAlign * kWorkspaceAlign : 0;
  const api::LtStatus s =
      lt_->library_.api.multiply(lt_->handle_, product_.get(), &one, b + b_offset_, b_.get(), a + a_offset_, a_.get(),
                                 &zero, to, to_.get(), to, to_.get(), &algorithm_, work, workspace_, stream);
  if (s == api::LtStatus::Success) return;
  // If the device was lost, any call of the driver reports it.
  std::size_t free = 0, total = 0;
  context.check(context.api().memory_info(&free, &total), "multiply");
  must(s, "multiply");
}

}  // namespace lc::backends::cuda
