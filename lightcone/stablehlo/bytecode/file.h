// The sections of an MLIR bytecode file: tables of strings, names, attributes, types and properties, and the
// operations. The format: https://mlir.llvm.org/docs/BytecodeFormat/.
#pragma once

#include <vector>

#include "lightcone/stablehlo/bytecode/cursor.h"

namespace lc::stablehlo {

struct File {
  explicit File(std::span<const std::byte> bytes);

  // An attribute or a type, in the encoding of its dialect or as text.
  struct Entry {
    std::size_t dialect = 0;
    bool is_text = false;
    Stretch at = {};
  };
  struct OperationName {
    std::string_view dialect, name;
  };

  std::span<const std::byte> bytes;
  std::uint64_t version = 0;
  std::string_view producer;  // "StableHLO_v1.13.0"
  std::vector<std::string_view> strings, dialects;
  std::vector<OperationName> operations;
  std::vector<Entry> attributes, types;
  std::vector<Stretch> properties;
  Stretch ir;

  Cursor cursor(Stretch s) const { return {bytes, s}; }

 private:
  void read_strings(Cursor c);
  void read_dialects(Cursor c);
  void read_offsets(Cursor c, Stretch data);
  void read_properties(Cursor c);
};

// A section's number and its contents.
struct Section {
  std::uint8_t id = 0;
  Stretch data = {};
};
Section read_section(Cursor& c);

inline constexpr std::uint8_t kOperationSection = 4;

}  // namespace lc::stablehlo
