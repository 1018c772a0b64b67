// Recognises files of other programs by their first bytes, with a sentence on what each is and how to convert it.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "lightcone/base/error.h"
#include "lightcone/io/checkpoints/weights_internal.h"

namespace lc::io {
namespace {

// Weights::open() reads them before it asks for the name of a format; other readers do not.
constexpr std::string_view kTorch = "torch.save(), which has weights: Weights::open() reads it";

struct Magic {
  std::string_view bytes, sentence;
};
constexpr Magic kMagics[] = {
    {"\x89HDF\r\n\x1a\n",
     "an HDF5 file, as Keras writes it: safetensors.numpy.save_file() writes the arrays that h5py "
     "reads from it again, as model.safetensors"},
    {"\x93NUMPY", "one array of NumPy's: read_npy() reads it, and a checkpoint has tensors with names"},
    {"version https://git-lfs", "a pointer of Git LFS, which stands for the file: 'git lfs pull' fetches that"},
    {"lmgg",
     "a file from before GGUF (GGML): Whisper::load() and `lightcone transcribe` read those of whisper.cpp, and "
     "llama.cpp's scripts make GGUF of the original of others"},
    {"fmgg", "a file from before GGUF (GGMF): llama.cpp's scripts make GGUF of the original model"},
    {"tjgg", "a file from before GGUF (GGJT): llama.cpp's scripts make GGUF of the original model"},
    {"\x1f\x8b\x08", "compressed by gzip: gunzip unpacks it"},
    {"\x28\xb5\x2f\xfd", "compressed by Zstandard: unzstd unpacks it"},
    {"\xfd"
     "7zXZ",
     "compressed by xz: unxz unpacks it"},
    {"BZh", "compressed by bzip2: bunzip2 unpacks it"},
    {"7z\xbc\xaf", "an archive of 7-Zip: unpack it first"},
    {"<!DOCTYPE", "a web page, where a file was to be downloaded"},
    {"<!doctype", "a web page, where a file was to be downloaded"},
    {"<html", "a web page, where a file was to be downloaded"},
};

// Iterates over the fields of a protocol buffers message.
class Fields {
 public:
  explicit Fields(std::string_view message) : rest_(message) {}
  bool done() const { return rest_.empty(); }
  // Skips the next field, which may be truncated, and returns its number; nullopt if this is not such a message.
  std::optional<std::uint64_t> next() {
    const auto tag = varint();
    if (!tag) return std::nullopt;
    std::optional<std::uint64_t> skip;
    switch (*tag & 7) {
      case 0: skip = varint() ? std::optional<std::uint64_t>(0) : std::nullopt; break;
      case 1: skip = 8; break;
      case 2: skip = varint(); break;
      case 5: skip = 4; break;
      default: break;
    }
    if (!skip) return std::nullopt;
    rest_.remove_prefix(static_cast<std::size_t>(std::min<std::uint64_t>(*skip, rest_.size())));
    return *tag >> 3;
  }

 private:
  std::optional<std::uint64_t> varint() {
    std::uint64_t v = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_[0]);
      rest_.remove_prefix(1);
      v |= static_cast<std::uint64_t>(byte & 127) << shift;
      if (byte < 128) return v;
    }
    return std::nullopt;
  }
  std::string_view rest_;
};

bool is_tflite(std::string_view bytes) { return bytes.size() >= 8 && bytes.substr(4, 4) == "TFL3"; }

bool is_tar(std::string_view bytes) { return bytes.size() >= 512 && bytes.substr(257, 5) == "ustar"; }

// True for a pickle of protocol 2 or later. Files of llama2.c may begin with the same two bytes, but have a small third
// one.
bool is_pickle(std::string_view bytes) {
  return bytes.size() >= 4 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5 &&
         static_cast<unsigned char>(bytes[2]) >= 0x20;
}

std::string of_zip(std::string_view bytes) {
  const std::string_view first = bytes.substr(0, 4096),
                         last = bytes.substr(bytes.size() - std::min<std::size_t>(bytes.size(), 65536));
  const auto holds = [&](std::string_view name) {
    return first.find(name) != first.npos || last.find(name) != last.npos;
  };
  if (holds("data.pkl")) return str_cat("a file of ", kTorch);
  if (holds(".npy")) return "an archive of NumPy's (.npz): read_npz() reads it";
  if (holds("model.weights.h5"))
    return "a model of Keras: safetensors.numpy.save_file() writes its weights again, as model.safetensors";
  return "a zip archive: unpack it first";
}

}  // namespace

bool looks_like_onnx(std::span<const std::byte> file) {
  const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
  if (bytes.size() < 8 || bytes[0] != '\x08' || bytes[1] < 1 || bytes[1] > 64) return false;
  constexpr std::uint64_t kFields[] = {1, 2, 3, 4, 5, 6, 7, 8, 14, 20, 25, 26};
  bool graph = false;
  Fields all(bytes);
  for (int k = 0; k < 64 && !all.done(); ++k) {
    const auto field = all.next();
    if (!field || std::ranges::find(kFields, *field) == std::end(kFields)) return false;
    graph = graph || *field == 7;
  }
  return graph;
}

std::string foreign_format(std::span<const std::byte> file) {
  const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
  for (const Magic& m : kMagics)
    if (bytes.starts_with(m.bytes)) return std::string(m.sentence);
  if (bytes.starts_with("PK\x03\x04")) return of_zip(bytes);
  if (is_pickle(bytes))
    return "a pickle that torch.save() did not write, which could be any program: safetensors.numpy.save_file() writes "
           "the arrays in it again, as model.safetensors";
  if (is_tar(bytes))
    return "an archive of tar. If PyTorch before 0.1.10 wrote it, torch.load() and torch.save() of a newer version "
           "make a "
           "file of it that is read; otherwise unpack it first";
  if (is_tflite(bytes)) return "a model of TensorFlow Lite, which is not read: start from the model it was made of";
  if (looks_like_onnx(file))
    return "an ONNX model, which is no checkpoint: read_onnx() reads its graph, 'lightcone run' runs it, and "
           "'lightcone "
           "convert' writes its weights as safetensors";
  return "";
}

}  // namespace lc::io
