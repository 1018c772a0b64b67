#include "lightcone/io/data/zip.h"

#include <algorithm>
#include <cstring>

#include "lightcone/io/printable.h"

namespace lc::io {
namespace {

constexpr std::size_t kEnd = 22, kEnd64 = 56, kLocator = 20, kCentral = 46, kLocal = 30;
constexpr std::uint32_t kEndMark = 0x06054b50, kEnd64Mark = 0x06064b50, kLocatorMark = 0x07064b50,
                        kCentralMark = 0x02014b50, kLocalMark = 0x04034b50, kIn64 = 0xffffffff;

// Reads little-endian numbers at offsets in a file. Throws Error if an offset is outside the file.
class Places {
 public:
  Places(std::span<const std::byte> bytes, const std::string& path) : bytes_(bytes), path_(path) {}
  std::span<const std::byte> part(std::uint64_t at, std::uint64_t n) const {
    if (at > bytes_.size() || n > bytes_.size() - at) wrong("it is truncated, or places in it lie outside");
    return bytes_.subspan(at, n);
  }
  std::uint64_t number(std::uint64_t at, std::size_t width) const {
    std::uint64_t v = 0;
    const auto b = part(at, width);
    for (std::size_t i = width; i-- > 0;) v = v << 8 | static_cast<std::uint64_t>(b[i]);
    return v;
  }
  std::uint64_t u16(std::uint64_t at) const { return number(at, 2); }
  std::uint64_t u32(std::uint64_t at) const { return number(at, 4); }
  std::uint64_t u64(std::uint64_t at) const { return number(at, 8); }
  std::string_view text(std::uint64_t at, std::uint64_t n) const {
    const auto b = part(at, n);
    return {reinterpret_cast<const char*>(b.data()), b.size()};
  }
  std::size_t size() const { return bytes_.size(); }
  [[noreturn]] void wrong(std::string_view what) const {
    throw file_error("load", path_, "not a zip archive that can be read: ", what);
  }

 private:
  std::span<const std::byte> bytes_;
  const std::string& path_;
};

struct Directory {
  std::uint64_t members, begin, size;
};

// Finds the record at the end, after which only a comment of up to 64 KB may follow.
std::uint64_t find_end(const Places& p) {
  if (p.size() < kEnd) p.wrong("it is too short");
  for (std::uint64_t back = kEnd; back <= std::min<std::uint64_t>(p.size(), kEnd + 0xffff); ++back)
    if (const std::uint64_t at = p.size() - back; p.u32(at) == kEndMark && p.u16(at + 20) == back - kEnd) return at;
  p.wrong("it has no directory, so it is truncated or something else");
}

Directory find_directory(const Places& p) {
  const std::uint64_t end = find_end(p);
  Directory d{p.u16(end + 10), p.u32(end + 16), p.u32(end + 12)};
  std::uint64_t before = end;  // where the directory must end
  if (p.u16(end + 4) != 0 || p.u16(end + 6) != 0 || p.u16(end + 8) != d.members) p.wrong("it spans several disks");
  if (end >= kLocator && p.u32(end - kLocator) == kLocatorMark) {
    const std::uint64_t at = p.u64(end - kLocator + 8);
    if (p.u32(at) != kEnd64Mark || p.part(at, kEnd64).size() + at != end - kLocator || p.u64(at + 4) != kEnd64 - 12)
      p.wrong("its directory of 64 bits is not where it is said to be");
    if (p.u32(at + 16) != 0 || p.u32(at + 20) != 0 || p.u64(at + 24) != p.u64(at + 32))
      p.wrong("it spans several disks");
    d = {p.u64(at + 32), p.u64(at + 48), p.u64(at + 40)};
    before = at;
  }
  if (d.begin > before || d.size != before - d.begin) p.wrong("its directory has another size or place than it says");
  if (d.members > d.size / kCentral) p.wrong("its directory is too small for so many members");
  return d;
}

// Reads the numbers that do not fit into 32 bits from the extra field, which holds only those, in this order.
void numbers_of_64_bits(const Places& p, std::uint64_t extra, std::uint64_t end,
                        std::initializer_list<std::uint64_t*> numbers) {
  if (std::none_of(numbers.begin(), numbers.end(), [](const std::uint64_t* n) { return *n == kIn64; })) return;
  while (extra + 4 <= end) {
    const std::uint64_t id = p.u16(extra), size = p.u16(extra + 2);
    std::uint64_t at = extra + 4;
    extra = at + size;
    if (id != 1) continue;
    for (std::uint64_t* n : numbers) {
      if (*n != kIn64) continue;
      if (at + 8 > std::min(extra, end)) p.wrong("a size of 64 bits is missing");
      *n = p.u64(at);
      at += 8;
    }
    return;
  }
  p.wrong("a size of 64 bits is missing");
}

// Reads the member of which the central header is at `at`, and advances `at` past the header.
ZipMember member(const Places& p, std::uint64_t& at, std::uint64_t directory) {
  if (p.u32(at) != kCentralMark) p.wrong("its directory holds something else");
  const std::uint64_t flags = p.u16(at + 8), method = p.u16(at + 10), name = p.u16(at + 28), extra = p.u16(at + 30);
  std::uint64_t packed = p.u32(at + 20), size = p.u32(at + 24), local = p.u32(at + 42);
  ZipMember m{p.text(at + kCentral, name), {}, method == 8, 0, static_cast<std::uint32_t>(p.u32(at + 16)), 0, 0};
  const std::uint64_t extra_at = at + kCentral + name;
  numbers_of_64_bits(p, extra_at, extra_at + extra, {&size, &packed, &local});
  const auto refuse = [&](std::string_view what) { p.wrong(str_cat("the member ", in_quotes(m.name), " ", what)); };
  if (flags & 1) refuse("is encrypted");
  if (method != 0 && method != 8) refuse("is packed by another method than deflate");
  if (p.u16(at + 34) != 0) refuse("lies on another disk");
  if (p.u32(local) != kLocalMark || p.u16(local + 8) != method || p.text(local + kLocal, p.u16(local + 26)) != m.name)
    refuse("is not where the directory says");
  const std::uint64_t begin = local + kLocal + p.u16(local + 26) + p.u16(local + 28);
  if (begin > directory || packed > directory - begin) refuse("reaches into the directory");
  if (method == 0 && packed != size) refuse("is stored and has two sizes");
  m.bytes = p.part(begin, packed);
  m.size = size;
  m.begin = local;
  m.end = begin + packed;
  at = extra_at + extra + p.u16(at + 32);
  return m;
}

}  // namespace

std::vector<ZipMember> read_zip(const MappedFile& file, Budget& budget) {
  const Places p(file.bytes(), file.path());
  const Directory d = find_directory(p);
  budget.take(d.members, sizeof(ZipMember));
  std::vector<ZipMember> members;
  members.reserve(d.members);
  std::uint64_t at = d.begin;
  while (members.size() < d.members) members.push_back(member(p, at, d.begin));
  if (at != d.begin + d.size) p.wrong("its directory has another size than it says");
  // Members that share bytes or a name would let a small file unpack to a large one.
  std::sort(members.begin(), members.end(), [](const ZipMember& a, const ZipMember& b) { return a.name < b.name; });
  for (std::size_t i = 1; i < members.size(); ++i)
    if (members[i].name == members[i - 1].name) p.wrong(str_cat("two members are called ", in_quotes(members[i].name)));
  std::sort(members.begin(), members.end(), [](const ZipMember& a, const ZipMember& b) { return a.begin < b.begin; });
  for (std::size_t i = 1; i < members.size(); ++i)
    if (members[i].begin < members[i - 1].end)
      p.wrong(str_cat("the member ", in_quotes(members[i].name), " overlaps another"));
  return members;
}

}  // namespace lc::io
