// Library: MPI of this process, initialised and finalised once.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include <mpi.h>

namespace lc::distributed {

// "MPI_Isend: MPI_ERR_RANK: invalid rank", or nothing if the call succeeded.
std::string mpi_failure(const char* call, int code);

class Library {
 public:
  // Returns the one that lives, or initialises MPI. Throws Error if MPI cannot be used by several threads in turn, or
  // has been finalised.
  static std::shared_ptr<Library> get();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library();
  // MPI_THREAD_SERIALIZED: whoever calls MPI holds this.
  std::mutex mutex;

 private:
  Library();
  bool ours_ = false;
};

bool mpi_is_running();  // neither before its beginning nor after its end

}  // namespace lc::distributed
