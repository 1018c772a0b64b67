// How often this program asked for memory and took locks, all threads of it: malloc and its relatives and the mutexes
// of pthreads are interposed by counted_calls.cpp, which a test links (tests/CMakeLists.txt).
#pragma once

namespace lc::test {

// A sanitizer has malloc already: there operator new alone is counted, and no lock.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

long allocations();
long locks();

}  // namespace lc::test
