#include "lightcone/backends/cuda/staging.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace lc::backends::cuda {
namespace {

constexpr std::size_t kSlot = 1u << 20;  // long enough for the bus, short enough to overlap
constexpr std::size_t kPieceAlignment = 256;

}  // namespace

Staging::Slot::Slot(const Context& c) : context(c), done(c) {
  void* p = nullptr;
  context.check(context.api().allocate_host(&p, kSlot, 0), "allocate memory of the host for copies");
  data = static_cast<std::byte*>(p);
}
Staging::Slot::~Slot() {
  context.quietly([&](const api::Driver& a) { return a.free_host(data); });
}

void Staging::copy_in(api::Address to, const std::byte* from, std::size_t bytes) {
  while (bytes) {
    const std::size_t n = put(to, from, bytes);
    to += n, from += n, bytes -= n;
  }
}

// Copies the first piece into the current slot, after the bytes that are already there, and returns its length.
std::size_t Staging::put(api::Address to, const std::byte* from, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Slot>* slot = &in_[current_];
  if (*slot && (*slot)->used + std::min(bytes, kSlot / 8) > kSlot) {
    current_ = (current_ + 1) % in_.size();
    slot = &in_[current_];
    if (*slot && (*slot)->used) {
      (*slot)->done.wait();
      (*slot)->used = 0;
    }
  }
  if (!*slot) *slot = std::make_unique<Slot>(stream_.context());
  Slot& s = **slot;
  const std::size_t n = std::min(bytes, kSlot - s.used);
  std::byte* const at = s.data + s.used;
  std::memcpy(at, from, n);
  try {
    stream_.ask("copy to the device", [&](const api::Driver& a, api::Stream* stream) {
      const api::Result r = a.copy_in(to, at, n, stream);
      return r == api::Result::Success ? a.record_event(s.done.get(), stream) : r;
    });
  } catch (...) {
    stream_.wait_quietly();  // it may be in transfer, and no event marks its end
    throw;
  }
  s.used = std::min((s.used + n + kPieceAlignment - 1) / kPieceAlignment * kPieceAlignment, kSlot);
  return n;
}

// A slot for one copy out.
class Staging::Borrowed {
 public:
  explicit Borrowed(Staging& from) : from_(from) {
    {
      const std::lock_guard lock(from_.mutex_);
      if (!from_.out_.empty()) {
        slot_ = std::move(from_.out_.back());
        from_.out_.pop_back();
      }
    }
    if (!slot_) slot_ = std::make_unique<Slot>(from_.stream_.context());
  }
  ~Borrowed() {
    if (pending_) from_.stream_.wait_quietly();
    const std::lock_guard lock(from_.mutex_);
    try {
      from_.out_.push_back(std::move(slot_));
    } catch (const std::bad_alloc&) {  // the slot is freed
    }
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

  void ask(api::Address from, std::size_t bytes) {
    pending_ = bytes;
    from_.stream_.ask("copy from the device", [&](const api::Driver& a, api::Stream* stream) {
      const api::Result r = a.copy_out(slot_->data, from, bytes, stream);
      return r == api::Result::Success ? a.record_event(slot_->done.get(), stream) : r;
    });
  }
  std::byte* take(std::byte* to) {
    if (!pending_) return to;
    slot_->done.wait();
    std::memcpy(to, slot_->data, pending_);
    return to + std::exchange(pending_, 0);
  }

 private:
  Staging& from_;
  std::unique_ptr<Slot> slot_;
  std::size_t pending_ = 0;  // bytes in transfer
};

void Staging::copy_out(std::byte* to, api::Address from, std::size_t bytes) {
  if (!bytes) return;
  Borrowed first(*this);
  if (bytes <= kSlot) {
    first.ask(from, bytes);
    first.take(to);
    return;
  }
  Borrowed second(*this);
  Borrowed* slots[] = {&first, &second};
  for (std::size_t done = 0, k = 0; done < bytes; k ^= 1) {
    to = slots[k]->take(to);  // the piece before the previous one
    const std::size_t n = std::min(bytes - done, kSlot);
    slots[k]->ask(from + done, n);
    done += n;
  }
  const std::size_t last = bytes % kSlot == 0 ? bytes / kSlot - 1 : bytes / kSlot;  // index of the last piece
  to = slots[(last + 1) % 2]->take(to);
  slots[last % 2]->take(to);
}

}  // namespace lc::backends::cuda
