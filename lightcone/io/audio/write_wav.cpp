#include <cmath>
#include <cstring>
#include <string>

#include "lightcone/io/atomic_file.h"
#include "lightcone/io/audio/audio.h"
#include "lightcone/io/printable.h"

namespace lc {
namespace {

std::string little(std::uint64_t v, int bytes) {
  std::string s;
  for (int k = 0; k < bytes; ++k) s += static_cast<char>(v >> (8 * k) & 0xFF);
  return s;
}

std::int16_t rounded(float v, const std::string& path) {
  if (std::isnan(v)) throw file_error("write_wav", path, "a sample is NaN, which 16 bits cannot hold");
  return static_cast<std::int16_t>(std::nearbyint(std::fmin(std::fmax(v * 32768.0f, -32768.0f), 32767.0f)));
}

std::string header(std::uint64_t channels, std::uint64_t rate, std::uint64_t width, std::uint64_t data, bool floats) {
  const std::uint64_t frame = channels * width;
  std::string format = little(floats ? 3 : 1, 2) + little(channels, 2) + little(rate, 4) + little(rate * frame, 4) +
                       little(frame, 2) + little(8 * width, 2);
  if (floats) format += little(0, 2);  // no extension, which formats other than PCM state
  std::string fact = floats ? "fact" + little(4, 4) + little(data / frame, 4) : "";
  const std::uint64_t size = 4 + 8 + format.size() + fact.size() + 8 + data + data % 2;
  return "RIFF" + little(size, 4) + "WAVEfmt " + little(format.size(), 4) + format + fact + "data" + little(data, 4);
}

}  // namespace

void write_wav(const std::string& path, const ArrayView& samples, std::int64_t sample_rate, WavFormat format) {
  const std::size_t rank = samples.shape.size();
  if (samples.dtype != DType::F32 || (rank != 1 && rank != 2))
    throw Error("write_wav", str_cat("samples are f32 [channels, frames] or [frames], not ", name(samples.dtype),
                                     " with ", rank, " axes"));
  const std::int64_t channels = rank == 2 ? samples.shape[0] : 1, frames = samples.shape[rank - 1];
  if (sample_rate < 1 || sample_rate > 0xFFFFFFFF)
    throw Error("write_wav", str_cat("a sample rate of ", sample_rate, " Hz"));
  if (channels < 1 || channels > 0xFFFF)
    throw Error("write_wav", str_cat(channels, " channels: a file has 1 to 65535"));
  const bool floats = format == WavFormat::Float32;
  const std::uint64_t width = floats ? 4 : 2, most = 0xFFFFFF00;
  if (static_cast<std::uint64_t>(frames) > most / (static_cast<std::uint64_t>(channels) * width) ||
      static_cast<std::uint64_t>(channels) * width > 0xFFFF)
    throw Error("write_wav", str_cat(channels, " channels of ", frames, " samples are too much for a WAV file"));
  const std::uint64_t data = static_cast<std::uint64_t>(channels * frames) * width;
  io::AtomicFile file("write_wav", path);
  file.write(
      header(static_cast<std::uint64_t>(channels), static_cast<std::uint64_t>(sample_rate), width, data, floats));
  std::string block;
  const auto flush = [&] { file.write(block), block.clear(); };
  for (std::int64_t k = 0; k < frames; ++k) {
    for (std::int64_t c = 0; c < channels; ++c) {
      float v;
      std::memcpy(&v, samples.bytes.data() + static_cast<std::size_t>(c * frames + k) * sizeof v, sizeof v);
      std::uint32_t bits;
      std::memcpy(&bits, &v, sizeof bits);
      block += floats ? little(bits, 4) : little(static_cast<std::uint16_t>(rounded(v, path)), 2);
    }
    if (block.size() > 1u << 16) flush();
  }
  flush();
  if (data % 2) file.write(std::string_view("\0", 1));
  file.commit();
}

}  // namespace lc
