#include "lightcone/io/data/byte_stream.h"

#include <algorithm>
#include <cstring>

#include <zlib.h>

#include "lightcone/io/printable.h"

namespace lc::io {
namespace {

// The longest match of deflate, 258 bytes, takes at least two bits, so a byte never unpacks to more than this.
constexpr std::uint64_t kMostOfAByte = 1032;
constexpr std::size_t kMostAtOnce = 1u << 30;  // zlib has 32-bit counts

}  // namespace

ByteStream::ByteStream(std::span<const std::byte> bytes, Packing packing, std::string where)
    : rest_(bytes), all_(bytes.size()), packing_(packing), where_(std::move(where)) {
  if (packing == Packing::None) return;
  z_ = std::make_unique<z_stream_s>();
  constexpr int kWindow = 15, kWithGzipHeader = 16;
  if (::inflateInit2(z_.get(), packing == Packing::Gzip ? kWindow + kWithGzipHeader : -kWindow) != Z_OK) {
    z_.reset();
    throw file_error("load", where_, "there is no memory to inflate it");
  }
}

ByteStream::~ByteStream() {
  if (z_) ::inflateEnd(z_.get());
}

void ByteStream::read(std::span<std::byte> to) {
  while (!to.empty()) {
    const std::size_t n = some(to);
    if (n == 0) throw file_error("load", where_, "truncated: at least ", to.size(), " bytes are missing");
    crc_ = static_cast<std::uint32_t>(::crc32_z(crc_, reinterpret_cast<const Bytef*>(to.data()), n));
    done_ += n;
    to = to.subspan(n);
  }
}

void ByteStream::expect_room(std::uint64_t bytes, std::string_view what) const {
  std::uint64_t most = rest_.size();
  if (z_ && __builtin_mul_overflow(std::uint64_t{all_}, kMostOfAByte, &most)) return;
  if (bytes > most)
    throw file_error("load", where_, what, " needs ", bytes, " bytes, and ",
                     z_ ? str_cat(all_, " packed bytes hold no more than ", most) : str_cat("only ", most, " follow"));
}

void ByteStream::expect_end() {
  std::byte one;
  if (z_ ? some({&one, 1}) != 0 : !rest_.empty())
    throw file_error("load", where_,
                     z_ ? std::string("it unpacks to more bytes than it says")
                        : str_cat(rest_.size(), " bytes too many for what it says"));
  if (!rest_.empty()) throw file_error("load", where_, rest_.size(), " bytes follow the packed ones");
}

std::size_t ByteStream::some(std::span<std::byte> to) {
  if (z_) return inflate_some(to);
  const std::size_t n = std::min(to.size(), rest_.size());
  if (n) std::memcpy(to.data(), rest_.data(), n);
  rest_ = rest_.subspan(n);
  return n;
}

std::size_t ByteStream::inflate_some(std::span<std::byte> to) {
  while (!ended_) {
    const auto in = static_cast<uInt>(std::min(rest_.size(), kMostAtOnce)),
               out = static_cast<uInt>(std::min(to.size(), kMostAtOnce));
    z_->next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(rest_.data()));
    z_->avail_in = in;
    z_->next_out = reinterpret_cast<Bytef*>(to.data());
    z_->avail_out = out;
    const int status = ::inflate(z_.get(), Z_NO_FLUSH);
    rest_ = rest_.subspan(in - z_->avail_in);
    const std::size_t n = out - z_->avail_out;
    if (status == Z_STREAM_END) ended_ = !next_member();
    else if (status == Z_MEM_ERROR) throw file_error("load", where_, "there is no memory to inflate it");
    else if (status == Z_BUF_ERROR || (status == Z_OK && n == 0 && rest_.empty()))
      throw file_error("load", where_, "truncated: the packed bytes end in the middle");
    else if (status != Z_OK)
      throw file_error("load", where_, "damaged, it cannot be inflated: ", z_->msg ? z_->msg : "no deflated data");
    if (n) return n;
  }
  return 0;
}

// A gzip file may consist of several members.
bool ByteStream::next_member() {
  const bool another =
      packing_ == Packing::Gzip && rest_.size() >= 2 && rest_[0] == std::byte{0x1f} && rest_[1] == std::byte{0x8b};
  if (another) ::inflateReset(z_.get());
  return another;
}

}  // namespace lc::io
