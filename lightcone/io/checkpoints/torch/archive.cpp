#include "lightcone/io/checkpoints/torch/archive.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "lightcone/io/checkpoints/torch/machine.h"
#include "lightcone/io/data/byte_stream.h"
#include "lightcone/io/data/zip.h"
#include "lightcone/io/printable.h"

namespace lc::io::torch {
namespace {

constexpr std::string_view kPickle = "/data.pkl", kStorages = "/data/";
constexpr int kNewest = 10;  // caffe2/serialize's kMaxSupportedFileFormatVersion
constexpr std::size_t kLongestRecord = 64;
// Bytes of the records at the end of an archive, and of all of them with a comment of any length.
constexpr std::size_t kEnd = 22, kEnd64 = 56, kLongestEnd = 65536 + kEnd + 20 + kEnd64;

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Finds members by their names after that of the archive.
class Members {
 public:
  Members(const MappedFile& file, Values& values) : v_(values), all_(read_zip(file, values.budget())) {
    if (all_.empty()) v_.wrong("an empty zip archive");
    const std::string_view first = all_.front().name;
    root_ = first.substr(0, std::min(first.size(), first.find('/')));
  }
  // A short record; "" if there is none.
  std::string record(std::string_view name) const {
    const ZipMember* m = find(name);
    if (!m) return "";
    if (m->size > kLongestRecord) v_.wrong(str_cat("its record ", in_quotes(m->name), " is too long"));
    std::string text(as_text(bytes(*m)));
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return text;
  }
  std::span<const std::byte> pickle() const {
    const ZipMember* m = find(kPickle);
    if (!m) v_.wrong("a zip archive without the file data.pkl that torch.save() writes: unpack it first");
    return bytes(*m);
  }
  std::map<std::string, Part, std::less<>> storages() const {
    std::map<std::string, Part, std::less<>> found;
    for (const ZipMember& m : all_) {
      if (!m.name.starts_with(root_) || !m.name.substr(root_.size()).starts_with(kStorages)) continue;
      const std::string_view key = m.name.substr(root_.size() + kStorages.size());
      v_.budget().take(sizeof(Part) + 96 + 2 * key.size());
      found.emplace(key, Part{m.bytes, m.deflated, m.size, m.crc});
    }
    return found;
  }

 private:
  const ZipMember* find(std::string_view name) const {
    for (const ZipMember& m : all_)
      if (m.name.size() == root_.size() + name.size() && m.name.starts_with(root_) && m.name.ends_with(name)) return &m;
    return nullptr;
  }
  // The unpacked bytes, which live as long as the values.
  std::span<const std::byte> bytes(const ZipMember& m) const {
    if (!m.deflated) return m.bytes;
    const auto copy =
        unpacked({m.bytes, true, m.size, m.crc}, str_cat(v_.where(), ", member ", in_quotes(m.name)), v_.budget());
    return std::as_bytes(std::span(v_.keep(std::string(as_text(copy)))));
  }
  Values& v_;
  std::vector<ZipMember> all_;
  std::string_view root_;
};

}  // namespace

std::vector<std::byte> unpacked(const Part& part, const std::string& where, Budget& budget) {
  ByteStream stream(part.bytes, ByteStream::Packing::Deflate, where);
  stream.expect_room(part.size, "its bytes");
  budget.parsed(part.bytes.size());
  budget.take(part.size);
  std::vector<std::byte> to(part.size);
  stream.read(to);
  stream.expect_end();
  if (stream.crc() != part.crc) throw file_error("load", where, "damaged: its checksum is wrong");
  return to;
}

// The first member is the pickle, except in TorchScript's files, whose directory is searched.
bool looks_like_archive(std::span<const std::byte> file) {
  const std::string_view bytes = as_text(file);
  if (!bytes.starts_with("PK\x03\x04")) return false;
  if (const std::string_view first = bytes.substr(0, 4096); first.find(kPickle) != first.npos) return true;
  const std::string_view last = bytes.substr(bytes.size() - std::min(bytes.size(), kLongestEnd));
  const std::size_t end = last.rfind("PK\x05\x06"), end64 = last.rfind("PK\x06\x06");
  if (end == last.npos || last.size() - end < kEnd) return last.find(kPickle) != last.npos;
  std::uint64_t begin = 0;
  std::memcpy(&begin, last.data() + end + 16, 4);
  if (begin == 0xffffffff && end64 != last.npos && last.size() - end64 >= kEnd64)
    std::memcpy(&begin, last.data() + end64 + 48, 8);
  return begin < bytes.size() && bytes.find(kPickle, begin) != bytes.npos;
}

Opened open_archive(const MappedFile& file, Values& values) {
  const Members members(file, values);
  const std::string version = members.record("/version"), order = members.record("/byteorder");
  int number = kNewest;
  std::from_chars(version.data(), version.data() + version.size(), number);
  if (number > kNewest)
    values.wrong(str_cat("it was written in version ", number, " of PyTorch's archives, and ", kNewest,
                         " is the newest that is known"));
  if (!order.empty() && order != "little" && order != "big")
    values.wrong(str_cat("its byte order ", in_quotes(order), " is neither 'little' nor 'big'"));
  const auto pickle = members.pickle();
  Opened o;
  Machine machine(pickle, values);
  o.root = machine.run();
  if (machine.length() != pickle.size())
    values.wrong(str_cat("damaged: ", pickle.size() - machine.length(), " bytes follow its pickle"));
  o.storages = members.storages();
  o.big_endian = order == "big";
  return o;
}

}  // namespace lc::io::torch
