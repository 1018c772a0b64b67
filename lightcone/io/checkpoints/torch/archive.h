// The two forms of a file of torch.save(): a zip archive (since PyTorch 1.6), and pickles followed by storages
// (before).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/io/checkpoints/torch/values.h"
#include "lightcone/io/mapped_file.h"

namespace lc::io::torch {

// Bytes of a member of an archive, or of a part of a file.
struct Part {
  std::span<const std::byte> bytes;
  bool deflated = false;
  std::uint64_t size = 0;  // unpacked
  std::uint32_t crc = 0;   // a deflated part's
};

// What a file holds. The arena has the values of its pickle, which refer to the file.
struct Opened {
  Id root = Values::kNone;
  std::map<std::string, Part, std::less<>> storages;  // by key
  bool big_endian = false;                            // the words of storages are
};

bool looks_like_archive(std::span<const std::byte> file);
bool looks_like_legacy(std::span<const std::byte> file);

// A zip archive: NAME/data.pkl, NAME/data/KEY for each storage, NAME/version, NAME/byteorder. Checksums of stored
// members are not compared, because torch.save() may be told to write none.
Opened open_archive(const MappedFile& file, Values& values);
// Pickles of a magic number, of 1001, of facts about the machine, of the object, and of the keys of storages; then for
// each key the number of its elements and their bytes, which are little-endian.
Opened open_legacy(const MappedFile& file, Values& values);

// Unpacks a deflated part.
std::vector<std::byte> unpacked(const Part& part, const std::string& where, Budget& budget);

}  // namespace lc::io::torch
