#include "lightcone/distributed/mpi/traffic.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <thread>

#include "lightcone/base/error.h"

namespace lc::distributed {
namespace {

// Messages of a rank that has ended may still be under way for so long.
constexpr double kGrace = 0.25;
// The end of a process whose rank failed waits so long for the others to fail, and then so long for them to say so: it
// makes the launcher kill them.
constexpr double kFarewell = 1, kLastWords = 0.25;
// Ranks that fail by themselves at the same time hear of each other within so long.
constexpr double kMoment = 0.1;
// Messages of one flow that are under way at once. More receives than sends: what comes finds its place.
constexpr std::size_t kSends = 32, kReceives = 64;

class Watch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }
  void restart() { begin_ = std::chrono::steady_clock::now(); }
  // Lets others have the processor, but for the first 0.1 ms: for a 16th of the time that was waited so far, and a
  // millisecond at most. (To yield would be to wait for whatever else computes here, for milliseconds.)
  void pause() const {
    const double waited = seconds();
    if (waited > 1e-4) std::this_thread::sleep_for(std::chrono::duration<double>(std::min(waited / 16, 1e-3)));
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// How a wait for messages shares the processor with kernels that run beside it, and with other ranks. It looks again at
// once for as long as messages were seen to come so quickly. Then it sleeps, for so long that several will have come.
class Pace {
 public:
  void after(int messages) {
    if (messages > 0) {
      if (!slept_) attentive_ = std::min(attentive_ * 2, kAttentive);
      if (messages >= kSeveral) sleep_ = std::max(sleep_ / 2, kShortest);
      slept_ = false;
      last_.restart();
      return;
    }
    if (!slept_ && last_.seconds() < attentive_) return;
    if (!slept_) attentive_ /= 4;
    slept_ = true;
    std::this_thread::sleep_for(std::chrono::duration<double>(sleep_));
    sleep_ = std::min(sleep_ * 2, kLongest);
  }

 private:
  static constexpr double kAttentive = 1e-4, kShortest = 2e-5, kLongest = 5e-4;  // seconds
  static constexpr int kSeveral = 8;
  Watch last_;  // since the last message
  double attentive_ = kAttentive, sleep_ = kShortest;
  bool slept_ = false;
};

std::uint64_t name_of_this_machine() {  // FNV-1a
  std::array<char, MPI_MAX_PROCESSOR_NAME> name{};
  int length = 0;
  MPI_Get_processor_name(name.data(), &length);
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (int k = 0; k < length; ++k)
    hash = (hash ^ static_cast<unsigned char>(name[static_cast<std::size_t>(k)])) * 0x100000001b3u;
  return hash;
}

}  // namespace

Flow& Batch::flow(int peer, int tag, bool receives) {
  for (std::size_t k = 0; k < used; ++k)
    if (flows[k].peer == peer && flows[k].tag == tag && flows[k].receives == receives) return flows[k];
  if (used == flows.size()) flows.emplace_back();
  Flow& f = flows[used++];
  f.peer = peer, f.tag = tag, f.receives = receives;
  return f;
}

void Batch::clear() {
  for (Flow& f : flows) f.arrays.clear(), f.next = 0, f.requests = 0;
  requests.clear(), flow_of.clear(), used = 0;
}

Traffic::Traffic(const MpiOptions& o) : library_(Library::get(o.start_timeout_s)), options_(o) {
  const std::lock_guard lock(library_->mutex);
  duplicate_world();
  MPI_Comm_rank(world_, &rank_), MPI_Comm_size(world_, &size_);
  heard_.resize(static_cast<std::size_t>(size_)), when_.resize(heard_.size());
  listen();
}

// Messages of the program's own, and of other communicators, are kept apart. While there is no communicator whose
// errors are returned, those of MPI_COMM_WORLD are, which end the program otherwise.
void Traffic::duplicate_world() {
  MPI_Errhandler before = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  // What MPI writes to outlives this object if it is never done.
  struct Beginning {
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
    std::uint64_t machine = name_of_this_machine();
    std::vector<std::uint64_t> machines;
  };
  auto b = std::make_unique<Beginning>();
  const Watch watch;
  std::string why;
  const auto complete = [&](const char* call, int code) {
    why = mpi_failure(call, code);
    for (int done = 0; why.empty() && !done;) {
      why = mpi_failure("MPI_Test", MPI_Test(&b->request, &done, MPI_STATUS_IGNORE));
      if (why.empty() && !done && watch.seconds() > options_.timeout_s)
        why = str_cat("not all ranks called it within ", options_.timeout_s, " s");
      if (!done) watch.pause();
    }
    return why.empty();
  };
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  b->machines.resize(static_cast<std::size_t>(size));
  if (complete("MPI_Comm_idup", MPI_Comm_idup(MPI_COMM_WORLD, &b->made, &b->request))) {
    MPI_Comm_set_errhandler(b->made, MPI_ERRORS_RETURN);
    complete("MPI_Iallgather",
             MPI_Iallgather(&b->machine, 1, MPI_UINT64_T, b->machines.data(), 1, MPI_UINT64_T, b->made, &b->request));
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, before);
  MPI_Errhandler_free(&before);
  if (why.empty()) {
    world_ = b->made;
    for (const std::uint64_t machine : b->machines)
      message_bytes_.push_back(machine == b->machine
                                   ? options_.message_bytes
                                   : std::min(options_.message_bytes, options_.network_message_bytes));
    return;
  }
  // MPI stays as it is, never to be finalised: another rank may not come there either.
  static auto& given_up = *new std::vector<std::pair<std::unique_ptr<Beginning>, std::shared_ptr<Library>>>;
  given_up.emplace_back(std::move(b), library_);
  throw Error("mpi_ranks", why);
}

void Traffic::send(Batch& b, const void* from, std::size_t bytes, int to, Tag tag) {
  // MPI only reads what it sends.
  pass_on(b, b.flow(to, static_cast<int>(tag), false), static_cast<std::byte*>(const_cast<void*>(from)), bytes);
}
void Traffic::receive(Batch& b, void* to, std::size_t bytes, int from, Tag tag) {
  pass_on(b, b.flow(from, static_cast<int>(tag), true), static_cast<std::byte*>(to), bytes);
}

// Begins as many messages of an array as may be under way; test() begins the others.
void Traffic::pass_on(Batch& b, Flow& f, std::byte* at, std::size_t bytes) {
  if (bytes == 0) return;
  f.arrays.push_back({at, bytes});
  const std::lock_guard lock(library_->mutex);
  while (failure_.empty() && f.has_more() && f.requests < (f.receives ? kReceives : kSends)) {
    b.flow_of.push_back(static_cast<std::size_t>(&f - b.flows.data()));
    ++f.requests;
    post(f, b.requests.emplace_back(MPI_REQUEST_NULL));
  }
}

// Begins the next message of a flow.
void Traffic::post(Flow& f, MPI_Request& request) {
  Flow::Array& a = f.arrays[f.next];
  const std::size_t part = std::min(a.bytes, message_bytes_[static_cast<std::size_t>(f.peer)]);
  const auto n = static_cast<int>(part);
  failure_ = f.receives ? mpi_failure("MPI_Irecv", MPI_Irecv(a.at, n, MPI_BYTE, f.peer, f.tag, world_, &request))
                        : mpi_failure("MPI_Isend", MPI_Isend(a.at, n, MPI_BYTE, f.peer, f.tag, world_, &request));
  a.at += part, a.bytes -= part;
  if (a.bytes == 0) ++f.next;
}

// Returns whether all are done, and how many were this time, or sets failure_.
bool Traffic::test(Batch& b, int& done) {
  indices_.resize(b.requests.size()), statuses_.resize(b.requests.size());
  const int code =
      MPI_Testsome(static_cast<int>(b.requests.size()), b.requests.data(), &done, indices_.data(), statuses_.data());
  for (int k = 0; code == MPI_ERR_IN_STATUS && k < done && failure_.empty(); ++k)
    failure_ = mpi_failure("MPI_Testsome", statuses_[static_cast<std::size_t>(k)].MPI_ERROR);
  if (failure_.empty()) failure_ = mpi_failure("MPI_Testsome", code);
  if (done == MPI_UNDEFINED) done = 0;
  for (int k = 0; k < done && failure_.empty(); ++k) {
    const auto slot = static_cast<std::size_t>(indices_[static_cast<std::size_t>(k)]);
    if (Flow& f = b.flows[b.flow_of[slot]]; f.has_more()) post(f, b.requests[slot]);
  }
  return std::ranges::all_of(b.requests, [](MPI_Request r) { return r == MPI_REQUEST_NULL; });
}

bool Traffic::wait(Batch& b, Patience patience) {
  Pace pace;
  for (Watch watch; failure_.empty();) {
    int done = 0;
    {
      const std::lock_guard lock(library_->mutex);
      if (test(b, done)) break;
      if (done > 0 && patience == Patience::EachMessage) watch.restart();
      hear();
      if (failure_.empty()) failure_ = who_is_missing(b, watch.seconds());
    }
    pace.after(done);
  }
  if (!failure_.empty()) return false;
  b.clear();
  return true;
}

std::string Traffic::who_is_missing(const Batch& b, double waited) const {
  const auto now = std::chrono::steady_clock::now();
  for (std::size_t k = 0; k < b.requests.size(); ++k) {
    if (b.requests[k] == MPI_REQUEST_NULL) continue;
    const auto peer = static_cast<std::size_t>(b.flows[b.flow_of[k]].peer);
    if (heard_[peer] != News::Nothing && std::chrono::duration<double>(now - when_[peer]).count() > kGrace)
      return str_cat("rank ", peer, " has ended");
    if (waited > options_.timeout_s) return str_cat("rank ", peer, " did not come within ", options_.timeout_s, " s");
  }
  return "";
}

// ---- notes: a rank tells all others once how it ended ---------------------------------------------------------------

void Traffic::listen() {
  if (notes_ == size_ - 1) return;
  const int code =
      MPI_Irecv(&incoming_, sizeof(Note), MPI_BYTE, MPI_ANY_SOURCE, static_cast<int>(Tag::Note), world_, &listening_);
  if (failure_.empty()) failure_ = mpi_failure("MPI_Irecv", code);
}

void Traffic::hear() {
  while (listening_ != MPI_REQUEST_NULL) {
    int there = 0;
    MPI_Status from;
    const int code = MPI_Test(&listening_, &there, &from);
    if (code != MPI_SUCCESS && failure_.empty()) failure_ = mpi_failure("MPI_Test", code);
    if (code != MPI_SUCCESS || !there) return;
    const auto peer = static_cast<std::size_t>(from.MPI_SOURCE);
    heard_[peer] = incoming_.news, when_[peer] = std::chrono::steady_clock::now();
    ++notes_;
    incoming_.text.back() = 0;
    const bool failed = incoming_.news == News::Failed || incoming_.news == News::Followed;
    if (failed && failure_.empty()) failure_ = incoming_.text.data(), followed_ = true;
    listen();
  }
}

void Traffic::tell(News news, const std::string& text) {
  if (told_) return;
  told_ = true;
  outgoing_.news = news;
  std::memcpy(outgoing_.text.data(), text.data(), std::min(text.size(), outgoing_.text.size() - 1));
  for (int to = 0; to < size_; ++to) {
    if (to == rank_) continue;
    const Flow& f = told_to_.flow(to, static_cast<int>(Tag::Note), false);
    told_to_.flow_of.push_back(static_cast<std::size_t>(&f - told_to_.flows.data()));
    MPI_Isend(&outgoing_, sizeof(Note), MPI_BYTE, to, static_cast<int>(Tag::Note), world_,
              &told_to_.requests.emplace_back(MPI_REQUEST_NULL));
  }
}

void Traffic::cancel(Batch& b) {
  for (std::size_t k = 0; k < b.requests.size(); ++k)
    if (b.flows[b.flow_of[k]].receives && b.requests[k] != MPI_REQUEST_NULL)
      MPI_Cancel(&b.requests[k]), MPI_Request_free(&b.requests[k]);  // Open MPI cancels none twice
}

// Receives that are cancelled write no more. If half of a message is there, it cannot be cancelled; its rest would be
// written by a later call of MPI, and this communicator makes none but those that tell the others.
void Traffic::fail(const std::string& why) {
  if (failure_.empty()) failure_ = why;
  const std::lock_guard lock(library_->mutex);
  cancel(headers), cancel(data);
  tell(followed_ ? News::Followed : News::Failed, failure_);
}

bool Traffic::fail_and_ask(const std::string& why) {
  {
    const std::lock_guard lock(library_->mutex);
    hear();
  }
  fail(why);
  for (const Watch watch; !followed_ && watch.seconds() < kMoment; watch.pause()) {
    const std::lock_guard lock(library_->mutex);
    int done = 0;
    if (!told_all_) told_all_ = test(told_to_, done);
    hear();
    for (int lower = 0; lower < rank_; ++lower) followed_ |= heard_[static_cast<std::size_t>(lower)] == News::Failed;
  }
  return !followed_;
}

bool Traffic::exchange_notes(News news) {
  tell(news, failure_);
  int done = 0;
  if (!told_all_) told_all_ = test(told_to_, done);
  hear();
  return told_all_ && notes_ == size_ - 1;
}

bool Traffic::leave() {
  if (!mpi_is_running()) return true;
  bool done = false;
  for (const Watch watch; !done && failure_.empty() && watch.seconds() < options_.timeout_s; watch.pause()) {
    const std::lock_guard lock(library_->mutex);
    done = exchange_notes(News::Ended);
  }
  // If any rank failed, none finalises MPI: each has heard of it, or has waited in vain.
  if (!done || !failure_.empty()) return false;
  const std::lock_guard lock(library_->mutex);
  MPI_Comm_free(&world_);
  return true;
}

void Traffic::say_farewell() {
  if (!mpi_is_running()) return;
  bool done = false;
  for (const Watch watch; !done && watch.seconds() < kFarewell; watch.pause()) {
    const std::lock_guard lock(library_->mutex);
    done = exchange_notes(News::Failed);
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(kLastWords));
}

}  // namespace lc::distributed
