#include "lightcone/io/audio/audio.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "lightcone/io/audio/decoders.h"
#include "lightcone/io/data/opened.h"
#include "lightcone/io/printable.h"

namespace lc {
namespace {

// What files of other formats begin with.
struct OtherFormat {
  std::size_t at;
  std::string_view magic, name;
};
constexpr OtherFormat kOthers[] = {
    {0, "OggS", "Ogg (Vorbis, Opus, or FLAC inside)"},
    {0, "ID3", "MP3"},
    {4, "ftyp", "MP4 (AAC, ALAC)"},
    {0, "FORM", "AIFF"},
    {0, ".snd", "AU"},
    {0, "caff", "CAF"},
    {0, "RIFX", "big-endian WAV (RIFX)"},
    {0, "riff", "Wave64"},
    {0, "wvpk", "WavPack"},
    {0, "MAC ", "Monkey's Audio"},
    {0, "MThd", "MIDI"},
    {0, "\x1A\x45\xDF\xA3", "Matroska or WebM"},
    {0, "\x30\x26\xB2\x75", "WMA (ASF)"},
    {0, "#!AMR", "AMR"},
};

bool has(std::span<const std::byte> bytes, std::size_t at, std::string_view magic) {
  return bytes.size() >= at + magic.size() && std::memcmp(bytes.data() + at, magic.data(), magic.size()) == 0;
}
// Whether the bytes begin with a frame of MPEG's audio layers (11 bits of synchronisation, no reserved values) or of
// AAC in ADTS, whose layer is 0.
std::string_view mpeg_name(std::span<const std::byte> bytes) {
  if (bytes.size() < 4) return {};
  const auto byte = [&](std::size_t k) { return std::to_integer<unsigned>(bytes[k]); };
  if (byte(0) != 0xFF || (byte(1) & 0xE0) != 0xE0) return {};
  if ((byte(1) & 0xF6) == 0xF0) return "AAC";
  const bool reserved =
      (byte(1) & 0x18) == 0x08 || (byte(1) & 6) == 0 || (byte(2) & 0xF0) == 0xF0 || (byte(2) & 12) == 12;
  return reserved ? std::string_view() : "MP3";
}

Audio decode(const MappedFile& file, Budget& budget) {
  const auto bytes = file.bytes();
  for (const std::string_view magic : {"RIFF", "RF64", "BW64"})
    if (has(bytes, 0, magic) && has(bytes, 8, "WAVE")) return io::decode_wav(file, budget);
  if (has(bytes, 0, "fLaC")) {
#ifdef LIGHTCONE_FLAC
    return io::decode_flac(file, budget);
#else
    throw file_error("load", file.path(),
                     "a FLAC file, and this build of lightcone::io has no decoder for it: with the ",
                     "package libflac-dev it finds one when it is configured");
#endif
  }
  std::string_view name = mpeg_name(bytes);
  for (const OtherFormat& f : kOthers)
    if (has(bytes, f.at, f.magic)) name = f.name;
  if (!name.empty())
    throw file_error("load", file.path(), "the format is ", name, ", which is not read; convert it to WAV or FLAC");
  throw file_error("load", file.path(), "neither a WAV nor a FLAC file");
}

}  // namespace

bool can_read_flac() {
#ifdef LIGHTCONE_FLAC
  return true;
#else
  return false;
#endif
}

Audio read_audio(const MappedFile& file, const ReadOptions& o) {
  Budget budget = io::budget_for(file, o);
  return decode(file, budget);
}
Audio read_audio(const std::string& path, const ReadOptions& o) { return read_audio(*io::opened(path, o), o); }

}  // namespace lc
