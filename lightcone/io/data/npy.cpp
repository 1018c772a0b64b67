// NumPy's .npy format: magic, version, length of the header, header, values. The header is a Python literal such as
//   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
// A .npz file is a zip archive of such files.
#include <charconv>
#include <cstring>
#include <optional>

#include "lightcone/io/data/elements.h"
#include "lightcone/io/data/opened.h"
#include "lightcone/io/data/readers.h"
#include "lightcone/io/data/zip.h"
#include "lightcone/io/printable.h"

namespace lc {
namespace {

using io::ByteStream;
using io::StoredElement;
using Kind = StoredElement::Kind;

constexpr std::size_t kMostHeader = 64u << 10;  // numpy itself accepts 10,000 bytes
constexpr std::size_t kMostAxes = 64;           // limit of numpy 2
constexpr std::string_view kSuffix = ".npy";    // suffix of members of an archive

struct Header {
  StoredElement element;
  bool first_axis_fastest = false;
  std::vector<std::int64_t> shape;
};

StoredElement element(std::string_view descr, const std::string& where) {
  const auto unknown = [&] {
    if (descr.find('O') != descr.npos)
      return file_error("load", where, "it holds Python objects, which only running a pickle could make: save numbers");
    return file_error("load", where, "elements of the type ", in_quotes(descr), " are not read: numbers and bools are");
  };
  if (descr.size() != 3 && descr.size() != 4) throw unknown();
  const char order = descr[0], kind = descr[1];
  int bytes = 0;
  if (std::from_chars(descr.data() + 2, descr.data() + descr.size(), bytes).ptr != descr.data() + descr.size())
    throw unknown();
  if (order != '<' && order != '>' && !(order == '|' && bytes == 1)) throw unknown();
  const auto one = [&](Kind k, std::initializer_list<int> widths) {
    for (int width : widths)
      if (width == bytes) return StoredElement{k, bytes, order == '>'};
    throw unknown();
  };
  switch (kind) {
    case 'f': return one(Kind::Float, {2, 4, 8});
    case 'c': return one(Kind::Complex, {8, 16});
    case 'i': return one(Kind::Signed, {1, 2, 4, 8});
    case 'u': return one(Kind::Unsigned, {1, 2, 4, 8});
    case 'b': return one(Kind::Bool, {1});
    default: throw unknown();
  }
}

// Parses the header strictly: it must have these three keys, each once, in any order.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& where) : text_(text), where_(where) {}
  Header parse() {
    Header h;
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!at('}')) {
      const std::string_view key = string();
      expect(':');
      if (key == "descr") once(descr, key), h.element = element(type(), where_);
      else if (key == "fortran_order") once(order, key), h.first_axis_fastest = boolean();
      else if (key == "shape") once(shape, key), h.shape = tuple();
      else wrong(str_cat("the key ", in_quotes(key)));
      if (!at('}')) expect(',');
    }
    expect('}');
    skip_space();
    if (!text_.empty()) wrong("something behind its end");
    if (!descr || !order || !shape) wrong("not all of descr, fortran_order and shape");
    return h;
  }

 private:
  [[noreturn]] void wrong(std::string_view what) const {
    throw file_error("load", where_, "not a header of NumPy's: it has ", what);
  }
  void once(bool& seen, std::string_view key) const {
    if (seen) wrong(str_cat(in_quotes(key), " twice"));
    seen = true;
  }
  void skip_space() {
    const std::size_t n = text_.find_first_not_of(" \t\r\n");
    text_.remove_prefix(n == text_.npos ? text_.size() : n);
  }
  bool at(char c) {
    skip_space();
    return !text_.empty() && text_[0] == c;
  }
  void expect(char c) {
    if (!at(c)) wrong(str_cat("no '", c, "' where one must be"));
    text_.remove_prefix(1);
  }
  std::string_view string() {
    skip_space();
    const char quote = text_.empty() ? '\0' : text_[0];
    const std::size_t end = quote == '\'' || quote == '"' ? text_.find(quote, 1) : text_.npos;
    if (end == text_.npos) wrong("no string where one must be");
    const std::string_view s = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return s;
  }
  // Records have a list of fields instead of a string.
  std::string_view type() {
    if (at('[') || at('('))
      throw file_error("load", where_, "records of several fields are not read: save one array each");
    return string();
  }
  bool boolean() {
    skip_space();
    const bool yes = text_.starts_with("True");
    if (!yes && !text_.starts_with("False")) wrong("neither True nor False where one must be");
    text_.remove_prefix(yes ? 4 : 5);
    return yes;
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> v;
    expect('(');
    while (!at(')')) {
      if (v.size() == kMostAxes) wrong(str_cat("more than ", kMostAxes, " axes"));
      v.push_back(extent());
      if (at(',')) text_.remove_prefix(1);
      else if (v.size() == 1 || !at(')')) wrong("no ',' where one must be");  // (3) is not a tuple
    }
    expect(')');
    return v;
  }
  std::int64_t extent() {
    skip_space();
    std::int64_t n = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), n);
    if (error != std::errc() || n < 0) wrong("an extent that is no whole number, or too large a one");
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    if (text_.starts_with('L')) text_.remove_prefix(1);  // suffix of long integers of Python 2
    return n;
  }

  std::string_view text_;
  const std::string& where_;
};

Array read_npy_stream(ByteStream& from, Budget& budget) {
  std::byte magic[8], digits[4] = {};
  from.read(magic);
  if (std::memcmp(magic, "\x93NUMPY", 6) != 0)
    throw file_error("load", from.where(), "not a .npy file: its first bytes differ");
  const int version = static_cast<int>(magic[6]);
  if (version < 1 || version > 3 || magic[7] != std::byte{0})
    throw file_error("load", from.where(), "a .npy of version ", version, ".", static_cast<int>(magic[7]),
                     ", which is unknown");
  from.read(std::span(digits).first(version == 1 ? 2 : 4));
  std::size_t length = 0;
  for (int i = 4; i-- > 0;) length = length << 8 | static_cast<std::size_t>(digits[i]);
  if (length > kMostHeader)
    throw file_error("load", from.where(), "a header of ", length, " bytes, longer than any array's");
  from.expect_room(length, "its header");
  budget.take(length);
  std::string text(length, 0);
  from.read(std::as_writable_bytes(std::span(text)));
  Header h = HeaderParser(text, from.where()).parse();
  return io::read_elements(from, h.element, std::move(h.shape), h.first_axis_fastest, budget);
}

// Reads one member of an archive.
Array read_member(const io::ZipMember& m, const std::string& where, Budget& budget) {
  ByteStream stream(m.bytes, m.deflated ? ByteStream::Packing::Deflate : ByteStream::Packing::None, where);
  Array a = read_npy_stream(stream, budget);
  if (stream.done() != m.size)
    throw file_error("load", where, "it has ", stream.done(), " bytes, and the archive says ", m.size);
  if (stream.crc() != m.crc) throw file_error("load", where, "damaged: its checksum is wrong");
  return a;
}

}  // namespace

Array read_npy(const MappedFile& file, const ReadOptions& o) {
  Budget budget = io::budget_for(file, o);
  ByteStream stream(file.bytes(), ByteStream::Packing::None, file.path());
  return read_npy_stream(stream, budget);
}

Array read_npy(const std::string& path, const ReadOptions& o) { return read_npy(*io::opened(path, o), o); }

Arrays read_npz(const MappedFile& file, const ReadOptions& o) {
  Budget budget = io::budget_for(file, o);
  Arrays arrays;
  for (const io::ZipMember& m : io::read_zip(file, budget)) {
    const std::string where = str_cat(file.path(), ", member ", in_quotes(m.name));
    if (!m.name.ends_with(kSuffix)) throw file_error("load", where, "its name does not end with .npy");
    budget.take(sizeof(Arrays::value_type) + 64 + m.name.size());
    Array a = read_member(m, where, budget);
    arrays.emplace(m.name.substr(0, m.name.size() - kSuffix.size()), std::move(a));
  }
  return arrays;
}

Arrays read_npz(const std::string& path, const ReadOptions& o) { return read_npz(*io::opened(path, o), o); }

}  // namespace lc
