// Files of data sets and sounds that are valid except for false claims give arrays or an Error, within their memory
// budget and in time.
//
// LIGHTCONE_FUZZ makes more of them, LIGHTCONE_FUZZ_SEED other ones.
#include <algorithm>
#include <cstdlib>
#include <functional>

#include <gtest/gtest.h>

#include "lightcone/base/error.h"
#include "lightcone/io/audio/audio.h"
#include "lightcone/io/data/csv.h"
#include "lightcone/io/data/readers.h"
#include "lightcone/io/images/images.h"
#include "lightcone/io/printable.h"
#include "memory.h"
#include "mutator.h"
#include "paths.h"
#include "pictures.h"
#include "processor_time.h"
#include "sound_formats.h"
#include "zip_writer.h"

using namespace lc;
using fuzz::Mutator;

namespace {

constexpr std::size_t kSmall = 4u << 10;  // memory budget of every second file

std::string some_bytes(Mutator& l, std::size_t n) {
  std::string s(n, 0);
  for (char& c : s) c = static_cast<char>(l.draw(l.draw(2) ? 256 : 2));
  return s;
}
// May truncate or extend the data.
std::string cut_or_grown(Mutator& l, std::string s) {
  if (l.lies()) s.resize(l.draw(2) ? l.draw(s.size() + 1) : s.size() + 1 + l.draw(100));
  return s;
}

std::string make_idx(Mutator& l) {
  static const std::pair<int, int> kTypes[] = {{8, 1}, {9, 1}, {0xB, 2}, {0xC, 4}, {0xD, 4}, {0xE, 8}};
  const auto [type, width] = kTypes[l.draw(std::size(kTypes))];
  const std::size_t rank = 1 + l.draw(3);
  std::string s = made::big(l.number(0), 2) + made::big(l.number(static_cast<std::uint64_t>(type)), 1) +
                  made::big(l.number(rank), 1);
  std::size_t n = static_cast<std::size_t>(width);
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const std::uint64_t extent = l.draw(9);
    n *= extent;
    s += made::big(l.number(extent), 4);
  }
  return cut_or_grown(l, s + some_bytes(l, n));
}
std::string make_idx_gz(Mutator& l) {
  std::string s = make_idx(l);
  if (l.lies()) s += std::string(1'000'000, 0);  // far more data than the header states
  s = made::gzipped(s);
  if (l.lies()) s[l.draw(s.size())] ^= static_cast<char>(1u << l.draw(8));
  return cut_or_grown(l, s);
}

std::string make_npy(Mutator& l) {
  static const std::pair<const char*, int> kTypes[] = {{"<f4", 4}, {">f8", 8}, {"<f2", 2}, {"|u1", 1},
                                                       {"<i8", 8}, {"<i2", 2}, {">u2", 2}, {"<u4", 4},
                                                       {"<u8", 8}, {"|b1", 1}, {">c8", 8}, {"<c16", 16}};
  const auto [descr, width] = kTypes[l.draw(std::size(kTypes))];
  std::string header = "{" + l.word("'descr'") + ": '" + l.word(descr) +
                       "', 'fortran_order': " + l.word(l.draw(2) ? "True" : "False") + l.word(", ") + "'shape': (";
  std::size_t n = static_cast<std::size_t>(width);
  for (std::size_t rank = l.draw(4); rank > 0; --rank) {
    const std::uint64_t extent = l.draw(6);
    n *= extent;
    header += std::to_string(l.number(extent)) + l.word(",");
  }
  header += l.word("), }");
  const std::uint64_t version = 1 + l.draw(3);
  header += std::string((64 - (header.size() + 11) % 64) % 64, ' ') + "\n";
  std::string values = some_bytes(l, n);
  return cut_or_grown(l, l.word("\x93NUMPY") + made::little(l.number(version), 1) + made::little(l.number(0), 1) +
                             made::little(l.number(header.size()), version == 1 ? 2 : 4) + header + values);
}

std::string make_npz(Mutator& l) {
  std::vector<made::Member> members;
  for (std::size_t n = l.draw(4); n > 0; --n) {
    std::string content = make_npy(l);
    if (l.lies()) content += std::string(1'000'000, 0);
    made::Member m(l.word("m" + std::to_string(n) + ".npy"), content, l.draw(2));
    m.local_name = l.lies() ? "other.npy" : m.name;
    m.method = l.number(m.method), m.flags = l.number(0), m.crc = static_cast<std::uint32_t>(l.number(m.crc));
    m.packed = l.number(m.packed), m.size = l.number(m.size);
    if (l.lies()) m.moved = static_cast<std::int64_t>(l.draw(400)) - 200;
    members.push_back(m);
    if (l.lies()) members.push_back(m);
  }
  const auto by = [&] { return l.lies() ? static_cast<std::int64_t>(l.draw(7)) - 3 : 0; };
  made::ZipLies lies;
  lies.members = by(), lies.begin = by(), lies.size = by();
  return cut_or_grown(l, made::zip(members, lies));
}

std::string make_cifar(Mutator& l) {
  std::string s;
  for (std::size_t n = 1 + l.count(l.draw(4)); n > 0; --n)
    s += static_cast<char>(l.number(l.draw(10))) + some_bytes(l, 3072);
  return cut_or_grown(l, s);
}

std::string make_csv(Mutator& l) {
  std::string s =
      l.word("a") + l.word(",") + "\"" + l.word("b \"\" ,\n") + "\"" + l.word(",") + l.word("c") + l.word("\n");
  for (std::size_t rows = l.draw(20); rows > 0; --rows)
    for (int column = 0; column < 3; ++column) {
      std::string cell = std::to_string(static_cast<std::int64_t>(l.number(l.draw(1000))));
      if (l.draw(2)) cell = "\"" + cell + (l.lies() ? "" : "\"");
      s += l.word(cell) + l.word(column < 2 ? "," : "\r\n");
    }
  return s;
}

std::string chunk(Mutator& l, const std::string& type, std::string content) {
  const std::uint64_t size = l.number(content.size());
  content = l.word(type) + cut_or_grown(l, std::move(content));
  return made::big(size, 4) + content + made::big(l.number(made::crc(content)), 4);
}
std::string make_png(Mutator& l) {
  static const std::pair<int, int> kColours[] = {{0, 1}, {2, 3}, {4, 2}, {6, 4}, {3, 1}};  // PNG colour type, channels
  const auto [type, channels] = kColours[l.draw(std::size(kColours))];
  const std::size_t width = 1 + l.draw(20), height = 1 + l.draw(20), row = width * static_cast<std::size_t>(channels);
  std::string rows;
  for (std::size_t y = 0; y < height; ++y) rows += static_cast<char>(l.number(l.draw(5))) + some_bytes(l, row);
  if (type == 3)
    for (char& c : rows) c = static_cast<char>(c & 1);
  if (l.lies()) rows += std::string(50'000, 0);  // far more data than the header states
  std::string s = l.word("\x89PNG\r\n\x1A\n") +
                  chunk(l, "IHDR",
                        made::big(l.number(width), 4) + made::big(l.number(height), 4) + made::big(l.number(8), 1) +
                            made::big(l.number(static_cast<std::uint64_t>(type)), 1) + made::big(l.number(0), 1) +
                            made::big(l.number(0), 1) + made::big(l.number(0), 1));
  if (type == 3) s += chunk(l, "PLTE", some_bytes(l, 6));
  if (l.draw(3) == 0) s += chunk(l, "tEXt", "a" + std::string(1, 0) + "b");
  const auto check =
      adler32(1, reinterpret_cast<const unsigned char*>(rows.data()), static_cast<unsigned>(rows.size()));
  s += chunk(l, "IDAT",
             "\x78\x01\x01" + made::little(l.number(rows.size()), 2) + made::little(l.number(~rows.size()), 2) + rows +
                 made::big(l.number(check), 4));  // one stored (uncompressed) deflate block
  return cut_or_grown(l, s + chunk(l, "IEND", ""));
}
// Takes Pillow's files and falsifies the lengths and contents of segments, and pixels.
std::string make_jpeg(Mutator& l) {
  static const made::Pictures pictures(paths::kSource);
  static const char* const kNames[] = {"jpeg_444", "jpeg_420", "jpeg_progressive", "jpeg_grey"};
  const std::string& from = pictures.files.at(kNames[l.draw(std::size(kNames))]).file;
  std::string s = from.substr(0, 2);
  std::size_t at = 2;
  while (at + 4 <= from.size() && from[at] == '\xFF' && from[at + 1] != '\xD9') {
    const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(from[k]); };
    const std::size_t length = byte(at + 2) * 256u + byte(at + 3);
    s += made::big(l.number(byte(at)), 1) + made::big(l.number(byte(at + 1)), 1) + made::big(l.number(length), 2);
    for (std::size_t k = at + 4; k < at + 2 + length; ++k) s += made::big(l.number(byte(k)), 1);
    const bool scan = from[at + 1] == '\xDA';
    at += 2 + length;
    for (; scan && at + 1 < from.size() && (from[at] != '\xFF' || from[at + 1] == 0); ++at)
      s += made::big(l.number(byte(at)), 1);
  }
  return cut_or_grown(l, s + from.substr(at));
}

struct Reader {
  const char* name;
  std::string (*make)(Mutator&);
  void (*read)(const MappedFile&, const ReadOptions&);
};
const Reader kReaders[] = {
    {"idx", make_idx, [](const MappedFile& f, const ReadOptions& o) { read_idx(f, o); }},
    {"idx.gz", make_idx_gz, [](const MappedFile& f, const ReadOptions& o) { read_idx(f, o); }},
    {"npy", make_npy, [](const MappedFile& f, const ReadOptions& o) { read_npy(f, o); }},
    {"npz", make_npz, [](const MappedFile& f, const ReadOptions& o) { read_npz(f, o); }},
    {"cifar", make_cifar, [](const MappedFile& f, const ReadOptions& o) { read_cifar10(f, o); }},
    {"png", make_png, [](const MappedFile& f, const ReadOptions& o) { read_image(f, o); }},
    {"jpeg", make_jpeg, [](const MappedFile& f, const ReadOptions& o) { read_image(f, o); }},
    {"wav", fuzz::make_wav, [](const MappedFile& f, const ReadOptions& o) { read_audio(f, o); }},
    {"flac", fuzz::make_flac, [](const MappedFile& f, const ReadOptions& o) { read_audio(f, o); }},
    {"csv", make_csv,
     [](const MappedFile& f, const ReadOptions& o) {
       const auto b = f.bytes();
       parse_csv({reinterpret_cast<const char*>(b.data()), b.size()}, {}, "x", o);
     }},
};

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* s = std::getenv(name);
  return s && *s ? std::strtoull(s, nullptr, 10) : otherwise;
}

// Returns "" if the file loads, and the message of the Error otherwise.
std::string read(const Reader& r, const std::string& bytes, const ReadOptions& o) {
  const auto file = MappedFile::view("x", std::as_bytes(std::span(bytes.data(), bytes.size())));
  std::string error;
  counted::reset_most();
  const std::size_t before = counted::live();
  const double seconds = test::least_seconds(2 * test::kSanitizersTake, [&] {
    error.clear();
    try {
      r.read(*file, o);
    } catch (const Error& e) {
      error = e.what();
    }
  });
  const std::size_t budget = o.memory ? o.memory : Budget::kFloor + Budget::kEachByte * bytes.size();
  // the allowance beyond the budget covers zlib's window, a conversion buffer and the message of an Error
  EXPECT_LE(counted::most() - before, budget + (16u << 10) + (o.memory ? 0 : 64u << 10)) << error;
  EXPECT_LT(seconds, 2 * test::kSanitizersTake);
  EXPECT_EQ(error, printable(error, 4000));
  return error;
}

class DataFiles : public ::testing::TestWithParam<Reader> {};

}  // namespace

TEST_P(DataFiles, ArraysOrAnError) {
  const Reader& r = GetParam();
  if (!can_read_images() && (r.make == make_png || r.make == make_jpeg))
    GTEST_SKIP() << "lightcone::io was built without decoders for pictures";
  if (!can_read_flac() && r.make == fuzz::make_flac)
    GTEST_SKIP() << "lightcone::io was built without a decoder for FLAC";
  const std::uint64_t count = from_environment("LIGHTCONE_FUZZ", 6000),
                      first = from_environment("LIGHTCONE_FUZZ_SEED", 20240101);
  std::uint64_t loaded = 0;
  for (std::uint64_t k = 0; k < count && !HasFailure(); ++k) {
    SCOPED_TRACE(str_cat(r.name, " ", k, " of LIGHTCONE_FUZZ_SEED=", first));
    const std::uint64_t seed = first * 1000003 + k * 7919 + 17;
    Mutator truth(seed);
    std::string bytes = r.make(truth);
    const std::size_t kind = seed % 8, lies = kind == 0 ? 0 : kind < 4 ? 1 : kind < 7 ? 2 : 4;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < lies; ++i)
      places.push_back(i == 1 && truth.draw(2) ? places[0] + 1 + truth.draw(8) : truth.draw(truth.places()));
    if (lies) {
      Mutator liar(seed);
      liar.lie_at(places);
      bytes = r.make(liar);
    }
    const ReadOptions o{.map = true, .memory = k % 2 ? kSmall : 0};
    const std::string error = read(r, bytes, o);
    loaded += error.empty();
    EXPECT_TRUE(error.empty() || lies || o.memory) << "a sound file was refused: " << error;
  }
  // otherwise either all false claims are rejected at once or none is made
  EXPECT_TRUE(count < 100 || (loaded * 20 > count && loaded < count)) << loaded << " of " << count << " files loaded";
  RecordProperty("loaded", std::to_string(loaded));
}

INSTANTIATE_TEST_SUITE_P(Every, DataFiles, ::testing::ValuesIn(kReaders), [](const auto& info) {
  std::string name = info.param.name;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});
