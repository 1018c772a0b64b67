// The writer of .npz: a zip archive of stored .npy files (PKWARE's APPNOTE 6.3; numpy/lib/format.py).
#include <algorithm>

#include <zlib.h>

#include "lightcone/base/error.h"
#include "lightcone/io/atomic_file.h"
#include "lightcone/io/checkpoints/save.h"
#include "lightcone/io/checkpoints/save_internal.h"
#include "lightcone/io/printable.h"
#include "lightcone/io/utf8.h"

namespace lc {
namespace {

constexpr std::uint32_t kIn64 = 0xffffffff;  // in a 32-bit field: the number is in a 64-bit field elsewhere
constexpr std::uint16_t kUtf8 = 1 << 11, kJanuary1980 = 1 << 5 | 1;

std::string_view descr(const TensorToSave& t) {
  switch (t.dtype) {
    case DType::F32: return "<f4";
    case DType::F64: return "<f8";
    case DType::F16: return "<f2";
    case DType::I8: return "|i1";
    case DType::I16: return "<i2";
    case DType::I32: return "<i4";
    case DType::I64: return "<i8";
    case DType::U8: return "|u1";
    case DType::U16: return "<u2";
    case DType::U32: return "<u4";
    case DType::U64: return "<u8";
    case DType::Bool: return "|b1";
    case DType::BF16:
    case DType::F8E4M3FN:
    case DType::F8E5M2: break;
  }
  throw Error("save_npz", str_cat(in_quotes(t.name), " is ", name(t.dtype),
                                  ", which numpy does not have: save it as f32, or as safetensors"));
}

// Appends little-endian numbers.
struct Bytes {
  std::string s;
  Bytes& number(std::uint64_t v, int width) {
    for (int i = 0; i < width; ++i) s += static_cast<char>(v >> 8 * i & 255);
    return *this;
  }
  Bytes& u16(std::uint64_t v) { return number(v, 2); }
  Bytes& u32(std::uint64_t v) { return number(v, 4); }
  Bytes& u64(std::uint64_t v) { return number(v, 8); }
};

std::string npy_header(const TensorToSave& t) {
  std::string dict = str_cat("{'descr': '", descr(t), "', 'fortran_order': False, 'shape': (");
  for (std::size_t i = 0; i < t.shape.size(); ++i) dict += str_cat(i ? " " : "", t.shape[i], ",");
  if (t.shape.size() > 1) dict.pop_back();
  dict += "), }";
  const std::size_t before = 10;  // bytes of magic, version and length
  dict.resize((before + dict.size() + 1 + 63) / 64 * 64 - before - 1, ' ');
  dict += '\n';
  if (dict.size() > 0xffff) throw Error("save_npz", str_cat(in_quotes(t.name), " has ", t.shape.size(), " axes"));
  return str_cat(std::string_view("\x93NUMPY\1\0", 8), Bytes().u16(dict.size()).s, dict);
}

std::uint32_t crc_of(std::string_view header, std::span<const std::byte> values) {
  const auto bytes = [](const void* p) { return static_cast<const Bytef*>(p); };
  const uLong crc = ::crc32_z(0, bytes(header.data()), header.size());
  // crc32_z() with a null pointer would return the initial value.
  return static_cast<std::uint32_t>(values.empty() ? crc : ::crc32_z(crc, bytes(values.data()), values.size()));
}

struct Member {
  std::string name;
  std::uint32_t crc;
  std::uint64_t size, at;  // size of the file, offset of its local header
};

// Appends the fields that local and central headers share, from the required version to the length of the name. `large`
// is true if a number needs 64 bits.
void common(Bytes& b, const Member& m, bool large) {
  b.u16(large ? 45 : 20).u16(kUtf8).u16(0).u16(0).u16(kJanuary1980).u32(m.crc);
  for (int i = 0; i < 2; ++i) b.u32(std::min<std::uint64_t>(m.size, kIn64));
  b.u16(m.name.size());
}

std::string local_header(const Member& m) {
  const bool large = m.size >= kIn64;
  Bytes b;
  b.u32(0x04034b50);
  common(b, m, large);
  b.u16(large ? 20 : 0).s += m.name;
  if (large) b.u16(1).u16(16).u64(m.size).u64(m.size);
  return b.s;
}

std::string central_header(const Member& m) {
  const bool large = m.size >= kIn64, far = m.at >= kIn64;
  Bytes extra;
  if (large) extra.u64(m.size).u64(m.size);
  if (far) extra.u64(m.at);
  Bytes b;
  b.u32(0x02014b50).u16(3 << 8 | 45);
  common(b, m, large || far);
  b.u16(extra.s.empty() ? 0 : 4 + extra.s.size()).u16(0).u16(0).u16(0).u32(0600u << 16);
  b.u32(std::min<std::uint64_t>(m.at, kIn64)).s += m.name;
  if (!extra.s.empty()) b.u16(1).u16(extra.s.size()).s += extra.s;
  return b.s;
}

std::string end_of(std::uint64_t members, std::uint64_t begin, std::uint64_t size) {
  Bytes b;
  if (members >= 0xffff || begin >= kIn64 || size >= kIn64) {
    b.u32(0x06064b50).u64(44).u16(45).u16(45).u32(0).u32(0);
    b.u64(members).u64(members).u64(size).u64(begin);
    b.u32(0x07064b50).u32(0).u64(begin + size).u32(1);
  }
  const std::uint64_t count = std::min<std::uint64_t>(members, 0xffff);
  b.u32(0x06054b50).u16(0).u16(0).u16(count).u16(count);
  b.u32(std::min<std::uint64_t>(size, kIn64)).u32(std::min<std::uint64_t>(begin, kIn64)).u16(0);
  return b.s;
}

void check_names(std::span<const TensorToSave> tensors) {
  constexpr std::size_t kLongest = 60000;
  for (const TensorToSave& t : tensors) {
    for (std::size_t at = 0, n; at < t.name.size(); at += n)
      if (n = utf8_length(t.name, at); n == 0)
        throw Error("save_npz", str_cat("the name ", in_quotes(t.name), " is not UTF-8"));
    if (t.name.find('\0') != t.name.npos || t.name.size() > kLongest)
      throw Error("save_npz",
                  str_cat("the name ", in_quotes(t.name), " holds a NUL or is longer than ", kLongest, " bytes"));
  }
}

}  // namespace

void save_npz(const std::string& path, std::span<const TensorToSave> tensors) {
  io::check_tensors("save_npz", tensors);
  check_names(tensors);
  for (const TensorToSave& t : tensors) descr(t);  // throws before the file is created
  io::AtomicFile file("save_npz", path);
  std::string central;
  for (const TensorToSave& t : tensors) {
    const std::string header = npy_header(t);
    const Member m{t.name + ".npy", crc_of(header, t.bytes), header.size() + t.bytes.size(), file.size()};
    file.write(local_header(m));
    file.write(header);
    file.write(t.bytes);
    central += central_header(m);
  }
  const std::uint64_t begin = file.size();
  file.write(central);
  file.write(end_of(tensors.size(), begin, central.size()));
  file.commit();
}

void save_npy(const std::string& path, const TensorToSave& tensor) {
  io::check_tensors("save_npy", std::span(&tensor, 1));
  const std::string header = npy_header(tensor);
  io::AtomicFile file("save_npy", path);
  file.write(header);
  file.write(tensor.bytes);
  file.commit();
}

}  // namespace lc
