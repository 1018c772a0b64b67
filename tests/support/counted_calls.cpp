#include "counted_calls.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>

namespace {
std::atomic<long> allocated{0}, locked{0};
}

namespace lc::test {
long allocations() { return allocated; }
long locks() { return locked; }
}  // namespace lc::test

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

void* operator new(std::size_t n) {
  ++allocated;
  if (void* p = std::malloc(n)) return p;
  throw std::bad_alloc();
}
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return ++allocated, std::malloc(n); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

#else

namespace {
template <class F>
F next(const char* name) {
  return reinterpret_cast<F>(::dlsym(RTLD_NEXT, name));
}
}  // namespace

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void* malloc(std::size_t n) { return ++allocated, __libc_malloc(n); }
void* calloc(std::size_t n, std::size_t size) { return ++allocated, __libc_calloc(n, size); }
void* realloc(void* p, std::size_t n) { return ++allocated, __libc_realloc(p, n); }
void* aligned_alloc(std::size_t align, std::size_t n) { return ++allocated, __libc_memalign(align, n); }
int posix_memalign(void** p, std::size_t align, std::size_t n) {
  ++allocated;
  *p = __libc_memalign(align, n);
  return *p ? 0 : ENOMEM;
}
int pthread_mutex_lock(pthread_mutex_t* m) noexcept {
  static const auto real = next<int (*)(pthread_mutex_t*)>("pthread_mutex_lock");
  ++locked;
  return real(m);
}
int pthread_mutex_trylock(pthread_mutex_t* m) noexcept {
  static const auto real = next<int (*)(pthread_mutex_t*)>("pthread_mutex_trylock");
  ++locked;
  return real(m);
}
}

#endif
