#include "lightcone/backends/opencl/find.h"

#include <algorithm>
#include <cctype>
#include <cstdio>

#include "lightcone/backends/opencl/error.h"

namespace lc::backends::opencl {
namespace {

// Returns a text that is queried in two steps: its length, and its contents.
template <class Ask>
std::string text(Ask ask, std::string_view who, std::string_view doing) {
  std::size_t size = 0;
  take(ask(0, nullptr, &size), who, doing);
  std::string s(size, '\0');
  if (size) take(ask(size, s.data(), nullptr), who, doing);
  while (!s.empty() && (s.back() == '\0' || s.back() == ' ')) s.pop_back();
  return s;
}

class Questions {
 public:
  Questions(const api::Functions& f, api::Device* device) : f_(f), device_(device) {}
  std::string text(api::UInt what, std::string_view doing) const {
    return opencl::text(
        [&](std::size_t room, void* to, std::size_t* size) { return f_.GetDeviceInfo(device_, what, room, to, size); },
        "the device", doing);
  }
  template <class T>
  T number(api::UInt what, std::string_view doing) const {
    T n{};
    take(f_.GetDeviceInfo(device_, what, sizeof n, &n, nullptr), "the device", doing);
    return n;
  }
  std::size_t items(std::string_view doing) const {  // items of a group, in its first dimension
    std::size_t bytes = 0;
    take(f_.GetDeviceInfo(device_, api::kItemSizes, 0, nullptr, &bytes), "the device", doing);
    std::vector<std::size_t> sizes(std::max<std::size_t>(bytes / sizeof(std::size_t), 1));
    take(f_.GetDeviceInfo(device_, api::kItemSizes, sizes.size() * sizeof(std::size_t), sizes.data(), nullptr),
         "the device", doing);
    return sizes[0];
  }

 private:
  const api::Functions& f_;
  api::Device* device_;
};

int as_int(std::size_t n) { return static_cast<int>(std::min<std::size_t>(n, 1 << 30)); }

std::string unusable(const Questions& q, const DeviceInfo& d) {
  int major = 0, minor = 0;
  std::sscanf(d.version.c_str(), "OpenCL C %d.%d", &major, &minor);
  if (major < 1 || (major == 1 && minor < 2))
    return str_cat("it compiles '", d.version, "', and OpenCL C 1.2 is needed");
  if (!q.number<api::UInt>(api::kAvailable, "say whether it is there"))
    return "its driver says that it is not available";
  if (!q.number<api::UInt>(api::kCompilerAvailable, "say whether it compiles")) return "its driver has no compiler";
  if (!q.number<api::UInt>(api::kLittleEndian, "say the order of bytes"))
    return "the last byte of its numbers comes first";
  if (q.text(api::kProfile, "say its profile") != "FULL_PROFILE")
    return "it has the embedded profile of OpenCL, in which numbers of 64 bits may be missing";
  return "";
}

void fill_in(const Questions& q, DeviceInfo& d) {
  gpu::Limits& l = d.limits;
  l.name = q.text(api::kDeviceName, "say its name");
  d.version = q.text(api::kLanguageVersion, "say what it compiles");
  l.architecture = str_cat(l.name, ", ", d.version);
  l.driver = str_cat(d.platform, ", ", q.text(api::kDriverVersion, "say the version of its driver"));
  const auto group = q.number<std::size_t>(api::kGroupSize, "say the size of groups");
  l.max_block_size = as_int(std::min(group, q.items("say the sizes of groups")));
  l.shared = q.number<std::uint64_t>(api::kLocalMemory, "say its local memory");
  l.multiprocessors = as_int(q.number<api::UInt>(api::kComputeUnits, "count its processors"));
  l.memory = q.number<std::uint64_t>(api::kGlobalMemory, "say its memory");
  if (q.number<api::UInt>(api::kAddressBits, "say the size of its addresses") < 64)
    l.max_grid_size = std::int64_t{UINT32_MAX} / std::max(l.max_block_size, 1);
  // A buffer takes two arguments: a pointer and an offset.
  const auto parameters = q.number<std::size_t>(api::kParameterSize, "say how many arguments a kernel may have");
  const std::size_t sizes = gpu::kMaxSizes * sizeof(std::int64_t);
  l.max_buffers =
      std::min(l.max_buffers, (std::max(parameters, sizes) - sizes) / (sizeof(void*) + sizeof(std::int64_t)));
  l.f64 = q.number<api::Bits>(api::kDoubleConfig, "say what it does in double precision") != 0;
  d.max_allocation = q.number<std::uint64_t>(api::kAllocationSize, "say the size of buffers");
  d.correctly_rounded = q.number<api::Bits>(api::kSingleConfig, "say how it rounds") & api::kCorrectlyRounded;
  d.unusable = unusable(q, d);
}

// Returns a device's properties. A failure makes this device unusable and does not hide the others.
Found ask(const api::Functions& f, api::Device* device, const std::string& platform) {
  Found found{device, 0, {}};
  found.info.platform = platform;
  found.info.limits.language = gpu::Language::OpenCl;
  try {
    const Questions q(f, device);
    found.type = q.number<api::Bits>(api::kDeviceType, "say what kind it is");
    fill_in(q, found.info);
    found.info.optimised = !(found.type & api::kTypeCpu && platform.find("Intel") != std::string::npos);
  } catch (const Error& e) {
    found.info.unusable = e.problem();
  }
  return found;
}

int rank(const Found& f) { return f.type & api::kTypeGpu ? 0 : f.type & api::kTypeCpu ? 2 : 1; }

bool contains(std::string_view all, std::string_view part) {
  const auto same = [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); };
  return std::search(all.begin(), all.end(), part.begin(), part.end(), same) != all.end();
}

template <class T, class Ask>
std::vector<T*> all_of(api::Int none, Ask ask, std::string_view who, std::string_view doing) {
  api::UInt count = 0;
  const api::Int code = ask(0, nullptr, &count);
  if (code == none) return {};
  take(code, who, doing);
  std::vector<T*> all(count);
  if (count) take(ask(count, all.data(), nullptr), who, doing);
  return all;
}

}  // namespace

std::vector<Found> find_devices(const Library& library, const OpenClOptions& options) {
  const api::Functions& f = library.functions;
  std::vector<Found> all;
  for (api::Platform* p :
       all_of<api::Platform>(api::kPlatformNotFound, f.GetPlatformIDs, library.path, "list platforms")) {
    const auto said = [&](api::UInt what) {
      return text(
          [&](std::size_t room, void* to, std::size_t* size) { return f.GetPlatformInfo(p, what, room, to, size); },
          "a platform", "say what it is");
    };
    const std::string name = said(api::kPlatformName);
    if (!contains(name, options.platform)) continue;
    const std::string platform = str_cat(name, ", ", said(api::kPlatformVersion));
    const auto list = [&](api::UInt room, api::Device** to, api::UInt* count) {
      return f.GetDeviceIDs(p, api::kAllDevices, room, to, count);
    };
    for (api::Device* d : all_of<api::Device>(api::kDeviceNotFound, list, name, "list its devices"))
      all.push_back(ask(f, d, platform));
  }
  std::stable_sort(all.begin(), all.end(), [](const Found& a, const Found& b) { return rank(a) < rank(b); });
  return all;
}

std::vector<DeviceInfo> devices(const OpenClOptions& options) {
  std::vector<DeviceInfo> all;
  for (Found& f : find_devices(*load_library(options.library), options)) all.push_back(std::move(f.info));
  return all;
}

}  // namespace lc::backends::opencl
