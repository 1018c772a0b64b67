#include "lightcone/distributed/mpi/mpi.h"

#include <limits>
#include <mutex>
#include <new>
#include <vector>

#include "lightcone/base/error.h"
#include "lightcone/distributed/mpi/meeting.h"
#include "lightcone/distributed/mpi/traffic.h"

namespace lc {
namespace {

using distributed::Meeting;
using distributed::Traffic;

// What messages under way may still be written to stays, and with it MPI, when the process ends, too: MPI_Finalize
// would wait for them.
struct Remains {
  std::mutex mutex;
  std::vector<std::unique_ptr<Traffic>> all;
};
Remains& remains() {
  static auto& never_destroyed = *new Remains;
  return never_destroyed;
}

struct EndOfProcess {
  ~EndOfProcess() {
    for (const auto& t : remains().all) t->say_farewell();
  }
};

void keep(std::unique_ptr<Traffic> traffic) {
  const std::lock_guard lock(remains().mutex);
  remains().all.push_back(std::move(traffic));
  static const EndOfProcess end;
}

class MpiRank final : public Communicator {
 public:
  explicit MpiRank(const MpiOptions& o) : traffic_(std::make_unique<Traffic>(o)) {}
  ~MpiRank() override {
    if (!traffic_->leave()) keep(std::move(traffic_));
  }
  int rank() const override { return traffic_->rank(); }
  int size() const override { return traffic_->size(); }
  std::string name() const override { return "MPI"; }
  bool fail(const std::string& why) override { return traffic_->fail_and_ask(why); }
  void run(const Collective& c, const void* in, void* out) override {
    const Piece one{in, out, c.n};
    run_together(c, {&one, 1});
  }
  void run_together(const Collective& c, std::span<const Piece> pieces) override {
    try {
      Meeting(*traffic_, c, pieces).run();
    } catch (const std::bad_alloc&) {
      traffic_->fail(str_cat("rank ", rank(), " has no memory left"));
      throw;
    }
  }

 private:
  std::unique_ptr<Traffic> traffic_;
};

}  // namespace

std::shared_ptr<Communicator> mpi_ranks(const MpiOptions& o) {
  for (const double s : {o.timeout_s, o.start_timeout_s})
    if (!(s > 0)) throw Error("mpi_ranks", str_cat("a time-out of ", s, " s is none"));
  for (const std::size_t bytes : {o.message_bytes, o.network_message_bytes})
    if (bytes < 1 || bytes > static_cast<std::size_t>(std::numeric_limits<int>::max()))
      throw Error("mpi_ranks", str_cat("messages of ", bytes, " bytes: they have 1 to 2147483647"));
  return std::make_shared<MpiRank>(o);
}

}  // namespace lc
