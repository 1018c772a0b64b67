#include "lightcone/backends/cpu/jit/elf_check.h"

namespace lc::backends::cpu {
namespace {

// Checks that `count` headers at `at`, and the part of the file that each of them describes, lie inside `bytes`.
template <class Header, class Part>
bool inside(std::string_view bytes, std::size_t at, std::size_t count, std::size_t size, const Part& part) {
  if (count == 0) return true;
  if (size != sizeof(Header) || at > bytes.size() || count > (bytes.size() - at) / size) return false;
  for (std::size_t k = 0; k < count; ++k) {
    Header h;
    std::memcpy(&h, bytes.data() + at + k * size, size);
    const auto [offset, length] = part(h);
    if (offset > bytes.size() || length > bytes.size() - offset) return false;
  }
  return true;
}

}  // namespace

bool whole_elf(std::string_view bytes, int type) {
  ElfW(Ehdr) e;
  if (bytes.size() < sizeof e) return false;
  std::memcpy(&e, bytes.data(), sizeof e);
  if (std::memcmp(e.e_ident, ELFMAG, SELFMAG) != 0) return false;
  if (e.e_ident[EI_CLASS] != (sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32) || e.e_type != type) return false;
  using Part = std::pair<std::size_t, std::size_t>;
  return (type != ET_DYN || e.e_phnum > 0) &&
         inside<ElfW(Phdr)>(bytes, e.e_phoff, e.e_phnum, e.e_phentsize,
                            [](const auto& h) { return Part(h.p_offset, h.p_filesz); }) &&
         inside<ElfW(Shdr)>(bytes, e.e_shoff, e.e_shnum, e.e_shentsize, [](const auto& h) {
           return h.sh_type == SHT_NOBITS ? Part(0, 0) : Part(h.sh_offset, h.sh_size);
         });
}

}  // namespace lc::backends::cpu
