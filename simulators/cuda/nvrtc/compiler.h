// Compiles CUDA C to a sealed shared object with the system's C++ compiler.
#pragma once
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace lc::simulators::cuda {

struct Source {
  std::string text, name;
  std::vector<std::pair<std::string, std::string>> headers;  // name and text
  std::vector<std::pair<std::string, std::string>> macros;   // name and value, defined after the shim
  std::vector<std::string> flags;                            // -I and -std
  int compute_capability = 75;
};

struct Compiled {
  bool right = false;
  std::string image, log;
};

Compiled compile(const Source& source);

// Returns the number of NVRTC programs not destroyed.
std::size_t live_programs();

}  // namespace lc::simulators::cuda
