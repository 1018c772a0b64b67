#include "lightcone/stablehlo/bytecode/file.h"

#include <array>
#include <optional>

#include "lightcone/base/error.h"

namespace lc::stablehlo {
namespace {

// Versions of the format from which on a feature exists.
constexpr std::uint64_t kDialectVersions = 1, kCountOfOperations = 4, kPropertiesVersion = 5, kNewest = 6;

enum : std::uint8_t {
  kStrings,
  kDialects,
  kData,
  kOffsets,
  kOperations = kOperationSection,
  kPropertyTable = 8,
  kCountOfSections = 9
};

}  // namespace

Section read_section(Cursor& c) {
  constexpr std::uint8_t kAligned = 0x80, kPadding = 0xcb;
  const std::uint8_t first = c.byte();
  Section s{static_cast<std::uint8_t>(first & ~kAligned), {}};
  const std::uint64_t length = c.varint();
  if (first & kAligned) {
    const std::uint64_t alignment = c.varint();
    if (alignment == 0 || (alignment & (alignment - 1)))
      c.fail(str_cat("a section is aligned to ", alignment, ", which is no power of 2"));
    while (c.at() % alignment)
      if (c.byte() != kPadding) c.fail("bytes before an aligned section are not its padding");
  }
  s.data = c.take(length);
  return s;
}

File::File(std::span<const std::byte> all) : bytes(all) {
  Cursor c(all, {0, all.size()});
  constexpr std::string_view kMagic = "ML\xEFR";
  if (all.size() < kMagic.size() || c.text(c.take(kMagic.size())) != kMagic)
    Cursor::fail_at(0, "this is no MLIR bytecode");
  version = c.varint();
  if (version > kNewest)
    c.fail(str_cat("version ", version, " of MLIR's bytecode is not read: versions to ", kNewest, " are"));
  producer = c.zero_terminated();

  std::array<std::optional<Stretch>, kCountOfSections> sections;
  while (!c.done()) {
    const std::size_t from = c.at();
    const Section s = read_section(c);
    if (s.id >= kCountOfSections) Cursor::fail_at(from, str_cat("section ", int{s.id}, " is not known"));
    if (sections[s.id]) Cursor::fail_at(from, str_cat("section ", int{s.id}, " stands there twice"));
    sections[s.id] = s.data;
  }
  for (const std::uint8_t id : {kStrings, kDialects, kData, kOffsets, kOperations})
    if (!sections[id]) c.fail(str_cat("the file has no section ", int{id}));
  read_strings(cursor(*sections[kStrings]));
  read_dialects(cursor(*sections[kDialects]));
  read_offsets(cursor(*sections[kOffsets]), *sections[kData]);
  if (sections[kPropertyTable]) read_properties(cursor(*sections[kPropertyTable]));
  ir = *sections[kOperations];
}

// Lengths are stored from the last string to the first. Each string ends with a zero.
void File::read_strings(Cursor c) {
  std::vector<std::uint64_t> lengths(c.count("strings"));
  for (std::size_t k = lengths.size(); k-- > 0;) lengths[k] = c.varint();
  for (const std::uint64_t n : lengths) {
    if (n == 0) c.fail("a string has no end");
    const Stretch s = c.take(n);
    strings.push_back(c.text({s.from, s.to - 1}));
  }
}

void File::read_dialects(Cursor c) {
  const std::size_t n = c.count("dialects");
  for (std::size_t k = 0; k < n; ++k) {
    const auto [name, versioned] = version < kDialectVersions ? std::pair(c.varint(), false) : c.flagged_varint();
    dialects.push_back(strings[c.checked(name, strings.size(), "string")]);
    if (versioned) read_section(c);
  }
  if (version >= kCountOfOperations) c.varint();
  while (!c.done()) {
    const std::string_view dialect = dialects[c.index(dialects.size(), "dialect")];
    for (std::size_t left = c.count("operations' names"); left > 0; --left) {
      const std::uint64_t name = version < kPropertiesVersion ? c.varint() : c.flagged_varint().first;
      operations.push_back({dialect, strings[c.checked(name, strings.size(), "string")]});
    }
  }
}

void File::read_offsets(Cursor c, Stretch data) {
  const std::size_t numbers[] = {c.count("attributes"), c.count("types")};
  Cursor rest = cursor(data);
  std::vector<Entry>* const tables[] = {&attributes, &types};
  for (int t = 0; t < 2; ++t)
    while (tables[t]->size() < numbers[t]) {
      const std::size_t dialect = c.index(dialects.size(), "dialect");
      const std::size_t n = c.count("attributes or types");
      if (n > numbers[t] - tables[t]->size()) c.fail("a dialect has more attributes or types than there are");
      for (std::size_t k = 0; k < n; ++k) {
        const auto [size, encoded] = c.flagged_varint();
        tables[t]->push_back({dialect, !encoded, rest.take(size)});
      }
    }
}

void File::read_properties(Cursor c) {
  const std::size_t n = c.count("properties");
  for (std::size_t k = 0; k < n; ++k) properties.push_back(c.take(c.varint()));
}

}  // namespace lc::stablehlo
