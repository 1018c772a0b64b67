#include "scheduler/scheduler.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <numeric>
#include <random>
#include <vector>

#include "scheduler/context_switch.h"
#include "scheduler/signal_guard.h"
#include "scheduler/tile_copy.h"

namespace fibers {
namespace {

constexpr unsigned kMostThreads = 1024, kLanes = 32;
constexpr std::size_t kPage = 4096, kStack = 128 << 10, kMostShared = 256 << 10;

struct Copy {
  void* to;
  const void* from;
  unsigned bytes, group;
};

// A thread of the block. A thread that has begun and waits has a stack of its own.
struct Thread {
  Suspended at = nullptr;
  bool begun = false;
  unsigned mask = 0;  // lanes of the exchange it waits in
  void* handed_in = nullptr;
  LcExchange exchange = nullptr;
  unsigned copy_groups = 0;
  const void* phase = nullptr;  // the phase it waits for, or null
  bool waited_for_grid = false;
};

struct Warp {
  unsigned alive = 0, waiting = 0;  // masks of lanes
};

// Threads are numbered within their block. A `rank` is the position of a thread in the order in which threads run.
class Scheduler {
 public:
  Scheduler();
  Outcome run(const LcModule& module, const LcKernel& kernel, void* const* arguments, const Grid& grid);
  unsigned long switches() const { return switches_; }

  void work();  // the main loop of a fiber
  void block_barrier(unsigned place);
  void warp_exchange(unsigned mask, void* mine, LcExchange exchange);
  void full_warp_exchange(void* mine, LcExchange exchange);
  void copy_async(void* to, const void* from, unsigned bytes);
  void copy_commit() { ++threads_[current_].copy_groups; }
  void copy_wait(unsigned groups);
  void phase_begin(void* phase, unsigned arrivals);
  void phase_arrive(void* phase, unsigned bytes);
  void phase_wait(void* phase, unsigned parity);
  void copy_tile(void* to, const void* map, void* phase, unsigned axes, const int* at);
  void wait_for_grid() { threads_[current_].waited_for_grid = true; }
  [[noreturn]] void fault(Fault kind, const std::string& words);
  Suspended recover(int signal, void* address);

 private:
  void prepare(const Grid& grid);
  void set_order(long order, unsigned block);
  void run_block();
  int next_ready() const;
  int next_or_landed();
  Phase& phase_at(void* phase);
  void wake(const void* phase);
  void take(unsigned number);
  void wait();
  void finish();
  bool exchange_if_complete(Warp& warp, const Thread& waiting);
  Suspended idle_fiber();
  void set_ready(unsigned number) { ready_[rank_[number] / 64] |= std::uint64_t(1) << rank_[number] % 64; }
  void set_waiting(unsigned number) { ready_[rank_[number] / 64] &= ~(std::uint64_t(1) << rank_[number] % 64); }
  bool in_shared(const void* p, unsigned bytes) const;
  void describe(Fault kind, const std::string& words);
  void describe_signal();

  LcScheduler interface_{};
  const LcModule* module_ = nullptr;
  const LcKernel* kernel_ = nullptr;
  void* const* arguments_ = nullptr;
  unsigned count_ = 0, current_ = 0, done_ = 0, at_barrier_ = 0, barrier_place_ = 0, dynamic_shared_ = 0;
  std::vector<LcThread> names_;
  std::vector<Thread> threads_;
  std::vector<std::vector<Copy>> copies_;  // by thread
  bool copied_ = false, overlaps_ = false;
  std::vector<TileCopy> tiles_;  // in flight
  std::vector<Warp> warps_;
  std::vector<unsigned> order_, rank_;
  std::uint64_t ready_[kMostThreads / 64]{};
  std::vector<char*> stacks_;
  std::vector<Suspended> idle_;  // fibers without a thread
  Suspended main_ = nullptr, abandoned_ = nullptr;
  char* shared_end_ = nullptr;  // an inaccessible page follows
  Outcome outcome_;
  int signal_ = 0;           // the signal that interrupted a kernel
  void* touched_ = nullptr;  // the address that the kernel accessed
  unsigned long switches_ = 0;
};

Scheduler& scheduler() {
  static Scheduler* const only = new Scheduler;  // never destroyed: static objects may still launch kernels
  return *only;
}

void* map_before_guard(std::size_t bytes) {
  void* p = mmap(nullptr, bytes + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  mprotect(static_cast<char*>(p) + bytes, kPage, PROT_NONE);
  return p;
}

char* new_stack() {
  void* p = mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  mprotect(p, kPage, PROT_NONE);  // guard page: stacks grow down
  return static_cast<char*>(p);
}

Scheduler::Scheduler() {
  interface_.block_barrier = [](unsigned place) { scheduler().block_barrier(place); };
  interface_.warp_exchange = [](unsigned mask, void* mine, LcExchange e) { scheduler().warp_exchange(mask, mine, e); };
  interface_.full_warp_exchange = [](void* mine, LcExchange e) { scheduler().full_warp_exchange(mine, e); };
  interface_.copy_async = [](void* to, const void* from, unsigned n) { scheduler().copy_async(to, from, n); };
  interface_.copy_commit = [] { scheduler().copy_commit(); };
  interface_.copy_wait = [](unsigned groups) { scheduler().copy_wait(groups); };
  interface_.phase_begin = [](void* phase, unsigned n) { scheduler().phase_begin(phase, n); };
  interface_.phase_arrive = [](void* phase, unsigned bytes) { scheduler().phase_arrive(phase, bytes); };
  interface_.phase_wait = [](void* phase, unsigned parity) { scheduler().phase_wait(phase, parity); };
  interface_.copy_tile = [](void* to, const void* map, void* phase, unsigned axes, const int* at) {
    scheduler().copy_tile(to, map, phase, axes, at);
  };
  interface_.wait_for_grid = [] { scheduler().wait_for_grid(); };
  interface_.fault = [](const char* words) { scheduler().fault(Fault::kMisaligned, words); };
  shared_end_ = static_cast<char*>(map_before_guard(kMostShared)) + kMostShared;
  idle_.reserve(kMostThreads + 1);
}

void Scheduler::prepare(const Grid& grid) {
  const LcDim3 size = grid.threads;
  count_ = size.x * size.y * size.z;
  dynamic_shared_ = grid.dynamic_shared;
  overlaps_ = grid.overlaps;
  interface_.block_size = size;
  interface_.grid_size = grid.blocks;
  interface_.dynamic_shared =
      reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(shared_end_ - dynamic_shared_) & ~std::uintptr_t(127));
  names_.resize(count_);
  for (unsigned i = 0; i < count_; ++i)
    names_[i] = {{i % size.x, i / size.x % size.y, i / (size.x * size.y)}, i % kLanes, i / kLanes};
  warps_.resize((count_ + kLanes - 1) / kLanes);
  threads_.resize(count_);
  if (copies_.size() < count_) copies_.resize(count_);
  order_.resize(count_);
  rank_.resize(count_);
}

// Lanes of a warp are consecutive, so that a warp meets after 31 switches.
void Scheduler::set_order(long order, unsigned block) {
  std::iota(order_.begin(), order_.end(), 0u);
  if (order == kReverse) std::reverse(order_.begin(), order_.end());
  if (order != kForward && order != kReverse) {
    std::mt19937 random(static_cast<unsigned>(order) * 7919u + block);
    std::vector<unsigned> warps(warps_.size());
    std::iota(warps.begin(), warps.end(), 0u);
    std::shuffle(warps.begin(), warps.end(), random);
    auto out = order_.begin();
    for (const unsigned warp : warps) {
      const auto first = out;
      for (unsigned i = warp * kLanes; i < std::min(count_, (warp + 1) * kLanes); ++i) *out++ = i;
      std::shuffle(first, out, random);
    }
  }
  for (unsigned r = 0; r < count_; ++r) rank_[order_[r]] = r;
}

Outcome Scheduler::run(const LcModule& module, const LcKernel& kernel, void* const* arguments, const Grid& grid) {
  prepare(grid);
  module_ = &module;
  kernel_ = &kernel;
  arguments_ = arguments;
  *module.scheduler = &interface_;
  outcome_ = {};
  const std::uint64_t blocks = std::uint64_t(grid.blocks.x) * grid.blocks.y * grid.blocks.z;
  const bool shuffled = grid.order != kForward && grid.order != kReverse;
  std::uint64_t step = 1, block = grid.order == kReverse ? blocks - 1 : 0;
  if (shuffled)  // visits every block once: the step has no common factor with the count
    for (step = blocks * 5 / 8 + static_cast<unsigned>(grid.order) % 7 + 1; std::gcd(step, blocks) != 1;) ++step;
  set_order(grid.order, 0);
  const SignalGuard guard([](int signal, void* address) { return scheduler().recover(signal, address); });
  for (std::uint64_t i = 0; i < blocks && outcome_.fault == Fault::kNone; ++i) {
    if (shuffled) set_order(grid.order, static_cast<unsigned>(i));
    const std::uint64_t plane = std::uint64_t(grid.blocks.x) * grid.blocks.y;
    interface_.block_index = {static_cast<unsigned>(block % grid.blocks.x),
                              static_cast<unsigned>(block / grid.blocks.x % grid.blocks.y),
                              static_cast<unsigned>(block / plane)};
    run_block();
    block = grid.order == kReverse ? block - 1 : (block + step) % blocks;
  }
  return std::move(outcome_);
}

void Scheduler::run_block() {
  done_ = at_barrier_ = 0;
  std::fill(threads_.begin(), threads_.end(), Thread());
  if (copied_)
    for (auto& c : copies_) c.clear();
  copied_ = false;
  tiles_.clear();
  for (unsigned w = 0; w < warps_.size(); ++w)
    warps_[w] = {count_ - w * kLanes >= kLanes ? ~0u : (1u << (count_ - w * kLanes)) - 1, 0};
  for (unsigned i = 0; i < kMostThreads / 64; ++i)
    ready_[i] = count_ >= (i + 1) * 64 ? ~std::uint64_t(0)
                : count_ > i * 64      ? (std::uint64_t(1) << (count_ - i * 64)) - 1
                                       : 0;
  if (module_->shared_end != nullptr)
    std::memset(module_->shared_begin, 0xff, static_cast<std::size_t>(module_->shared_end - module_->shared_begin));
  std::memset(interface_.dynamic_shared, 0xff, dynamic_shared_);
  take(order_[0]);
  switch_context(&main_, idle_fiber());
  if (signal_ != 0) describe_signal();
  if (outcome_.fault == Fault::kNone) return;
  idle_.clear();  // waiting threads never resume, so the next grid gets new fibers
  for (char* stack : stacks_) munmap(stack, kStack);
  stacks_.clear();
}

Suspended Scheduler::idle_fiber() {
  if (!idle_.empty()) {
    const Suspended fiber = idle_.back();
    idle_.pop_back();
    return fiber;
  }
  stacks_.push_back(new_stack());
  const std::size_t colour = stacks_.size() % 61 * 256;  // places stacks in different cache sets
  return new_context(stacks_.back() + kPage, kStack - kPage - colour, [] { scheduler().work(); });
}

// Makes `number` the running thread.
void Scheduler::take(unsigned number) {
  current_ = number;
  interface_.thread = &names_[number];
}

// Returns the next runnable thread in order, or -1.
int Scheduler::next_ready() const {
  const unsigned from = rank_[current_] + 1, words = (count_ + 63) / 64;
  for (unsigned k = 0; k <= words; ++k) {
    const unsigned w = (from / 64 + k) % words;
    std::uint64_t bits = ready_[w];
    if (k == 0 && from / 64 < words) bits &= ~std::uint64_t(0) << from % 64;
    if (bits != 0) return static_cast<int>(order_[w * 64 + static_cast<unsigned>(std::countr_zero(bits))]);
  }
  return -1;
}

// Does the same, but if no thread is runnable, the boxes in flight arrive first.
int Scheduler::next_or_landed() {
  int next = next_ready();
  if (next >= 0 || done_ == count_) return next;
  const std::vector<TileCopy> landed = std::move(tiles_);
  tiles_.clear();
  for (const TileCopy& c : landed) {
    fibers::copy_tile(c);
    if (phase_at(c.phase).receive(static_cast<int>(c.map.box_bytes()))) wake(c.phase);
  }
  return next_ready();
}

// The loop of a fiber: it runs threads that have not begun, one after the other. If the next thread has begun, the
// fiber is idle until it gets another new thread.
void Scheduler::work() {
  for (;;) {
    threads_[current_].begun = true;
    kernel_->call(arguments_);
    finish();
    const int next = next_or_landed();
    if (done_ == count_ && !tiles_.empty())
      fault(Fault::kFailed, "its block ends while boxes are copied into its memory");
    if (next < 0 && done_ != count_) fault(Fault::kFailed, "the other threads of its block wait for each other");
    if (next >= 0) take(static_cast<unsigned>(next));
    if (next >= 0 && !threads_[current_].begun) continue;
    idle_.push_back(nullptr);
    ++switches_;
    switch_context(&idle_.back(), next < 0 ? main_ : threads_[current_].at);
  }
}

// Suspends the running thread.
void Scheduler::wait() {
  Thread& me = threads_[current_];
  set_waiting(current_);
  const int next = next_or_landed();
  if (next < 0)
    fault(Fault::kFailed, "the threads of the block wait for each other: a barrier that not all of them reach");
  take(static_cast<unsigned>(next));
  ++switches_;
  switch_context(&me.at, threads_[current_].begun ? threads_[current_].at : idle_fiber());
}

void Scheduler::finish() {
  set_waiting(current_);
  if (overlaps_ && !threads_[current_].waited_for_grid)
    fault(Fault::kFailed, "it never waited for the grid before it, with which its launch may overlap");
  ++done_;
  Warp& warp = warps_[names_[current_].warp];
  warp.alive &= ~(1u << names_[current_].lane);
  if (at_barrier_ != 0) fault(Fault::kFailed, "it returned while others of its block wait at a barrier");
  if (warp.waiting == 0) return;
  const unsigned first = names_[current_].warp * kLanes;
  for (unsigned lane = 0; lane < kLanes; ++lane)  // an exchange does not wait for lanes that have returned
    if (warp.waiting >> lane & 1 && threads_[first + lane].mask >> names_[current_].lane & 1)
      exchange_if_complete(warp, threads_[first + lane]);
}

void Scheduler::block_barrier(unsigned place) {
  if (done_ != 0) fault(Fault::kFailed, "it waits at a barrier, but others of its block have returned");
  if (at_barrier_ != 0 && place != barrier_place_)
    fault(Fault::kFailed, "it waits at the barrier in line " + std::to_string(place) +
                              ", others of its block in line " + std::to_string(barrier_place_));
  barrier_place_ = place;
  if (++at_barrier_ < count_) return wait();
  at_barrier_ = 0;
  for (unsigned i = 0; i < count_; ++i) set_ready(i);
}

void Scheduler::warp_exchange(unsigned mask, void* mine, LcExchange exchange) {
  const unsigned lane = names_[current_].lane;
  Warp& warp = warps_[names_[current_].warp];
  if ((mask >> lane & 1) == 0) fault(Fault::kFailed, "its lane is not in the mask of a warp's exchange");
  Thread& me = threads_[current_];
  me.mask = mask, me.handed_in = mine, me.exchange = exchange;
  warp.waiting |= 1u << lane;
  if (!exchange_if_complete(warp, me)) wait();
}

// Completes the exchange if all its lanes have arrived. `waiting` is one of the lanes that have.
bool Scheduler::exchange_if_complete(Warp& warp, const Thread& waiting) {
  const unsigned members = waiting.mask & warp.alive, first = names_[current_].warp * kLanes;
  if ((warp.waiting & members) != members) return false;
  void* lanes[kLanes] = {};
  for (unsigned i = 0; i < kLanes; ++i) {
    if ((members >> i & 1) == 0) continue;
    const Thread& t = threads_[first + i];
    if (t.exchange != waiting.exchange || t.mask != waiting.mask)
      fault(Fault::kFailed, "lanes of its warp wait in different exchanges, or with different masks");
    lanes[i] = t.handed_in;
  }
  waiting.exchange(lanes);
  warp.waiting &= ~members;
  for (unsigned i = 0; i < kLanes; ++i)
    if (members >> i & 1) set_ready(first + i);
  return true;
}

void Scheduler::full_warp_exchange(void* mine, LcExchange exchange) {
  if (warps_[names_[current_].warp].alive != ~0u)
    fault(Fault::kFailed, "an instruction of the whole warp, but not all 32 lanes are there");
  warp_exchange(~0u, mine, exchange);
}

bool Scheduler::in_shared(const void* p, unsigned bytes) const {
  const auto* c = static_cast<const char*>(p);
  const auto* dynamic = static_cast<const char*>(interface_.dynamic_shared);
  return (c >= module_->shared_begin && c + bytes <= module_->shared_end) ||
         (c >= dynamic && c + bytes <= dynamic + dynamic_shared_);
}

// Until the copy is waited for, the destination is NaN, so a kernel that reads it too early computes wrong results.
void Scheduler::copy_async(void* to, const void* from, unsigned bytes) {
  if (!in_shared(to, bytes)) fault(Fault::kAddress, "an asynchronous copy to what is not shared memory");
  if (reinterpret_cast<std::uintptr_t>(to) % bytes != 0 || reinterpret_cast<std::uintptr_t>(from) % bytes != 0)
    fault(Fault::kMisaligned,
          "an asynchronous copy of " + std::to_string(bytes) + " bytes that is not aligned to them");
  copied_ = true;
  copies_[current_].push_back({to, from, bytes, threads_[current_].copy_groups});
  std::memset(to, 0xff, bytes);
}

void Scheduler::copy_wait(unsigned groups) {
  std::vector<Copy>& copies = copies_[current_];
  std::size_t arrived = 0;
  for (; arrived < copies.size() && copies[arrived].group + groups < threads_[current_].copy_groups; ++arrived)
    std::memcpy(copies[arrived].to, copies[arrived].from, copies[arrived].bytes);
  copies.erase(copies.begin(), copies.begin() + static_cast<std::ptrdiff_t>(arrived));
}

Phase& Scheduler::phase_at(void* phase) {
  if (!in_shared(phase, sizeof(Phase)) || reinterpret_cast<std::uintptr_t>(phase) % sizeof(Phase) != 0)
    fault(Fault::kAddress, "a phase that is not eight bytes of shared memory");
  Phase& p = *static_cast<Phase*>(phase);
  if (p.magic != Phase::kMagic) fault(Fault::kFailed, "a phase that did not begin");
  return p;
}

void Scheduler::wake(const void* phase) {
  for (unsigned i = 0; i < count_; ++i)
    if (threads_[i].phase == phase) threads_[i].phase = nullptr, set_ready(i);
}

void Scheduler::phase_begin(void* phase, unsigned arrivals) {
  if (!in_shared(phase, sizeof(Phase))) fault(Fault::kAddress, "a phase that is not in shared memory");
  static_cast<Phase*>(phase)->begin(arrivals);
}

void Scheduler::phase_arrive(void* phase, unsigned bytes) {
  Phase& p = phase_at(phase);
  if (p.missing == 0) fault(Fault::kFailed, "more arrive at a phase than it was begun for");
  if (p.arrive(static_cast<int>(bytes))) wake(phase);
}

void Scheduler::phase_wait(void* phase, unsigned parity) {
  if (phase_at(phase).ended(parity)) return;
  threads_[current_].phase = phase;
  wait();
}

void Scheduler::copy_tile(void* to, const void* map, void* phase, unsigned axes, const int* at) {
  TileCopy c{};
  std::memcpy(&c.map, map, sizeof c.map);
  if (c.map.magic != TensorMap::kMagic || c.map.axes != axes) fault(Fault::kFailed, "no map of so many axes");
  const std::uint32_t bytes = c.map.box_bytes();
  if (!in_shared(to, bytes)) fault(Fault::kAddress, "a box is copied to what is not shared memory");
  if (reinterpret_cast<std::uintptr_t>(to) % 128 != 0)
    fault(Fault::kMisaligned, "a box's place is not aligned to 128 bytes");
  phase_at(phase);
  c.to = static_cast<unsigned char*>(to), c.phase = phase;
  std::copy(at, at + axes, c.at);
  std::memset(to, 0xff, bytes);
  tiles_.push_back(c);
}

void Scheduler::describe(Fault kind, const std::string& words) {
  const auto text = [](LcDim3 d) {
    return "(" + std::to_string(d.x) + ", " + std::to_string(d.y) + ", " + std::to_string(d.z) + ")";
  };
  outcome_.fault = kind;
  outcome_.words = std::string(kernel_->name) + ", thread " + text(names_[current_].index) + " of block " +
                   text(interface_.block_index) + ": " + words;
}

void Scheduler::fault(Fault kind, const std::string& words) {
  describe(kind, words);
  switch_context(&abandoned_, main_);
  __builtin_unreachable();
}

// Called in the signal handler, where nothing may be allocated: the fault is described later.
Suspended Scheduler::recover(int signal, void* address) {
  signal_ = signal;
  touched_ = address;
  return main_;
}

void Scheduler::describe_signal() {
  char words[96];
  std::snprintf(words, sizeof words,
                signal_ == SIGFPE   ? "an integer was divided by zero"
                : signal_ == SIGILL ? "an instruction that this processor does not have"
                                    : "it touched address %p, which is not its to touch",
                touched_);
  describe(signal_ == SIGFPE || signal_ == SIGILL ? Fault::kFailed : Fault::kAddress, words);
  signal_ = 0;
}

}  // namespace

Outcome run_grid(const LcModule& module, const LcKernel& kernel, void* const* arguments, const Grid& grid) {
  return scheduler().run(module, kernel, arguments, grid);
}

unsigned long switches() { return scheduler().switches(); }

}  // namespace fibers
