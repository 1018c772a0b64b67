#include "memory.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> now{0}, peak{0};

void* counted_or_null(std::size_t n, std::size_t alignment) noexcept {
  void* p = alignment <= alignof(std::max_align_t)
                ? std::malloc(n ? n : 1)
                : std::aligned_alloc(alignment, (n + alignment - 1) / alignment * alignment);
  if (!p) return nullptr;
  const std::size_t have = now += malloc_usable_size(p);
  for (std::size_t most = peak; have > most && !peak.compare_exchange_weak(most, have);) {
  }
  return p;
}
void* counted_alloc(std::size_t n, std::size_t alignment) {
  void* p = counted_or_null(n, alignment);
  if (!p) throw std::bad_alloc();
  return p;
}
void counted_free(void* p) {
  if (p) now -= malloc_usable_size(p);
  std::free(p);
}

}  // namespace

namespace counted {
std::size_t live() { return now; }
std::size_t most() { return peak; }
void reset_most() { peak = now.load(); }
}  // namespace counted

void* operator new(std::size_t n) { return counted_alloc(n, 0); }
void* operator new[](std::size_t n) { return counted_alloc(n, 0); }
void* operator new(std::size_t n, std::align_val_t a) { return counted_alloc(n, static_cast<std::size_t>(a)); }
void* operator new[](std::size_t n, std::align_val_t a) { return counted_alloc(n, static_cast<std::size_t>(a)); }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return counted_or_null(n, 0); }
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept { return counted_or_null(n, 0); }
void operator delete(void* p) noexcept { counted_free(p); }
void operator delete[](void* p) noexcept { counted_free(p); }
void operator delete(void* p, std::size_t) noexcept { counted_free(p); }
void operator delete[](void* p, std::size_t) noexcept { counted_free(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { counted_free(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { counted_free(p); }
void operator delete(void* p, std::align_val_t) noexcept { counted_free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { counted_free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { counted_free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { counted_free(p); }
