#include "lightcone/distributed/mpi/mpi.h"

#include <limits>
#include <new>
#include <vector>

#include "lightcone/base/error.h"
#include "lightcone/distributed/mpi/meeting.h"
#include "lightcone/distributed/mpi/traffic.h"

namespace lc {
namespace {

using distributed::Meeting;
using distributed::Traffic;

// What messages under way may still be written to stays, and with it MPI, until the process ends: MPI_Finalize would
// wait for them.
struct Remains {
  std::vector<std::unique_ptr<Traffic>> all;
  ~Remains() {
    for (auto& t : all) t.release()->say_farewell();
  }
};

class MpiRank final : public Communicator {
 public:
  explicit MpiRank(const MpiOptions& o) : traffic_(std::make_unique<Traffic>(o)) {}
  ~MpiRank() override {
    static Remains remains;
    if (!traffic_->leave()) remains.all.push_back(std::move(traffic_));
  }
  int rank() const override { return traffic_->rank(); }
  int size() const override { return traffic_->size(); }
  std::string name() const override { return "MPI"; }
  void run(const Collective& c, const void* in, void* out) override {
    try {
      Meeting(*traffic_, c, in, out).run();
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
  if (!(o.timeout_s > 0)) throw Error("mpi_ranks", str_cat("a time-out of ", o.timeout_s, " s is none"));
  if (o.message_bytes < 1 || o.message_bytes > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    throw Error("mpi_ranks", str_cat("messages of ", o.message_bytes, " bytes: they have 1 to 2147483647"));
  return std::make_shared<MpiRank>(o);
}

}  // namespace lc
