#include "lightcone/io/checkpoints/torch/tensors.h"

#include <algorithm>
#include <cstring>

#include "lightcone/io/printable.h"
#include "lightcone/io/shape.h"

namespace lc::io::torch {
namespace {

// True if the elements follow each other in row-major order. Strides of axes of one element mean nothing.
bool contiguous(const TensorRecord& t) {
  std::int64_t step = 1;
  for (std::size_t i = t.shape.size(); i-- > 0;) {
    if (t.shape[i] != 1 && t.strides[i] != step) return false;
    step *= t.shape[i];
  }
  return true;
}

// The number of elements of a storage up to the last one of a tensor; nullopt if it is larger than any storage.
std::optional<std::uint64_t> reach(const TensorRecord& t) {
  std::int64_t last = t.offset;
  for (std::size_t i = 0; i < t.shape.size(); ++i) {
    std::int64_t span = 0;
    if (__builtin_mul_overflow(t.shape[i] - 1, t.strides[i], &span) || __builtin_add_overflow(last, span, &last))
      return std::nullopt;
  }
  return static_cast<std::uint64_t>(last) + 1;
}

// Copies elements of N bytes, or of any number, from a strided tensor into row-major order.
void gather(const TensorRecord& t, const std::byte* from, std::byte* to, std::size_t elements) {
  const std::size_t size = t.type->bytes, rank = t.shape.size();
  std::vector<std::int64_t> at(rank, 0);
  std::int64_t place = t.offset;
  for (std::size_t n = 0; n < elements; ++n, to += size) {
    std::memcpy(to, from + static_cast<std::size_t>(place) * size, size);
    for (std::size_t i = rank; i-- > 0;) {
      place += t.strides[i];
      if (++at[i] < t.shape[i]) break;
      place -= at[i] * t.strides[i];
      at[i] = 0;
    }
  }
}

void reverse_words(std::span<std::byte> bytes, std::size_t word) {
  for (std::size_t i = 0; i + word <= bytes.size(); i += word) std::reverse(bytes.data() + i, bytes.data() + i + word);
}

}  // namespace

void TensorReader::wrong(std::string_view path, std::string_view what) const {
  throw file_error("load", v_.where(), "tensor ", in_quotes(path), " ", what);
}

// Memory for a copy. Each part of the file that is copied counts once as bytes that were parsed.
std::span<std::byte> TensorReader::memory(std::size_t bytes, const Part* from) {
  if (from && !copied_.contains(from)) {
    v_.budget().take(64);
    copied_.insert(from);
    v_.budget().parsed(from->bytes.size());
  }
  v_.budget().take(bytes + 64);
  auto owner = std::make_shared<std::vector<std::byte>>(bytes);
  const std::span<std::byte> room(*owner);
  append(owners_, std::shared_ptr<const void>(std::move(owner)), v_.budget());
  return room;
}

TensorReader::Stored TensorReader::storage(const StorageRecord& s, std::string_view path) {
  if (s.is_in_pickle) return {s.in_pickle, s.big_endian, nullptr};
  const auto found = opened_.storages.find(s.key);
  if (found == opened_.storages.end())
    wrong(path, str_cat("has its values in the storage ", in_quotes(s.key), ", which is not there"));
  const Part& part = found->second;
  std::span<const std::byte> bytes = part.bytes;
  if (part.deflated) {
    auto [at, is_new] = unpacked_.try_emplace(&part);
    if (is_new) {
      auto copy = std::make_shared<const std::vector<std::byte>>(
          unpacked(part, str_cat(v_.where(), ", storage ", in_quotes(s.key)), v_.budget()));
      at->second = *copy;
      v_.budget().take(128);
      append(owners_, std::shared_ptr<const void>(std::move(copy)), v_.budget());
    }
    bytes = at->second;
  }
  std::uint64_t begin = 0, size = 0;
  if (__builtin_mul_overflow(static_cast<std::uint64_t>(s.first), s.type->bytes, &begin) ||
      __builtin_mul_overflow(static_cast<std::uint64_t>(s.elements), s.type->bytes, &size) || begin > bytes.size() ||
      size > bytes.size() - begin)
    wrong(path, str_cat("has its values in the storage ", in_quotes(s.key), " of ", s.elements, " elements from ",
                        s.first, ", which has ", bytes.size(), " bytes"));
  return {bytes.subspan(begin, size), opened_.big_endian, &part};
}

// The elements in row-major order and in this machine's byte order. They are within the storage.
std::span<const std::byte> TensorReader::in_order(const TensorRecord& t, const Stored& s, std::size_t elements) {
  const std::size_t size = t.type->bytes, bytes = elements * size;
  const bool in_place = contiguous(t) && s.bytes.data() != nullptr;
  const std::byte* first = s.bytes.data() + (in_place ? static_cast<std::size_t>(t.offset) * size : 0);
  const bool in_pickle = v_.storages[t.storage].is_in_pickle, swapped = s.big_endian && t.type->word > 1;
  if (in_place && !swapped && !in_pickle && reinterpret_cast<std::uintptr_t>(first) % t.type->word == 0)
    return {first, bytes};
  const std::span<std::byte> copy = memory(bytes, s.part);
  if (in_place) std::memcpy(copy.data(), first, bytes);
  else gather(t, s.bytes.data(), copy.data(), elements);
  if (swapped) reverse_words(copy, t.type->word);
  return copy;
}

const TorchTensor& TensorReader::read(std::size_t number, std::string_view path) {
  if (done_.empty()) {
    v_.budget().take(v_.tensors.size(), sizeof(done_[0]));
    done_.resize(v_.tensors.size());
  }
  std::optional<TorchTensor>& done = done_[number];
  if (done) return *done;
  const TensorRecord& t = v_.tensors[number];
  const auto elements = elements_of(t.shape);
  std::uint64_t bytes = 0;
  if (!elements || __builtin_mul_overflow(static_cast<std::uint64_t>(*elements), t.type->bytes, &bytes))
    wrong(path, "is larger than any file");
  TorchTensor made{t.shape, t.type->name, t.type->dtype, {}};
  const Stored s = storage(v_.storages[t.storage], path);
  if (*elements > 0) {
    const auto end = reach(t);
    const std::uint64_t has = s.bytes.size() / t.type->bytes;
    if (!end || *end > has)
      wrong(path, str_cat("leaves its storage, which has ", has, " elements, by its offset, shape or strides"));
    made.bytes = in_order(t, s, static_cast<std::size_t>(*elements));
  }
  done = std::move(made);
  return *done;
}

}  // namespace lc::io::torch
