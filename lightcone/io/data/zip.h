// The members of a zip archive (PKWARE's APPNOTE 6.3), as its central directory lists them and its local headers
// confirm.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lightcone/io/mapped_file.h"
#include "lightcone/io/read_options.h"

namespace lc::io {

struct ZipMember {
  std::string_view name;             // in the file
  std::span<const std::byte> bytes;  // as they are packed
  bool deflated;                     // or stored
  std::uint64_t size;                // unpacked
  std::uint32_t crc;
  std::uint64_t begin, end;  // of its local header and its bytes, in the file
};

// Error unless names differ, members lie apart, and both headers of each say the same. What is unpacked must still be
// held to `size` and `crc`. Encrypted archives, those of several disks and those behind other data are refused.
std::vector<ZipMember> read_zip(const MappedFile& file, Budget& budget);

}  // namespace lc::io
