// WAV files: Microsoft, "Multiple Channel Audio Data and WAVE Files" (2007); ITU-R BS.2088 for RF64 and BW64; ITU-T
// G.711 for A-law and mu-law.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <string_view>

#include "lightcone/io/audio/decoders.h"
#include "lightcone/io/printable.h"

namespace lc::io {
namespace {

constexpr std::uint32_t kUnknown = 0xFFFFFFFF;  // a size that was not known when it was written, or is in chunk ds64

enum Tag : unsigned { kPcm = 1, kFloat = 3, kALaw = 6, kMuLaw = 7, kExtensible = 0xFFFE };

std::string_view name_of(unsigned tag) {
  switch (tag) {
    case 2: return "Microsoft's ADPCM";
    case 0x11: return "IMA ADPCM";
    case 0x31: return "GSM 6.10";
    case 0x50: return "MPEG layers 1 and 2";
    case 0x55: return "MP3";
    case 0x161: return "WMA";
    case 0xFF:
    case 0x1600: return "AAC";
    case 0x674F: return "Vorbis";
    default: return {};
  }
}

std::uint64_t number(std::span<const std::byte> from, std::size_t at, std::size_t bytes) {
  std::uint64_t v = 0;
  for (std::size_t k = bytes; k-- > 0;) v = v << 8 | std::to_integer<std::uint64_t>(from[at + k]);
  return v;
}

struct Encoding {
  unsigned tag = 0, bits = 0;
  std::size_t channels = 0, frame = 0;  // bytes of a frame: a sample of each channel
  std::int64_t rate = 0;
};

class Wav {
 public:
  explicit Wav(const MappedFile& file) : file_(file), bytes_(file.bytes()) { chunks(); }

  Audio decoded(Budget& budget) const;

 private:
  template <class... Ts>
  Error wrong(const Ts&... what) const {
    return file_error("load", file_.path(), "not a sound WAV file: ", what...);
  }
  void chunks();
  void big_sizes(std::span<const std::byte> chunk);
  void encoding(std::span<const std::byte> chunk);
  void check_encoding() const;
  template <class Sample>
  void samples(Array& to, const Sample& sample) const;

  const MappedFile& file_;
  std::span<const std::byte> bytes_;
  std::optional<std::uint64_t> big_data_;  // chunk ds64
  std::optional<Encoding> encoding_;
  std::optional<std::span<const std::byte>> data_;
};

// Finds the format and the samples. Chunks begin at even offsets.
void Wav::chunks() {
  const bool big = std::memcmp(bytes_.data(), "RIFF", 4) != 0;
  for (std::size_t at = 12; !encoding_ || !data_;) {
    if (bytes_.size() - std::min(at, bytes_.size()) < 8)
      throw wrong("there is no chunk \"", encoding_ ? "data" : "fmt ", "\"");
    const std::string_view id(reinterpret_cast<const char*>(bytes_.data() + at), 4);
    const std::size_t rest = bytes_.size() - at - 8;
    const auto stated = static_cast<std::uint32_t>(number(bytes_, at + 4, 4));
    std::uint64_t size = stated;
    if (id == "data" && stated == kUnknown) size = big ? big_data_.value_or(rest) : rest;
    if (size > rest) throw wrong("the chunk \"", id, "\" has ", size, " bytes, and ", rest, " follow");
    const auto chunk = bytes_.subspan(at + 8, static_cast<std::size_t>(size));
    if (id == "ds64" && big) big_sizes(chunk);
    if (id == "fmt " && !encoding_) encoding(chunk);
    if (id == "data" && !data_) data_ = chunk;
    at += 8 + static_cast<std::size_t>(size) + (size & 1);
  }
}

void Wav::big_sizes(std::span<const std::byte> chunk) {
  if (chunk.size() < 24) throw wrong("the chunk \"ds64\" has ", chunk.size(), " bytes, and it needs 24");
  big_data_ = number(chunk, 8, 8);
}

void Wav::encoding(std::span<const std::byte> chunk) {
  if (chunk.size() < 16) throw wrong("the chunk \"fmt \" has ", chunk.size(), " bytes, and it needs 16");
  const auto word = [&](std::size_t at) { return static_cast<unsigned>(number(chunk, at, 2)); };
  Encoding e{word(0), word(14), word(2), word(12), static_cast<std::int64_t>(number(chunk, 4, 4))};
  if (e.tag == kExtensible) {
    // The tag of a subformat is the beginning of a GUID, whose rest is always the same.
    static constexpr unsigned char kGuid[] = {0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71};
    if (chunk.size() < 40) throw wrong("the extensible format has ", chunk.size(), " bytes, and it needs 40");
    if (std::memcmp(chunk.data() + 26, kGuid, sizeof kGuid) != 0)
      throw file_error("load", file_.path(), "a WAV file with samples of an unknown subformat");
    e.tag = word(24);
  }
  encoding_ = e;
  check_encoding();
}

void Wav::check_encoding() const {
  const Encoding& e = *encoding_;
  const auto among = [&](std::initializer_list<unsigned> bits) {
    return std::ranges::find(bits, e.bits) != bits.end();
  };
  const bool known = e.tag == kPcm || e.tag == kFloat || e.tag == kALaw || e.tag == kMuLaw;
  if (!known)
    throw file_error("load", file_.path(), "a WAV file with samples in ",
                     name_of(e.tag).empty() ? str_cat("format ", e.tag) : std::string(name_of(e.tag)),
                     "; PCM, floats, A-law and mu-law are read");
  if (e.tag == kPcm ? !among({8, 16, 24, 32}) : e.tag == kFloat ? !among({32, 64}) : !among({8}))
    throw file_error("load", file_.path(), "a WAV file with ",
                     e.tag == kPcm     ? "PCM"
                     : e.tag == kFloat ? "floats"
                                       : "a law",
                     " of ", e.bits, " bits; PCM has 8, 16, 24 or 32, floats 32 or 64, and A-law and mu-law 8");
  if (e.channels == 0 || e.rate == 0) throw wrong(e.channels, " channels and ", e.rate, " samples a second");
  if (e.frame != e.channels * e.bits / 8)
    throw wrong(e.channels, " samples of ", e.bits, " bits take ", e.channels * e.bits / 8, " bytes, not ", e.frame);
}

template <class Sample>
void Wav::samples(Array& to, const Sample& sample) const {
  const std::size_t width = encoding_->bits / 8, channels = encoding_->channels,
                    frames = data_->size() / encoding_->frame;
  const std::span<float> out = to.values<float>();
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t k = 0; k < frames; ++k)
      out[c * frames + k] = sample(data_->data() + k * encoding_->frame + c * width);
}

// G.711: a sign, three bits of exponent and four of mantissa, inverted as each law does.
float a_law(unsigned code) {
  code ^= 0x55;
  const unsigned exponent = code >> 4 & 7, mantissa = code & 15;
  const int step = static_cast<int>(exponent ? (mantissa * 16 + 264) << (exponent - 1) : mantissa * 16 + 8);
  return static_cast<float>(code & 0x80 ? step : -step) / 32768;
}
float mu_law(unsigned code) {
  code = ~code & 0xFF;
  const int step = static_cast<int>(((code & 15) * 8 + 132) << (code >> 4 & 7)) - 132;
  return static_cast<float>(code & 0x80 ? -step : step) / 32768;
}

template <std::size_t Bytes>
float pcm(const std::byte* at) {  // little-endian, two's complement
  std::uint32_t v = 0;
  for (std::size_t k = 0; k < Bytes; ++k) v |= std::to_integer<std::uint32_t>(at[k]) << (8 * (4 - Bytes + k));
  return static_cast<float>(static_cast<std::int32_t>(v)) / 0x1p31f;
}
template <class Bits>
Bits bits_at(const std::byte* at) {
  Bits v = 0;
  for (std::size_t k = sizeof v; k-- > 0;) v = v << 8 | std::to_integer<Bits>(at[k]);
  return v;
}

Audio Wav::decoded(Budget& budget) const {
  const Encoding& e = *encoding_;
  if (data_->size() % e.frame != 0)
    throw wrong("its ", data_->size(), " bytes of samples are no whole number of frames of ", e.frame, " bytes");
  const std::size_t frames = data_->size() / e.frame;
  budget.take(frames * e.channels, sizeof(float));
  Audio a{Array::zeros(DType::F32, {static_cast<std::int64_t>(e.channels), static_cast<std::int64_t>(frames)}), e.rate};
  Array& to = a.samples;
  const auto code = [](const std::byte* at) { return std::to_integer<unsigned>(*at); };
  if (e.tag == kALaw) samples(to, [&](const std::byte* at) { return a_law(code(at)); });
  else if (e.tag == kMuLaw) samples(to, [&](const std::byte* at) { return mu_law(code(at)); });
  else if (e.tag == kFloat && e.bits == 32)
    samples(to, [](const std::byte* at) { return std::bit_cast<float>(bits_at<std::uint32_t>(at)); });
  else if (e.tag == kFloat)
    samples(to,
            [](const std::byte* at) { return static_cast<float>(std::bit_cast<double>(bits_at<std::uint64_t>(at))); });
  else if (e.bits == 8) samples(to, [&](const std::byte* at) { return (static_cast<float>(code(at)) - 128) / 128; });
  else if (e.bits == 16) samples(to, pcm<2>);
  else if (e.bits == 24) samples(to, pcm<3>);
  else samples(to, pcm<4>);
  return a;
}

}  // namespace

Audio decode_wav(const MappedFile& file, Budget& budget) { return Wav(file).decoded(budget); }

}  // namespace lc::io
