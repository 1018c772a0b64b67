// NumPy's .npz: a zip archive of .npy files.
#include "lightcone/io/data/npy.h"
#include "lightcone/io/data/opened.h"
#include "lightcone/io/data/readers.h"
#include "lightcone/io/data/zip.h"
#include "lightcone/io/printable.h"

namespace lc {
namespace {

constexpr std::string_view kSuffix = ".npy";

Array read_member(const io::ZipMember& m, const std::string& where, Budget& budget) {
  using io::ByteStream;
  ByteStream stream(m.bytes, m.deflated ? ByteStream::Packing::Deflate : ByteStream::Packing::None, where);
  Array a = io::read_npy_stream(stream, budget);
  if (stream.done() != m.size)
    throw file_error("load", where, "it has ", stream.done(), " bytes, and the archive says ", m.size);
  if (stream.crc() != m.crc) throw file_error("load", where, "damaged: its checksum is wrong");
  return a;
}

}  // namespace

Arrays read_npz(const MappedFile& file, const ReadOptions& o) {
  Budget budget = io::budget_for(file, o);
  Arrays arrays;
  for (const io::ZipMember& m : io::read_zip(file, budget)) {
    const std::string where = cat(file.path(), ", member ", in_quotes(m.name));
    if (!m.name.ends_with(kSuffix)) throw file_error("load", where, "its name does not end with .npy");
    budget.take(sizeof(Arrays::value_type) + 64 + m.name.size());
    Array a = read_member(m, where, budget);
    arrays.emplace(m.name.substr(0, m.name.size() - kSuffix.size()), std::move(a));
  }
  return arrays;
}

Arrays read_npz(const std::string& path, const ReadOptions& o) { return read_npz(*io::opened(path, o), o); }

}  // namespace lc
