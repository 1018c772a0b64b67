#include "lightcone/cache/sha256.h"

#include <dlfcn.h>

#include <array>
#include <charconv>

#include "lightcone/base/error.h"

namespace lc::cache {
namespace {

struct Functions {
  void (*init)(void* state) = nullptr;
  void (*update)(void* state, const void* data, std::size_t size) = nullptr;
  void (*final)(unsigned char* digest, void* state) = nullptr;
};

std::string hex_of(const Functions& f, void* state) {
  std::array<unsigned char, 32> digest;
  f.final(digest.data(), state);
  std::string s;
  for (const unsigned char byte : digest) {
    s += "0123456789abcdef"[byte >> 4];
    s += "0123456789abcdef"[byte & 15];
  }
  return s;
}

// Checks the functions with the standard's example.
bool right(const Functions& f) {
  alignas(16) unsigned char state[256];
  f.init(state);
  f.update(state, "abc", 3);
  return hex_of(f, state) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
}

// libmd is small and part of every Debian system (dpkg needs it); OpenSSL is available nearly everywhere else. Their
// functions have the same parameters. Their return values are ignored.
Functions load() {
  struct Library {
    const char *file, *init, *update, *final;
  };
  constexpr Library libraries[] = {{"libmd.so.0", "SHA256Init", "SHA256Update", "SHA256Final"},
                                   {"libcrypto.so.3", "SHA256_Init", "SHA256_Update", "SHA256_Final"},
                                   {"libcrypto.so.1.1", "SHA256_Init", "SHA256_Update", "SHA256_Final"}};
  for (const Library& l : libraries) {
    void* handle = ::dlopen(l.file, RTLD_NOW | RTLD_LOCAL);
    if (!handle) continue;
    Functions f;
    const auto get = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(handle, name));
      return function != nullptr;
    };
    if (get(f.init, l.init) && get(f.update, l.update) && get(f.final, l.final) && right(f)) return f;
    ::dlclose(handle);
  }
  return {};
}

const Functions& functions() {
  static const Functions f = load();
  return f;
}

}  // namespace

bool Sha256::available() { return functions().init != nullptr; }

Sha256::Sha256() {
  check(available(), "SHA-256 without a library for it");
  functions().init(state_);
}

Sha256& Sha256::add(std::string_view part) {
  std::array<char, 24> length;
  char* const end = std::to_chars(length.data(), length.data() + length.size() - 1, part.size()).ptr;
  *end = ':';
  functions().update(state_, length.data(), static_cast<std::size_t>(end + 1 - length.data()));
  functions().update(state_, part.data(), part.size());
  return *this;
}

std::string Sha256::hex() { return hex_of(functions(), state_); }

}  // namespace lc::cache
