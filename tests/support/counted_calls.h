// Counts this program's memory allocations and lock acquisitions, by all threads. counted_calls.cpp, which a test links
// (tests/CMakeLists.txt), interposes malloc and its relatives and the pthread mutex functions.
#pragma once

namespace lc::test {

// Sanitizers interpose malloc themselves. With them only operator new is counted, and locks are not.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

long allocations();
long locks();

}  // namespace lc::test
