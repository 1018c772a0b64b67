#include "lightcone/device/arena.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "lightcone/base/error.h"
#include "lightcone/device/plan.h"

namespace lc {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 46;
constexpr std::size_t kEnd = std::numeric_limits<std::size_t>::max();  // the end of a block that is never freed
// settle() accepts a plan within this factor of the peak of live bytes, and does not compare the lifetimes of more
// blocks than kMostCompared.
constexpr double kGoodEnough = 1.01;
constexpr std::size_t kMostCompared = 12000;

// A best-fit allocator: takes the smallest free piece that fits, and otherwise grows at the end.
class BestFit {
 public:
  std::size_t take(std::size_t bytes) {
    const auto fit = by_size_.lower_bound(bytes);
    if (fit == by_size_.end()) return grow(bytes);
    const std::size_t at = fit->second, size = fit->first;
    erase(at, size);
    if (size > bytes) insert(at + bytes, size - bytes);
    return at;
  }
  void give(std::size_t at, std::size_t bytes) {
    auto next = by_place_.lower_bound(at);
    if (next != by_place_.end() && next->first == at + bytes) {
      bytes += next->second;
      erase(next->first, next->second);
    }
    next = by_place_.lower_bound(at);
    if (next != by_place_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == at) {
        at = before->first;
        bytes += before->second;
        erase(before->first, before->second);
      }
    }
    insert(at, bytes);
  }
  std::size_t end() const { return end_; }

 private:
  std::size_t grow(std::size_t bytes) {
    std::size_t at = end_;
    if (!by_place_.empty()) {  // extend a free piece that touches the end
      const auto last = std::prev(by_place_.end());
      if (last->first + last->second == end_) {
        at = last->first;
        erase(last->first, last->second);
      }
    }
    end_ = at + bytes;
    return at;
  }
  void insert(std::size_t at, std::size_t size) {
    by_place_[at] = size;
    by_size_.emplace(size, at);
  }
  void erase(std::size_t at, std::size_t size) {
    by_place_.erase(at);
    for (auto [it, end] = by_size_.equal_range(size); it != end; ++it)
      if (it->second == at) {
        by_size_.erase(it);
        return;
      }
  }
  std::size_t end_ = 0;
  std::map<std::size_t, std::size_t> by_place_;
  std::multimap<std::size_t, std::size_t> by_size_;
};

}  // namespace

std::size_t Arena::take(std::size_t bytes) {
  bytes = aligned(std::max<std::size_t>(bytes, 1));
  alive_ += bytes;
  most_alive_ = std::max(most_alive_, alive_);
  if (alive_ > kMostBytes)
    throw Error("plan", "the values in flight may need more than 2^46 bytes; give the symbols smaller bounds");
  blocks_.push_back({bytes, events_++, kEnd});
  return blocks_.size() - 1;
}

void Arena::give(std::size_t block) {
  blocks_[block].end = events_++;
  alive_ -= blocks_[block].bytes;
}

// Replays the run with the best-fit allocator.
std::vector<std::size_t> Arena::replayed(std::size_t& bytes) const {
  std::vector<std::size_t> at(blocks_.size()), given(events_, kEnd), taken(events_, kEnd);
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    taken[blocks_[b].begin] = b;
    if (blocks_[b].end != kEnd) given[blocks_[b].end] = b;
  }
  BestFit memory;
  for (std::size_t e = 0; e < events_; ++e) {
    if (taken[e] != kEnd) at[taken[e]] = memory.take(blocks_[taken[e]].bytes);
    if (given[e] != kEnd) memory.give(at[given[e]], blocks_[given[e]].bytes);
  }
  bytes = memory.end();
  return at;
}

// Places the largest block first, each at the lowest offset that is free during its whole lifetime.
std::vector<std::size_t> Arena::largest_first(std::size_t& bytes) const {
  std::vector<std::size_t> order(blocks_.size()), at(blocks_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return blocks_[a].bytes > blocks_[b].bytes; });
  std::vector<std::size_t> placed;  // by offset
  bytes = 0;
  for (const std::size_t b : order) {
    const Block& block = blocks_[b];
    std::size_t place = 0;
    for (const std::size_t p : placed) {
      const Block& other = blocks_[p];
      if (other.begin >= block.end || block.begin >= other.end) continue;
      if (at[p] >= place + block.bytes) break;
      place = std::max(place, at[p] + other.bytes);
    }
    at[b] = place;
    bytes = std::max(bytes, place + block.bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), place,
                                   [&](std::size_t offset, std::size_t p) { return offset < at[p]; }),
                  b);
  }
  return at;
}

// Replaying is cheap and mostly good enough. It fragments when small values reuse the memory of large freed scratch;
// placing whole lifetimes avoids that.
std::vector<std::size_t> Arena::settle() {
  std::vector<std::size_t> at = replayed(bytes_);
  const bool good = static_cast<double>(bytes_) <= kGoodEnough * static_cast<double>(most_alive_);
  if (good || blocks_.size() > kMostCompared) return at;
  std::size_t other_bytes = 0;
  std::vector<std::size_t> other = largest_first(other_bytes);
  if (other_bytes >= bytes_) return at;
  bytes_ = other_bytes;
  return other;
}

}  // namespace lc
