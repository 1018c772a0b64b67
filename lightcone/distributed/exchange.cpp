#include "lightcone/distributed/exchange.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <system_error>

#ifdef __linux__
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "lightcone/base/error.h"

namespace lc::distributed {

using Operation = Collective::Operation;

namespace {

std::int64_t integer_or(const Attributes& a, std::string_view name, std::int64_t otherwise) {
  const bool there = std::ranges::any_of(a.entries(), [&](const auto& e) { return e.name == name; });
  return there ? a.integer(name) : otherwise;
}

}  // namespace

const ExchangingKernel* exchanging(const Node& n) {
  return n.op == Op::Kernel ? dynamic_cast<const ExchangingKernel*>(n.kernel.get()) : nullptr;
}

Call Exchange::call(Operation operation, const Attributes& a) const {
  Call c;
  c.operation = operation;
  std::vector<int> axes;
  std::string_view text = a.text("axes");
  c.axes = text;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('+'), text.size());
    axes.push_back(mesh_.axis(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  const int rank = communicator_->rank();
  c.group = mesh_.group(rank, axes);
  c.place = mesh_.place(rank, axes);
  c.reduction = static_cast<ReduceOp>(integer_or(a, "reduction", 0));
  c.root = static_cast<int>(integer_or(a, "root", 0));
  if (operation == Operation::AllReduce) c.only = static_cast<int>(integer_or(a, "only", -1));
  if (operation == Operation::Permute) {
    const auto n = static_cast<int>(c.group.size()), by = static_cast<int>(a.integer("by"));
    for (int k = 0; k < n; ++k) {
      const int from = k - by;
      const bool inside = from >= 0 && from < n;
      c.source.push_back(inside || a.integer("ring") ? (from % n + n) % n : -1);
    }
  }
  return c;
}

Call Exchange::everybody() const {
  Call c;
  c.operation = Operation::AllGather;
  c.group.resize(static_cast<std::size_t>(communicator_->size()));
  std::iota(c.group.begin(), c.group.end(), 0);
  c.place = communicator_->rank();
  return c;
}

Attributes Exchange::reversed(const Attributes& a) {
  std::vector<Attributes::Entry> entries = a.entries();
  for (Attributes::Entry& e : entries)
    if (e.name == "by") e.value = -std::get<std::int64_t>(e.value);
  return Attributes(std::move(entries));
}

bool Exchange::meets(const Call& c) {
  return c.group.size() > 1 || (c.operation == Operation::Permute && c.source[0] < 0);
}

Background::Operation Exchange::operation(const Call& c, DType type, std::span<const Piece> pieces) {
  std::size_t n = 0;
  for (const Piece& p : pieces) n += p.n;
  return {{c.operation, c.reduction, type, n, c.group, c.place, c.root, c.source, ++operations_},
          c.only >= 0 && c.only != c.place,
          pieces};
}

void Exchange::run(const Call& c, DType type, std::span<const Piece> pieces) {
  if (meets(c)) return background_->run(operation(c, type, pieces));
  for (const Piece& p : pieces)
    if (p.n) std::memcpy(p.out, p.in, p.n * size_of(type));
}

void Exchange::run(const Call& c, DType type, std::size_t n, const void* in, void* out) {
  const Piece one{in, out, n};
  run(c, type, {&one, 1});
}

void Exchange::start(const void* key, const Call& c, DType type, std::span<const Piece> pieces) {
  background_->start(key, operation(c, type, pieces));
}

std::span<Piece> Exchange::pieces(std::size_t count) {
  if (pieces_.size() < count) pieces_.resize(count);
  return std::span(pieces_).first(count);
}

Call Exchange::message(int other, bool sends, std::uint64_t number) const {
  const int mine = communicator_->rank();
  Call c;
  c.operation = Operation::Send;
  c.group = sends ? std::vector{mine, other} : std::vector{other, mine};
  c.place = sends ? 0 : 1;
  c.message = number;
  for (int k = 0; k < static_cast<int>(mesh_.axes().size()); ++k)
    if (mesh_.coordinate(mine, k) != mesh_.coordinate(other, k))
      c.axes += (c.axes.empty() ? "" : "+") + mesh_.axes()[static_cast<std::size_t>(k)].name;
  return c;
}

// The numbers of messages differ from those of collectives, which a pipeline's stages count differently.
constexpr std::uint64_t kMessages = std::uint64_t{1} << 62;

void Exchange::send(int to, std::uint64_t message, DType type, std::size_t n, const void* in) {
  const std::array<int, 2> pair{communicator_->rank(), to};
  const Piece one{in, nullptr, n};
  background_->run({{.operation = Operation::Send, .dtype = type, .n = n, .group = pair, .tag = kMessages + message},
                    false,
                    {&one, 1}});
}
void Exchange::start_send(const void* key, std::span<const int> pair, std::uint64_t message, DType type, std::size_t n,
                          const void* in) {
  const Piece one{in, nullptr, n};
  background_->start(key,
                     {{.operation = Operation::Send, .dtype = type, .n = n, .group = pair, .tag = kMessages + message},
                      false,
                      {&one, 1}});
}
void Exchange::receive(int from, std::uint64_t message, DType type, std::size_t n, void* out) {
  const std::array<int, 2> pair{from, communicator_->rank()};
  const Piece one{nullptr, out, n};
  background_->run(
      {{.operation = Operation::Send, .dtype = type, .n = n, .group = pair, .place = 1, .tag = kMessages + message},
       false,
       {&one, 1}});
}

std::vector<std::size_t> Exchange::gather(const Call& group, std::size_t number) {
  const auto mine = static_cast<std::int64_t>(number);
  std::vector<std::int64_t> all(group.group.size());
  run(group, DType::I64, 1, &mine, all.data());
  return {all.begin(), all.end()};
}

namespace {

// Kernels compute on the processor that this thread shares, and messages wait for it. With a short time slice Linux
// (since 6.12) lets it run when it wakes, and not when the kernels' slice of some milliseconds is over. Where that is
// not to be had, all works as before.
void take_short_turns() {
#if defined(__linux__) && defined(SYS_sched_setattr)
  if (::sched_getscheduler(0) != SCHED_OTHER) return;
  struct {  // sched_attr of Linux, in its first length
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime, deadline, period;
  } wanted{
      .size = 48, .policy = 0, .flags = 0, .nice = 0, .priority = 0, .runtime = 100'000, .deadline = 0, .period = 0};
  wanted.nice = ::getpriority(PRIO_PROCESS, 0);  // as it is
  static_cast<void>(::syscall(SYS_sched_setattr, 0, &wanted, 0));
#endif
}

}  // namespace

// ---- the thread in the background -----------------------------------------------------------------------------------

std::shared_ptr<Background> Background::of(const std::shared_ptr<Communicator>& communicator) {
  static std::mutex one;
  static std::vector<std::weak_ptr<Background>> all;
  const std::lock_guard lock(one);
  std::erase_if(all, [](const auto& known) { return known.expired(); });
  for (const auto& known : all)
    if (auto b = known.lock(); b && b->communicator_ == communicator) return b;
  auto b = std::make_shared<Background>(communicator);
  all.push_back(b);
  return b;
}

Background::~Background() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  queued_.notify_all();
  if (thread_.joinable()) thread_.join();
}

// Returns the one that was started first.
Background::Job* Background::first(Job::State state, const void* key) {
  Job* found = nullptr;
  for (const auto& j : jobs_)
    if (j->state == state && (!key || j->key == key) && (!found || j->number < found->number)) found = j.get();
  return found;
}

void Background::perform(const Operation& o) {
  if (o.pieces.size() == 1) communicator_->run(o.what, o.pieces[0].in, o.pieces[0].out);
  else communicator_->run_together(o.what, o.pieces);
  for (const Piece& p : o.pieces)
    if (o.clears && p.n) std::memset(p.out, 0, p.n * size_of(o.what.dtype));
}

void Background::run(const Operation& o) {
  {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return is_idle(); });
  }
  perform(o);
}

void Background::start(const void* key, const Operation& o) {
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable()) try {
      thread_ = std::thread([this] { work(); });
    } catch (const std::system_error& e) {
      throw Error(name(o.what.operation), str_cat("the system has no thread for exchanges: ", e.what()));
    }
  Job* job = first(Job::State::Free);
  if (!job) job = jobs_.emplace_back(std::make_unique<Job>()).get();
  job->pieces.assign(o.pieces.begin(), o.pieces.end());
  job->operation = {o.what, o.clears, job->pieces};
  job->key = key, job->number = ++numbers_, job->state = Job::State::Queued;
  queued_.notify_one();
}

void Background::work() {
  take_short_turns();
  std::unique_lock lock(mutex_);
  for (;;) {
    Job* job = nullptr;
    queued_.wait(lock, [&] { return (job = first(Job::State::Queued)) || ending_; });
    if (!job) return;
    job->state = Job::State::Running;
    lock.unlock();
    std::exception_ptr error;
    try {
      perform(job->operation);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    job->error = std::move(error), job->state = Job::State::Done;
    done_.notify_all();
  }
}

void Background::wait(const void* key) {
  std::exception_ptr error;
  {
    std::unique_lock lock(mutex_);
    Job* job = nullptr;
    done_.wait(lock, [&] {
      return (job = first(Job::State::Done, key)) ||
             !(first(Job::State::Queued, key) || first(Job::State::Running, key));
    });
    check(job != nullptr, "an exchange that is waited for has not been started");
    error = std::exchange(job->error, nullptr);
    job->state = Job::State::Free;
  }
  if (!error) return;
  finish();
  std::rethrow_exception(error);
}

void Background::finish() {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return is_idle(); });
  for (const auto& j : jobs_) j->state = Job::State::Free, j->error = nullptr;
}

}  // namespace lc::distributed
