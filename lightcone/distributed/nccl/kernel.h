// A collective as a kernel of a CUDA device.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>

#include "lightcone/distributed/exchange.h"
#include "lightcone/distributed/nccl/ranks.h"

namespace lc::distributed::nccl {

// Compares what ranks of a group are about to run. Throws Error if they differ.
using Compare = std::function<void(const Call& c, const std::string& what)>;

// Returns the kernel of a collective. At its first run it makes the group's communicator and compares. Throws Error for
// reductions of a type that NCCL does not know.
std::shared_ptr<Kernel> kernel(std::shared_ptr<Ranks> ranks, std::shared_ptr<const Compare> compare, const Call& c,
                               DType type, const Dim& elements);
// Returns the kernel of Collectives::ordered().
std::shared_ptr<Kernel> ordered(const Dim& bytes);

// Enqueues a collective of n elements in a row, from `in` to `out`.
void enqueue(Ranks& ranks, Handle* handle, const Call& c, DType type, std::size_t n, Address in, Address out,
             Stream* stream);

// Enqueues a message from rank pair[0] to rank pair[1]; this one is pair[place]. It goes by the communicator of all
// ranks, in which messages are in the order of the program, and the stream waits until both ranks are there.
void send(Ranks& ranks, std::array<int, 2> pair, int place, Address at, std::size_t bytes, Stream* stream);

}  // namespace lc::distributed::nccl
