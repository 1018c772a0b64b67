// What reading a file may cost: the caller's options, and the account every reader keeps of its memory.
#pragma once

#include <cstddef>
#include <string>

namespace lc {

struct ReadOptions {
  // Weights stay in the mapped file. false: they are read into memory, where nobody can change them or cut them short
  // (which ends a process that has them mapped).
  bool map = true;
  // The most bytes a reader may take for what it makes of a file: tables of tensors, metadata, vocabularies and their
  // indexes, besides the bytes of the file itself. More is an Error. 0: 32 MB, and 16 bytes for each byte that was
  // parsed (headers, JSON, vocabularies: not the tensors' values).
  std::size_t memory = 0;
};

// One account for everything one call reads. A reader takes from it before it allocates, so that a file which lies
// about a size is refused and not believed.
class Budget {
 public:
  static constexpr std::size_t kFloor = 32u << 20, kEachByte = 16;

  explicit Budget(const ReadOptions& o, std::string path) : limit_(o.memory), path_(std::move(path)) {}
  void parsed(std::size_t bytes) { parsed_ += bytes; }  // so much more of the files was, or is about to be, parsed
  void take(std::size_t bytes) { take(1, bytes); }
  void take(std::size_t count, std::size_t each);  // Error when there is not enough left
  std::size_t limit() const { return limit_ ? limit_ : kFloor + kEachByte * parsed_; }
  std::size_t taken() const { return taken_; }
  bool refused() const { return refused_; }  // take() found too little left, once

 private:
  std::size_t limit_, parsed_ = 0, taken_ = 0;
  bool refused_ = false;
  std::string path_;
};

}  // namespace lc
