#include "lightcone/distributed/mpi/library.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <thread>

#include "lightcone/base/error.h"
#include "lightcone/distributed/launcher.h"

namespace lc::distributed {
namespace {

constexpr std::chrono::seconds kTurn(2);

}  // namespace

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

// MPI's main thread begins MPI and ends it, as the standard wants of one thread. Both calls wait for all other ranks,
// and for one that was stopped for ever; this thread is then left to them, with what they use.
class Library::MainThread {
 public:
  explicit MainThread(double timeout_s) : timeout_(timeout_s) {
    thread_ = std::thread([shared = shared_] { work(*shared); });
    std::unique_lock lock(shared_->mutex);
    if (!reaches(lock, State::Running)) {
      thread_.detach();
      lock.unlock();
      // Ranks have not heard of each other. The lowest one speaks first, and the launcher ends the others with it.
      std::this_thread::sleep_for(kTurn * std::min(Launcher::of_this_process().rank, 2));
      throw Error("mpi_ranks", str_cat("not all ranks began MPI within ", timeout_s, " s"));
    }
    if (shared_->failure.empty()) return;
    lock.unlock();
    thread_.join();
    throw Error("mpi_ranks", shared_->failure);
  }
  MainThread(const MainThread&) = delete;
  MainThread& operator=(const MainThread&) = delete;
  ~MainThread() {
    if (!thread_.joinable()) return;
    std::unique_lock lock(shared_->mutex);
    shared_->state = State::Ending;
    shared_->changed.notify_all();
    const bool ended = reaches(lock, State::Ended);
    lock.unlock();
    if (ended) thread_.join();
    else thread_.detach();
  }

 private:
  enum class State : std::uint8_t { Beginning, Running, Ending, Ended };
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    State state = State::Beginning;
    std::string failure;
  };
  static void work(Shared& s) {
    int level = MPI_THREAD_SINGLE;
    const auto why = mpi_failure("MPI_Init_thread", MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level));
    std::unique_lock lock(s.mutex);
    s.failure = why, s.state = State::Running;
    s.changed.notify_all();
    if (!why.empty()) return;
    s.changed.wait(lock, [&] { return s.state == State::Ending; });
    lock.unlock();
    if (mpi_is_running()) MPI_Finalize();
    lock.lock();
    s.state = State::Ended;
    s.changed.notify_all();
  }
  bool reaches(std::unique_lock<std::mutex>& lock, State state) {
    return shared_->changed.wait_for(lock, std::chrono::duration<double>(timeout_),
                                     [&] { return shared_->state >= state; });
  }

  double timeout_;
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  std::thread thread_;
};

Library::Library(double timeout_s) {
  int begun = 0, ended = 0, level = MPI_THREAD_SINGLE;
  MPI_Finalized(&ended);
  if (ended) throw Error("mpi_ranks", "MPI has been finalised in this process, and cannot begin again");
  MPI_Initialized(&begun);
  if (!begun) ours_ = std::make_unique<MainThread>(timeout_s);
  MPI_Query_thread(&level);
  if (level < MPI_THREAD_SERIALIZED)
    throw Error("mpi_ranks",
                "MPI is initialised for one thread, and kernels run in others: initialise it by "
                "MPI_Init_thread with MPI_THREAD_SERIALIZED, or leave that to mpi_ranks()");
}

Library::~Library() = default;

std::shared_ptr<Library> Library::get(double timeout_s) {
  static std::mutex one;
  static std::weak_ptr<Library> known;
  static std::string never_began;  // MPI_Init cannot be called twice
  const std::lock_guard lock(one);
  std::shared_ptr<Library> library = known.lock();
  if (library) return library;
  if (!never_began.empty()) throw Error("mpi_ranks", never_began);
  try {
    known = library = std::shared_ptr<Library>(new Library(timeout_s));
  } catch (const Error& e) {
    never_began = e.problem();
    throw;
  }
  return library;
}

}  // namespace lc::distributed
