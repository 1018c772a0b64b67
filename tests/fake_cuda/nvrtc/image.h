// A "cubin" of this library: a shared object behind a seal, by which a damaged one is known before any of it is loaded.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "driver/codes.h"
#include "shim/kernel_interface.h"

namespace fake_cuda {

// Which processor instructions objects are compiled with: a cache of them may be carried to another machine.
const char* instruction_set_flag();

std::string seal(const std::string& object, int compute_capability);

// Bytes of static shared memory by kernel, out of the object's symbols.
std::map<std::string, unsigned> shared_bytes(const std::string& object, const std::vector<std::string>& kernels);

// A loaded image.
class Library {
 public:
  // An image has no length but what it says. The result is empty unless `code` is kSuccess.
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

}  // namespace fake_cuda
