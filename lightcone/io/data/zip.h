// The members of a zip archive (PKWARE's APPNOTE 6.3), from its central directory, checked against the local headers.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lightcone/io/mapped_file.h"
#include "lightcone/io/read_options.h"

namespace lc::io {

// A member of an archive.
struct ZipMember {
  std::string_view name;             // a view of the file
  std::span<const std::byte> bytes;  // packed
  bool deflated;                     // otherwise stored
  std::uint64_t size;                // unpacked
  std::uint32_t crc;
  std::uint64_t begin, end;  // range of its local header and bytes in the file
};

// Returns all members. Throws Error if two have the same name or overlap, if the headers of a member differ, and for
// encrypted archives, archives of several disks, and archives after other data. The caller must check unpacked bytes
// against `size` and `crc`.
std::vector<ZipMember> read_zip(const MappedFile& file, Budget& budget);

}  // namespace lc::io
