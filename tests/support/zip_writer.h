// A writer of ZIP archives and .npy files in which a test can falsify every number.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <zlib.h>

namespace made {

inline std::string little(std::uint64_t v, int width) {
  std::string s;
  for (int i = 0; i < width; ++i) s += static_cast<char>(i < 8 ? v >> 8 * i & 255 : 0);
  return s;
}
inline std::string big(std::uint64_t v, int width) {
  const std::string s = little(v, width);
  return {s.rbegin(), s.rend()};
}

// `window`: -15 for raw deflate, 31 for gzip.
inline std::string deflated(const std::string& bytes, int window = -15) {
  z_stream z = {};
  if (deflateInit2(&z, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY) != Z_OK) throw std::runtime_error("deflateInit2");
  std::string out(deflateBound(&z, bytes.size()) + 64, 0);
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  if (deflate(&z, Z_FINISH) != Z_STREAM_END) throw std::runtime_error("deflate");
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}
inline std::string gzipped(const std::string& bytes) { return deflated(bytes, 31); }

inline std::uint32_t crc(const std::string& bytes) {
  return static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

inline std::string npy(const std::string& descr, const std::string& shape, const std::string& values) {
  const std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }\n";
  return std::string("\x93NUMPY\1\0", 8) + little(header.size(), 2) + header + values;
}

// An archive member, with every number of its headers.
struct Member {
  std::string name, bytes;  // bytes: compressed
  std::uint64_t method, packed, size, crc;
  std::uint64_t flags = 0;
  std::string local_name;  // the name in the member's local header
  std::int64_t moved = 0;  // added to the offset that the directory states
  Member(std::string n, const std::string& content, bool deflate)
      : name(std::move(n)),
        bytes(deflate ? deflated(content) : content),
        method(deflate ? 8 : 0),
        packed(bytes.size()),
        size(content.size()),
        crc(made::crc(content)),
        local_name(name) {}
};

// Amounts added to the true numbers of the end-of-directory record.
struct ZipLies {
  std::int64_t members = 0, begin = 0, size = 0;
};

inline std::string zip(const std::vector<Member>& members, const ZipLies& lies = {}) {
  std::string s, central;
  for (const Member& m : members) {
    const auto at = static_cast<std::uint64_t>(static_cast<std::int64_t>(s.size()) + m.moved);
    const std::string shared = little(m.flags, 2) + little(m.method, 2) + little(0, 4) + little(m.crc, 4) +
                               little(m.packed, 4) + little(m.size, 4);
    s += little(0x04034b50, 4) + little(20, 2) + shared + little(m.local_name.size(), 2) + little(0, 2) + m.local_name +
         m.bytes;
    central += little(0x02014b50, 4) + little(20, 2) + little(20, 2) + shared + little(m.name.size(), 2) +
               little(0, 10) + little(0, 2) + little(at, 4) + m.name;
  }
  const auto lie = [](std::size_t truth, std::int64_t by) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(truth) + by);
  };
  const std::string count = little(lie(members.size(), lies.members), 2), begin = little(lie(s.size(), lies.begin), 4);
  s += central + little(0x06054b50, 4) + little(0, 4) + count + count + little(lie(central.size(), lies.size), 4) +
       begin + little(0, 2);
  return s;
}

}  // namespace made
