// The order of work on a device: commands are gathered in a command buffer, several command buffers are under way, and
// what went wrong in one of them is told to whoever waits next.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "lightcone/backends/metal/objc.h"

namespace lc::backends::metal {

class Stream {
 public:
  Stream(const Runtime& runtime, Id device);
  ~Stream();
  Stream(const Stream&) = delete;

  // The right to put commands in, for one thread at a time.
  class Turn {
   public:
    explicit Turn(Stream& s) : lock_(s.mutex_), pool_(s.runtime_), s_(s) {}
    // What takes commands of a kind; good until the other kind is asked for, or end().
    Id compute() { return s_.encoder(Kind::Compute); }
    Id blit() { return s_.encoder(Kind::Blit); }
    // When is done what was put in so far? (done())
    std::uint64_t ticket() const { return s_.committed_ + 1; }
    bool done(std::uint64_t ticket) {
      s_.reap();
      return ticket <= s_.finished();
    }
    // A command is complete. It holds this much memory that is freed when it was done.
    void put(std::size_t held = 0) { s_.put(held); }

   private:
    std::lock_guard<std::mutex> lock_;
    Pool pool_;
    Stream& s_;
  };

  // Until all is done that was put in before. An Error when some of it, or of what another wait saw done, went wrong.
  void wait();
  // The same, and what went wrong is told to the next wait().
  void drain();

 private:
  enum class Kind { None, Compute, Blit };
  // All with the lock:
  Id encoder(Kind kind);
  void put(std::size_t held);
  void end_encoder();
  void commit();
  void reap();  // forgets what is done
  std::uint64_t finished() const { return committed_ - in_flight_.size(); }

  const Runtime& runtime_;
  Ref queue_;
  const Selector commit_, status_, wait_;
  std::mutex mutex_;
  Ref command_, encoder_;  // that take commands now
  Kind kind_ = Kind::None;
  std::size_t commands_ = 0, held_ = 0;  // of command_
  std::uint64_t committed_ = 0;          // command buffers so far
  std::vector<Ref> in_flight_;           // the oldest first
  std::string failed_;                   // why, of the first that nobody has been told of
};

}  // namespace lc::backends::metal
