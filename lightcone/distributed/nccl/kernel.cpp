#include "lightcone/distributed/nccl/kernel.h"

#include <array>
#include <atomic>
#include <optional>

#include "lightcone/base/error.h"

namespace lc::distributed::nccl {
namespace {

using Operation = Collective::Operation;
namespace cuda = backends::cuda;

std::optional<Type> type_of(DType t) {
  switch (t) {
    case DType::I8: return Type::I8;
    case DType::U8: return Type::U8;
    case DType::I32: return Type::I32;
    case DType::U32: return Type::U32;
    case DType::I64: return Type::I64;
    case DType::U64: return Type::U64;
    case DType::F16: return Type::F16;
    case DType::BF16: return Type::BF16;
    case DType::F32: return Type::F32;
    case DType::F64: return Type::F64;
    case DType::Bool: return Type::U8;  // zeros and ones
    default: return std::nullopt;
  }
}

bool reduces(const Call& c) { return c.operation == Operation::AllReduce || c.operation == Operation::ReduceScatter; }

// Sums of truth values are "or".
Reduction reduction_of(const Call& c, DType type) {
  return c.reduction == ReduceOp::Max || type == DType::Bool ? Reduction::Max : Reduction::Sum;
}

// Calls send and receive for all ranks of the group at once. If one fails, the group is ended all the same.
template <class Each>
Result in_group(const Api& a, std::size_t ranks, const Each& each) {
  Result r = a.begin_group();
  for (std::size_t k = 0; k < ranks && r == Result::Success; ++k) r = each(static_cast<int>(k));
  const Result ended = a.end_group();
  return r == Result::Success ? ended : r;
}

Result all_to_all(const Api& a, Handle* handle, std::size_t ranks, std::size_t bytes, Address in, Address out,
                  Stream* stream) {
  return in_group(a, ranks, [&](int k) {
    const std::size_t row = static_cast<std::size_t>(k) * bytes;
    const Result r = a.send(in + row, bytes, Type::U8, k, handle, stream);
    return r == Result::Success ? a.receive(out + row, bytes, Type::U8, k, handle, stream) : r;
  });
}

Result permute(const Api& a, Handle* handle, const Call& c, std::size_t bytes, Address in, Address out,
               Stream* stream) {
  return in_group(a, c.source.size(), [&](int k) {
    Result r = Result::Success;
    if (c.source[static_cast<std::size_t>(k)] == c.place) r = a.send(in, bytes, Type::U8, k, handle, stream);
    if (r == Result::Success && c.source[static_cast<std::size_t>(c.place)] == k)
      r = a.receive(out, bytes, Type::U8, k, handle, stream);
    return r;
  });
}

class NcclKernel final : public backends::gpu::GpuKernel, public backends::gpu::LibraryCall, public cuda::StreamCall {
 public:
  NcclKernel(std::shared_ptr<Ranks> ranks, std::shared_ptr<const Compare> compare, Call call, DType type, Dim elements)
      : ranks_(std::move(ranks)),
        compare_(std::move(compare)),
        call_(std::move(call)),
        type_(type),
        elements_(std::move(elements)) {}
  std::string name() const override {
    const bool receives = call_.operation == Operation::Send && call_.place == 1;
    return str_cat(receives ? "receive" : lc::name(call_.operation), " (NCCL)");
  }
  std::vector<Dim> sizes() const override { return {elements_}; }
  bool in_place(std::size_t k) const override { return k == 0 && call_.operation == Operation::AllReduce; }
  bool same_every_run() const override { return false; }  // others' numbers change

  void enqueue(const Launch& l, backends::gpu::GpuDevice& device) const override {
    const auto n = static_cast<std::size_t>(l.sizes[0]);
    if (n == 0) return;
    if (!handle_) meet(n);
    device.call(*this, std::array{l.in[0], l.out}, l.sizes);
    const bool nothing =
        call_.operation == Operation::Permute && call_.source[static_cast<std::size_t>(call_.place)] < 0;
    if (nothing || (call_.only >= 0 && call_.only != call_.place)) device.zero(l.out, n * size_of(type_));
    if (sends()) device.zero(l.out, 1);
  }
  void enqueue(const cuda::Context& context, Stream* stream, std::span<const std::uint64_t> words) const override {
    if (&context != &ranks_->device().stream()->context())
      throw Error("nccl",
                  "a program with collectives runs on another device than its rank's: compile it for the device "
                  "that nccl_ranks() was given, by backends::gpu::compiler(device)");
    nccl::enqueue(*ranks_, handle_, call_, type_, static_cast<std::size_t>(words[2]), words[0], words[1], stream);
  }

 private:
  bool sends() const { return call_.operation == Operation::Send && call_.place == 0; }
  void meet(std::size_t n) const {
    if (*compare_) {
      const Collective c{call_.operation, call_.reduction, type_,        n, call_.group, call_.place,
                         call_.root,      call_.source,    call_.message};
      (*compare_)(call_, str(c));
    }
    handle_ = call_.operation == Operation::Send ? ranks_->world() : ranks_->group(call_.group, call_.place);
  }

  std::shared_ptr<Ranks> ranks_;
  std::shared_ptr<const Compare> compare_;
  Call call_;
  DType type_;
  Dim elements_;                                   // elements of one row
  mutable std::atomic<Handle*> handle_ = nullptr;  // the group's, once the ranks have met
};

class OrderedKernel final : public backends::gpu::GpuKernel {
 public:
  explicit OrderedKernel(Dim bytes) : bytes_(std::move(bytes)) {}
  std::string name() const override { return "ordered"; }
  std::vector<Dim> sizes() const override { return {bytes_}; }
  bool in_place(std::size_t k) const override { return k == 0; }
  bool same_every_run() const override { return false; }
  void enqueue(const Launch& l, backends::gpu::GpuDevice& device) const override {
    const BufferSlice& from = l.in[0];
    const bool here = from.buffer == l.out.buffer && from.offset == l.out.offset;
    if (!here) device.copy(l.out, from, static_cast<std::size_t>(l.sizes[0]));
  }

 private:
  Dim bytes_;
};

}  // namespace

void send(Ranks& ranks, std::array<int, 2> pair, int place, Address at, std::size_t bytes, Stream* stream) {
  Handle* const all = ranks.world();
  ranks.enqueue(all, [&](const Api& a) {
    return place == 0 ? a.send(at, bytes, Type::U8, pair[1], all, stream)
                      : a.receive(at, bytes, Type::U8, pair[0], all, stream);
  });
}

void enqueue(Ranks& ranks, Handle* handle, const Call& c, DType type, std::size_t n, Address in, Address out,
             Stream* stream) {
  const std::size_t bytes = n * size_of(type);
  if (c.operation == Operation::Send)
    return send(ranks, {c.group[0], c.group[1]}, c.place, c.place == 0 ? in : out, bytes, stream);
  ranks.enqueue(handle, [&](const Api& a) {
    switch (c.operation) {
      case Operation::AllReduce: return a.all_reduce(in, out, n, *type_of(type), reduction_of(c, type), handle, stream);
      case Operation::ReduceScatter:
        return a.reduce_scatter(in, out, n, *type_of(type), reduction_of(c, type), handle, stream);
      case Operation::AllGather: return a.all_gather(in, out, bytes, Type::U8, handle, stream);
      case Operation::Broadcast: return a.broadcast(in, out, bytes, Type::U8, c.root, handle, stream);
      case Operation::AllToAll: return all_to_all(a, handle, c.group.size(), bytes, in, out, stream);
      default: return permute(a, handle, c, bytes, in, out, stream);
    }
  });
}

std::shared_ptr<Kernel> kernel(std::shared_ptr<Ranks> ranks, std::shared_ptr<const Compare> compare, const Call& c,
                               DType type, const Dim& elements) {
  if (reduces(c) && !type_of(type))
    throw Error(name(c.operation), str_cat("NCCL adds no numbers of ", name(type), ": cast them to f32, or to i32"));
  return std::make_shared<NcclKernel>(std::move(ranks), std::move(compare), c, type, elements);
}

std::shared_ptr<Kernel> ordered(const Dim& bytes) { return std::make_shared<OrderedKernel>(bytes); }

}  // namespace lc::distributed::nccl
