#include "lightcone/backends/cuda/device.h"

#include <algorithm>

#include "lightcone/backends/cuda/launch.h"
#include "lightcone/backends/cuda/recording.h"
#include "lightcone/base/error.h"
#include "lightcone/cache/environment.h"

namespace lc::backends::cuda {
namespace {

// The largest grid: all blocks are along one axis.
constexpr std::int64_t kMostGroups = 2147483647;

struct Capability {
  int major = 0, minor = 0;
};

class Properties {
 public:
  Properties(const Driver& driver, int ordinal) : driver_(driver) { must(driver.api().device(&device_, ordinal)); }
  int operator[](api::DeviceAttribute a) const {
    int value = 0;
    must(driver_.api().device_attribute(&value, a, device_));
    return value;
  }
  Capability capability() const {
    return {(*this)[api::DeviceAttribute::ComputeCapabilityMajor],
            (*this)[api::DeviceAttribute::ComputeCapabilityMinor]};
  }
  std::string name() const {
    char text[256] = {};
    must(driver_.api().device_name(text, sizeof text - 1, device_));
    return text;
  }
  std::size_t memory() const {
    std::size_t bytes = 0;
    must(driver_.api().device_memory(&bytes, device_));
    return bytes;
  }

 private:
  void must(api::Result r) const {
    if (r != api::Result::Success)
      throw Error("cuda", str_cat("a CUDA device does not say what it can do: ", driver_.words(r)));
  }
  const Driver& driver_;
  api::Device device_ = 0;
};

gpu::Limits limits_of(const Driver& driver, int ordinal) {
  using api::DeviceAttribute;
  const Properties p(driver, ordinal);
  const auto [major, minor] = p.capability();
  gpu::Limits l;
  l.name = p.name();
  l.architecture = str_cat("sm_", major, minor);
  l.driver = "CUDA " + version_text(driver.version());
  l.language = gpu::Language::Cuda;
  l.max_block_size = p[DeviceAttribute::MaxThreadsPerBlock];
  l.warp = p[DeviceAttribute::WarpSize];
  l.shared = static_cast<std::size_t>(p[DeviceAttribute::MaxSharedMemoryPerBlockOptin]);
  l.multiprocessors = p[DeviceAttribute::MultiprocessorCount];
  l.memory = p.memory();
  l.max_grid_size = std::min<std::int64_t>(p[DeviceAttribute::MaxGridDimX], kMostGroups);
  l.f64 = true;
  return l;
}

// Returns a switch that the program leaves open: 1 or 0 in the environment, else its default.
bool switched(const char* variable, bool standard) {
  const std::string s = env(variable);
  return s == "1" || (s != "0" && standard);
}

// The first version whose driver's graphs can hold launches that overlap.
constexpr int kOldestOverlap = 12030;
void check_overlap(int driver_version) {
  if (driver_version < kOldestOverlap)
    throw Error("cuda",
                str_cat("launches that overlap (CudaOptions::overlap, LIGHTCONE_OVERLAP) need a driver of version ",
                        version_text(kOldestOverlap), " or newer, and this one is of version ",
                        version_text(driver_version), ": install a newer driver, or switch them off"));
}

api::Address checked(BufferSlice p, std::size_t bytes) {
  const std::size_t size = p ? p.buffer->size() : 0;
  if (p.offset > size || bytes > size - p.offset)
    throw Error("cuda", str_cat(bytes, " bytes at ", p.offset, " are not within a buffer of ", size));
  return address_of(p);
}

}  // namespace

std::vector<gpu::Limits> devices(const CudaOptions& options) {
  const std::shared_ptr<Driver> driver = Driver::open(options.driver);
  driver->initialise();
  int count = 0;
  if (const api::Result r = driver->api().device_count(&count); r != api::Result::Success)
    throw Error("cuda", str_cat("the CUDA driver does not count its devices: ", driver->words(r)));
  std::vector<gpu::Limits> all;
  for (int k = 0; k < count; ++k) all.push_back(limits_of(*driver, k));
  return all;
}

std::shared_ptr<gpu::GpuDevice> open_device(const CudaOptions& options) {
  return std::make_shared<CudaDevice>(options);
}

CudaDevice::CudaDevice(const CudaOptions& options)
    : context_(Context::open(Driver::open(options.driver), options.device)),
      compiler_(Compiler::open(options.compiler, context_->driver().version())),
      limits_(limits_of(context_->driver(), options.device)),
      stream_(std::make_shared<Stream>(context_)),
      memory_(std::make_shared<Memory>(stream_)),
      staging_(*stream_),
      cache_({options.cache, options.cache_bytes}),
      options_(options) {
  const auto [major, minor] = Properties(context_->driver(), options.device).capability();
  limits_.architecture = architecture_for(*compiler_, major, minor);
  limits_.warpgroups =
      limits_.architecture == "sm_90a" && options.warpgroups.value_or(switched("LIGHTCONE_WARPGROUPS", true));
  overlaps_ = major >= 9 && options.overlap.value_or(switched("LIGHTCONE_OVERLAP", false));
  if (overlaps_) check_overlap(context_->driver().version());
  limits_.driver += ", NVRTC " + version_text(compiler_->version());
}

CudaDevice::~CudaDevice() { stream_->wait_quietly(); }

void CudaDevice::copy_in(BufferSlice to, const void* from, std::size_t bytes) {
  staging_.copy_in(checked(to, bytes), static_cast<const std::byte*>(from), bytes);
}
void CudaDevice::copy_out(void* to, BufferSlice from, std::size_t bytes) {
  staging_.copy_out(static_cast<std::byte*>(to), checked(from, bytes), bytes);
}
void CudaDevice::copy(BufferSlice to, BufferSlice from, std::size_t bytes) {
  const api::Address a = checked(to, bytes), b = checked(from, bytes);
  if (bytes) stream_->ask("copy", [&](const api::Driver& d, api::Stream* s) { return d.copy(a, b, bytes, s); });
}
void CudaDevice::zero(BufferSlice to, std::size_t bytes) {
  const api::Address a = checked(to, bytes);
  if (bytes)
    stream_->ask("set memory to zero", [&](const api::Driver& d, api::Stream* s) { return d.fill(a, 0, bytes, s); });
}

std::shared_ptr<const gpu::Code> CudaDevice::compile(const std::string& text, const std::vector<std::string>& kernels) {
  return Module::make(stream_, *compiler_, cache_, limits_.architecture, limits_.shared, text, kernels, overlaps_);
}

void CudaDevice::launch_kernel(const gpu::KernelLaunch& s) {
  if (s.grid_size == 0) return;
  const KernelCall call = kernel_call(s, limits_);
  std::array<std::uint64_t, kMostWords> values;
  const std::size_t n = words_of(s);
  write_words(context_->driver(), s, {values.data(), n});
  stream_->ask("start a kernel", [&](const api::Driver& a, api::Stream* stream) {
    return start_kernel(a, stream, call, {values.data(), n});
  });
}

std::shared_ptr<const gpu::LibraryProduct> CudaDevice::library_product(const gpu::MatrixProduct& p) {
  if (p.operations() < static_cast<double>(options_.cublas_lt_least)) return nullptr;
  const std::lock_guard lock(lt_mutex_);
  if (!lt_asked_) lt_ = CublasLt::open(options_, context_, lt_problem_);
  lt_asked_ = true;
  return lt_ ? lt_->product(p) : nullptr;
}

bool CudaDevice::prefers(const gpu::LibraryProduct& p, const std::string& text,
                         const std::function<std::optional<double>()>& measure) {
  if (options_.cublas_lt) return *options_.cublas_lt;
  const std::string made_by =
      str_cat(limits_.name, ", ", limits_.architecture, ", ", limits_.driver, ", ", compiler_->identity());
  return static_cast<const CublasLtProduct&>(p).lt().prefers(text, cache_, made_by, measure);
}

std::string CudaDevice::library_problem() const {
  const std::lock_guard lock(lt_mutex_);
  return lt_problem_;
}

void CudaDevice::call(const gpu::LibraryCall& c, std::span<const BufferSlice> buffers,
                      std::span<const std::int64_t> sizes) {
  const StreamCall& work = stream_call(c);
  std::array<std::uint64_t, kMostCallWords> words;
  const std::size_t n = write_call_words(buffers, sizes, words);
  stream_->ask("run a library's call", [&](const api::Driver&, api::Stream* stream) {
    work.enqueue(*context_, stream, {words.data(), n});
    return api::Result::Success;
  });
}

std::unique_ptr<Recording> CudaDevice::record(std::span<const Launch> launches) {
  return std::make_unique<GraphRecording>(*this, launches);
}

}  // namespace lc::backends::cuda

namespace lc {

Compiler cuda(CudaOptions options, GpuOptions gpu) {
  return backends::gpu::compiler([options = std::move(options)] { return backends::cuda::open_device(options); }, gpu);
}

}  // namespace lc
