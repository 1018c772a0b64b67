// The processor parameters that schedules use. Defaults come from what the processor reports; `lightcone tune` measures
// them; they can also be given by hand, also for another machine. Results never depend on them, to the last bit: they
// decide the order of memory accesses and the width of instructions, but never the order of additions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lc {

struct Machine {
  std::string processor = "";  // vendor, family, model and stepping; a saved profile is used if this matches

  // Bytes of a core's L1 and L2 caches and of the last-level cache shared by cores (0: none).
  std::int64_t l1 = 32 << 10, l2 = 1 << 20, l3 = 0;

  std::int64_t vector = 64;  // bytes of the widest vectors in generated loops, if the instruction set has them

  // Results of more bytes use non-temporal stores: together with their operands they do not stay in any cache until
  // they are read.
  std::int64_t stream = 16 << 20;
  // Prefetch distances in bytes: within a row or stream (0: no prefetch), and between a row that is computed from the
  // caches and the row fetched meanwhile (0: the next row).
  std::int64_t fetch = 4096, fetch_rows = 8192;
  // The cache level to fetch into. If L1 is too small for a row, its results and the next row, it is L2, and every loop
  // over a row prefetches the next one, because a core may drop prefetches that come too fast.
  std::int64_t fetch_level = 1;
  // Number of memory streams that a core reads in parallel for weights, 1 or 4. The hardware prefetchers of some
  // processors reach more bandwidth with one stream, those of others with several.
  std::int64_t streams = 1;
  // Software-pipeline the loops over rows that come from memory (codegen/schedule/pipeline_rows.cpp).
  bool pipeline = true;

  // Rates that `lightcone tune` measured with all cores, in bytes and operations per second; 0: not measured. No
  // decision uses them: they serve reports and predictions.
  double read_bandwidth = 0, copy_bandwidth = 0, fma_rate = 0;

  friend bool operator==(const Machine&, const Machine&) = default;
};

// Returns a profile as text with one `name value` pair per line.
std::string str(const Machine& m);
// Parses such a text. Throws Error for a malformed text or a value out of range.
Machine parse_machine(std::string_view text);

}  // namespace lc
