// One process of the C compiler: text in, a shared object out, and no file but in memory.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "lightcone/cache/descriptor.h"

namespace lc::backends::cpu {

// A file in memory with this content. Its number is none of those a program's standard streams have, so that giving
// it another number in a child process never overwrites a third. CompilerUnfit when the system has none to give.
cache::Descriptor memory_file(std::string_view content);

class CompilerProcess {
 public:
  // The text arrives on the standard input; the object is written to kTarget, which `args` must name. The first of
  // them is the program. CompilerUnfit when it cannot be started.
  static constexpr const char* kTarget = "/proc/self/fd/3";
  CompilerProcess(const std::vector<std::string>& args, std::string_view text);
  CompilerProcess(const CompilerProcess&) = delete;
  CompilerProcess& operator=(const CompilerProcess&) = delete;
  ~CompilerProcess();  // waits
  // The shared object. CompilerUnfit, with the compiler's own first words, when there is none, or only a part.
  std::string finish();

 private:
  int wait();

  std::string program_;
  cache::Descriptor in_, out_, words_;
  pid_t pid_ = -1;
};

// Do the compiler's words name a line of the text it was given?
bool speaks_of_text(std::string_view words);

}  // namespace lc::backends::cpu
