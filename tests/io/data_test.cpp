// IDX, CIFAR, CSV and text files are read as documented, and damaged ones give an Error.
#include <cmath>
#include <random>

#include "data.h"
#include "lightcone/base/error.h"
#include "lightcone/io/data/csv.h"
#include "lightcone/io/data/readers.h"
#include "lightcone/io/data/text.h"
#include "zip_writer.h"

using namespace lc;
using made::big;

namespace {

using Shape = std::vector<std::int64_t>;

Array idx(const std::string& bytes, const ReadOptions& o = {}) {
  return read_idx(*MappedFile::view("x", std::as_bytes(std::span(bytes.data(), bytes.size()))), o);
}
std::string idx_header(int type, const std::vector<std::uint64_t>& shape) {
  std::string s = big(0, 2) + big(static_cast<std::uint64_t>(type), 1) + big(shape.size(), 1);
  for (std::uint64_t d : shape) s += big(d, 4);
  return s;
}
template <class T>
std::vector<T> list(const Array& a) {
  const auto v = a.values<T>();
  return {v.begin(), v.end()};
}

template <class Read>
void refuses(const Read& read, const std::string& words) {
  try {
    read();
    ADD_FAILURE() << "it was read: " << words;
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << "'" << e.what() << "' does not say " << words;
  }
}
void refuses_csv(const std::string& text, const std::string& words, const CsvOptions& o = {}) {
  refuses([&] { parse_csv(text, o); }, words);
}

// Returns the first word that a command prints.
std::string first_word(const std::string& command) {
  char word[100] = "";
  if (FILE* f = ::popen(command.c_str(), "r")) {
    if (std::fscanf(f, "%99s", word) != 1) word[0] = 0;
    ::pclose(f);
  }
  return word;
}

}  // namespace

TEST(Idx, EveryType) {
  EXPECT_EQ(list<std::uint8_t>(idx(idx_header(8, {2}) + "\x01\xff")), (std::vector<std::uint8_t>{1, 255}));
  EXPECT_EQ(list<std::int8_t>(idx(idx_header(9, {2}) + "\x01\xff")), (std::vector<std::int8_t>{1, -1}));
  EXPECT_EQ(list<std::int16_t>(idx(idx_header(0xB, {2}) + big(5, 2) + big(0xfffe, 2))),
            (std::vector<std::int16_t>{5, -2}));
  EXPECT_EQ(list<std::int32_t>(idx(idx_header(0xC, {1, 2}) + big(5, 4) + big(0x80000000, 4))),
            (std::vector<std::int32_t>{5, INT32_MIN}));
  EXPECT_EQ(list<float>(idx(idx_header(0xD, {1}) + big(std::bit_cast<std::uint32_t>(-1.5f), 4))),
            std::vector<float>{-1.5f});
  EXPECT_EQ(list<double>(idx(idx_header(0xE, {1}) + big(std::bit_cast<std::uint64_t>(1e300), 8))),
            std::vector<double>{1e300});
  EXPECT_EQ(idx(idx_header(8, {0, 28, 28})).shape, (Shape{0, 28, 28}));  // an empty set is valid
  const std::string plain = idx_header(8, {300, 100}) + std::string(30'000, 'x');
  EXPECT_EQ(idx(made::gzipped(plain)).bytes, idx(plain).bytes);
  // gzip files may be concatenated
  EXPECT_EQ(idx(made::gzipped(plain.substr(0, 1000)) + made::gzipped(plain.substr(1000))).bytes, idx(plain).bytes);
}

TEST(Idx, FilesThatLie) {
  const std::string sound = idx_header(8, {4, 2}) + "abcdefgh", packed = made::gzipped(sound);
  const auto refused = [](const std::string& bytes, const std::string& words) { refuses([&] { idx(bytes); }, words); };
  EXPECT_EQ(idx(sound).elements(), 8);
  for (const auto& wrong : {std::string("\1\0\x08\1", 4), std::string("\0\1\x08\1", 4), std::string("PK\3\4")})
    refused(wrong + big(1, 4) + "a", "not an IDX file");
  refused(idx_header(7, {1}) + "a", "no type 7");
  refused(idx_header(0xA, {1}) + "a", "no type 10");
  refused(idx_header(8, {}) + "a", "without axes");
  for (std::size_t n = 0; n < sound.size(); ++n) refuses([&] { idx(sound.substr(0, n)); }, "");
  refused(sound + "x", "1 bytes too many");
  refused(idx_header(8, {5, 2}) + "abcdefgh", "its shape needs 10 bytes, and only 8 follow");
  refused(idx_header(0xE, {4, 2}) + "abcdefgh", "its shape needs 64 bytes");
  // extreme extents, also with products that overflow 64 bits
  refused(idx_header(8, {0xffffffff, 0xffffffff}) + "a", "its shape");
  refused(idx_header(8, {0x80000000, 0x80000000, 4}) + "a", "larger than any file");
  refused(idx_header(0xE, {0x80000000, 0x40000000}) + "a", "larger than any file");
  refused(idx_header(8, {0, 0xffffffff, 0xffffffff, 0xffffffff}), "larger than any file");
  refused(idx_header(8, std::vector<std::uint64_t>(255, 0xffffffff)) + "a", "larger than any file");
  EXPECT_EQ(idx(idx_header(8, std::vector<std::uint64_t>(255, 1)) + "a").elements(), 1);
  // the same, compressed
  for (std::size_t n = 2; n < packed.size(); ++n) refuses([&] { idx(packed.substr(0, n)); }, "");
  refused(packed + "x", "1 bytes follow");
  refused(made::gzipped(sound + "x"), "more bytes than it says");
  refused(made::gzipped(sound + std::string(50'000'000, 0)), "more bytes than it says");
  refused(made::gzipped(idx_header(8, {0xffffffff}) + "a"), "hold no more than");
  // damages the length, the checksum or the content
  for (std::size_t at : {packed.size() - 1, packed.size() - 6, std::size_t{12}}) {
    std::string damaged = packed;
    damaged[at] ^= 0x55;
    refused(damaged, "");
  }
  // a valid file that expands to a thousand times its size needs a larger memory limit
  const std::string zeros = made::gzipped(idx_header(8, {50'000'000}) + std::string(50'000'000, 0));
  refused(zeros, "ReadOptions::memory");
  EXPECT_EQ(idx(zeros, {.memory = 50'000'000}).elements(), 50'000'000);
}

TEST(Mnist, LabelsAndImagesBelongTogether) {
  const TempDir dir;
  spit(dir / "images", idx_header(8, {3, 2, 2}) + "abcdefghijkl");
  spit(dir / "labels", idx_header(8, {3}) + std::string("\0\x09\1", 3));
  const Dataset d = read_mnist(dir / "images", dir / "labels");
  EXPECT_EQ(d.size(), 3);
  EXPECT_EQ(d.at("image").shape, (Shape{3, 2, 2}));
  EXPECT_EQ(list<std::int64_t>(d.at("label")), (std::vector<std::int64_t>{0, 9, 1}));
  refuses([&] { read_mnist(dir / "images", dir / "labels", 9); }, "label 1 is 9, and there are 9 classes");
  spit(dir / "few", idx_header(8, {2}) + std::string("\0\1", 2));
  refuses([&] { read_mnist(dir / "images", dir / "few"); }, "2 labels for 3 images");
  refuses([&] { read_mnist(dir / "labels", dir / "labels"); }, "not images");
  refuses([&] { read_mnist(dir / "images", dir / "images"); }, "not labels");
  refuses([&] { read_mnist(dir / "images", dir / "nowhere"); }, "nowhere");
  spit(dir / "empty", "");
  refuses([&] { read_mnist(dir / "empty", dir / "labels"); }, "is empty");
}

// Checks the canonical files by their checksums and well-known statistics.
TEST(Mnist, TheRealOne) {
  NEEDS_DATA("datasets/mnist/train-images-idx3-ubyte.gz");
  const std::string folder = data("datasets/mnist/");
  const Dataset train = read_mnist(folder + "train-images-idx3-ubyte.gz", folder + "train-labels-idx1-ubyte.gz"),
                test = read_mnist(folder + "t10k-images-idx3-ubyte.gz", folder + "t10k-labels-idx1-ubyte.gz");
  ASSERT_EQ(train.at("image").shape, (Shape{60'000, 28, 28}));
  ASSERT_EQ(test.at("image").shape, (Shape{10'000, 28, 28}));
  const auto labels = train.at("label").values<std::int64_t>();
  EXPECT_EQ(std::vector<std::int64_t>(labels.begin(), labels.begin() + 8),
            (std::vector<std::int64_t>{5, 0, 4, 1, 9, 2, 1, 3}));
  double sum = 0, squares = 0;
  for (std::uint8_t v : train.at("image").values<std::uint8_t>()) sum += v / 255.0, squares += v / 255.0 * v / 255.0;
  const double n = 60'000.0 * 784, mean = sum / n;
  EXPECT_NEAR(mean, 0.1307, 5e-5);  // the usual normalization constants
  EXPECT_NEAR(std::sqrt(squares / n - mean * mean), 0.3081, 5e-5);
  const TempDir dir;
  const auto bytes = test.at("image").values<std::uint8_t>();
  spit(dir / "images", idx_header(8, {10'000, 28, 28}) + std::string(bytes.begin(), bytes.end()));
  EXPECT_EQ(read_idx(dir / "images").bytes, test.at("image").bytes);
  const std::string md5 = first_word("md5sum " + (dir / "images"));
  EXPECT_TRUE(md5.empty() || md5 == "2646ac647ad5339dbf082846283269ea") << md5;
}

TEST(Cifar, RecordsAndWhatIsWrongWithThem) {
  const TempDir dir;
  const auto record = [](const std::string& labels, char fill) { return labels + std::string(3072, fill); };
  spit(dir / "a", record("\x03", 'a') + record("\x09", 'b'));
  spit(dir / "b", record(std::string(1, 0), 'c'));
  const std::string both[] = {dir / "a", dir / "b"};
  const Dataset d = read_cifar10(both);
  EXPECT_EQ(d.at("image").shape, (Shape{3, 3, 32, 32}));
  EXPECT_EQ(list<std::int64_t>(d.at("label")), (std::vector<std::int64_t>{3, 9, 0}));
  EXPECT_EQ(d.at("image").values<std::uint8_t>()[3072 * 2], 'c');
  spit(dir / "c", record("\x13\x63", 'a') + record(std::string("\0\5", 2), 'b'));
  const Dataset e = read_cifar100(dir / "c");
  EXPECT_EQ(list<std::int64_t>(e.at("coarse_label")), (std::vector<std::int64_t>{19, 0}));
  EXPECT_EQ(list<std::int64_t>(e.at("label")), (std::vector<std::int64_t>{99, 5}));
  const auto one = [&](const std::string& bytes) {
    spit(dir / "x", bytes);
    const std::string path[] = {dir / "x"};
    read_cifar10(path);
  };
  refuses([&] { one(record("\x03", 'a') + record("\x0a", 'b')); }, "record 1: label is 10, and there are 10 classes");
  refuses([&] { one(record("\x03", 'a').substr(1)); }, "3072 bytes are no records of 3073");
  refuses([&] { one(record("\x03", 'a') + "x"); }, "no records");
  refuses([&] { one(""); }, "is empty");
  refuses([&] { read_cifar10(std::span<const std::string>()); }, "no file");
  spit(dir / "x", record("\x14\x63", 'a'));
  refuses([&] { read_cifar100(dir / "x"); }, "coarse_label is 20");
  spit(dir / "x", record("\x13\x64", 'a'));
  refuses([&] { read_cifar100(dir / "x"); }, "label is 100");
}

// The images of the .npz are written as CIFAR's binary batches and read back.
TEST(Cifar, TheRealOne) {
  NEEDS_DATA("datasets/cifar10/test.npz");
  Arrays arrays = read_npz(data("datasets/cifar10/test.npz"));
  ASSERT_EQ(arrays.size(), 2u);
  auto image = arrays.begin(), label = std::next(image);
  if (image->second.shape.size() == 1) std::swap(image, label);
  ASSERT_EQ(image->second.shape, (Shape{1000, 32, 32, 3}));
  ASSERT_EQ(label->second.shape, (Shape{1000}));
  std::string batch;
  for (std::size_t i = 0; i < 1000; ++i) {
    batch += static_cast<char>(load_i64(label->second.bytes.data(), label->second.dtype, i));
    for (std::size_t c = 0; c < 3; ++c)
      for (std::size_t p = 0; p < 1024; ++p) batch += static_cast<char>(image->second.bytes[(i * 1024 + p) * 3 + c]);
  }
  const TempDir dir;
  spit(dir / "batch.bin", batch);
  const std::string path[] = {dir / "batch.bin"};
  const Dataset d = read_cifar10(path);
  std::vector<int> of_class(10);
  for (std::int64_t v : d.at("label").values<std::int64_t>()) ++of_class[static_cast<std::size_t>(v)];
  EXPECT_EQ(of_class, std::vector<int>(10, 100));  // balanced
  EXPECT_EQ(d.at("image").values<std::uint8_t>()[3072 * 7 + 1024 + 5],
            static_cast<std::uint8_t>(image->second.bytes[(7 * 1024 + 5) * 3 + 1]));
}

TEST(Csv, WhatItReads) {
  const Csv c = parse_csv("\xEF\xBB\xBFname,\"a \"\"b\"\"\",\"x\ny\"\r\n1, +2.5 ,\"-3\"\r\n\r\n4e2,inf,nan\n");
  EXPECT_EQ(c.columns, (std::vector<std::string>{"name", "a \"b\"", "x\ny"}));
  ASSERT_EQ(c.values.shape, (Shape{2, 3}));
  const auto v = c.values.values<float>();
  EXPECT_EQ(std::vector<float>(v.begin(), v.begin() + 5), (std::vector<float>{1, 2.5f, -3, 400, INFINITY}));
  EXPECT_TRUE(std::isnan(v[5]));
  EXPECT_EQ(list<float>(c.column("name")), (std::vector<float>{1, 400}));
  refuses([&] { c.column("z"); }, "no column 'z'");
  refuses([&] { parse_csv("a,a\n1,2").column("a"); }, "several columns");
  // lines that end with CR, CR LF or LF, and a mixture of them; each kind counts as one line
  const std::vector<float> same{1, 2, 3, 4, 5, 6};
  for (const char* text : {"a,b\r1,2\r3,4\r5,6\r", "a,b\r\n1,2\r\n3,4\r\n5,6\r\n", "a,b\r\n1,2\r3,4\n5,6",
                           "\r\r\na,b\r\r1,\"2\"\r\"3\",\"4\"\r\n\r\n5,6\r"}) {
    const Csv lines = parse_csv(text);
    EXPECT_EQ(lines.columns, (std::vector<std::string>{"a", "b"})) << text;
    EXPECT_EQ(list<float>(lines.values), same) << text;
  }
  EXPECT_EQ(parse_csv("\"x\ry\"\r1\r").columns, (std::vector<std::string>{"x\ry"}));
  refuses([&] { parse_csv("a,b\r1,2\r\n3,4\n\"x\r\ny\",6"); }, "line 4, column 1");
  refuses([&] { parse_csv("a,b\r1,2\r3\r"); }, "line 3");
  const Csv tabs = parse_csv("1\t-0\n3\t\n", {.delimiter = '\t', .header = false, .dtype = DType::F64, .missing = NAN});
  EXPECT_TRUE(tabs.columns.empty());
  ASSERT_EQ(tabs.values.shape, (Shape{2, 2}));
  EXPECT_TRUE(std::signbit(tabs.values.values<double>()[1]));
  EXPECT_TRUE(std::isnan(tabs.values.values<double>()[3]));
  const CsvOptions whole{.header = false, .dtype = DType::I64};
  EXPECT_EQ(list<std::uint64_t>(parse_csv("18446744073709551615", {.header = false, .dtype = DType::U64}).values),
            (std::vector<std::uint64_t>{UINT64_MAX}));
  EXPECT_EQ(list<std::int64_t>(parse_csv("9223372036854775807,-9223372036854775808", whole).values),
            (std::vector<std::int64_t>{INT64_MAX, INT64_MIN}));
  // rounded once: through f64 this would be 1
  EXPECT_EQ(parse_csv("1.00000005960464477540", {.header = false}).values.values<float>()[0], 1.00000012f);
  EXPECT_EQ(parse_csv("a,b\n").values.shape, (Shape{0, 2}));
  EXPECT_EQ(parse_csv("").values.shape, (Shape{0, 0}));
  EXPECT_EQ(parse_csv("\n\n\r\n").values.shape, (Shape{0, 0}));
  EXPECT_EQ(parse_csv("1", {.header = false}).values.shape, (Shape{1, 1}));
}

TEST(Csv, BadCellsAreNamed) {
  refuses_csv("a,b\n1,2\n3,x4\n", "line 3, column 2: 'x4' is not a number");
  refuses_csv("a,b\n\"1\n\",2\n", "line 2, column 1: '1\\x0a' is not a number");
  refuses_csv("a,\"b\nc\"\n1,2\n3,y\n", "line 4, column 2");  // the header takes two lines
  refuses_csv("a,b\n1,\n", "line 2, column 2: an empty cell");
  refuses_csv("a,b\n1,2,3\n", "line 2, column 3: the first row has only 2 cells");
  refuses_csv("a,b\n1,2\n1\n", "line 3, column 1: the last cell of its row, the first row has 2");
  refuses_csv("1,2\n3\n", "line 2, column 1", {.header = false});
  refuses_csv("a\n\"1", "line 2, column 1: a quote that is never closed");
  refuses_csv("a\n\"1\"2\n", "something follows the closing quote");
  refuses_csv("a\n1e999\n", "outside the range of f32");
  refuses_csv("a\n1e39\n", "outside the range of f32");
  refuses_csv("a\n1e5\n", "outside the range of f16", {.dtype = DType::F16});
  refuses_csv("a\n256\n", "outside the range of u8", {.dtype = DType::U8});
  refuses_csv("a\n2\n", "outside the range of bool", {.dtype = DType::Bool});
  refuses_csv("a\n9223372036854775808\n", "outside the range of i64", {.dtype = DType::I64});
  refuses_csv("a\n18446744073709551616\n", "outside the range of u64", {.dtype = DType::U64});
  refuses_csv("a\n65536\n", "outside the range of u16", {.dtype = DType::U16});
  refuses_csv("a\n1.5\n", "'1.5' is not a whole number", {.dtype = DType::I32});
  for (const char* cell : {"1 2", "0x10", "1,5e", "--1", "+-1", "++1", "1e", ".", "e5", "\x1b[2J", "\xff"})
    refuses_csv("a\n" + std::string(cell) + "\n", "line 2");
  refuses_csv(std::string("a\n1\0\n", 5), "'1\\x00' is not a number");
  for (char d : {'"', '\n', '\r', '.', '-', '5'}) refuses_csv("a\n1\n", "a delimiter that", {.delimiter = d});
}

TEST(Csv, WordsAndChosenColumns) {
  const std::string text = "a,kind,b,id\n1, tall ,2,x\n\n3,\"big, round\",NA,y\n5,,nan,z\n";
  const Csv c = parse_csv(text, {.missing = -1, .na_values = {"NA", "nan"}, .columns = {"b", "a"}, .texts = {"kind"}});
  EXPECT_EQ(c.columns, (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(c.values.shape, (Shape{3, 2}));
  EXPECT_EQ(list<float>(c.values), (std::vector<float>{2, 1, -1, 3, -1, 5}));
  EXPECT_EQ(c.texts.at("kind"), (std::vector<std::string>{"tall", "big, round", ""}));
  EXPECT_EQ(c.lines, (std::vector<std::int64_t>{2, 4, 5}));
  EXPECT_EQ(list<float>(c.column("a")), (std::vector<float>{1, 3, 5}));
  // all columns but the texts; a missing text is empty
  const Csv rest = parse_csv("a,kind,b\n1,NA,2\n", {.na_values = {"NA"}, .texts = {"kind"}});
  EXPECT_EQ(rest.columns, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(list<float>(rest.values), (std::vector<float>{1, 2}));
  EXPECT_EQ(rest.texts.at("kind"), (std::vector<std::string>{""}));
  EXPECT_EQ(rest.columns.size(), static_cast<std::size_t>(rest.values.shape[1]));
  // without a header, columns are named by their index
  const CsvOptions bare{.header = false, .columns = {"2", "0"}, .texts = {"1"}};
  const Csv b = parse_csv("1,x,2\n3,y,4\n", bare);
  EXPECT_TRUE(b.columns.empty());
  EXPECT_EQ(list<float>(b.values), (std::vector<float>{2, 1, 4, 3}));
  EXPECT_EQ(b.texts.at("1"), (std::vector<std::string>{"x", "y"}));
  // no numeric column was requested
  EXPECT_EQ(parse_csv("kind\nx\n", {.texts = {"kind"}}).values.shape, (Shape{1, 0}));
  EXPECT_TRUE(parse_csv("kind\n", {.texts = {"kind"}}).texts.at("kind").empty());
}

TEST(Csv, ColumnsThatAreNotThere) {
  refuses_csv("a,b\n1,2\n", "there is no column 'c'; it has 'a', 'b'", {.columns = {"a", "c"}});
  refuses_csv("a,b\n1,2\n", "there is no column 'kind'", {.texts = {"kind"}});
  refuses_csv("a,b,a\n1,2,3\n", "several columns are called 'a'", {.columns = {"a"}});
  refuses_csv("1,2\n", "there is no column '7': the first row has 2 cells", {.header = false, .columns = {"7", "0"}});
  refuses_csv("1\n", "there is no column '700'", {.header = false, .columns = {"700", "701", "702", "703", "0"}});
  refuses_csv("a,b\n1,2\n", "the column 'a' is asked for twice", {.columns = {"a", "b", "a"}});
  refuses_csv("a,b\n1,2\n", "the column 'a' is asked for twice", {.columns = {"a"}, .texts = {"a"}});
  refuses_csv("a,b,c,d\n1\n", "the last cell of its row, the first row has 4", {.columns = {"d", "c", "b", "a"}});
  refuses_csv("a,b\n1,NA\n", "line 2, column 2: a missing cell; CsvOptions::missing", {.na_values = {"NA"}});
  // a column that was not requested may hold anything
  EXPECT_EQ(parse_csv("a,b\n1,x\n", {.columns = {"a"}}).values.shape, (Shape{1, 1}));
}

TEST(Csv, RandomBytes) {
  std::mt19937 random(7);
  const char alphabet[] = "0123456789.,,,,\n\n\r\"\" ex-";
  int read = 0;
  for (int i = 0; i < 30'000; ++i) {
    std::string text;
    for (std::uint32_t n = random() % 20; n > 0; --n) text += alphabet[random() % (sizeof alphabet - 1)];
    try {
      const bool header = i % 2 == 0;
      CsvOptions o{.header = header, .missing = 0, .na_values = {"x"}};
      if (i % 3 == 1) o.columns = {header ? "" : "1"};
      if (i % 5 == 1) o.texts = {header ? "e" : "0"};
      const Csv c = parse_csv(text, o);
      for (const auto& [name, column] : c.texts) ASSERT_EQ(column.size(), c.lines.size()) << text;
      ASSERT_EQ(c.values.elements(), c.values.shape[0] * c.values.shape[1]) << text;
      ++read;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(read, 300);
}

TEST(Text, CharactersAndBytes) {
  const std::string text =
      "b\xC3\xA9"
      "a\xF0\x9F\x98\x80"
      "a\n";
  const CharVocabulary v = CharVocabulary::of(text);
  EXPECT_EQ(v.size(), 5);
  EXPECT_EQ(list<std::int64_t>(v.encode(text)), (std::vector<std::int64_t>{2, 3, 1, 4, 1, 0}));
  EXPECT_EQ(v.decode(v.encode(text).values<std::int64_t>()), text);
  refuses([&] { v.encode("abc"); }, "the character 'c' at byte 2 is not in the vocabulary");
  refuses([&] { v.encode("a\xC3"); }, "not UTF-8 at byte 1");
  refuses([&] { CharVocabulary::of("ok\xff"); }, "not UTF-8 at byte 2");
  refuses([&] { CharVocabulary::of("\xC0\x80"); }, "not UTF-8 at byte 0");  // overlong encoding
  const std::int64_t wrong[] = {5}, below[] = {-1};
  refuses([&] { v.decode(wrong); }, "no number 5 among 5");
  refuses([&] { v.decode(below); }, "no number -1");
  const CharVocabulary bytes = CharVocabulary::bytes(), none = CharVocabulary::of("");
  const std::string any = std::string("\xff\0a", 3);
  EXPECT_EQ(list<std::int64_t>(bytes.encode(any)), (std::vector<std::int64_t>{255, 0, 97}));
  EXPECT_EQ(bytes.decode(bytes.encode(any).values<std::int64_t>()), any);
  EXPECT_EQ(none.encode("").elements(), 0);
  refuses([&] { none.encode("a"); }, "not in the vocabulary");
}

TEST(Text, NextTokens) {
  const std::int64_t tokens[] = {0, 1, 2, 3, 4, 5, 6};
  const Dataset d = next_token_samples(tokens, 3, 2);
  EXPECT_EQ(d.at("x").shape, (Shape{2, 3}));
  EXPECT_EQ(list<std::int64_t>(d.at("x")), (std::vector<std::int64_t>{0, 1, 2, 2, 3, 4}));
  EXPECT_EQ(list<std::int64_t>(d.at("y")), (std::vector<std::int64_t>{1, 2, 3, 3, 4, 5}));
  EXPECT_EQ(next_token_samples(tokens, 3, 1).size(), 4);
  EXPECT_EQ(next_token_samples(tokens, 6, 100).size(), 1);
  refuses([&] { next_token_samples(tokens, 7, 1); }, "7 tokens hold no sample of 7");
  refuses([&] { next_token_samples(tokens, 0, 1); }, "both must be 1 or more");
}

TEST(Text, TheRealOne) {
  NEEDS_DATA("datasets/tinyshakespeare/input.txt");
  const std::string text = read_text(data("datasets/tinyshakespeare/input.txt"));
  const CharVocabulary v = CharVocabulary::of(text);
  EXPECT_EQ(v.size(), 65);  // the known number of characters
  const Array ids = v.encode(text);
  EXPECT_EQ(ids.elements(), 1'115'394);
  EXPECT_EQ(v.decode(ids.values<std::int64_t>()), text);
  refuses([&] { read_text(data("datasets/tinyshakespeare/input.txt"), {.memory = 1'000'000}); }, "ReadOptions::memory");
}

TEST(Data, ArraysOfADataset) {
  const std::vector<float> v{1, 2, 3, 4, 5, 6};
  Arrays arrays;
  arrays.emplace("x", Array::of<float>({3, 2}, v));
  arrays.emplace("y", Array::zeros(DType::I64, {3}));
  const Dataset d(arrays);
  EXPECT_EQ(d.size(), 3);
  EXPECT_EQ(list<float>(d.part(1, 2).at("x")), (std::vector<float>{3, 4, 5, 6}));
  EXPECT_EQ(d.part(3, 0).size(), 0);
  refuses([&] { d.part(2, 2); }, "samples 2 and 2 more of 3");
  refuses([&] { d.part(-1, 1); }, "samples -1");
  refuses([&] { d.part(1, INT64_MAX); }, "of 3");
  refuses([&] { d.at("z"); }, "no array 'z'");
  refuses([&] { d.at("x").values<double>(); }, "its elements are f32, not f64");
  refuses([&] { Array::of<float>({2, 2}, v); }, "6 values for a shape of 4");
  refuses([&] { Array::zeros(DType::F64, {INT64_MAX}); }, "larger than any memory");
  refuses([&] { Array::zeros(DType::F64, {-1}); }, "negative");
  refuses([] { Dataset(Arrays{}); }, "no arrays");
  Arrays scalar, uneven = arrays;
  scalar.emplace("x", Array::zeros(DType::F32, {}));
  refuses([&] { Dataset{scalar}; }, "no axis of samples");
  uneven["y"] = Array::zeros(DType::I64, {4});
  refuses([&] { Dataset{uneven}; }, "'y' has 4 samples, 'x' has 3");
}
