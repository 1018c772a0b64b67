// Distribution of a range of neighboring items over workers, each of which reads a stream of its own from memory.
//
// A worker's part of the range is the same in every run, so data that its cache still holds is read from there. A
// worker takes half of what is left of its part at a time, so its stream seldom breaks off, or single items where those
// are large. A worker whose part is empty steals from the end of another's. All workers therefore finish at about the
// same time.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace lc::backends::cpu {

// Thread-safe: take() may be called concurrently.
class StealingRanges {
 public:
  StealingRanges() = default;
  // `least` is the smallest number of items worth a task.
  StealingRanges(std::int64_t count, std::int64_t least, int workers) { share_out(count, least, workers); }
  // Begins anew; not while others take().
  void share_out(std::int64_t count, std::int64_t least, int workers) {
    parts_ = static_cast<int>(std::clamp<std::int64_t>((count + least - 1) / least, 1, std::min(workers, kMost)));
    least_ = least;
    for (int i = 0; i < parts_; ++i) parts_of_[i].left = pack(count * i / parts_, count * (i + 1) / parts_);
  }
  // Number of workers that start with a part of their own.
  int parts() const { return parts_; }
  // Takes the next items [first, last) for a worker. Returns false if none are left.
  bool take(int worker, std::int64_t& first, std::int64_t& last) {
    for (int i = 0; i < parts_; ++i)
      if (take_of((worker + i) % parts_, i == 0, false, first, last)) return true;
    return false;
  }
  // Takes one item.
  bool take(int worker, std::int64_t& item) {
    std::int64_t last;
    for (int i = 0; i < parts_; ++i)
      if (take_of((worker + i) % parts_, i == 0, true, item, last)) return true;
    return false;
  }

 private:
  static constexpr int kMost = 64;  // further workers start by stealing
  static constexpr std::uint64_t pack(std::int64_t first, std::int64_t last) {
    return static_cast<std::uint64_t>(first) << 32 | static_cast<std::uint64_t>(last);
  }
  bool take_of(int part, bool own, bool one, std::int64_t& first, std::int64_t& last) {
    const std::atomic_ref<std::uint64_t> left(parts_of_[part].left);
    std::uint64_t seen = left.load(std::memory_order_relaxed);
    for (;;) {
      const auto begin = static_cast<std::int64_t>(seen >> 32), end = static_cast<std::int64_t>(seen & 0xffffffffu);
      if (begin == end) return false;
      const std::int64_t some = one ? 1 : std::min(end - begin, std::max(least_, (end - begin) / 2));
      first = own ? begin : end - some, last = first + some;
      const std::uint64_t rest = own ? pack(last, end) : pack(begin, first);
      if (left.compare_exchange_weak(seen, rest, std::memory_order_relaxed)) return true;
    }
  }
  struct alignas(64) Part {
    std::uint64_t left;
  };
  int parts_ = 0;
  std::int64_t least_ = 1;
  Part parts_of_[kMost];  // only the first parts_ entries are initialized
};

}  // namespace lc::backends::cpu
