// NVIDIA's NCCL, loaded when it is needed.
#pragma once

#include <memory>
#include <string>

#include "lightcone/distributed/nccl/api.h"

namespace lc::distributed::nccl {

class Library {
 public:
  // Loads NCCL from `path`; "": $LIGHTCONE_NCCL, else libnccl.so.2, as the system finds it or in the folders of a CUDA
  // toolkit. Each file is loaded once a process and stays. Throws Error if there is none or it is older than 2.18.
  static const Library& open(const std::string& path = "");

  const Api& api() const { return api_; }
  std::string name() const;  // "NCCL 2.27.3"
  // Returns a result in words, with what the library says of its latest error.
  std::string words(Result r) const;

 private:
  Api api_;
  int version_ = 0;
};

}  // namespace lc::distributed::nccl
