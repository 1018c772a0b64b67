// Exchange: the calls of one rank's collectives, shared by its composites and their kernels. Background: the thread in
// which they run while kernels do.
#pragma once

#include <array>
#include <condition_variable>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lightcone/core/attributes.h"
#include "lightcone/core/composite.h"
#include "lightcone/device/kernel.h"
#include "lightcone/distributed/communicator.h"
#include "lightcone/distributed/mesh.h"

namespace lc::distributed {

// What a node's attributes say, for one rank.
struct Call {
  Collective::Operation operation = Collective::Operation::AllReduce;
  ReduceOp reduction = ReduceOp::Sum;
  std::vector<int> group;
  int place = 0, root = 0;
  int only = -1;              // AllReduce: the one place that gets the sum, the others get zeros; -1: all
  std::vector<int> source;    // Permute: for each place
  std::string axes;           // names of the mesh axes, joined by +
  std::uint64_t message = 0;  // Send: its number, the same on both ranks
};

// What a kernel of a collective exchanges, for those who plan.
struct Exchanged {
  Call call;
  DType type = DType::F32;
  std::vector<Dim> elements;  // Collective::n of each array
  // A kernel that begins the exchange, while others run until one waits for it; the wait's operand 0 is what began it.
  enum class Half : std::uint8_t { Both, Start, Wait } half = Half::Both;
  bool received() const { return call.operation == Collective::Operation::Send && call.place == 1; }
};
class ExchangingKernel {
 public:
  virtual ~ExchangingKernel() = default;
  virtual Exchanged exchanged() const = 0;
};
// The kernel of a node that exchanges numbers; null for all others.
const ExchangingKernel* exchanging(const Node& n);

// Collectives as kernels of a device: a communicator whose ranks have devices that exchange arrays by themselves makes
// them, and the collectives' composites offer them to compilers.
class DeviceCollectives {
 public:
  virtual ~DeviceCollectives() = default;
  // Returns the device's name (KernelRule::device): "cuda".
  virtual std::string device() const = 0;
  // Returns the kernel of a collective of rows of `elements`, or null if the composite's definition should be computed.
  // Throws Error if the device cannot run the collective.
  // A rank at place 0 of Operation::Send reads operand 0 and gives a byte; at place 1 it gives the elements.
  virtual std::shared_ptr<Kernel> kernel(const Call& c, DType type, const Dim& elements) const = 0;
  // Returns a kernel whose result is operand 0, for Collectives::ordered().
  virtual std::shared_ptr<Kernel> ordered(const Dim& bytes) const = 0;
};

// The operations of one communicator, one after the other. Those that are started run in a thread of their own, in the
// order of their starts, which is the same on all ranks. Nothing is allocated once as many have been under way as ever
// are.
class Background {
 public:
  // Returns that of a communicator, which has one as long as anybody uses it.
  static std::shared_ptr<Background> of(const std::shared_ptr<Communicator>& communicator);
  explicit Background(std::shared_ptr<Communicator> communicator) : communicator_(std::move(communicator)) {}
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  ~Background();

  struct Operation {
    Collective what;  // what its spans show stays until the operation is done
    bool clears;      // the results are zeros: others get the sums
    std::span<const Piece> pieces;
  };
  // Runs the operation in the caller's thread, after all that have been started.
  void run(const Operation& o);
  // Begins it. `key` names it for wait().
  void start(const void* key, const Operation& o);
  // Returns when the operation is done. Throws its Error, after all others have been ended.
  void wait(const void* key);
  // Returns when nothing is under way, and forgets what has not been waited for.
  void finish();

 private:
  struct Job {
    enum class State : std::uint8_t { Free, Queued, Running, Done } state = State::Free;
    const void* key = nullptr;
    std::uint64_t number = 0;  // in the order of starts
    Operation operation;
    std::vector<Piece> pieces;
    std::exception_ptr error;
  };
  void work();
  void perform(const Operation& o);
  Job* first(Job::State state, const void* key = nullptr);
  bool is_idle() { return !first(Job::State::Queued) && !first(Job::State::Running); }

  const std::shared_ptr<Communicator> communicator_;
  std::mutex mutex_;
  std::condition_variable queued_, done_;
  std::vector<std::unique_ptr<Job>> jobs_;
  std::uint64_t numbers_ = 0;
  bool ending_ = false;
  std::thread thread_;
};

class Exchange {
 public:
  Exchange(Mesh mesh, const std::shared_ptr<Communicator>& communicator)
      : mesh_(std::move(mesh)), communicator_(communicator), background_(Background::of(communicator)) {}

  // Reads "axes" (names joined by +), "reduction", "root", "only", "by" and "ring".
  Call call(Collective::Operation operation, const Attributes& a) const;
  Call everybody() const;
  // The attributes of the shift the other way.
  static Attributes reversed(const Attributes& a);
  // True if the ranks of the group have to meet.
  static bool meets(const Call& c);
  void run(const Call& c, DType type, std::span<const Piece> pieces);
  void run(const Call& c, DType type, std::size_t n, const void* in, void* out);
  // The same in two halves (Background).
  void start(const void* key, const Call& c, DType type, std::span<const Piece> pieces);
  void wait(const void* key) { background_->wait(key); }
  void finish() { background_->finish(); }
  // Memory for the pieces of an operation until the next one is run or started.
  std::span<Piece> pieces(std::size_t count);
  std::shared_ptr<const DeviceCollectives> on_device() const { return communicator_->on_device(); }
  // What a message between this rank and another one is, as this one sees it.
  Call message(int other, bool sends, std::uint64_t number) const;
  // Sends elements to a rank, or receives them from it. Ranks number their messages alike.
  void send(int to, std::uint64_t message, DType type, std::size_t n, const void* in);
  void receive(int from, std::uint64_t message, DType type, std::size_t n, void* out);
  // Begins to send; `pair`, this rank and the other, stays until the message is sent.
  void start_send(const void* key, std::span<const int> pair, std::uint64_t message, DType type, std::size_t n,
                  const void* in);
  std::vector<std::size_t> gather(const Call& group, std::size_t number);
  // The composite of each operation on a number of arrays, of which the nodes of graphs are owners.
  std::map<std::pair<Collective::Operation, std::size_t>, std::weak_ptr<const Composite>> composites;
  std::array<std::weak_ptr<const Composite>, 3> messages;  // send, receive, ordered
  int rank() const { return communicator_->rank(); }

 private:
  Background::Operation operation(const Call& c, DType type, std::span<const Piece> pieces);

  Mesh mesh_;
  std::shared_ptr<Communicator> communicator_;
  std::shared_ptr<Background> background_;
  std::vector<Piece> pieces_;
  std::uint64_t operations_ = 0;
};

}  // namespace lc::distributed
