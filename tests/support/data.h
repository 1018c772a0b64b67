// Access to the reference data: paths, file reading and a temporary directory. It shares no code with the library.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "paths.h"

inline std::string data(const std::string& name) { return std::string(paths::kData) + "/" + name; }

#define NEEDS_DATA(name) \
  if (!std::filesystem::exists(data(name))) GTEST_SKIP() << "the reference data " << name << " is not here"

inline std::string slurp(const std::string& path) {
  std::ifstream f(path, std::ios::binary);
  std::ostringstream s;
  s << f.rdbuf();
  return s.str();
}
inline void spit(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

// Reads a .npy file of little-endian f32 in C order, which is all that the reference data has.
inline std::vector<float> npy_f32(const std::string& bytes) {
  const std::size_t header =
      static_cast<unsigned char>(bytes[8]) | static_cast<std::size_t>(static_cast<unsigned char>(bytes[9])) << 8;
  if (bytes.substr(10, header).find("'<f4'") == std::string::npos) throw std::runtime_error("not f32");
  std::vector<float> v((bytes.size() - 10 - header) / 4);
  std::memcpy(v.data(), bytes.data() + 10 + header, v.size() * 4);
  return v;
}

// RAII: a new temporary directory, removed with its content.
struct TempDir {
  std::filesystem::path path;
  TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "lightcone-test-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("mkdtemp");
    path = name;
  }
  ~TempDir() { std::filesystem::remove_all(path); }
  std::string operator/(const std::string& name) const { return (path / name).string(); }
};
