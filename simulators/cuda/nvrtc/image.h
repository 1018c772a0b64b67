// A simulated cubin: a shared object after a checksummed header. A damaged one is detected before any of it is loaded.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "driver/codes.h"
#include "shim/kernel_interface.h"

namespace lc::simulators::cuda {

// Returns the flag of the processor instructions that objects are compiled for, because a cache may be copied to
// another machine.
const char* instruction_set_flag();

std::string seal(const std::string& object, int compute_capability);

// Returns the bytes of static shared memory per kernel, from the object's symbols.
std::map<std::string, unsigned> shared_bytes(const std::string& object, const std::vector<std::string>& kernels);

// A loaded image.
class Library {
 public:
  // Loads an image, whose header states its length. Returns null unless `code` is kSuccess.
  static std::shared_ptr<Library> load(const void* image, int compute_capability, Code& code);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  const LcModule& module() const { return *module_; }
  unsigned shared_bytes(const std::string& kernel) const;
  int compute_capability() const { return compute_capability_; }

 private:
  Library() = default;
  void* handle_ = nullptr;
  const LcModule* module_ = nullptr;
  std::map<std::string, unsigned> shared_;
  int compute_capability_ = 0;
};

}  // namespace lc::simulators::cuda
