#include <cstring>

#include "lightcone/io/checkpoints/torch/archive.h"
#include "lightcone/io/checkpoints/torch/machine.h"
#include "lightcone/io/printable.h"

namespace lc::io::torch {
namespace {

using namespace std::string_view_literals;

// 0x1950a86a20f9469cfc6c as protocols write it: ten bytes, or digits.
constexpr std::string_view kMagic = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"sv, kDigits = "119547037146038801333356";
constexpr std::int64_t kProtocol = 1001;
constexpr std::size_t kWithin = 40;  // bytes of the first pickle, whatever its protocol

// Reads pickles that follow each other.
class Pickles {
 public:
  Pickles(const MappedFile& file, Values& values) : rest_(file.bytes()), v_(values) {}
  Id next() {
    Machine machine(rest_, v_);
    const Id id = machine.run();
    rest_ = rest_.subspan(machine.length());
    return id;
  }
  std::span<const std::byte> take(std::uint64_t n, std::string_view key) {
    if (n > rest_.size()) v_.wrong(str_cat("truncated: it ends inside the storage ", in_quotes(key)));
    const auto part = rest_.first(n);
    rest_ = rest_.subspan(n);
    return part;
  }
  std::size_t left() const { return rest_.size(); }

 private:
  std::span<const std::byte> rest_;
  Values& v_;
};

// The bytes of an element of each storage, which its first mention decides.
std::map<std::string_view, std::size_t> element_sizes(const Values& v) {
  std::map<std::string_view, std::size_t> sizes;
  for (const StorageRecord& s : v.storages)
    if (!s.is_in_pickle) sizes.emplace(s.key, s.type->bytes);
  return sizes;
}

}  // namespace

bool looks_like_legacy(std::span<const std::byte> file) {
  const std::string_view first(reinterpret_cast<const char*>(file.data()), std::min(file.size(), kWithin));
  return (first.starts_with('\x80') && first.find(kMagic) != first.npos) ||
         (first.starts_with('L') && first.substr(1).starts_with(kDigits));
}

Opened open_legacy(const MappedFile& file, Values& values) {
  Pickles pickles(file, values);
  pickles.next();  // the magic number
  if (values.whole(pickles.next()) != kProtocol)
    values.wrong(str_cat("a file of PyTorch before 1.6, of another protocol than ", kProtocol));
  pickles.next();  // facts about the machine that wrote it; storages are little-endian all the same
  Opened o;
  o.root = pickles.next();
  const Id keys = pickles.next();
  if (!values.is(keys, Kind::List)) values.wrong("damaged: no list of storages follows its pickle");
  values.budget().take(values.storages.size(), 96);
  const auto sizes = element_sizes(values);
  for (Id id : values.items(keys)) {
    const std::string_view key = values.text(id);
    const auto size = sizes.find(key);
    if (size == sizes.end()) values.wrong(str_cat("the storage ", in_quotes(key), " belongs to no tensor"));
    std::int64_t elements = 0;
    std::memcpy(&elements, pickles.take(8, key).data(), 8);
    std::uint64_t bytes = 0;
    if (elements < 0 || __builtin_mul_overflow(static_cast<std::uint64_t>(elements), size->second, &bytes))
      values.wrong(str_cat("damaged: the storage ", in_quotes(key), " has ", elements, " elements"));
    values.budget().take(sizeof(Part) + 96 + 2 * key.size());
    if (!o.storages.emplace(key, Part{.bytes = pickles.take(bytes, key), .size = bytes}).second)
      values.wrong(str_cat("damaged: the storage ", in_quotes(key), " is there twice"));
  }
  if (pickles.left() != 0) values.wrong(str_cat("damaged: ", pickles.left(), " bytes follow its storages"));
  return o;
}

}  // namespace lc::io::torch
