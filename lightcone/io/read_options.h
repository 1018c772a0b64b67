// Limits of the cost of reading a file: the caller's options, and the account that each reader keeps of its memory.
#pragma once

#include <cstddef>
#include <string>

namespace lc {

// Options of all readers.
struct ReadOptions {
  // true: weights are read from the mapped file. false: the file is read into memory, where no other process can change
  // or truncate it (truncation of a mapped file ends the process).
  bool map = true;
  // The maximum memory in bytes for the results of a reader (tables of tensors, metadata, vocabularies and their
  // indexes), besides the bytes of the file itself. Beyond it, readers throw Error. 0: 32 MB plus 16 bytes per parsed
  // byte (headers, JSON, vocabularies; not the values of tensors).
  std::size_t memory = 0;
};

// The account of one call that reads. A reader takes from it before it allocates, so that a file that states a false
// size is refused.
class Budget {
 public:
  static constexpr std::size_t kFloor = 32u << 20, kEachByte = 16;

  explicit Budget(const ReadOptions& o, std::string path) : limit_(o.memory), path_(std::move(path)) {}
  // Counts bytes of the files that were parsed, or are about to be.
  void parsed(std::size_t bytes) { parsed_ += bytes; }
  void take(std::size_t bytes) { take(1, bytes); }
  // Takes memory from the account. Throws Error if not enough is left.
  void take(std::size_t count, std::size_t each);
  std::size_t limit() const { return limit_ ? limit_ : kFloor + kEachByte * parsed_; }  // in bytes
  std::size_t taken() const { return taken_; }                                          // in bytes
  bool refused() const { return refused_; }                                             // true after take() threw

 private:
  std::size_t limit_, parsed_ = 0, taken_ = 0;
  bool refused_ = false;
  std::string path_;
};

}  // namespace lc
