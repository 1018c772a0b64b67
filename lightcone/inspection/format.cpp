// Recognises files by their contents.
#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "lightcone/inspection/inspect.h"
#include "lightcone/inspection/parts.h"
#include "lightcone/io/checkpoints/torch/torch_file.h"
#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/io/checkpoints/weights_internal.h"
#include "lightcone/io/mapped_file.h"
#include "lightcone/io/printable.h"
#include "lightcone/io/text/tokenizer.h"

namespace lc {

FileFormat inspection::format_of(const Weights& w) {
  if (w.format() == "GGUF") return FileFormat::Gguf;
  if (w.format() == "PyTorch") return FileFormat::PyTorch;
  return w.format() == "llama2.c" ? FileFormat::Llama2c : FileFormat::Safetensors;
}

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kKnown =
    "known are ONNX, StableHLO (text and bytecode), GGUF, safetensors, PyTorch's files, llama2.c, .npz, .npy, "
    "tokenizers "
    "(tokenizer.json, tokenizer.model, tokenizer.bin), JPEG, PNG, WAV and FLAC";

struct Magic {
  std::string_view bytes;
  FileFormat format;
};
constexpr Magic kMagics[] = {
    {"GGUF", FileFormat::Gguf},
    {"\x93NUMPY", FileFormat::Npy},
    {"ML\xEFR", FileFormat::StableHlo},
    {"\x89PNG\r\n\x1a\n", FileFormat::Picture},
    {"\xFF\xD8\xFF", FileFormat::Picture},
    {"fLaC", FileFormat::Sound},
};

bool is_sound(std::string_view s) {
  return s.size() >= 12 && s.substr(8, 4) == "WAVE" &&
         (s.starts_with("RIFF") || s.starts_with("RF64") || s.starts_with("BW64"));
}

// True for an archive of NumPy's: the names of members are in its last bytes.
bool is_npz(std::string_view s) {
  return s.starts_with("PK\x03\x04") &&
         s.substr(s.size() - std::min<std::size_t>(s.size(), 65536)).find(".npy") != s.npos;
}

// True for a text that has functions of MLIR near its beginning, which may have comments and aliases before them.
bool is_module(std::string_view s) {
  constexpr std::size_t kLook = 1 << 20;
  const std::string_view text = s.substr(0, kLook);
  if (text.find('\0') != text.npos) return false;
  return text.find("func.func") != text.npos || text.find("\"builtin.module\"") != text.npos;
}

bool can_be_json(std::string_view s) {
  const std::size_t first = s.find_first_not_of(" \t\r\n");
  return first != s.npos && s[first] == '{';
}

bool is_tokenizer(const std::string& path) {
  try {
    load_tokenizer(path);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// A file that has no mark of its own: what can be read is what it is.
FileFormat by_reading(const std::string& path, std::span<const std::byte> bytes) {
  std::string other = io::foreign_format(bytes);
  if (other.empty()) {
    try {
      return inspection::format_of(Weights::open(path));
    } catch (const Error& e) {
      if (is_tokenizer(path)) return FileFormat::Tokenizer;
      if (path.ends_with(".bin") || path.ends_with(".safetensors")) throw;  // it says what is wrong with it
    }
  }
  throw file_error("inspect", path, other.empty() ? "it is of no known format" : "it is " + other, "; ", kKnown);
}

}  // namespace

std::string_view name(FileFormat f) {
  constexpr std::array<std::string_view, 11> kNames = {
      "ONNX", "StableHLO", "GGUF", "safetensors", "PyTorch", "llama2.c", "npz", "npy", "tokenizer", "picture", "sound"};
  return kNames[static_cast<std::size_t>(f)];
}

FileFormat file_format(const std::string& path) {
  std::error_code ec;
  if (!fs::exists(fs::symlink_status(path, ec))) throw Error("inspect", str_cat("there is no file ", in_quotes(path)));
  if (io::is_folder(path)) return inspection::format_of(Weights::open(path));
  const auto file = MappedFile::open(path);
  const auto bytes = file->bytes();
  const std::string_view s(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (const Magic& m : kMagics)
    if (s.starts_with(m.bytes)) return m.format;
  if (is_sound(s)) return FileFormat::Sound;
  if (io::looks_like_torch(bytes)) return FileFormat::PyTorch;
  if (is_npz(s)) return FileFormat::Npz;
  if (io::looks_like_safetensors(bytes)) return FileFormat::Safetensors;
  if (io::looks_like_onnx(bytes)) return FileFormat::Onnx;
  if (can_be_json(s)) {
    if (s.find("\"weight_map\"") != s.npos) return inspection::format_of(Weights::open(path));
    if (is_tokenizer(path)) return FileFormat::Tokenizer;
    throw file_error("inspect", path, "it is JSON, and neither a tokenizer nor an index of shards; ", kKnown);
  }
  if (is_module(s)) return FileFormat::StableHlo;
  if (path.ends_with(".onnx")) return FileFormat::Onnx;  // its reader says what is wrong
  return by_reading(path, bytes);
}

}  // namespace lc
