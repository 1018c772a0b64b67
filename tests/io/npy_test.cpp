// Files that NumPy wrote as .npy and .npz are read exactly, and malformed ones give an Error.
#include <cmath>
#include <random>

#include <nlohmann/json.hpp>

#include "data.h"
#include "lightcone/base/error.h"
#include "lightcone/io/data/readers.h"
#include "zip_writer.h"

using namespace lc;

namespace {

std::shared_ptr<const MappedFile> view(const std::string& bytes) {
  return MappedFile::view("x", std::as_bytes(std::span(bytes.data(), bytes.size())));
}
Array npy(const std::string& bytes, const ReadOptions& o = {}) { return read_npy(*view(bytes), o); }
Arrays npz(const std::string& bytes, const ReadOptions& o = {}) { return read_npz(*view(bytes), o); }

// Returns the Error of `read`, or "".
template <class Read>
std::string error_of(const Read& read) {
  try {
    read();
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}
void expect_refused(const std::string& error, const std::string& words) {
  EXPECT_NE(error.find(words), std::string::npos) << "'" << error << "' does not say " << words;
}
void refuses_npy(const std::string& bytes, const std::string& words) {
  expect_refused(error_of([&] { npy(bytes); }), words);
}
void refuses_npz(const std::string& bytes, const std::string& words) {
  expect_refused(error_of([&] { npz(bytes); }), words);
}

std::string with_header(const std::string& header, const std::string& values = "") {
  return std::string("\x93NUMPY\1\0", 8) + made::little(header.size(), 2) + header + values;
}

// Converts a number of the reference; complex ones are texts such as "(1.5+0j)".
double number(const nlohmann::json& j) {
  return j.is_string() ? std::stod(j.get<std::string>().substr(1)) : j.get<double>();
}

// Compares an array that numpy wrote with the values stored in the reference.
void expect_values(const Array& a, const nlohmann::json& want, const std::string& name) {
  std::vector<std::int64_t> shape = want["shape"];
  const bool complex = want["dtype"].get<std::string>()[1] == 'c';
  if (complex) shape.push_back(2);
  ASSERT_EQ(a.shape, shape) << name;
  const auto& values = want["values_c_order"];
  const std::size_t parts = complex ? 2 : 1;
  ASSERT_EQ(a.bytes.size(), values.size() * parts * size_of(a.dtype)) << name;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].is_number_integer()) {
      EXPECT_EQ(load_i64(a.bytes.data(), a.dtype, i), values[i].get<std::int64_t>()) << name << " " << i;
      continue;
    }
    const double have = load_f64(a.bytes.data(), a.dtype, i * parts), expected = number(values[i]);
    const double rounded = a.dtype == DType::F32 ? static_cast<double>(static_cast<float>(expected)) : expected;
    EXPECT_TRUE(have == rounded || (std::isnan(have) && std::isnan(rounded))) << name << " " << i << ": " << have;
    EXPECT_EQ(std::signbit(have), std::signbit(expected)) << name << " " << i;
    if (complex) {
      EXPECT_EQ(load_f64(a.bytes.data(), a.dtype, 2 * i + 1), 0) << name << " " << i;
    }
  }
}

// Parses JSON as Python writes it, with NaN and Infinity.
nlohmann::json references(const std::string& path) {
  std::string s = slurp(path);
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>{"NaN", "\"xnan\""}, {"-Infinity", "\"x-inf\""}, {"Infinity", "\"xinf\""}})
    for (std::size_t at = 0; (at = s.find(from, at)) != s.npos; at += to.size())
      if (s[at - 1] != 'x') s.replace(at, from.size(), to);
  return nlohmann::json::parse(s);
}

}  // namespace

TEST(Npy, WhatNumpyWrote) {
  NEEDS_DATA("formats/npy");
  const nlohmann::json expected = references(data("formats/npy/expected.json"));
  int read = 0, refused = 0;
  for (const auto& entry : std::filesystem::directory_iterator(data("formats/npy"))) {
    const std::string path = entry.path().string(), name = entry.path().stem().string();
    if (entry.path().extension() != ".npy") continue;
    const bool bad = name.starts_with("bad_") || name == "object_must_be_refused";
    for (bool map : {true, false}) {
      const std::string error = error_of([&] {
        const Array a = read_npy(path, {.map = map});
        if (expected.contains(name)) expect_values(a, expected[name], name);
        else EXPECT_TRUE(name.starts_with("version_")) << name << " is compared with nothing";
      });
      EXPECT_EQ(error.empty(), !bad) << name << ": " << error;
    }
    ++(bad ? refused : read);
  }
  EXPECT_EQ(read, 24);
  EXPECT_EQ(refused, 5);
  expect_refused(error_of([&] { read_npy(data("formats/npy/object_must_be_refused.npy")); }), "Python objects");
  expect_refused(error_of([&] { read_npy(data("formats/npy/bad_shape_overflow.npy")); }), "not a header");
}

TEST(Npz, WhatNumpyWrote) {
  NEEDS_DATA("formats/npy");
  const Arrays stored = read_npz(data("formats/npy/stored.npz")), deflated = read_npz(data("formats/npy/deflated.npz"));
  ASSERT_FALSE(stored.empty());
  ASSERT_EQ(stored.size(), deflated.size());
  const nlohmann::json expected = references(data("formats/npy/expected.json"));
  for (const auto& [name, a] : stored) {
    const Array& other = deflated.at(name);
    EXPECT_EQ(a.dtype, other.dtype) << name;
    EXPECT_EQ(a.shape, other.shape) << name;
    EXPECT_EQ(a.bytes, other.bytes) << name;
    if (expected.contains(name)) expect_values(a, expected[name], name);
  }
  const Arrays nested = read_npz(data("formats/npy/nested_names_zip64.npz"));
  EXPECT_TRUE(
      std::any_of(nested.begin(), nested.end(), [](const auto& n) { return n.first.find('/') != n.first.npos; }));
}

TEST(Npz, RealFiles) {
  NEEDS_DATA("audio/whisper_mel_filters.npz");
  const Arrays mel = read_npz(data("audio/whisper_mel_filters.npz"));
  EXPECT_EQ(mel.at("mel_80").shape, (std::vector<std::int64_t>{80, 201}));
  EXPECT_EQ(mel.at("mel_128").shape, (std::vector<std::int64_t>{128, 201}));
  double sum = 0;  // each band is a triangle of area 1 (in units of 1 / (sample rate / 400))
  for (float v : mel.at("mel_80").values<float>()) sum += static_cast<double>(v);
  EXPECT_NEAR(sum * 40, 80, 1);
  NEEDS_DATA("audio_models/basic_pitch/upstream_model_output.npz");
  expect_refused(error_of([&] { read_npz(data("audio_models/basic_pitch/upstream_model_output.npz")); }),
                 "Python objects");
}

TEST(Npy, HeadersAsOthersWriteThem) {
  const std::string one = made::little(7, 4);
  const auto shape = [&](const std::string& header, const std::string& values) {
    return npy(with_header(header, values)).shape;
  };
  using Shape = std::vector<std::int64_t>;
  EXPECT_EQ(shape("{'descr': '<i4', 'fortran_order': False, 'shape': ()}", one), Shape{});
  EXPECT_EQ(shape("{\"shape\":(1,),\"descr\":\"<i4\",\"fortran_order\":True}\n", one), Shape{1});
  EXPECT_EQ(shape("{ 'descr' : '<i4' , 'fortran_order' : False , 'shape' : ( 1L , 1 , ) , } \n", one), (Shape{1, 1}));
  EXPECT_EQ(npy(made::npy("|b1", "(3,)", std::string("\0\2\1", 3))).bytes,
            (std::vector<std::byte>{std::byte{0}, std::byte{1}, std::byte{1}}));
  EXPECT_EQ(npy(made::npy("<u8", "(1,)", made::little(~std::uint64_t{1}, 8))).values<std::uint64_t>()[0],
            ~std::uint64_t{1});
  EXPECT_EQ(npy(made::npy(">u4", "(1,)", made::big(0xfffffffe, 4))).values<std::uint32_t>()[0], 0xfffffffe);
  EXPECT_EQ(npy(made::npy(">i2", "(2,)", made::big(0xfffe, 2) + made::big(5, 2))).values<std::int16_t>()[0], -2);
  EXPECT_EQ(npy(made::npy("<u2", "(1,)", made::little(0xfffe, 2))).values<std::uint16_t>()[0], 0xfffe);
}

TEST(Npy, HeadersThatLie) {
  const auto header = [](const std::string& h) { return with_header(h, std::string(64, 1)); };
  const std::string f = "'fortran_order': False", d = "'descr': '<f4'", s = "'shape': (4, 4)";
  const auto all = [&](const std::string& descr, const std::string& order, const std::string& shape) {
    return header("{" + descr + ", " + order + ", " + shape + ", }");
  };
  EXPECT_EQ(npy(all(d, f, s)).elements(), 16);
  refuses_npy("", "truncated");
  refuses_npy("\x93NUMPY", "truncated");
  refuses_npy("PK\3\4xxxxxxxxxxxx", "first bytes differ");
  refuses_npy(std::string("\x93NUMPY\4\0\0\0", 10), "version 4.0");
  refuses_npy(std::string("\x93NUMPY\1\1\0\0", 10), "version 1.1");
  refuses_npy(std::string("\x93NUMPY\2\0\xff\xff\xff\xff", 12), "header of 4294967295 bytes");
  refuses_npy(std::string("\x93NUMPY\2\0\xff\xff\0\0", 12), "its header needs 65535 bytes");
  refuses_npy(all(d, f, "'shape': (4, 5)"), "its shape needs 80 bytes");
  refuses_npy(all(d, f, "'shape': (4, 3)"), "16 bytes too many");
  refuses_npy(all(d, f, "'shape': (4611686018427387904, 4)"), "larger than any file");  // 2^64 elements
  refuses_npy(all(d, f, "'shape': (4611686018427387904,)"), "larger than any file");    // 2^64 bytes
  refuses_npy(all(d, f, "'shape': (0, 4611686018427387904, 4)"), "larger than any file");
  refuses_npy(all(d, f, "'shape': (1000000000000,)"), "its shape needs 4000000000000 bytes");
  refuses_npy(all(d, f, "'shape': (18446744073709551617,)"), "no whole number");
  refuses_npy(all(d, f, "'shape': (-4, -4)"), "no whole number");
  refuses_npy(all(d, f, "'shape': (4.0, 4)"), "','");
  refuses_npy(all(d, f, "'shape': (16)"), "','");
  refuses_npy(all(d, f, "'shape': [16]"), "'('");
  refuses_npy(all(
                  d, f,
                  "'shape': (" +
                      [] {
                        std::string m;
                        for (int i = 0; i < 70; ++i) m += "1,";
                        return m;
                      }() +
                      ")"),
              "more than 64 axes");
  refuses_npy(all(d, d, s), "'descr' twice");
  refuses_npy(all(d, f, "'shapes': (16,)"), "the key 'shapes'");
  refuses_npy(header("{" + d + ", " + f + "}"), "not all of");
  refuses_npy(header("{" + d + ", " + f + ", " + s), "','");
  refuses_npy(header("{" + d + ", " + f + ", " + s + "} + 1"), "behind its end");
  refuses_npy(header(""), "'{'");
  refuses_npy(header("{'descr"), "no string");
  refuses_npy(all(d, "'fortran_order': 0", s), "neither True nor False");
  for (const char* type :
       {"<f3", "<f16", "f4", "=f4", "|f4", "<i16", "<U4", "|S4", "|V4", "<M8", "<x4", "", "<f4x", "<f-4", "|O"})
    refuses_npy(all("'descr': '" + std::string(type) + "'", f, s),
                std::string(type) == "|O" ? "Python objects" : "are not read");
  refuses_npy(all("'descr': [('a', '<f4')]", f, s), "records");
  refuses_npy(all("'descr': '\x1b[2J'", f, s), "\\x1b[2J");  // quoted text has no control characters
}

TEST(Npz, ArchivesThatLie) {
  using made::Member;
  using made::zip;
  const std::string values = made::npy("<f4", "(1000,)", std::string(4000, 0)), other = made::npy("|u1", "(2,)", "ab");
  for (bool deflate : {false, true}) {
    const Member sound("a.npy", values, deflate), second("b.npy", other, deflate);
    EXPECT_EQ(npz(zip({sound, second})).size(), 2u);
    const auto refuses = [&](const auto& change, const std::string& words) {
      Member m = sound;
      change(m);
      refuses_npz(zip({m, second}), words);
    };
    refuses_npz(zip({sound, sound}), "two members are called 'a.npy'");
    refuses([](Member& m) { m.crc ^= 1; }, "checksum");
    refuses([](Member& m) { m.size += 1, m.packed += m.method == 0; }, "");
    refuses([](Member& m) { m.size = 100; }, deflate ? "the archive says 100" : "stored and has two sizes");
    refuses([](Member& m) { m.flags = 1; }, "encrypted");
    refuses([](Member& m) { m.method = 12; }, "another method");
    refuses([](Member& m) { m.local_name = "b.npy"; }, "not where the directory says");
    refuses([](Member& m) { m.moved = 1; }, "not where the directory says");
    refuses([](Member& m) { m.moved = 1'000'000; }, "lie outside");
    refuses([](Member& m) { m.packed = 0xfffffffe, m.size = m.method ? m.size : m.packed; },
            "reaches into the directory");
    refuses([](Member& m) { m.size = 0xffffffff; }, "64 bits is missing");
    refuses([](Member& m) { m.name = m.local_name = "a.txt"; }, "does not end with .npy");
    refuses([](Member& m) { m.name = m.local_name = "\x1b]0;x\x07.npz"; }, "\\x1b]0;x\\x07.npz");
  }
}

// A member with a small array and many more bytes is detected without decompressing them.
TEST(Npz, Bombs) {
  using made::Member;
  using made::zip;
  const std::string small = made::npy("|u1", "(4,)", "abcd"), bomb = small + std::string(60'000'000, 0);
  Member honest("a.npy", bomb, true);
  ASSERT_LT(honest.bytes.size(), 300'000u);
  refuses_npz(zip({honest}), "more bytes than it says");
  Member lying = honest;
  lying.size = small.size(), lying.crc = made::crc(small);
  refuses_npz(zip({lying}), "more bytes than it says");
  // a member of a large stated size needs a larger memory limit
  Member large("a.npy", made::npy("|u1", "(60000000,)", std::string(60'000'000, 0)), true);
  refuses_npz(zip({large}), "ReadOptions::memory");
  EXPECT_EQ(npz(zip({large}), {.memory = 64u << 20}).at("a").elements(), 60'000'000);
  // several members share the same bytes
  Member inner("a.npy", small, false), outer = inner;
  outer.name = outer.local_name = "b.npy";
  outer.moved = -static_cast<std::int64_t>(30 + 5 + small.size());
  refuses_npz(zip({inner, outer}), "not where the directory says");
  // both members are at their stated positions, and the first contains the second
  const std::string within = zip({inner});
  Member around("c.npy", within.substr(0, 30 + 5 + small.size()), false), again = inner;
  again.moved = -static_cast<std::int64_t>(30 + 5 + small.size());
  refuses_npz(zip({around, again}), "overlaps");
  // a compressed size that could never expand to the array's size, whatever the memory limit
  Member thin("a.npy", made::npy("|u1", "(100000000000,)", "abcd"), true);
  expect_refused(error_of([&] { npz(zip({thin}), {.memory = std::size_t{1} << 40}); }), "hold no more than");
}

TEST(Npz, DirectoriesThatLie) {
  using made::Member;
  using made::zip;
  const Member m("a.npy", made::npy("|u1", "(2,)", "ab"), false);
  const std::string sound = zip({m});
  EXPECT_EQ(npz(sound).size(), 1u);
  EXPECT_TRUE(npz(zip({})).empty());
  refuses_npz("", "too short");
  refuses_npz(std::string(1000, 'P'), "no directory");
  refuses_npz("x" + sound, "another size or place");  // preceded by other data
  refuses_npz(sound + "x", "no directory");
  for (std::size_t n = 0; n < sound.size(); ++n) EXPECT_NE(error_of([&] { npz(sound.substr(0, n)); }), "") << n;
  refuses_npz(zip({m}, {.members = 1}), "too small for so many");
  refuses_npz(zip({m}, {.members = -1}), "another size than it says");
  refuses_npz(zip({m}, {.members = 60'000}), "too small for so many");
  refuses_npz(zip({m}, {.begin = 1}), "another size or place");
  refuses_npz(zip({m}, {.begin = -1, .size = 1}), "holds something else");
  refuses_npz(zip({m}, {.size = 1}), "another size or place");
  const auto locator = [](std::uint64_t at) {
    return made::little(0x07064b50, 4) + made::little(0, 4) + made::little(at, 8) + made::little(1, 4);
  };
  for (std::uint64_t at :
       {std::uint64_t{0}, std::uint64_t{40}, std::uint64_t{1} << 40, ~std::uint64_t{0}, ~std::uint64_t{0} - 8}) {
    std::string s = sound;
    s.insert(s.size() - 22, locator(at));
    EXPECT_NE(error_of([&] { npz(s); }), "") << at;
  }
}

// Valid files with random changes give arrays or an Error.
TEST(Npz, NoBytesCrashTheReader) {
  std::mt19937 random(5);
  const std::string values = made::npy("<f4", "(10,)", std::string(40, 1));
  const std::string whole[] = {values, made::zip({{"a.npy", values, true}, {"b.npy", values, false}})};
  int loaded = 0;
  for (int i = 0; i < 40'000; ++i) {
    std::string bytes = whole[i % 2];
    for (std::uint32_t k = random() % 3; k < 3; ++k) bytes[random() % bytes.size()] = static_cast<char>(random());
    const std::string error = error_of([&] { i % 2 ? void(npz(bytes)) : void(npy(bytes)); });
    loaded += error.empty();
  }
  EXPECT_GT(loaded, 100);
}
