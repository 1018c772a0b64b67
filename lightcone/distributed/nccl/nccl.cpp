#include "lightcone/distributed/nccl/nccl.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "lightcone/backends/cuda/launch.h"
#include "lightcone/base/error.h"
#include "lightcone/distributed/nccl/kernel.h"
#include "lightcone/distributed/nccl/meeting_place.h"

namespace lc {
namespace {

using distributed::Call;
using Operation = Collective::Operation;
namespace nccl = distributed::nccl;

// The collectives as kernels. It outlives the communicator as long as programs have some.
class NcclCollectives final : public distributed::DeviceCollectives {
 public:
  NcclCollectives(std::shared_ptr<nccl::Ranks> ranks, std::shared_ptr<const nccl::Compare> compare, bool alone)
      : ranks_(std::move(ranks)), compare_(std::move(compare)), alone_(alone) {}
  std::string device() const override { return "cuda"; }
  std::shared_ptr<Kernel> kernel(const Call& c, DType type, const Dim& elements) const override {
    if (c.group.size() == 1 && !alone_) return nullptr;
    return nccl::kernel(ranks_, compare_, c, type, elements);
  }
  std::shared_ptr<Kernel> ordered(const Dim& bytes) const override { return nccl::ordered(bytes); }

 private:
  std::shared_ptr<nccl::Ranks> ranks_;
  std::shared_ptr<const nccl::Compare> compare_;
  bool alone_;
};

class NcclRank final : public Communicator {
 public:
  NcclRank(std::shared_ptr<nccl::Ranks> ranks, std::shared_ptr<Communicator> host, int rank, int size, bool alone)
      : ranks_(std::move(ranks)), host_(std::move(host)), rank_(rank), size_(size) {
    const auto compare = std::make_shared<nccl::Compare>();
    if (host_) *compare = [host = host_](const Call& c, const std::string& what) { compare_on(*host, c, what); };
    if (host_)
      ranks_->share_ids_by([host = host_](nccl::UniqueId& id, std::span<const int> group, int place) {
        const nccl::UniqueId mine = id;
        host->run({Operation::Broadcast, ReduceOp::Sum, DType::U8, sizeof id, group, place, 0, {}, 0}, &mine, &id);
      });
    else
      ranks_->share_ids_by([all = ranks_.get()](nccl::UniqueId& id, std::span<const int> group, int place) {
        share_by_device(*all, id, group, place);
      });
    collectives_ = std::make_shared<const NcclCollectives>(ranks_, compare, alone);
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string name() const override { return ranks_->library().name(); }
  void run(const Collective& c, const void* in, void* out) override {
    if (host_) host_->run(c, in, out);
    else run_by_device(c, static_cast<const std::byte*>(in), static_cast<std::byte*>(out));
  }
  void run_together(const Collective& c, std::span<const Piece> pieces) override {
    if (host_) host_->run_together(c, pieces);
    else Communicator::run_together(c, pieces);
  }
  bool fail(const std::string& why) override { return host_ ? host_->fail(why) : Communicator::fail(why); }
  std::shared_ptr<const distributed::DeviceCollectives> on_device() const override { return collectives_; }

 private:
  static void share_by_device(nccl::Ranks& ranks, nccl::UniqueId& id, std::span<const int> group, int place);
  static void compare_on(Communicator& host, const Call& c, const std::string& what);
  void run_by_device(const Collective& c, const std::byte* in, std::byte* out);
  void send_by_device(const Collective& c, const std::byte* in, std::byte* out);
  std::vector<std::byte> gather(const Collective& c, const std::byte* in, std::size_t bytes);

  std::shared_ptr<nccl::Ranks> ranks_;
  std::shared_ptr<Communicator> host_;
  int rank_, size_;
  std::shared_ptr<const distributed::DeviceCollectives> collectives_;
};

// Once for each collective of a program: NCCL itself would wait without an end if ranks called different ones.
void NcclRank::compare_on(Communicator& host, const Call& c, const std::string& what) {
  constexpr std::size_t kMost = 120;
  std::vector<char> mine(kMost), all(kMost * c.group.size());
  std::memcpy(mine.data(), what.data(), std::min(what.size(), kMost - 1));
  host.run({Operation::AllGather, ReduceOp::Sum, DType::U8, kMost, c.group, c.place, 0, {}, 0}, mine.data(),
           all.data());
  for (std::size_t k = 0; k < c.group.size(); ++k) {
    const std::string theirs = all.data() + k * kMost;
    if (theirs != mine.data())
      throw Error(
          lc::name(c.operation),
          str_cat("ranks run different operations: rank ", c.group[static_cast<std::size_t>(c.place)], " ", mine.data(),
                  ", rank ", c.group[k], " ", theirs, "; they need the same model, mesh and version"));
  }
}

// Returns what all ranks of the group gave, in order.
std::vector<std::byte> NcclRank::gather(const Collective& c, const std::byte* in, std::size_t bytes) {
  std::vector<std::byte> rows(bytes * c.group.size());
  backends::cuda::CudaDevice& device = *ranks_->shared_device();
  const std::unique_ptr<Buffer> from = device.allocate(bytes), to = device.allocate(rows.size());
  Call all;
  all.operation = Operation::AllGather;
  all.group.assign(c.group.begin(), c.group.end()), all.place = c.place;
  nccl::Handle* const handle = ranks_->group(c.group, c.place);
  device.copy_in({from.get(), 0}, in, bytes);
  device.stream()->ask("gather", [&](const backends::cuda::api::Driver&, backends::cuda::api::Stream* stream) {
    nccl::enqueue(*ranks_, handle, all, DType::U8, bytes, backends::cuda::address_of({from.get(), 0}),
                  backends::cuda::address_of({to.get(), 0}), stream);
    return backends::cuda::api::Result::Success;
  });
  device.copy_out(rows.data(), {to.get(), 0}, rows.size());
  return rows;
}

// A message goes by the communicator of all ranks, in which the pair's are numbered as ever.
void NcclRank::send_by_device(const Collective& c, const std::byte* in, std::byte* out) {
  backends::cuda::CudaDevice& device = *ranks_->shared_device();
  const std::size_t bytes = c.n * size_of(c.dtype);
  const std::unique_ptr<Buffer> buffer = device.allocate(bytes);
  const auto at = backends::cuda::address_of({buffer.get(), 0});
  const bool sends = c.place == 0;
  if (sends) device.copy_in({buffer.get(), 0}, in, bytes);
  device.stream()->ask("send", [&](const backends::cuda::api::Driver&, backends::cuda::api::Stream* stream) {
    nccl::send(*ranks_, {c.group[0], c.group[1]}, c.place, at, bytes, stream);
    return backends::cuda::api::Result::Success;
  });
  if (sends) device.synchronise();
  else device.copy_out(out, {buffer.get(), 0}, bytes);
}

// The first rank of a group sends the others its id by the communicator of all ranks.
void NcclRank::share_by_device(nccl::Ranks& ranks, nccl::UniqueId& id, std::span<const int> group, int place) {
  backends::cuda::CudaDevice& device = *ranks.shared_device();
  const std::unique_ptr<Buffer> buffer = device.allocate(sizeof id);
  const auto at = backends::cuda::address_of({buffer.get(), 0});
  if (place == 0) device.copy_in({buffer.get(), 0}, &id, sizeof id);
  device.stream()->ask("send", [&](const backends::cuda::api::Driver&, backends::cuda::api::Stream* stream) {
    for (std::size_t k = 1; k < group.size(); ++k)
      if (place == 0 || place == static_cast<int>(k))
        nccl::send(ranks, {group[0], group[k]}, place == 0 ? 0 : 1, at, sizeof id, stream);
    return backends::cuda::api::Result::Success;
  });
  if (place == 0) device.synchronise();
  else device.copy_out(&id, {buffer.get(), 0}, sizeof id);
}

// Every rank gets what all gave, and computes its own result. That is slow, and as exact as threads() are.
void NcclRank::run_by_device(const Collective& c, const std::byte* in, std::byte* out) {
  const bool rows = c.operation == Operation::ReduceScatter || c.operation == Operation::AllToAll;
  const std::size_t ranks = c.group.size(), row = c.n * size_of(c.dtype), bytes = row * (rows ? ranks : 1);
  if (bytes == 0) return;
  if (c.operation == Operation::Send) return send_by_device(c, in, out);
  const std::vector<std::byte> all = gather(c, in, bytes);
  const auto of = [&](std::size_t k) { return all.data() + k * bytes; };
  const std::size_t mine = static_cast<std::size_t>(c.place) * row;
  std::vector<const void*> parts;
  for (std::size_t k = 0; k < ranks; ++k) parts.push_back(of(k) + (c.operation == Operation::ReduceScatter ? mine : 0));
  switch (c.operation) {
    case Operation::AllReduce:
    case Operation::ReduceScatter: reduce_rows(c.dtype, c.reduction, parts, out, 0, c.n); break;
    case Operation::AllGather: std::memcpy(out, all.data(), all.size()); break;
    case Operation::AllToAll:
      for (std::size_t k = 0; k < ranks; ++k) std::memcpy(out + k * row, of(k) + mine, row);
      break;
    case Operation::Broadcast: std::memcpy(out, of(static_cast<std::size_t>(c.root)), row); break;
    case Operation::Permute: {
      const int source = c.source[static_cast<std::size_t>(c.place)];
      if (source < 0) std::memset(out, 0, row);
      else std::memcpy(out, of(static_cast<std::size_t>(source)), row);
      break;
    }
    case Operation::Send: break;  // above
  }
}

std::shared_ptr<nccl::Ranks> open(const std::shared_ptr<backends::gpu::GpuDevice>& device, const NcclOptions& o) {
  auto cuda = std::dynamic_pointer_cast<backends::cuda::CudaDevice>(device);
  if (!cuda)
    throw Error("nccl_ranks", str_cat(device ? device->name() : "null", " is not a device of ",
                                      "backends::cuda::open_device(): NCCL joins NVIDIA's GPUs alone"));
  if (!(o.timeout_s > 0)) throw Error("nccl_ranks", str_cat("a time-out of ", o.timeout_s, " s is none"));
  return std::make_shared<nccl::Ranks>(nccl::Library::open(o.library), std::move(cuda), o.timeout_s);
}

// Returns the number in a variable, or `otherwise` if it is not set.
int number_in(const char* variable, int otherwise, int least, int most) {
  const char* const text = std::getenv(variable);
  if (!text || !*text) return otherwise;
  int n = 0;
  const char* const end = text + std::strlen(text);
  const auto [stopped, code] = std::from_chars(text, end, n);
  if (code != std::errc() || stopped != end || n < least || n > most)
    throw Error("nccl_ranks", str_cat("the variable ", variable, " is '", text, "', which is no number from ", least,
                                      " to ", most, "; torchrun sets it"));
  return n;
}

}  // namespace

std::shared_ptr<Communicator> nccl_ranks(std::shared_ptr<backends::gpu::GpuDevice> device,
                                         std::shared_ptr<Communicator> host, const NcclOptions& o) {
  if (!host) throw Error("nccl_ranks", "there is no communicator of the host by which ranks could meet");
  const auto ranks = open(device, o);
  const int rank = host->rank(), size = host->size();
  nccl::UniqueId id;
  if (rank == 0) id = ranks->unique_id();
  std::vector<int> all;
  for (int k = 0; k < size; ++k) all.push_back(k);
  nccl::UniqueId common = id;
  if (size > 1)
    host->run({Operation::Broadcast, ReduceOp::Sum, DType::U8, sizeof id, all, rank, 0, {}, 0}, &id, &common);
  ranks->join(common, rank, size);
  return std::make_shared<NcclRank>(ranks, std::move(host), rank, size, o.alone);
}

std::shared_ptr<Communicator> nccl_ranks(std::shared_ptr<backends::gpu::GpuDevice> device, const LaunchedRank& rank,
                                         const NcclOptions& o) {
  if (rank.size < 1 || rank.rank < 0 || rank.rank >= rank.size)
    throw Error("nccl_ranks", str_cat("there is no rank ", rank.rank, " among ", rank.size));
  if (rank.size > 1 && rank.address.empty() && !std::getenv("NCCL_COMM_ID"))
    throw Error("nccl_ranks", "no address says where rank 0 waits for the others: torchrun sets MASTER_ADDR");
  const auto ranks = open(device, o);
  {
    const nccl::MeetingPlace place(rank.size > 1 ? rank.address : "");
    ranks->join(ranks->unique_id(), rank.rank, rank.size);
  }
  return std::make_shared<NcclRank>(ranks, nullptr, rank.rank, rank.size, o.alone);
}

LaunchedRank LaunchedRank::from_torchrun() {
  constexpr int kMost = 1 << 24, kMostPort = 65534;
  LaunchedRank r;
  r.size = number_in("WORLD_SIZE", 1, 1, kMost);
  r.rank = number_in("RANK", r.size > 1 ? -1 : 0, 0, r.size - 1);
  if (r.rank < 0) throw Error("nccl_ranks", "WORLD_SIZE is set and RANK is not: torchrun sets both");
  r.local = number_in("LOCAL_RANK", r.rank, 0, kMost);
  const char* const host = std::getenv("MASTER_ADDR");
  if (r.size == 1) return r;
  if (!host || !*host) throw Error("nccl_ranks", "WORLD_SIZE is set and MASTER_ADDR is not: torchrun sets both");
  r.address = str_cat(host, ":", number_in("MASTER_PORT", 29500, 1, kMostPort) + 1);
  return r;
}

}  // namespace lc
