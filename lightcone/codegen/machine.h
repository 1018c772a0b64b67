// What a schedule needs to know of a processor, as a value: defaults by what the processor says of itself, measured by
// `lightcone tune`, or given by hand, for another machine too. Results never depend on it, to the last bit: it decides
// in which order memory is touched, and by how wide instructions, but never in which order numbers are added.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lc {

struct Machine {
  std::string processor = "";  // vendor, family, model and stepping: a kept profile is used where this is the same

  // Bytes of a core's first and second-level caches, and of the last level, which cores share (0: there is none).
  std::int64_t l1 = 32 << 10, l2 = 1 << 20, l3 = 0;

  std::int64_t vector = 64;  // bytes of the widest vectors that generated loops use, if the instruction set has them

  // Results of more bytes are stored past the caches: with what they are computed from, no cache holds them until they
  // are read.
  std::int64_t stream = 16 << 20;
  // How far ahead memory is fetched, in bytes: within a row or a stream (0: not at all), and between a row and the one
  // that is fetched while it is computed from the caches (0: the next one).
  std::int64_t fetch = 4096, fetch_rows = 8192;
  // The cache that it comes into. Where the first one is too small for a row, what is made of it and the next one, it
  // is the second, and every loop over a row asks for the next one: a core may drop what it is asked for in a hurry.
  std::int64_t fetch_level = 1;
  // Runs of memory that a core reads side by side where it streams weights, 1 or 4: some processors' own fetching ahead
  // gets more out of memory from one, some from several.
  std::int64_t streams = 1;
  // Rows that memory holds pass through their loops as through a pipeline (codegen/pipeline_rows.cpp).
  bool pipeline = true;

  // What `lightcone tune` measured with all cores, in bytes and operations a second; 0: not measured. No choice reads
  // them: they are for people and for predictions.
  double read_bandwidth = 0, copy_bandwidth = 0, fma_rate = 0;

  friend bool operator==(const Machine&, const Machine&) = default;
};

// A profile as text, a `name value` pair a line, and back; an Error for what is no such text or out of range.
std::string str(const Machine& m);
Machine parse_machine(std::string_view text);

}  // namespace lc
