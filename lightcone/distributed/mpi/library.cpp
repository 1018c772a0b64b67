#include "lightcone/distributed/mpi/library.h"

#include <array>

#include "lightcone/base/error.h"

namespace lc::distributed {

std::string mpi_failure(const char* call, int code) {
  if (code == MPI_SUCCESS) return "";
  std::array<char, MPI_MAX_ERROR_STRING + 1> text{};
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) return str_cat(call, ": error ", code);
  return str_cat(call, ": ", std::string_view(text.data(), static_cast<std::size_t>(length)));
}

bool mpi_is_running() {
  int begun = 0, ended = 0;
  MPI_Initialized(&begun), MPI_Finalized(&ended);
  return begun && !ended;
}

Library::Library() {
  int begun = 0, ended = 0, level = MPI_THREAD_SINGLE;
  MPI_Finalized(&ended);
  if (ended) throw Error("mpi_ranks", "MPI has been finalised in this process, and cannot begin again");
  MPI_Initialized(&begun);
  if (begun) {
    MPI_Query_thread(&level);
  } else if (const auto why =
                 mpi_failure("MPI_Init_thread", MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level));
             !why.empty()) {
    throw Error("mpi_ranks", why);
  }
  if (level < MPI_THREAD_SERIALIZED) {
    if (!begun) MPI_Finalize();
    throw Error("mpi_ranks",
                "MPI is initialised for one thread, and kernels run in others: initialise it by "
                "MPI_Init_thread with MPI_THREAD_SERIALIZED, or leave that to mpi_ranks()");
  }
  ours_ = !begun;
}

Library::~Library() {
  if (ours_ && mpi_is_running()) MPI_Finalize();
}

std::shared_ptr<Library> Library::get() {
  static std::mutex one;
  static std::weak_ptr<Library> known;
  const std::lock_guard lock(one);
  std::shared_ptr<Library> library = known.lock();
  if (!library) known = library = std::shared_ptr<Library>(new Library);
  return library;
}

}  // namespace lc::distributed
