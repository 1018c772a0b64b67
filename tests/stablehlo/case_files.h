// Writes programs with arguments and expected results as files, which xla_check.py reads.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "lightcone/lightcone.h"

namespace lc::test {

// Writes a .npy file, version 1.0: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
template <class T>
void save(const std::filesystem::path& to, const std::vector<std::int64_t>& shape, const std::vector<T>& values) {
  const char* kind = std::is_floating_point_v<T> ? "f8" : "i8";
  std::string header = str_cat("{'descr': '<", kind, "', 'fortran_order': False, 'shape': (");
  for (const std::int64_t n : shape) header += str_cat(n, ", ");
  header += "), }";
  header.append(63 - (header.size() + 10) % 64, ' ');
  header += '\n';
  std::ofstream file(to, std::ios::binary);
  file << "\x93NUMPY" << '\x01' << '\0' << static_cast<char>(header.size() % 256)
       << static_cast<char>(header.size() / 256) << header;
  file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
}
inline void save(const std::filesystem::path& to, const Value& v) {
  if (is_float(v.dtype)) save(to, v.shape, v.f);
  else save(to, v.shape, v.i);
}

struct Case {
  std::string program;
  std::vector<std::pair<std::string, Value>> in = {};  // with StableHLO's element types
  struct Result {
    std::string element, name;
    Value want;  // with its error bounds
  };
  std::vector<Result> out = {};
};

// Writes a folder: program.mlir, in0.npy ..., want0.npy ..., error0.npy ... (the error bounds), and types.txt, the
// element types of arguments and results. Floating numbers are stored as f64, integers as i64.
inline void write_case(const std::filesystem::path& folder, const Case& c) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "program.mlir") << c.program;
  std::ofstream types(folder / "types.txt");
  for (std::size_t k = 0; k < c.in.size(); ++k) {
    types << "in " << c.in[k].first << '\n';
    save(folder / str_cat("in", k, ".npy"), c.in[k].second);
  }
  for (std::size_t k = 0; k < c.out.size(); ++k) {
    const Value& v = c.out[k].want;
    types << "out " << c.out[k].element << ' ' << c.out[k].name << '\n';
    save(folder / str_cat("want", k, ".npy"), v);
    save(folder / str_cat("error", k, ".npy"), v.shape, v.error.empty() ? std::vector<double>(v.size(), 0.0) : v.error);
  }
}

}  // namespace lc::test
