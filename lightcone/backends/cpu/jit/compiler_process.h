// A process of the C compiler. Source and object are in-memory files; nothing is written to disk.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "lightcone/cache/descriptor.h"

namespace lc::backends::cpu {

// Creates a file in memory with this content. Its descriptor number is above those of the standard streams, so that
// dup2() in a child process never overwrites another descriptor. Throws CompilerUnfit if the system provides no such
// file.
cache::Descriptor memory_file(std::string_view content);

// A running compiler. It is not thread-safe.
class CompilerProcess {
 public:
  // The path to which the compiler must write the object.
  static constexpr const char* kTarget = "/proc/self/fd/3";
  // Starts args[0] with arguments `args`, which must name kTarget as output, and passes `text` on standard input.
  // Throws CompilerUnfit if the process cannot be started.
  CompilerProcess(const std::vector<std::string>& args, std::string_view text);
  CompilerProcess(const CompilerProcess&) = delete;
  CompilerProcess& operator=(const CompilerProcess&) = delete;
  ~CompilerProcess();  // waits for the process
  // Waits and returns the shared object. Throws CompilerUnfit, with the first part of the compiler's output, if there
  // is no object or only a part of one.
  std::string finish();

 private:
  int wait();

  std::string program_;
  cache::Descriptor in_, out_, words_;
  pid_t pid_ = -1;
};

// Returns whether the compiler's output names a line of the source text.
bool speaks_of_text(std::string_view words);

}  // namespace lc::backends::cpu
