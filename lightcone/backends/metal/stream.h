// The order of work on a device. Commands are gathered in a command buffer, several command buffers are in flight, and
// a failure in one of them is reported to the next that waits.
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

  // The right to encode commands, for one thread at a time.
  class Turn {
   public:
    explicit Turn(Stream& s) : lock_(s.mutex_), pool_(s.runtime_), s_(s) {}
    // Returns the encoder of compute commands; valid until the other kind is requested, or until put().
    Id compute() { return s_.encoder(Kind::Compute); }
    // Returns the encoder of blits; valid in the same way.
    Id blit() { return s_.encoder(Kind::Blit); }
    // Returns the ticket of the commands put in so far, for done().
    std::uint64_t ticket() const { return s_.committed_ + 1; }
    bool done(std::uint64_t ticket) {
      s_.reap();
      return ticket <= s_.finished();
    }
    // Must be called after each complete command. `held`: bytes of memory that are freed when it is done.
    void put(std::size_t held = 0) { s_.put(held); }

   private:
    std::lock_guard<std::mutex> lock_;
    Pool pool_;
    Stream& s_;
  };

  // Waits until all commands put in previously are done. Throws Error if one of them failed, or one that another wait
  // saw done.
  void wait();
  // The same, but leaves failures to the next wait().
  void drain();

 private:
  enum class Kind { None, Compute, Blit };
  // Every function below requires the lock.
  Id encoder(Kind kind);
  void put(std::size_t held);
  void end_encoder();
  void commit();
  void reap();  // drops command buffers that are done
  std::uint64_t finished() const { return committed_ - in_flight_.size(); }

  const Runtime& runtime_;
  Ref queue_;
  const Selector commit_, status_, wait_;
  std::mutex mutex_;
  Ref command_, encoder_;  // take commands now
  Kind kind_ = Kind::None;
  std::size_t commands_ = 0, held_ = 0;  // commands in command_, and the memory that they hold
  std::uint64_t committed_ = 0;          // command buffers so far
  std::vector<Ref> in_flight_;           // oldest first
  std::string failed_;                   // message of the first failure that was not reported yet
};

}  // namespace lc::backends::metal
