// Ranks with a GPU each: collectives and messages run on the device, in its stream between the kernels, by NVIDIA's
// NCCL. Nothing of NVIDIA's is needed to build; NCCL 2.18 or newer is loaded when ranks are made.
#pragma once

#include <memory>
#include <string>

#include "lightcone/backends/gpu/device/device.h"
#include "lightcone/distributed/communicator.h"

namespace lc {

struct NcclOptions {
  std::string library = "";  // NCCL's file; "": $LIGHTCONE_NCCL, else libnccl.so.2, also of a CUDA toolkit
  // How long ranks wait for each other when they are made, and how long the host waits for its device in one go before
  // the collectives in it are ended: a time longer than what ranks' work between two exchanges differs by, and than
  // what the device takes for all that it is asked for before the host waits.
  double timeout_s = 60;
  // Whether NCCL is called even where one rank alone makes up a group, for checks of the library. Otherwise nothing is.
  bool alone = false;
};

// Returns this process's or thread's rank of `host`, with collectives on `device`, an open CUDA device that no other
// rank uses. What is not on a device (Collectives::check_same(), the reference) `host` does. Programs are compiled for
// the same device:
//
//   const auto device = backends::cuda::open_device({.device = local});
//   const auto ranks = nccl_ranks(device, mpi_ranks());
//   compile(whole, shard(Collectives(mesh, ranks), specs) | generic() | backends::gpu::compiler(device));
//
// Every rank calls this. Throws Error if NCCL is not found or too old, if the device is none of CUDA's, if two ranks
// have one device, or if not all ranks come within the time-out. A rank that does not take part in a collective makes
// the others throw Error within the time-out; nothing that was in their devices is to be relied on then.
//
// Sums and maxima are of f16, bf16, f32, f64, integers of 8 (i8, u8), 32 and 64 bits, and bool; other types throw Error
// when a graph is compiled. The order in which NCCL adds is its own, and narrow floats are rounded after each addition,
// so sums differ in the last bits from those of threads(). All ranks get the same bits. Operations that only move
// elements take any type.
std::shared_ptr<Communicator> nccl_ranks(std::shared_ptr<backends::gpu::GpuDevice> device,
                                         std::shared_ptr<Communicator> host, const NcclOptions& o = {});

// A rank as a launcher started it.
struct LaunchedRank {
  int rank = 0, size = 1;
  int local = 0;             // among the ranks of its machine: the number of its device
  std::string address = "";  // where rank 0 waits for the others: "host:port"
  // Reads what torchrun puts into the environment: RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT. The port
  // after MASTER_PORT is taken, because torchrun itself listens at that one; $NCCL_COMM_ID, if it is set, is the
  // address instead. Without RANK and WORLD_SIZE this is the only rank. Throws Error for what it does not understand.
  static LaunchedRank from_torchrun();
};

// As above, without another communicator: ranks find each other by NCCL's own means (NCCL_COMM_ID, which this sets
// while it runs), and what is not on a device goes through NCCL all the same.
std::shared_ptr<Communicator> nccl_ranks(std::shared_ptr<backends::gpu::GpuDevice> device, const LaunchedRank& rank,
                                         const NcclOptions& o = {});

}  // namespace lc
