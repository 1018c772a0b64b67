#include "nvrtc/image.h"

#include <dlfcn.h>
#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "nvrtc/files.h"

namespace lc::simulators::cuda {
namespace {

constexpr char kMagic[8] = {'F', 'A', 'K', 'E', 'C', 'U', 'B', '1'};
constexpr std::uint64_t kLargest = 1 << 28;

struct Header {
  char magic[8];
  char instruction_set[16];
  std::int64_t compute_capability;
  std::uint64_t bytes, object_hash, header_hash;
};

std::uint64_t hash(const void* data, std::size_t bytes) {  // FNV-1a
  std::uint64_t h = 0xcbf29ce484222325u;
  for (std::size_t i = 0; i < bytes; ++i) h = (h ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001b3u;
  return h;
}

Header header_of(const std::string& object, int compute_capability) {
  Header h{};
  std::memcpy(h.magic, kMagic, sizeof kMagic);
  std::strncpy(h.instruction_set, instruction_set_flag(), sizeof h.instruction_set - 1);
  h.compute_capability = compute_capability;
  h.bytes = object.size();
  h.object_hash = hash(object.data(), object.size());
  h.header_hash = hash(&h, offsetof(Header, header_hash));
  return h;
}

// A device runs images of its own major version and of the same or an earlier minor version.
bool runs_on(std::int64_t image, int device) { return image / 10 == device / 10 && image <= device; }

std::vector<std::string> names_of(const LcModule& m) {
  std::vector<std::string> names;
  for (unsigned i = 0; i < m.kernel_count; ++i) names.push_back(m.kernels[i].name);
  return names;
}

}  // namespace

const char* instruction_set_flag() {
#if defined(__x86_64__)
  static const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return v3 ? "x86-64-v3" : "x86-64";
#else
  return "";
#endif
}

std::string seal(const std::string& object, int compute_capability) {
  const Header h = header_of(object, compute_capability);
  return std::string(reinterpret_cast<const char*>(&h), sizeof h) + object;
}

// The objects come from our own compiler, so their tables are trusted. A kernel's shared variable is a local symbol
// such as _ZZ4gemmE4tile.
std::map<std::string, unsigned> shared_bytes(const std::string& object, const std::vector<std::string>& kernels) {
  std::map<std::string, unsigned> bytes;
  Elf64_Ehdr file;
  std::memcpy(&file, object.data(), sizeof file);
  std::vector<Elf64_Shdr> sections(file.e_shnum);
  std::memcpy(sections.data(), object.data() + file.e_shoff, sections.size() * sizeof(Elf64_Shdr));
  const char* section_names = object.data() + sections[file.e_shstrndx].sh_offset;
  for (const Elf64_Shdr& table : sections) {
    if (table.sh_type != SHT_SYMTAB) continue;
    const char* names = object.data() + sections[table.sh_link].sh_offset;
    for (std::size_t at = 0; at < table.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      std::memcpy(&symbol, object.data() + table.sh_offset + at, sizeof symbol);
      if (symbol.st_shndx == 0 || symbol.st_shndx >= sections.size() || symbol.st_size == 0) continue;
      if (std::strcmp(section_names + sections[symbol.st_shndx].sh_name, "lc_shared") != 0) continue;
      for (const std::string& k : kernels)
        if (std::strstr(names + symbol.st_name, ("Z" + std::to_string(k.size()) + k + "E").c_str()) != nullptr)
          bytes[k] += static_cast<unsigned>(symbol.st_size);
    }
  }
  return bytes;
}

// The image is copied by write(), which fails on inaccessible memory, so a truncated image is refused and does not
// crash.
std::shared_ptr<Library> Library::load(const void* image, int compute_capability, Code& code) {
  code = kInvalidImage;
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/image";
  Header h;
  std::string header, object;
  if (!write_file(path, image, sizeof h) || !read_file(path, header)) return nullptr;
  std::memcpy(&h, header.data(), sizeof h);
  if (std::memcmp(h.magic, kMagic, sizeof kMagic) != 0 || h.header_hash != hash(&h, offsetof(Header, header_hash)) ||
      h.bytes > kLargest || std::strcmp(h.instruction_set, instruction_set_flag()) != 0)
    return nullptr;
  const std::string so = folder.path() + "/module.so";
  if (!write_file(so, static_cast<const char*>(image) + sizeof h, h.bytes) || !read_file(so, object)) return nullptr;
  if (object.size() != h.bytes || hash(object.data(), object.size()) != h.object_hash) return nullptr;
  if (!runs_on(h.compute_capability, compute_capability)) return code = kNoBinaryForGpu, nullptr;
  std::shared_ptr<Library> library(new Library);
  static void* const math = dlopen("libm.so.6", RTLD_NOW | RTLD_GLOBAL);  // objects are linked without libraries
  library->handle_ = math != nullptr ? dlopen(so.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (library->handle_ == nullptr) return nullptr;
  library->module_ = static_cast<const LcModule*>(dlsym(library->handle_, "lc_module"));
  if (library->module_ == nullptr) return nullptr;
  library->shared_ = cuda::shared_bytes(object, names_of(*library->module_));
  library->compute_capability_ = static_cast<int>(h.compute_capability);
  code = kSuccess;
  return library;
}

Library::~Library() {
  if (handle_ != nullptr) dlclose(handle_);
}

unsigned Library::shared_bytes(const std::string& kernel) const {
  const auto i = shared_.find(kernel);
  return i == shared_.end() ? 0 : i->second;
}

}  // namespace lc::simulators::cuda
