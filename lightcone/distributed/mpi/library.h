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
  // Returns the one that lives, or initialises MPI. Throws Error if MPI cannot be used by several threads in turn, has
  // been finalised, or does not begin within the time-out: MPI_Init waits for all ranks for ever.
  static std::shared_ptr<Library> get(double timeout_s);
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library();
  // MPI_THREAD_SERIALIZED: whoever calls MPI holds this.
  std::mutex mutex;

 private:
  class MainThread;
  explicit Library(double timeout_s);
  std::unique_ptr<MainThread> ours_;  // null: the program began MPI itself
};

bool mpi_is_running();  // neither before its beginning nor after its end

}  // namespace lc::distributed
