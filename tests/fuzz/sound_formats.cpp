#include "sound_formats.h"

#include <cstdint>
#include <vector>

#include "zip_writer.h"

namespace fuzz {
namespace {

std::string noise(Mutator& l, std::size_t n) {
  std::string s(n, 0);
  for (char& c : s) c = static_cast<char>(l.draw(l.draw(2) ? 256 : 2));
  return s;
}
std::string resized(Mutator& l, std::string s) {
  if (l.lies()) s.resize(l.draw(2) ? l.draw(s.size() + 1) : s.size() + 1 + l.draw(100));
  return s;
}

std::string riff_chunk(Mutator& l, const std::string& id, const std::string& content) {
  const std::string stated = made::little(l.number(content.size()), 4);
  return l.word(id) + stated + resized(l, content) + std::string(l.lies() ? 1 : content.size() % 2, '\0');
}

// Bits, the most significant first.
class Bits {
 public:
  void put(std::uint64_t v, int count) {
    for (int k = count; k-- > 0;) {
      if (used_ == 0) bytes_ += '\0';
      if (k < 64 && v >> k & 1) bytes_.back() = static_cast<char>(bytes_.back() | 0x80 >> used_);
      used_ = (used_ + 1) % 8;
    }
  }
  void align() { used_ = 0; }
  std::string& bytes() { return bytes_; }

 private:
  std::string bytes_;
  int used_ = 0;
};
std::uint64_t checksum(const std::string& s, int width, unsigned polynomial) {
  unsigned v = 0;
  for (const char c : s) {
    v ^= static_cast<unsigned>(static_cast<unsigned char>(c)) << (width - 8);
    for (int k = 0; k < 8; ++k) v = v << 1 ^ (v >> (width - 1) & 1 ? polynomial : 0);
    v &= (1u << width) - 1;
  }
  return v;
}

// A subframe of `count` samples of `bits` bits. Differences from fixed predictors are in one Rice partition.
void subframe(Mutator& l, Bits& b, std::size_t count, int bits) {
  const std::uint64_t kind = l.draw(3), order = kind == 2 ? l.draw(std::min<std::size_t>(count, 5)) : 0;
  std::vector<std::int64_t> left(count);
  for (std::int64_t& v : left) v = static_cast<std::int64_t>(l.draw(101)) - 50;
  const auto sample = [&](std::size_t k) { b.put(static_cast<std::uint64_t>(left[k]), bits); };
  b.put(l.number(0), 1), b.put(l.number(kind == 2 ? 8 + order : kind), 6), b.put(l.number(0), 1);
  for (std::size_t k = 0; k < (kind == 0 ? 1 : kind == 1 ? count : order); ++k) sample(k);
  if (kind != 2) return;
  for (std::uint64_t i = 0; i < order; ++i)
    for (std::size_t k = count - 1; k > i; --k) left[k] -= left[k - 1];
  b.put(l.number(0), 2), b.put(l.number(0), 4);  // Rice codes, one partition
  const std::uint64_t parameter = 3 + l.draw(5);
  b.put(l.number(parameter), 4);
  for (std::size_t k = static_cast<std::size_t>(order); k < count; ++k) {
    const auto folded = static_cast<std::uint64_t>(left[k] < 0 ? -2 * left[k] - 1 : 2 * left[k]);
    for (std::uint64_t zeros = l.number(folded >> parameter) % 5000; zeros > 0; --zeros) b.put(0, 1);
    b.put(1, 1), b.put(folded, static_cast<int>(parameter));
  }
}

}  // namespace

std::string make_wav(Mutator& l) {
  static const std::vector<std::pair<unsigned, unsigned>> kKinds{{1, 8},  {1, 16}, {1, 24}, {1, 32},
                                                                 {3, 32}, {3, 64}, {6, 8},  {7, 8}};
  const auto [tag, bits] = kKinds[l.draw(kKinds.size())];
  const std::uint64_t channels = 1 + l.draw(4), frame = channels * bits / 8, rate = 1 + l.draw(96000),
                      frames = l.draw(200);
  const bool extended = l.draw(2), big = l.draw(4) == 0;
  std::string format = made::little(l.number(extended ? 0xFFFE : tag), 2) + made::little(l.number(channels), 2) +
                       made::little(l.number(rate), 4) + made::little(l.number(rate * frame), 4) +
                       made::little(l.number(frame), 2) + made::little(l.number(bits), 2);
  if (extended)
    format += made::little(l.number(22), 2) + made::little(l.number(bits), 2) + made::little(l.number(0), 4) +
              made::little(l.number(tag), 2) + l.word(std::string("\0\0\0\0\x10\0\x80\0\0\xAA\0\x38\x9B\x71", 14));
  std::string data = noise(l, frames * frame), chunks;
  if (big)
    chunks += riff_chunk(l, "ds64",
                         made::little(0, 8) + made::little(l.number(data.size()), 8) + made::little(frames, 8) +
                             made::little(l.number(0), 4));
  const auto other = [&] { return l.draw(2) ? riff_chunk(l, "LIST", noise(l, l.draw(20))) : std::string(); };
  chunks += other() + riff_chunk(l, "fmt ", format) + other();
  if (big || l.draw(8) == 0) chunks += l.word("data") + made::little(l.number(0xFFFFFFFF), 4) + resized(l, data);
  else chunks += riff_chunk(l, "data", data) + other();
  return resized(
      l, l.word(big ? "RF64" : "RIFF") + made::little(l.number(4 + chunks.size()), 4) + l.word("WAVE") + chunks);
}

std::string make_flac(Mutator& l) {
  static const int kBits[] = {8, 12, 16, 20, 24};
  static const std::uint64_t kBitCodes[] = {1, 2, 4, 5, 6};
  const std::size_t depth = l.draw(5), frames = 1 + l.count(l.draw(5)), count = 1 + l.draw(300),
                    channels = 1 + l.draw(8);
  Bits head;  // STREAMINFO
  head.put(l.number(std::max<std::size_t>(count, 16)), 16), head.put(l.number(std::max<std::size_t>(count, 16)), 16);
  head.put(l.number(0), 24), head.put(l.number(0), 24), head.put(l.number(44100), 20),
      head.put(l.number(channels - 1), 3);
  head.put(l.number(static_cast<std::uint64_t>(kBits[depth]) - 1), 5);
  head.put(l.draw(4) ? l.number(count * frames) : l.number(0), 36);
  std::string md5(16, '\0');  // none
  if (l.lies()) md5 = noise(l, 16);
  const bool more = l.draw(2);
  std::string s =
      l.word("fLaC") + made::big(l.number(more ? 0 : 0x80), 1) + made::big(l.number(34), 3) + head.bytes() + md5;
  if (more) {
    const std::string padding = noise(l, l.draw(40));
    s += made::big(l.number(0x81), 1) + made::big(l.number(padding.size()), 3) + resized(l, padding);
  }
  for (std::size_t f = 0; f < frames; ++f) {
    Bits b;
    b.put(l.number(0x3FFE), 14), b.put(l.number(0), 1), b.put(l.number(0), 1), b.put(l.number(7), 4),
        b.put(l.number(9), 4);
    b.put(l.number(channels - 1), 4), b.put(l.number(kBitCodes[depth]), 3), b.put(l.number(0), 1),
        b.put(l.number(f), 8);
    b.put(l.number(count - 1), 16);
    b.put(l.number(checksum(b.bytes(), 8, 0x07)), 8);
    for (std::size_t c = 0; c < channels; ++c) subframe(l, b, count, kBits[depth]);
    b.align();
    b.put(l.number(checksum(b.bytes(), 16, 0x8005)), 16);
    s += b.bytes();
  }
  return resized(l, s);
}

}  // namespace fuzz
